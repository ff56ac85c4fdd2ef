/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the rules of an aggregated ClusterRole from the roles that it selects.
 *
 * As in Kubernetes, an empty selector matches every role, and a role never selects itself. A
 * malformed selector matches nothing.
 */
#include "server/controllers/roles/role_aggregation.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"

static bool is_text(const struct hf__json *json, const char *text) {
        const char *value = hf__json_text(json);

        return value && text && strcmp(value, text) == 0;
}

static bool expression_matches(const struct hf__json *expression, const struct hf__json *labels) {
        const struct hf__json *op = hf__json_get(expression, "operator"),
                              *values = hf__json_get(expression, "values");
        const char *key = hf__json_string(expression, "key");
        const char *value = key ? hf__json_text(hf__json_get(labels, key)) : NULL;

        if (is_text(op, "In"))
                return value && hf__json_has_element(values, value);
        if (is_text(op, "NotIn"))
                return !value || !hf__json_has_element(values, value);
        if (is_text(op, "Exists"))
                return value != NULL;
        return key && is_text(op, "DoesNotExist") && !value;
}

static bool selector_matches(const struct hf__json *selector, const struct hf__json *labels) {
        if (!hf__json_is_object(selector))
                return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchLabels")); m;
             m = hf__json_next(m))
                if (!is_text(hf__json_get(labels, hf__json_key(m)), hf__json_text(m)))
                        return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m))
                if (!expression_matches(m, labels))
                        return false;
        return true;
}

static bool has_rule(const struct hf__json *rules, const struct hf__json *rule) {
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                if (hf__json_equal(m, rule))
                        return true;
        return false;
}

static int add_rules(struct hf__json *rules, const struct hf__json *role) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(role, "rules")); m && r == 0;
             m = hf__json_next(m))
                if (!has_rule(rules, m))
                        r = hf__json_append(rules, hf__json_dup(m));
        return r;
}

int hfd_role_aggregation_rules(const struct hf__json *role, const struct hf__json *all,
                               struct hf__json **ret_rules) {
        const char *name = hf__json_string(role, "metadata.name");
        struct hf__json *rules = hf__json_array();
        int r = rules ? 0 : -ENOMEM;

        for (const struct hf__json *selector =
                     hf__json_first(hf__json_path(role, "aggregationRule.clusterRoleSelectors"));
             selector && r == 0; selector = hf__json_next(selector))
                for (const struct hf__json *m = hf__json_first(all); m && r == 0;
                     m = hf__json_next(m))
                        if (!is_text(hf__json_path(m, "metadata.name"), name) &&
                            selector_matches(selector, hf__json_path(m, "metadata.labels")))
                                r = add_rules(rules, m);
        if (r != 0)
                hf__json_free(rules);
        else
                *ret_rules = rules;
        return r;
}
