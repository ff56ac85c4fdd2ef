/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is left of a terminating namespace, and how its status says so. Pure.
 *
 * The conditions are those of Kubernetes' namespace controller, with its types, reasons and
 * messages: NamespaceDeletionDiscoveryFailure, NamespaceDeletionGroupVersionParsingFailure,
 * NamespaceDeletionContentFailure, NamespaceContentRemaining, NamespaceFinalizersRemaining.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct hf__json;

/* The finalizer in spec.finalizers that this controller removes when a namespace is empty. */
#define HFD_NAMESPACE_FINALIZER "kubernetes"

/* Different finalizers that a report names; further ones are counted with the last of them. */
#define HFD_NAMESPACE_REPORT_FINALIZERS 16

/* What one round over the contents of a namespace has found. A zeroed struct is an empty report. */
struct hfd_namespace_report {
        struct hf__strbuf failures, remaining; /* owned; in the form of the messages */
        size_t n_failures, n_remaining;
        struct {
                char name[256];
                size_t n; /* objects that have it */
        } finalizers[HFD_NAMESPACE_REPORT_FINALIZERS];
        size_t n_finalizers;
};

/* Adds an error of the deletion. Out of memory sticks in the report, as below. */
void hfd_namespace_report_failure(struct hfd_namespace_report *report, const char *text);

/* Adds n objects of a kind that still exist; nothing if n is 0. */
void hfd_namespace_report_remaining(struct hfd_namespace_report *report, const char *plural,
                                    const char *group, size_t n);

/* Adds the finalizers of one object that still exists. */
void hfd_namespace_report_finalizers(struct hfd_namespace_report *report,
                                     const struct hf__json *object);

/* Whether nothing is left and nothing has failed. */
bool hfd_namespace_report_is_clean(const struct hfd_namespace_report *report);

/* Frees what the report owns and empties it. */
void hfd_namespace_report_done(struct hfd_namespace_report *report);

/* Whether a namespace is to be emptied: it is being deleted, and our finalizer is in its spec. */
bool hfd_namespace_report_is_due(const struct hf__json *ns);

/* Sets status.conditions of the namespace to what the report says. now: a metav1.Time.
 * *ret_changed: the status has to be written. 0, -ENOMEM. */
int hfd_namespace_report_set_conditions(const struct hfd_namespace_report *report,
                                        struct hf__json *ns, const char *now, bool *ret_changed);
