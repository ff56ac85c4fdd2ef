/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes the values of expressions from JSON. Thread: the arena's owner. */
#include "cel/values/value.h"

struct hf__arena;
struct hf__json;
struct hfd_declared;

/*
 * The value of a part of an object, as its declaration says. The value lives as long as the arena,
 * the JSON and the declaration. What does not fit the declaration becomes an error value there. If
 * memory is exhausted, the arena has failed and the result is not valid.
 */
struct hf__cel_value hfd_rule_value(struct hf__arena *arena, const struct hfd_declared *declared,
                                    const struct hf__json *json);
