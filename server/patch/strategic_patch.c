/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch: a merge patch that also merges some lists, element by element, and that
 * contains directives. The schema of the kind says which lists these are (HFD_FIELD_MERGE). The
 * directives are:
 *
 *      $patch: replace | delete                 for an object, or an element of a merged list
 *      $retainKeys: [...]                       removes all other members of the object
 *      $setElementOrder/<list>: [...]           the order of a merged list
 *      $deleteFromPrimitiveList/<list>: [...]   elements to remove from a list of scalars
 *
 * An object with HFD_FIELD_REPLACE is not merged, but replaced.
 *
 * A merged list has the order of $setElementOrder, or else of the patch. Elements that only the
 * document has keep their old order, and stay before the elements that followed them, as in
 * Kubernetes. list_merge.c merges the lists.
 *
 * Invariants: no directive gets into a document, and no null that means removal. Apart from
 * sorting, and from elements that the patch names again and again, the work is proportional to the
 * sizes of document and patch: an index finds members, and an object of the patch may have at most
 * ORDERS_MAX directives that search the patch itself.
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
#include "server/schema/schema.h"

#define ORDERS_MAX     16  /* $setElementOrder in one object; no kind has so many merged lists */
#define PATH_MAX_BYTES 128 /* of a path in a message, with the NUL; longer ones are cut */

struct merging {
        const char *kind; /* of the document */
        struct hfd_patch_outcome *outcome;
};

/* An object of the document, or a member of one. */
struct spot {
        const char *path;                /* for messages; "" = the document, or a list's element */
        const struct hfd_schema *schema; /* of the value; NULL = unknown */
        const struct hfd_schema_field *list; /* the value's field, if a merged list; else NULL */
        bool is_replaced;                    /* it is replaced as a whole */
};

static int merge_object(struct merging *p, const struct spot *at, struct hf__json *target,
                        const struct hf__json *patch);

/* The spot of a member of an object. Writes the member's path to `path`, which the spot borrows. */
static struct spot spot_of_member(const struct spot *object, const char *key,
                                  char path[PATH_MAX_BYTES]) {
        const struct hfd_schema *schema = object->schema;
        bool has_fields = schema && schema->type == HFD_SCHEMA_STRUCT;
        const struct hfd_schema_field *field = has_fields ? hfd_schema_field(schema, key) : NULL;
        bool merged = field && (field->flags & HFD_FIELD_MERGE) != 0;

        (void)snprintf(path, PATH_MAX_BYTES, "%s%s%s", object->path, *object->path ? "." : "", key);
        return (struct spot){path, hfd_schema_of_member(schema, key), merged ? field : NULL,
                             field && (field->flags & HFD_FIELD_REPLACE) != 0};
}

static void remove_members(struct hf__json *container) {
        for (struct hf__json *m; (m = hf__json_first(container));)
                hf__json_free(hf__json_detach(container, m));
}

/* ---- objects ---- */

/* Whether $retainKeys must name this member of the patch. */
static bool must_be_retained(const struct hf__json *m) {
        const char *key = hf__json_key(m);

        return !hf__json_is_null(m) && strcmp(key, HFD_RETAIN_KEYS) != 0 &&
               !hfd_directive_skip(key, HFD_SET_ORDER) &&
               !hfd_directive_skip(key, HFD_DELETE_SCALARS);
}

/* Removes the members of target that are not among keys. A patch that sets others is refused: it
 * would add what it removes. */
static int retain_keys(struct merging *p, struct hf__json *target, const struct hf__json *patch,
                       const struct hf__json *keys) {
        struct hf__json_index by_text = {0};
        int r;

        if (!hf__json_is_array(keys))
                return hfd_patch_malformed(p->outcome, "invalid patch format of retainKeys");
        r = hfd_patch_spend(p->outcome, hf__json_count(target) + hf__json_count(keys));
        if (r == 0)
                r = hf__json_index_init(&by_text, keys, NULL);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                if (must_be_retained(m) && !hf__json_index_find(&by_text, hf__json_key(m)))
                        r = hfd_patch_malformed(p->outcome, "invalid patch format of retainKeys");
        for (struct hf__json *m = hf__json_first(target), *next; m && r == 0; m = next) {
                next = hf__json_next(m);
                if (!hf__json_index_find(&by_text, hf__json_key(m)))
                        hf__json_free(hf__json_detach(target, m));
        }
        hf__json_index_done(&by_text);
        return r;
}

/* Whether the patch has a $setElementOrder for the list under key. The key is the name of a field,
 * which is never as long as the 100 bytes to which it would be cut. */
static bool has_order(const struct hf__json *patch, const char *key) {
        char directive[PATH_MAX_BYTES + sizeof HFD_SET_ORDER];

        (void)snprintf(directive, sizeof directive, HFD_SET_ORDER "%.100s", key);
        return hf__json_get(patch, directive) != NULL;
}

/* The context of merge_element. */
struct list_context {
        struct merging *p;
        struct spot element;
};

/* The callback of list_merge.c. In each element, paths in messages begin again with "". */
static int merge_element(void *ctx, struct hf__json *target, const struct hf__json *patch) {
        const struct list_context *c = ctx;

        return merge_object(c->p, &c->element, target, patch);
}

static int merge_list(struct merging *p, const struct spot *at, struct hf__json *target,
                      const struct hf__json *patch, const struct hf__json *order, bool is_new) {
        assert(at->list && at->schema && at->schema->type == HFD_SCHEMA_LIST);
        struct list_context c = {p, {.path = "", .schema = at->schema->items}};
        const struct hfd_list_merge merge = {.path = at->path,
                                             .key = at->list->merge_key,
                                             .outcome = p->outcome,
                                             .merge_element = merge_element,
                                             .ctx = &c,
                                             .is_new = is_new};

        return hfd_list_merge_apply(&merge, target, patch, order);
}

/* Applies a $setElementOrder: merges the list under key, if patch has that list, and sorts it. */
static int merge_ordered(struct merging *p, const struct spot *at, struct hfd_members *members,
                         const struct hf__json *patch, const char *key,
                         const struct hf__json *order) {
        const struct hf__json *value = hf__json_get(patch, key);
        struct hf__json *target = hfd_members_find(members, key), *made;
        int r;

        if (!hf__json_is_array(order))
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        /* Not a merged list: merge_value handles the value, if the patch has one. */
        if (!at->list || (value && !hf__json_is_array(value))) {
                if (value || !target)
                        return 0;
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        }
        if (hf__json_is_array(target))
                return merge_list(p, at, target, value, order, false);
        if (!value)
                return 0;
        made = hf__json_array();
        r = made ? merge_list(p, at, made, value, order, true) : -ENOMEM;
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

/* Merges one member of patch that is not a directive. */
static int merge_value(struct merging *p, const struct spot *at, struct hfd_members *members,
                       const struct hf__json *patch, const struct hf__json *m) {
        const char *key = hf__json_key(m);
        struct hf__json *target = hfd_members_find(members, key);

        if (hf__json_is_null(m))
                return hfd_members_drop(members, key);
        if (at->list && hf__json_is_array(m) && has_order(patch, key))
                return 0; /* merge_ordered merges it */
        if (hf__json_is_object(m) && hf__json_is_object(target) && !at->is_replaced)
                return merge_object(p, at, target, m);
        if (at->list && hf__json_is_array(m) && hf__json_is_array(target))
                return merge_list(p, at, target, m, NULL, false);
        if (hfd_directive_marks(m) && !(at->is_replaced && hf__json_is_object(target)))
                return hfd_members_drop(members, key); /* there is no object to delete or replace */
        return hfd_members_set(members, key, hfd_directives_copy_without(m));
}

/*
 * Merges one member of patch. `object` contains it. n_orders counts the directives of this object
 * that search the patch.
 */
static int merge_member(struct merging *p, const struct spot *object, struct hfd_members *members,
                        const struct hf__json *patch, const struct hf__json *m, size_t *n_orders) {
        const char *key = hf__json_key(m);
        const char *ordered = hfd_directive_skip(key, HFD_SET_ORDER);
        const char *reduced = hfd_directive_skip(key, HFD_DELETE_SCALARS);
        char path[PATH_MAX_BYTES];

        if (strcmp(key, HFD_DIRECTIVE) == 0 || strcmp(key, HFD_RETAIN_KEYS) == 0)
                return 0; /* merge_object has already read it */
        if (ordered && ++*n_orders > ORDERS_MAX)
                return hfd_patch_malformed(p->outcome,
                                           "invalid patch format of setElementOrder list");
        if (ordered) {
                const struct spot at = spot_of_member(object, ordered, path);
                return merge_ordered(p, &at, members, patch, ordered, m);
        }
        if (reduced)
                return delete_scalars(p, hfd_members_find(members, reduced), m);
        const struct spot at = spot_of_member(object, key, path);
        return merge_value(p, &at, members, patch, m);
}

/* Merges two objects. The recursion is as deep as the patch, whose depth the parser limits. */
static int merge_object(struct merging *p, const struct spot *at, struct hf__json *target,
                        const struct hf__json *patch) {
        const struct hf__json *directive = hf__json_get(patch, HFD_DIRECTIVE);
        const struct hf__json *retain = hf__json_get(patch, HFD_RETAIN_KEYS);
        const char *word = hf__json_text(directive);
        struct hfd_members members;
        size_t n_orders = 0;
        int r = 0;

        if (directive && (!word || (strcmp(word, "replace") != 0 && strcmp(word, "delete") != 0)))
                return hfd_patch_refuse(p->outcome, "unknown patch type: %.60s in map: %s",
                                        word ? word : "", *at->path ? at->path : p->kind);
        if (word)
                remove_members(target);
        if (word && strcmp(word, "delete") == 0)
                return 0;
        if (retain && !word) /* $patch alone decides what stays */
                r = retain_keys(p, target, patch, retain);
        if (r != 0)
                return r;
        r = hfd_members_init(&members, target);
        if (r == 0)
                r = hfd_patch_spend(p->outcome, members.steps + hf__json_count(patch));
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_member(p, at, &members, patch, m, &n_orders);
        hfd_members_done(&members);
        return r;
}

int hfd_strategic_patch_apply(const struct hfd_resource *resource, struct hf__json **document,
                              const struct hf__json *patch, struct hfd_patch_outcome *outcome) {
        struct merging p = {.kind = resource->kind, .outcome = outcome};
        const struct spot document_spot = {.path = "", .schema = resource->schema};

        assert(hf__json_is_object(*document) && hf__json_is_object(patch));
        return merge_object(&p, &document_spot, *document, patch);
}
