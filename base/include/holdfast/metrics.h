/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics: counters, gauges and histograms. An update uses atomic operations and no lock.
 * hf_metrics_write produces the text, so any HTTP server can serve it.
 *
 * A metric is created once, with a name and fixed labels. The caller must pass a valid Prometheus
 * metric name; it is not checked. The metric lives as long as its registry. A second request for
 * the same name and labels returns the same metric. A registry holds at most HF_METRICS_MAX
 * metrics. Do not put values that clients send into labels: each new value stays in memory. Use
 * values from a fixed set.
 *
 * Thread: any, for every function here except hf_metrics_free. Every function accepts NULL as the
 * registry or the metric, and then counts nothing. So callers need not check whether there is a
 * registry or whether it is full.
 */
#include <stddef.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_METRICS_MAX 4096

struct hf_metrics;
struct hf_metric;

enum hf_metric_kind { HF_METRIC_COUNTER, HF_METRIC_GAUGE, HF_METRIC_HISTOGRAM };

/* 0 or -errno. The caller owns the registry. */
HF_MUST_CHECK int hf_metrics_new(struct hf_metrics **ret_metrics);
/* Frees the registry and all its metrics. No other thread may be using them. Accepts NULL, returns
 * NULL. */
struct hf_metrics *hf_metrics_free(struct hf_metrics *metrics);

/*
 * Returns the metric with this name and these labels, and creates it if it does not exist. labels:
 * `name="value",...` in Prometheus form, or "". All strings are copied; of several help texts for
 * one name the first is kept. A histogram has buckets for seconds, from 0.001 to 60. Returns NULL
 * when memory is exhausted, when the registry is full, when a metric of another kind already has
 * this name, or when there is no registry or no name. The registry owns the metric.
 */
struct hf_metric *hf_metrics_get(struct hf_metrics *metrics, enum hf_metric_kind kind,
                                 const char *name, const char *help, const char *labels);

/* Each does nothing for a metric of a kind that is not named beside it. */
void hf_metric_add(struct hf_metric *metric, double value);     /* counter, gauge */
void hf_metric_set(struct hf_metric *metric, double value);     /* gauge */
void hf_metric_observe(struct hf_metric *metric, double value); /* histogram */

/*
 * Runs the collectors, then calls write with the text of each family in the Prometheus exposition
 * format 0.0.4, including HELP and TYPE. A family for whose text there is no memory is left out.
 * text is valid only during the call. No lock is held while write or a collector runs.
 */
void hf_metrics_write(struct hf_metrics *metrics,
                      void (*write)(void *ctx, const char *text, size_t n), void *ctx);
/*
 * Adds a collector, which computes gauges when they are read: hf_metrics_write calls it before it
 * writes, on the calling thread. So a collector may run on several threads at the same time. It
 * must not block. 0 or -ENOMEM.
 */
HF_MUST_CHECK int hf_metrics_add_collector(struct hf_metrics *metrics, void (*collect)(void *ctx),
                                           void *ctx);
/* Blocks while collect runs, so do not call it from a collector, or with a lock that collect takes.
 * Once it has returned, collect is not called again. An unknown collector is ignored. */
void hf_metrics_remove_collector(struct hf_metrics *metrics, void (*collect)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
