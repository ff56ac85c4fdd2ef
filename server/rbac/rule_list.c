/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the JSON of PolicyRules from the rules of a role, or from all that a user has in a
 * namespace, in the order in which the roles have them.
 *
 * Invariant: the JSON has copies of all texts, because the caller may drop its reference to the
 * index before it prints the JSON.
 */
#include "server/rbac/rule_list.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/rbac/decision.h"
#include "server/rbac/index_private.h"

/* Sets a member of a rule, unless the list is empty. 0 or -ENOMEM. */
static int put_list(const struct hfd_rbac_index *index, struct hf__json *rule, const char *key,
                    const struct hfd_rbac_list *list) {
        if (list->n == 0)
                return 0;
        struct hf__json *array = hf__json_array();
        int r = array ? 0 : -ENOMEM;
        assert(list->at + list->n <= index->n_numbers);
        for (uint32_t i = 0; i < list->n && r == 0; i++)
                r = hf__json_append_string(array, hfd_texts_at(&index->texts,
                                                               index->numbers[list->at + i]));
        if (r != 0) {
                hf__json_free(array);
                return r;
        }
        return hf__json_put(rule, key, array);
}

/* Appends all rules of a role. 0 or -ENOMEM. */
static int put_rules(const struct hfd_rbac_index *index, const struct hfd_rbac_role *role,
                     struct hf__json *rules) {
        int r = 0;

        assert(role->first_rule + role->n_rules <= index->n_rules);
        for (uint32_t i = 0; i < role->n_rules && r == 0; i++) {
                const struct hfd_rbac_rule *from = &index->rules[role->first_rule + i];
                struct hf__json *rule = hf__json_object();
                r = rule ? put_list(index, rule, "verbs", &from->verbs) : -ENOMEM;
                if (r == 0)
                        r = put_list(index, rule, "apiGroups", &from->groups);
                if (r == 0)
                        r = put_list(index, rule, "resources", &from->resources);
                if (r == 0)
                        r = put_list(index, rule, "resourceNames", &from->names);
                if (r == 0)
                        r = put_list(index, rule, "nonResourceURLs", &from->urls);
                if (r != 0)
                        hf__json_free(rule);
                else
                        r = hf__json_append(rules, rule);
        }
        return r;
}

int hfd_rbac_index_role_rules(const struct hfd_rbac_index *index, const char *kind, const char *ns,
                              const char *name, struct hf__json **ret_rules) {
        bool cluster = strcmp(kind, "ClusterRole") == 0;
        uint32_t name_number = hfd_texts_find(&index->texts, name, strlen(name));
        uint32_t ns_number =
                cluster ? HFD_TEXT_NONE : hfd_texts_find(&index->texts, ns, strlen(ns));

        if (!name_number || (!cluster && !ns_number))
                return HF_E_NOT_FOUND;
        /* A linear search of numbers: only a write of a binding asks for the rules of one role. */
        for (size_t i = 0; i < index->n_roles; i++) {
                const struct hfd_rbac_role *role = &index->roles[i];
                if (role->name != name_number || role->ns != ns_number)
                        continue;
                struct hf__json *rules = hf__json_array();
                int r = rules ? put_rules(index, role, rules) : -ENOMEM;
                if (r != 0)
                        hf__json_free(rules);
                else
                        *ret_rules = rules;
                return r;
        }
        return HF_E_NOT_FOUND;
}

int hfd_rbac_index_rules_of(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                            const char *ns, struct hf__json **ret_rules, char **ret_missing) {
        struct hf__json *rules = hf__json_array();
        struct hfd_rbac_grants grants;
        const struct hfd_rbac_grant *grant;
        int r = rules ? 0 : -ENOMEM;

        assert(index && subject);
        hfd_rbac_grants_init(&grants, index, subject, ns);
        while (r == 0 && (grant = hfd_rbac_grants_next(&grants))) {
                uint32_t role = grant->role;
                if (role != HFD_RBAC_NO_ROLE)
                        r = put_rules(index, &index->roles[role], rules);
        }
        if (r != 0) {
                hf__json_free(rules);
                return r;
        }
        *ret_rules = rules;
        *ret_missing = hfd_rbac_missing_roles(index, subject, ns);
        return 0;
}
