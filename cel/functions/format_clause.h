/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The clauses of a format, "%s" and "%.3f": how they are written and what they take. Pure. */
#include <stddef.h>

/* Kubernetes has no such limit. Here the text of a number is made in a buffer on the stack, which
 * has room for so many digits after the point (format.c). */
#define HF__CEL_PRECISION_MAX 1000

/* Reads a clause of at most n > 0 bytes that begins after its '%'. Returns the number of bytes,
 * the last of which is the letter; *ret_precision is -1 without a number, and never above
 * HF__CEL_PRECISION_MAX + 1. 0: malformed, and the message says why. */
size_t hf__cel_format_clause(const char *text, size_t n, int *ret_precision, char *reterr_message,
                             size_t max_message);
/* The message about an argument that the clause does not take, without ", was given TYPE". */
const char *hf__cel_format_refusal(char clause);
