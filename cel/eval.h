/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates a checked tree. Pure but for the run. Thread: any; the tree may be shared, the run not.
 */
#include "cel/syntax/ast.h"
#include "cel/values/run.h"

/* The value of the tree, or an error. Once the run has failed, always an error. */
struct hf__cel_value hf__cel_eval_node(struct hf__cel_run *run, const struct hf__cel_node *node);
