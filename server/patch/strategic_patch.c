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
 * A merged list has the order of the patch. Elements that only the document has keep their old
 * order, and stay before the elements that followed them, as in Kubernetes.
 *
 * Invariants: no directive and no null of a patch gets into a document. The merge compares each
 * element of a list with each other one, so a list longer than ELEMENTS_MAX is refused first.
 */
#include "server/patch/strategic_patch.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/patch/members.h"
#include "server/patch/merged_list.h"

#define ELEMENTS_MAX   1000
#define PATH_MAX_BYTES 128 /* with the NUL; longer than any path in merged_list.c */

#define DIRECTIVE   "$patch"
#define RETAIN_KEYS "$retainKeys"
#define SET_ORDER   "$setElementOrder/"
#define DELETE_FROM "$deleteFromPrimitiveList/"

struct merging {
        const char *kind; /* of the document */
        char *why;
};

/* For find_index: without a key, an element identifies itself. */
static const struct hfd_merged_list list_of_scalars = {.key = NULL};

static int merge_object(struct merging *p, const char *path, struct hf__json *target,
                        const struct hf__json *patch);

/* Sets the reason. Always returns HF_E_INVALID. */
static int refuse_patch(struct merging *p, const char *what, const char *where) {
        (void)snprintf(p->why, HFD_PATCH_WHY, "%s: %.120s", what, where);
        return HF_E_INVALID;
}

/* Builds the path of a member; "" if it is too long to be the path of a merged list. */
static void join_path(char out[PATH_MAX_BYTES], const char *path, const char *key) {
        int n = snprintf(out, PATH_MAX_BYTES, "%s%s%s", path, *path ? "." : "", key);

        if (n >= PATH_MAX_BYTES)
                *out = '\0';
}

/* Returns the rest of text after prefix; NULL = text does not begin with prefix. */
static const char *skip_prefix(const char *text, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static bool is_directive(const char *key) {
        return strcmp(key, DIRECTIVE) == 0 || strcmp(key, RETAIN_KEYS) == 0 ||
               skip_prefix(key, SET_ORDER) || skip_prefix(key, DELETE_FROM);
}

/* Returns the value of $patch in an object; NULL = the object has no such directive. */
static const char *get_directive(const struct hf__json *object) {
        return hf__json_text(hf__json_get(object, DIRECTIVE));
}

static void remove_members(struct hf__json *container) {
        for (struct hf__json *m; (m = hf__json_first(container));)
                hf__json_free(hf__json_detach(container, m));
}

/*
 * Whether the copy of a new value omits m. A directive is an instruction and not content, and a
 * null that removes a member has nothing to remove in a new value.
 */
static bool is_omitted(const struct hf__json *m, bool in_array) {
        if (in_array)
                return get_directive(m) != NULL;
        return is_directive(hf__json_key(m)) || hf__json_is_null(m);
}

/*
 * Copies a value that the document does not have yet. Omits directives everywhere, and nulls in
 * objects. NULL = out of memory.
 */
static struct hf__json *copy_without_directives(const struct hf__json *json) {
        bool array = hf__json_is_array(json);
        struct hf__json *copy;
        int r = 0;

        if (!array && !hf__json_is_object(json))
                return hf__json_dup(json);
        copy = array ? hf__json_array() : hf__json_object();
        if (!copy)
                return NULL;
        for (const struct hf__json *m = hf__json_first(json); m && r == 0; m = hf__json_next(m)) {
                if (is_omitted(m, array))
                        continue;
                struct hf__json *inner = copy_without_directives(m);
                r = array ? hf__json_append(copy, inner)
                          : hf__json_add(copy, hf__json_key(m), inner);
        }
        return r != 0 ? hf__json_free(copy) : copy;
}

/* ---- lists: order ---- */

/* Returns the value that identifies an element: its member under the merge key, or itself. */
static const struct hf__json *get_identity(const struct hfd_merged_list *list,
                                           const struct hf__json *element) {
        return list->key ? hf__json_get(element, list->key) : element;
}

/* The index of the element with this identity; SIZE_MAX = there is none. */
static size_t find_index(const struct hfd_merged_list *list, const struct hf__json *elements,
                         const struct hf__json *wanted) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(elements); m; m = hf__json_next(m), i++) {
                const struct hf__json *id = get_identity(list, m);
                if (id && hf__json_equal(id, wanted))
                        return i;
        }
        return SIZE_MAX;
}

static struct hf__json *get_element(const struct hf__json *elements, size_t index) {
        struct hf__json *m = hf__json_first(elements);

        for (; m && index > 0; index--)
                m = hf__json_next(m);
        return m;
}

/* An element of a merged list, with its positions; SIZE_MAX = it is not in that list. */
struct ordered {
        struct hf__json *element;
        size_t wanted;   /* in the order list of the patch */
        size_t previous; /* in the list before the patch */
};

static int compare_wanted_places(const void *a, const void *b) {
        const struct ordered *x = a, *y = b;

        return x->wanted < y->wanted ? -1 : x->wanted > y->wanted;
}

/*
 * Interleaves named and rest into merged; each keeps its own order. An element of rest is put
 * before the next element of named if it preceded that element in the previous list. New elements
 * of rest come last.
 */
static void append_in_order(struct hf__json *merged, const struct ordered *named, size_t n_named,
                            const struct ordered *rest, size_t n_rest) {
        size_t i = 0, j = 0;

        while (i < n_rest || j < n_named) {
                bool from_rest = j == n_named;
                if (i < n_rest && j < n_named && rest[i].previous != SIZE_MAX &&
                    named[j].previous != SIZE_MAX)
                        from_rest = rest[i].previous < named[j].previous;
                (void)hf__json_append(merged, from_rest ? rest[i++].element : named[j++].element);
        }
}

/* Sorts merged: the elements in `order` get that order; append_in_order inserts the others. */
static int order_list(const struct hfd_merged_list *list, struct hf__json *merged,
                      const struct hf__json *order, const struct hf__json *previous) {
        size_t n = hf__json_count(merged), n_named = 0, n_rest = 0;
        struct ordered *named = calloc(n + 1, sizeof *named);
        struct ordered *rest = calloc(n + 1, sizeof *rest);
        struct hf__json *m;

        if (!named || !rest) {
                free(named);
                free(rest);
                return -ENOMEM;
        }
        while ((m = hf__json_first(merged))) {
                const struct hf__json *id = get_identity(list, m);
                struct ordered o = {m, find_index(list, order, id), find_index(list, previous, id)};
                (void)hf__json_detach(merged, m);
                if (o.wanted != SIZE_MAX)
                        named[n_named++] = o;
                else
                        rest[n_rest++] = o;
        }
        assert(n_named + n_rest == n);
        qsort(named, n_named, sizeof *named, compare_wanted_places);
        append_in_order(merged, named, n_named, rest, n_rest);
        free(named);
        free(rest);
        return 0;
}

/* ---- lists: elements ---- */

/* Merges one element of a patch's list into target. */
static int merge_element(struct merging *p, const struct hfd_merged_list *list,
                         struct hf__json *target, const struct hf__json *element) {
        const struct hf__json *id = get_identity(list, element);
        const char *directive = get_directive(element);
        size_t at;

        if (list->key && !hf__json_is_object(element))
                return refuse_patch(p, "an element of the list is no object", list->path);
        if (directive && strcmp(directive, "replace") == 0)
                return 0; /* merge_list has already emptied the list */
        if (!id || hf__json_is_null(id))
                return refuse_patch(p, "an element of the list does not have its merge key",
                                    list->path);
        at = find_index(list, target, id);
        if (directive && strcmp(directive, "delete") != 0)
                return refuse_patch(p, "there is no such $patch", directive);
        if (directive) { /* delete; the stored list may contain duplicates */
                for (; at != SIZE_MAX; at = find_index(list, target, id))
                        hf__json_free(hf__json_detach(target, get_element(target, at)));
                return 0;
        }
        if (at == SIZE_MAX)
                return hf__json_append(target, copy_without_directives(element));
        return list->key ? merge_object(p, "", get_element(target, at), element) : 0;
}

static bool has_replace(const struct hf__json *patch) {
        for (const struct hf__json *m = hf__json_first(patch); m; m = hf__json_next(m)) {
                const char *directive = get_directive(m);
                if (directive && strcmp(directive, "replace") == 0)
                        return true;
        }
        return false;
}

/*
 * Merges patch into target and sorts target by `order`, or by patch if order is NULL. One of the
 * two may be NULL.
 */
static int merge_list(struct merging *p, const struct hfd_merged_list *list,
                      struct hf__json *target, const struct hf__json *patch,
                      const struct hf__json *order) {
        struct hf__json *previous;
        int r = 0;

        assert(list->path);
        if (hf__json_count(target) > ELEMENTS_MAX || hf__json_count(patch) > ELEMENTS_MAX ||
            hf__json_count(order) > ELEMENTS_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the list is too long to be merged: %s",
                               list->path);
                return HF_E_TOO_LARGE;
        }
        previous = hf__json_dup(target);
        if (!previous)
                return -ENOMEM;
        if (list->key && has_replace(patch))
                remove_members(target);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_element(p, list, target, m);
        if (r == 0)
                r = order_list(list, target, order ? order : patch, previous);
        hf__json_free(previous);
        return r;
}

/* Removes the scalars in patch from target, a list of scalars. key is for error messages. */
static int delete_scalars(struct merging *p, struct hf__json *target, const struct hf__json *patch,
                          const char *key) {
        if (!hf__json_is_array(patch) || hf__json_count(patch) > ELEMENTS_MAX ||
            hf__json_count(target) > ELEMENTS_MAX)
                return refuse_patch(p, "no list to delete from, or too long", key);
        for (struct hf__json *m = hf__json_first(target), *next; m; m = next) {
                next = hf__json_next(m);
                if (find_index(&list_of_scalars, patch, m) != SIZE_MAX)
                        hf__json_free(hf__json_detach(target, m));
        }
        return 0;
}

/* ---- objects ---- */

/* Removes the members of target that are not among keys. */
static int retain_keys(struct merging *p, struct hf__json *target, const struct hf__json *keys) {
        if (!hf__json_is_array(keys) || hf__json_count(keys) > ELEMENTS_MAX)
                return refuse_patch(p, "no list of keys, or too long", RETAIN_KEYS);
        for (struct hf__json *m = hf__json_first(target), *next; m; m = next) {
                bool kept = false;
                next = hf__json_next(m);
                for (const struct hf__json *k = hf__json_first(keys); k && !kept;
                     k = hf__json_next(k))
                        kept = hf__json_is_string(k) &&
                               strcmp(hf__json_text(k), hf__json_key(m)) == 0;
                if (!kept)
                        hf__json_free(hf__json_detach(target, m));
        }
        return 0;
}

/* Whether the patch has a $setElementOrder for the list under key. */
static bool has_order(const struct hf__json *patch, const char *key) {
        char directive[PATH_MAX_BYTES + sizeof SET_ORDER];

        (void)snprintf(directive, sizeof directive, SET_ORDER "%.100s", key);
        return hf__json_get(patch, directive) != NULL;
}

/* Applies a $setElementOrder: merges the list under key, if patch has it, and sorts it. */
static int merge_ordered(struct merging *p, const char *path, struct hfd_members *members,
                         const struct hf__json *patch, const char *key,
                         const struct hf__json *order) {
        const struct hfd_merged_list *list = hfd_merged_list_find(p->kind, path);
        const struct hf__json *value = hf__json_get(patch, key);
        struct hf__json *target = hfd_members_find(members, key), *made;
        int r;

        /* If the value is not merged here, merge_value handles it. */
        if (!list || !hf__json_is_array(order) || (value && !hf__json_is_array(value)))
                return value || !target ? 0 : refuse_patch(p, "no list that is ordered", key);
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

/* Merges one member of patch that is not a directive. path is the path of the member. */
static int merge_value(struct merging *p, const char *path, struct hfd_members *members,
                       const struct hf__json *patch, const struct hf__json *m) {
        const struct hfd_merged_list *list = hfd_merged_list_find(p->kind, path);
        const char *key = hf__json_key(m);
        struct hf__json *target = hfd_members_find(members, key);

        if (hf__json_is_null(m))
                return target ? hfd_members_drop(members, target) : 0;
        if (list && hf__json_is_array(m) && has_order(patch, key))
                return 0; /* merge_ordered merges it */
        if (hf__json_is_object(m) && hf__json_is_object(target))
                return merge_object(p, path, target, m);
        if (list && hf__json_is_array(m) && hf__json_is_array(target))
                return merge_list(p, list, target, m, NULL);
        return hfd_members_set(members, key, copy_without_directives(m));
}

/* Merges one member of patch. path is the path of the object that contains it. */
static int merge_member(struct merging *p, const char *path, struct hfd_members *members,
                        const struct hf__json *patch, const struct hf__json *m) {
        const char *key = hf__json_key(m);
        const char *ordered = skip_prefix(key, SET_ORDER);
        const char *reduced = skip_prefix(key, DELETE_FROM);
        char inner[PATH_MAX_BYTES];

        if (strcmp(key, DIRECTIVE) == 0 || strcmp(key, RETAIN_KEYS) == 0)
                return 0; /* merge_object has already applied it */
        if (ordered) {
                join_path(inner, path, ordered);
                return merge_ordered(p, inner, members, patch, ordered, m);
        }
        if (reduced) {
                struct hf__json *target = hfd_members_find(members, reduced);
                return hf__json_is_array(target) ? delete_scalars(p, target, m, key) : 0;
        }
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
        const struct hf__json *directive = hf__json_get(patch, DIRECTIVE);
        const struct hf__json *retain = hf__json_get(patch, RETAIN_KEYS);
        const char *word = hf__json_text(directive);
        struct hfd_members members;
        int r = 0;

        if (directive && (!word || (strcmp(word, "replace") != 0 && strcmp(word, "delete") != 0)))
                return refuse_patch(p, "there is no such $patch", word ? word : "");
        if (word)
                remove_members(target);
        if (word && strcmp(word, "delete") == 0)
                return 0;
        if (retain)
                r = retain_keys(p, target, retain);
        if (r != 0)
                return r;
        r = hfd_members_init(&members, target);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_member(p, path, &members, patch, m);
        hfd_members_done(&members);
        return r;
}

int hfd_strategic_patch_apply(const struct hfd_resource *resource, struct hf__json **document,
                              const struct hf__json *patch, char why[HFD_PATCH_WHY]) {
        struct merging p = {.kind = resource->kind, .why = why};

        assert(hf__json_is_object(*document) && hf__json_is_object(patch));
        return merge_object(&p, "", *document, patch);
}
