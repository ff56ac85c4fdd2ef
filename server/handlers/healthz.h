/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The health endpoints /healthz, /livez and /readyz, each with all its checks, or with a single one
 * as a subpath (/readyz/etcd). `?verbose` lists the checks, `?exclude=NAME` leaves one out. Bodies
 * and codes must be those of Kubernetes, because load balancers and `kubectl get --raw` read them
 * (https://kubernetes.io/docs/reference/using-api/health-checks/). But only administrators get the
 * reason of a single check.
 *
 * Thread: any, once it is created. The checks run on the thread of the request (health.h).
 */
#include <holdfast/health.h>
#include <holdfast/host.h>

#include "server/http/router.h"

struct hfd_healthz;

/*
 * Adds the check "ping" to host->health, unless it has one or host->health is NULL. host must
 * outlive the object. on_ready (may be NULL) is called once, by the first /readyz that succeeds
 * without excluding a check, on the thread of that request. 0 or -errno.
 */
int hfd_healthz_new(const struct hf_host *host, void (*on_ready)(void *ctx), void *ctx,
                    struct hfd_healthz **ret_healthz);
/* Adds the six routes and /metrics/slis (health_slis.h). 0, or an error of hfd_router_add. */
int hfd_healthz_install(struct hfd_healthz *healthz, struct hfd_router *router);
/* Requires that no request is in progress. Accepts NULL, returns NULL. */
struct hfd_healthz *hfd_healthz_free(struct hfd_healthz *healthz);
