/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch: a merge patch that also merges some lists, element by element, and that
 * takes directives:
 *
 *      $patch: replace | delete         of an object, or of an element of a merged list
 *      $retainKeys: [...]               the other members of the object go
 *      $setElementOrder/<list>: [...]   how the merged list is ordered
 *      $deleteFromPrimitiveList/<list>  what goes from a list of scalars
 *
 * Which lists are merged, and by which key their elements are the same, is in the table of lists,
 * for the kinds served here; all others are replaced. The order of a merged list follows the order
 * that the patch gives, between them what only the server has, where it was, as upstream does it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/patch/patch.h"

#define LIST_MAX                                                                                   \
        1000 /* elements of a merged list and of its patch: they are compared each with each */
#define PATH_MAX_BYTES 128

#define SET_ORDER   "$setElementOrder/"
#define DELETE_FROM "$deleteFromPrimitiveList/"

static const struct merged_list {
        const char *kind; /* NULL = every kind */
        const char *path;
        const char *key; /* NULL = of scalars */
} merged_lists[] = {{NULL, "metadata.finalizers", NULL},
                    {NULL, "metadata.ownerReferences", "uid"},
                    {"Namespace", "status.conditions", "type"},
                    {"ServiceAccount", "secrets", "name"}};

struct merging {
        const char *kind;
        char *why;
};

static const struct merged_list no_merge;

static const struct merged_list *find_list(const char *kind, const char *path) {
        for (size_t i = 0; i < sizeof merged_lists / sizeof merged_lists[0]; i++)
                if (strcmp(merged_lists[i].path, path) == 0 &&
                    (!merged_lists[i].kind || strcmp(merged_lists[i].kind, kind) == 0))
                        return &merged_lists[i];
        return &no_merge;
}

bool hfd_list_is_merged(const char *kind, const char *path, const char **ret_key) {
        const struct merged_list *list = find_list(kind, path);

        *ret_key = list->key;
        return list->path != NULL;
}

static int fail(struct merging *p, const char *what, const char *where) {
        (void)snprintf(p->why, HFD_PATCH_WHY, "%s: %.120s", what, where);
        return HF_E_INVALID;
}

static const struct merged_list *list_at(const struct merging *p, const char *path) {
        return find_list(p->kind, path);
}

/* "" stands for a path that is longer than any in the table. */
static void join(char out[PATH_MAX_BYTES], const char *path, const char *key) {
        int n = snprintf(out, PATH_MAX_BYTES, "%s%s%s", path, *path ? "." : "", key);

        if (n >= PATH_MAX_BYTES)
                *out = '\0';
}

static bool is_directive(const char *key) {
        return strcmp(key, "$patch") == 0 || strcmp(key, "$retainKeys") == 0 ||
               strncmp(key, SET_ORDER, sizeof SET_ORDER - 1) == 0 ||
               strncmp(key, DELETE_FROM, sizeof DELETE_FROM - 1) == 0;
}

/* ---- what is only in the patch ---- */

/* A copy without directives, and in objects without nulls. NULL = out of memory. */
static struct hf__json *clean_copy(const struct hf__json *json) {
        bool array = hf__json_is_array(json);
        struct hf__json *copy;
        int r = 0;

        if (!array && !hf__json_is_object(json))
                return hf__json_dup(json);
        copy = array ? hf__json_array() : hf__json_object();
        for (const struct hf__json *m = copy ? hf__json_first(json) : NULL; m && r == 0;
             m = hf__json_next(m)) {
                if (array ? hf__json_text(hf__json_get(m, "$patch")) != NULL
                          : is_directive(hf__json_key(m)) || hf__json_is_null(m))
                        continue;
                struct hf__json *inner = clean_copy(m);
                r = array ? hf__json_append(copy, inner)
                          : hf__json_add(copy, hf__json_key(m), inner);
        }
        return r != 0 ? hf__json_free(copy) : copy;
}

/* ---- lists ---- */

/* What makes elements the same: the element, or its member under the list's key. */
static const struct hf__json *identity(const struct merged_list *list,
                                       const struct hf__json *element) {
        return list->key ? hf__json_get(element, list->key) : element;
}

/* Where in list (of elements, or of their identities) the one with this identity is; SIZE_MAX =
 * nowhere. */
static size_t index_in(const struct merged_list *list, const struct hf__json *elements,
                       const struct hf__json *wanted) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(elements); m; m = hf__json_next(m), i++) {
                const struct hf__json *id = identity(list, m);
                if (id && hf__json_equal(id, wanted))
                        return i;
        }
        return SIZE_MAX;
}

static struct hf__json *element_at(const struct hf__json *elements, size_t index) {
        struct hf__json *m = hf__json_first(elements);

        for (; m && index; index--)
                m = hf__json_next(m);
        return m;
}

struct ordered {
        struct hf__json *element;
        size_t wanted,
                was; /* its places in the patch's order and in the list before; SIZE_MAX = none */
};

static int by_wanted(const void *a, const void *b) {
        const struct ordered *x = a, *y = b;

        return x->wanted < y->wanted ? -1 : x->wanted > y->wanted;
}

/*
 * Orders merged: what order names as it says, and among it the rest in its old order, each before
 * the first of those that it was before.
 */
static int put_in_order(const struct merged_list *list, struct hf__json *merged,
                        const struct hf__json *order, const struct hf__json *before) {
        size_t n = hf__json_count(merged), n_named = 0, n_rest = 0;
        struct ordered *named = calloc(n + 1, sizeof *named), *rest = calloc(n + 1, sizeof *rest);
        struct hf__json *m;

        if (!named || !rest) {
                free(named);
                free(rest);
                return -ENOMEM;
        }
        while ((m = hf__json_first(merged))) {
                const struct hf__json *id = identity(list, m);
                struct ordered o = {m, index_in(list, order, id), index_in(list, before, id)};
                (void)hf__json_detach(merged, m);
                if (o.wanted != SIZE_MAX)
                        named[n_named++] = o;
                else
                        rest[n_rest++] = o;
        }
        qsort(named, n_named, sizeof *named, by_wanted);
        for (size_t i = 0, j = 0; i < n_rest || j < n_named;) {
                bool both = i < n_rest && j < n_named && rest[i].was != SIZE_MAX &&
                            named[j].was != SIZE_MAX;
                bool take_rest = j == n_named || (both && rest[i].was < named[j].was);
                (void)hf__json_append(merged, take_rest ? rest[i++].element : named[j++].element);
        }
        free(named);
        free(rest);
        return 0;
}

static int merge_object(struct merging *p, const char *path, struct hf__json *target,
                        const struct hf__json *patch);

/* One element of a patch's list into target. */
static int merge_element(struct merging *p, const struct merged_list *list, struct hf__json *target,
                         const struct hf__json *element) {
        const struct hf__json *id = identity(list, element);
        const char *directive = hf__json_text(hf__json_get(element, "$patch"));
        size_t at;

        if (list->key && !hf__json_is_object(element))
                return fail(p, "an element of the list is no object", list->path);
        if (directive && strcmp(directive, "replace") == 0)
                return 0; /* the list was emptied */
        if (!id || hf__json_is_null(id))
                return fail(p, "an element of the list does not have its merge key", list->path);
        at = index_in(list, target, id);
        if (directive && strcmp(directive, "delete") != 0)
                return fail(p, "there is no such $patch", directive);
        if (directive) {
                for (; at != SIZE_MAX; at = index_in(list, target, id))
                        hf__json_free(hf__json_detach(target, element_at(target, at)));
                return 0;
        }
        if (at != SIZE_MAX)
                return list->key ? merge_object(p, "", element_at(target, at), element) : 0;
        return hf__json_append(target, clean_copy(element));
}

static bool has_replace(const struct hf__json *patch) {
        for (const struct hf__json *m = hf__json_first(patch); m; m = hf__json_next(m)) {
                const char *directive = hf__json_text(hf__json_get(m, "$patch"));
                if (directive && strcmp(directive, "replace") == 0)
                        return true;
        }
        return false;
}

/* patch and order may be NULL. */
static int merge_list(struct merging *p, const struct merged_list *list, struct hf__json *target,
                      const struct hf__json *patch, const struct hf__json *order) {
        int r = 0;

        if (hf__json_count(target) > LIST_MAX || hf__json_count(patch) > LIST_MAX ||
            hf__json_count(order) > LIST_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the list is too long to be merged: %s",
                               list->path);
                return HF_E_TOO_LARGE;
        }
        struct hf__json *before = hf__json_dup(target);
        if (!before)
                return -ENOMEM;
        if (list->key && has_replace(patch))
                for (struct hf__json *m; (m = hf__json_first(target));)
                        hf__json_free(hf__json_detach(target, m));
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_element(p, list, target, m);
        if (r == 0)
                r = put_in_order(list, target, order ? order : patch, before);
        hf__json_free(before);
        return r;
}

static int delete_from(struct merging *p, struct hf__json *target, const struct hf__json *patch,
                       const char *key) {
        if (!hf__json_is_array(patch) || hf__json_count(patch) > LIST_MAX ||
            hf__json_count(target) > LIST_MAX)
                return fail(p, "no list to delete from, or too long", key);
        for (struct hf__json *m = hf__json_first(target), *next; m; m = next) {
                next = hf__json_next(m);
                if (index_in(&no_merge, patch, m) != SIZE_MAX)
                        hf__json_free(hf__json_detach(target, m));
        }
        return 0;
}

/* ---- objects ---- */

static int retain_keys(struct merging *p, struct hf__json *target, const struct hf__json *keys) {
        if (!hf__json_is_array(keys) || hf__json_count(keys) > LIST_MAX)
                return fail(p, "no list of keys, or too long", "$retainKeys");
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

/* The list under key, or only its order. */
static int merge_ordered(struct merging *p, const char *path, struct hfd_members *members,
                         const struct hf__json *patch, const char *key,
                         const struct hf__json *order) {
        struct hf__json *there = hfd_members_find(members, key);
        const struct hf__json *value = hf__json_get(patch, key);
        const struct merged_list *list = list_at(p, path);

        if (!list->path || !hf__json_is_array(order) || (value && !hf__json_is_array(value)))
                return value || !there ? 0 : fail(p, "no list that is ordered", key);
        if (hf__json_is_array(there))
                return merge_list(p, list, there, value, order);
        if (!value)
                return 0;
        struct hf__json *made = hf__json_array();
        int r = made ? merge_list(p, list, made, value, order) : -ENOMEM;
        if (r == 0)
                return hfd_members_set(members, key, made);
        hf__json_free(made);
        return r;
}

static bool is_ordered(const struct merging *p, const char *path, const struct hf__json *patch,
                       const char *key) {
        char directive[PATH_MAX_BYTES + sizeof SET_ORDER];

        if (!list_at(p, path)->path)
                return false;
        (void)snprintf(directive, sizeof directive, SET_ORDER "%.100s", key);
        return hf__json_get(patch, directive);
}

static int merge_member(struct merging *p, const char *path, struct hfd_members *members,
                        const struct hf__json *patch, const struct hf__json *m) {
        const char *key = hf__json_key(m);
        char inner[PATH_MAX_BYTES];

        if (strcmp(key, "$patch") == 0 || strcmp(key, "$retainKeys") == 0)
                return 0;
        if (strncmp(key, SET_ORDER, sizeof SET_ORDER - 1) == 0) {
                key += sizeof SET_ORDER - 1;
                join(inner, path, key);
                return merge_ordered(p, inner, members, patch, key, m);
        }
        if (strncmp(key, DELETE_FROM, sizeof DELETE_FROM - 1) == 0) {
                struct hf__json *from = hfd_members_find(members, key + sizeof DELETE_FROM - 1);
                return hf__json_is_array(from) ? delete_from(p, from, m, key) : 0;
        }
        struct hf__json *there = hfd_members_find(members, key);
        join(inner, path, key);
        if (hf__json_is_null(m))
                return there ? hfd_members_drop(members, there) : 0;
        if (is_ordered(p, inner, patch, key) && hf__json_is_array(m))
                return 0; /* with its order */
        if (hf__json_is_object(m) && hf__json_is_object(there))
                return merge_object(p, inner, there, m);
        if (hf__json_is_array(m) && hf__json_is_array(there) && list_at(p, inner)->path)
                return merge_list(p, list_at(p, inner), there, m, NULL);
        return hfd_members_set(members, key, clean_copy(m));
}

/* As deep as the patch is. */
static int merge_object(struct merging *p, const char *path, struct hf__json *target,
                        const struct hf__json *patch) {
        const struct hf__json *directive = hf__json_get(patch, "$patch"),
                              *retain = hf__json_get(patch, "$retainKeys");
        const char *word = hf__json_text(directive);
        struct hfd_members members;
        int r = 0;

        if (directive && (!word || (strcmp(word, "replace") != 0 && strcmp(word, "delete") != 0)))
                return fail(p, "there is no such $patch", word ? word : "");
        if (word)
                for (struct hf__json *m; (m = hf__json_first(target));)
                        hf__json_free(hf__json_detach(target, m));
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

int hfd_patch_strategic(const struct hfd_resource *resource, struct hf__json **document,
                        const struct hf__json *patch, char why[HFD_PATCH_WHY]) {
        struct merging p = {.kind = resource->kind, .why = why};

        return merge_object(&p, "", *document, patch);
}
