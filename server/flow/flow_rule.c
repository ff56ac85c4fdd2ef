/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether the rules of a FlowSchema match a request. A rule needs one of its subjects and
 * one of its targets; a schema needs one of its rules.
 *
 * Invariant: the same requests match as in kube-apiserver.
 */
#include "server/flow/flow_rule.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define ACCOUNT_PREFIX "system:serviceaccount:"

/* ---- subjects ---- */

static bool is_all(const char *name) { return name[0] == '*' && name[1] == '\0'; }

/* "system:serviceaccount:NAMESPACE:NAME" */
static bool is_account(const struct hfd_subject *subject, const char *ns, const char *name) {
        const char *user = subject->name;
        size_t n_prefix = strlen(ACCOUNT_PREFIX), n_ns = strlen(ns);

        if (strncmp(user, ACCOUNT_PREFIX, n_prefix) != 0)
                return false;
        user += n_prefix;
        if (strncmp(user, ns, n_ns) != 0 || user[n_ns] != ':')
                return false;
        return is_all(name) || strcmp(user + n_ns + 1, name) == 0;
}

/* wanted: a subject of the rule. One of an unknown kind matches nobody. */
static bool match_subject(const struct hf__json *wanted, const struct hfd_subject *subject) {
        const char *kind = hf__json_string(wanted, "kind"), *name, *ns;

        if (kind && strcmp(kind, "Group") == 0) {
                name = hf__json_string(hf__json_get(wanted, "group"), "name");
                return name && (is_all(name) || hfd_subject_in_group(subject, name));
        }
        if (kind && strcmp(kind, "User") == 0) {
                name = hf__json_string(hf__json_get(wanted, "user"), "name");
                return name && (is_all(name) || strcmp(name, subject->name) == 0);
        }
        if (!kind || strcmp(kind, "ServiceAccount") != 0)
                return false;
        wanted = hf__json_get(wanted, "serviceAccount");
        name = hf__json_string(wanted, "name");
        ns = hf__json_string(wanted, "namespace");
        return name && ns && is_account(subject, ns, name);
}

/* ---- the verb and the target ---- */

/* Whether a list contains the text, or is only "*". */
static bool has_text(const struct hf__json *list, const char *text) {
        const struct hf__json *first = hf__json_first(list);

        if (first && hf__json_is_string(first) && is_all(hf__json_text(first)) &&
            !hf__json_next(first))
                return true;
        return hf__json_has_element(list, text);
}

/* A request without a namespace is matched by clusterScope alone, whatever namespaces the rule
 * names. */
static bool match_resource(const struct hf__json *rule, const struct hfd_attributes *attributes) {
        char joined[600];

        if (!has_text(hf__json_get(rule, "verbs"), attributes->verb) ||
            !has_text(hf__json_get(rule, "apiGroups"), attributes->group))
                return false;
        if (hf__join(joined, sizeof joined, attributes->resource,
                     *attributes->subresource ? "/" : "", attributes->subresource, NULL) == 0 ||
            !has_text(hf__json_get(rule, "resources"), joined))
                return false;
        if (!*attributes->ns)
                return hf__json_bool(rule, "clusterScope", false);
        return has_text(hf__json_get(rule, "namespaces"), attributes->ns);
}

/* "/healthz" also matches what is below it, and so does "/healthz/ *" (without the blank). */
static bool match_url(const char *wanted, const char *path) {
        size_t n = strlen(wanted);

        if (is_all(wanted) || strcmp(wanted, path) == 0)
                return true;
        if (n > 0 && wanted[n - 1] == '*')
                n--;
        if (strncmp(wanted, path, n) != 0)
                return false;
        return (n > 0 && wanted[n - 1] == '/') || path[n] == '/';
}

static bool match_path(const struct hf__json *rule, const struct hfd_attributes *attributes) {
        if (!has_text(hf__json_get(rule, "verbs"), attributes->verb))
                return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(rule, "nonResourceURLs")); m;
             m = hf__json_next(m))
                if (hf__json_is_string(m) && match_url(hf__json_text(m), attributes->path))
                        return true;
        return false;
}

static bool match_rule(const struct hf__json *rule, const struct hfd_subject *subject,
                       const struct hfd_attributes *attributes) {
        const struct hf__json *m = hf__json_first(hf__json_get(rule, "subjects"));

        while (m && !match_subject(m, subject))
                m = hf__json_next(m);
        if (!m)
                return false;
        m = hf__json_first(
                hf__json_get(rule, attributes->is_resource ? "resourceRules" : "nonResourceRules"));
        while (m && !(attributes->is_resource ? match_resource(m, attributes)
                                              : match_path(m, attributes)))
                m = hf__json_next(m);
        return m != NULL;
}

bool hfd_flow_rules_match(const struct hf__json *rules, const struct hfd_subject *subject,
                          const struct hfd_attributes *attributes) {
        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                if (match_rule(m, subject, attributes))
                        return true;
        return false;
}
