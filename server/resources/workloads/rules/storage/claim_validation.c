/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PersistentVolumeClaims: what an update may change. The rules of the spec alone are
 * in strategies/pod/rules/volumes/claim_spec.c, because pods have templates of claims.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. One text is shorter: kube-apiserver appends the differences
 * between the old spec and the new one, and this server does not. An update that does not change
 * the spec is not checked (hfd_spec_is_kept).
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"
#include "server/schema/values/quantity.h"

/* The value of a quantity; 0 if it is absent. Only in an old object, which another program may have
 * stored, can it be no quantity (schema/decode.h); then it counts as 0, too. */
static struct hfd_quantity amount_of(const struct hf__json *value) {
        struct hfd_quantity amount = {0};

        if (hf__json_is_string(value))
                (void)hfd_quantity_parse(hf__json_text(value), &amount);
        return amount;
}

/* ---- an update ---- */

/*
 * Removes from a copy of the spec the members that an update may change, so that the rest can be
 * compared:
 *
 *  - is_placed false: the old spec names no volume yet, so a controller may set volumeName once;
 *  - has_class false: the old spec has no class yet, so it may be set once;
 *  - is_bound: a bound claim may ask for another size, and for another VolumeAttributesClass.
 */
static void drop_mutable(struct hf__json *spec, bool is_bound, bool is_placed, bool has_class) {
        if (!is_placed)
                hf__json_drop(spec, "volumeName");
        if (!has_class)
                hf__json_drop(spec, "storageClassName");
        if (!is_bound)
                return;
        hf__json_remove(spec, "resources.requests.storage");
        hf__json_drop(spec, "volumeAttributesClassName");
}

/* A volume that has got the attributes of a class keeps attributes of some class. */
static void refuse_dropped_class(const struct hf__json *spec, const struct hf__json *was,
                                 const struct hf__json *old_status, struct hfd_causes *causes) {
        static const char name[] = "volumeAttributesClassName",
                          field[] = "spec.volumeAttributesClassName";
        const struct hf__json *class = hf__json_get(spec, name);

        if (!hf__json_get(old_status, "currentVolumeAttributesClassName") ||
            hfd_causes_equal(causes, class, hf__json_get(was, name)))
                return;
        if (!class)
                hfd_cause_forbidden(causes, field,
                                    "update to nil is forbidden when "
                                    "status.currentVolumeAttributesClassName is not nil");
        else if (!*hfd_text_of(spec, name))
                hfd_cause_forbidden(causes, field,
                                    "update to empty string is forbidden when "
                                    "status.currentVolumeAttributesClassName is not nil");
}

static void validate_update(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");
        struct hf__json *rest = hf__json_dup(spec), *old_rest = hf__json_dup(was);
        bool is_bound = hf__json_has_text(object, "status.phase", "Bound"),
             is_placed = *hfd_text_of(was, "volumeName"),
             has_class = hf__json_get(was, "storageClassName");
        const struct hfd_quantity size = amount_of(hfd_claim_size(spec)),
                                  old_size = amount_of(hfd_claim_size(was)),
                                  capacity =
                                          amount_of(hf__json_path(old, "status.capacity.storage"));

        drop_mutable(rest, is_bound, is_placed, has_class);
        drop_mutable(old_rest, is_bound, is_placed, has_class);
        if ((spec && !rest) || (was && !old_rest))
                hfd_causes_no_memory(causes);
        else if (rest && old_rest &&
                 !hfd_causes_equal_by(causes,
                                      hfd_schema_of_member(&hfd_persistent_volume_claim_schema,
                                                           "spec"),
                                      rest, old_rest))
                hfd_cause_forbidden(causes, "spec",
                                    "spec is immutable after creation except resources.requests "
                                    "and volumeAttributesClassName for bound claims");
        hf__json_free(rest);
        hf__json_free(old_rest);
        /* A request may be lowered, but only to one that is still above what the volume has. */
        if (hfd_quantity_compare(&size, &old_size) < 0 &&
            hfd_quantity_compare(&size, &capacity) <= 0)
                hfd_cause_forbidden(causes, "spec.resources.requests.storage",
                                    "field can not be less than status.capacity");
        if (!hfd_causes_equal(causes, hf__json_get(spec, "volumeMode"),
                              hf__json_get(was, "volumeMode")))
                hfd_cause_invalid_text(causes, "volumeMode", hfd_text_of(spec, "volumeMode"),
                                       "field is immutable");
        refuse_dropped_class(spec, was, hf__json_get(old, "status"), causes);
}

void hfd_claim_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        if (hfd_spec_is_kept(&hfd_persistent_volume_claim_schema, object, old, causes))
                return;
        hfd_claim_spec_validate(hf__json_get(object, "spec"), hf__json_get(old, "spec"), "spec",
                                causes);
        if (old)
                validate_update(object, old, causes);
}
