/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides by the rules of the audit policy how much of a request is recorded. The decision follows
 * kube-apiserver in each detail, because the same policy is used with both. A rule with namespaces
 * or resources matches only requests for resources, and a rule with nonResourceURLs only requests
 * for other paths. The namespace of a request without a namespace is "".
 *
 * Invariant: the first rule that matches decides, also if its level is None. So an administrator
 * can exempt requests from a general rule by a special rule in front of it.
 */
#include "server/audit/audit_policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/audit/policy_private.h"

struct hfd_audit_policy *hfd_audit_policy_ref(struct hfd_audit_policy *policy) {
        assert(atomic_load_explicit(&policy->refs, memory_order_relaxed) > 0);
        atomic_fetch_add_explicit(&policy->refs, 1, memory_order_relaxed);
        return policy;
}

struct hfd_audit_policy *hfd_audit_policy_unref(struct hfd_audit_policy *policy) {
        assert(!policy || atomic_load_explicit(&policy->refs, memory_order_relaxed) > 0);
        if (!policy || atomic_fetch_sub_explicit(&policy->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        hf__json_free(policy->json);
        free(policy);
        return NULL;
}

/* Whether the list has the text. An empty list is for all texts. */
static bool list_covers(const struct hf__json *list, const char *text) {
        return !hf__json_first(list) || hf__json_has_element(list, text);
}

/* One common group is enough. A request that was not authenticated has no groups. */
static bool groups_match(const struct hf__json *list, const struct hfd_subject *user) {
        if (!hf__json_first(list))
                return true;
        for (size_t i = 0; user && i < user->n_groups; i++)
                if (hf__json_has_element(list, user->groups[i]))
                        return true;
        return false;
}

static bool url_matches(const char *url, const char *path) {
        size_t n = strlen(url);

        if (strcmp(url, path) == 0)
                return true;
        return n > 0 && url[n - 1] == '*' && strncmp(url, path, n - 1) == 0;
}

static bool urls_match(const struct hf__json *list, const char *path) {
        for (const struct hf__json *url = hf__json_first(list); url; url = hf__json_next(url))
                if (url_matches(hf__json_text(url), path))
                        return true;
        return false;
}

/* pattern: "pods", "pods/log", "pods/" with a star, a star with "/log", or a star alone, which
 * stands for all. */
static bool resource_matches(const char *pattern, const struct hfd_attributes *attributes) {
        const char *slash = strchr(pattern, '/'), *sub = attributes->subresource;

        if (strcmp(pattern, "*") == 0)
                return true;
        if (!slash)
                return !sub[0] && strcmp(pattern, attributes->resource) == 0;
        size_t n = (size_t)(slash - pattern);
        bool same =
                strlen(attributes->resource) == n && strncmp(pattern, attributes->resource, n) == 0;
        /* As in kube-apiserver, "pods/" with a star is also for pods without a subresource. */
        if (strcmp(slash + 1, "*") == 0)
                return same;
        bool any = n == 1 && pattern[0] == '*';
        return (same || any) && sub[0] && strcmp(slash + 1, sub) == 0;
}

/* entry: a group, with resources and their names. Names count only if there are resources. */
static bool entry_matches(const struct hf__json *entry, const struct hfd_attributes *attributes) {
        const char *group = hf__json_string(entry, "group");
        const struct hf__json *patterns = hf__json_get(entry, "resources");

        if (strcmp(group ? group : "", attributes->group) != 0)
                return false;
        if (!hf__json_first(patterns))
                return true;
        if (!list_covers(hf__json_get(entry, "resourceNames"), attributes->name))
                return false;
        for (const struct hf__json *p = hf__json_first(patterns); p; p = hf__json_next(p))
                if (resource_matches(hf__json_text(p), attributes))
                        return true;
        return false;
}

static bool resources_match(const struct hfd_audit_rule *rule,
                            const struct hfd_attributes *attributes) {
        if (!attributes->is_resource || !list_covers(rule->namespaces, attributes->ns))
                return false;
        if (!hf__json_first(rule->resources))
                return true;
        for (const struct hf__json *e = hf__json_first(rule->resources); e; e = hf__json_next(e))
                if (entry_matches(e, attributes))
                        return true;
        return false;
}

static bool rule_matches(const struct hfd_audit_rule *rule, const struct hfd_subject *user,
                         const struct hfd_attributes *attributes) {
        if (hf__json_first(rule->users) &&
            (!user || !hf__json_has_element(rule->users, user->name)))
                return false;
        if (!groups_match(rule->groups, user) || !list_covers(rule->verbs, attributes->verb))
                return false;
        if (hf__json_first(rule->namespaces) || hf__json_first(rule->resources))
                return resources_match(rule, attributes);
        if (hf__json_first(rule->urls))
                return !attributes->is_resource && urls_match(rule->urls, attributes->path);
        return true;
}

struct hfd_audit_decision hfd_audit_policy_decide(const struct hfd_audit_policy *policy,
                                                  const struct hfd_subject *user,
                                                  const struct hfd_attributes *attributes) {
        for (size_t i = 0; i < policy->n; i++)
                if (rule_matches(&policy->rules[i], user, attributes))
                        return policy->rules[i].decision;
        return (struct hfd_audit_decision){.level = HFD_AUDIT_NONE};
}
