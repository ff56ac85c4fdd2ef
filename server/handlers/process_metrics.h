/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process_* metrics: memory, CPU time, file descriptors and start time of the process, under
 * the names that Prometheus' client libraries use. Thread: any.
 */
#include <holdfast/host.h>
#include <holdfast/metrics.h>

struct hfd_process_metrics;

/*
 * Adds the metrics to host->metrics, and a collector that updates all but the start time.
 * host->metrics may be NULL, and must outlive the object. 0 or -errno.
 */
int hfd_process_metrics_new(const struct hf_host *host, struct hfd_process_metrics **ret_metrics);
/* Removes the collector. Accepts NULL, returns NULL. */
struct hfd_process_metrics *hfd_process_metrics_free(struct hfd_process_metrics *metrics);
/* Adds only process_start_time_seconds to a registry. It is not added if /proc cannot be read. */
void hfd_process_metrics_add_start_time(struct hf_metrics *metrics, const struct hf_clock *clock);
