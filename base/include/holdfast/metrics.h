/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics: counters, gauges and histograms that cost one atomic operation, and an enumeration that
 * needs no server.
 *
 * A metric is made once with a name of the Prometheus form and fixed labels, and lives as long as
 * its registry. Asking again for the same name and labels gives the same metric. At most
 * HF_METRICS_MAX of them: a label value taken from what a client sends is a leak, use fixed sets.
 *
 * Thread: any. Handles may be NULL everywhere (no registry, or it is full): then nothing is
 * counted.
 */
#include <stddef.h>

#define HF_METRICS_MAX 4096

struct hf_metrics;
struct hf_metric;

enum hf_metric_kind { HF_METRIC_COUNTER, HF_METRIC_GAUGE, HF_METRIC_HISTOGRAM };

int hf_metrics_new(struct hf_metrics **ret_metrics);
struct hf_metrics *
hf_metrics_free(struct hf_metrics *metrics); /* accepts NULL; returns NULL; all handles die */

/*
 * labels: `name="value",...` already in Prometheus form, or "" (copied). Histograms have the
 * field's buckets for seconds (0.001 .. 60). metrics may be NULL. Returns NULL when out of memory,
 * full, or the kind differs from before.
 */
struct hf_metric *hf_metrics_get(struct hf_metrics *metrics, enum hf_metric_kind kind,
                                 const char *name, const char *help, const char *labels);

void hf_metric_add(struct hf_metric *metric, double value);     /* counter, gauge */
void hf_metric_set(struct hf_metric *metric, double value);     /* gauge */
void hf_metric_observe(struct hf_metric *metric, double value); /* histogram */

/*
 * Calls write for each chunk of the text exposition format (0.0.4), families together, with HELP
 * and TYPE. A gauge that is computed when read is a collector: added once, called by each
 * enumeration, on its thread, to set its metrics.
 */
void hf_metrics_write(struct hf_metrics *metrics,
                      void (*write)(void *ctx, const char *text, size_t n), void *ctx);
int hf_metrics_add_collector(struct hf_metrics *metrics, void (*collect)(void *ctx), void *ctx);
void hf_metrics_remove_collector(struct hf_metrics *metrics, void (*collect)(void *ctx), void *ctx);
