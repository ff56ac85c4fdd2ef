/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates macros: a test, a result or both for each element of a range. Pure, except that it
 * changes the run. */
#include "cel/syntax/ast.h"
#include "cel/values/run.h"

typedef struct hf__cel_value hf__cel_eval_function(struct hf__cel_run *run,
                                                   const struct hf__cel_node *node);

/* `eval` evaluates the parts of the node, a FOLD. */
struct hf__cel_value hf__cel_eval_fold(struct hf__cel_run *run, const struct hf__cel_node *node,
                                       hf__cel_eval_function *eval);
