/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Work that is done once for a program: literals become values, literal patterns are compiled. */
#include <stdint.h>

#include "cel/syntax/ast.h"

struct hf__cel_issues;

/* Changes the checked tree. Memory comes from the arena of the issues, which also holds the tree. A
 * malformed pattern becomes an issue, and so do patterns beyond the limits of this implementation
 * and a conversion of a literal that must fail, such as int('x'). The work of compiling patterns is
 * added to *work, and a step for every two bytes of memory that they keep. -ENOMEM or 0. Thread:
 * the one that compiles the program; the tree is not shared yet. */
int hf__cel_prepare(struct hf__cel_node *root, struct hf__cel_issues *issues, uint64_t *work);
