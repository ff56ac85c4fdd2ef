/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges an applied configuration into an object.
 *
 * Invariants: config is not changed, and object gets copies of its values, because the caller still
 * needs config for a second merge. Members and elements are found by indexes, so a merge takes
 * n log n time.
 */
#include "server/apply/merge.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/apply/shape.h"
#include "server/schema/schema.h"

static int merge_value(struct hf__arena *scratch, const struct hfd_schema *schema,
                       struct hf__json *container, struct hf__json *value,
                       const struct hf__json *config, unsigned depth);

/* ---- objects ---- */

static int merge_object(struct hf__arena *scratch, const struct hfd_schema *schema,
                        struct hf__json *object, const struct hf__json *config, unsigned depth) {
        struct hf__json_index index;
        int r = hf__json_index_init(&index, object, NULL);

        for (const struct hf__json *m = hf__json_first(config); m && r == 0; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                struct hf__json_index_entry *e = hf__json_index_find(&index, key);
                if (!e) {
                        r = hf__json_add(object, key, hf__json_dup(m));
                } else if (e->item) {
                        r = merge_value(scratch, hfd_schema_of_member(schema, key), object, e->item,
                                        m, depth + 1);
                        /* merge_value may have freed the item. Only a configuration that names a
                         * key twice comes here again, and decoding excludes that. */
                        e->item = NULL;
                }
        }
        hf__json_index_done(&index);
        return r;
}

/* ---- lists ---- */

#define NONE ((size_t)-1)

/* A merge of two lists. The step of an element (sets/step.h) is its identity in the list: its keys,
 * or its value. `theirs` are the elements of the object, `ours` those of the config. */
struct lists {
        struct hf__arena *scratch;
        const struct hfd_schema *schema;
        struct hf__json *list; /* the object's; its elements are detached and appended again */
        unsigned depth;
        struct hfd_elements theirs, ours;
        size_t *our_index; /* for each of theirs: the position of ours with its step, or NONE */
        bool *placed;      /* for each of theirs: it is in the list again */
        bool *done;        /* for each of ours: it is in the list */
        /* For each position in ours: the first position from there on whose element is also among
         * theirs, or NONE. One more entry, for the end of ours, is NONE. */
        size_t *next_shared;
};

static int index_lists(struct lists *l) {
        size_t next = NONE;

        l->our_index = hf__arena_alloc(l->scratch, l->theirs.n * sizeof *l->our_index);
        l->placed = hf__arena_alloc(l->scratch, l->theirs.n * sizeof *l->placed);
        l->done = hf__arena_alloc(l->scratch, l->ours.n * sizeof *l->done);
        l->next_shared = hf__arena_alloc(l->scratch, (l->ours.n + 1) * sizeof *l->next_shared);
        if (l->scratch->failed)
                return -ENOMEM;
        for (size_t i = 0; i < l->theirs.n; i++) {
                const struct hfd_element *e = hfd_shape_find(&l->ours, &l->theirs.in_order[i].step);
                l->our_index[i] = e ? e->position : NONE;
                l->placed[i] = false;
        }
        l->next_shared[l->ours.n] = NONE;
        for (size_t i = l->ours.n; i-- > 0;) {
                next = hfd_shape_find(&l->theirs, &l->ours.in_order[i].step) ? i : next;
                l->next_shared[i] = next;
                l->done[i] = false;
        }
        return 0;
}

static int append_theirs(struct lists *l, size_t i) {
        assert(i < l->theirs.n);
        l->placed[i] = true;
        return hf__json_append(l->list, l->theirs.in_order[i].value);
}

/*
 * Appends one of ours, merged into the element of theirs with the same step. If several of theirs
 * have that step, or the elements are leaves that differ, ours replaces theirs. Elements that were
 * replaced are freed at the end, because steps borrow texts from them.
 */
static int append_ours(struct lists *l, size_t i) {
        assert(i < l->ours.n);
        const struct hfd_schema *schema = l->schema->items;
        const struct hfd_element *our = &l->ours.in_order[i];
        const struct hfd_element *their = hfd_shape_find(&l->theirs, &our->step);
        bool divided = hfd_shape_of(schema, our->value, l->depth + 1) != HFD_SHAPE_LEAF;
        int r;

        l->done[i] = true;
        if (!their || !their->single || (!divided && !hf__json_equal(their->value, our->value)))
                return hf__json_append(l->list, hf__json_dup(our->value));
        r = append_theirs(l, their->position);
        if (r != 0 || !divided)
                return r;
        return merge_value(l->scratch, schema, l->list, their->value, our->value, l->depth + 1);
}

/*
 * Appends all elements in Kubernetes' order. Both lists are walked at the same time, by i and k. An
 * element that only the object has stays before the next element that both lists have. An element
 * that both lists have, and that is not the next such element of the config, is passed over; it is
 * appended when the walk of the config reaches it.
 */
static int append_merged(struct lists *l) {
        size_t i = 0, k = 0, n = l->ours.n;
        int r = 0;

        while (r == 0 && (i < l->theirs.n || k < n)) {
                size_t our = i < l->theirs.n ? l->our_index[i] : NONE;
                size_t next = l->next_shared[k];
                if (i < l->theirs.n && our == NONE) {
                        r = append_theirs(l, i++);
                        continue;
                }
                if (our != NONE && our != k && k < n && next != NONE && next != our) {
                        i++;
                        continue;
                }
                i += our != NONE && (our == k || l->done[our]);
                if (k < n)
                        r = append_ours(l, k++);
        }
        return r;
}

/* Merges two lists. *ret_divided false: an element of one of them has no step, and nothing was
 * done. */
static int merge_list(struct hf__arena *scratch, const struct hfd_schema *schema,
                      struct hf__json *list, const struct hf__json *config, unsigned depth,
                      bool *ret_divided) {
        struct lists l = {.scratch = scratch, .schema = schema, .list = list, .depth = depth};
        int r;

        *ret_divided = hfd_shape_elements(scratch, schema, list, &l.theirs, NULL) == 0 &&
                       hfd_shape_elements(scratch, schema, config, &l.ours, NULL) == 0;
        if (!*ret_divided)
                return scratch->failed ? -ENOMEM : 0;
        r = index_lists(&l);
        if (r != 0)
                return r;
        for (size_t i = 0; i < l.theirs.n; i++)
                (void)hf__json_detach(list, l.theirs.in_order[i].value);
        r = append_merged(&l);
        for (size_t i = 0; i < l.theirs.n; i++)
                if (!l.placed[i])
                        hf__json_free(l.theirs.in_order[i].value);
        return r;
}

/* ---- values ---- */

static int merge_value(struct hf__arena *scratch, const struct hfd_schema *schema,
                       struct hf__json *container, struct hf__json *value,
                       const struct hf__json *config, unsigned depth) {
        enum hfd_shape shape = hfd_shape_of(schema, config, depth);
        bool divided = true;
        int r = 0;

        /* An equal leaf is not replaced: it may be the key of a list's element, and the step of
         * that element borrows its text. */
        if (shape == HFD_SHAPE_LEAF && hf__json_equal(value, config))
                return 0;
        if (shape == HFD_SHAPE_LEAF || shape != hfd_shape_of(schema, value, depth))
                return hf__json_replace(container, value, hf__json_dup(config));
        if (shape == HFD_SHAPE_OBJECT)
                return merge_object(scratch, schema, value, config, depth);
        r = merge_list(scratch, schema, value, config, depth, &divided);
        if (divided || r != 0)
                return r;
        return hf__json_replace(container, value, hf__json_dup(config));
}

int hfd_merge(struct hf__arena *scratch, const struct hfd_schema *schema, struct hf__json *object,
              const struct hf__json *config) {
        return merge_object(scratch, schema, object, config, 0);
}
