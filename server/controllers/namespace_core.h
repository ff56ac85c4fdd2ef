/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The namespace lifecycle's words: what is left of a terminating namespace, as the conditions that
 * the field knows (NamespaceDeletionDiscoveryFailure, NamespaceDeletionGroupVersionParsingFailure,
 * NamespaceDeletionContentFailure, NamespaceContentRemaining, NamespaceFinalizersRemaining), with
 * its reasons and messages. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct hf__json;

#define HFD_NS_FINALIZER "kubernetes"
#define HFD_NS_FINALIZERS_MAX                                                                      \
        16 /* different finalizers that are named; further ones count with the last */

/* What one round over a namespace's contents has found. Zero is empty; done frees. */
struct hfd_ns_report {
        struct hf__strbuf failures, remaining; /* as the messages list them */
        size_t n_failures, n_remaining;
        struct {
                char name[256];
                size_t n;
        } finalizers[HFD_NS_FINALIZERS_MAX];
        size_t n_finalizers;
};
void hfd_ns_report_failure(struct hfd_ns_report *report, const char *text);
void hfd_ns_report_remaining(struct hfd_ns_report *report, const char *plural, const char *group,
                             size_t n);
void hfd_ns_report_finalizers(struct hfd_ns_report *report,
                              const struct hf__json *object); /* of one remaining object */
bool hfd_ns_report_clean(const struct hfd_ns_report *report);
void hfd_ns_report_done(struct hfd_ns_report *report);

/* Whether the namespace is to be emptied and finalized: marked, and the finalizer is still in its
 * spec. */
bool hfd_ns_wants_finalizing(const struct hf__json *ns);
/* Brings status.conditions to what the report says; now as in metav1.Time. *ret_changed: there is
 * something to write. 0, -ENOMEM. */
int hfd_ns_set_conditions(struct hf__json *ns, const struct hfd_ns_report *report, const char *now,
                          bool *ret_changed);
