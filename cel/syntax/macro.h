/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The macros: has, all, exists, exists_one, map, filter, the ones with two variables, and those of
 * optional values. Pure. */
#include <stdbool.h>

#include "cel/syntax/ast.h"

struct hf__arena;
struct hf__cel_issues;

/* Turns a CALL into the node of the macro that has its name, style and number of arguments, if
 * there is one. Wrong arguments become an issue. The node stays a CALL if it is no macro. */
void hf__cel_macro_expand(struct hf__cel_node *call, struct hf__cel_issues *issues);
