/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates a checked tree. Pure, except that it changes the run. Thread: any. Several threads may
 * evaluate one tree at the same time, each with a run of its own. */
#include "cel/syntax/ast.h"
#include "cel/values/run.h"

/* The value of the tree, or an error. If the run has failed, a literal may still be returned, so a
 * caller in a loop looks at run->failed. */
struct hf__cel_value hf__cel_eval_node(struct hf__cel_run *run, const struct hf__cel_node *node);
