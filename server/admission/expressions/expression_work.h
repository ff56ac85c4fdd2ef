/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What expressions take, and the limits of that. Thread: owner only. */
#include <stdbool.h>
#include <stdint.h>

struct hf__json;
struct hfd_expression_input;

/*
 * The limit of the work of all expressions that share it (struct hfd_expression_work): so many
 * steps, and more for each byte of the object, the old object and the params. Kubernetes has no
 * such limit. Its cost of a search does not depend on how many characters a repetition has, so
 * within its limits an expression may take minutes for an object of a few megabytes. A search for
 * [0-9a-f]{128} takes 33 steps a byte; for {1000}, the longest repetition, 251, which is too much
 * for texts of more than some 50,000 bytes. A step of work takes less than 20 ns. As long as an
 * evaluation runs, other long tasks wait for the pool's first thread (pool/work_pool.h).
 */
#define HFD_EXPRESSION_WORK      UINT64_C(10000000)
#define HFD_EXPRESSION_BYTE_WORK 64

/* The work of expressions that share a limit: those of a policy for one binding and one of its
 * params, or the matchConditions of a webhook. Begins as {0}. */
struct hfd_expression_work {
        uint64_t used;
        uint64_t more;     /* what the limit has for the bytes of the objects */
        bool has_measured; /* `more` is known; it is found once used > HFD_EXPRESSION_WORK */
};

/*
 * What all runs of a request may use together on a thread that also serves other requests: of each
 * evaluation, the larger of its cost and its work, and what it takes to look up variables and
 * params, and to make the values of objects or copy them. Beyond it all further evaluations fail,
 * `spent` is set, and the caller starts over on another thread.
 */
struct hfd_expression_allowance {
        uint64_t left;
        bool spent;
};

/* Takes what was used from the allowance. allowance NULL: there is no limit. False: it is spent. */
bool hfd_expression_allow(struct hfd_expression_allowance *allowance, uint64_t used);
/* What it takes to make the value of JSON, as allowances count it. The count stops as soon as it
 * exceeds what the allowance has left. */
uint64_t hfd_expression_value_work(const struct hf__json *json,
                                   const struct hfd_expression_allowance *allowance);
/* Takes steps from the work. False: its limit, which depends on the objects of the input, is
 * exceeded. Recurses once for each level of the objects, when it counts their bytes. */
bool hfd_expression_take_work(struct hfd_expression_work *work, uint64_t steps,
                              const struct hfd_expression_input *input);
