/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PersistentVolumes.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. One text is shorter: kube-apiserver appends the differences
 * between the old source and the new one. An update that does not change the spec is not checked
 * (hfd_spec_is_kept).
 *
 * The members of a volume source, and spec.nodeAffinity, are not checked: only programs that mount
 * volumes read them.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/workloads.h"

/* Whether a member of the spec is a volume source, such as nfs or csi. The list has the members
 * that are not: the schema has many sources, and a new one must not be forgotten here. */
static bool is_source(const char *member) {
        static const char *const others[] = {"accessModes",      "capacity",
                                             "claimRef",         "mountOptions",
                                             "nodeAffinity",     "persistentVolumeReclaimPolicy",
                                             "storageClassName", "volumeAttributesClassName",
                                             "volumeMode"};

        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                if (strcmp(member, others[i]) == 0)
                        return false;
        return true;
}

/* The capacity is a map with the key "storage" and no other. */
static void validate_capacity(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *capacity = hf__json_get(spec, "capacity");
        struct hf__strbuf shown = {0};

        if (!hf__json_first(capacity)) {
                hfd_cause_required(causes, "spec.capacity", "");
                return;
        }
        if (!hf__json_get(capacity, "storage") || hf__json_count(capacity) > 1) {
                hf__json_print(capacity, &shown);
                hfd_cause_unsupported(causes, "spec.capacity",
                                      hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                                      "\"storage\"");
                hf__strbuf_done(&shown);
        }
        const struct hfd_quantity amount = hfd_quantity_of_json(hf__json_get(capacity, "storage"));
        if (hf__json_get(capacity, "storage") && (amount.negative || hfd_quantity_is_zero(&amount)))
                hfd_cause_invalid_quantity(causes, "spec.capacity[storage]", &amount,
                                           "must be greater than zero");
}

/* Exactly one source. Recycling a volume deletes its files, so it must not be the node's root. */
static void validate_source(const struct hf__json *spec, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        bool found = false;

        for (const struct hf__json *m = hf__json_first(spec); m; m = hf__json_next(m)) {
                if (!is_source(hf__json_key(m)))
                        continue;
                if (found)
                        hfd_cause_forbidden(causes, hfd_field_path(path, "spec", hf__json_key(m)),
                                            "may not specify more than 1 volume type");
                found = true;
        }
        if (!found)
                hfd_cause_required(causes, "spec", "must specify a volume type");
        if (hf__json_has_text(spec, "hostPath.path", "/") &&
            hf__json_has_text(spec, "persistentVolumeReclaimPolicy", "Recycle"))
                hfd_cause_forbidden(causes, "spec.persistentVolumeReclaimPolicy",
                                    "may not be 'recycle' for a hostPath mount of '/'");
}

/* Whether `spec` has a source that differs in `other`. It does not see a source that only `other`
 * has, so the caller asks in both directions. */
static bool changes_source(const struct hf__json *spec, const struct hf__json *other,
                           struct hfd_causes *causes) {
        for (const struct hf__json *m = hf__json_first(spec); m; m = hf__json_next(m))
                if (is_source(hf__json_key(m)) &&
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

void hfd_persistent_volume_validate(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char *const policies[] = {"Delete", "Recycle", "Retain", NULL},
                                 *const modes[] = {"Block", "Filesystem", NULL};
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");
        HF__CLEANUP(hf__json_cleanup) struct hf__json *copy = NULL;
        const char *mode = hfd_text_of(spec, "volumeMode");

        if (hfd_spec_is_kept(&hfd_persistent_volume_schema, object, old, causes))
                return;
        hfd_access_modes_validate(spec, "spec.accessModes", "", causes);
        validate_capacity(spec, causes);
        hfd_require_one_of(spec, "spec", "persistentVolumeReclaimPolicy", policies, causes);
        validate_source(spec, causes);
        if (*hfd_text_of(spec, "storageClassName"))
                hfd_subdomain_validate(hfd_text_of(spec, "storageClassName"),
                                       "spec.storageClassName", causes);
        hfd_require_one_of(spec, "spec", "volumeMode", modes, causes);
        if (!old)
                return;
        copy = without_added_secret(spec, was, causes);
        const struct hf__json *fixed = copy ? copy : spec;
        if (changes_source(fixed, was, causes) || changes_source(was, fixed, causes))
                hfd_cause_forbidden(causes, "spec.persistentvolumesource",
                                    "spec.persistentvolumesource is immutable after creation");
        if (strcmp(mode, hfd_text_of(was, "volumeMode")) != 0)
                hfd_cause_invalid_text(causes, "volumeMode", mode, "field is immutable");
}
