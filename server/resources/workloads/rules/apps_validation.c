/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the kinds of apps/v1: DaemonSets, Deployments, ReplicaSets, StatefulSets and
 * ControllerRevisions. strategy_validation.c has the rules of their update strategies.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept); ControllerRevisions have no spec. Duplicates are found with an index
 * (base/json_index.h), never by comparing all elements with each other: clients choose how many
 * there are.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/label_selector.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

static const char not_negative[] = "must be greater than or equal to 0";

/* ---- selectors ---- */

/* The selector exists and is not empty: an empty one would select all pods of the namespace. kind:
 * the word for the kind in Kubernetes' text, such as "daemonset". */
static void validate_selector(const struct hf__json *spec, const char *kind,
                              struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(spec, "selector");
        char why[64];

        if (!selector) {
                hfd_cause_required(causes, "spec.selector", "");
                return;
        }
        hfd_match_selector_validate(selector, "spec.selector", causes);
        if (!hfd_label_selector_is_empty(selector))
                return;
        (void)snprintf(why, sizeof why, "empty selector is invalid for %s", kind);
        hfd_cause_invalid(causes, "spec.selector", "{}", why);
}

/* The selector selects the pods that are made from the template. Otherwise the controller would not
 * find its own pods, and make more and more of them. */
static void validate_selection(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(spec, "selector"),
                              *labels = hf__json_path(spec, "template.metadata.labels");

        if (selector && !hfd_label_selector_is_empty(selector) &&
            !hfd_label_selector_matches(selector, labels))
                hfd_template_labels_refuse(labels, causes);
}

/* "Invalid value: VALUE: field is immutable" if the member at `path` has changed. VALUE is JSON.
 * old NULL: a create, which changes nothing. */
static void validate_immutable(const struct hf__json *object, const struct hf__json *old,
                               const char *path, struct hfd_causes *causes) {
        const struct hf__json *value = hf__json_path(object, path);
        struct hf__strbuf shown = {0};

        if (!old || hfd_causes_equal(causes, value, hf__json_path(old, path)))
                return;
        hf__json_print(value, &shown);
        bool is_shown = hfd_causes_check(causes, shown.error) && shown.data;
        hfd_cause_invalid(causes, path, is_shown ? shown.data : "null", "field is immutable");
        hf__strbuf_done(&shown);
}

/* ---- templates ---- */

/* The kinds of this file keep their pods running, so the pods must be restarted always and must not
 * have a deadline. old: the old object; NULL = a create. kind: the word for the kind in Kubernetes'
 * text for the deadline, which is "ReplicaSet" for a Deployment, too. */
static void validate_template(const struct hf__json *template, const struct hf__json *old,
                              const char *kind, struct hfd_causes *causes) {
        char why[64];

        hfd_template_change_validate(template, hf__json_path(old, "spec.template"), "spec.template",
                                     causes);
        hfd_always_restarted_validate(template, causes);
        if (!hf__json_path(template, "spec.activeDeadlineSeconds"))
                return;
        (void)snprintf(why, sizeof why, "activeDeadlineSeconds in %s is not Supported", kind);
        hfd_cause_forbidden(causes, "spec.template.spec.activeDeadlineSeconds", why);
}

/* The member of the spec is absent or a number that is not negative. */
static void validate_count(const struct hf__json *spec, const char *member,
                           struct hfd_causes *causes) {
        hfd_require_range(spec, "spec", member, 0, INT32_MAX, not_negative, causes);
}

/* ---- Deployments, ReplicaSets, DaemonSets ---- */

/* A Deployment that waits for minReadySeconds makes no progress, so the deadline for progress must
 * be later. */
static void validate_deadline(const struct hf__json *spec, struct hfd_causes *causes) {
        int64_t deadline, ready = 0;
        char shown[24];

        validate_count(spec, "progressDeadlineSeconds", causes);
        (void)hf__json_i64(spec, "minReadySeconds", &ready);
        if (!hf__json_i64(spec, "progressDeadlineSeconds", &deadline) || deadline > ready)
                return;
        (void)snprintf(shown, sizeof shown, "%" PRId64, deadline);
        hfd_cause_invalid(causes, "spec.progressDeadlineSeconds", shown,
                          "must be greater than minReadySeconds");
}

void hfd_deployment_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_deployment_schema, object, old, causes))
                return;
        validate_count(spec, "replicas", causes);
        validate_selector(spec, "deployment", causes);
        validate_selection(spec, causes);
        if (!hfd_template_is_kept(&hfd_deployment_schema, object, old, causes))
                validate_template(hf__json_get(spec, "template"), old, "ReplicaSet", causes);
        hfd_deployment_strategy_validate(hf__json_get(spec, "strategy"), causes);
        validate_count(spec, "minReadySeconds", causes);
        validate_count(spec, "revisionHistoryLimit", causes);
        validate_deadline(spec, causes);
        validate_immutable(object, old, "spec.selector", causes);
}

void hfd_replica_set_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_replica_set_schema, object, old, causes))
                return;
        validate_count(spec, "replicas", causes);
        validate_count(spec, "minReadySeconds", causes);
        /* Kubernetes' text for ReplicaSets says "deployment" too. */
        validate_selector(spec, "deployment", causes);
        validate_selection(spec, causes);
        if (!hfd_template_is_kept(&hfd_replica_set_schema, object, old, causes))
                validate_template(hf__json_get(spec, "template"), old, "ReplicaSet", causes);
        validate_immutable(object, old, "spec.selector", causes);
}

void hfd_daemon_set_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");

        if (hfd_spec_is_kept(&hfd_daemon_set_schema, object, old, causes))
                return;
        validate_selector(spec, "daemonset", causes);
        validate_selection(spec, causes);
        if (!hfd_template_is_kept(&hfd_daemon_set_schema, object, old, causes))
                validate_template(hf__json_get(spec, "template"), old, "DaemonSet", causes);
        validate_count(spec, "minReadySeconds", causes);
        hfd_daemon_set_strategy_validate(hf__json_get(spec, "updateStrategy"), causes);
        validate_count(spec, "revisionHistoryLimit", causes);
        validate_immutable(object, old, "spec.selector", causes);
}

/* ---- StatefulSets ---- */

/* Appends to the array the volume that a pod gets for each claim of its StatefulSet. 0 or -ENOMEM.
 */
static int add_claim_volumes(struct hf__json *volumes, const struct hf__json *claims) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(claims); m && r == 0; m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "metadata.name");
                struct hf__json *volume = hf__json_object();
                r = hf__json_append(volumes, volume);
                if (r == 0)
                        r = hf__json_set_string(volume, "name", name ? name : "");
                if (r == 0)
                        r = hf__json_set_string(volume, "persistentVolumeClaim.claimName",
                                                name ? name : "");
        }
        return r;
}

/* Removes each volume whose name an earlier volume of the array has. The StatefulSet may have two
 * claims of one name, which Kubernetes accepts, but the rules for volumes would refuse the name as
 * a duplicate. 0 or -ENOMEM. */
static int drop_repeated(struct hf__json *volumes) {
        /* The index borrows the names of the removed volumes, so these are freed after it: cleanup
         * runs when the function returns. */
        HF__CLEANUP(hf__json_cleanup) struct hf__json *dropped = hf__json_array();
        struct hf__json *m = hf__json_first(volumes);
        struct hf__json_index names;
        size_t i = 0;
        int r = hf__json_index_init(&names, volumes, "name");

        while (m && r == 0) {
                struct hf__json *next = hf__json_next(m);
                const struct hf__json_index_entry *first =
                        hf__json_index_find(&names, hfd_text_of(m, "name"));
                if (first && first->position < i)
                        r = hf__json_append(dropped, hf__json_detach(volumes, m));
                m = next;
                i++;
        }
        hf__json_index_done(&names);
        return r;
}

/* A copy of the template with the volumes that its pods will have: one for each claim, and the
 * template's own volumes that have other names. The containers may mount all of these volumes, so
 * they are checked against them. NULL: out of memory. The caller frees the copy. */
static struct hf__json *with_claims(const struct hf__json *template,
                                    const struct hf__json *claims) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *copy = hf__json_dup(template);
        HF__CLEANUP(hf__json_cleanup) struct hf__json *volumes = hf__json_array();
        struct hf__json *own = hf__json_path(copy, "spec.volumes"), *m;

        if (!copy || !volumes || add_claim_volumes(volumes, claims) != 0 ||
            drop_repeated(volumes) != 0)
                return NULL;
        struct hf__json_index names;
        int r = hf__json_index_init(&names, volumes, "name");
        for (m = hf__json_first(own); m && r == 0;) {
                struct hf__json *next = hf__json_next(m);
                if (!hf__json_index_find(&names, hfd_text_of(m, "name")))
                        r = hf__json_append(volumes, hf__json_detach(own, m));
                m = next;
        }
        hf__json_index_done(&names);
        if (r == 0)
                r = hf__json_set(copy, "spec.volumes", HF__TAKE(volumes));
        return r == 0 ? HF__TAKE(copy) : NULL;
}

/* If memory runs out, the causes say so, and the template itself is checked all the same. */
static void validate_stateful_template(const struct hf__json *spec, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        const struct hf__json *template = hf__json_get(spec, "template"),
                              *claims = hf__json_get(spec, "volumeClaimTemplates");
        HF__CLEANUP(hf__json_cleanup) struct hf__json *copy = NULL;

        if (template && hf__json_first(claims)) {
                copy = with_claims(template, claims);
                if (!copy)
                        hfd_causes_no_memory(causes);
        }
        validate_template(copy ? copy : template, old, "StatefulSet", causes);
}

/* policy NULL: the spec has none, and nothing is checked. */
static void validate_retention(const struct hf__json *policy, struct hfd_causes *causes) {
        static const char *const members[] = {"whenDeleted", "whenScaled"};
        static const char field[] = "spec.persistentVolumeClaimRetentionPolicy";
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; policy && i < 2; i++) {
                const char *value = hfd_text_of(policy, members[i]);
                if (strcmp(value, "Retain") != 0 && strcmp(value, "Delete") != 0)
                        hfd_cause_unsupported_text(causes, hfd_field_path(path, field, members[i]),
                                                   value, "\"Retain\", \"Delete\"");
        }
}

/* Whether `spec` has a member that must not change and that differs in `other`. It does not see a
 * member that only `other` has, so the caller asks in both directions. */
static bool changes_fixed_member(const struct hf__json *spec, const struct hf__json *other,
                                 struct hfd_causes *causes) {
        static const char *const mutable[] = {"replicas",
                                              "ordinals",
                                              "template",
                                              "updateStrategy",
                                              "revisionHistoryLimit",
                                              "persistentVolumeClaimRetentionPolicy",
                                              "minReadySeconds"};
        const struct hfd_schema *schema = hfd_schema_of_member(&hfd_stateful_set_schema, "spec");

        for (const struct hf__json *m = hf__json_first(spec); m; m = hf__json_next(m)) {
                size_t i = 0;
                while (i < sizeof mutable / sizeof mutable[0] &&
                       strcmp(hf__json_key(m), mutable[i]) != 0)
                        i++;
                if (i == sizeof mutable / sizeof mutable[0] &&
                    !hfd_causes_equal_member(causes, schema, spec, other, hf__json_key(m)))
                        return true;
        }
        return false;
}

static void validate_claims(const struct hf__json *claims, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX], spec[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(claims); m; m = hf__json_next(m))
                hfd_claim_spec_validate(hf__json_get(m, "spec"), NULL,
                                        hfd_field_path(spec,
                                                       hfd_field_index(path,
                                                                       "spec.volumeClaimTemplates",
                                                                       i++),
                                                       "spec"),
                                        causes);
}

void hfd_stateful_set_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");
        const char *management = hfd_text_of(spec, "podManagementPolicy");

        if (hfd_spec_is_kept(&hfd_stateful_set_schema, object, old, causes))
                return;
        if (strcmp(management, "OrderedReady") != 0 && strcmp(management, "Parallel") != 0)
                hfd_cause_invalid_text(causes, "spec.podManagementPolicy", management,
                                       "must be 'OrderedReady' or 'Parallel'");
        hfd_stateful_set_strategy_validate(hf__json_get(spec, "updateStrategy"), causes);
        validate_retention(hf__json_get(spec, "persistentVolumeClaimRetentionPolicy"), causes);
        /* An update cannot change the claims (changes_fixed_member), so checking them again could
         * only make an object that was stored before this rule existed impossible to update. */
        if (!old)
                validate_claims(hf__json_get(spec, "volumeClaimTemplates"), causes);
        validate_count(spec, "replicas", causes);
        validate_count(spec, "minReadySeconds", causes);
        hfd_require_range(hf__json_get(spec, "ordinals"), "spec.ordinals", "start", 0, INT32_MAX,
                          not_negative, causes);
        if (!old && *hfd_text_of(spec, "serviceName"))
                hfd_label_name_validate(spec, "spec", "serviceName", causes);
        validate_selector(spec, "statefulset", causes);
        validate_selection(spec, causes);
        if (!hfd_template_is_kept(&hfd_stateful_set_schema, object, old, causes))
                validate_stateful_template(spec, old, causes);
        if (old &&
            (changes_fixed_member(spec, was, causes) || changes_fixed_member(was, spec, causes)))
                hfd_cause_forbidden(causes, "spec",
                                    "updates to statefulset spec for fields other than 'replicas', "
                                    "'ordinals', 'template', 'updateStrategy', "
                                    "'revisionHistoryLimit', "
                                    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
                                    "are forbidden");
}

/* ---- ControllerRevisions ---- */

void hfd_controller_revision_validate(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes) {
        const struct hf__json *number = hf__json_get(object, "revision");
        int64_t revision = 0;
        char shown[24];

        /* An object that was stored before these rules existed may go on breaking them. */
        if (!hf__json_get(object, "data") && (!old || hf__json_get(old, "data")))
                hfd_cause_required(causes, "data", "data is mandatory");
        if (hf__json_integer(number, &revision) && revision < 0 &&
            !(old && hfd_causes_equal(causes, number, hf__json_get(old, "revision")))) {
                (void)snprintf(shown, sizeof shown, "%" PRId64, revision);
                hfd_cause_invalid(causes, "revision", shown, not_negative);
        }
        validate_immutable(object, old, "data", causes);
}
