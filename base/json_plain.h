/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Recognizes texts that need none of the parser's careful checks, and parts of them. Pure. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the text is plain: its strings have no escape and no control character; outside of them
 * there are only lower-case letters, numbers, JSON's punctuation and white space; it is nested at
 * most depth_max deep; its numbers are whole and have at most 15 digits. Most texts are plain. A
 * plain text may still be invalid JSON; but if cJSON accepts it, cJSON reads it correctly.
 */
bool hf__json_is_plain(const char *data, size_t n, size_t depth_max);
/* Finds the first quote, backslash or control character at or after p and before `end`. The
 * characters before it stand for themselves in a JSON string. Returns `end` if there is none. */
const char *hf__json_skip_plain(const char *p, const char *end);
/*
 * The end of the value that begins at p, before end, if it consists of objects, arrays and strings
 * without escapes, with no white space between them. Then it is valid JSON, except that strings are
 * not checked to be UTF-8. NULL: it has other parts, is nested more than 64 deep, or is no JSON.
 */
const char *hf__json_skip_plain_value(const char *p, const char *end);
