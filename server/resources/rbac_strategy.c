/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roles and their bindings (rbac.authorization.k8s.io/v1), stored and served: their forms are
 * checked as upstream does, what they grant is nobody's business here.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/meta.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

/* ---- roles ---- */

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
        struct hf__json *aggregation;

        if (!decode_rules(object, "ClusterRole", reason, max_reason) ||
            !hfd_part_is_object(object, "aggregationRule", "ClusterRole", reason, max_reason))
                return false;
        aggregation = hf__json_get(object, "aggregationRule");
        return hfd_part_is_array(aggregation, "clusterRoleSelectors", true, "AggregationRule",
                                 reason, max_reason);
}

static void validate_rule(const struct hf__json *rule, size_t i, bool namespaced,
                          struct hfd_causes *causes) {
        size_t n_groups = hf__json_count(hf__json_get(rule, "apiGroups")),
               n_resources = hf__json_count(hf__json_get(rule, "resources"));
        const struct hf__json *urls = hf__json_get(rule, "nonResourceURLs");
        char field[64], value[300];

        (void)snprintf(field, sizeof field, "rules[%zu].verbs", i);
        if (!hf__json_count(hf__json_get(rule, "verbs")))
                hfd_cause_required(causes, field, "verbs must contain at least one value");
        if (hf__json_count(urls)) {
                hfd_quote_list(urls, value, sizeof value);
                (void)snprintf(field, sizeof field, "rules[%zu].nonResourceURLs", i);
                if (namespaced)
                        hfd_cause_invalid(causes, field, value,
                                          "namespaced rules cannot apply to non-resource URLs");
                if (n_groups || n_resources || hf__json_count(hf__json_get(rule, "resourceNames")))
                        hfd_cause_invalid(causes, field, value,
                                          "rules cannot apply to both regular resources and "
                                          "non-resource URLs");
                return;
        }
        (void)snprintf(field, sizeof field, "rules[%zu].apiGroups", i);
        if (!n_groups)
                hfd_cause_required(causes, field,
                                   "resource rules must supply at least one api group");
        (void)snprintf(field, sizeof field, "rules[%zu].resources", i);
        if (!n_resources)
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
        if (aggregation && !hf__json_count(hf__json_get(aggregation, "clusterRoleSelectors")))
                hfd_cause_required(causes, "aggregationRule.clusterRoleSelectors",
                                   "at least one clusterRoleSelector required if aggregationRule "
                                   "is non-nil");
}

/* ---- bindings ---- */

static bool texts(const struct hf__json *object, const char *const *keys, size_t n,
                  const char *kind, char *reason, size_t max_reason) {
        for (size_t i = 0; i < n; i++) {
                const struct hf__json *value = hf__json_get(object, keys[i]);
                if (value && !hf__json_is_null(value) && !hf__json_is_string(value)) {
                        (void)snprintf(reason, max_reason,
                                       "json: cannot unmarshal into Go struct field %s.%s of type "
                                       "string",
                                       kind, keys[i]);
                        return false;
                }
        }
        return true;
}

bool hfd_binding_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char *const keys[] = {"apiGroup", "kind", "name", "namespace"};

        if (!hfd_part_is_object(object, "roleRef", "RoleBinding", reason, max_reason) ||
            !hfd_part_is_array(object, "subjects", true, "RoleBinding", reason, max_reason) ||
            !texts(hf__json_get(object, "roleRef"), keys, 3, "RoleRef", reason, max_reason))
                return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m))
                if (!texts(m, keys, 4, "Subject", reason, max_reason))
                        return false;
        return true;
}

static const char *text(const struct hf__json *object, const char *key) {
        const char *value = hf__json_text(hf__json_get(object, key));

        return value ? value : "";
}

static int default_group(struct hf__json *object) {
        return *text(object, "apiGroup") ? 0 : hf__json_set_string(object, "apiGroup", RBAC_GROUP);
}

int hfd_binding_prepare(struct hf__json *object, const struct hf__json *old) {
        struct hf__json *ref = hf__json_get(object, "roleRef");
        int r = ref ? default_group(ref) : 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m && r == 0;
             m = hf__json_next(m))
                if (strcmp(text(m, "kind"), "User") == 0 || strcmp(text(m, "kind"), "Group") == 0)
                        r = default_group(m);
        return r;
}

static void unsupported(struct hfd_causes *causes, const char *field, const char *value,
                        const char *supported) {
        char quoted[300];

        hfd_quote(value, quoted, sizeof quoted);
        hfd_cause_unsupported(causes, field, quoted, supported);
}

static void validate_subject(const struct hf__json *subject, size_t i, struct hfd_causes *causes) {
        const char *kind = text(subject, "kind"), *group = text(subject, "apiGroup"),
                   *ns = text(subject, "namespace");
        bool account = strcmp(kind, "ServiceAccount") == 0,
             known = account || strcmp(kind, "User") == 0 || strcmp(kind, "Group") == 0;
        char field[64], quoted[300];

        (void)snprintf(field, sizeof field, "subjects[%zu].name", i);
        if (!*text(subject, "name")) {
                hfd_cause_required(causes, field, "");
        } else if (account && !hfd_is_dns_subdomain(text(subject, "name"))) {
                hfd_quote(text(subject, "name"), quoted, sizeof quoted);
                hfd_cause_invalid(causes, field, quoted,
                                  "a service account is named by a lowercase RFC 1123 subdomain");
        }
        (void)snprintf(field, sizeof field, "subjects[%zu].apiGroup", i);
        if (known && strcmp(group, account ? "" : RBAC_GROUP) != 0)
                unsupported(causes, field, group, account ? "\"\"" : "\"" RBAC_GROUP "\"");
        (void)snprintf(field, sizeof field, "subjects[%zu].namespace", i);
        if (account && !*ns)
                hfd_cause_required(causes, field, "");
        (void)snprintf(field, sizeof field, "subjects[%zu].kind", i);
        if (!known)
                unsupported(causes, field, kind, "\"ServiceAccount\", \"User\", \"Group\"");
}

static void validate_binding(const struct hf__json *object, const struct hf__json *old,
                             bool cluster, struct hfd_causes *causes) {
        const struct hf__json *ref = hf__json_get(object, "roleRef"),
                              *was = hf__json_get(old, "roleRef");
        const char *kind = text(ref, "kind"), *name = text(ref, "name");
        size_t i = 0;
        char shown[700];

        if (strcmp(text(ref, "apiGroup"), RBAC_GROUP) != 0)
                unsupported(causes, "roleRef.apiGroup", text(ref, "apiGroup"),
                            "\"" RBAC_GROUP "\"");
        if (strcmp(kind, "ClusterRole") != 0 && (cluster || strcmp(kind, "Role") != 0))
                unsupported(causes, "roleRef.kind", kind,
                            cluster ? "\"ClusterRole\"" : "\"Role\", \"ClusterRole\"");
        if (!*name)
                hfd_cause_required(causes, "roleRef.name", "");
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m))
                validate_subject(m, i++, causes);
        if (!was || (ref && hf__json_equal(ref, was)))
                return;
        (void)snprintf(shown, sizeof shown,
                       "rbac.RoleRef{APIGroup:\"%.100s\", Kind:\"%.60s\", Name:\"%.253s\"}",
                       text(ref, "apiGroup"), kind, name);
        hfd_cause_invalid(causes, "roleRef", shown, "cannot change roleRef");
}

void hfd_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        validate_binding(object, old, false, causes);
}

void hfd_cluster_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        validate_binding(object, old, true, causes);
}
