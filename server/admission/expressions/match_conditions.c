/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates matchConditions, the expressions that decide whether a policy or a webhook is for a
 * request at all.
 *
 * Invariant: a false condition makes the result NO, even if conditions before it have failed. As in
 * Kubernetes, the result of a condition that fails is unknown, and a false condition decides
 * whatever the others would say. So a failure does not end the check, unless the budget is spent or
 * the run has ended. What ends the run is no error of a condition: with the failurePolicy Ignore
 * that would let the write pass without the policy or the webhook.
 */
#include "server/admission/expressions/match_conditions.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "server/admission/expressions/explained_eval.h"

#define MESSAGE_MAX 8192 /* bytes of one message, and of those of all conditions together */

int hfd_match_conditions_new(struct hfd_expressions *set, const struct hf__json *json,
                             unsigned features, struct hfd_match_conditions **ret) {
        size_t n = hf__json_count(json);
        struct hfd_match_conditions *conditions =
                calloc(1, sizeof *conditions + n * sizeof conditions->items[0]);

        if (!conditions)
                return -ENOMEM;
        for (struct hf__json *item = hf__json_first(json); item; item = hf__json_next(item)) {
                struct hfd_match_condition *condition = &conditions->items[conditions->n++];
                const char *text = hf__json_string(item, "expression");
                const char *name = hf__json_string(item, "name");
                int r = hfd_expressions_compile(set, text ? text : "", features, HFD_RESULT_BOOL,
                                                &condition->expression);

                if (r == 0)
                        condition->name = hfd_expressions_text(set, name ? name : "");
                if (r != 0 || !condition->name) {
                        free(conditions);
                        return -ENOMEM;
                }
        }
        *ret = conditions;
        return 0;
}

void hfd_match_progress_done(struct hfd_match_progress *progress) {
        hf__strbuf_done(&progress->errors);
        *progress = (struct hfd_match_progress){0};
}

/* Adds the message of a condition that has failed. */
static void add_error(struct hfd_match_progress *progress, const struct hf__strbuf *message) {
        hf__strbuf_puts_cut(&progress->errors, progress->n_errors > 0 ? ", " : "");
        hf__strbuf_puts_cut(&progress->errors, message->data ? message->data : "");
        progress->n_errors++;
}

/* Evaluates one condition. MORE: it is true or has failed, so the next ones decide. NO: it is
 * false. ERROR: the check ends, and reterr_message says why. ENDED: likewise, and run->ended is the
 * error; reterr_message says why only for HF_E_TOO_MANY and HF_E_TOO_LARGE. */
static enum hfd_match check_condition(const struct hfd_match_condition *condition,
                                      struct hfd_expression_run *run,
                                      struct hfd_match_progress *progress, const char **ret_failed,
                                      struct hf__strbuf *reterr_message) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        enum hfd_match match = HFD_MATCH_MORE;
        struct hf__cel_value value;
        int r = hfd_explained_eval(run, condition->expression, &value, &message);

        if (run->ended != 0)
                match = HFD_MATCH_ENDED;
        else if (r == HF_E_INVALID)
                add_error(progress, &message);
        else if (r != 0)
                match = HFD_MATCH_ERROR;
        else if (value.kind == HF__CEL_BOOL && !value.as.boolean)
                match = HFD_MATCH_NO;
        if (match == HFD_MATCH_ERROR || match == HFD_MATCH_ENDED)
                hf__strbuf_puts(reterr_message, message.data ? message.data : "out of memory");
        if (match == HFD_MATCH_NO && ret_failed)
                *ret_failed = condition->name;
        hf__strbuf_done(&message);
        return match;
}

/* All conditions are evaluated, and none is false. */
static enum hfd_match conclude_conditions(const struct hfd_match_progress *progress,
                                          struct hf__strbuf *reterr_message) {
        const char *errors = progress->errors.data;

        if (progress->n_errors == 0)
                return HFD_MATCH_YES;
        hf__strbuf_printf(reterr_message, progress->n_errors > 1 ? "[%s]" : "%s",
                          errors ? errors : "");
        return HFD_MATCH_ERROR;
}

/* The work may be divided into turns, each with a run of its own. So progress carries the budget
 * over to the next run. */
enum hfd_match hfd_match_conditions_go_on(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run,
                                          struct hfd_match_progress *progress, uint64_t *turn_left,
                                          const char **ret_failed,
                                          struct hf__strbuf *reterr_message) {
        assert(progress->next <= conditions->n);
        if (progress->begun)
                run->budget = progress->budget;
        progress->begun = true;
        progress->errors.max = MESSAGE_MAX;
        while (progress->next < conditions->n) {
                if (*turn_left == 0)
                        return HFD_MATCH_MORE;
                const struct hfd_match_condition *condition = &conditions->items[progress->next];
                uint64_t used = run->used;
                progress->budget = run->budget;
                enum hfd_match match =
                        check_condition(condition, run, progress, ret_failed, reterr_message);
                if (match != HFD_MATCH_MORE)
                        return match;
                used = run->used - used;
                *turn_left -= used < *turn_left ? used : *turn_left;
                progress->budget = run->budget;
                progress->next++;
        }
        return conclude_conditions(progress, reterr_message);
}

enum hfd_match hfd_match_conditions_check(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run, const char **ret_failed,
                                          struct hf__strbuf *reterr_message) {
        struct hfd_match_progress progress = {0};
        uint64_t no_limit = UINT64_MAX;
        enum hfd_match match = hfd_match_conditions_go_on(conditions, run, &progress, &no_limit,
                                                          ret_failed, reterr_message);

        assert(match != HFD_MATCH_MORE); /* there was no limit */
        hfd_match_progress_done(&progress);
        return match;
}
