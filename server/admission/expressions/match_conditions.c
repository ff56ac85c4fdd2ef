/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates matchConditions.
 *
 * Invariant: if any condition is false, the result is NO, even if conditions before it have failed.
 */
#include "server/admission/expressions/match_conditions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"

#define MESSAGE_MAX 8192

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

enum hfd_match hfd_match_conditions_check(const struct hfd_match_conditions *conditions,
                                          struct hfd_expression_run *run, const char **ret_failed,
                                          struct hf__strbuf *reterr_message) {
        struct hf__strbuf errors = {.max = MESSAGE_MAX};
        enum hfd_match match = HFD_MATCH_YES;
        size_t n_errors = 0;

        for (size_t i = 0; i < conditions->n; i++) {
                const struct hfd_match_condition *condition = &conditions->items[i];
                size_t before = errors.n;
                struct hf__cel_value value;
                size_t start;
                int r;

                if (n_errors > 0)
                        hf__strbuf_puts(&errors, ", ");
                start = errors.n;
                r = hfd_expression_eval(run, condition->expression, &value, &errors);
                if (r == HF_E_INVALID) {
                        n_errors++;
                        continue;
                }
                if (r != 0) {
                        /* The budget is spent or memory ran out: nothing else is evaluated. */
                        if (r == HF_E_TOO_LARGE && errors.error == 0)
                                hf__strbuf_add(reterr_message, errors.data + start,
                                               errors.n - start);
                        else
                                hf__strbuf_puts(reterr_message, "out of memory");
                        match = HFD_MATCH_ERROR;
                        n_errors = 0;
                        break;
                }
                if (errors.n > before) {
                        errors.n = before;
                        errors.data[before] = 0;
                }
                if (value.kind == HF__CEL_BOOL && !value.as.boolean) {
                        if (ret_failed)
                                *ret_failed = condition->name;
                        n_errors = 0;
                        match = HFD_MATCH_NO;
                        break;
                }
        }
        if (n_errors > 0) {
                match = HFD_MATCH_ERROR;
                hf__strbuf_printf(reterr_message, n_errors > 1 ? "[%s]" : "%s",
                                  errors.data ? errors.data : "");
        }
        hf__strbuf_done(&errors);
        return match;
}
