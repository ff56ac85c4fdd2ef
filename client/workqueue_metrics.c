/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a work queue.
 *
 * Invariants: names and labels are those of Kubernetes controllers, so that existing dashboards
 * work. A queue continues the counters of an earlier queue with the same name, because counters
 * must never decrease; its gauges start at 0.
 */
#include "client/workqueue_metrics.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

int hf__workqueue_metrics_init(struct hf__workqueue_metrics *metrics, struct hf_metrics *registry,
                               const char *name) {
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf labels = {0};

        hf__strbuf_puts(&labels, "name=");
        /* JSON escaping covers every character that must be escaped in a Prometheus label. */
        hf__strbuf_json(&labels, name, strlen(name));
        if (labels.error != 0)
                return -ENOMEM;
        metrics->depth = hf_metrics_get(registry, HF_METRIC_GAUGE, "workqueue_depth",
                                        "Number of keys that wait for a worker.", labels.data);
        metrics->adds = hf_metrics_get(registry, HF_METRIC_COUNTER, "workqueue_adds_total",
                                       "Number of keys added to the queue.", labels.data);
        metrics->retries =
                hf_metrics_get(registry, HF_METRIC_COUNTER, "workqueue_retries_total",
                               "Number of keys added again after a failure.", labels.data);
        metrics->queue_duration =
                hf_metrics_get(registry, HF_METRIC_HISTOGRAM, "workqueue_queue_duration_seconds",
                               "How long in seconds a key waits before a worker takes it.",
                               labels.data);
        metrics->work_duration =
                hf_metrics_get(registry, HF_METRIC_HISTOGRAM, "workqueue_work_duration_seconds",
                               "How long in seconds a worker processes a key.", labels.data);
        metrics->unfinished =
                hf_metrics_get(registry, HF_METRIC_GAUGE, "workqueue_unfinished_work_seconds",
                               "How many seconds the workers have spent so far on the keys that "
                               "they are processing now, added up.",
                               labels.data);
        metrics->longest = hf_metrics_get(registry, HF_METRIC_GAUGE,
                                          "workqueue_longest_running_processor_seconds",
                                          "How many seconds the worker that has been running "
                                          "longest has spent so far on its key.",
                                          labels.data);
        /* Usually 0 already: a previous queue of this name has reset it when it was freed. */
        hf_metric_set(metrics->depth, 0);
        return 0;
}

void hf__workqueue_metrics_reset(const struct hf__workqueue_metrics *metrics) {
        hf_metric_set(metrics->unfinished, 0);
        hf_metric_set(metrics->longest, 0);
        hf_metric_set(metrics->depth, 0);
}
