/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of two versions of an object. Each difference is a path that was added, modified
 * or removed; ownership and conflicts are computed from these three sets.
 *
 * Invariants:
 *
 *  - A comparison takes n log n time. Members are compared pairwise while both versions have them
 *    in the same order, which is the usual case; the rest are found by an index.
 *  - Each kind of change has one builder, and the levels of all builders open and close together.
 */
#include "server/apply/compare.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_index.h"
#include "server/apply/owned_fields.h"
#include "server/apply/shape.h"
#include "server/schema/schema.h"

enum kind { ADDED, MODIFIED, REMOVED, N_KINDS };

struct walk {
        struct hf__arena *scratch;
        struct hfd_fields_builder builders[N_KINDS];
        const struct hf__json *old_managers, *new_managers; /* left out; NULL = there are none */
};

/* The changes of one value. For each kind: whether the value itself changed in this way, and which
 * fields in it did. */
struct result {
        bool self[N_KINDS];
        const struct hfd_fields *below[N_KINDS];
};

static struct result compare_values(struct walk *w, const struct hfd_schema *schema,
                                    const struct hf__json *old, const struct hf__json *new,
                                    unsigned depth);

static void add_result(struct walk *w, const struct hfd_step *step, const struct result *result) {
        for (int k = 0; k < N_KINDS; k++)
                hfd_fields_add(&w->builders[k], step, result->self[k], result->below[k]);
}

/* A value that only one version has. */
static struct result one_sided(struct walk *w, const struct hfd_schema *schema,
                               const struct hf__json *value, enum kind kind, unsigned depth) {
        struct result result = {.self = {[ADDED] = kind == ADDED, [REMOVED] = kind == REMOVED}};

        result.below[kind] = hfd_owned_everything(w->scratch, schema, value, depth);
        return result;
}

/* ---- objects ---- */

static void compare_member(struct walk *w, const struct hfd_schema *schema, const char *key,
                           const struct hf__json *old, const struct hf__json *new, unsigned depth) {
        const struct hfd_step step = {.kind = HFD_STEP_FIELD, .name = key};
        struct result result;

        if (old ? old == w->old_managers : new == w->new_managers)
                return;
        result = compare_values(w, hfd_schema_of_member(schema, key), old, new, depth + 1);
        add_result(w, &step, &result);
}

/* Compares the members of an object from `old` on with those of the object `in`, the new version.
 * The first n_before members of `in` are compared already. */
static void compare_by_index(struct walk *w, const struct hfd_schema *schema,
                             const struct hf__json *old, const struct hf__json *in, size_t n_before,
                             unsigned depth) {
        struct hf__json_index index;

        if (hf__json_index_init(&index, in, NULL) != 0) {
                w->scratch->failed = true;
                return;
        }
        for (const struct hf__json *m = old; m; m = hf__json_next(m)) {
                struct hf__json_index_entry *e = hf__json_index_find(&index, hf__json_key(m));
                bool found = e && e->position >= n_before && e->item;
                compare_member(w, schema, hf__json_key(m), m, found ? e->item : NULL, depth);
                if (found)
                        e->item = NULL;
        }
        for (size_t i = 0; i < index.n; i++) {
                const struct hf__json_index_entry *e = &index.entries[i];
                if (e->item && e->position >= n_before)
                        compare_member(w, schema, e->text, NULL, e->item, depth);
        }
        hf__json_index_done(&index);
}

static void compare_objects(struct walk *w, const struct hfd_schema *schema,
                            const struct hf__json *old, const struct hf__json *new,
                            unsigned depth) {
        const struct hf__json *x = hf__json_first(old), *y = hf__json_first(new);
        size_t n = 0;

        while (x && y && strcmp(hf__json_key(x), hf__json_key(y)) == 0) {
                compare_member(w, schema, hf__json_key(x), x, y, depth);
                x = hf__json_next(x);
                y = hf__json_next(y);
                n++;
        }
        if (x || y)
                compare_by_index(w, schema, x, new, n, depth);
}

/* ---- lists ---- */

/* Compares the elements of both versions that have the same step; x, y: the first such element, or
 * NULL. At least one of x and y is not NULL, and at least one is single (shape.h) or NULL. */
static struct result compare_elements(struct walk *w, const struct hfd_schema *schema,
                                      const struct hfd_element *x, const struct hfd_element *y,
                                      unsigned depth) {
        struct result result = {0};

        if ((!x || x->single) && (!y || y->single))
                return compare_values(w, schema->items, x ? x->value : NULL, y ? y->value : NULL,
                                      depth + 1);
        /* Elements that share a step are one field. If only one version has several elements with
         * this step, that field changes, and so do the fields of the other version's element. */
        if (y && y->single)
                result = one_sided(w, schema->items, y->value, ADDED, depth + 1);
        else if (x && x->single)
                result = one_sided(w, schema->items, x->value, REMOVED, depth + 1);
        result.self[ADDED] = !x || x->single;
        result.self[REMOVED] = !y || y->single;
        if (x && y && (x->single || y->single)) {
                /* Both versions have the path itself. */
                result.self[ADDED] = result.self[REMOVED] = false;
                result.self[MODIFIED] = true;
        }
        return result;
}

/* Whether the elements in two ranges of the sorted lists are equal. */
static bool same_elements(const struct hfd_elements *a, size_t from_a, size_t to_a,
                          const struct hfd_elements *b, size_t from_b, size_t to_b) {
        if (to_a - from_a != to_b - from_b)
                return false;
        for (size_t i = 0; i < to_a - from_a; i++)
                if (!hf__json_equal(a->sorted[from_a + i].value, b->sorted[from_b + i].value))
                        return false;
        return true;
}

/* The end of the range of sorted elements that have the same step as the element at `from`. */
static size_t end_of_equal(const struct hfd_elements *elements, size_t from) {
        size_t to = from + 1;

        assert(from < elements->n);
        while (to < elements->n &&
               hfd_step_compare(&elements->sorted[from].step, &elements->sorted[to].step) == 0)
                to++;
        return to;
}

/* False: an element has no step, or memory ran out (scratch->failed). */
static bool compare_lists(struct walk *w, const struct hfd_schema *schema,
                          const struct hf__json *old, const struct hf__json *new, unsigned depth) {
        struct hfd_elements a, b;
        size_t i = 0, k = 0;

        if (hfd_shape_elements(w->scratch, schema, old, &a, NULL) != 0 ||
            hfd_shape_elements(w->scratch, schema, new, &b, NULL) != 0)
                return false;
        while (i < a.n || k < b.n) {
                const struct hfd_element *x = i < a.n ? &a.sorted[i] : NULL;
                const struct hfd_element *y = k < b.n ? &b.sorted[k] : NULL;
                int order = x ? -1 : 1;
                if (x && y)
                        order = hfd_step_compare(&x->step, &y->step);
                x = order <= 0 ? x : NULL;
                y = order >= 0 ? y : NULL;
                size_t to_a = x ? end_of_equal(&a, i) : i, to_b = y ? end_of_equal(&b, k) : k;
                struct result result = {0};
                if (x && y && !x->single && !y->single)
                        result.self[MODIFIED] = !same_elements(&a, i, to_a, &b, k, to_b);
                else
                        result = compare_elements(w, schema, x, y, depth);
                add_result(w, x ? &x->step : &y->step, &result);
                i = to_a;
                k = to_b;
        }
        return true;
}

/* ---- values ---- */

/* Compares values of different shapes, of which one is a leaf: all fields of the other one are
 * added or removed. */
static struct result compare_shapes(struct walk *w, const struct hfd_schema *schema,
                                    const struct hf__json *old, const struct hf__json *new,
                                    unsigned depth) {
        struct result result = {.self = {[MODIFIED] = !hf__json_equal(old, new)}};

        result.below[REMOVED] = hfd_owned_everything(w->scratch, schema, old, depth);
        result.below[ADDED] = hfd_owned_everything(w->scratch, schema, new, depth);
        return result;
}

static struct result compare_contents(struct walk *w, const struct hfd_schema *schema,
                                      const struct hf__json *old, const struct hf__json *new,
                                      enum hfd_shape shape, unsigned depth) {
        size_t levels[N_KINDS];
        struct result result = {0};
        bool divided = true;

        for (int k = 0; k < N_KINDS; k++)
                levels[k] = hfd_fields_open(&w->builders[k]);
        if (shape == HFD_SHAPE_OBJECT)
                compare_objects(w, schema, old, new, depth);
        else
                divided = compare_lists(w, schema, old, new, depth);
        for (int k = 0; k < N_KINDS; k++)
                result.below[k] = hfd_fields_close(&w->builders[k], levels[k]);
        if (!divided)
                result = (struct result){.self = {[MODIFIED] = !hf__json_equal(old, new)}};
        return result;
}

/* At least one of old and new is not NULL. */
static struct result compare_values(struct walk *w, const struct hfd_schema *schema,
                                    const struct hf__json *old, const struct hf__json *new,
                                    unsigned depth) {
        enum hfd_shape shape;

        if (!old)
                return one_sided(w, schema, new, ADDED, depth);
        if (!new)
                return one_sided(w, schema, old, REMOVED, depth);
        shape = hfd_shape_of(schema, old, depth);
        if (shape != hfd_shape_of(schema, new, depth))
                return compare_shapes(w, schema, old, new, depth);
        if (shape == HFD_SHAPE_LEAF) /* there are no fields below */
                return (struct result){.self = {[MODIFIED] = !hf__json_equal(old, new)}};
        return compare_contents(w, schema, old, new, shape, depth);
}

struct hfd_changes hfd_compare(struct hf__arena *scratch, const struct hfd_schema *schema,
                               const struct hf__json *old, const struct hf__json *new) {
        struct walk w = {.scratch = scratch,
                         .old_managers = hf__json_path(old, "metadata.managedFields"),
                         .new_managers = hf__json_path(new, "metadata.managedFields")};
        struct result result;

        for (int k = 0; k < N_KINDS; k++)
                w.builders[k].scratch = scratch;
        result = compare_contents(&w, schema, old, new, HFD_SHAPE_OBJECT, 0);
        return (struct hfd_changes){.added = result.below[ADDED],
                                    .modified = result.below[MODIFIED],
                                    .removed = result.below[REMOVED]};
}
