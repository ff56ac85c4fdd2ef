/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reconciles holdfastd's own roles and bindings, as kube-apiserver does with its own at each start:
 * a release may need more rights than the one before.
 *
 * Invariant: a rule is added only if the rules of the stored role do not cover it already, so that
 * a role that an administrator has written in another way is not changed.
 */
#include "server/controllers/roles/role_defaults.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/base/object_client.h"
#include "server/rbac/coverage.h"

#define AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"
#define ATTEMPTS   5 /* when other clients change the same object */

/* ---- merging ---- */

/* Adds the members of wanted that are missing in the map of the object at path. */
static int merge_map(struct hf__json *object, const char *path, const struct hf__json *wanted,
                     bool *changed) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(wanted); m && r == 0; m = hf__json_next(m)) {
                struct hf__json *map = hf__json_path(object, path);
                if (hf__json_get(map, hf__json_key(m)))
                        continue;
                if (!hf__json_is_object(map))
                        r = hf__json_set(object, path, hf__json_object());
                if (r == 0)
                        r = hf__json_put(hf__json_path(object, path), hf__json_key(m),
                                         hf__json_dup(m));
                *changed = true;
        }
        return r;
}

/* Appends a copy of the element to the list at key. */
static int append_to(struct hf__json *object, const char *key, const struct hf__json *element,
                     bool *changed) {
        int r = 0;

        if (!hf__json_is_array(hf__json_get(object, key)))
                r = hf__json_put(object, key, hf__json_array());
        if (r == 0)
                r = hf__json_append(hf__json_get(object, key), hf__json_dup(element));
        *changed = true;
        return r;
}

/* Finds out whether the rules of a role cover one more rule. Asks hfd_rbac_covers whether a user
 * with this role alone has the rights of the rule, so that there is only one implementation of
 * comparing rules. 0 or -ENOMEM. */
static int role_covers(const struct hf__json *role, const struct hf__json *rule,
                       bool *ret_covered) {
        static const char binding[] = "{\"roleRef\":{\"kind\":\"ClusterRole\",\"name\":\"r\"},"
                                      "\"subjects\":[{\"kind\":\"User\",\"name\":\"u\"}]}";
        const struct hfd_subject subject = {.name = "u"};
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        struct hf__json *bound = NULL, *rules = hf__json_array();
        struct hf__strbuf missing = {0};
        int r = builder && rules ? hf__json_append(rules, hf__json_dup(rule)) : -ENOMEM;

        if (r == 0)
                r = hf__json_parse(binding, sizeof binding - 1, &bound, NULL);
        if (r == 0)
                r = hfd_rbac_builder_add(builder, HFD_RBAC_CLUSTER_ROLE, "", "r", role);
        if (r == 0)
                r = hfd_rbac_builder_add(builder, HFD_RBAC_CLUSTER_ROLE_BINDING, "", "b", bound);
        if (r == 0) {
                struct hfd_rbac_index *index = hfd_rbac_builder_finish(builder);
                builder = NULL;
                r = index ? hfd_rbac_covers(index, &subject, "", rules, ret_covered, &missing)
                          : -ENOMEM;
                hfd_rbac_index_unref(index);
        }
        hfd_rbac_builder_free(builder);
        hf__json_free(bound);
        hf__json_free(rules);
        hf__strbuf_done(&missing);
        return r;
}

/* Adds the wanted rules that the object's rules do not cover. */
static int merge_rules(struct hf__json *object, const struct hf__json *wanted, bool *changed) {
        bool covered = false;
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(wanted, "rules")); m && r == 0;
             m = hf__json_next(m)) {
                r = role_covers(object, m, &covered);
                if (r == 0 && !covered)
                        r = append_to(object, "rules", m, changed);
        }
        return r;
}

static bool texts_equal(const struct hf__json *a, const struct hf__json *b, const char *key) {
        const char *left = hf__json_text(hf__json_get(a, key)),
                   *right = hf__json_text(hf__json_get(b, key));

        return strcmp(left ? left : "", right ? right : "") == 0;
}

/* Adds the wanted subjects that the object does not have. */
static int merge_subjects(struct hf__json *object, const struct hf__json *wanted, bool *changed) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(wanted, "subjects"));
             m && r == 0; m = hf__json_next(m)) {
                const struct hf__json *at = hf__json_first(hf__json_get(object, "subjects"));
                while (at && !(texts_equal(at, m, "kind") && texts_equal(at, m, "name") &&
                               texts_equal(at, m, "namespace")))
                        at = hf__json_next(at);
                if (!at)
                        r = append_to(object, "subjects", m, changed);
        }
        return r;
}

int hfd_role_defaults_merge(struct hf__json *object, const struct hf__json *wanted,
                            bool *ret_changed) {
        const struct hf__json *aggregation = hf__json_get(wanted, "aggregationRule");
        int r = merge_map(object, "metadata.labels", hf__json_path(wanted, "metadata.labels"),
                          ret_changed);

        if (r == 0)
                r = merge_rules(object, wanted, ret_changed);
        if (r == 0)
                r = merge_subjects(object, wanted, ret_changed);
        if (r == 0 && aggregation && !hf__json_is_object(hf__json_get(object, "aggregationRule"))) {
                r = hf__json_put(object, "aggregationRule", hf__json_dup(aggregation));
                *ret_changed = true;
        }
        return r;
}

/* ---- requests ---- */

/* The plural of the kind in its URL. NULL: it is not a kind of role or binding. */
static const char *plural_of(const struct hf__json *wanted) {
        static const char *const kinds[][2] = {{"ClusterRole", "clusterroles"},
                                               {"ClusterRoleBinding", "clusterrolebindings"},
                                               {"Role", "roles"},
                                               {"RoleBinding", "rolebindings"}};

        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (hf__json_has_text(wanted, "kind", kinds[i][0]))
                        return kinds[i][1];
        return NULL;
}

/* Whether the binding refers to another role than wanted. The API does not allow changing the role
 * of a binding, so the binding must be deleted and created again. */
static bool must_be_replaced(const struct hf__json *object, const struct hf__json *wanted) {
        const struct hf__json *old_ref = hf__json_get(object, "roleRef"),
                              *ref = hf__json_get(wanted, "roleRef");

        return ref && !(texts_equal(old_ref, ref, "kind") && texts_equal(old_ref, ref, "name"));
}

static int bring_up_to_date(struct hf_term *term, const struct hf_resource *resource,
                            struct hf__json *object, const struct hf__json *wanted) {
        const char *ns = hf__json_string(wanted, "metadata.namespace"),
                   *name = hf__json_string(wanted, "metadata.name");
        const struct hf__json *annotations = hf__json_path(object, "metadata.annotations");
        const char *autoupdate = hf__json_text(hf__json_get(annotations, AUTOUPDATE));
        bool changed = false;

        if (autoupdate && strcmp(autoupdate, "false") == 0)
                return 0;
        if (must_be_replaced(object, wanted)) {
                const struct hfd_object_client_delete_options options = {
                        .uid = hf__json_string(object, "metadata.uid")};
                int r = hfd_object_client_delete(term, resource, ns, name, &options);
                return r == 0 ? HF_E_CONFLICT : r; /* the next attempt creates it */
        }
        int r = hfd_role_defaults_merge(object, wanted, &changed);
        return r == 0 && changed ? hfd_object_client_update(term, resource, ns, name, NULL, object)
                                 : r;
}

/* HF_E_CONFLICT, HF_E_NOT_FOUND, HF_E_EXISTS: another client was faster, or a binding was deleted
 * so that the next attempt creates it; try again. */
static int try_to_apply_default(struct hf_term *term, const struct hf_resource *resource,
                                const struct hf__json *wanted) {
        const char *ns = hf__json_string(wanted, "metadata.namespace"),
                   *name = hf__json_string(wanted, "metadata.name");
        struct hf__json *object = NULL;
        int r = hfd_object_client_get(term, resource, ns, name, &object);

        if (r == HF_E_NOT_FOUND)
                return hfd_object_client_create(term, resource, ns, wanted);
        if (r == 0)
                r = bring_up_to_date(term, resource, object, wanted);
        hf__json_free(object);
        return r;
}

static int apply_default(struct hf_term *term, const struct hf__json *wanted) {
        struct hf_resource resource = {HFD_RBAC_API, "v1", plural_of(wanted)};
        int r = HF_E_CONFLICT;

        if (!resource.plural)
                return 0;
        for (int i = 0;
             i < ATTEMPTS && (r == HF_E_CONFLICT || r == HF_E_NOT_FOUND || r == HF_E_EXISTS); i++)
                r = try_to_apply_default(term, &resource, wanted);
        return r;
}

int hfd_role_defaults_apply_some(struct hf_term *term, hfd_default_role_fn default_role, size_t *at,
                                 size_t max, bool *ret_more) {
        const char *text = NULL;
        size_t n;
        int r = 0;

        assert(default_role && max > 0);
        for (size_t i = 0; r == 0 && i < max && (text = default_role(*at, &n)) != NULL; i++) {
                struct hf__json *wanted = NULL;
                r = hf__json_parse(text, n, &wanted, NULL);
                if (r == 0)
                        r = apply_default(term, wanted);
                hf__json_free(wanted);
                if (r == 0)
                        ++*at;
        }
        *ret_more = default_role(*at, &n) != NULL;
        return r;
}

int hfd_role_defaults_apply(struct hf_term *term, hfd_default_role_fn default_role) {
        size_t at = 0;
        bool more;

        return default_role ? hfd_role_defaults_apply_some(term, default_role, &at, SIZE_MAX, &more)
                            : 0;
}
