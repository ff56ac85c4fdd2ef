/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbers as text, as Go writes and reads them. The C library's conversions are used, so LC_NUMERIC
 * must be that of the C locale, which is the default of a process. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__strbuf;

/* The text with the fewest significant digits that is read as the same number: "1e+06", "0.1",
 * "+Inf", "NaN". */
void hf__cel_double_print(struct hf__strbuf *out, double value);
/* false: malformed, out of range, or, for a double, 400 bytes or more. */
bool hf__cel_int_parse(const char *text, size_t n, int64_t *ret_value);
bool hf__cel_uint_parse(const char *text, size_t n, uint64_t *ret_value);
bool hf__cel_double_parse(const char *text, size_t n, double *ret_value);
