/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metrics: all metrics of the process, except those of the health checks (health_slis.h), in
 * the text format of Prometheus.
 *
 * Invariant: the text is made for each scrape, and its size is limited, because any part of the
 * process may add metrics.
 */
#include "server/handlers/metrics_handler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "server/flow/flow_metrics.h"
#include "server/handlers/process_metrics.h"
#include "server/handlers/read_endpoint.h"

#define BODY_MAX ((size_t)16 << 20) /* bytes; a longer text is a failure */

struct hfd_metrics_handler {
        struct hf_metrics *metrics;          /* borrowed from the host; NULL = none */
        struct hfd_process_metrics *process; /* owned */
        struct hfd_flow_levels *levels;      /* borrowed; NULL = none */
};

int hfd_metrics_handler_new(const struct hf_host *host, struct hfd_flow_levels *levels,
                            struct hfd_metrics_handler **ret_handler) {
        struct hfd_metrics_handler *handler = calloc(1, sizeof *handler);

        if (!handler)
                return -ENOMEM;
        handler->metrics = host->metrics;
        handler->levels = levels;
        int r = hfd_process_metrics_new(host, &handler->process);
        if (r != 0) {
                hfd_metrics_handler_free(handler);
                return r;
        }
        *ret_handler = handler;
        return 0;
}

struct hfd_metrics_handler *hfd_metrics_handler_free(struct hfd_metrics_handler *handler) {
        if (!handler)
                return NULL;
        hfd_process_metrics_free(handler->process);
        free(handler);
        return NULL;
}

static void append_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

void hfd_metrics_serve(struct hfd_http_request *request, struct hf_metrics *metrics,
                       struct hfd_flow_levels *levels) {
        struct hf__strbuf body = {.max = BODY_MAX};

        if (hfd_read_endpoint_accepts(request, true)) {
                hf_metrics_write(metrics, append_text, &body);
                if (levels)
                        hfd_flow_metrics_write(levels, &body);
                hfd_read_endpoint_reply(request, "text/plain; version=0.0.4; charset=utf-8", &body);
        }
        hf__strbuf_done(&body);
        hfd_http_request_unref(request);
}

void hfd_metrics_handle(void *ctx, struct hfd_http_request *request) {
        const struct hfd_metrics_handler *handler = ctx;

        assert(handler);
        hfd_metrics_serve(request, handler->metrics, handler->levels);
}
