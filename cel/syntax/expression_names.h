/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules for the names in an expression. Pure. */
#include <stdbool.h>
#include <stddef.h>

#include "cel/syntax/ast.h"

/* Whether the name is a reserved word: one of the language, or one that a later version may use. */
bool hf__cel_name_is_reserved(const char *name);
/* Writes "a.b.c", without a NUL, for a chain of names that can be the name of a type. Returns its
 * length. 0: the node is something else, or the name has more than max bytes. */
size_t hf__cel_type_name_of(const struct hf__cel_node *node, char *out, size_t max);
