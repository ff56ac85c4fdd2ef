/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Joins the repeated headers of a request: "a" and "b" become "a, b". RFC 9110 5.3 allows this for
 * every header that may be repeated; cookies are joined by a semicolon (RFC 9113 8.2.3). The
 * headers of an impersonation are joined by HFD_HTTP_VALUE_SEPARATOR, because a comma may be part
 * of a name.
 *
 * Pure. Headers are packed (packed_header.h), with names in lower case.
 */
#include <stddef.h>

#define HFD_HEADERS_MAX 256 /* per request; more cannot be joined */

/*
 * Writes the n bytes of headers at `packed` to out: each name once, where it appears first. out has
 * room for n bytes, because joined headers are never longer. Returns the number of bytes written.
 */
size_t hfd_join_headers(const char *packed, size_t n, char *out);
