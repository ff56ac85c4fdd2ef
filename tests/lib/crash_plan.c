/* SPDX-License-Identifier: Apache-2.0 */
/* See crash_plan.h. A value is a line with the numbers of its write and its operation, and then
 * bytes that do not repeat. */
#include "crash_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { LONG_ROUNDS = 60, PUT_ROUNDS = 12 };

static const struct crash_plan_write short_plan[] = {
        {0, 1, {{HFD_PUT, "/a", 10}}},
        {1, 1, {{HFD_PUT, "/b", 1000}}},
        {1, 1, {{HFD_PUT, "/large", 100 * 1024}}},
        {1, 2, {{HFD_PUT, "/pair/x", 50}, {HFD_PUT, "/pair/y", 3000}}},
        {1, 1, {{HFD_PUT, "/gone", 20}}},
        {2, 1, {{HFD_PUT, "/a", 5000}}},
        {2, 2, {{HFD_PUT, "/pair/x", 9000}, {HFD_PUT, "/pair/y", 10}}},
        {2, 1, {{HFD_DELETE, "/gone", 0}}},
        {3, 0, {{0}}},
        {4, 3, {{HFD_PUT, "/pair/x", 30}, {HFD_DELETE, "/pair/y", 0}, {HFD_PUT, "/c", 700}}},
        {4, 1, {{HFD_PUT, "/large", 10}}},
        {5, 1, {{HFD_PUT, "/pair/y", 60}}},
};

static struct crash_plan_op put(size_t n_value, const char *name, size_t number) {
        struct crash_plan_op op = {.kind = HFD_PUT, .n_value = n_value};

        (void)snprintf(op.key, sizeof op.key, "/%s/%zu", name, number);
        return op;
}

/* A round: three large puts, a pair, a small key that is created or deleted; then a compaction or
 * one more put. */
static bool long_write(size_t i, struct crash_plan_write *ret) {
        size_t round = i / 6, part = i % 6;

        *ret = (struct crash_plan_write){.phase = 2 * round + (part == 5), .n_ops = 1};
        if (part < 3) {
                ret->ops[0] = put(40000 + (i * 7919) % 62000, "large", (round * 3 + part) % 7);
        } else if (part == 3) {
                ret->n_ops = 2;
                ret->ops[0] = put(10 + round * 37, "pair", 0);
                ret->ops[1] = put(4000 - round * 37, "pair", 1);
        } else if (part == 4) {
                ret->ops[0] = put(10, "gone", round / 2);
                ret->ops[0].kind = round % 2 == 0 ? HFD_PUT : HFD_DELETE;
        } else if (round % 8 == 7) {
                ret->n_ops = 0;
        } else {
                ret->ops[0] = put(500, "small", round % 5);
        }
        return round < LONG_ROUNDS;
}

/* A round: a large put and a pair at once; then a small put or a compaction. */
static bool puts_write(size_t i, struct crash_plan_write *ret) {
        size_t round = i / 3, part = i % 3;

        *ret = (struct crash_plan_write){.phase = 2 * round + (part == 2), .n_ops = 1};
        if (part == 0) {
                ret->ops[0] = put(1000 + (i * 7919) % 90000, "large", round % 4);
        } else if (part == 1) {
                ret->n_ops = 2;
                ret->ops[0] = put(10, "pair", 0);
                ret->ops[1] = put(4000, "pair", 1);
        } else if (round % 5 == 4) {
                ret->n_ops = 0;
        } else {
                ret->ops[0] = put(200, "small", round % 3);
        }
        return round < PUT_ROUNDS;
}

bool crash_plan_write(enum crash_plan_kind kind, size_t i, struct crash_plan_write *ret_write) {
        if (kind == CRASH_PLAN_LONG)
                return long_write(i, ret_write);
        if (kind == CRASH_PLAN_PUTS)
                return puts_write(i, ret_write);
        if (i >= sizeof short_plan / sizeof short_plan[0])
                return false;
        *ret_write = short_plan[i];
        return true;
}

struct hf__buf *crash_plan_value(size_t i, size_t op, size_t n) {
        struct hf__buf *value = hf__buf_new(n);
        uint32_t x = (uint32_t)(i * 31 + op * 7 + 1);
        char head[32];
        size_t n_head = (size_t)snprintf(head, sizeof head, "%zu %zu\n", i, op);

        for (size_t k = 0; value && k < n; k++) {
                x = x * 1664525 + 1013904223;
                value->data[k] = k < n_head ? head[k] : (char)(x >> 24);
        }
        return value;
}

size_t crash_plan_find(enum crash_plan_kind kind, const char *key, const struct hf__buf *value) {
        struct crash_plan_write write;
        size_t found = value ? strtoull(value->data, NULL, 10) : SIZE_MAX;

        for (size_t i = 0; crash_plan_write(kind, i, &write); i++)
                for (size_t op = 0; op < write.n_ops && op < CRASH_PLAN_OPS; op++)
                        if (strcmp(write.ops[op].key, key) == 0 &&
                            (value ? i == found
                                   : write.n_ops == 1 && write.ops[op].kind == HFD_DELETE))
                                return i;
        return SIZE_MAX;
}
