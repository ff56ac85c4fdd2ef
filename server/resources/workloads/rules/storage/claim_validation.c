/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PersistentVolumeClaims, and of the claims in the templates of other kinds.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. One text is shorter: kube-apiserver appends the differences
 * between the old spec and the new one, and this server does not. An update that does not change
 * the spec is not checked (hfd_spec_is_kept).
 *
 * spec.dataSource and spec.dataSourceRef are not checked: nothing here fills a volume from them.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/quantity.h"
#include "server/schema/schema.h"

static const char *const storage[] = {"resources", "requests", "storage"};

/* The size that the claim asks for; NULL = none. */
static const struct hf__json *size_of(const struct hf__json *spec) {
        for (size_t i = 0; i < 3; i++)
                spec = hf__json_get(spec, storage[i]);
        return spec;
}

/* The value of a quantity; 0 if it is absent. Only in an old object, which another program may have
 * stored, can it be no quantity (schema/decode.h); then it counts as 0, too. */
static struct hfd_quantity amount_of(const struct hf__json *value) {
        struct hfd_quantity amount = {0};

        if (hf__json_is_string(value))
                (void)hfd_quantity_parse(hf__json_text(value), &amount);
        return amount;
}

/* ---- the spec ---- */

void hfd_access_modes_validate(const struct hf__json *spec, const char *field, const char *required,
                               struct hfd_causes *causes) {
        static const char *const modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                            "ReadWriteOncePod"};
        bool one_pod = false, others = false;

        if (!hf__json_first(hf__json_get(spec, "accessModes")))
                hfd_cause_required(causes, field, required);
        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "accessModes")); m;
             m = hf__json_next(m)) {
                const char *mode = hf__json_is_string(m) ? hf__json_text(m) : "";
                size_t i = 0;
                while (i < 4 && strcmp(modes[i], mode) != 0)
                        i++;
                if (i == 4)
                        hfd_cause_unsupported_text(causes, field, mode,
                                                   "\"ReadOnlyMany\", \"ReadWriteMany\", "
                                                   "\"ReadWriteOnce\", \"ReadWriteOncePod\"");
                one_pod = one_pod || i == 3;
                others = others || i < 3;
        }
        if (one_pod && others)
                hfd_cause_forbidden(causes, field,
                                    "may not use ReadWriteOncePod with other access modes");
}

/* field: the path for the cause, "...resources[storage]". Kubernetes leaves out `requests`. */
static void validate_size(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes) {
        const struct hf__json *size = size_of(spec);
        const struct hfd_quantity amount = amount_of(size);

        if (!size)
                hfd_cause_required(causes, field, "");
        else if (amount.negative || hfd_quantity_is_zero(&amount))
                hfd_cause_invalid_text(causes, field, hf__json_text(size),
                                       "must be greater than zero");
}

void hfd_claim_spec_validate(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes) {
        static const char *const names[] = {"storageClassName", "volumeAttributesClassName"};
        static const char *const modes[] = {"Block", "Filesystem", NULL};
        char path[HFD_FIELD_PATH_MAX];

        hfd_access_modes_validate(spec, hfd_field_path(path, field, "accessModes"),
                                  "at least 1 access mode is required", causes);
        if (hf__json_get(spec, "selector"))
                hfd_match_selector_validate(hf__json_get(spec, "selector"),
                                            hfd_field_path(path, field, "selector"), causes);
        validate_size(spec, hfd_field_path(path, field, "resources[storage]"), causes);
        for (size_t i = 0; i < 2; i++) {
                if (*hfd_text_of(spec, names[i]))
                        hfd_subdomain_validate(hfd_text_of(spec, names[i]),
                                               hfd_field_path(path, field, names[i]), causes);
                /* Between the two names, because the causes have Kubernetes' order. */
                if (i == 0 && hf__json_get(spec, "volumeMode"))
                        hfd_require_one_of(spec, field, "volumeMode", modes, causes);
        }
}

/* ---- an update ---- */

/*
 * Removes from a copy of the spec the members that an update may change, so that the rest can be
 * compared:
 *
 *  - is_placed false: the old spec names no volume yet, so a controller may set volumeName once;
 *  - has_class false: the old spec has no class yet, so it may be set once;
 *  - is_bound: a bound claim may ask for more, and for another VolumeAttributesClass.
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

static void validate_update(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");
        struct hf__json *rest = hf__json_dup(spec), *old_rest = hf__json_dup(was);
        bool is_bound = hf__json_has_text(object, "status.phase", "Bound"),
             is_placed = *hfd_text_of(was, "volumeName"),
             has_class = hf__json_get(was, "storageClassName");
        const struct hfd_quantity size = amount_of(size_of(spec)),
                                  old_size = amount_of(size_of(was)),
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
}

void hfd_claim_validate(const struct hf__json *object, const struct hf__json *old,
                        struct hfd_causes *causes) {
        if (hfd_spec_is_kept(&hfd_persistent_volume_claim_schema, object, old, causes))
                return;
        hfd_claim_spec_validate(hf__json_get(object, "spec"), "spec", causes);
        if (old)
                validate_update(object, old, causes);
}
