/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that make a list from a list (slice, flatten, reverse, distinct, sort) or from a number
 * (lists.range), and the order that sortBy gives.
 *
 * Invariants: the call was charged before, for about as many elements as its result gets (distinct
 * and sort: for all pairs of elements); what flatten finds beyond that counts as work and as
 * memory. An element that is an error ends a call that looks at it; slice and reverse pass it on.
 */

#include "cel/functions/list_order.h"
#include "cel/functions/tables.h"

#define DEPTH_MAX 100 /* of lists in lists: flatten recurses, and needs stack for each level */

static struct hf__cel_value call_slice(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        const struct hf__cel_list *list = args[0].as.list;
        long long from = args[1].as.i;
        long long to = args[2].as.i;

        if (from < 0 || to < 0)
                return hf__cel_errorf(run,
                                      "cannot slice(%lld, %lld), negative indexes not "
                                      "supported",
                                      from, to);
        if (from > to)
                return hf__cel_errorf(run,
                                      "cannot slice(%lld, %lld), start index must be less "
                                      "than or "
                                      "equal to end index",
                                      from, to);
        if ((unsigned long long)to > list->n)
                return hf__cel_errorf(run, "cannot slice(%lld, %lld), list is length %zu", from, to,
                                      list->n);
        return hf__cel_sublist(run, list, (size_t)from, (size_t)(to - from));
}

static struct hf__cel_value call_reverse(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        const struct hf__cel_list *from = args[0].as.list;
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(run, from->n, &items);

        for (size_t i = 0; !hf__cel_is_error(list) && i < from->n; i++)
                items[i] = hf__cel_list_at(from, from->n - 1 - i);
        return list;
}

/* The length comes from a number, not from data. The charge before the call and the limit of memory
 * end lists.range(1000000000) before it takes time. */
static struct hf__cel_value call_range(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        size_t n_items = args[0].as.i > 0 ? (size_t)args[0].as.i : 0;
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(run, n_items, &items);

        for (size_t i = 0; !hf__cel_is_error(list) && i < n_items; i++)
                items[i] = hf__cel_int((int64_t)i);
        return list;
}

/* ---- flatten ---- */

/* Adds the number of elements to *n, and stores them in items unless that is NULL. A list among the
 * elements is replaced by its own elements, down to `levels` levels of nesting. Returns the first
 * error among the elements, the error of the run if that has failed, or null. */
static struct hf__cel_value flatten_list(struct hf__cel_run *run, const struct hf__cel_list *list,
                                         int64_t levels, unsigned depth,
                                         struct hf__cel_value *items, size_t *n) {
        struct hf__cel_value error = hf__cel_null();

        if (depth > DEPTH_MAX)
                run->work = run->work_limit; /* the next hf__cel_work then fails the run */
        for (size_t i = 0; i < list->n && !hf__cel_is_error(error); i++) {
                struct hf__cel_value item = hf__cel_list_at(list, i);

                if (!hf__cel_work(run, 1))
                        return hf__cel_failure(run);
                if (hf__cel_is_error(item)) {
                        error = item;
                } else if (item.kind == HF__CEL_LIST && levels > 0) {
                        error = flatten_list(run, item.as.list, levels - 1, depth + 1, items, n);
                } else {
                        if (items)
                                items[*n] = item;
                        (*n)++;
                }
        }
        return error;
}

/* More levels than the list has do no harm: the walk ends at elements that are no lists. A negative
 * number is an error. */
static struct hf__cel_value flatten_levels(struct hf__cel_run *run, const struct hf__cel_list *from,
                                           int64_t levels) {
        struct hf__cel_value error;
        struct hf__cel_value list;
        struct hf__cel_value *items;
        size_t n = 0;

        if (levels < 0)
                return hf__cel_error_text("level must be non-negative");
        /* The first pass counts, so that the second one needs a single allocation of the right
         * size. */
        error = flatten_list(run, from, levels, 0, NULL, &n);
        if (hf__cel_is_error(error))
                return error;
        list = hf__cel_new_list(run, n, &items);
        if (hf__cel_is_error(list))
                return list;
        n = 0;
        error = flatten_list(run, from, levels, 0, items, &n);
        return hf__cel_is_error(error) ? error : list;
}

static struct hf__cel_value call_flatten(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        return flatten_levels(run, args[0].as.list, n > 1 ? args[1].as.i : 1);
}

/* ---- distinct ---- */

static struct hf__cel_value call_distinct(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        const struct hf__cel_list *from = args[0].as.list;
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(run, from->n, &items);
        size_t n_kept = 0;

        if (hf__cel_is_error(list))
                return list;
        /* Quadratic, like cel-go's, because elements of all types can be equal and have no common
         * hash or order. Each comparison counts as work. */
        for (size_t i = 0; i < from->n; i++) {
                struct hf__cel_value item = hf__cel_list_at(from, i);
                bool seen = false;

                if (hf__cel_is_error(item))
                        return item;
                for (size_t k = 0; k < n_kept && !seen; k++) {
                        struct hf__cel_value same = hf__cel_equal(run, item, items[k]);

                        if (hf__cel_is_error(same))
                                return same;
                        seen = same.as.boolean;
                }
                /* Of equal elements the first one stays. */
                if (!seen)
                        items[n_kept++] = item;
        }
        return hf__cel_sublist(run, list.as.list, 0, n_kept);
}

/* ---- sort ---- */

#define SORT_FEW 12 /* elements that Go's sort inserts one after the other */

static bool has_order(struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_BOOL:
        case HF__CEL_INT:
        case HF__CEL_UINT:
        case HF__CEL_DOUBLE:
        case HF__CEL_STRING:
        case HF__CEL_BYTES:
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION: return true;
        default: return false;
        }
}

/* Why the keys cannot be sorted, or null. cel-go has an overload for each type, so it sorts no list
 * that mixes int and double, although they have an order. */
static struct hf__cel_value check_keys(const struct hf__cel_list *keys) {
        struct hf__cel_value first = hf__cel_list_at(keys, 0);

        for (size_t i = 0; i < keys->n; i++) {
                struct hf__cel_value key = hf__cel_list_at(keys, i);

                if (hf__cel_is_error(key))
                        return key;
                if (!has_order(first))
                        return hf__cel_error_text("list elements must be comparable");
                if (key.kind != first.kind)
                        return hf__cel_error_text("list elements must have the same type");
        }
        return hf__cel_null();
}

/* Whether a goes before b. A NaN goes before nothing, and nothing before it. */
static bool comes_before(struct hf__cel_run *run, struct hf__cel_value a, struct hf__cel_value b) {
        struct hf__cel_value error;
        int order;

        return hf__cel_order(run, a, b, &order, &error) && order < 0;
}

/* Merges two sorted parts, [from, middle) and [middle, to). Equal keys keep their order. */
static void merge_runs(struct hf__cel_run *run, const struct hf__cel_list *keys, const size_t *in,
                       size_t *out, size_t from, size_t middle, size_t to) {
        size_t a = from;
        size_t b = middle;

        for (size_t i = from; i < to; i++) {
                bool second =
                        a == middle || (b < to && comes_before(run, hf__cel_list_at(keys, in[b]),
                                                               hf__cel_list_at(keys, in[a])));

                out[i] = second ? in[b++] : in[a++];
        }
}

/* The insertion sort that Go uses for a few elements. With a NaN in the list the result depends on
 * the algorithm, so this one must be Go's: no later element moves to a place before the NaN. */
static void insert_places(struct hf__cel_run *run, const struct hf__cel_list *keys, size_t *places,
                          size_t n) {
        for (size_t i = 1; i < n; i++)
                for (size_t at = i; at > 0 && comes_before(run, hf__cel_list_at(keys, places[at]),
                                                           hf__cel_list_at(keys, places[at - 1]));
                     at--) {
                        size_t place = places[at];

                        places[at] = places[at - 1];
                        places[at - 1] = place;
                }
}

struct hf__cel_value hf__cel_sort_by(struct hf__cel_run *run, const struct hf__cel_list *list,
                                     const struct hf__cel_list *keys) {
        struct hf__cel_value error = list->n > 0 ? check_keys(keys) : hf__cel_null();
        /* Places are sorted, not values: the keys and the elements are two lists, and both stay as
         * they are. Two arrays take turns as the source and the target of a pass. */
        size_t *places = hf__cel_alloc(run, 2 * list->n * sizeof *places);
        size_t *other = places ? places + list->n : NULL;
        struct hf__cel_value *items;
        struct hf__cel_value sorted = hf__cel_new_list(run, list->n, &items);

        if (hf__cel_is_error(error))
                return error;
        if (!places || hf__cel_is_error(sorted))
                return hf__cel_failure(run);
        for (size_t i = 0; i < list->n; i++)
                places[i] = i;
        if (list->n <= SORT_FEW)
                insert_places(run, keys, places, list->n);
        for (size_t width = list->n <= SORT_FEW ? SORT_FEW : 1; width < list->n; width *= 2) {
                size_t *swap = places;

                /* Each pass visits each element once; there are log n passes. */
                if (!hf__cel_work(run, list->n))
                        return hf__cel_failure(run);
                for (size_t at = 0; at < list->n; at += 2 * width) {
                        size_t middle = at + width < list->n ? at + width : list->n;
                        size_t to = middle + width < list->n ? middle + width : list->n;

                        merge_runs(run, keys, places, other, at, middle, to);
                }
                places = other;
                other = swap;
        }
        for (size_t i = 0; i < list->n; i++)
                items[i] = hf__cel_list_at(list, places[i]);
        return sorted;
}

/* sort() has no second argument, so the elements are their own keys. */
static struct hf__cel_value call_sort(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_sort_by(run, args[0].as.list, args[n - 1].as.list);
}

/* The row of sortBy is for the checker; hf__cel_eval_fold sorts. */
#define SORTED(type)                                                                               \
        {"sort", ".list(" type ")() -> list(" type ")", call_sort, HF__CEL_COST_PAIRS}, {          \
                HF__CEL_SORT_BY, ".list(A)(list(" type ")) -> list(A)", call_sort,                 \
                        HF__CEL_COST_PAIRS                                                         \
        }

const struct hf__cel_row hf__cel_list_shapes[] = {
        {"slice", ".list(A)(int, int) -> list(A)", call_slice, HF__CEL_COST_SLICE},
        {"flatten", ".list(list(A))() -> list(A)", call_flatten, HF__CEL_COST_LEVELS},
        {"flatten", ".list(dyn)(int) -> list(dyn)", call_flatten, HF__CEL_COST_LEVELS},
        {"reverse", ".list(A)() -> list(A)", call_reverse, HF__CEL_COST_COPY},
        {"distinct", ".list(A)() -> list(A)", call_distinct, HF__CEL_COST_PAIRS},
        {"lists.range", "(int) -> list(int)", call_range, HF__CEL_COST_RANGE},
        SORTED("int"),
        SORTED("uint"),
        SORTED("double"),
        SORTED("bool"),
        SORTED("duration"),
        SORTED("timestamp"),
        SORTED("string"),
        SORTED("bytes"),
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
