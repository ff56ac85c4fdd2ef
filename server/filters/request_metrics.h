/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics of requests under the field's names, with label values from fixed sets: what a client
 * sends never becomes a label. Thread: any.
 */
#include <stddef.h>

#include <holdfast/host.h>

#include "server/filters/lane.h"

struct hfd_request_metrics;

/* Where a request counts: indices into the fixed sets. */
struct hfd_request_kind {
        unsigned char verb, resource;
};

int hfd_request_metrics_new(const struct hf_host *host, struct hfd_request_metrics **ret_metrics);
struct hfd_request_metrics *hfd_request_metrics_free(struct hfd_request_metrics *metrics);

/* verb: as hfd_request_verb says; resource: "" = a non-resource request. */
struct hfd_request_kind hfd_request_kind(const char *verb, const char *resource);
/* took: negative = not measured (a watch). */
void hfd_request_metrics_done(struct hfd_request_metrics *metrics, struct hfd_request_kind kind,
                              int code, hf_nsec took);

void hfd_request_metrics_inflight(struct hfd_request_metrics *metrics, enum hfd_lane lane,
                                  size_t n);
