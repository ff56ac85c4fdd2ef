/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on sets of fields.
 *
 * Invariant: each field of a set is a member, or has fields below. So a set is empty only if it is
 * NULL, and two equal sets have equal tries.
 *
 * Where one argument may be much smaller than the other, fields are found by a binary search: an
 * object can have many managers, and each of their small sets is compared with one large set of
 * changes.
 */
#include "server/apply/sets/fields.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- building ---- */

/* Doubles the space of the builder. False: memory is exhausted. */
static bool grow_fields(struct hfd_fields_builder *builder) {
        size_t space = builder->space ? 2 * builder->space : 8;
        struct hfd_field *fields = hf__arena_alloc(builder->scratch, space * sizeof *fields);

        if (!fields)
                return false;
        if (builder->n > 0)
                memcpy(fields, builder->fields, builder->n * sizeof *fields);
        builder->fields = fields;
        builder->space = space;
        return true;
}

void hfd_fields_add(struct hfd_fields_builder *builder, const struct hfd_step *step, bool member,
                    const struct hfd_fields *below) {
        if ((!member && !below) || (builder->n == builder->space && !grow_fields(builder)))
                return;
        builder->fields[builder->n++] = (struct hfd_field){*step, member, below};
}

static int order_of_fields(const void *a, const void *b) {
        const struct hfd_field *x = a, *y = b;

        return hfd_step_compare(&x->step, &y->step);
}

/* Sorts the fields. They are often in order already, because the members of the object are. */
static void sort_fields(struct hfd_field *fields, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (order_of_fields(&fields[i - 1], &fields[i]) > 0) {
                        qsort(fields, n, sizeof *fields, order_of_fields);
                        return;
                }
}

/* The union of what is below the n fields. All fields below are collected and sorted once: uniting
 * one set after the other would copy the growing set each time, and a client decides how often it
 * writes the same step in another form. */
static const struct hfd_fields *join_below(struct hf__arena *scratch, const struct hfd_field *at,
                                           size_t n) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        const struct hfd_fields *only = NULL;
        size_t n_sets = 0;

        for (size_t i = 0; i < n; i++)
                if (at[i].below) {
                        only = at[i].below;
                        n_sets++;
                }
        if (n_sets < 2)
                return only;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; at[i].below && k < at[i].below->n; k++) {
                        const struct hfd_field *field = &at[i].below->at[k];
                        hfd_fields_add(&builder, &field->step, field->member, field->below);
                }
        return hfd_fields_close(&builder, 0);
}

/* Makes one field of those with the same step. The fields are sorted. Returns how many remain. */
static size_t join_equal(struct hf__arena *scratch, struct hfd_field *fields, size_t n) {
        size_t n_kept = 0, to;

        for (size_t from = 0; from < n; from = to) {
                struct hfd_field joined = fields[from];

                for (to = from + 1; to < n && order_of_fields(&fields[from], &fields[to]) == 0;
                     to++)
                        joined.member = joined.member || fields[to].member;
                joined.below = join_below(scratch, fields + from, to - from);
                fields[n_kept++] = joined;
        }
        return n_kept;
}

const struct hfd_fields *hfd_fields_close(struct hfd_fields_builder *builder, size_t level) {
        struct hfd_fields *fields;
        size_t n;

        assert(level <= builder->n);
        n = builder->n - level;
        builder->n = level;
        if (n == 0)
                return NULL;
        sort_fields(builder->fields + level, n);
        n = join_equal(builder->scratch, builder->fields + level, n);
        fields = hf__arena_alloc(builder->scratch, sizeof *fields + n * sizeof fields->at[0]);
        if (!fields)
                return NULL;
        fields->n = n;
        memcpy(fields->at, builder->fields + level, n * sizeof fields->at[0]);
        return fields;
}

/* ---- search ---- */

/* The index of the first field, at or after `low`, whose step is not smaller than this one. */
static size_t bisect_fields(const struct hfd_fields *fields, size_t low,
                            const struct hfd_step *step) {
        size_t high = fields->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (hfd_step_compare(&fields->at[middle].step, step) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Finds the field with this step at or after *at, and moves *at to where it is or would be. NULL =
 * there is none. */
static const struct hfd_field *find_from(const struct hfd_fields *fields, size_t *at,
                                         const struct hfd_step *step) {
        if (!fields)
                return NULL;
        *at = bisect_fields(fields, *at, step);
        if (*at == fields->n || hfd_step_compare(&fields->at[*at].step, step) != 0)
                return NULL;
        return &fields->at[*at];
}

const struct hfd_field *hfd_fields_find(const struct hfd_fields *fields,
                                        const struct hfd_step *step) {
        size_t at = 0;

        return find_from(fields, &at, step);
}

size_t hfd_fields_count(const struct hfd_fields *fields) {
        size_t n = 0;

        for (size_t i = 0; fields && i < fields->n; i++)
                n += fields->at[i].member + hfd_fields_count(fields->at[i].below);
        return n;
}

/* ---- comparison ---- */

bool hfd_fields_equal(const struct hfd_fields *a, const struct hfd_fields *b) {
        if (a == b || !a || !b)
                return a == b;
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (hfd_step_compare(&a->at[i].step, &b->at[i].step) != 0 ||
                    a->at[i].member != b->at[i].member ||
                    !hfd_fields_equal(a->at[i].below, b->at[i].below))
                        return false;
        return true;
}

/* ---- operations ---- */

/* Finds the first field of b that adds something to a; b->n: there is none. *ret_below: the union
 * of what is below it and below the same field of a, if a has it. */
static size_t find_addition(struct hf__arena *scratch, const struct hfd_fields *a,
                            const struct hfd_fields *b, const struct hfd_fields **ret_below) {
        size_t at = 0, k;

        for (k = 0; k < b->n; k++) {
                const struct hfd_field *y = &b->at[k], *x = find_from(a, &at, &y->step);
                if (!x)
                        break;
                *ret_below = hfd_fields_union(scratch, x->below, y->below);
                if ((y->member && !x->member) || *ret_below != x->below)
                        break;
        }
        return k;
}

/* Each field below is united once: those before the first addition are known to be as in a. */
const struct hfd_fields *hfd_fields_union(struct hf__arena *scratch, const struct hfd_fields *a,
                                          const struct hfd_fields *b) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        const struct hfd_fields *below = NULL;
        size_t i = 0, k = 0, first;

        if (!a || !b || a == b)
                return a ? a : b;
        first = find_addition(scratch, a, b, &below);
        if (first == b->n)
                return a;
        while (i < a->n || k < b->n) {
                const struct hfd_field *x = i < a->n ? &a->at[i] : NULL;
                const struct hfd_field *y = k < b->n ? &b->at[k] : NULL;
                int order = x ? -1 : 1;
                if (x && y)
                        order = hfd_step_compare(&x->step, &y->step);
                if (order == 0 && k < first)
                        hfd_fields_add(&builder, &x->step, x->member, x->below);
                else if (order == 0 && k == first)
                        hfd_fields_add(&builder, &x->step, x->member || y->member, below);
                else if (order == 0)
                        hfd_fields_add(&builder, &x->step, x->member || y->member,
                                       hfd_fields_union(scratch, x->below, y->below));
                else if (order < 0)
                        hfd_fields_add(&builder, &x->step, x->member, x->below);
                else
                        hfd_fields_add(&builder, &y->step, y->member, y->below);
                i += order <= 0;
                k += order >= 0;
        }
        return hfd_fields_close(&builder, 0);
}

const struct hfd_fields *hfd_fields_intersect(struct hf__arena *scratch, const struct hfd_fields *a,
                                              const struct hfd_fields *b) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        const struct hfd_fields *few = a && b && b->n < a->n ? b : a;
        const struct hfd_fields *many = few == a ? b : a;
        size_t at = 0;

        for (size_t i = 0; few && i < few->n; i++) {
                const struct hfd_field *x = &few->at[i], *y = find_from(many, &at, &x->step);
                if (y)
                        hfd_fields_add(&builder, &x->step, x->member && y->member,
                                       hfd_fields_intersect(scratch, x->below, y->below));
        }
        return hfd_fields_close(&builder, 0);
}

const struct hfd_fields *hfd_fields_subtract(struct hf__arena *scratch, const struct hfd_fields *a,
                                             const struct hfd_fields *b) {
        struct hfd_fields_builder builder = {.scratch = scratch};
        bool changed = false;
        size_t at = 0;

        for (size_t i = 0; a && b && i < a->n; i++) {
                const struct hfd_field *x = &a->at[i], *y = find_from(b, &at, &x->step);
                bool member = x->member && !(y && y->member);
                const struct hfd_fields *below =
                        y ? hfd_fields_subtract(scratch, x->below, y->below) : x->below;
                changed = changed || member != x->member || below != x->below;
                hfd_fields_add(&builder, &x->step, member, below);
        }
        return changed ? hfd_fields_close(&builder, 0) : a;
}
