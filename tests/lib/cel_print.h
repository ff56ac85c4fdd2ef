/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes values of expressions in a form that distinguishes most of their types, for tests. */
#include "base/strbuf.h"
#include "cel/values/value.h"

/* Appends "1", "1u", "double 1", "'text'", "b'\x00'", "[1, 2]", "{'a': 1}" in the order of the
 * keys, "2026-01-02T03:04:05Z", "1.5s", "optional(1)", "optional.none()", "type(int)", "null",
 * "true", "error(message)" or "opaque". */
void hf__cel_print(struct hf__strbuf *out, struct hf__cel_value value);
