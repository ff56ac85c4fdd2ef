/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GET /metrics: all metrics of the process, except those of the health checks (health_slis.h), in
 * Prometheus' text format. Names and labels are wire format: dashboards and alerts are written for
 * them. Thread: any, once it is created.
 */
#include <holdfast/host.h>

#include "server/http/http.h"

struct hfd_metrics_handler;

struct hfd_flow_levels;

/*
 * levels: the priority levels, whose metrics are part of the text, too. They must outlive the
 * handler; NULL = there are none. Also adds the process_* metrics to host->metrics. If
 * host->metrics is NULL, the text has only the metrics of the levels. host must outlive the
 * handler. 0 or -errno.
 */
int hfd_metrics_handler_new(const struct hf_host *host, struct hfd_flow_levels *levels,
                            struct hfd_metrics_handler **ret_handler);
/* Requires that no request is in progress. Accepts NULL, returns NULL. */
struct hfd_metrics_handler *hfd_metrics_handler_free(struct hfd_metrics_handler *handler);
/* Replies to a request with the text of any registry (NULL = none) and of levels (NULL = none), and
 * drops the caller's reference to the request, as a handler must (request/http_request.h). */
void hfd_metrics_serve(struct hfd_http_request *request, struct hf_metrics *metrics,
                       struct hfd_flow_levels *levels);
/* A handler of http.h. ctx is the struct hfd_metrics_handler. Runs the collectors of all metrics on
 * this thread. */
void hfd_metrics_handle(void *ctx, struct hfd_http_request *request);
