/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names of properties as expressions write them. Pure. Thread: any. */
#include <stdbool.h>

struct hf__arena;

/* The name as an expression writes it: "a__dash__b" for "a-b", and "__for__" for "for", which is a
 * word of CEL. The text belongs to the arena. NULL: the name cannot be written in an expression;
 * or, if arena->failed, memory ran out. */
const char *hfd_rule_name(struct hf__arena *arena, const char *name);
/* Whether the name is a word that CEL reserves. After a dot, such a name may also stand unescaped,
 * unless it is true, false, null or in. */
bool hfd_rule_name_is_reserved(const char *name);
