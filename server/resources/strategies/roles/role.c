/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas and the validation of Roles and ClusterRoles. server/rbac/ reads the rights that they
 * grant, and server/authorization/escalation.c checks that a user who writes one may grant them.
 *
 * Invariants: names, types and numbers in protobuf are those of k8s.io/api/rbac/v1; the rows of a
 * table are sorted by name, because look-ups bisect it. The texts of the causes and their order are
 * those of kube-apiserver.
 */
#include <stdio.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define RBAC "io.k8s.api.rbac.v1."

static const struct hfd_schema_field rule_fields[] = {
        {"apiGroups", &hfd_schema_list_of_texts,
         "API groups of the resources. \"\" is the core group, * are all.", .protobuf_tag = 2},
        {"nonResourceURLs", &hfd_schema_list_of_texts,
         "Paths that are no resources. A * at the end stands for the rest.", .protobuf_tag = 5},
        {"resourceNames", &hfd_schema_list_of_texts, "Names of objects. None: all objects.",
         .protobuf_tag = 4},
        {"resources", &hfd_schema_list_of_texts,
         "Resources, as plural or plural/subresource. * are all.", .protobuf_tag = 3},
        {"verbs", &hfd_schema_list_of_texts, "What may be done. * is everything.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema rule_schema = {HFD_STRUCT(RBAC "PolicyRule", rule_fields),
                                              .description =
                                                      "What may be done with which resources."};

static const struct hfd_schema_field role_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object's metadata."),
        {"rules", HFD_LIST_OF(&rule_schema), "What the role allows.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_role_schema = {HFD_STRUCT(RBAC "Role", role_fields),
                                           .description =
                                                   "Role is a set of rights in one namespace."};

static const struct hfd_schema_field aggregation_fields[] = {
        {"clusterRoleSelectors", HFD_LIST_OF(&hfd_schema_label_selector),
         "Selectors of the ClusterRoles whose rules this one gets.", .protobuf_tag = 1},
};
static const struct hfd_schema aggregation_schema =
        {HFD_STRUCT(RBAC "AggregationRule", aggregation_fields),
         .description = "How a ClusterRole is made from others."};

static const struct hfd_schema_field cluster_role_fields[] = {
        {"aggregationRule", &aggregation_schema, "If set, a controller writes the rules.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object's metadata."),
        {"rules", HFD_LIST_OF(&rule_schema), "What the role allows.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_cluster_role_schema =
        {HFD_STRUCT(RBAC "ClusterRole", cluster_role_fields),
         .description =
                 "ClusterRole is a set of rights that can be granted in one namespace or in all."};

/* A rule applies either to resources or to non-resource URLs. Only a ClusterRole may have
 * non-resource URLs, because they are in no namespace. i: the index of the rule. */
static void validate_rule(const struct hf__json *rule, size_t i, bool namespaced,
                          struct hfd_causes *causes) {
        size_t n_groups = hf__json_count(hf__json_get(rule, "apiGroups")),
               n_resources = hf__json_count(hf__json_get(rule, "resources")),
               n_names = hf__json_count(hf__json_get(rule, "resourceNames"));
        const struct hf__json *urls = hf__json_get(rule, "nonResourceURLs");
        char field[64], value[300];

        (void)snprintf(field, sizeof field, "rules[%zu].verbs", i);
        if (hf__json_count(hf__json_get(rule, "verbs")) == 0)
                hfd_cause_required(causes, field, "verbs must contain at least one value");
        if (hf__json_count(urls) > 0) {
                hfd_quote_list(urls, value, sizeof value);
                (void)snprintf(field, sizeof field, "rules[%zu].nonResourceURLs", i);
                if (namespaced)
                        hfd_cause_invalid(causes, field, value,
                                          "namespaced rules cannot apply to non-resource URLs");
                if (n_groups > 0 || n_resources > 0 || n_names > 0)
                        hfd_cause_invalid(causes, field, value,
                                          "rules cannot apply to both regular resources and "
                                          "non-resource URLs");
                return; /* a rule for URLs needs neither groups nor resources */
        }
        (void)snprintf(field, sizeof field, "rules[%zu].apiGroups", i);
        if (n_groups == 0)
                hfd_cause_required(causes, field,
                                   "resource rules must supply at least one api group");
        (void)snprintf(field, sizeof field, "rules[%zu].resources", i);
        if (n_resources == 0)
                hfd_cause_required(causes, field,
                                   "resource rules must supply at least one resource");
}

static void validate_rules(const struct hf__json *object, bool namespaced,
                           struct hfd_causes *causes) {
        size_t i = 0;

        for (const struct hf__json *rule = hf__json_first(hf__json_get(object, "rules")); rule;
             rule = hf__json_next(rule))
                validate_rule(rule, i++, namespaced, causes);
}

void hfd_role_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes) {
        validate_rules(object, true, causes);
}

/* A selector with a mistake has a further cause, because kube-apiserver also makes a Go value of
 * it, which is null then. */
static void validate_selectors(const struct hf__json *selectors, struct hfd_causes *causes) {
        char field[64];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(selectors); m; m = hf__json_next(m)) {
                size_t n = causes->n;
                (void)snprintf(field, sizeof field, "aggregationRule.clusterRoleSelectors[%zu]",
                               i++);
                hfd_match_selector_validate(m, field, causes);
                if (causes->n > n)
                        hfd_cause_invalid(causes, field, "null", "invalid label selector.");
        }
}

/* Selectors that an update does not change are not checked: they may have been stored before this
 * rule existed. */
void hfd_cluster_role_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        const struct hf__json *aggregation = hf__json_get(object, "aggregationRule");

        validate_rules(object, false, causes);
        /* Without selectors, the aggregated role could never get a rule. */
        if (aggregation && hf__json_count(hf__json_get(aggregation, "clusterRoleSelectors")) == 0)
                hfd_cause_required(causes, "aggregationRule.clusterRoleSelectors",
                                   "at least one clusterRoleSelector required if aggregationRule "
                                   "is non-nil");
        if (!old || !hfd_causes_equal_member(causes, &hfd_cluster_role_schema, object, old,
                                             "aggregationRule"))
                validate_selectors(hf__json_get(aggregation, "clusterRoleSelectors"), causes);
}
