/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the health checks.
 *
 * Invariant: labels are endpoints, results, and the names of checks, which the programs that add
 * checks choose. Nothing that a client sends becomes a label, so the number of metrics has a bound.
 */
#include "server/handlers/health_slis.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "server/handlers/metrics_handler.h"
#include "server/handlers/process_metrics.h"

#define RESULT_NAME "kubernetes_healthcheck"
#define RESULT_HELP "This metric records the result of a single healthcheck."
#define TOTAL_NAME  "kubernetes_healthchecks_total"
#define TOTAL_HELP  "This metric records the results of all healthcheck."

struct hfd_health_slis {
        struct hf_metrics *metrics; /* owned; not host->metrics, so /metrics has no checks */
};

int hfd_health_slis_new(const struct hf_host *host, struct hfd_health_slis **ret_slis) {
        struct hfd_health_slis *slis = calloc(1, sizeof *slis);

        if (!slis)
                return -ENOMEM;
        int r = hf_metrics_new(&slis->metrics);
        if (r != 0) {
                free(slis);
                return r;
        }
        hfd_process_metrics_add_start_time(slis->metrics, hf_host_clock(host));
        *ret_slis = slis;
        return 0;
}

struct hfd_health_slis *hfd_health_slis_free(struct hfd_health_slis *slis) {
        if (!slis)
                return NULL;
        hf_metrics_free(slis->metrics);
        free(slis);
        return NULL;
}

/* Appends the value of a label, in which the format wants an escape for three characters. */
static void put_escaped(struct hf__strbuf *labels, const char *value) {
        for (const char *at = value; *at; at++) {
                if (*at == '\n') {
                        hf__strbuf_puts(labels, "\\n");
                        continue;
                }
                if (*at == '"' || *at == '\\')
                        hf__strbuf_putc(labels, '\\');
                hf__strbuf_putc(labels, *at);
        }
}

void hfd_health_slis_observe(struct hfd_health_slis *slis, const char *check, const char *endpoint,
                             bool healthy) {
        struct hf__strbuf labels = {0};

        assert(slis);
        hf__strbuf_puts(&labels, "name=\"");
        put_escaped(&labels, check);
        hf__strbuf_printf(&labels, "\",type=\"%s\"", endpoint);
        if (labels.error == 0)
                hf_metric_set(hf_metrics_get(slis->metrics, HF_METRIC_GAUGE, RESULT_NAME,
                                             RESULT_HELP, labels.data),
                              healthy ? 1 : 0);
        hf__strbuf_printf(&labels, ",status=\"%s\"", healthy ? "success" : "error");
        if (labels.error == 0)
                hf_metric_add(hf_metrics_get(slis->metrics, HF_METRIC_COUNTER, TOTAL_NAME,
                                             TOTAL_HELP, labels.data),
                              1);
        hf__strbuf_done(&labels);
}

void hfd_health_slis_handle(void *ctx, struct hfd_http_request *request) {
        const struct hfd_health_slis *slis = ctx;

        assert(slis);
        hfd_metrics_serve(request, slis->metrics, NULL);
}
