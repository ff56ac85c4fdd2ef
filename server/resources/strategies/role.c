/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles and ClusterRoles. They are validated as in Kubernetes, stored and served, but they grant no
 * rights in this server: server/auth/ does not read them.
 */
#include <stdio.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

/* Checks the types of the rules. Every member of a PolicyRule is a list of strings. */
static bool decode_rules(struct hf__json *object, const char *kind, char *reason,
                         size_t max_reason) {
        static const char *const lists[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                            "nonResourceURLs"};

        if (!hfd_part_is_array(object, "rules", true, kind, reason, max_reason))
                return false;
        for (struct hf__json *rule = hf__json_first(hf__json_get(object, "rules")); rule;
             rule = hf__json_next(rule))
                for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                        if (!hfd_part_is_array(rule, lists[i], false, "PolicyRule", reason,
                                               max_reason))
                                return false;
        return true;
}

bool hfd_role_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return decode_rules(object, "Role", reason, max_reason);
}

bool hfd_cluster_role_decode(struct hf__json *object, char *reason, size_t max_reason) {
        if (!decode_rules(object, "ClusterRole", reason, max_reason) ||
            !hfd_part_is_object(object, "aggregationRule", "ClusterRole", reason, max_reason))
                return false;
        return hfd_part_is_array(hf__json_get(object, "aggregationRule"), "clusterRoleSelectors",
                                 true, "AggregationRule", reason, max_reason);
}

/* A rule applies either to resources or to non-resource URLs. Only a ClusterRole may have the
 * latter. */
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

void hfd_cluster_role_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        const struct hf__json *aggregation = hf__json_get(object, "aggregationRule");

        validate_rules(object, false, causes);
        /* Without selectors, the aggregated role could never get a rule. */
        if (aggregation && hf__json_count(hf__json_get(aggregation, "clusterRoleSelectors")) == 0)
                hfd_cause_required(causes, "aggregationRule.clusterRoleSelectors",
                                   "at least one clusterRoleSelector required if aggregationRule "
                                   "is non-nil");
}
