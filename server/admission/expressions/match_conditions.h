/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The matchConditions of a webhook or a policy. Thread: owner only. Blocks: never. */
#include <stdbool.h>
#include <stddef.h>

#include "server/admission/expressions/expression_run.h"

struct hf__json;
struct hf__strbuf;

struct hfd_match_conditions {
        size_t n;
        struct hfd_match_condition {
                const char *name;
                const struct hfd_expression *expression;
        } items[]; /* names and expressions belong to the set */
};

/*
 * Compiles a list of matchConditions; json NULL = there are none. features: those of the set
 * (HFD_EXPRESSION_AUTHORIZER, and for policies HFD_EXPRESSION_PARAMS and ..._VARIABLES). The caller
 * frees the result, with free, before or after the set. 0 or -ENOMEM.
 */
int hfd_match_conditions_new(struct hfd_expressions *set, const struct hf__json *json,
                             unsigned features, struct hfd_match_conditions **ret);

enum hfd_match { HFD_MATCH_YES, HFD_MATCH_NO, HFD_MATCH_ERROR };
/*
 * Whether all conditions are true. NO: one is false, whatever errors others have; *ret_failed (may
 * be NULL) is its name. ERROR: none is false, but some cannot be evaluated, or the budget is spent;
 * reterr_message says why, and the failurePolicy decides. If memory is exhausted, the result is
 * ERROR, too. The run has the budget HFD_MATCH_BUDGET.
 */
enum hfd_match hfd_match_conditions_check(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run, const char **ret_failed,
                                          struct hf__strbuf *reterr_message);
