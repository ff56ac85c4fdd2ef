/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of what expressions take.
 *
 * Invariant: the bytes of the objects are counted once at most for each struct hfd_expression_work,
 * and only after work that takes far longer than counting them.
 */
#include "server/admission/expressions/expression_work.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "server/admission/expressions/expression_input.h"

/* Steps that it takes to make the value of one part of an object: 0.05 to 1 us, because large maps
 * are sorted. */
#define PART_WORK 10

bool hfd_expression_allow(struct hfd_expression_allowance *allowance, uint64_t used) {
        if (!allowance)
                return true;
        if (used > allowance->left || allowance->spent) {
                allowance->spent = true;
                return false;
        }
        allowance->left -= used;
        return true;
}

/* The parts of a value. If there are more than max, the count ends at max + 1. */
static size_t count_parts(const struct hf__json *json, size_t max) {
        size_t n = 1;

        for (const struct hf__json *m = hf__json_first(json); m && n <= max; m = hf__json_next(m))
                n += count_parts(m, max - n);
        return n;
}

uint64_t hfd_expression_value_work(const struct hf__json *json,
                                   const struct hfd_expression_allowance *allowance) {
        return PART_WORK *
               (uint64_t)count_parts(json, allowance ? allowance->left / PART_WORK : SIZE_MAX);
}

/* The bytes of the texts and keys of a value, and one for each part. */
static uint64_t count_bytes(const struct hf__json *json) {
        const char *key = json ? hf__json_key(json) : NULL;
        const char *text = hf__json_text(json);
        uint64_t n = 1 + (key ? strlen(key) : 0) + (text ? strlen(text) : 0);

        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                n += count_bytes(m);
        return n;
}

bool hfd_expression_take_work(struct hfd_expression_work *work, uint64_t steps,
                              const struct hfd_expression_input *input) {
        work->used = steps > UINT64_MAX - work->used ? UINT64_MAX : work->used + steps;
        if (work->used > HFD_EXPRESSION_WORK && !work->has_measured) {
                work->more = HFD_EXPRESSION_BYTE_WORK *
                             (count_bytes(input->object) + count_bytes(input->old) +
                              count_bytes(input->params));
                work->has_measured = true;
        }
        assert(work->has_measured || work->more == 0);
        return work->used <= HFD_EXPRESSION_WORK + work->more;
}
