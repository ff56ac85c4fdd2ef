/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The metrics of a work queue, with the names that Kubernetes uses. Thread: any; metrics are
 * thread-safe. */
#include <holdfast/metrics.h>

/* Borrowed from the registry. Each may be NULL; then it is not counted. */
struct hf__workqueue_metrics {
        struct hf_metric *depth, *adds, *retries, *queue_duration, *work_duration, *unfinished,
                *longest;
};

/* Registers the metrics with the label name="<name>". registry may be NULL. 0 or -ENOMEM. */
int hf__workqueue_metrics_init(struct hf__workqueue_metrics *metrics, struct hf_metrics *registry,
                               const char *name);
/* Sets the gauges to 0. Called when the queue is freed, because the registry keeps the metrics. */
void hf__workqueue_metrics_reset(const struct hf__workqueue_metrics *metrics);
