/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merge of one list, in these steps, as in Kubernetes:
 *
 *      check     the types of all elements of patch and order list; and that the order list, unless
 *                empty, has the patch's elements in their order, except those with a directive
 *      replace   if an element has `$patch: replace`, target becomes empty
 *      delete    each element with `$patch: delete` removes all elements with its identity
 *      merge     each other element is merged into the first one with its identity, or appended;
 *                but a list of objects that is new or was replaced gets all of them
 *      order     the elements in the order list (without one: in the patch) get its order; the
 *                others keep their order
 *
 * Invariant: of an element that the patch neither names nor removes, the merge visits at most the
 * members up to the merge key, without their contents. A patch can name one element many thousand
 * times, and each time the lists in that element are merged again; the steps of these merges have a
 * limit of their own (HFD_PATCH_REPEATS_MAX).
 */
#include "server/patch/list_merge.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/patch/directives.h"
#include "server/patch/merge_keys.h"

/* The state of one merge. */
struct merging {
        const struct hfd_list_merge *merge;
        struct hf__json *target;
        const struct hf__json *patch, *order; /* may be NULL */

        struct hfd_merge_keys previous; /* of target before the merge */
        struct hfd_merge_keys by_patch; /* of patch */
        struct hf__json **current; /* owned; the element of target at each previous position; NULL =
                                      it was deleted */
        struct hf__json **made;    /* owned; indexed like patch: for each identity, at the position
                                      of its first element in patch, what was appended for it;
                                      NULL = nothing */
};

/* ---- check ---- */

/* The names of Go's types, as in Kubernetes' messages; also 1.0 counts as an int64. */
static const char *type_name(const struct hf__json *json) {
        int64_t number;

        if (hf__json_is_object(json))
                return "map[string]interface {}";
        if (hf__json_is_array(json))
                return "[]interface {}";
        if (hf__json_is_string(json))
                return "string";
        if (hf__json_is_number(json))
                return hf__json_integer(json, &number) ? "int64" : "float64";
        return hf__json_is_bool(json) ? "bool" : "nil";
}

static bool is_directive(const struct hf__json *element, const char *word) {
        const char *directive = hfd_directive_get(element);

        return directive && strcmp(directive, word) == 0;
}

/* Checks that an element has the right type, no directive but `replace` or `delete`, and, unless it
 * is a `replace`, an identity. */
static int check_element(const struct hfd_list_merge *merge, const struct hf__json *element) {
        const char *key = merge->key, *directive = hfd_directive_get(element);
        const char *expected = key ? "map[string]interface {}" : "string";
        bool fits = key ? hf__json_is_object(element) : hf__json_is_string(element);
        const struct hf__json *identity = key ? hf__json_get(element, key) : element;

        if (!fits)
                return hfd_patch_refuse(merge->outcome, "%s: expected a %s, but received a %s",
                                        merge->path, expected, type_name(element));
        if (directive && strcmp(directive, "replace") == 0)
                return 0;
        if (directive && strcmp(directive, "merge") == 0)
                return hfd_patch_refuse(merge->outcome,
                                        "merging lists cannot yet be specified in the patch");
        if (directive && strcmp(directive, "delete") != 0)
                return hfd_patch_refuse(merge->outcome, "unknown patch type: %.60s in map: %s",
                                        directive, merge->path);
        if (!identity || hf__json_is_null(identity))
                return hfd_patch_refuse(merge->outcome,
                                        "map: %s does not contain declared merge key: %s",
                                        merge->path, key ? key : "");
        if (hf__json_is_object(identity) || hf__json_is_array(identity))
                return hfd_patch_refuse(merge->outcome,
                                        "%s: merge key %s: expected a scalar, but received a %s",
                                        merge->path, key ? key : "", type_name(identity));
        return 0;
}

static int check_types(const struct merging *m) {
        int r = hfd_patch_spend(m->merge->outcome, hf__json_count(m->order));

        for (const struct hf__json *e = hf__json_first(m->patch); e && r == 0; e = hf__json_next(e))
                r = check_element(m->merge, e);
        for (const struct hf__json *e = hf__json_first(m->order); e && r == 0; e = hf__json_next(e))
                r = check_element(m->merge, e);
        return r;
}

/* The first element of the order list from `o` on that has the identity of e; NULL = none. e is
 * read once, because its merge key may come after many other members. */
static const struct hf__json *find_in_order(const struct hf__json *e, const struct hf__json *o,
                                            const char *key) {
        char of_e[HFD_MERGE_KEY_TEXT], of_o[HFD_MERGE_KEY_TEXT];
        const struct hfd_merge_key wanted = hfd_merge_key_of(e, key, of_e);

        for (; o; o = hf__json_next(o)) {
                const struct hfd_merge_key found = hfd_merge_key_of(o, key, of_o);
                if (hfd_merge_key_is_same(&wanted, &found))
                        break;
        }
        return o;
}

/* Checks that the order list has the elements of the patch, in their order. Directives are not
 * elements. An order list without elements says nothing. */
static int check_order(const struct merging *m) {
        const struct hf__json *o = hf__json_first(m->order);

        if (!o)
                return 0;
        for (const struct hf__json *e = hf__json_first(m->patch); e; e = hf__json_next(e)) {
                if (m->merge->key && hfd_directive_get(e))
                        continue;
                o = find_in_order(e, o, m->merge->key);
                if (!o)
                        return hfd_patch_refuse(m->merge->outcome,
                                                "%s: the order in the patch list doesn't match the "
                                                "$setElementOrder list",
                                                m->merge->path);
                o = hf__json_next(o);
        }
        return 0;
}

/* ---- replace and delete ---- */

/* Whether an element of the patch says that the patch replaces the list. */
static bool has_replace(const struct hf__json *patch) {
        for (const struct hf__json *e = hf__json_first(patch); e; e = hf__json_next(e))
                if (is_directive(e, "replace"))
                        return true;
        return false;
}

static void delete_element(struct merging *m, size_t position) {
        hf__json_free(hf__json_detach(m->target, m->current[position]));
        m->current[position] = NULL;
}

/* Deletes all elements with the identity of an element of the patch; the stored list may contain
 * duplicates. */
static void delete_same(struct merging *m, const struct hf__json *element) {
        const struct hfd_merge_key *entry = hfd_merge_keys_find(&m->previous, element);

        /* If the first one is already deleted, so are the others. */
        if (!entry || !m->current[entry->position])
                return;
        do
                delete_element(m, entry++->position);
        while (hfd_merge_keys_repeats(&m->previous, entry));
}

/* Applies the elements of the patch that are directives. */
static void apply_directives(struct merging *m) {
        if (!m->merge->key)
                return;
        if (has_replace(m->patch))
                for (size_t i = 0; i < m->previous.n_elements; i++)
                        delete_element(m, i);
        for (const struct hf__json *e = hf__json_first(m->patch); e; e = hf__json_next(e))
                if (is_directive(e, "delete"))
                        delete_same(m, e);
}

/* ---- merge ---- */

/*
 * The element of target into which an element of the patch is merged; NULL = the latter must be
 * appended. first: the position of the first element of the patch with this identity.
 */
static struct hf__json *find_target(const struct merging *m, const struct hf__json *element,
                                    size_t first) {
        const struct hfd_merge_key *entry = hfd_merge_keys_find(&m->previous, element);

        if (entry && m->current[entry->position])
                return m->current[entry->position];
        return m->made[first];
}

/* A list of objects that is new, or that replaces the old one, gets each element of the patch that
 * is no directive, as in Kubernetes: several may have the same key, such as the addresses of a node
 * with two families. */
static int copy_elements(struct merging *m) {
        int r = 0;

        for (const struct hf__json *e = hf__json_first(m->patch); e && r == 0; e = hf__json_next(e))
                if (!hfd_directive_get(e))
                        r = hf__json_append(m->target, hfd_directives_copy_without(e));
        return r;
}

/* Merges an element of the patch into one of target. again: the patch has named it before. */
static int merge_into(const struct merging *m, struct hf__json *found,
                      const struct hf__json *element, bool again) {
        m->merge->outcome->repeating += again;
        int r = m->merge->merge_element(m->merge->ctx, found, element);
        m->merge->outcome->repeating -= again;
        return r;
}

static int merge_elements(struct merging *m) {
        const char *key = m->merge->key;
        size_t position = 0;
        int r = 0;

        if (key && (m->merge->is_new || has_replace(m->patch)))
                return copy_elements(m);
        for (const struct hf__json *e = hf__json_first(m->patch); e && r == 0;
             e = hf__json_next(e), position++) {
                if (key && hfd_directive_get(e))
                        continue;
                /* Never NULL: check_element has refused elements without an identity. */
                size_t first = hfd_merge_keys_find(&m->by_patch, e)->position;
                struct hf__json *found = find_target(m, e, first);
                if (found && key)
                        r = merge_into(m, found, e, position > first);
                if (found)
                        continue;
                m->made[first] = hfd_directives_copy_without(e);
                r = hf__json_append(m->target, m->made[first]);
        }
        return r;
}

/* ---- order ---- */

/* An element of the merged list, with its positions in three lists; SIZE_MAX = not in this list. */
struct ordered {
        struct hf__json *element;
        size_t wanted;   /* in the order list of the patch */
        size_t previous; /* in the list before the patch */
        size_t merged;   /* in the merged list; keeps the order of duplicates */
};

static int compare_wanted(const void *a, const void *b) {
        const struct ordered *x = a, *y = b;

        if (x->wanted != y->wanted)
                return x->wanted < y->wanted ? -1 : 1;
        return x->merged < y->merged ? -1 : x->merged > y->merged;
}

static size_t find_position(const struct hfd_merge_keys *list, const struct hf__json *element) {
        const struct hfd_merge_key *entry = hfd_merge_keys_find(list, element);

        return entry ? entry->position : SIZE_MAX;
}

/*
 * Appends the elements of named and rest to target; each of the two keeps its own order. An element
 * of rest comes before the next element of named if it preceded that element in the previous list.
 * Elements of rest that are new come last. Appending a detached element needs no memory, so it does
 * not fail.
 */
static void append_in_order(struct hf__json *target, const struct ordered *named, size_t n_named,
                            const struct ordered *rest, size_t n_rest) {
        size_t i = 0, j = 0;

        while (i < n_rest || j < n_named) {
                bool from_rest = j == n_named;
                if (i < n_rest && j < n_named && rest[i].previous != SIZE_MAX &&
                    named[j].previous != SIZE_MAX)
                        from_rest = rest[i].previous < named[j].previous;
                (void)hf__json_append(target, from_rest ? rest[i++].element : named[j++].element);
        }
}

/* Moves the elements of target to two arrays: to named if by_order has them, else to rest. An
 * element stays valid while it is detached, and append_in_order puts each of them back. */
static void split_elements(struct merging *m, const struct hfd_merge_keys *by_order,
                           struct ordered *named, size_t *n_named, struct ordered *rest,
                           size_t *n_rest) {
        struct hf__json *e;

        for (size_t i = 0; (e = hf__json_first(m->target)); i++) {
                struct ordered o = {e, find_position(by_order, e), find_position(&m->previous, e),
                                    i};
                (void)hf__json_detach(m->target, e);
                if (o.wanted != SIZE_MAX)
                        named[(*n_named)++] = o;
                else
                        rest[(*n_rest)++] = o;
        }
}

/* Sorts target by the order list or, without one, by the patch. 0 or -ENOMEM. */
static int order_elements(struct merging *m) {
        size_t n = hf__json_count(m->target), n_named = 0, n_rest = 0;
        /* Each half has room for all elements. + 1: calloc(0) may return NULL. */
        struct ordered *both = calloc(2 * n + 1, sizeof *both);
        struct hfd_merge_keys by_order;
        int r = hfd_merge_keys_init(&by_order, m->order ? m->order : m->patch, m->merge->key);

        if (r == 0 && !both)
                r = -ENOMEM;
        if (r == 0) {
                split_elements(m, &by_order, both, &n_named, both + n, &n_rest);
                assert(n_named + n_rest == n);
                qsort(both, n_named, sizeof *both, compare_wanted);
                append_in_order(m->target, both, n_named, both + n, n_rest);
        }
        hfd_merge_keys_done(&by_order);
        free(both);
        return r;
}

/* ---- the merge ---- */

/* Makes the lists of the identities in target and patch. 0, -ENOMEM or HF_E_TOO_LARGE; call
 * end_merge in any case. */
static int begin_merge(struct merging *m) {
        const char *key = m->merge->key;
        size_t i = 0;
        int r = hfd_merge_keys_init(&m->previous, m->target, key);
        int r2 = hfd_merge_keys_init(&m->by_patch, m->patch, key);

        /* + 1: calloc(0) may return NULL. */
        m->current = calloc(m->previous.n_elements + 1, sizeof *m->current);
        m->made = calloc(m->by_patch.n_elements + 1, sizeof *m->made);
        if (r != 0 || r2 != 0 || !m->current || !m->made)
                return -ENOMEM;
        for (struct hf__json *e = hf__json_first(m->target); e; e = hf__json_next(e))
                m->current[i++] = e;
        return hfd_patch_spend(m->merge->outcome, m->previous.steps + m->by_patch.steps);
}

static void end_merge(struct merging *m) {
        hfd_merge_keys_done(&m->previous);
        hfd_merge_keys_done(&m->by_patch);
        free(m->current);
        free(m->made);
}

int hfd_list_merge_apply(const struct hfd_list_merge *merge, struct hf__json *target,
                         const struct hf__json *patch, const struct hf__json *order) {
        struct merging m = {.merge = merge, .target = target, .patch = patch, .order = order};
        int r = check_types(&m);

        assert(merge->path && hf__json_is_array(target));
        if (r == 0)
                r = check_order(&m);
        if (r != 0)
                return r;
        r = begin_merge(&m);
        if (r == 0) {
                apply_directives(&m);
                r = merge_elements(&m);
        }
        if (r == 0)
                r = order_elements(&m);
        end_merge(&m);
        return r;
}

int hfd_list_merge_delete_scalars(struct hfd_patch_outcome *outcome, struct hf__json *target,
                                  const struct hf__json *scalars) {
        struct hf__json_index by_text = {0};
        int r;

        assert(hf__json_is_array(target) && hf__json_is_array(scalars));
        for (const struct hf__json *e = hf__json_first(scalars); e; e = hf__json_next(e))
                if (!hf__json_is_string(e))
                        return hfd_patch_refuse(outcome, "expected a string, but received a %s",
                                                type_name(e));
        r = hfd_patch_spend(outcome, hf__json_count(target) + hf__json_count(scalars));
        if (r == 0)
                r = hf__json_index_init(&by_text, scalars, NULL);
        for (struct hf__json *e = hf__json_first(target), *next; e && r == 0; e = next) {
                next = hf__json_next(e);
                if (hf__json_is_string(e) && hf__json_index_find(&by_text, hf__json_text(e)))
                        hf__json_free(hf__json_detach(target, e));
        }
        hf__json_index_done(&by_text);
        return r;
}
