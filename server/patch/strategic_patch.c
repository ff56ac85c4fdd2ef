/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch: a merge patch that also merges some lists (merged_list.h), element by
 * element, and that contains directives:
 *
 *      $patch: replace | delete                 for an object, or an element of a merged list
 *      $retainKeys: [...]                       removes all other members of the object
 *      $setElementOrder/<list>: [...]           the order of a merged list
 *      $deleteFromPrimitiveList/<list>: [...]   elements to remove from a list of scalars
 *
 * A merged list has the order of $setElementOrder, or else of the patch. Elements that only the
 * document has keep their old order, and stay before the elements that followed them, as in
 * Kubernetes. list_merge.c merges the lists.
 *
 * Invariants: no directive gets into a document, and no null that removes a member. Apart from
 * sorting, the work is proportional to the sizes of document and patch: an index finds members, and
 * an object of the patch may have ORDERS_MAX directives that search the patch itself.
 */
#include "server/patch/strategic_patch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/patch/directives.h"
#include "server/patch/list_merge.h"
#include "server/patch/members.h"
#include "server/patch/merged_list.h"

#define ORDERS_MAX     16  /* $setElementOrder in one object; no kind has so many lists */
#define PATH_MAX_BYTES 128 /* with the NUL; longer than any path in merged_list.c */

struct merging {
        const char *kind; /* of the document */
        struct hfd_patch_outcome *outcome;
};

static int merge_object(struct merging *p, const char *path, struct hf__json *target,
                        const struct hf__json *patch);

/* Builds the path of a member. A path that is cut fills the buffer, as do those of the members
 * below it, and the path of a merged list is shorter. So none of them is taken for one. */
static void join_path(char out[PATH_MAX_BYTES], const char *path, const char *key) {
        (void)snprintf(out, PATH_MAX_BYTES, "%s%s%s", path, *path ? "." : "", key);
}

static void remove_members(struct hf__json *container) {
        for (struct hf__json *m; (m = hf__json_first(container));)
                hf__json_free(hf__json_detach(container, m));
}

/* ---- objects ---- */

/* Removes the members of target that are not among keys. */
static int retain_keys(struct merging *p, struct hf__json *target, const struct hf__json *keys) {
        struct hf__json_index by_text = {0};
        int r;

        if (!hf__json_is_array(keys))
                return hfd_patch_malformed(p->outcome, "invalid patch format of retainKeys");
        r = hfd_patch_spend(p->outcome, hf__json_count(target) + hf__json_count(keys));
        if (r == 0)
                r = hf__json_index_init(&by_text, keys, NULL);
        for (struct hf__json *m = hf__json_first(target), *next; m && r == 0; m = next) {
                next = hf__json_next(m);
                if (!hf__json_index_find(&by_text, hf__json_key(m)))
                        hf__json_free(hf__json_detach(target, m));
        }
        hf__json_index_done(&by_text);
        return r;
}

/* Whether the patch has a $setElementOrder for the list under key. */
static bool has_order(const struct hf__json *patch, const char *key) {
        char directive[PATH_MAX_BYTES + sizeof HFD_SET_ORDER];

        (void)snprintf(directive, sizeof directive, HFD_SET_ORDER "%.100s", key);
        return hf__json_get(patch, directive) != NULL;
}

/* For list_merge.c. Within a list, paths begin anew: no list is merged below another list. */
static int merge_element(void *ctx, struct hf__json *target, const struct hf__json *patch) {
        return merge_object(ctx, "", target, patch);
}

static int merge_list(struct merging *p, const struct hfd_merged_list *list,
                      struct hf__json *target, const struct hf__json *patch,
                      const struct hf__json *order) {
        const struct hfd_list_merge merge = {.list = list,
                                             .outcome = p->outcome,
                                             .merge_element = merge_element,
                                             .ctx = p};

        return hfd_list_merge_apply(&merge, target, patch, order);
}

/* Applies a $setElementOrder: merges the list under key, if patch has it, and sorts it. */
static int merge_ordered(struct merging *p, const char *path, struct hfd_members *members,
                         const struct hf__json *patch, const char *key,
                         const struct hf__json *order) {
        const struct hfd_merged_list *list = hfd_merged_list_find(p->kind, path);
        const struct hf__json *value = hf__json_get(patch, key);
        struct hf__json *target = hfd_members_find(members, key), *made;
        int r;

        if (!hf__json_is_array(order))
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        /* If the value is not merged here, merge_value handles it. */
        if (!list || (value && !hf__json_is_array(value))) {
                if (value || !target)
                        return 0;
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        }
        if (hf__json_is_array(target))
                return merge_list(p, list, target, value, order);
        if (!value)
                return 0;
        made = hf__json_array();
        r = made ? merge_list(p, list, made, value, order) : -ENOMEM;
        if (r == 0)
                return hfd_members_set(members, key, made);
        hf__json_free(made);
        return r;
}

/* Applies a $deleteFromPrimitiveList. */
static int delete_scalars(struct merging *p, struct hf__json *target,
                          const struct hf__json *scalars) {
        if (!hf__json_is_array(scalars))
                return hfd_patch_malformed(p->outcome, "invalid patch format of primitive list");
        if (!hf__json_is_array(target))
                return 0;
        return hfd_list_merge_delete_scalars(p->outcome, target, scalars);
}

/* Merges one member of patch that is not a directive. path is the path of the member. */
static int merge_value(struct merging *p, const char *path, struct hfd_members *members,
                       const struct hf__json *patch, const struct hf__json *m) {
        const struct hfd_merged_list *list = hfd_merged_list_find(p->kind, path);
        const char *key = hf__json_key(m);
        struct hf__json *target = hfd_members_find(members, key);

        if (hf__json_is_null(m))
                return hfd_members_drop(members, key);
        if (list && hf__json_is_array(m) && has_order(patch, key))
                return 0; /* merge_ordered merges it */
        if (hf__json_is_object(m) && hf__json_is_object(target))
                return merge_object(p, path, target, m);
        if (list && hf__json_is_array(m) && hf__json_is_array(target))
                return merge_list(p, list, target, m, NULL);
        return hfd_members_set(members, key, hfd_directives_copy_without(m));
}

/*
 * Merges one member of patch. path is the path of the object that contains it. n_orders counts the
 * directives of this object that search the patch.
 */
static int merge_member(struct merging *p, const char *path, struct hfd_members *members,
                        const struct hf__json *patch, const struct hf__json *m, size_t *n_orders) {
        const char *key = hf__json_key(m);
        const char *ordered = hfd_directive_skip(key, HFD_SET_ORDER);
        const char *reduced = hfd_directive_skip(key, HFD_DELETE_SCALARS);
        char inner[PATH_MAX_BYTES];

        if (strcmp(key, HFD_DIRECTIVE) == 0 || strcmp(key, HFD_RETAIN_KEYS) == 0)
                return 0; /* merge_object has already applied it */
        if (ordered && ++*n_orders > ORDERS_MAX)
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        if (ordered) {
                join_path(inner, path, ordered);
                return merge_ordered(p, inner, members, patch, ordered, m);
        }
        if (reduced)
                return delete_scalars(p, hfd_members_find(members, reduced), m);
        join_path(inner, path, key);
        return merge_value(p, inner, members, patch, m);
}

/*
 * Merges two objects. path is the path of target; "" = the document, or an object within a list:
 * merged_list.c has no lists below another list. The recursion is as deep as the patch, whose depth
 * the parser limits.
 */
static int merge_object(struct merging *p, const char *path, struct hf__json *target,
                        const struct hf__json *patch) {
        const struct hf__json *directive = hf__json_get(patch, HFD_DIRECTIVE);
        const struct hf__json *retain = hf__json_get(patch, HFD_RETAIN_KEYS);
        const char *word = hf__json_text(directive);
        struct hfd_members members;
        size_t n_orders = 0;
        int r = 0;

        if (directive && (!word || (strcmp(word, "replace") != 0 && strcmp(word, "delete") != 0)))
                return hfd_patch_refuse(p->outcome, "unknown patch type: %.60s in map: %s",
                                        word ? word : "", *path ? path : p->kind);
        if (word)
                remove_members(target);
        if (word && strcmp(word, "delete") == 0)
                return 0;
        if (retain)
                r = retain_keys(p, target, retain);
        if (r != 0)
                return r;
        r = hfd_members_init(&members, target);
        if (r == 0)
                r = hfd_patch_spend(p->outcome, members.by_key.n + hf__json_count(patch));
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_member(p, path, &members, patch, m, &n_orders);
        hfd_members_done(&members);
        return r;
}

int hfd_strategic_patch_apply(const struct hfd_resource *resource, struct hf__json **document,
                              const struct hf__json *patch, struct hfd_patch_outcome *outcome) {
        struct merging p = {.kind = resource->kind, .outcome = outcome};

        assert(hf__json_is_object(*document) && hf__json_is_object(patch));
        return merge_object(&p, "", *document, patch);
}
