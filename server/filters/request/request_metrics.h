/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The metrics of requests, under kube-apiserver's names. The values of labels come from fixed sets.
 * A text from a client never becomes a label, so no client can make the number of metrics grow.
 * Thread: any.
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hfd_request_metrics;

/* The labels of a request, as indices into the fixed sets. */
struct hfd_request_labels {
        unsigned char verb, resource;
};

/* host->metrics must outlive the result. If it is NULL, nothing is counted. 0 or -ENOMEM. */
int hfd_request_metrics_new(const struct hf_host *host, struct hfd_request_metrics **ret_metrics);
/* The counters stay in host->metrics. Accepts NULL, returns NULL. */
struct hfd_request_metrics *hfd_request_metrics_free(struct hfd_request_metrics *metrics);

/* Finds the labels of a request. verb: as hfd_request_verb returns it. resource: the plural, such
 * as "leases"; "" = a non-resource request. */
struct hfd_request_labels hfd_request_labels(const char *verb, const char *resource);
/* Counts a request when its response is complete or its client has left. duration: its latency;
 * negative = the request is left out of the latency distribution. */
void hfd_request_metrics_count(struct hfd_request_metrics *metrics,
                               struct hfd_request_labels labels, int code, hf_nsec duration);
/* Changes the number of requests that run: delta is 1 when a request has got its seats, and -1 when
 * it gives them back. As in kube-apiserver, there is one number for mutating requests and one for
 * the others. */
void hfd_request_metrics_inflight(struct hfd_request_metrics *metrics, bool mutating, int delta);
