/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report about a terminating namespace, and its conditions.
 *
 * Invariant: the same report gives the same conditions, byte for byte. So a check that finds
 * nothing new writes nothing. A write would cause an event, which would enqueue the namespace
 * again, in an endless loop. lastTransitionTime therefore changes only with a condition's status.
 *
 * The texts are those of Kubernetes, because clients print them.
 */
#include "server/controllers/namespace_report.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/base/string_list.h"

void hfd_namespace_report_failure(struct hfd_namespace_report *report, const char *text) {
        hf__strbuf_printf(&report->failures, "%s%s", report->n_failures++ ? ", " : "", text);
}

void hfd_namespace_report_remaining(struct hfd_namespace_report *report, const char *plural,
                                    const char *group, size_t n) {
        if (n > 0)
                hf__strbuf_printf(&report->remaining, "%s%s.%s has %zu resource instances",
                                  report->n_remaining++ ? ", " : "", plural, group, n);
}

/* Names are compared up to the length to which they are stored, so a long name is counted once. */
static void count_finalizer(struct hfd_namespace_report *report, const char *name) {
        size_t i = 0;

        while (i < report->n_finalizers && strncmp(report->finalizers[i].name, name,
                                                   sizeof report->finalizers[i].name - 1) != 0)
                i++;
        if (i == HFD_NAMESPACE_REPORT_FINALIZERS)
                i--; /* the table is full: count it under the last entry */
        if (i == report->n_finalizers) {
                (void)snprintf(report->finalizers[i].name, sizeof report->finalizers[i].name, "%s",
                               name);
                report->n_finalizers++;
        }
        report->finalizers[i].n++;
        assert(report->n_finalizers <= HFD_NAMESPACE_REPORT_FINALIZERS);
}

void hfd_namespace_report_finalizers(struct hfd_namespace_report *report,
                                     const struct hf__json *object) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.finalizers"));
             m; m = hf__json_next(m))
                if (hf__json_is_string(m))
                        count_finalizer(report, hf__json_text(m));
}

/* Finalizers need no check: an object that has one also counts as remaining. */
bool hfd_namespace_report_is_clean(const struct hfd_namespace_report *report) {
        return report->n_failures == 0 && report->n_remaining == 0;
}

void hfd_namespace_report_done(struct hfd_namespace_report *report) {
        hf__strbuf_done(&report->failures);
        hf__strbuf_done(&report->remaining);
        *report = (struct hfd_namespace_report){0};
}

bool hfd_namespace_report_is_due(const struct hf__json *ns) {
        return hf__json_string(ns, "metadata.deletionTimestamp") &&
               hfd_string_list_has(ns, "spec.finalizers", HFD_NAMESPACE_FINALIZER);
}

/* ---- conditions ---- */

enum { DISCOVERY, PARSING, DELETION, REMAINING, FINALIZERS, N_CONDITIONS };

/* The content of a condition. All strings are borrowed. */
struct condition {
        const char *type, *reason, *message;
        bool status;
};

/* Changes lastTransitionTime only if new_status is true. 0 or -ENOMEM. */
static int fill_condition(struct hf__json *object, const struct condition *condition,
                          const char *now, bool new_status) {
        int r = hf__json_set_string(object, "type", condition->type);

        if (r == 0)
                r = hf__json_set_string(object, "status", condition->status ? "True" : "False");
        if (r == 0 && new_status)
                r = hf__json_set_string(object, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_set_string(object, "reason", condition->reason);
        return r != 0 ? r : hf__json_set_string(object, "message", condition->message);
}

/* Changes the condition of that type only, so conditions that other programs added remain. */
static int set_condition(struct hf__json *conditions, const struct condition *condition,
                         const char *now, bool *ret_changed) {
        struct hf__json *existing = hf__json_element_with(conditions, "type", condition->type);
        bool same_status = existing && hf__json_has_text(existing, "status",
                                                         condition->status ? "True" : "False");

        if (same_status && hf__json_has_text(existing, "reason", condition->reason) &&
            hf__json_has_text(existing, "message", condition->message))
                return 0;
        *ret_changed = true;
        if (existing)
                return fill_condition(existing, condition, now, !same_status);
        existing = hf__json_object();
        int r = existing ? fill_condition(existing, condition, now, true) : -ENOMEM;
        if (r != 0) {
                hf__json_free(existing);
                return r;
        }
        return hf__json_append(conditions, existing);
}

static void print_finalizers(const struct hfd_namespace_report *report, struct hf__strbuf *out) {
        hf__strbuf_puts(out, "Some content in the namespace has finalizers remaining: ");
        for (size_t i = 0; i < report->n_finalizers; i++)
                hf__strbuf_printf(out, "%s%s in %zu resource instances", i ? ", " : "",
                                  report->finalizers[i].name, report->finalizers[i].n);
}

/* The messages of the conditions that are true. */
struct messages {
        struct hf__strbuf failed, remaining, finalizers;
};

/* Makes a condition true. */
static void set_true(struct condition *condition, const char *reason, const char *message) {
        condition->reason = reason;
        condition->message = message;
        condition->status = true;
}

/* Sets the conditions that follow from the report; messages owns their texts. */
static void apply_report(const struct hfd_namespace_report *report, struct messages *messages,
                         struct condition all[N_CONDITIONS]) {
        if (report->n_failures) {
                hf__strbuf_printf(&messages->failed,
                                  "Failed to delete all resource types, %zu remaining: %s",
                                  report->n_failures,
                                  report->failures.data ? report->failures.data : "");
                set_true(&all[DELETION], "ContentDeletionFailed", messages->failed.data);
        }
        if (report->n_remaining) {
                hf__strbuf_printf(&messages->remaining, "Some resources are remaining: %s",
                                  report->remaining.data ? report->remaining.data : "");
                set_true(&all[REMAINING], "SomeResourcesRemain", messages->remaining.data);
        }
        if (report->n_finalizers) {
                print_finalizers(report, &messages->finalizers);
                set_true(&all[FINALIZERS], "SomeFinalizersRemain", messages->finalizers.data);
        }
}

/* A message that is cut for lack of memory must not be written. 0 or the error. */
static int check_messages(const struct hfd_namespace_report *report,
                          const struct messages *messages) {
        const int errors[] = {report->failures.error, report->remaining.error,
                              messages->failed.error, messages->remaining.error,
                              messages->finalizers.error};
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof errors / sizeof *errors; i++)
                r = errors[i];
        return r;
}

static int set_conditions(struct hf__json *conditions, const struct hfd_namespace_report *report,
                          const char *now, bool *ret_changed) {
        struct messages messages = {0};
        /* The conditions if nothing remains and nothing has failed. The first two never change: the
         * controller knows the kinds already, and sends no discovery requests that could fail. */
        struct condition all[N_CONDITIONS] = {
                [DISCOVERY] = {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
                               "All resources successfully discovered", false},
                [PARSING] = {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
                             "All legacy kube types successfully parsed", false},
                [DELETION] = {"NamespaceDeletionContentFailure", "ContentDeleted",
                              "All content successfully deleted, may be waiting on finalization",
                              false},
                [REMAINING] = {"NamespaceContentRemaining", "ContentRemoved",
                               "All content successfully removed", false},
                [FINALIZERS] = {"NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                                "All content-preserving finalizers finished", false},
        };

        apply_report(report, &messages, all);
        int r = check_messages(report, &messages);
        for (size_t i = 0; r == 0 && i < N_CONDITIONS; i++)
                r = set_condition(conditions, &all[i], now, ret_changed);
        hf__strbuf_done(&messages.failed);
        hf__strbuf_done(&messages.remaining);
        hf__strbuf_done(&messages.finalizers);
        return r;
}

int hfd_namespace_report_set_conditions(const struct hfd_namespace_report *report,
                                        struct hf__json *ns, const char *now, bool *ret_changed) {
        struct hf__json *conditions = hf__json_path(ns, "status.conditions");

        *ret_changed = false;
        if (!hf__json_is_array(conditions)) {
                int r = hf__json_set(ns, "status.conditions", hf__json_array());
                if (r != 0)
                        return r;
                conditions = hf__json_path(ns, "status.conditions");
        }
        return set_conditions(conditions, report, now, ret_changed);
}
