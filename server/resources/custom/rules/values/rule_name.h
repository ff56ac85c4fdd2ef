/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names of properties as expressions write them. Pure. Thread: any. */
#include <stdbool.h>

struct hf__arena;

/* "a-b" is written "a__dash__b", and a word of the language like "for" is written "__for__". NULL:
 * the name cannot be written in an expression, or, if the arena has failed, memory ran out. */
const char *hfd_rule_name(struct hf__arena *arena, const char *name);
/* Whether it is a word of the language. After a dot such a name may also stand as it is. */
bool hfd_rule_name_is_reserved(const char *name);
