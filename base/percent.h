/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decoding of percent-encoded text (RFC 3986): parts of a URL. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes n bytes of text into ret_text, and appends a NUL. ret_text has room for max bytes, the
 * NUL included; max > 0. plus_is_space: '+' is a space, as in a query. Returns the decoded length,
 * without the NUL.
 *
 * -1: the text is badly encoded, too long, contains a NUL (raw or as "%00"), or is not UTF-8 after
 * decoding. Text that is not UTF-8 is refused because responses repeat it, and they are JSON.
 * ret_text is then undefined.
 *
 * ret_text may be text itself, to decode in place: n + 1 bytes are always enough.
 */
int hf__percent_decode(const char *text, size_t n, bool plus_is_space, char *ret_text, size_t max);
