/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes values of expressions in a form that tells their types apart, for tests. */
#include "base/strbuf.h"
#include "cel/value.h"

/* "1", "1u", "1.0", "'text'", "b'\x00'", "[1, 2]", "{'a': 1}" in the order of the keys,
 * "timestamp(...)", "duration(...)", "optional(1)", "optional.none()", "type(int)". */
void hf__cel_print(struct hf__strbuf *out, struct hf__cel_value value);
