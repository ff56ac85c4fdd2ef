/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether roles and bindings allow a request. The texts of the request are looked up once,
 * and then only numbers are compared, apart from URLs. A request costs a few hash lookups; for the
 * user and each group of the user a hash lookup and binary searches; and a walk over the rules of
 * the roles that are bound to them.
 *
 * Invariant: HFD_TEXT_NONE is in no list. A text of the request that the index does not contain
 * gets this number, so only "*" matches it, or, if it is a name, a rule without names.
 */
#include "server/rbac/decision.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/rbac/index_private.h"

/* The request as numbers. HFD_TEXT_NONE = no rule names this text. */
struct question {
        uint32_t verb, group, resource, any_with_subresource, name;
        uint64_t bits;    /* of the resources that match */
        const char *path; /* NULL = the request is for a resource */
};

static uint32_t find_text(const struct hfd_rbac_index *index, const char *text) {
        return hfd_texts_find(&index->texts, text, strlen(text));
}

/* The number of "first/second". HFD_TEXT_NONE: no rule names this text, or it does not fit into the
 * buffer, which is longer than any name of a resource. */
static uint32_t find_joined(const struct hfd_rbac_index *index, const char *first,
                            const char *second) {
        char text[1024];
        size_t n = hf__join(text, sizeof text, first, "/", second, NULL);

        return n ? hfd_texts_find(&index->texts, text, n) : HFD_TEXT_NONE;
}

static struct question make_question(const struct hfd_rbac_index *index,
                                     const struct hfd_attributes *attributes) {
        struct question q = {.verb = find_text(index, attributes->verb)};

        if (!attributes->is_resource) {
                q.path = attributes->path;
                return q;
        }
        q.group = find_text(index, attributes->group);
        q.name = find_text(index, attributes->name);
        if (attributes->subresource[0]) {
                q.resource = find_joined(index, attributes->resource, attributes->subresource);
                q.any_with_subresource = find_joined(index, "*", attributes->subresource);
        } else {
                q.resource = find_text(index, attributes->resource);
        }
        /* A text without a number sets the bit of HFD_TEXT_NONE. Only "*", which has all bits, can
         * match such a text, so this does no harm. */
        q.bits = hfd_rbac_bit(q.resource) | hfd_rbac_bit(q.any_with_subresource);
        return q;
}

/* Whether the list contains the number. HFD_TEXT_NONE is in no list. */
static bool list_has(const struct hfd_rbac_index *index, const struct hfd_rbac_list *list,
                     uint32_t number) {
        const uint32_t *numbers = index->numbers + list->at;

        if (number == HFD_TEXT_NONE)
                return false;
        for (uint32_t i = 0; i < list->n; i++)
                if (numbers[i] == number)
                        return true;
        return false;
}

static bool has_or_star(const struct hfd_rbac_index *index, const struct hfd_rbac_list *list,
                        uint32_t number) {
        return list_has(index, list, HFD_TEXT_STAR) || list_has(index, list, number);
}

/* As in Kubernetes, all stars at the end count as one, and a star in the middle is a character. */
bool hfd_rbac_url_covers(const char *url, const char *path) {
        size_t n = strlen(url), kept = n;

        if (strcmp(url, path) == 0 || strcmp(url, "*") == 0)
                return true;
        while (kept > 0 && url[kept - 1] == '*')
                kept--;
        return kept < n && strncmp(path, url, kept) == 0;
}

static bool urls_match(const struct hfd_rbac_index *index, const struct hfd_rbac_list *list,
                       const char *path) {
        for (uint32_t i = 0; i < list->n; i++)
                if (hfd_rbac_url_covers(hfd_texts_at(&index->texts, index->numbers[list->at + i]),
                                        path))
                        return true;
        return false;
}

/* The bits come first, because they rule out most rules at the cost of one operation. A rule with
 * names allows a request without a name, such as a plain list, only if one of its names is empty,
 * as in Kubernetes. */
static bool rule_matches(const struct hfd_rbac_index *index, const struct hfd_rbac_rule *rule,
                         const struct question *q) {
        if (!q->path && !(rule->resource_bits & q->bits))
                return false;
        if (!has_or_star(index, &rule->verbs, q->verb))
                return false;
        if (q->path)
                return urls_match(index, &rule->urls, q->path);
        return has_or_star(index, &rule->groups, q->group) &&
               (has_or_star(index, &rule->resources, q->resource) ||
                list_has(index, &rule->resources, q->any_with_subresource)) &&
               (rule->names.n == 0 || list_has(index, &rule->names, q->name));
}

static bool role_matches(const struct hfd_rbac_index *index, const struct hfd_rbac_role *role,
                         const struct question *q) {
        for (uint32_t i = 0; i < role->n_rules; i++)
                if (rule_matches(index, &index->rules[role->first_rule + i], q))
                        return true;
        return false;
}

/* ---- reasons ---- */

static void put_reason(const struct hfd_rbac_index *index, const struct hfd_rbac_grant *grant,
                       struct hf__strbuf *out) {
        assert(grant->binding < index->n_bindings);
        const struct hfd_rbac_binding *binding = &index->bindings[grant->binding];
        const char *subject = hfd_texts_at(&index->texts, grant->subject);
        const char *name = hfd_texts_at(&index->texts, binding->name),
                   *role = hfd_texts_at(&index->texts, binding->role_name);

        hf__strbuf_puts(out, "RBAC: allowed by ");
        if (binding->ns)
                hf__strbuf_printf(out, "RoleBinding \"%s/%s\"", name,
                                  hfd_texts_at(&index->texts, binding->ns));
        else
                hf__strbuf_printf(out, "ClusterRoleBinding \"%s\"", name);
        hf__strbuf_printf(out, " of %s \"%s\" to ",
                          binding->is_cluster_role ? "ClusterRole" : "Role", role);
        if (grant->is_account) { /* "u:system:serviceaccount:NS:NAME" */
                const char *ns = subject + strlen("u:system:serviceaccount:");
                const char *colon = strchr(ns, ':');
                hf__strbuf_printf(out, "ServiceAccount \"%s/%.*s\"", colon ? colon + 1 : "",
                                  colon ? (int)(colon - ns) : 0, ns);
        } else {
                hf__strbuf_printf(out, "%s \"%s\"", subject[0] == 'u' ? "User" : "Group",
                                  subject + 2);
        }
}

#define MISSING_MAX 16 /* missing roles that are described; further ones are left out */

char *hfd_rbac_missing_roles(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                             const char *ns) {
        const struct hfd_rbac_binding *missing[MISSING_MAX];
        struct hfd_rbac_grants grants;
        const struct hfd_rbac_grant *grant;
        struct hf__strbuf out = {0};
        size_t n = 0;

        hfd_rbac_grants_init(&grants, index, subject, ns);
        while ((grant = hfd_rbac_grants_next(&grants))) {
                const struct hfd_rbac_binding *binding = &index->bindings[grant->binding];
                bool known = binding->role != HFD_RBAC_NO_ROLE;
                for (size_t i = 0; i < n && !known; i++)
                        known = missing[i]->role_name == binding->role_name &&
                                missing[i]->is_cluster_role == binding->is_cluster_role;
                if (!known && n < MISSING_MAX)
                        missing[n++] = binding;
        }
        if (n > 1)
                hf__strbuf_putc(&out, '[');
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(&out, "%s%srole.%s \"%s\" not found", i ? ", " : "",
                                  missing[i]->is_cluster_role ? "cluster" : "", HFD_RBAC_API,
                                  hfd_texts_at(&index->texts, missing[i]->role_name));
        if (n > 1)
                hf__strbuf_putc(&out, ']');
        if (out.error != 0)
                hf__strbuf_done(&out);
        return out.data;
}

bool hfd_rbac_allows(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                     const struct hfd_attributes *attributes, struct hf__strbuf *reason) {
        struct question q = make_question(index, attributes);
        const char *ns = attributes->is_resource ? attributes->ns : "";
        struct hfd_rbac_grants grants;
        const struct hfd_rbac_grant *grant;

        hfd_rbac_grants_init(&grants, index, subject, ns);
        while ((grant = hfd_rbac_grants_next(&grants))) {
                if (grant->role == HFD_RBAC_NO_ROLE ||
                    !role_matches(index, &index->roles[grant->role], &q))
                        continue;
                if (reason)
                        put_reason(index, grant, reason);
                return true;
        }
        char *missing = reason ? hfd_rbac_missing_roles(index, subject, ns) : NULL;
        if (missing)
                hf__strbuf_printf(reason, "RBAC: %s", missing);
        free(missing);
        return false;
}
