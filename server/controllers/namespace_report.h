/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects what remains in a terminating namespace, and sets the conditions in its status. Pure.
 *
 * The conditions are those of Kubernetes' namespace controller, with its types, reasons and
 * messages: NamespaceDeletionDiscoveryFailure, NamespaceDeletionGroupVersionParsingFailure,
 * NamespaceDeletionContentFailure, NamespaceContentRemaining, NamespaceFinalizersRemaining.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct hf__json;

/* The finalizer in spec.finalizers that the controller namespace-lifecycle removes when a namespace
 * is empty. */
#define HFD_NAMESPACE_FINALIZER "kubernetes"

/* How many different finalizers a report can name. Objects with others are counted under the last
 * one. */
#define HFD_NAMESPACE_REPORT_FINALIZERS 16

/* The result of one attempt to empty a namespace. A zeroed struct is an empty report. */
struct hfd_namespace_report {
        struct hf__strbuf failures, remaining; /* owned; parts of the messages */
        size_t n_failures, n_remaining;        /* n_remaining: the kinds that still have objects */
        struct {
                char name[256]; /* a longer name is cut */
                size_t n;       /* the number of objects that have this finalizer */
        } finalizers[HFD_NAMESPACE_REPORT_FINALIZERS];
        size_t n_finalizers;
};

/*
 * Adds the error of a deletion. If memory runs out, hfd_namespace_report_set_conditions will return
 * -ENOMEM. The same holds for the next function.
 */
void hfd_namespace_report_failure(struct hfd_namespace_report *report, const char *text);

/* Adds n objects of a kind that still exist; nothing if n is 0. */
void hfd_namespace_report_remaining(struct hfd_namespace_report *report, const char *plural,
                                    const char *group, size_t n);

/* Adds the finalizers of one object that still exists. */
void hfd_namespace_report_finalizers(struct hfd_namespace_report *report,
                                     const struct hf__json *object);

/* Whether no object remains and nothing has failed. */
bool hfd_namespace_report_is_clean(const struct hfd_namespace_report *report);

/* Frees what the report owns and empties it. */
void hfd_namespace_report_done(struct hfd_namespace_report *report);

/* Whether a namespace must be emptied: it is being deleted and has HFD_NAMESPACE_FINALIZER. */
bool hfd_namespace_report_is_due(const struct hf__json *ns);

/* Sets status.conditions of the namespace from the report. now: a metav1.Time. *ret_changed: the
 * status differs and must be written. 0, -ENOMEM, or -EINVAL: the status is malformed. */
int hfd_namespace_report_set_conditions(const struct hfd_namespace_report *report,
                                        struct hf__json *ns, const char *now, bool *ret_changed);
