/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Evaluates expressions of admission for one request. A run keeps the values of the variables,
 * which are evaluated at their first use, and the budget that its expressions share.
 *
 * Owner: the caller keeps the run, the set and everything that the input points to alive, and does
 * not move them. Thread: owner only; it may move from thread to thread. Blocks: never. Stack: at
 * most HFD_CUSTOM_RULES_STACK bytes, besides HF__JSON_STACK: from its deepest level an expression
 * may compare two objects, and at any step of that their bytes may be counted
 * (hfd_expression_take_work).
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cel/values/authorizer.h"
#include "cel/values/value.h"
#include "server/admission/expressions/expression_input.h"
#include "server/admission/expressions/expression_work.h"
#include "server/resources/expressions/expressions.h"

struct hf__strbuf;

/* The limits of the cost of one expression; of all validations in one evaluation of a policy, of
 * all its audit annotations, or of one mutation; and of all matchConditions. As in Kubernetes. */
#define HFD_EXPRESSION_COST    UINT64_C(1000000)
#define HFD_EXPRESSIONS_BUDGET UINT64_C(10000000)
#define HFD_MATCH_BUDGET       UINT64_C(2500000)
/* Bytes that the expressions of a run may keep at the same time: values of variables, and what the
 * expression that is being evaluated makes. One expression may make 16 MiB (cel/cel.h). */
#define HFD_EXPRESSIONS_BYTES    ((size_t)32 << 20)
#define HFD_EXPRESSION_DEPTH_SUM 240 /* levels of expressions that variables nest */

struct hfd_expression_memo;

struct hfd_expression_run {
        const struct hfd_expressions *set;
        const struct hfd_expression_input *input;
        uint64_t budget;                            /* what is left */
        struct hfd_expression_allowance *allowance; /* the caller's; NULL: there is none */
        struct hfd_expression_work *work;           /* the caller's; NULL: the run's own */
        /* Whether the request may go on: 0, or the error that `ended` becomes. Called often, also
         * within evaluations, on the thread of the run. NULL: it may. */
        int (*may_go_on)(const void *ctx);
        const void *may_ctx;
        /* The error that has ended the run, as hfd_expression_eval returns it: no expression may be
         * evaluated any more, and the failurePolicy does not decide. 0: none. A budget that is
         * spent does not set it. */
        int ended;
        struct hf__arena arena;   /* of the values below and of variables */
        struct hf__arena scratch; /* of the expression that was evaluated last */
        size_t bytes;             /* what expressions have in both */
        size_t kept_bytes;        /* the part of it that is in `arena` */
        struct hf__cel_value values[HFD_SLOTS_OF_EXPRESSION];
        bool made[HFD_SLOTS_OF_EXPRESSION];
        struct hf__cel_authorizer authorizer;
        struct hf__cel_map variables;
        struct hfd_expression_memo *memos; /* one for each variable; in the arena */
        struct hfd_expression_work own_work;
        uint64_t used;           /* by all evaluations so far; as an allowance counts it */
        uint64_t variables_cost; /* of variables; no expression has paid it yet */
        unsigned depth;          /* levels of the expressions that are being evaluated */
};

void hfd_expression_run_init(struct hfd_expression_run *run, const struct hfd_expressions *set,
                             const struct hfd_expression_input *input, uint64_t budget);
void hfd_expression_run_done(struct hfd_expression_run *run);

/*
 * Evaluates an expression of the set. The value lives until the next call, or the end of the run.
 * It may contain the map `variables`: then a caller that reads it evaluates variables, and finds an
 * error value in the place of one that fails. If reading it ends the run, run->ended says why.
 *
 *      0
 *      HF_E_INVALID    it does not compile, or its evaluation has failed
 *      HF_E_TOO_LARGE  the budget or the allowance is spent, and no further expression may be
 *                      evaluated
 *      HF_E_TOO_MANY   as HF_E_INVALID, but by a limit that Kubernetes does not have (of work, of
 *                      memory, of the levels of variables). An expression that Kubernetes would
 *                      evaluate must not let a write pass, so it counts as a failure even with the
 *                      failurePolicy Ignore. run->ended is the same.
 *      -ENOMEM, or an error of run->may_go_on: nobody knows what the expression says, so the
 *                      request must end with the response to this error (for may_go_on of a
 *                      turn: hfd_admission_turn_refuse). run->ended is the same.
 *
 * After the first three errors kube-apiserver's message was appended to reterr_message, which may
 * be NULL. After each error *ret_value is an error, whose text is the reason after HF_E_INVALID and
 * HF_E_TOO_MANY.
 */
int hfd_expression_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                        struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message);
