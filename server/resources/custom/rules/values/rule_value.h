/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes, from JSON, the values that expressions (CEL) read. Pure. Thread: the arena's owner. */
#include "cel/values/value.h"

struct hf__arena;
struct hf__json;
struct hfd_declared;

/* The value of a part of an object, as its declaration says. The value is in the arena and borrows
 * from the JSON and the declaration, so it lives as long as all three. A part that does not fit the
 * declaration becomes an error value at its place. If memory runs out, arena->failed is set and the
 * result must not be used. declared NULL: a value of any type. */
struct hf__cel_value hfd_rule_value(struct hf__arena *arena, const struct hfd_declared *declared,
                                    const struct hf__json *json);
