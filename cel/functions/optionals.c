/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of optional values. The evaluator itself carries out `or` and `orValue`, because it
 * evaluates their argument only if that is needed.
 *
 * Invariant: the rows of `or` and `orValue` are for the checker; the evaluator never calls them.
 */

#include "cel/functions/tables.h"

/* An empty optional carries no type: the checker has derived the type from the use. */
static struct hf__cel_value call_none(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_optional_none();
}

static struct hf__cel_value call_of(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        return hf__cel_optional_of(run, args[0]);
}

/* Whether the value is the zero value of its type in Go: of a time, the beginning of year 1. */
static bool is_zero(struct hf__cel_value value) {
        switch (value.kind) {
        case HF__CEL_NULL: return true;
        case HF__CEL_BOOL: return !value.as.boolean;
        case HF__CEL_INT:
        case HF__CEL_DURATION: return value.as.i == 0;
        case HF__CEL_UINT: return value.as.u == 0;
        case HF__CEL_DOUBLE: return value.as.d == 0;
        case HF__CEL_STRING:
        case HF__CEL_BYTES: return value.n == 0;
        case HF__CEL_TIMESTAMP: return value.as.i == INT64_C(-62135596800) && value.n == 0;
        case HF__CEL_LIST: return value.as.list->n == 0;
        case HF__CEL_MAP:
        case HF__CEL_OBJECT: return value.as.map->n == 0;
        case HF__CEL_OPTIONAL: return !value.as.optional;
        default: return false;
        }
}

static struct hf__cel_value of_non_zero(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return is_zero(args[0]) ? hf__cel_optional_none() : hf__cel_optional_of(run, args[0]);
}

static struct hf__cel_value has_value(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_bool(args[0].as.optional != NULL);
}

static struct hf__cel_value call_value(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        if (!args[0].as.optional)
                return hf__cel_error_text("optional.none() dereference");
        return *args[0].as.optional;
}

static struct hf__cel_value optional_element(struct hf__cel_run *run,
                                             const struct hf__cel_list *list, size_t i) {
        if (i >= list->n)
                return hf__cel_optional_none();
        return hf__cel_optional_of(run, hf__cel_list_at(list, i));
}

static struct hf__cel_value call_first(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return optional_element(run, args[0].as.list, 0);
}

static struct hf__cel_value call_last(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        /* Of an empty list n - 1 is SIZE_MAX, an index that no list has. */
        return optional_element(run, args[0].as.list, args[0].as.list->n - 1);
}

/* The values that the optionals of a list hold, without the optionals that hold none. */
static struct hf__cel_value call_unwrap(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        const struct hf__cel_list *from = args[0].as.list;
        struct hf__cel_value *items;
        struct hf__cel_value list = hf__cel_new_list(run, from->n, &items);
        size_t n_items = 0;

        if (hf__cel_is_error(list) || !hf__cel_work(run, from->n))
                return hf__cel_failure(run);
        for (size_t i = 0; i < from->n; i++) {
                struct hf__cel_value item = hf__cel_list_at(from, i);

                if (hf__cel_is_error(item))
                        return item;
                if (item.kind != HF__CEL_OPTIONAL)
                        return hf__cel_error_text("value is not optional");
                if (item.as.optional)
                        items[n_items++] = *item.as.optional;
        }
        return hf__cel_sublist(run, list.as.list, 0, n_items);
}

const struct hf__cel_row hf__cel_optionals[] = {
        {"optional.none", "() -> optional_type(A)", call_none, HF__CEL_COST_ONE},
        {"optional.of", "(A) -> optional_type(A)", call_of, HF__CEL_COST_ONE},
        {"optional.ofNonZeroValue", "(A) -> optional_type(A)", of_non_zero, HF__CEL_COST_ONE},
        {"hasValue", ".optional_type(A)() -> bool", has_value, HF__CEL_COST_ONE},
        {"value", ".optional_type(A)() -> A", call_value, HF__CEL_COST_ONE},
        {"or", ".optional_type(A)(optional_type(A)) -> optional_type(A)", call_none,
         HF__CEL_COST_ONE},
        {"orValue", ".optional_type(A)(A) -> A", call_none, HF__CEL_COST_ONE},
        {"first", ".list(A)() -> optional_type(A)", call_first, HF__CEL_COST_ONE},
        {"last", ".list(A)() -> optional_type(A)", call_last, HF__CEL_COST_ONE},
        {"optional.unwrap", "(list(optional_type(A))) -> list(A)", call_unwrap, HF__CEL_COST_ONE},
        {"unwrapOpt", ".list(optional_type(A))() -> list(A)", call_unwrap, HF__CEL_COST_ONE},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
