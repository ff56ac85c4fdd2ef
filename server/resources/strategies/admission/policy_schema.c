/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types, numbers and the ways in which apply merges are those of
 * k8s.io/api/admissionregistration/v1 and never change. The rows of a table are sorted by name
 * (strcmp), because look-ups bisect it.
 */
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const char *const by_name[] = {"name", NULL};
static const char *const by_type[] = {"type", NULL};

/* Atomic, like other references: a version of one manager with a kind of another one would name a
 * kind that neither of them means. */
static const struct hfd_schema_field param_kind_fields[] = {
        {"apiVersion", &hfd_schema_text, "The group and version of the objects.",
         .protobuf_tag = 1},
        {"kind", &hfd_schema_text, "The kind of the objects.", .protobuf_tag = 2},
};
static const struct hfd_schema param_kind_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ParamKind", param_kind_fields), .atomic = true,
         .description = "The kind of the objects that parametrise a policy."};

/* A variable is evaluated when an expression first uses it: at most once in each evaluation of the
 * policy. */
static const struct hfd_schema_field variable_fields[] = {
        {"expression", &hfd_schema_text, "An expression in CEL.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name, by which later expressions use it: variables.name.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema variable_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "Variable",
                                                             variable_fields),
                                                  .atomic = true,
                                                  .description =
                                                          "A value that several expressions use."};

/* The fields that are the same in both kinds of policies, except that failurePolicy has different
 * numbers in protobuf. */
#define CONDITIONS(tag)                                                                            \
        {                                                                                          \
                "matchConditions",                                                                 \
                        HFD_LIST_OF(&hfd_match_condition_schema, .list_type = HFD_LIST_MAP,        \
                                    .list_keys = by_name),                                         \
                        "Expressions that must all be true for a request to match.",               \
                        .merge_key = "name", .protobuf_tag = (tag), .flags = HFD_FIELD_MERGE       \
        }
#define FAILURE_POLICY(tag)                                                                        \
        {                                                                                          \
                "failurePolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "FailurePolicyType"),             \
                        "What happens to a request about which no decision is possible: Fail or "  \
                        "Ignore.",                                                                 \
                        .protobuf_tag = (tag), .flags = HFD_FIELD_POINTER                          \
        }
#define PARAM_KIND                                                                                 \
        {                                                                                          \
                "paramKind", &param_kind_schema, "The kind of params; absent: there are none.",    \
                        .protobuf_tag = 1, .flags = HFD_FIELD_POINTER                              \
        }
#define CONSTRAINTS                                                                                \
        {                                                                                          \
                "matchConstraints", &hfd_match_resources_schema,                                   \
                        "The requests to which the policy applies.", .protobuf_tag = 2,            \
                                                                     .flags = HFD_FIELD_POINTER    \
        }

/* ---- ValidatingAdmissionPolicy ---- */

/* The reason is a pointer, because an absent one stands for Invalid: the code of the response
 * follows from it. */
static const struct hfd_schema_field validation_fields[] = {
        {"expression", &hfd_schema_text, "An expression in CEL that must be true.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"message", &hfd_schema_text, "What the client is told otherwise.", .protobuf_tag = 2},
        {"messageExpression", &hfd_schema_text, "An expression in CEL that makes the message.",
         .protobuf_tag = 4},
        {"reason", HFD_NAMED_TEXT(HFD_META "StatusReason"),
         "The reason of the status: Invalid, Forbidden or RequestEntityTooLarge.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema validation_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "Validation",
                                                               validation_fields),
                                                    .description =
                                                            "What must be true of a request."};

/* The list of annotations is atomic. The keys are unique all the same: the rules see to that
 * (admission_policy.c). */
static const struct hfd_schema_field annotation_fields[] = {
        {"key", &hfd_schema_text, "The key, behind the name of the policy and a slash.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"valueExpression", &hfd_schema_text,
         "An expression in CEL that makes the value; null: there is none.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema annotation_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "AuditAnnotation", annotation_fields),
         .description = "An annotation of the event in the audit log."};

/* Variables and conditions have names, by which apply tells them apart. Validations have none, so
 * their list is atomic. */
static const struct hfd_schema_field validating_spec_fields[] = {
        {"auditAnnotations", HFD_LIST_OF(&annotation_schema),
         "Annotations of the event in the audit log.", .protobuf_tag = 5},
        FAILURE_POLICY(4),
        CONDITIONS(6),
        CONSTRAINTS,
        PARAM_KIND,
        {"validations", HFD_LIST_OF(&validation_schema), "What must be true of a request.",
         .protobuf_tag = 3},
        {"variables",
         HFD_LIST_OF(&variable_schema, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Values that expressions use; each may use those before it.", .merge_key = "name",
         .protobuf_tag = 7, .flags = HFD_FIELD_MERGE},
};
static const struct hfd_schema validating_spec_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingAdmissionPolicySpec", validating_spec_fields),
         .description = "What a policy demands of which requests."};

/* The fields of the status are for a controller, which checks the expressions against the types of
 * the kinds that match. Warnings do not keep the policy from being in force. */
static const struct hfd_schema_field warning_fields[] = {
        {"fieldRef", &hfd_schema_text, "The path of the expression.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"warning", &hfd_schema_text, "What is wrong, for which kinds.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema warning_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ExpressionWarning", warning_fields),
         .description = "An expression that does not fit the kinds that match."};
static const struct hfd_schema_field checking_fields[] = {
        {"expressionWarnings", HFD_LIST_OF(&warning_schema),
         "Expressions that do not fit the kinds that match.", .protobuf_tag = 1},
};
static const struct hfd_schema checking_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "TypeChecking",
                                                             checking_fields),
                                                  .description =
                                                          "The result of the check of types."};

static const struct hfd_schema_field status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&hfd_schema_condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "Aspects of the state of the policy.", .protobuf_tag = 3},
        {"observedGeneration", &hfd_schema_int64, "The generation that was checked.",
         .protobuf_tag = 1},
        {"typeChecking", &checking_schema, "The result of the check of types.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema status_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingAdmissionPolicyStatus", status_fields),
         .description = "What the server found out about a policy."};

static const struct hfd_schema_field validating_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        {"spec", &validating_spec_schema, "What the policy demands.", .protobuf_tag = 2},
        {"status", &status_schema, "What the server found out about it.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_validating_policy_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingAdmissionPolicy", validating_fields),
         .description = "A ValidatingAdmissionPolicy says what must be true of requests."};

/* ---- MutatingAdmissionPolicy ---- */

/* The two forms of a change have the same one field. They are two Go types, so they are two
 * definitions in OpenAPI. */
static const struct hfd_schema_field apply_fields[] = {
        {"expression", &hfd_schema_text, "An expression in CEL that makes an Object.",
         .protobuf_tag = 1},
};
static const struct hfd_schema apply_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ApplyConfiguration", apply_fields),
         .description = "A change that is merged as by server-side apply."};
static const struct hfd_schema_field patch_fields[] = {
        {"expression", &hfd_schema_text, "An expression in CEL that makes a list of JSONPatch.",
         .protobuf_tag = 1},
};
static const struct hfd_schema patch_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "JSONPatch",
                                                          patch_fields),
                                               .description = "A change as a JSON patch."};
static const struct hfd_schema_field mutation_fields[] = {
        {"applyConfiguration", &apply_schema, "With patchType ApplyConfiguration.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"jsonPatch", &patch_schema, "With patchType JSONPatch.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"patchType", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "PatchType"),
         "ApplyConfiguration or JSONPatch.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema mutation_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "Mutation",
                                                             mutation_fields),
                                                  .description = "A change of an object."};

/* Kubernetes' marker for the variables of this kind is +listType=atomic: their order is a part of
 * their meaning. The kind has no status, because no controller checks the types. */
static const struct hfd_schema_field mutating_spec_fields[] = {
        FAILURE_POLICY(5),
        CONDITIONS(6),
        CONSTRAINTS,
        {"mutations", HFD_LIST_OF(&mutation_schema), "The changes, in their order.",
         .protobuf_tag = 4},
        PARAM_KIND,
        {"reinvocationPolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ReinvocationPolicyType"),
         "Never, or IfNeeded: again after others have changed the object.", .protobuf_tag = 7},
        {"variables", HFD_LIST_OF(&variable_schema),
         "Values that expressions use; each may use those before it.", .protobuf_tag = 3},
};
static const struct hfd_schema mutating_spec_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingAdmissionPolicySpec", mutating_spec_fields),
         .description = "What a policy changes in which objects."};
static const struct hfd_schema_field mutating_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        {"spec", &mutating_spec_schema, "What the policy changes.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_mutating_policy_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingAdmissionPolicy", mutating_fields),
         .description = "A MutatingAdmissionPolicy changes objects before they are stored."};

/* ---- bindings ---- */

/* Atomic: name and selector exclude each other, so the two must not have different managers. */
static const struct hfd_schema_field param_ref_fields[] = {
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 1},
        {"namespace", &hfd_schema_text,
         "The namespace of the object; absent: that of the object of the request.",
         .protobuf_tag = 2},
        {"parameterNotFoundAction", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ParameterNotFoundActionType"),
         "What happens if there is no such object: Allow or Deny.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"selector", &hfd_schema_label_selector,
         "Selects objects by labels; the policy is evaluated for each.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema param_ref_schema = {HFD_STRUCT(HFD_ADMISSION_V1 "ParamRef",
                                                              param_ref_fields),
                                                   .atomic = true, .description = "Names params."};

#define MATCH_RESOURCES                                                                            \
        {                                                                                          \
                "matchResources", &hfd_match_resources_schema,                                     \
                        "Restricts the policy to some of the requests to which it applies.",       \
                        .protobuf_tag = 3, .flags = HFD_FIELD_POINTER                              \
        }
#define PARAM_REF                                                                                  \
        {                                                                                          \
                "paramRef", &param_ref_schema, "The params of the policy.",                        \
                        .protobuf_tag = 2, .flags = HFD_FIELD_POINTER                              \
        }
#define POLICY_NAME                                                                                \
        { "policyName", &hfd_schema_text, "The name of the policy.", .protobuf_tag = 1 }

/* The actions are a set, because each occurs once at most: Warn and Audit go together, Deny and
 * Warn do not. */
static const struct hfd_schema_field validating_binding_spec_fields[] = {
        MATCH_RESOURCES,
        PARAM_REF,
        POLICY_NAME,
        {"validationActions",
         HFD_LIST_OF(HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ValidationAction"),
                     .list_type = HFD_LIST_SET),
         "What happens if a validation fails: Deny, Warn, Audit.", .protobuf_tag = 4},
};
static const struct hfd_schema validating_binding_spec_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingAdmissionPolicyBindingSpec",
                    validating_binding_spec_fields),
         .description = "Which policy is in force for what, and how."};
static const struct hfd_schema_field validating_binding_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        {"spec", &validating_binding_spec_schema, "Which policy is in force for what.",
         .protobuf_tag = 2},
};
const struct hfd_schema hfd_validating_binding_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingAdmissionPolicyBinding", validating_binding_fields),
         .description = "A ValidatingAdmissionPolicyBinding brings a policy into force."};

/* This binding has no validationActions: they say what follows from a failed validation, and a
 * mutation has no such result. */
static const struct hfd_schema_field mutating_binding_spec_fields[] = {
        MATCH_RESOURCES,
        PARAM_REF,
        POLICY_NAME,
};
static const struct hfd_schema mutating_binding_spec_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingAdmissionPolicyBindingSpec",
                    mutating_binding_spec_fields),
         .description = "Which policy is in force for what."};
static const struct hfd_schema_field mutating_binding_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        {"spec", &mutating_binding_spec_schema, "Which policy is in force for what.",
         .protobuf_tag = 2},
};
const struct hfd_schema hfd_mutating_binding_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingAdmissionPolicyBinding", mutating_binding_fields),
         .description = "A MutatingAdmissionPolicyBinding brings a policy into force."};
