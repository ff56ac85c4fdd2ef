/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates an expression, with a message that always fits. Thread: owner of the run. Never
 * blocks. */
#include "server/admission/expressions/expression_run.h"

/*
 * hfd_expression_eval, but if the limit of reterr_message, which must have one and be empty, leaves
 * no room for the whole message, the text of the expression in it is cut. So reterr_message->error
 * is 0 or -ENOMEM.
 */
int hfd_explained_eval(struct hfd_expression_run *run, const struct hfd_expression *expression,
                       struct hf__cel_value *ret_value, struct hf__strbuf *reterr_message);
