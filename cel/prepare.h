/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Work that is done once for a program: literals become values, literal patterns are compiled. */
#include <stdint.h>

#include "cel/syntax/ast.h"

struct hf__cel_issues;

/* Changes the checked tree. Memory comes from the arena of the issues, which outlives the tree. A
 * pattern, time or duration that is malformed becomes an issue. The work of compiling patterns is
 * added to *work. -ENOMEM or 0. Thread: the one that compiles the program; the tree is not shared
 * yet. */
int hf__cel_prepare(struct hf__cel_node *root, struct hf__cel_issues *issues, uint64_t *work);
