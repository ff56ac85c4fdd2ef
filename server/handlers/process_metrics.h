/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The process_* metrics of the field, read when they are asked for. */
#include <holdfast/host.h>

struct hfd_process_metrics;

int hfd_process_metrics_new(const struct hf_host *host, struct hfd_process_metrics **ret_metrics);
struct hfd_process_metrics *
hfd_process_metrics_free(struct hfd_process_metrics *metrics); /* accepts NULL */
