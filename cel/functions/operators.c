/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order, logical not, index, membership, size, type and dyn. &&, ||, ?:, == and != are not here,
 * because the evaluator has them.
 *
 * Invariant: an index or a key finds an equal number of another type, and is never rounded. The
 * operator `in` with a list compares as == does, which rounds a whole number beside a double.
 */
#include <errno.h>
#include <math.h>

#include "base/strbuf.h"
#include "cel/functions/tables.h"
#include "cel/values/number_text.h"

/* Four functions and not one with a parameter: the table calls functions by one signature, and the
 * evaluator does not tell them which row has led to the call. */
static struct hf__cel_value call_less(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct hf__cel_value error;
        int order;

        return hf__cel_order(run, args[0], args[1], &order, &error) ? hf__cel_bool(order < 0)
                                                                    : error;
}

static struct hf__cel_value less_equal(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        struct hf__cel_value error;
        int order;

        return hf__cel_order(run, args[0], args[1], &order, &error) ? hf__cel_bool(order <= 0)
                                                                    : error;
}

static struct hf__cel_value call_greater(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        struct hf__cel_value error;
        int order;

        return hf__cel_order(run, args[0], args[1], &order, &error) ? hf__cel_bool(order > 0)
                                                                    : error;
}

static struct hf__cel_value greater_equal(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hf__cel_value error;
        int order;

        return hf__cel_order(run, args[0], args[1], &order, &error) ? hf__cel_bool(order >= 0)
                                                                    : error;
}

static struct hf__cel_value call_not(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return hf__cel_bool(!args[0].as.boolean);
}

/* Converts a whole number to int64_t. False: it is not a whole number, or does not fit. JSON does
 * not distinguish 1 from 1.0, so cel-go accepts numbers of all types as an index. */
static bool as_index(struct hf__cel_value value, int64_t *ret_index) {
        if (value.kind == HF__CEL_INT) {
                *ret_index = value.as.i;
                return true;
        }
        if (value.kind == HF__CEL_UINT && value.as.u <= INT64_MAX) {
                *ret_index = (int64_t)value.as.u;
                return true;
        }
        if (value.kind == HF__CEL_DOUBLE && value.as.d >= -0x1p63 && value.as.d < 0x1p63 &&
            trunc(value.as.d) == value.as.d) {
                *ret_index = (int64_t)value.as.d;
                return true;
        }
        return false;
}

/* An error whose text consists of `before`, the double, and `after`. */
static struct hf__cel_value error_with_double(struct hf__cel_run *run, const char *before,
                                              double value, const char *after) {
        struct hf__strbuf text = {.max = 400};
        struct hf__cel_value error;

        hf__strbuf_puts(&text, before);
        hf__cel_double_print(&text, value);
        hf__strbuf_puts(&text, after);
        /* No operator may absorb a lack of memory. */
        if (text.error != 0)
                run->failed = -ENOMEM;
        error = text.error == 0 ? hf__cel_errorf(run, "%s", text.data) : hf__cel_failure(run);
        hf__strbuf_done(&text);
        return error;
}

/* The error that a value is no index of a list. */
static struct hf__cel_value bad_index(struct hf__cel_run *run, struct hf__cel_value key) {
        if (key.kind == HF__CEL_DOUBLE)
                return error_with_double(run, "unsupported index value ", key.as.d, " in list");
        if (key.kind == HF__CEL_UINT)
                return hf__cel_errorf(run, "unsupported index value %llu in list",
                                      (unsigned long long)key.as.u);
        return hf__cel_errorf(run, "unsupported index type '%.60s' in list",
                              hf__cel_type_name(hf__cel_value_type(key)));
}

/* Finds an element of a list or map; another value has none. False: there is no such element. */
static bool find_element(struct hf__cel_value container, struct hf__cel_value key,
                         struct hf__cel_value *ret_value) {
        int64_t i;

        if (container.kind == HF__CEL_LIST) {
                const struct hf__cel_list *list = container.as.list;

                if (!as_index(key, &i) || i < 0 || (uint64_t)i >= list->n)
                        return false;
                *ret_value = hf__cel_list_at(list, (size_t)i);
                return true;
        }
        /* A double can find an int, so it is looked up, although no key is a double. */
        return (container.kind == HF__CEL_MAP || container.kind == HF__CEL_OBJECT) &&
               (key.kind == HF__CEL_BOOL || key.kind == HF__CEL_STRING || hf__cel_is_number(key)) &&
               hf__cel_map_find(container.as.map, key, ret_value);
}

/* The error that there is no element with this key. Its text takes memory of the run, so it is made
 * only if it is the result. */
static struct hf__cel_value absent_element(struct hf__cel_run *run, struct hf__cel_value container,
                                           struct hf__cel_value key) {
        int64_t i;

        if (container.kind == HF__CEL_LIST)
                return as_index(key, &i)
                               ? hf__cel_errorf(run, "index out of bounds: %lld", (long long)i)
                               : bad_index(run, key);
        if (key.kind == HF__CEL_STRING)
                return hf__cel_errorf(run, "no such key: %.*s", (int)(key.n > 200 ? 200 : key.n),
                                      key.as.text);
        if (key.kind == HF__CEL_INT)
                return hf__cel_errorf(run, "no such key: %lld", (long long)key.as.i);
        if (key.kind == HF__CEL_UINT)
                return hf__cel_errorf(run, "no such key: %llu", (unsigned long long)key.as.u);
        if (key.kind == HF__CEL_BOOL)
                return hf__cel_errorf(run, "no such key: %s", key.as.boolean ? "true" : "false");
        if (key.kind == HF__CEL_DOUBLE)
                return error_with_double(run, "no such key: ", key.as.d, "");
        return hf__cel_error_text("unsupported key type");
}

static struct hf__cel_value call_at(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        struct hf__cel_value value;

        return find_element(args[0], args[1], &value) ? value
                                                      : absent_element(run, args[0], args[1]);
}

/* An index of an optional is an optional again. So a[?0][1] needs one question mark for the whole
 * chain, as a.?b.c does. */
static struct hf__cel_value optional_at(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct hf__cel_value container = args[0];
        struct hf__cel_value value;
        int64_t i;

        if (container.kind == HF__CEL_OPTIONAL) {
                if (!container.as.optional)
                        return container;
                container = *container.as.optional;
        }
        if (find_element(container, args[1], &value))
                return hf__cel_optional_of(run, value);
        return container.kind == HF__CEL_LIST && !as_index(args[1], &i) ? bad_index(run, args[1])
                                                                        : hf__cel_optional_none();
}

struct hf__cel_value hf__cel_index_any(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       bool optional) {
        if (!hf__cel_spend(run, 1))
                return hf__cel_failure(run);
        return optional || args[0].kind == HF__CEL_OPTIONAL ? optional_at(run, args, 2)
                                                            : call_at(run, args, 2);
}

/* Elements are compared as by ==, so a number is found among numbers of other types. Building a
 * hash or an order of the list first would not pay for a single search. */
static struct hf__cel_value in_list(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        for (size_t i = 0; i < args[1].as.list->n; i++) {
                struct hf__cel_value same =
                        hf__cel_equal(run, args[0], hf__cel_list_at(args[1].as.list, i));

                if (hf__cel_is_error(same) || same.as.boolean)
                        return same;
        }
        return hf__cel_bool(false);
}

/* A key of a type that no map has is just not found. It would be an error in m[key], but `in` asks
 * a question, and its answer is false. */
static struct hf__cel_value in_map(struct hf__cel_run *run, const struct hf__cel_value *args,
                                   unsigned n) {
        struct hf__cel_value value;

        return hf__cel_bool(find_element(args[1], args[0], &value));
}

static struct hf__cel_value call_size(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_int((int64_t)hf__cel_size(run, args[0]));
}

/* The type of the value, not of the expression: type(dyn(1)) is int. */
static struct hf__cel_value call_type(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_type_value(hf__cel_value_type(args[0]));
}

static struct hf__cel_value call_same(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return args[0];
}

/* A row for each pair of types that the language definition compares: numbers of all types among
 * each other, and otherwise equal types only. */
#define ORDER(name, function)                                                                      \
        {name, "(bool, bool) -> bool", function, HF__CEL_COST_ONE},                                \
                {name, "(int, int) -> bool", function, HF__CEL_COST_ONE},                          \
                {name, "(int, double) -> bool", function, HF__CEL_COST_ONE},                       \
                {name, "(int, uint) -> bool", function, HF__CEL_COST_ONE},                         \
                {name, "(uint, uint) -> bool", function, HF__CEL_COST_ONE},                        \
                {name, "(uint, double) -> bool", function, HF__CEL_COST_ONE},                      \
                {name, "(uint, int) -> bool", function, HF__CEL_COST_ONE},                         \
                {name, "(double, double) -> bool", function, HF__CEL_COST_ONE},                    \
                {name, "(double, int) -> bool", function, HF__CEL_COST_ONE},                       \
                {name, "(double, uint) -> bool", function, HF__CEL_COST_ONE},                      \
                {name, "(string, string) -> bool", function, HF__CEL_COST_SHORTER},                \
                {name, "(bytes, bytes) -> bool", function, HF__CEL_COST_SHORTER},                  \
                {name, "(timestamp, timestamp) -> bool", function, HF__CEL_COST_ONE}, {            \
                name, "(duration, duration) -> bool", function, HF__CEL_COST_ONE                   \
        }

const struct hf__cel_row hf__cel_operators[] = {
        ORDER("_<_", call_less),
        ORDER("_<=_", less_equal),
        ORDER("_>_", call_greater),
        ORDER("_>=_", greater_equal),
        {"!_", "(bool) -> bool", call_not, HF__CEL_COST_ONE},
        {"_[_]", "(list(A), int) -> A", call_at, HF__CEL_COST_ONE},
        {"_[_]", "(map(A, B), A) -> B", call_at, HF__CEL_COST_ONE},
        {"_[_]", "(optional_type(list(A)), int) -> optional_type(A)", optional_at,
         HF__CEL_COST_ONE},
        {"_[_]", "(optional_type(map(A, B)), A) -> optional_type(B)", optional_at,
         HF__CEL_COST_ONE},
        {"_[?_]", "(list(A), int) -> optional_type(A)", optional_at, HF__CEL_COST_ONE},
        {"_[?_]", "(map(A, B), A) -> optional_type(B)", optional_at, HF__CEL_COST_ONE},
        {"_[?_]", "(optional_type(list(A)), int) -> optional_type(A)", optional_at,
         HF__CEL_COST_ONE},
        {"_[?_]", "(optional_type(map(A, B)), A) -> optional_type(B)", optional_at,
         HF__CEL_COST_ONE},
        {"@in", "(A, list(A)) -> bool", in_list, HF__CEL_COST_IN},
        {"@in", "(A, map(A, B)) -> bool", in_map, HF__CEL_COST_ONE},
        {"size", "(bytes) -> int", call_size, HF__CEL_COST_ONE},
        {"size", ".bytes() -> int", call_size, HF__CEL_COST_ONE},
        {"size", "(list(A)) -> int", call_size, HF__CEL_COST_ONE},
        {"size", ".list(A)() -> int", call_size, HF__CEL_COST_ONE},
        {"size", "(map(A, B)) -> int", call_size, HF__CEL_COST_ONE},
        {"size", ".map(A, B)() -> int", call_size, HF__CEL_COST_ONE},
        {"size", "(string) -> int", call_size, HF__CEL_COST_ONE},
        {"size", ".string() -> int", call_size, HF__CEL_COST_ONE},
        {"type", "(A) -> type(A)", call_type, HF__CEL_COST_ONE},
        {"dyn", "(A) -> dyn", call_same, HF__CEL_COST_ONE},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
