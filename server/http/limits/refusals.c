/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the connections that were closed because of a limit, and logs their number.
 *
 * Invariant: a log line resets only the count that it reports, in one atomic step. So a refusal
 * that another worker counts meanwhile is in the next line.
 */
#include "server/http/limits/refusals.h"

#include <assert.h>
#include <stdio.h>

#define INTERVAL (10 * HF_NSEC_PER_SEC) /* between two reports */

static const struct {
        const char *label, *why;
} texts[HFD_N_REFUSALS] = {
        [HFD_REFUSAL_HANDSHAKES] = {"handshakes", "limit of unfinished TLS handshakes reached"},
        [HFD_REFUSAL_STRANGERS] = {"strangers", "limit of unauthenticated clients reached"},
        [HFD_REFUSAL_CONNECTIONS] = {"connections", "maximum of connections reached"},
        [HFD_REFUSAL_DESCRIPTORS] = {"descriptors", "no file descriptor left"},
};

void hfd_refusals_init(struct hfd_refusals *refusals, const struct hf_host *host) {
        refusals->host = host;
        for (size_t i = 0; i < HFD_N_REFUSALS; i++) {
                char label[64];

                snprintf(label, sizeof label, "reason=\"%s\"", texts[i].label);
                refusals->metrics[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                                       "holdfast_http_connections_refused_total",
                                       "Connections closed because there was no room for them.",
                                       label);
        }
}

void hfd_refusals_count(struct hfd_refusals *refusals, enum hfd_refusal why) {
        assert(why < HFD_N_REFUSALS);
        atomic_fetch_add_explicit(&refusals->n[why], 1, memory_order_relaxed);
        hf_metric_add(refusals->metrics[why], 1);
}

void hfd_refusals_report(struct hfd_refusals *refusals, hf_nsec now, size_t max_connections) {
        if (now < refusals->next_report)
                return;
        for (size_t i = 0; i < HFD_N_REFUSALS; i++) {
                size_t n = atomic_exchange_explicit(&refusals->n[i], 0, memory_order_relaxed);

                if (n == 0)
                        continue;
                refusals->next_report = now + INTERVAL;
                hf_log(&refusals->host->log, HF_LOG_WARNING, "http",
                       "closed %zu connections: %s (at most %zu connections); "
                       "holdfast_http_connections_refused_total counts them",
                       n, texts[i].why, max_connections);
        }
}
