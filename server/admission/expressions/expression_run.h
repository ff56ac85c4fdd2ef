/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Evaluates expressions of admission for one request. A run keeps the values of the variables,
 * which are evaluated at their first use, and the budget that its expressions share.
 *
 * Owner: the caller keeps the run, the set and everything that the input points to alive, and does
 * not move them. Thread: owner only; it may move from thread to thread. Blocks: never. Stack: at
 * most HFD_CUSTOM_RULES_STACK bytes.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cel/values/authorizer.h"
#include "cel/values/value.h"
#include "server/admission/expressions/expression_input.h"
#include "server/resources/expressions/expressions.h"

struct hf__strbuf;

/* The limits of the cost of one expression; of all validations in one evaluation of a policy, of
 * all its audit annotations, or of one mutation; and of all matchConditions. As in Kubernetes. */
#define HFD_EXPRESSION_COST    UINT64_C(1000000)
#define HFD_EXPRESSIONS_BUDGET UINT64_C(10000000)
#define HFD_MATCH_BUDGET       UINT64_C(2500000)
/* The limit of the work of one expression, which Kubernetes does not have: less than 0.2 s. It lets
 * a pattern be searched in the longest text of a request (3 MiB): who may write an object must not
 * be able to make a policy fail, and so to escape it, merely by the length of what he writes. A
 * pattern with a repetition of some hundred characters can still need more for a long text. */
#define HFD_EXPRESSION_WORK      UINT64_C(10000000)
#define HFD_EXPRESSION_DEPTH_SUM 240 /* levels of expressions that variables nest */

struct hfd_expression_memo;

/*
 * What all runs of a request may use together on a thread that also serves other requests: of each
 * evaluation, the larger of its cost and its work, and what it takes to make the values of objects.
 * Beyond it all further evaluations fail, `spent`
 * is set, and the caller starts over on another thread.
 */
struct hfd_expression_allowance {
        uint64_t left;
        bool spent;
};

struct hfd_expression_run {
        const struct hfd_expressions *set;
        const struct hfd_expression_input *input;
        uint64_t budget;                            /* what is left */
        struct hfd_expression_allowance *allowance; /* the caller's; NULL: there is none */
        struct hf__arena arena;
        struct hf__cel_value values[HFD_SLOTS_OF_EXPRESSION];
        bool made[HFD_SLOTS_OF_EXPRESSION];
        struct hf__cel_authorizer authorizer;
        struct hf__cel_map variables;
        struct hfd_expression_memo *memos; /* of each variable; of the arena */
        uint64_t used;           /* by all evaluations so far; as an allowance counts it */
        uint64_t variables_cost; /* the cost of variables since the last expression began */
        unsigned depth;          /* levels of the expressions that are being evaluated */
};

void hfd_expression_run_init(struct hfd_expression_run *run, const struct hfd_expressions *set,
                             const struct hfd_expression_input *input, uint64_t budget);
void hfd_expression_run_done(struct hfd_expression_run *run);

/*
 * Evaluates an expression of the set. The value lives as long as the run. 0; -ENOMEM; HF_E_INVALID:
 * it does not compile, or its evaluation has failed; HF_E_TOO_LARGE: the budget or the allowance is
 * spent, and no further expression may be evaluated. After the last two, kube-apiserver's message
 * was appended to reterr_message, which may be NULL. After HF_E_INVALID *ret_value is an error
 * whose text is the reason.
 */
int hfd_expression_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                        struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message);
