/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas and defaults of rules and matchConditions.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/api/admissionregistration/v1 and never
 * change. In its Go code a NamedRuleWithOperations embeds a RuleWithOperations, which embeds a
 * Rule; in protobuf each is an inner message, whose number is embedded_tag (HFD_EMBEDDED_IN). The
 * rows of a table are sorted by name (strcmp), because look-ups bisect it.
 */
#include "server/resources/strategies/admission/match_schema.h"

#include <errno.h>

#include "base/json.h"
#include "server/schema/common.h"

/* The fields of the Rule in a named rule: message 2 within message 2. */
#define IN_RULE HFD_EMBEDDED_IN(2, 2)

static const struct hfd_schema_field condition_fields[] = {
        {"expression", &hfd_schema_text, "An expression in CEL that must be true.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the condition.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_match_condition_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MatchCondition", condition_fields),
         .description = "An expression that a request must fulfil."};

static const struct hfd_schema_field rule_fields[] = {
        {"apiGroups", &hfd_schema_list_of_texts, "Groups of resources; * is all.",
         .protobuf_tag = 1, .embedded_tag = 2},
        {"apiVersions", &hfd_schema_list_of_texts, "Versions of resources; * is all.",
         .protobuf_tag = 2, .embedded_tag = 2},
        {"operations", HFD_LIST_OF(HFD_NAMED_TEXT(HFD_ADMISSION_V1 "OperationType")),
         "CREATE, UPDATE, DELETE, CONNECT or *.", .protobuf_tag = 1},
        {"resources", &hfd_schema_list_of_texts,
         "Resources in the plural, and their subresources: pods, pods/status, */scale.",
         .protobuf_tag = 3, .embedded_tag = 2},
        {"scope", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ScopeType"),
         "Cluster, Namespaced or *, which is the default.", .protobuf_tag = 4, .embedded_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_rule_with_operations_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "RuleWithOperations", rule_fields), .embedded = "Rule",
         .description = "Requests, by operation and resource."};

static const struct hfd_schema_field named_rule_fields[] = {
        {"apiGroups", &hfd_schema_list_of_texts, "Groups of resources; * is all.",
         .protobuf_tag = 1, .embedded_tag = IN_RULE},
        {"apiVersions", &hfd_schema_list_of_texts, "Versions of resources; * is all.",
         .protobuf_tag = 2, .embedded_tag = IN_RULE},
        {"operations", HFD_LIST_OF(HFD_NAMED_TEXT(HFD_ADMISSION_V1 "OperationType")),
         "CREATE, UPDATE, DELETE, CONNECT or *.", .protobuf_tag = 1, .embedded_tag = 2},
        {"resourceNames", &hfd_schema_list_of_texts, "Names of objects; none is all.",
         .protobuf_tag = 1},
        {"resources", &hfd_schema_list_of_texts,
         "Resources in the plural, and their subresources: pods, pods/status, */scale.",
         .protobuf_tag = 3, .embedded_tag = IN_RULE},
        {"scope", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ScopeType"),
         "Cluster, Namespaced or *, which is the default.", .protobuf_tag = 4,
         .embedded_tag = IN_RULE, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema named_rule_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "NamedRuleWithOperations", named_rule_fields),
         .embedded = "RuleWithOperations.Rule", .atomic = true,
         .description = "Requests, by operation, resource and name."};

static const struct hfd_schema_field resources_fields[] = {
        {"excludeResourceRules", HFD_LIST_OF(&named_rule_schema),
         "Requests that do not match, whatever the other rules say.", .protobuf_tag = 4},
        {"matchPolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "MatchPolicyType"),
         "Exact, or Equivalent: rules also match other versions of their resources.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"namespaceSelector", &hfd_schema_label_selector,
         "Selects by the labels of the namespace of the object.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"objectSelector", &hfd_schema_label_selector, "Selects by the labels of the object.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"resourceRules", HFD_LIST_OF(&named_rule_schema), "Requests of which one must match.",
         .protobuf_tag = 3},
};
const struct hfd_schema hfd_match_resources_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MatchResources", resources_fields), .atomic = true,
         .description = "The requests to which a policy applies."};

int hfd_match_rules_prepare(struct hf__json *rules) {
        int r = 0;

        for (struct hf__json *rule = hf__json_first(rules); rule && r == 0;
             rule = hf__json_next(rule))
                if (!hf__json_get(rule, "scope"))
                        r = hf__json_set_string(rule, "scope", "*");
        return r;
}

int hfd_match_resources_prepare(struct hf__json *resources) {
        static const char *const selectors[] = {"namespaceSelector", "objectSelector"};

        if (!hf__json_is_object(resources))
                return 0;
        if (!hf__json_get(resources, "matchPolicy") &&
            hf__json_set_string(resources, "matchPolicy", "Equivalent") != 0)
                return -ENOMEM;
        for (size_t i = 0; i < 2; i++)
                if (!hf__json_get(resources, selectors[i]) &&
                    hf__json_set(resources, selectors[i], hf__json_object()) != 0)
                        return -ENOMEM;
        int r = hfd_match_rules_prepare(hf__json_get(resources, "resourceRules"));
        return r == 0 ? hfd_match_rules_prepare(hf__json_get(resources, "excludeResourceRules"))
                      : r;
}
