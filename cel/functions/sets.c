/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that treat lists as sets: sets.contains, sets.equivalent, sets.intersects.
 *
 * Invariant: every comparison is charged; the time is the product of the sizes.
 */
#include "cel/functions/tables.h"

/* Whether the list has the value: a bool or an error. Elements of all types can be equal and have
 * no common order, so nothing but a comparison of each pair finds them. */
static struct hf__cel_value list_has(struct hf__cel_run *run, const struct hf__cel_list *list,
                                     struct hf__cel_value value) {
        for (size_t i = 0; i < list->n; i++) {
                struct hf__cel_value same = hf__cel_equal(run, hf__cel_list_at(list, i), value);

                if (hf__cel_is_error(same) || same.as.boolean)
                        return same;
        }
        return hf__cel_bool(false);
}

/* If `all`, whether `a` has all of b's elements; otherwise whether it has any of them. */
static struct hf__cel_value compare_lists(struct hf__cel_run *run, const struct hf__cel_list *a,
                                          const struct hf__cel_list *b, bool all) {
        for (size_t i = 0; i < b->n; i++) {
                struct hf__cel_value found = list_has(run, a, hf__cel_list_at(b, i));

                if (hf__cel_is_error(found) || found.as.boolean != all)
                        return found;
        }
        return hf__cel_bool(all);
}

static struct hf__cel_value call_contains(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return compare_lists(run, args[0].as.list, args[1].as.list, true);
}

static struct hf__cel_value call_intersects(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        return compare_lists(run, args[0].as.list, args[1].as.list, false);
}

static struct hf__cel_value call_equivalent(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        struct hf__cel_value first = compare_lists(run, args[0].as.list, args[1].as.list, true);

        if (hf__cel_is_error(first) || !first.as.boolean)
                return first;
        return compare_lists(run, args[1].as.list, args[0].as.list, true);
}

const struct hf__cel_row hf__cel_sets[] = {
        {"sets.contains", "(list(A), list(A)) -> bool", call_contains, HF__CEL_COST_SETS},
        {"sets.equivalent", "(list(A), list(A)) -> bool", call_equivalent, HF__CEL_COST_SETS_TWICE},
        {"sets.intersects", "(list(A), list(A)) -> bool", call_intersects, HF__CEL_COST_SETS},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
