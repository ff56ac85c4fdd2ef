/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Percent-encoding, and the parameters of a query string ("a=b&c=d"). Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

/*
 * Decodes n bytes of text into at most max - 1 bytes and a NUL. Returns the decoded length. -1: bad
 * encoding, a NUL inside, too long, or not UTF-8: responses repeat what was asked for, and they are
 * JSON.
 */
int hfd_percent_decode(const char *text, size_t n, bool plus_is_space, char *ret_text, size_t max);

/*
 * The value of the nth (from 0) parameter called key, decoded ('+' is a space). A parameter without
 * '=' has the value "". 0; HF_E_NOT_FOUND; HF_E_INVALID: badly encoded, or longer than
 * max_value - 1.
 */
int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value);
/*
 * A boolean parameter as Kubernetes reads it: absent, "0" and "false" are false, everything else
 * is true (also `?watch`).
 */
bool hfd_query_bool(const char *query, const char *key);

/*
 * If fieldSelector names one object (metadata.name=x is one of its terms), copies x and returns
 * true.
 */
bool hfd_query_single_name(const char *query, char ret_name[HF_NAME_MAX + 1]);
