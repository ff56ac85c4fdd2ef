/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of expressions that have failed.
 *
 * Invariant: the reason is in the message, however long the expression before it is. A policy's
 * expression may have 100,000 characters.
 */
#include "server/admission/expressions/explained_eval.h"

#include <assert.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "base/strbuf_cut.h"

#define EXPRESSION_MAX 1024 /* bytes of an expression that are shown if not all of it fits */

int hfd_explained_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                       struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message) {
        assert(reterr_message->n == 0 && reterr_message->max > EXPRESSION_MAX);
        int r = hfd_expression_eval(run, expression, ret_value, reterr_message);

        if ((r != HF_E_INVALID && r != HF_E_TOO_MANY) || reterr_message->error != HF_E_TOO_LARGE)
                return r;
        hf__strbuf_reset(reterr_message);
        if (!expression->program) {
                hf__strbuf_puts(reterr_message, "compilation error: ");
                hf__strbuf_puts_cut(reterr_message, expression->error);
                return r;
        }
        hf__strbuf_puts(reterr_message, "expression '");
        hf__strbuf_add_cut(reterr_message, expression->text, strlen(expression->text),
                           EXPRESSION_MAX);
        hf__strbuf_puts(reterr_message, "' resulted in error: ");
        hf__strbuf_puts_cut(reterr_message, ret_value->as.text);
        return r;
}
