/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads an expression into a tree. Pure. */
#include "cel/syntax/ast.h"

struct hf__cel_issues;

/* Levels of an expression, and characters of it. */
#define HF__CEL_DEPTH_MAX 250
#define HF__CEL_TEXT_MAX  100000

/* The tree, in the arena of the issues, at most max_depth levels deep. NULL: out of memory, or
 * issues were added. */
struct hf__cel_node *hf__cel_parse(struct hf__cel_issues *issues, unsigned max_depth);
