/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of the variables request and namespaceObject, and of JSONPatch, with the fields that
 * Kubernetes declares. The checker of CEL refuses an expression that uses another field.
 *
 * Invariants: the fields of each type are sorted by name, because look-ups bisect them. The weight
 * of a type is 1 plus the weights of its parameters (cel/values/type.h). Fields do not count.
 */
#include "server/resources/expressions/request_types.h"

#include "cel/values/type.h"

#define COUNT(array)     (sizeof(array) / sizeof(array)[0])
#define SIMPLE(name, of) static const struct hf__cel_type name = {.kind = (of), .weight = 1}
#define OBJECT(c_name, cel_name, members)                                                          \
        static const struct hf__cel_type c_name = {.kind = HF__CEL_OBJECT,                         \
                                                   .weight = 1,                                    \
                                                   .name = (cel_name),                             \
                                                   .fields = (members),                            \
                                                   .n_fields = COUNT(members),                     \
                                                   .sorted = true}

SIMPLE(any, HF__CEL_DYN);
SIMPLE(boolean, HF__CEL_BOOL);
SIMPLE(integer, HF__CEL_INT);
SIMPLE(string, HF__CEL_STRING);
SIMPLE(timestamp, HF__CEL_TIMESTAMP);
static const struct hf__cel_type strings = {.kind = HF__CEL_LIST,
                                            .weight = 2,
                                            .n_params = 1,
                                            .params = {&string}};
static const struct hf__cel_type string_map = {.kind = HF__CEL_MAP,
                                               .weight = 3,
                                               .n_params = 2,
                                               .params = {&string, &string}};
static const struct hf__cel_type strings_map = {.kind = HF__CEL_MAP,
                                                .weight = 4,
                                                .n_params = 2,
                                                .params = {&string, &strings}};

static const struct hf__cel_field kind_fields[] = {
        {"group", &string},
        {"kind", &string},
        {"version", &string},
};
OBJECT(kind_type, "kubernetes.GroupVersionKind", kind_fields);

static const struct hf__cel_field resource_fields[] = {
        {"group", &string},
        {"resource", &string},
        {"version", &string},
};
OBJECT(resource_type, "kubernetes.GroupVersionResource", resource_fields);

/* The user who sends the request, after impersonation. */
static const struct hf__cel_field user_fields[] = {
        {"extra", &strings_map},
        {"groups", &strings},
        {"uid", &string},
        {"username", &string},
};
OBJECT(user_type, "kubernetes.UserInfo", user_fields);

/* kind and resource are those that the rules of the policy matched. requestKind and requestResource
 * are those of the request itself, which may be of another version of the same objects. object and
 * oldObject are no fields here, but variables of their own. The type of options depends on the
 * operation: CreateOptions and so on. */
static const struct hf__cel_field request_fields[] = {
        {"dryRun", &boolean},
        {"kind", &kind_type},
        {"name", &string},
        {"namespace", &string},
        {"operation", &string},
        {"options", &any},
        {"requestKind", &kind_type},
        {"requestResource", &resource_type},
        {"requestSubResource", &string},
        {"resource", &resource_type},
        {"subResource", &string},
        {"userInfo", &user_type},
};
OBJECT(request_type, "kubernetes.AdmissionRequest", request_fields);

static const struct hf__cel_field condition_fields[] = {
        {"lastTransitionTime", &timestamp},
        {"message", &string},
        {"reason", &string},
        {"status", &string},
        {"type", &string},
};
OBJECT(condition_type, "kubernetes.NamespaceCondition", condition_fields);
static const struct hf__cel_type conditions = {.kind = HF__CEL_LIST,
                                               .weight = 2,
                                               .n_params = 1,
                                               .params = {&condition_type}};

static const struct hf__cel_field spec_fields[] = {{"finalizers", &strings}};
OBJECT(spec_type, "kubernetes.NamespaceSpec", spec_fields);
static const struct hf__cel_field status_fields[] = {{"conditions", &conditions},
                                                     {"phase", &string}};
OBJECT(status_type, "kubernetes.NamespaceStatus", status_fields);

/* "UID" has capitals because Kubernetes declares it so. ownerReferences and managedFields are not
 * declared. */
static const struct hf__cel_field metadata_fields[] = {
        {"UID", &string},
        {"annotations", &string_map},
        {"creationTimestamp", &timestamp},
        {"deletionGracePeriodSeconds", &integer},
        {"deletionTimestamp", &timestamp},
        {"finalizers", &strings},
        {"generateName", &string},
        {"generation", &integer},
        {"labels", &string_map},
        {"name", &string},
        {"namespace", &string},
        {"resourceVersion", &string},
};
OBJECT(metadata_type, "kubernetes.NamespaceMetadata", metadata_fields);

static const struct hf__cel_field namespace_fields[] = {
        {"metadata", &metadata_type},
        {"spec", &spec_type},
        {"status", &status_type},
};
OBJECT(namespace_type, "kubernetes.Namespace", namespace_fields);

/* One operation of RFC 6902. The value may have any type, because it becomes a part of the
 * object. */
static const struct hf__cel_field json_patch_fields[] = {
        {"from", &string},
        {"op", &string},
        {"path", &string},
        {"value", &any},
};
OBJECT(json_patch_type, "JSONPatch", json_patch_fields);

const struct hf__cel_type *hfd_admission_request_type(void) { return &request_type; }

const struct hf__cel_type *hfd_namespace_type(void) { return &namespace_type; }

const struct hf__cel_type *const *hfd_patch_types(size_t *ret_n) {
        static const struct hf__cel_type *const types[] = {&json_patch_type};

        *ret_n = COUNT(types);
        return types;
}
