/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and the defaults of FlowSchemas. A FlowSchema assigns requests to a priority level.
 * server/flow/ matches requests with them.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/api/flowcontrol/v1 and never change. The
 * rows of a table are sorted by name (strcmp), because look-ups bisect it.
 */
#include "base/json.h"
#include "server/resources/strategies/flow/flow_fields.h"
#include "server/resources/strategies/flow/flow_objects.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

/* ---- subjects ---- */

static const struct hfd_schema_field user_fields[] = {
        {"name", &hfd_schema_text, "The name of the user; * are all users.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema user_schema = {HFD_STRUCT(HFD_FLOW "UserSubject", user_fields),
                                              .description = "Names a user."};

static const struct hfd_schema_field group_fields[] = {
        {"name", &hfd_schema_text, "The name of the group; * are all groups.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema group_schema = {HFD_STRUCT(HFD_FLOW "GroupSubject", group_fields),
                                               .description = "Names a group of users."};

static const struct hfd_schema_field account_fields[] = {
        {"name", &hfd_schema_text, "The name of the account; * are all of the namespace.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, "The namespace of the account.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema account_schema = {HFD_STRUCT(HFD_FLOW "ServiceAccountSubject",
                                                            account_fields),
                                                 .description = "Names a service account."};

static const struct hfd_schema_field subject_fields[] = {
        {"group", &group_schema, "The group, if the kind is Group.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"kind", HFD_NAMED_TEXT(HFD_FLOW "SubjectKind"), "User, Group or ServiceAccount.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"serviceAccount", &account_schema, "The account, if the kind is ServiceAccount.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"user", &user_schema, "The user, if the kind is User.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema subject_schema = {HFD_STRUCT(HFD_FLOW "Subject", subject_fields),
                                                 .description = "Who sends the request."};

/* ---- rules ---- */

/* Go's tag of namespaces has no omitempty, so an empty list is shown. */
static const struct hfd_schema_field resource_rule_fields[] = {
        {"apiGroups", &hfd_schema_set_of_texts, "The groups of the resources; * are all.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"clusterScope", &hfd_schema_boolean,
         "Whether requests without a namespace match: for objects that have none, or for those of "
         "all namespaces.",
         .protobuf_tag = 4},
        {"namespaces", &hfd_schema_set_of_texts,
         "The namespaces of requests that have one; * are all.", .protobuf_tag = 5,
         .flags = HFD_FIELD_KEEPS_EMPTY},
        {"resources", &hfd_schema_set_of_texts,
         "Resources, as plural or plural/subresource; * are all.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"verbs", &hfd_schema_set_of_texts, "The verbs; * are all.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema resource_rule_schema = {HFD_STRUCT(HFD_FLOW "ResourcePolicyRule",
                                                                  resource_rule_fields),
                                                       .description =
                                                               "Matches requests for resources."};

static const struct hfd_schema_field path_rule_fields[] = {
        {"nonResourceURLs", &hfd_schema_set_of_texts,
         "Paths that are no resources. A * at the end, after a slash, stands for the rest; a * "
         "alone are all.",
         .protobuf_tag = 6, .flags = HFD_FIELD_REQUIRED},
        {"verbs", &hfd_schema_set_of_texts, "The verbs; * are all.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema path_rule_schema = {HFD_STRUCT(HFD_FLOW "NonResourcePolicyRule",
                                                              path_rule_fields),
                                                   .description =
                                                           "Matches requests for other paths."};

static const struct hfd_schema_field rule_fields[] = {
        {"nonResourceRules", HFD_LIST_OF(&path_rule_schema), "Which other paths match.",
         .protobuf_tag = 3},
        {"resourceRules", HFD_LIST_OF(&resource_rule_schema), "Which resources match.",
         .protobuf_tag = 2},
        {"subjects", HFD_LIST_OF(&subject_schema), "Whose requests match.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema rule_schema =
        {HFD_STRUCT(HFD_FLOW "PolicyRulesWithSubjects", rule_fields),
         .description = "Matches a request if one of the subjects sends it, and one of the rules "
                        "matches what it asks for."};

/* ---- the spec ---- */

static const struct hfd_schema_field distinguisher_fields[] = {
        {"type", HFD_NAMED_TEXT(HFD_FLOW "FlowDistinguisherMethodType"), "ByUser or ByNamespace.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema distinguisher_schema =
        {HFD_STRUCT(HFD_FLOW "FlowDistinguisherMethod", distinguisher_fields),
         .description = "What divides the requests of a schema into flows."};

static const struct hfd_schema_field reference_fields[] = {
        {"name", &hfd_schema_text, "The name of the level.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema reference_schema = {HFD_STRUCT(HFD_FLOW
                                                              "PriorityLevelConfigurationReference",
                                                              reference_fields),
                                                   .description = "Names a priority level."};

static const struct hfd_schema_field spec_fields[] = {
        {"distinguisherMethod", &distinguisher_schema,
         "What divides the matching requests into flows. Absent: they are one flow.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"matchingPrecedence", &hfd_schema_int32,
         "Of the schemas that match a request, the one with the lowest number counts: 1 to 10000, "
         "1000 if it is absent.",
         .protobuf_tag = 2},
        {"priorityLevelConfiguration", &reference_schema, "The level of the matching requests.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"rules", HFD_LIST_OF(&rule_schema), "The schema matches if one of the rules matches.",
         .protobuf_tag = 4},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(HFD_FLOW "FlowSchemaSpec", spec_fields),
                                              .description =
                                                      "Which requests have which priority level."};

HFD_FLOW_STATUS("FlowSchema", "Whether the level exists: the condition Dangling.");

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "`metadata` is the standard object's metadata. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &spec_schema, "Which requests have which priority level.", .protobuf_tag = 2},
        {"status", &status_schema, "Whether the level exists.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_flow_schema_schema =
        {HFD_STRUCT(HFD_FLOW "FlowSchema", fields),
         .description = "FlowSchema assigns requests to a priority level."};

/* 0 counts as absent, because the field is no pointer in Kubernetes' Go type. */
int hfd_flow_schema_prepare(struct hf__json *object, const struct hf__json *old) {
        int64_t precedence = 0;

        (void)hf__json_i64(object, "spec.matchingPrecedence", &precedence);
        return precedence == 0 ? hf__json_set_i64(object, "spec.matchingPrecedence",
                                                  HFD_FLOW_PRECEDENCE_NONE)
                               : 0;
}
