/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the spec of a claim: of a PersistentVolumeClaim, of a template in a volume of a pod,
 * and of one in a StatefulSet.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/resource_names.h"
#include "server/schema/values/quantity.h"

const struct hf__json *hfd_claim_size(const struct hf__json *spec) {
        return hf__json_get(hf__json_get(hf__json_get(spec, "resources"), "requests"), "storage");
}

/* ---- access modes ---- */

/* required: the text of the cause if there is no mode. */
static void require_modes(const struct hf__json *spec, const char *field, const char *required,
                          struct hfd_causes *causes) {
        if (!hf__json_first(hf__json_get(spec, "accessModes")))
                hfd_cause_required(causes, field, required);
}

static void validate_modes(const struct hf__json *spec, const char *field,
                           struct hfd_causes *causes) {
        static const char *const modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                            "ReadWriteOncePod"};
        bool one_pod = false, others = false;

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

void hfd_access_modes_validate(const struct hf__json *spec, const char *field,
                               struct hfd_causes *causes) {
        require_modes(spec, field, "", causes);
        validate_modes(spec, field, causes);
}

/* ---- the size ---- */

/* field: the path for the cause, "...resources[storage]". Kubernetes leaves out `requests`. */
static void validate_size(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes) {
        const struct hf__json *size = hfd_claim_size(spec);
        const struct hfd_quantity amount = hfd_quantity_of_json(size);

        if (!size)
                hfd_cause_required(causes, field, "");
        else if (amount.negative || hfd_quantity_is_zero(&amount))
                hfd_cause_invalid_text(causes, field, hf__json_text(size),
                                       "must be greater than zero");
}

/* ---- where the data come from ---- */

/* An object of any group, but of the core group only a claim. */
static void validate_data_source(const struct hf__json *source, const char *field,
                                 struct hfd_causes *causes) {
        const char *group = hfd_text_of(source, "apiGroup"), *kind = hfd_text_of(source, "kind");
        char path[HFD_FIELD_PATH_MAX];

        if (!source)
                return;
        (void)hfd_require_text(source, field, "name", causes);
        (void)hfd_require_text(source, field, "kind", causes);
        if (!*group && strcmp(kind, "PersistentVolumeClaim") != 0)
                hfd_cause_invalid_text(causes, field, kind,
                                       "must be 'PersistentVolumeClaim' when referencing the "
                                       "default apiGroup");
        if (*group)
                hfd_subdomain_validate(group, hfd_field_path(path, field, "apiGroup"), causes);
        if (*hfd_text_of(source, "namespace"))
                hfd_dns_label_validate(hfd_text_of(source, "namespace"),
                                       hfd_field_path(path, field, "namespace"), causes);
}

/* A group that is absent differs from one that is "", as in Kubernetes. */
static bool are_equal(const struct hf__json *source, const struct hf__json *reference) {
        static const char *const members[] = {"apiGroup", "kind", "name"};

        for (size_t i = 0; i < 3; i++)
                if (strcmp(hfd_text_of(source, members[i]), hfd_text_of(reference, members[i])) !=
                    0)
                        return false;
        return !hf__json_get(source, "apiGroup") == !hf__json_get(reference, "apiGroup");
}

/* dataSource is the older form of dataSourceRef, and knows no namespace. As in Kubernetes, a cause
 * about both shows "{}" as the value. */
static void validate_data_sources(const struct hf__json *spec, const char *field,
                                  struct hfd_causes *causes) {
        const struct hf__json *source = hf__json_get(spec, "dataSource"),
                              *reference = hf__json_get(spec, "dataSourceRef");
        bool is_elsewhere = *hfd_text_of(reference, "namespace");
        char path[HFD_FIELD_PATH_MAX];

        validate_data_source(source, hfd_field_path(path, field, "dataSource"), causes);
        validate_data_source(reference, hfd_field_path(path, field, "dataSourceRef"), causes);
        if (source && is_elsewhere)
                hfd_cause_invalid(causes, field, "{}",
                                  "may not be specified when dataSourceRef.namespace is specified");
        else if (source && reference && !are_equal(source, reference))
                hfd_cause_invalid(causes, field, "{}", "must match dataSourceRef");
}

/* ---- the spec ---- */

/* Whether an update leaves the member as it is. Then the member is not checked (dataSource and
 * dataSourceRef: if both stay): most members are immutable, so a mistake that is older than its
 * rule cannot be mended, and must not stop the update that binds the claim. old: NULL = none. */
static bool keeps(const struct hf__json *spec, const struct hf__json *old, const char *member,
                  struct hfd_causes *causes) {
        return old && hfd_causes_equal_member(causes, &hfd_persistent_volume_claim_spec_schema,
                                              spec, old, member);
}

/* Names of classes, which may be absent. */
static void validate_class_name(const struct hf__json *spec, const struct hf__json *old,
                                const char *field, const char *member, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (*hfd_text_of(spec, member) && !keeps(spec, old, member, causes))
                hfd_subdomain_validate(hfd_text_of(spec, member),
                                       hfd_field_path(path, field, member), causes);
}

void hfd_claim_spec_validate(const struct hf__json *spec, const struct hf__json *old,
                             const char *field, struct hfd_causes *causes) {
        static const char *const modes[] = {"Block", "Filesystem", NULL};
        bool has_new_modes = !keeps(spec, old, "accessModes", causes);
        char of_modes[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of_modes, field, "accessModes");
        if (has_new_modes)
                require_modes(spec, of_modes, "at least 1 access mode is required", causes);
        if (hf__json_get(spec, "selector") && !keeps(spec, old, "selector", causes))
                hfd_match_selector_validate(hf__json_get(spec, "selector"),
                                            hfd_field_path(path, field, "selector"), causes);
        if (has_new_modes)
                validate_modes(spec, of_modes, causes);
        if (!keeps(spec, old, "resources", causes))
                validate_size(spec, hfd_field_path(path, field, "resources[storage]"), causes);
        validate_class_name(spec, old, field, "storageClassName", causes);
        if (hf__json_get(spec, "volumeMode") && !keeps(spec, old, "volumeMode", causes))
                hfd_refuse_others(hfd_text_of(spec, "volumeMode"),
                                  hfd_field_path(path, field, "volumeMode"), modes, causes);
        if (!keeps(spec, old, "dataSource", causes) || !keeps(spec, old, "dataSourceRef", causes))
                validate_data_sources(spec, field, causes);
        validate_class_name(spec, old, field, "volumeAttributesClassName", causes);
}
