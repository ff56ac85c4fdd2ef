/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The macros: has, all, exists, exists_one, map, filter, sortBy, the ones with two variables, and
 * those of optional values. Pure. */
#include <stdbool.h>

#include "cel/syntax/ast.h"

struct hf__arena;
struct hf__cel_issues;

/* If a macro has the name, style (member or not) and number of arguments of the CALL, turns the
 * CALL into the macro's node. Wrong arguments become an issue. Any other CALL stays as it is. */
void hf__cel_macro_expand(struct hf__cel_node *call, struct hf__cel_issues *issues);
