/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the rules of a webhook or a policy, and finds the rule that names a request. As in
 * Kubernetes, a group, version, resource or subresource matches "*" or its name.
 *
 * Invariant: hfd_rules_may_match is true for each request that hfd_rules_match finds a rule for. A
 * request for which it is false passes without a look at the webhook or the policy.
 */
#include "server/admission/matching/rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/rows/resource_table.h"

/* ---- compiling ---- */

static unsigned operation_of(const char *text) {
        if (strcmp(text, "*") == 0)
                return HFD_ADMIT_CREATE | HFD_ADMIT_UPDATE | HFD_ADMIT_DELETE | HFD_ADMIT_CONNECT;
        if (strcmp(text, "CREATE") == 0)
                return HFD_ADMIT_CREATE;
        if (strcmp(text, "UPDATE") == 0)
                return HFD_ADMIT_UPDATE;
        if (strcmp(text, "DELETE") == 0)
                return HFD_ADMIT_DELETE;
        return strcmp(text, "CONNECT") == 0 ? HFD_ADMIT_CONNECT : 0;
}

static struct hfd_rule compile_rule(const struct hf__json *json) {
        const struct hf__json *names = hf__json_get(json, "resourceNames");
        struct hfd_rule rule = {.groups = hf__json_get(json, "apiGroups"),
                                .versions = hf__json_get(json, "apiVersions"),
                                .resources = hf__json_get(json, "resources"),
                                .names = hf__json_first(names) ? names : NULL};

        for (const struct hf__json *m = hf__json_first(hf__json_get(json, "operations")); m;
             m = hf__json_next(m))
                if (hf__json_is_string(m))
                        rule.operations |= operation_of(hf__json_text(m));
        if (hf__json_has_text(json, "scope", "Cluster"))
                rule.scope = HFD_RULE_CLUSTER;
        else if (hf__json_has_text(json, "scope", "Namespaced"))
                rule.scope = HFD_RULE_NAMESPACED;
        return rule;
}

int hfd_rules_new(const struct hf__json *json, struct hfd_rules **ret_rules) {
        size_t n = hf__json_count(json);
        struct hfd_rules *rules = malloc(sizeof *rules + n * sizeof rules->items[0]);

        if (!rules)
                return -ENOMEM;
        rules->n = 0;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                rules->items[rules->n++] = compile_rule(m);
        *ret_rules = rules;
        return 0;
}

/* ---- matching ---- */

static bool is_among(const struct hf__json *list, const char *text) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *item = hf__json_is_string(m) ? hf__json_text(m) : "";
                if (strcmp(item, "*") == 0 || strcmp(item, text) == 0)
                        return true;
        }
        return false;
}

/* Items are "pods", "pods/status", or either of them with a star for the resource, the subresource
 * or both. An item without a slash names no subresource. */
static bool names_resource(const struct hf__json *list, const char *plural,
                           const char *subresource) {
        size_t n_plural = strlen(plural);

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *item = hf__json_is_string(m) ? hf__json_text(m) : "";
                const char *slash = strchr(item, '/'), *sub = slash ? slash + 1 : "";
                size_t n = slash ? (size_t)(slash - item) : strlen(item);
                bool resource =
                        (n == 1 && *item == '*') || (n == n_plural && memcmp(item, plural, n) == 0);
                if (resource && (strcmp(sub, "*") == 0 || strcmp(sub, subresource) == 0))
                        return true;
        }
        return false;
}

/* A Namespace is cluster-scoped, though its requests have its name as their namespace. */
static bool has_scope(const struct hfd_rule *rule, const struct hfd_admission_attributes *of) {
        bool namespaced = of->resource->namespaced;

        if (rule->scope == HFD_RULE_ALL_SCOPES)
                return true;
        return namespaced == (rule->scope == HFD_RULE_NAMESPACED);
}

static bool has_name(const struct hfd_rule *rule, const char *name) {
        return !rule->names || hf__json_has_element(rule->names, name);
}

bool hfd_rule_matches(const struct hfd_rule *rule, const struct hfd_admission_attributes *of,
                      const struct hfd_resource *as) {
        assert(of->operation != 0 && as);
        return rule->operations & (unsigned)of->operation && has_scope(rule, of) &&
               is_among(rule->groups, as->group) && is_among(rule->versions, as->version) &&
               names_resource(rule->resources, as->plural, of->subresource) &&
               has_name(rule, of->name);
}

/* ---- other versions ---- */

/* The i-th row that shows the same stored objects, `row` itself included; NULL = there are no more.
 * A custom kind has a row for each version that is served, and for some that are not
 * (custom_kind.h). */
static const struct hfd_resource *equivalent_row(const struct hfd_resource *row, size_t i) {
        if (row->custom) {
                const struct hfd_custom_kind *kind = row->custom->kind;
                return i < kind->n_versions ? &kind->versions[i].row : NULL;
        }
        const struct hfd_resource *stored = hfd_resource_stored(row);
        for (size_t at = 0; at < hfd_resources_count(); at++)
                if (hfd_resource_stored(hfd_resource_at(at)) == stored && i-- == 0)
                        return hfd_resource_at(at);
        return NULL;
}

const struct hfd_resource *hfd_rules_match(const struct hfd_rules *rules,
                                           const struct hfd_admission_attributes *of,
                                           bool equivalent) {
        assert(of->resource);
        for (size_t i = 0; i < rules->n; i++)
                if (hfd_rule_matches(&rules->items[i], of, of->resource))
                        return of->resource;
        for (size_t i = 0; equivalent && i < rules->n; i++) {
                const struct hfd_resource *as;
                for (size_t k = 0; (as = equivalent_row(of->resource, k)); k++)
                        if (as != of->resource && hfd_rule_matches(&rules->items[i], of, as))
                                return as;
        }
        return NULL;
}

bool hfd_rules_may_match(const struct hfd_rules *rules, const struct hfd_admission_attributes *of,
                         bool equivalent) {
        for (size_t i = 0; i < rules->n; i++) {
                const struct hfd_rule *rule = &rules->items[i];
                if (!(rule->operations & (unsigned)of->operation))
                        continue;
                /* If `equivalent` is true, the rule may name another version of the resource, which
                 * may be in another group, but has the same plural. */
                if (names_resource(rule->resources, of->resource->plural, of->subresource) &&
                    (equivalent || is_among(rule->groups, of->resource->group)))
                        return true;
        }
        return false;
}
