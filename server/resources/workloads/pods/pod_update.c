/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that hold for pods but not for templates, and what an update of a pod may change:
 * images of containers, a few numbers, and additional tolerations. It may remove scheduling gates.
 * While gates hold the pod back, it may also add labels to the node selector, and make the node
 * affinity narrower (pod_affinity_update.c).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. One text is shorter: kube-apiserver appends the differences
 * between both specs. The time grows with n log n, also for many tolerations: a client chooses how
 * many there are. Specs are compared by their schema, so that an absent member equals the zero of
 * its type, as in Go. The rules of a spec are not checked if an update does not change it. If it
 * does, a mistake that the old spec has, too, is no reason to refuse it (hfd_change_validate has
 * the exceptions).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

static const char *const container_lists[] = {"containers", "initContainers"};

/* ---- tolerations ---- */

/* For qsort and bsearch: compares two tolerations by everything except tolerationSeconds, which an
 * update may change. a, b: pointers to elements of an array of pointers. */
static int compare_names(const void *a, const void *b) {
        static const char *const members[] = {"key", "operator", "value", "effect"};
        const struct hf__json *const *x = a, *const *y = b;
        int order = 0;

        for (size_t i = 0; i < sizeof members / sizeof members[0] && order == 0; i++)
                order = strcmp(hfd_text_of(*x, members[i]), hfd_text_of(*y, members[i]));
        return order;
}

/* Each old toleration must still be there; new ones may be added. Sorting avoids the comparison of
 * each with all others. The array has one more place, so that an empty list does not look like a
 * lack of memory. */
static void validate_tolerations(const struct hf__json *list, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        size_t n = hf__json_count(list), i = 0;
        const struct hf__json **sorted = calloc(n + 1, sizeof(const struct hf__json *));

        if (!sorted) {
                hfd_causes_no_memory(causes);
                return;
        }
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                sorted[i++] = m;
        qsort(sorted, n, sizeof(const struct hf__json *), compare_names);
        for (const struct hf__json *m = hf__json_first(old); m; m = hf__json_next(m))
                if (!bsearch(&m, sorted, n, sizeof(const struct hf__json *), compare_names)) {
                        hfd_cause_forbidden(causes, "spec.tolerations",
                                            "existing toleration can not be modified except its "
                                            "tolerationSeconds");
                        break;
                }
        free(sorted);
}

/* ---- gates ---- */

/* Gates may be removed, but not added: the scheduler may already have placed the pod. */
static void validate_gates(const struct hf__json *list, const struct hf__json *old,
                           struct hfd_causes *causes) {
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX], field[HFD_FIELD_PATH_MAX], why[400];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&names, old, "name")))
                for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "name");
                        hfd_field_index(path, "spec.schedulingGates", i++);
                        if (hf__json_index_find(&names, name))
                                continue;
                        (void)snprintf(why, sizeof why,
                                       "only deletion is allowed, but found new scheduling gate "
                                       "'%.300s'",
                                       name);
                        hfd_cause_forbidden(causes, hfd_field_path(field, path, "name"), why);
                }
        hf__json_index_done(&names);
}

/* The cause shows the whole selector as JSON, as kube-apiserver does. */
static void refuse_selector(const struct hf__json *selector, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        if (selector)
                hf__json_print(selector, &shown);
        else
                hf__strbuf_puts(&shown, "null");
        hfd_cause_invalid(causes, "spec.nodeSelector",
                          hfd_causes_check(causes, shown.error) ? shown.data : "",
                          "only additions to spec.nodeSelector are allowed (no mutations or "
                          "deletions)");
        hf__strbuf_done(&shown);
}

/* Labels may be added to the node selector of a pod that gates hold back, but none may change or
 * go: the pod may only get fewer nodes. */
static void validate_selector(const struct hf__json *selector, const struct hf__json *old,
                              struct hfd_causes *causes) {
        struct hf__json_index labels;
        bool kept = true;

        if (hfd_causes_check(causes, hf__json_index_init(&labels, selector, NULL)))
                for (const struct hf__json *m = hf__json_first(old); m && kept;
                     m = hf__json_next(m)) {
                        const struct hf__json_index_entry *same =
                                hf__json_index_find(&labels, hf__json_key(m));
                        kept = same && hfd_causes_equal(causes, same->item, m);
                }
        hf__json_index_done(&labels);
        if (!kept)
                refuse_selector(selector, causes);
}

/* ---- numbers ---- */

/* The deadline may be set or lowered, not raised or removed. Returns whether the other rules are
 * checked too; kube-apiserver stops after some of the causes. */
static bool validate_deadline(const struct hf__json *spec, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char key[] = "activeDeadlineSeconds", field[] = "spec.activeDeadlineSeconds";
        const struct hf__json *value = hf__json_get(spec, key), *old_value = hf__json_get(old, key);
        int64_t seconds = 0, old_seconds = INT64_MAX;
        size_t n = causes->n;

        if (!value) {
                if (old_value)
                        hfd_cause_invalid(causes, field, "null",
                                          "must not update from a positive integer to nil value");
                return true;
        }
        hfd_require_range(spec, "spec", key, 0, INT32_MAX,
                          "must be between 0 and 2147483647, inclusive", causes);
        if (causes->n > n)
                return false;
        (void)hf__json_integer(value, &seconds);
        if (!hf__json_integer(old_value, &old_seconds) || seconds <= old_seconds)
                return true;
        char shown[24];
        (void)snprintf(shown, sizeof shown, "%lld", (long long)seconds);
        hfd_cause_invalid(causes, field, shown, "must be less than or equal to previous value");
        return false;
}

/* Whether the update sets a negative terminationGracePeriodSeconds to 1, as kube-apiserver allows.
 * Old servers stored negative values, which hfd_pod_prepare usually sets to 1 in both specs. */
static bool mends_grace(const struct hf__json *spec, const struct hf__json *old) {
        static const char key[] = "terminationGracePeriodSeconds";
        int64_t seconds, old_seconds;

        return hf__json_i64(old, key, &old_seconds) && old_seconds < 0 &&
               hf__json_i64(spec, key, &seconds) && seconds == 1;
}

/* ---- the rest ---- */

/* Removes from a copy of the spec the members that may change, or that other functions have
 * checked. gated: gates hold the pod back, so the choice of its nodes may change. grace:
 * mends_grace allows the change of the period. */
static void drop_mutable(struct hf__json *spec, bool gated, bool grace) {
        static const char *const members[] = {"activeDeadlineSeconds", "tolerations",
                                              "schedulingGates"};
        struct hf__json *affinity = hf__json_get(spec, "affinity");

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                hf__json_drop(spec, members[i]);
        if (grace)
                hf__json_drop(spec, "terminationGracePeriodSeconds");
        if (gated) {
                hf__json_drop(spec, "nodeSelector");
                hf__json_drop(affinity, "nodeAffinity");
                if (affinity && !hf__json_first(affinity))
                        hf__json_drop(spec, "affinity");
        }
        for (size_t i = 0; i < 2; i++)
                for (struct hf__json *m = hf__json_first(hf__json_get(spec, container_lists[i])); m;
                     m = hf__json_next(m))
                        hf__json_drop(m, "image");
}

/* Compares all that an update must not change. */
static void validate_other_fields(const struct hf__json *spec, const struct hf__json *old,
                                  bool gated, struct hfd_causes *causes) {
        struct hf__json *rest = hf__json_dup(spec), *old_rest = hf__json_dup(old);
        bool grace = mends_grace(spec, old);

        drop_mutable(rest, gated, grace);
        drop_mutable(old_rest, gated, grace);
        if ((spec && !rest) || (old && !old_rest))
                hfd_causes_no_memory(causes);
        else if (rest && old_rest &&
                 !hfd_causes_equal_by(causes, &hfd_pod_spec_schema, rest, old_rest))
                hfd_cause_forbidden(causes, "spec",
                                    "pod updates may not change fields other than "
                                    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                                    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                                    "additions to existing tolerations),"
                                    "`spec.terminationGracePeriodSeconds` (allow it to be set to "
                                    "1 if it was previously negative)");
        hf__json_free(rest);
        hf__json_free(old_rest);
}

/* Whether both specs have the same number of containers. If not, adds a cause, and kube-apiserver
 * checks no other rule of updates. */
static bool validate_lists(const struct hf__json *spec, const struct hf__json *old,
                           struct hfd_causes *causes) {
        char field[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < 2; i++)
                if (hf__json_count(hf__json_get(spec, container_lists[i])) !=
                    hf__json_count(hf__json_get(old, container_lists[i]))) {
                        hfd_cause_forbidden(causes,
                                            hfd_field_path(field, "spec", container_lists[i]),
                                            "pod updates may not add or remove containers");
                        return false;
                }
        return true;
}

/* spec, old: the new and the old spec. The old one says whether gates hold the pod back, because
 * the update may remove them. */
static void validate_update(const struct hf__json *spec, const struct hf__json *old,
                            struct hfd_causes *causes) {
        bool gated = hf__json_first(hf__json_get(old, "schedulingGates"));

        if (!validate_lists(spec, old, causes) || !validate_deadline(spec, old, causes))
                return;
        validate_tolerations(hf__json_get(spec, "tolerations"), hf__json_get(old, "tolerations"),
                             causes);
        validate_gates(hf__json_get(spec, "schedulingGates"), hf__json_get(old, "schedulingGates"),
                       causes);
        if (gated) {
                validate_selector(hf__json_get(spec, "nodeSelector"),
                                  hf__json_get(old, "nodeSelector"), causes);
                hfd_pod_validate_affinity_update(spec, old, causes);
        }
        validate_other_fields(spec, old, gated, causes);
}

/* ---- the kind ---- */

/* field: "spec" */
static void validate_spec(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes) {
        char list[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_pod_spec_validate(spec, field, true, causes);
        for (size_t i = 0; i < 2; i++) {
                size_t at = 0;
                hfd_field_path(list, field, container_lists[i]);
                for (struct hf__json *m = hf__json_first(hf__json_get(spec, container_lists[i])); m;
                     m = hf__json_next(m))
                        hfd_image_validate(m, hfd_field_index(path, list, at++), causes);
        }
}

struct hf__json *hfd_pod_formed_spec(const struct hf__json *spec, struct hfd_causes *causes) {
        struct hf__json *copy = NULL;
        char reason[HFD_FORM_REASON_MAX];
        int r = hfd_formed_copy(&hfd_pod_spec_schema, spec, &copy, reason);

        if (r == HF_E_INVALID)
                hfd_cause_type_invalid(causes, "spec", "{}", reason);
        (void)hfd_causes_check(causes, r);
        return copy;
}

void hfd_pod_validate_changed_spec(const struct hf__json *spec, const struct hf__json *was,
                                   struct hfd_causes *causes) {
        static const struct hfd_change_rules rules = {&hfd_pod_spec_schema, validate_spec};

        hfd_change_validate(&rules, spec, was, "spec", causes);
}

static void validate_create(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *annotations = hf__json_path(object, "metadata.annotations");

        hfd_pod_validate_annotations(object, NULL, causes);
        hfd_app_armor_annotations_validate(annotations, spec, "metadata.annotations", causes);
        validate_spec(spec, "spec", causes);
        if (hf__json_first(hf__json_get(spec, "ephemeralContainers")))
                hfd_cause_forbidden(causes, "spec.ephemeralContainers", "cannot be set on create");
        if (*hfd_text_of(spec, "nodeName") && hf__json_first(hf__json_get(spec, "schedulingGates")))
                hfd_cause_forbidden(causes, "spec.nodeName",
                                    "cannot be set until all schedulingGates have been cleared");
        hfd_app_armor_match_validate(annotations, spec, "spec", causes);
}

/* Only the create checks the values of the annotations for AppArmor. They never change, so a value
 * that was stored before there was such a rule could not be mended. */
void hfd_pod_validate(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");

        if (!old) {
                validate_create(object, causes);
                return;
        }
        bool is_kept = hfd_causes_equal_by(causes, &hfd_pod_spec_schema, spec, was);
        if (!is_kept)
                hfd_pod_validate_changed_spec(spec, was, causes);
        hfd_pod_validate_annotations(object, old, causes);
        if (!is_kept)
                validate_update(spec, was, causes);
}
