/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Quotes texts as Go's %q does, because the messages of Kubernetes contain values in this form.
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Approximates Go's unicode.IsPrint: false for control and private-use characters, for most format
 * characters, and for every space but ' '. */
bool hf__is_printable(uint32_t character);
/* Writes the n bytes of text in quotes, with Go's escapes, and the NUL. If max_out is too small for
 * all of them, the last characters are left out. max_out >= 3. */
void hf__quote_bytes(const char *text, size_t n, char *out, size_t max_out);
