/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/namespace_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/object_client.h"

void hfd_ns_report_failure(struct hfd_ns_report *report, const char *text) {
        hf__strbuf_printf(&report->failures, "%s%s", report->n_failures++ ? ", " : "", text);
}

void hfd_ns_report_remaining(struct hfd_ns_report *report, const char *plural, const char *group,
                             size_t n) {
        if (n > 0)
                hf__strbuf_printf(&report->remaining, "%s%s.%s has %zu resource instances",
                                  report->n_remaining++ ? ", " : "", plural, group, n);
}

static void count_finalizer(struct hfd_ns_report *report, const char *name) {
        size_t i = 0;

        while (i < report->n_finalizers && strncmp(report->finalizers[i].name, name,
                                                   sizeof report->finalizers[i].name - 1) != 0)
                i++;
        if (i == HFD_NS_FINALIZERS_MAX)
                i--;
        if (i == report->n_finalizers) {
                (void)snprintf(report->finalizers[i].name, sizeof report->finalizers[i].name, "%s",
                               name);
                report->n_finalizers++;
        }
        report->finalizers[i].n++;
}

void hfd_ns_report_finalizers(struct hfd_ns_report *report, const struct hf__json *object) {
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(object, "metadata.finalizers"));
             m; m = hf__json_next(m))
                if (hf__json_is_string(m))
                        count_finalizer(report, hf__json_text(m));
}

bool hfd_ns_report_clean(const struct hfd_ns_report *report) {
        return report->n_failures == 0 && report->n_remaining == 0;
}

void hfd_ns_report_done(struct hfd_ns_report *report) {
        hf__strbuf_done(&report->failures);
        hf__strbuf_done(&report->remaining);
        *report = (struct hfd_ns_report){0};
}

bool hfd_ns_wants_finalizing(const struct hf__json *ns) {
        return hf__json_string(ns, "metadata.deletionTimestamp") &&
               hfd_list_has(ns, "spec.finalizers", HFD_NS_FINALIZER);
}

/* ---- conditions ---- */

struct condition {
        const char *type, *reason, *message;
        bool holds;
};

static struct hf__json *find_condition(const struct hf__json *conditions, const char *type) {
        for (struct hf__json *m = hf__json_first(conditions); m; m = hf__json_next(m)) {
                const char *text = hf__json_string(m, "type");
                if (text && strcmp(text, type) == 0)
                        return m;
        }
        return NULL;
}

static bool says(const struct hf__json *object, const char *path, const char *text) {
        const char *said = hf__json_string(object, path);
        return said && strcmp(said, text) == 0;
}

static int fill_condition(struct hf__json *object, const struct condition *condition,
                          const char *now, bool moved) {
        int r = hf__json_set_string(object, "type", condition->type);

        if (r == 0)
                r = hf__json_set_string(object, "status", condition->holds ? "True" : "False");
        if (r == 0 && moved)
                r = hf__json_set_string(object, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_set_string(object, "reason", condition->reason);
        return r != 0 ? r : hf__json_set_string(object, "message", condition->message);
}

/* The time of the transition moves with the status only, not with the words. */
static int set_condition(struct hf__json *conditions, const struct condition *condition,
                         const char *now, bool *ret_changed) {
        struct hf__json *there = find_condition(conditions, condition->type);
        bool same_status = there && says(there, "status", condition->holds ? "True" : "False");

        if (same_status && says(there, "reason", condition->reason) &&
            says(there, "message", condition->message))
                return 0;
        *ret_changed = true;
        if (there)
                return fill_condition(there, condition, now, !same_status);
        there = hf__json_object();
        int r = there ? fill_condition(there, condition, now, true) : -ENOMEM;
        if (r != 0) {
                hf__json_free(there);
                return r;
        }
        return hf__json_append(conditions, there);
}

static void finalizer_words(const struct hfd_ns_report *report, struct hf__strbuf *out) {
        hf__strbuf_puts(out, "Some content in the namespace has finalizers remaining: ");
        for (size_t i = 0; i < report->n_finalizers; i++)
                hf__strbuf_printf(out, "%s%s in %zu resource instances", i ? ", " : "",
                                  report->finalizers[i].name, report->finalizers[i].n);
}

static int set_all(struct hf__json *conditions, const struct hfd_ns_report *report, const char *now,
                   bool *ret_changed) {
        struct hf__strbuf failed = {0}, left = {0}, held = {0};
        struct condition all[] = {
                {"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
                 "All resources successfully discovered", false},
                {"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
                 "All legacy kube types successfully parsed", false},
                {"NamespaceDeletionContentFailure", "ContentDeleted",
                 "All content successfully deleted, may be waiting on finalization", false},
                {"NamespaceContentRemaining", "ContentRemoved", "All content successfully removed",
                 false},
                {"NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                 "All content-preserving finalizers finished", false},
        };

        if (report->n_failures) {
                hf__strbuf_printf(&failed, "Failed to delete all resource types, %zu remaining: %s",
                                  report->n_failures,
                                  report->failures.data ? report->failures.data : "");
                all[2] =
                        (struct condition){all[2].type, "ContentDeletionFailed", failed.data, true};
        }
        if (report->n_remaining) {
                hf__strbuf_printf(&left, "Some resources are remaining: %s",
                                  report->remaining.data ? report->remaining.data : "");
                all[3] = (struct condition){all[3].type, "SomeResourcesRemain", left.data, true};
        }
        if (report->n_finalizers) {
                finalizer_words(report, &held);
                all[4] = (struct condition){all[4].type, "SomeFinalizersRemain", held.data, true};
        }
        int r = report->failures.error ? report->failures.error : report->remaining.error;
        if (r == 0)
                r = failed.error ? failed.error : left.error ? left.error : held.error;
        for (size_t i = 0; r == 0 && i < sizeof all / sizeof *all; i++)
                r = set_condition(conditions, &all[i], now, ret_changed);
        hf__strbuf_done(&failed);
        hf__strbuf_done(&left);
        hf__strbuf_done(&held);
        return r;
}

int hfd_ns_set_conditions(struct hf__json *ns, const struct hfd_ns_report *report, const char *now,
                          bool *ret_changed) {
        struct hf__json *conditions = hf__json_path(ns, "status.conditions");

        *ret_changed = false;
        if (!hf__json_is_array(conditions)) {
                int r = hf__json_set(ns, "status.conditions", hf__json_array());
                if (r != 0)
                        return r;
                conditions = hf__json_path(ns, "status.conditions");
        }
        return set_all(conditions, report, now, ret_changed);
}
