/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GET /metrics/slis: the results of the health checks as metrics, with Kubernetes' names and
 * labels, from which the availability of a server is computed
 * (https://kubernetes.io/docs/reference/instrumentation/slis/). The result of a check is counted
 * whenever a client asks one of the health endpoints for all its checks, and does not exclude that
 * check. The path is separate from /metrics, so that it can be scraped more often.
 *
 * Thread: any, once it is created. Never blocks.
 */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/http/http.h"

struct hfd_health_slis;

/* 0 or -errno. host is only read during the call. */
int hfd_health_slis_new(const struct hf_host *host, struct hfd_health_slis **ret_slis);
/* Requires that no request is in progress. Accepts NULL, returns NULL. */
struct hfd_health_slis *hfd_health_slis_free(struct hfd_health_slis *slis);
/* Counts a result of a check at an endpoint ("readyz"). If memory runs out, it is not counted. */
void hfd_health_slis_observe(struct hfd_health_slis *slis, const char *check, const char *endpoint,
                             bool healthy);
/* A handler of http.h. ctx is the struct hfd_health_slis. */
void hfd_health_slis_handle(void *ctx, struct hfd_http_request *request);
