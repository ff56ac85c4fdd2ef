/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks the types of an expression, and resolves its names and functions. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/declarations.h"
#include "cel/syntax/ast.h"

struct hf__cel_issues;

/* Checks the tree. *ret_n_locals: how many local variables an evaluation needs. Returns the type of
 * the result. NULL: out of memory, or issues were added. */
const struct hf__cel_type *hf__cel_check(struct hf__cel_node *root,
                                         const struct hf__cel_declarations *declarations,
                                         struct hf__cel_issues *issues, uint32_t *ret_n_locals);
