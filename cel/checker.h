/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks the types of an expression, and resolves its names and functions. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/syntax/ast.h"
#include "cel/values/declarations.h"

struct hf__cel_issues;

struct hf__cel_checked {
        uint32_t n_locals; /* local variables that an evaluation needs */
        uint64_t used;     /* bit i: declared variable i is used, if i < 64 */
        uint32_t steps;    /* of the check, also of one that has failed */
};

/* Checks and validates the tree. Returns the type of the result; there may be issues of the
 * validation (cel/validate.h). NULL: out of memory, or the check has added issues. */
const struct hf__cel_type *hf__cel_check(struct hf__cel_node *root,
                                         const struct hf__cel_declarations *declarations,
                                         struct hf__cel_issues *issues,
                                         struct hf__cel_checked *ret_checked);
