/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic, and + for texts, bytes and lists. Every overflow is an error, except that of doubles.
 *
 * Invariant: no signed operation can overflow in C: a builtin reports it, or the operands are
 * checked before.
 */
#include <string.h>

#include "cel/functions/tables.h"
#include "cel/values/timestamp.h"

static struct hf__cel_value int_overflow(void) { return hf__cel_error_text("integer overflow"); }

static struct hf__cel_value uint_overflow(void) {
        return hf__cel_error_text("unsigned integer overflow");
}

/* CEL has no silent overflow of integers: an operation whose result does not fit is an error. */
#define INT_OPERATOR(name, builtin)                                                                \
        static struct hf__cel_value name##_int(struct hf__cel_run *run,                            \
                                               const struct hf__cel_value *args, unsigned n) {     \
                int64_t result;                                                                    \
                                                                                                   \
                return builtin(args[0].as.i, args[1].as.i, &result) ? int_overflow()               \
                                                                    : hf__cel_int(result);         \
        }                                                                                          \
        static struct hf__cel_value name##_uint(struct hf__cel_run *run,                           \
                                                const struct hf__cel_value *args, unsigned n) {    \
                uint64_t result;                                                                   \
                                                                                                   \
                return builtin(args[0].as.u, args[1].as.u, &result) ? uint_overflow()              \
                                                                    : hf__cel_uint(result);        \
        }

INT_OPERATOR(add, __builtin_add_overflow)
INT_OPERATOR(subtract, __builtin_sub_overflow)
INT_OPERATOR(multiply, __builtin_mul_overflow)

/* Doubles are not checked: an overflow is an infinity in IEEE 754, which the language definition
 * refers to. */
static struct hf__cel_value add_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return hf__cel_double(args[0].as.d + args[1].as.d);
}

static struct hf__cel_value subtract_double(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        return hf__cel_double(args[0].as.d - args[1].as.d);
}

static struct hf__cel_value multiply_double(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        return hf__cel_double(args[0].as.d * args[1].as.d);
}

/* As in IEEE 754, a division by zero is an infinity or not a number. */
static struct hf__cel_value divide_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return hf__cel_double(args[0].as.d / args[1].as.d);
}

static struct hf__cel_value divide_int(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        if (args[1].as.i == 0)
                return hf__cel_error_text("division by zero");
        if (args[0].as.i == INT64_MIN && args[1].as.i == -1)
                return int_overflow();
        return hf__cel_int(args[0].as.i / args[1].as.i);
}

/* The remainder of INT64_MIN and -1 would be 0, but the division that computes it overflows. cel-go
 * reports an error too. */
static struct hf__cel_value modulo_int(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        if (args[1].as.i == 0)
                return hf__cel_error_text("modulus by zero");
        if (args[0].as.i == INT64_MIN && args[1].as.i == -1)
                return int_overflow();
        return hf__cel_int(args[0].as.i % args[1].as.i);
}

static struct hf__cel_value divide_uint(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return args[1].as.u == 0 ? hf__cel_error_text("division by zero")
                                 : hf__cel_uint(args[0].as.u / args[1].as.u);
}

static struct hf__cel_value modulo_uint(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return args[1].as.u == 0 ? hf__cel_error_text("modulus by zero")
                                 : hf__cel_uint(args[0].as.u % args[1].as.u);
}

static struct hf__cel_value negate_int(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return args[0].as.i == INT64_MIN ? int_overflow() : hf__cel_int(-args[0].as.i);
}

static struct hf__cel_value negate_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return hf__cel_double(-args[0].as.d);
}

/* Joins two strings, or bytes. The 32-bit length of a value limits them to 4 GiB; the limit of
 * memory is usually reached far earlier. */
static struct hf__cel_value add_text(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        size_t length = (size_t)args[0].n + args[1].n;
        char *text;

        if (!hf__cel_work(run, length / 16))
                return hf__cel_failure(run);
        text = length < UINT32_MAX ? hf__cel_alloc(run, length + 1) : NULL;
        if (!text)
                return run->failed != 0 ? hf__cel_failure(run)
                                        : hf__cel_error_text("the text is too long");
        if (args[0].n > 0)
                memcpy(text, args[0].as.text, args[0].n);
        if (args[1].n > 0)
                memcpy(text + args[0].n, args[1].as.text, args[1].n);
        text[length] = 0;
        return args[0].kind == HF__CEL_STRING ? hf__cel_string(text, length)
                                              : hf__cel_bytes(text, length);
}

/* If one list is empty, the other one itself is the result, without a copy. The exception is an
 * empty list of the type set or map on the left: the sum must have its type. */
static struct hf__cel_value add_list(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        const struct hf__cel_list *a = args[0].as.list;
        const struct hf__cel_list *b = args[1].as.list;
        struct hf__cel_value *items;
        struct hf__cel_value list;

        if (a->n == 0 && !a->key)
                return args[1];
        if (b->n == 0)
                return args[0];
        /* Kubernetes charges 1 for a sum of lists, however long they are, so the copy counts as
         * work. */
        if (!hf__cel_work(run, (a->n + b->n) / 4))
                return hf__cel_failure(run);
        /* Lists of the type set or map are joined by key: an element of b does not stand beside one
         * of a with the same key. */
        if (a->key)
                return hf__cel_union(run, a, b);
        list = hf__cel_new_list(run, a->n + b->n, &items);
        if (hf__cel_is_error(list))
                return list;
        for (size_t i = 0; i < a->n; i++)
                items[i] = hf__cel_list_at(a, i);
        for (size_t i = 0; i < b->n; i++)
                items[a->n + i] = hf__cel_list_at(b, i);
        return list;
}

static struct hf__cel_value add_durations(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        int64_t sum;

        if (__builtin_add_overflow(args[0].as.i, args[1].as.i, &sum))
                return hf__cel_error_text("integer overflow");
        return hf__cel_duration(sum);
}

static struct hf__cel_value subtract_durations(struct hf__cel_run *run,
                                               const struct hf__cel_value *args, unsigned n) {
        int64_t difference;

        if (__builtin_sub_overflow(args[0].as.i, args[1].as.i, &difference))
                return hf__cel_error_text("integer overflow");
        return hf__cel_duration(difference);
}

static struct hf__cel_value negate_duration(struct hf__cel_run *run,
                                            const struct hf__cel_value *args, unsigned n) {
        return args[0].as.i == INT64_MIN ? hf__cel_error_text("integer overflow")
                                         : hf__cel_duration(-args[0].as.i);
}

static struct hf__cel_value add_time(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        /* The sum is commutative, and one function serves both overloads. */
        bool first = args[0].kind == HF__CEL_TIMESTAMP;

        return hf__cel_timestamp_add(args[first ? 0 : 1], args[first ? 1 : 0].as.i);
}

static struct hf__cel_value subtract_duration(struct hf__cel_run *run,
                                              const struct hf__cel_value *args, unsigned n) {
        /* As in cel-go, which adds the negated duration. */
        if (args[1].as.i == INT64_MIN)
                return int_overflow();
        return hf__cel_timestamp_add(args[0], -args[1].as.i);
}

static struct hf__cel_value subtract_times(struct hf__cel_run *run,
                                           const struct hf__cel_value *args, unsigned n) {
        return hf__cel_timestamp_difference(args[0], args[1]);
}

#define ONE HF__CEL_COST_ONE

const struct hf__cel_row hf__cel_arithmetic[] = {
        {"_+_", "(bytes, bytes) -> bytes", add_text, HF__CEL_COST_BOTH},
        {"_+_", "(double, double) -> double", add_double, ONE},
        {"_+_", "(duration, duration) -> duration", add_durations, ONE},
        {"_+_", "(duration, timestamp) -> timestamp", add_time, ONE},
        {"_+_", "(timestamp, duration) -> timestamp", add_time, ONE},
        {"_+_", "(int, int) -> int", add_int, ONE},
        {"_+_", "(list(A), list(A)) -> list(A)", add_list, ONE},
        {"_+_", "(string, string) -> string", add_text, HF__CEL_COST_BOTH},
        {"_+_", "(uint, uint) -> uint", add_uint, ONE},
        {"_-_", "(double, double) -> double", subtract_double, ONE},
        {"_-_", "(duration, duration) -> duration", subtract_durations, ONE},
        {"_-_", "(int, int) -> int", subtract_int, ONE},
        {"_-_", "(timestamp, duration) -> timestamp", subtract_duration, ONE},
        {"_-_", "(timestamp, timestamp) -> duration", subtract_times, ONE},
        {"_-_", "(uint, uint) -> uint", subtract_uint, ONE},
        {"_*_", "(double, double) -> double", multiply_double, ONE},
        {"_*_", "(int, int) -> int", multiply_int, ONE},
        {"_*_", "(uint, uint) -> uint", multiply_uint, ONE},
        {"_/_", "(double, double) -> double", divide_double, ONE},
        {"_/_", "(int, int) -> int", divide_int, ONE},
        {"_/_", "(uint, uint) -> uint", divide_uint, ONE},
        {"_%_", "(int, int) -> int", modulo_int, ONE},
        {"_%_", "(uint, uint) -> uint", modulo_uint, ONE},
        {"-_", "(double) -> double", negate_double, ONE},
        {"-_", "(int) -> int", negate_int, ONE},
        {"-_", "?(duration) -> duration", negate_duration, ONE},
        {NULL, NULL, NULL, ONE},
};
