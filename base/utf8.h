/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__UTF8_MAX 4 /* bytes of one character */

/* Whether the n bytes are valid UTF-8. */
bool hf__utf8_valid(const char *data, size_t n);
/* The length in bytes of the character at the beginning of the n bytes of text; n > 0. 0: the bytes
 * do not begin with a valid character. */
size_t hf__utf8_length(const char *text, size_t n);
/* The same, and sets *ret_character unless the result is 0. */
size_t hf__utf8_decode(const char *text, size_t n, uint32_t *ret_character);
/* The number of characters. A byte that belongs to no valid character counts as one, so the result
 * is at least n / 4. */
size_t hf__utf8_count(const char *text, size_t n);
/* Writes a Unicode code point, and returns the number of bytes. The caller has checked that it is
 * at most 0x10ffff and no surrogate. */
size_t hf__utf8_encode(uint32_t character, char out[HF__UTF8_MAX]);
/* The start of the character after the one at `at`, or n. The n bytes are valid UTF-8; at < n. */
size_t hf__utf8_next(const char *text, size_t n, size_t at);
