/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates an expression, with a message that always fits. Thread: owner of the run. Never
 * blocks. */
#include "server/admission/expressions/expression_run.h"

/*
 * Like hfd_expression_eval, but the message always fits: if the whole message is longer than the
 * limit of reterr_message, the text of the expression in it is cut, and then, if necessary, the
 * reason. So reterr_message->error is 0 or -ENOMEM. reterr_message must be empty and have a limit
 * of at least 1100 bytes.
 */
int hfd_explained_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                       struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message);
