/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads an expression into a tree. Pure. */
#include "cel/syntax/ast.h"

struct hf__cel_issues;

/* The most levels and the most characters that an expression may have. */
#define HF__CEL_DEPTH_MAX 250
#define HF__CEL_TEXT_MAX  100000

/* Parses the text of `issues`. The tree is in the arena of `issues`, and at most max_depth (1 to
 * HF__CEL_DEPTH_MAX) levels deep. NULL: out of memory, or issues were added. */
struct hf__cel_node *hf__cel_parse(struct hf__cel_issues *issues, unsigned max_depth);
