/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PersistentVolumes.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. One text is shorter: kube-apiserver appends the differences
 * between the old source and the new one. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 *
 * strategies/pod/rules/volumes/ has the rules of single sources.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/go_value.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* Go prints maps in the order of their keys. capacity: NULL = none. 0 or -ENOMEM. */
static int print_capacity(struct hf__strbuf *s, const struct hf__json *capacity) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *sorted = hf__json_object();
        struct hf__json_index by_key;
        int r = hf__json_index_init(&by_key, capacity, NULL);

        if (!sorted)
                r = -ENOMEM;
        for (size_t i = 0; i < by_key.n && r == 0; i++)
                r = hf__json_add(sorted, by_key.entries[i].text,
                                 hf__json_dup(by_key.entries[i].item));
        if (r == 0 && capacity)
                hf__json_print(sorted, s);
        else if (r == 0)
                hf__strbuf_puts(s, "null");
        hf__json_index_done(&by_key);
        return r == 0 ? s->error : r;
}

/* The capacity is a map with the key "storage" and no other. As in kube-apiserver, an absent map is
 * both a required and an unsupported value, and the amounts of all keys are checked. */
static void validate_capacity(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *capacity = hf__json_get(spec, "capacity");
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_first(capacity))
                hfd_cause_required(causes, "spec.capacity", "");
        if (!hf__json_get(capacity, "storage") || hf__json_count(capacity) > 1) {
                struct hf__strbuf shown = {0};
                if (hfd_causes_check(causes, print_capacity(&shown, capacity)))
                        hfd_cause_unsupported(causes, "spec.capacity", shown.data, "\"storage\"");
                hf__strbuf_done(&shown);
        }
        for (const struct hf__json *m = hf__json_first(capacity); m; m = hf__json_next(m)) {
                const struct hfd_quantity amount = hfd_quantity_of_json(m);
                (void)snprintf(path, sizeof path, "spec.capacity[%s]", hf__json_key(m));
                (void)hfd_amount_validate(m, path, causes);
                if (amount.negative || hfd_quantity_is_zero(&amount))
                        hfd_cause_invalid_quantity(causes, path, &amount,
                                                   "must be greater than zero");
        }
}

/* Whether the path is the root of the node, however it is written. The text alone decides, as in
 * kube-apiserver: "/a/.." is the root, too. */
static bool is_root(const char *path) {
        size_t depth = 0;

        if (*path != '/')
                return false;
        for (const char *name = path + strspn(path, "/"); *name; name += strspn(name, "/")) {
                size_t n = strcspn(name, "/");
                if (n == 2 && memcmp(name, "..", 2) == 0)
                        depth -= depth > 0;
                else if (n != 1 || *name != '.')
                        depth++;
                name += n;
        }
        return depth == 0;
}

/* Exactly one source. Recycling a volume deletes its files, so it must not be the node's root.
 * name: that of the volume. */
static void validate_source(const struct hf__json *spec, const char *name, const char *field,
                            enum hfd_volume_kind kind, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        hfd_volume_source_validate(spec, name, field, kind, causes);
        if (is_root(hfd_text_of(hf__json_get(spec, "hostPath"), "path")) &&
            strcmp(hfd_text_of(spec, "persistentVolumeReclaimPolicy"), "Recycle") == 0)
                hfd_cause_forbidden(causes,
                                    hfd_field_path(path, field, "persistentVolumeReclaimPolicy"),
                                    "may not be 'recycle' for a hostPath mount of '/'");
}

/* ---- the nodes that can use the volume ---- */

/* old: the affinity of the old spec. If it has values that no label can have, the new affinity may
 * have some, too. */
static void validate_affinity(const struct hf__json *affinity, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char field[] = "spec.nodeAffinity.required";
        const struct hf__json *required = hf__json_get(affinity, "required");

        if (required)
                hfd_node_selector_validate(required, field,
                                           hfd_node_selector_has_bad_values(
                                                   hf__json_get(old, "required")),
                                           causes);
        else if (affinity)
                hfd_cause_required(causes, field, "must specify required node constraints");
}

/* The label that has replaced this one since; NULL = none. */
static const char *stable_label(const char *label) {
        static const char *const labels[][2] =
                {{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
                 {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
                 {"beta.kubernetes.io/os", "kubernetes.io/os"},
                 {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
                 {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};

        for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
                if (strcmp(labels[i][0], label) == 0)
                        return labels[i][1];
        return NULL;
}

/* Replaces the keys of an old list of requirements by their stable names, where the new list does
 * so at the same place. 0 or -ENOMEM. */
static int follow_labels(struct hf__json *old, const struct hf__json *now) {
        const struct hf__json *n = hf__json_first(now);
        int r = 0;

        for (struct hf__json *m = hf__json_first(old); m && n && r == 0;
             m = hf__json_next(m), n = hf__json_next(n)) {
                const char *stable = stable_label(hfd_text_of(m, "key"));
                if (stable && strcmp(stable, hfd_text_of(n, "key")) == 0)
                        r = hf__json_put_string(m, "key", stable);
        }
        return r;
}

/* Whether the affinity is as it was, apart from new names of labels. was: a copy of the old one,
 * which is changed. */
static bool is_affinity_kept(const struct hf__json *affinity, struct hf__json *was,
                             struct hfd_causes *causes) {
        static const char terms[] = "required.nodeSelectorTerms";
        const struct hf__json *n = hf__json_first(hf__json_path(affinity, terms));
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_path(was, terms)); m && n && r == 0;
             m = hf__json_next(m), n = hf__json_next(n)) {
                r = follow_labels(hf__json_get(m, "matchExpressions"),
                                  hf__json_get(n, "matchExpressions"));
                if (r == 0)
                        r = follow_labels(hf__json_get(m, "matchFields"),
                                          hf__json_get(n, "matchFields"));
        }
        return hfd_causes_check(causes, r) &&
               hfd_causes_equal_by(causes,
                                   hfd_schema_of_member(&hfd_persistent_volume_spec_schema,
                                                        "nodeAffinity"),
                                   affinity, was);
}

/* An affinity may be added, but an old one must be kept (is_affinity_kept). */
static void refuse_other_affinity(const struct hf__json *affinity, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *was = hf__json_dup(old);
        struct hf__strbuf shown = {0};

        if (!old)
                return;
        if (!was) {
                hfd_causes_no_memory(causes);
                return;
        }
        if (is_affinity_kept(affinity, was, causes))
                return;
        hfd_go_fields_print(&shown,
                            hfd_schema_of_member(&hfd_persistent_volume_spec_schema,
                                                 "nodeAffinity"),
                            affinity);
        hfd_cause_invalid(causes, "nodeAffinity",
                          hfd_causes_check(causes, shown.error) ? shown.data : "null",
                          "field is immutable, except for updating from beta label to GA");
        hf__strbuf_done(&shown);
}

/* ---- the class of attributes ---- */

static void validate_class(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char name[] = "volumeAttributesClassName",
                          field[] = "spec.volumeAttributesClassName";

        if (!hf__json_get(spec, name))
                return;
        if (*hfd_text_of(spec, name))
                hfd_subdomain_validate(hfd_text_of(spec, name), field, causes);
        else
                hfd_cause_required(causes, field, "an empty string is disallowed");
        if (!hf__json_get(spec, "csi"))
                hfd_cause_required(causes, "spec.csi",
                                   "has to be specified when using volumeAttributesClassName");
}

/* ---- what an update may change ---- */

/* Whether `spec` has a source that differs in `other`. It does not see a source that only `other`
 * has, so the caller asks in both directions. Another program may have stored a spec that is no
 * object; it has no source. */
static bool changes_source(const struct hf__json *spec, const struct hf__json *other,
                           struct hfd_causes *causes) {
        if (!hf__json_is_object(spec))
                return false;
        for (const struct hf__json *m = hf__json_first(spec); m; m = hf__json_next(m))
                if (hfd_is_persistent_source(hf__json_key(m)) &&
                    !hfd_causes_equal_member(causes, &hfd_persistent_volume_spec_schema, spec,
                                             other, hf__json_key(m)))
                        return true;
        return false;
}

/*
 * The source cannot change, with one exception: a CSI volume may get a secret for its expansion
 * later. If the update adds such a secret, this returns a copy of the spec without it, which the
 * caller compares and frees. NULL: no secret was added; or memory ran out, which the causes say.
 * was: the old spec.
 */
static struct hf__json *without_added_secret(const struct hf__json *spec,
                                             const struct hf__json *was,
                                             struct hfd_causes *causes) {
        static const char secret[] = "controllerExpandSecretRef";
        const struct hf__json *csi = hf__json_get(spec, "csi"), *old_csi = hf__json_get(was, "csi");

        if (!old_csi || hf__json_get(old_csi, secret) || !hf__json_get(csi, secret))
                return NULL;
        struct hf__json *copy = hf__json_dup(spec);
        if (!copy)
                hfd_causes_no_memory(causes);
        hf__json_drop(hf__json_get(copy, "csi"), secret);
        return copy;
}

enum source_change { SOURCE_IS_KEPT, SOURCE_GETS_SECRET, SOURCE_IS_OTHER };

/* old: the old spec; NULL = a create. */
static enum source_change change_of_source(const struct hf__json *spec, const struct hf__json *old,
                                           struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *copy = without_added_secret(spec, old, causes);
        const struct hf__json *fixed = copy ? copy : spec;

        if (changes_source(fixed, old, causes) || changes_source(old, fixed, causes))
                return SOURCE_IS_OTHER;
        return copy ? SOURCE_GETS_SECRET : SOURCE_IS_KEPT;
}

static void validate_update(const struct hf__json *spec, const struct hf__json *was,
                            enum source_change change, struct hfd_causes *causes) {
        const char *mode = hfd_text_of(spec, "volumeMode");

        if (change == SOURCE_IS_OTHER)
                hfd_cause_forbidden(causes, "spec.persistentvolumesource",
                                    "spec.persistentvolumesource is immutable after creation");
        if (strcmp(mode, hfd_text_of(was, "volumeMode")) != 0)
                hfd_cause_invalid_text(causes, "volumeMode", mode, "field is immutable");
        refuse_other_affinity(hf__json_get(spec, "nodeAffinity"), hf__json_get(was, "nodeAffinity"),
                              causes);
        if (hf__json_get(was, "volumeAttributesClassName") &&
            !hf__json_get(spec, "volumeAttributesClassName"))
                hfd_cause_forbidden(causes, "spec.volumeAttributesClassName",
                                    "update from non-nil value to nil is forbidden");
}

/* ---- rules ---- */

/* Whether the member is not that of the old spec. was: NULL = a create. */
static bool is_new(const struct hf__json *spec, const struct hf__json *was, const char *name,
                   struct hfd_causes *causes) {
        return !was || !hfd_causes_equal_member(causes, &hfd_persistent_volume_spec_schema, spec,
                                                was, name);
}

/* What was stored before it had rules may stay, so that the volume can be bound: an update checks
 * the source, the volumeAttributesClassName and the nodeAffinity only if it changes them. With
 * a new source the class is checked too, because a class needs a CSI source. */
void hfd_persistent_volume_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char *const policies[] = {"Delete", "Recycle", "Retain", NULL},
                                 *const modes[] = {"Block", "Filesystem", NULL};
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");

        if (hfd_spec_is_kept(&hfd_persistent_volume_schema, object, old, causes))
                return;
        enum source_change change = change_of_source(spec, was, causes);
        hfd_access_modes_validate(spec, "spec.accessModes", causes);
        validate_capacity(spec, causes);
        hfd_require_one_of(spec, "spec", "persistentVolumeReclaimPolicy", policies, causes);
        if (is_new(spec, was, "nodeAffinity", causes))
                validate_affinity(hf__json_get(spec, "nodeAffinity"),
                                  hf__json_get(was, "nodeAffinity"), causes);
        if (!was || change != SOURCE_IS_KEPT)
                validate_source(spec, hf__json_string_or_empty(object, "metadata.name"), "spec",
                                HFD_VOLUME_PERSISTENT, causes);
        if (*hfd_text_of(spec, "storageClassName"))
                hfd_subdomain_validate(hfd_text_of(spec, "storageClassName"),
                                       "spec.storageClassName", causes);
        if (hf__json_get(spec, "volumeMode"))
                hfd_refuse_others(hfd_text_of(spec, "volumeMode"), "spec.volumeMode", modes,
                                  causes);
        if (change == SOURCE_IS_OTHER || is_new(spec, was, "volumeAttributesClassName", causes))
                validate_class(spec, causes);
        if (old)
                validate_update(spec, was, change, causes);
}

/* What is only meant for claims makes no sense in a volume that belongs to one pod. */
void hfd_inline_volume_validate(const struct hf__json *spec, const char *field,
                                struct hfd_causes *causes) {
        static const char other[] = "may not be specified in the context of inline volumes";
        const char *policy = hfd_text_of(spec, "persistentVolumeReclaimPolicy");
        const struct hf__json *mode = hf__json_get(spec, "volumeMode");
        char path[HFD_FIELD_PATH_MAX];

        if (hf__json_get(spec, "claimRef"))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "claimRef"), other);
        if (hf__json_first(hf__json_get(spec, "capacity")))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "capacity"), other);
        if (!hf__json_get(spec, "csi"))
                hfd_cause_required(causes, hfd_field_path(path, field, "csi"),
                                   "has to be specified in the context of inline volumes");
        hfd_access_modes_validate(spec, hfd_field_path(path, field, "accessModes"), causes);
        if (*policy && strcmp(policy, "Retain") != 0)
                hfd_cause_forbidden(causes,
                                    hfd_field_path(path, field, "persistentVolumeReclaimPolicy"),
                                    "may only be Retain in the context of inline volumes");
        if (hf__json_get(spec, "nodeAffinity"))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "nodeAffinity"), other);
        validate_source(spec, "", field, HFD_VOLUME_INLINE, causes);
        if (*hfd_text_of(spec, "storageClassName"))
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "storageClassName"), other);
        if (mode && strcmp(hf__json_text_or_empty(mode), "Filesystem") != 0)
                hfd_cause_forbidden(causes, hfd_field_path(path, field, "volumeMode"),
                                    "may not specify volumeMode other than Filesystem in the "
                                    "context of inline volumes");
}
