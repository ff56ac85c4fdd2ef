/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes' functions of lists: isSorted, sum, min, max, indexOf, lastIndexOf.
 *
 * Invariant: isSorted, min and max return an error when they reach an element whose type has no
 * order (<), and sum when it reaches one that cannot be added. Numbers of different types can be
 * compared, but not added. Sums of integers and durations are checked for overflow.
 */

#include "cel/functions/tables.h"
#include "cel/values/timestamp.h"

static bool has_order(struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_BOOL:
        case HF__CEL_STRING:
        case HF__CEL_BYTES:
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION: return true;
        default: return hf__cel_is_number(value);
        }
}

/* Equal neighbours count as sorted. So do, as in Kubernetes, neighbours that cannot be compared
 * although each has a type with an order: a NaN and a number, or a text and a number. */
static struct hf__cel_value is_sorted(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct hf__cel_list *list = args[0].as.list;

        for (size_t i = 0; i < list->n; i++) {
                struct hf__cel_value item = hf__cel_list_at(list, i);
                struct hf__cel_value error;
                int order;

                if (hf__cel_is_error(item))
                        return item;
                if (!has_order(item))
                        return hf__cel_error_text("no such overload");
                /* After a failure the order is not known. The evaluator looks at run->failed, so
                 * the result does not count. */
                if (i > 0 &&
                    hf__cel_order(run, hf__cel_list_at(list, i - 1), item, &order, &error) &&
                    (order > 0 || run->failed != 0))
                        return hf__cel_bool(false);
        }
        return hf__cel_bool(true);
}

static struct hf__cel_value add_values(struct hf__cel_value a, struct hf__cel_value b) {
        if (a.kind != b.kind)
                return hf__cel_error_text("no such overload");
        switch (a.kind) {
        case HF__CEL_DOUBLE: return hf__cel_double(a.as.d + b.as.d);
        case HF__CEL_UINT:
                if (__builtin_add_overflow(a.as.u, b.as.u, &a.as.u))
                        return hf__cel_error_text("unsigned integer overflow");
                return a;
        case HF__CEL_INT:
        case HF__CEL_DURATION:
                if (__builtin_add_overflow(a.as.i, b.as.i, &a.as.i))
                        return hf__cel_error_text("integer overflow");
                return a;
        default: return hf__cel_error_text("no such overload");
        }
}

/* Adds the elements to `zero`, which is the sum of an empty list. */
static struct hf__cel_value sum_of_list(const struct hf__cel_list *list,
                                        struct hf__cel_value zero) {
        for (size_t i = 0; i < list->n && !hf__cel_is_error(zero); i++)
                zero = add_values(zero, hf__cel_list_at(list, i));
        return zero;
}

static struct hf__cel_value sum_ints(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        struct hf__cel_value zero = hf__cel_int(0);

        /* This is the first function of sum in the table, so the evaluator calls it for a list of
         * dyn, whose elements nobody has looked at. Then the type of the first element decides. */
        if (args[0].as.list->n > 0 && hf__cel_list_at(args[0].as.list, 0).kind != HF__CEL_INT) {
                zero = hf__cel_list_at(args[0].as.list, 0);
                if (hf__cel_is_error(zero))
                        return zero;
                zero.as.u = 0;
                if (zero.kind == HF__CEL_DOUBLE)
                        zero = hf__cel_double(0);
        }
        return sum_of_list(args[0].as.list, zero);
}

/* An empty list has no element that could tell the type, so each overload brings its own zero. */
static struct hf__cel_value sum_uints(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return sum_of_list(args[0].as.list, hf__cel_uint(0));
}

static struct hf__cel_value sum_doubles(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return sum_of_list(args[0].as.list, hf__cel_double(0));
}

static struct hf__cel_value sum_durations(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return sum_of_list(args[0].as.list, hf__cel_duration(0));
}

/* Of equal elements the first one is the result. An element whose type has an order, but that has
 * none with the best one so far, is passed over, as in Kubernetes: a NaN, or a text beside a
 * number. So a NaN that comes first is the result. */
static struct hf__cel_value extreme_of_list(struct hf__cel_run *run,
                                            const struct hf__cel_list *list, const char *name,
                                            int sign) {
        struct hf__cel_value best;

        if (list->n == 0)
                return hf__cel_errorf(run, "%s called on empty list", name);
        best = hf__cel_list_at(list, 0);
        for (size_t i = 0; i < list->n; i++) {
                struct hf__cel_value item = hf__cel_list_at(list, i);
                struct hf__cel_value error;
                int order;

                if (hf__cel_is_error(item))
                        return item;
                if (!has_order(item))
                        return hf__cel_error_text("no such overload");
                if (hf__cel_order(run, item, best, &order, &error) && order * sign > 0)
                        best = item;
        }
        return best;
}

static struct hf__cel_value call_min(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return extreme_of_list(run, args[0].as.list, "min", -1);
}

static struct hf__cel_value call_max(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return extreme_of_list(run, args[0].as.list, "max", 1);
}

static struct hf__cel_value index_of(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        for (size_t i = 0; i < args[0].as.list->n; i++) {
                struct hf__cel_value same =
                        hf__cel_equal(run, hf__cel_list_at(args[0].as.list, i), args[1]);

                if (hf__cel_is_error(same))
                        return same;
                if (same.as.boolean)
                        return hf__cel_int((int64_t)i);
        }
        return hf__cel_int(-1);
}

static struct hf__cel_value last_index_of(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        for (size_t i = args[0].as.list->n; i-- > 0;) {
                struct hf__cel_value same =
                        hf__cel_equal(run, hf__cel_list_at(args[0].as.list, i), args[1]);

                if (hf__cel_is_error(same))
                        return same;
                if (same.as.boolean)
                        return hf__cel_int((int64_t)i);
        }
        return hf__cel_int(-1);
}

#define ELEMENTS HF__CEL_COST_WALK

/* The functions of lists whose elements have an order. */
#define ORDERED(type)                                                                              \
        {"isSorted", ".list(" type ")() -> bool", is_sorted, ELEMENTS},                            \
                {"min", ".list(" type ")() -> " type, call_min, ELEMENTS}, {                       \
                "max", ".list(" type ")() -> " type, call_max, ELEMENTS                            \
        }

const struct hf__cel_row hf__cel_lists[] = {
        ORDERED("int"),
        ORDERED("uint"),
        ORDERED("double"),
        ORDERED("bool"),
        ORDERED("duration"),
        ORDERED("timestamp"),
        ORDERED("string"),
        ORDERED("bytes"),
        {"sum", ".list(int)() -> int", sum_ints, ELEMENTS},
        {"sum", ".list(uint)() -> uint", sum_uints, ELEMENTS},
        {"sum", ".list(double)() -> double", sum_doubles, ELEMENTS},
        {"sum", ".list(duration)() -> duration", sum_durations, ELEMENTS},
        {"indexOf", ".list(A)(A) -> int", index_of, ELEMENTS},
        {"lastIndexOf", ".list(A)(A) -> int", last_index_of, ELEMENTS},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
