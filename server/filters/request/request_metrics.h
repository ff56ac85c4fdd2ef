/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The metrics of requests, under kube-apiserver's names. Label values come from fixed sets: text
 * from a client never becomes a label, so that no client can make the metrics grow. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

struct hfd_request_metrics;

/* The labels under which a request is counted: indices into the fixed sets. */
struct hfd_request_labels {
        unsigned char verb, resource;
};

/* host->metrics may be NULL: then nothing is counted. host must live longer. 0 or -ENOMEM. */
int hfd_request_metrics_new(const struct hf_host *host, struct hfd_request_metrics **ret_metrics);
/* The metrics stay in host->metrics. Accepts NULL, returns NULL. */
struct hfd_request_metrics *hfd_request_metrics_free(struct hfd_request_metrics *metrics);

/* verb: as hfd_request_verb returns it. resource: the plural; "" = a non-resource request. */
struct hfd_request_labels hfd_request_labels(const char *verb, const char *resource);
/* Counts a request whose response is complete, or whose client has left. duration < 0: it is not
 * measured. */
void hfd_request_metrics_count(struct hfd_request_metrics *metrics,
                               struct hfd_request_labels labels, int code, hf_nsec duration);
/* Requests that have seats begin (1) or end (-1). As in kube-apiserver there are two kinds. */
void hfd_request_metrics_inflight(struct hfd_request_metrics *metrics, bool mutating, int delta);
