/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The matchConditions of a webhook or a policy. Thread: owner only. Blocks: never. */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "server/admission/expressions/expression_run.h"

struct hf__json;

struct hfd_match_conditions {
        size_t n;
        struct hfd_match_condition {
                const char *name;
                const struct hfd_expression *expression;
        } items[]; /* names and expressions belong to the set */
};

/*
 * Compiles a list of matchConditions; json NULL = there are none. features: those that the
 * conditions may use, HFD_EXPRESSION_AUTHORIZER and, in a policy with params,
 * HFD_EXPRESSION_PARAMS. The caller frees the result, with free, before or after the set. 0 or
 * -ENOMEM.
 */
int hfd_match_conditions_new(struct hfd_expressions *set, const struct hf__json *json,
                             unsigned features, struct hfd_match_conditions **ret);

enum hfd_match {
        HFD_MATCH_YES,
        HFD_MATCH_NO,
        HFD_MATCH_ERROR,
        HFD_MATCH_ENDED, /* run->ended says why; the failurePolicy does not decide */
        HFD_MATCH_MORE /* the turn is over, and conditions are left: call again with the progress */
};

/* The progress of a check that is done in several turns, each with a run of its own. Begins as {0};
 * the caller calls hfd_match_progress_done. */
struct hfd_match_progress {
        bool begun;
        size_t next;              /* the condition that is evaluated next */
        uint64_t budget;          /* what is left for the conditions */
        size_t n_errors;          /* of the conditions before `next` */
        struct hf__strbuf errors; /* their texts */
};
void hfd_match_progress_done(struct hfd_match_progress *progress);
/*
 * Whether all conditions are true. NO: one is false, whatever errors others have; *ret_failed is
 * its name, unless ret_failed is NULL. ERROR: none is false, but some cannot be evaluated, or the
 * budget is spent; reterr_message says why, and the failurePolicy decides. ENDED: run->ended is an
 * error of hfd_expression_eval. HF_E_TOO_MANY: reterr_message says why, and the webhook or the
 * policy has failed, whatever its failurePolicy is. HF_E_TOO_LARGE: the allowance of the run is
 * spent, so the result must be discarded. Other errors: the request must end with the response to
 * the error. The caller makes the run with the budget HFD_MATCH_BUDGET.
 */
enum hfd_match hfd_match_conditions_check(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run, const char **ret_failed,
                                          struct hf__strbuf *reterr_message);
/*
 * The same in turns: continues after `progress`, and returns MORE if conditions are left when
 * *turn_left is 0. What each condition has used, as an allowance counts it, is subtracted from
 * *turn_left. If the allowance of the run is spent, the progress stays before the condition that
 * has spent it.
 */
enum hfd_match hfd_match_conditions_go_on(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run,
                                          struct hfd_match_progress *progress, uint64_t *turn_left,
                                          const char **ret_failed,
                                          struct hf__strbuf *reterr_message);
