/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds an index from roles and bindings. While objects are added, grants are in the order of the
 * bindings, and a binding only has the name of its role. hfd_rbac_builder_finish sorts roles and
 * grants, and sets the number of the role in each binding and grant.
 *
 * Invariant: a malformed part grants nothing. A rule with a malformed list is left out as a whole:
 * if its list of names were read as absent, the rule would grant all names. Any other member with a
 * wrong type is read as absent.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/rbac/index.h"
#include "server/rbac/index_private.h"

struct hfd_rbac_builder {
        struct hfd_rbac_index *index; /* owned */
        /* The number of elements for which each array of the index has room. */
        size_t s_numbers, s_rules, s_roles, s_bindings, s_grants;
};

/* Makes room for one more element. The new address, or NULL: out of memory. */
static void *grow_array(void *array, size_t n, size_t *space, size_t size) {
        if (n < *space)
                return array;
        size_t more = *space ? *space * 2 : 16;
        if (more >= UINT32_MAX) /* the index refers to elements by numbers of 32 bits */
                return NULL;
        void *grown = realloc(array, more * size);
        if (grown)
                *space = more;
        return grown;
}

/* Appends a zeroed element to an array of the index and returns it; NULL = out of memory. */
#define APPEND(builder, member)                                                                    \
        append_item((void **)&(builder)->index->member, &(builder)->index->n_##member,             \
                    &(builder)->s_##member, sizeof *(builder)->index->member)

static void *append_item(void **array, size_t *n, size_t *space, size_t size) {
        void *grown = grow_array(*array, *n, space, size);

        if (!grown)
                return NULL;
        *array = grown;
        void *element = (char *)grown + *n * size;
        memset(element, 0, size);
        (*n)++;
        return element;
}

struct hfd_rbac_builder *hfd_rbac_builder_new(void) {
        struct hfd_rbac_builder *builder = calloc(1, sizeof *builder);

        if (!builder)
                return NULL;
        builder->index = calloc(1, sizeof *builder->index);
        if (!builder->index || hfd_texts_init(&builder->index->texts) != 0) {
                free(builder->index);
                free(builder);
                return NULL;
        }
        atomic_init(&builder->index->refs, 1);
        return builder;
}

struct hfd_rbac_builder *hfd_rbac_builder_free(struct hfd_rbac_builder *builder) {
        if (!builder)
                return NULL;
        hfd_rbac_index_unref(builder->index);
        free(builder);
        return NULL;
}

/* The number of the text; HFD_TEXT_NONE = out of memory. */
static uint32_t add_text(struct hfd_rbac_builder *builder, const char *text) {
        return hfd_texts_add(&builder->index->texts, text, strlen(text));
}

/* ---- roles ---- */

/* Appends the numbers of the texts in a JSON list to the index. A JSON null counts as an empty
 * list, and so does json NULL, a list that is absent. *ret_valid: false if json is anything else,
 * or has an element that is no text. 0 or -ENOMEM. */
static int add_list(struct hfd_rbac_builder *builder, const struct hf__json *json,
                    struct hfd_rbac_list *ret_list, bool *ret_valid) {
        *ret_list = (struct hfd_rbac_list){.at = (uint32_t)builder->index->n_numbers};
        *ret_valid = !json || hf__json_is_null(json) || hf__json_is_array(json);
        for (const struct hf__json *m = hf__json_first(json); m && *ret_valid;
             m = hf__json_next(m)) {
                const char *text = hf__json_text(m);
                *ret_valid = text != NULL;
                if (!text)
                        break;
                uint32_t number = add_text(builder, text);
                uint32_t *place = number ? APPEND(builder, numbers) : NULL;
                if (!place)
                        return -ENOMEM;
                *place = number;
                ret_list->n++;
        }
        return 0;
}

/* Appends the rule, unless it is no object or one of its lists is malformed. 0 or -ENOMEM. */
static int add_rule(struct hfd_rbac_builder *builder, const struct hf__json *json,
                    struct hfd_rbac_role *role) {
        struct hfd_rbac_rule rule = {0};
        const struct {
                const char *key;
                struct hfd_rbac_list *list;
        } lists[] = {{"verbs", &rule.verbs},
                     {"apiGroups", &rule.groups},
                     {"resources", &rule.resources},
                     {"resourceNames", &rule.names},
                     {"nonResourceURLs", &rule.urls}};
        bool valid = hf__json_is_object(json), all_valid = valid;

        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && all_valid; i++) {
                if (add_list(builder, hf__json_get(json, lists[i].key), lists[i].list, &valid) != 0)
                        return -ENOMEM;
                all_valid = valid;
        }
        if (!all_valid)
                return 0;
        for (uint32_t i = 0; i < rule.resources.n; i++)
                rule.resource_bits |= hfd_rbac_bit(builder->index->numbers[rule.resources.at + i]);
        struct hfd_rbac_rule *place = APPEND(builder, rules);
        if (!place)
                return -ENOMEM;
        *place = rule;
        role->n_rules++;
        return 0;
}

/* The rules of a role are adjacent in the index, so the role has only the number of the first one
 * and how many there are. ns NULL: a ClusterRole. 0 or -ENOMEM. */
static int add_role(struct hfd_rbac_builder *builder, const char *ns, const char *name,
                    const struct hf__json *object) {
        struct hfd_rbac_role role = {.first_rule = (uint32_t)builder->index->n_rules};

        role.name = add_text(builder, name);
        role.ns = ns ? add_text(builder, ns) : HFD_TEXT_NONE;
        if (!role.name || (ns && !role.ns))
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "rules")); m;
             m = hf__json_next(m))
                if (add_rule(builder, m, &role) != 0)
                        return -ENOMEM;
        struct hfd_rbac_role *place = APPEND(builder, roles);
        if (!place)
                return -ENOMEM;
        *place = role;
        return 0;
}

/* ---- bindings ---- */

static const char *get_text(const struct hf__json *object, const char *key) {
        const char *text = hf__json_text(hf__json_get(object, key));

        return text ? text : "";
}

/* Adds the text of a subject to the table and returns its number. ns: the binding's namespace; NULL
 * = cluster-wide. *ret_account: it is a ServiceAccount. HFD_TEXT_NONE: *ret_r is -ENOMEM, or 0 if
 * json is no subject, or an account without a namespace in a cluster-wide binding. */
static uint32_t add_subject(struct hfd_rbac_builder *builder, const struct hf__json *json,
                            const char *ns, bool *ret_account, int *ret_r) {
        const char *kind = get_text(json, "kind"), *name = get_text(json, "name");
        const char *account_ns = get_text(json, "namespace");
        struct hf__strbuf text = {0};

        *ret_r = 0;
        *ret_account = strcmp(kind, "ServiceAccount") == 0;
        /* As in Kubernetes, an account without a namespace is one of the binding's namespace. */
        if (!*account_ns && ns)
                account_ns = ns;
        if (*ret_account && *account_ns)
                hf__strbuf_printf(&text, "u:system:serviceaccount:%s:%s", account_ns, name);
        else if (strcmp(kind, "User") == 0)
                hf__strbuf_printf(&text, "u:%s", name);
        else if (strcmp(kind, "Group") == 0)
                hf__strbuf_printf(&text, "g:%s", name);
        else
                return HFD_TEXT_NONE;
        uint32_t number = HFD_TEXT_NONE;
        if (text.error == 0)
                number = hfd_texts_add(&builder->index->texts, text.data, text.n);
        hf__strbuf_done(&text);
        *ret_r = number ? 0 : -ENOMEM;
        return number;
}

/* Appends the binding, and a grant for each of its subjects. ns NULL: a ClusterRoleBinding. 0 or
 * -ENOMEM. */
static int add_binding(struct hfd_rbac_builder *builder, const char *ns, const char *name,
                       const struct hf__json *object) {
        const struct hf__json *ref = hf__json_get(object, "roleRef");
        uint32_t number = (uint32_t)builder->index->n_bindings;
        struct hfd_rbac_binding *binding = APPEND(builder, bindings);
        int r;

        if (!binding)
                return -ENOMEM;
        binding->name = add_text(builder, name);
        binding->ns = ns ? add_text(builder, ns) : HFD_TEXT_NONE;
        binding->role_name = add_text(builder, get_text(ref, "name"));
        binding->is_cluster_role = strcmp(get_text(ref, "kind"), "ClusterRole") == 0;
        if (!binding->name || (ns && !binding->ns) || !binding->role_name)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m)) {
                bool is_account;
                uint32_t subject = add_subject(builder, m, ns, &is_account, &r);
                if (r != 0)
                        return r;
                if (!subject)
                        continue;
                struct hfd_rbac_grant *grant = APPEND(builder, grants);
                if (!grant)
                        return -ENOMEM;
                *grant = (struct hfd_rbac_grant){.subject = subject,
                                                 .ns = binding->ns,
                                                 .binding = number,
                                                 .is_account = is_account};
        }
        return 0;
}

int hfd_rbac_builder_add(struct hfd_rbac_builder *builder, enum hfd_rbac_kind kind, const char *ns,
                         const char *name, const struct hf__json *object) {
        switch (kind) {
        case HFD_RBAC_CLUSTER_ROLE: return add_role(builder, NULL, name, object);
        case HFD_RBAC_ROLE: return add_role(builder, ns, name, object);
        case HFD_RBAC_CLUSTER_ROLE_BINDING: return add_binding(builder, NULL, name, object);
        case HFD_RBAC_ROLE_BINDING: return add_binding(builder, ns, name, object);
        }
        return 0;
}

/* ---- finish ---- */

static int compare_numbers(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int compare_roles(const void *a, const void *b) {
        const struct hfd_rbac_role *left = a, *right = b;
        int r = compare_numbers(left->ns, right->ns);

        return r ? r : compare_numbers(left->name, right->name);
}

static int compare_grants(const void *a, const void *b) {
        const struct hfd_rbac_grant *left = a, *right = b;
        int r = compare_numbers(left->subject, right->subject);

        if (r == 0)
                r = compare_numbers(left->ns, right->ns);
        if (r == 0)
                r = compare_numbers(left->role, right->role);
        return r ? r : compare_numbers(left->binding, right->binding);
}

/* Drops each grant that gives the same role to the same subject in the same namespace as the grant
 * before it. Grants of roles that do not exist all have HFD_RBAC_NO_ROLE, but a denial names each
 * of these roles. So such a grant is dropped only if the one before it is of the same binding. */
static void drop_repeated_grants(struct hfd_rbac_index *index) {
        size_t n = 0;

        for (size_t i = 0; i < index->n_grants; i++) {
                const struct hfd_rbac_grant *grant = &index->grants[i],
                                            *last = n ? &index->grants[n - 1] : NULL;
                if (last && last->subject == grant->subject && last->ns == grant->ns &&
                    last->role == grant->role &&
                    (grant->role != HFD_RBAC_NO_ROLE || last->binding == grant->binding))
                        continue;
                index->grants[n++] = *grant;
        }
        index->n_grants = n;
}

/* Gives back the room that growing has left. A failure keeps the larger array. */
static void shrink_array(void **array, size_t n, size_t size) {
        void *smaller = n ? realloc(*array, n * size) : NULL;

        if (smaller)
                *array = smaller;
}

/* A ClusterRoleBinding to a Role, which no client can create, grants nothing: without the test of
 * binding->ns, the search would find the ClusterRole of that name. */
struct hfd_rbac_index *hfd_rbac_builder_finish(struct hfd_rbac_builder *builder) {
        struct hfd_rbac_index *index = builder->index;

        assert(index && index->refs == 1);
        if (index->n_roles)
                qsort(index->roles, index->n_roles, sizeof *index->roles, compare_roles);
        for (size_t i = 0; i < index->n_bindings; i++) {
                struct hfd_rbac_binding *binding = &index->bindings[i];
                const struct hfd_rbac_role wanted = {.ns = binding->is_cluster_role ? HFD_TEXT_NONE
                                                                                    : binding->ns,
                                                     .name = binding->role_name};
                const struct hfd_rbac_role *role = NULL;
                if (index->n_roles && (binding->is_cluster_role || binding->ns))
                        role = bsearch(&wanted, index->roles, index->n_roles, sizeof wanted,
                                       compare_roles);
                binding->role = role ? (uint32_t)(role - index->roles) : HFD_RBAC_NO_ROLE;
        }
        for (size_t i = 0; i < index->n_grants; i++)
                index->grants[i].role = index->bindings[index->grants[i].binding].role;
        if (index->n_grants)
                qsort(index->grants, index->n_grants, sizeof *index->grants, compare_grants);
        drop_repeated_grants(index);
        hfd_texts_shrink(&index->texts);
        shrink_array((void **)&index->numbers, index->n_numbers, sizeof *index->numbers);
        shrink_array((void **)&index->rules, index->n_rules, sizeof *index->rules);
        shrink_array((void **)&index->roles, index->n_roles, sizeof *index->roles);
        shrink_array((void **)&index->bindings, index->n_bindings, sizeof *index->bindings);
        shrink_array((void **)&index->grants, index->n_grants, sizeof *index->grants);
        builder->index = NULL;
        hfd_rbac_builder_free(builder);
        return index;
}
