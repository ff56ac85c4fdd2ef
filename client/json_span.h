/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pieces of a JSON text, cut out without parsing what is inside: a list's items and a watch event's
 * object are handed on as the bytes the server sent (no number is rounded, no key reordered), and
 * only their metadata is parsed.
 *
 * It walks brackets and strings and never reads past the span; it accepts some texts that are not
 * JSON, and whoever uses a piece parses it. Pure; spans borrow from the text.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__span {
        const char *data;
        size_t n;
};

/* The first member of that name (plain ASCII, unescaped) of an object; false: none, or not an
 * object. */
bool hf__span_member(struct hf__span object, const char *key, struct hf__span *ret_value);

/*
 * Iterates over an object: at begins as 0. 1 = *ret_key (between its quotes, escapes and all) and
 * *ret_value are set, 0 = the end, -EPROTO = not an object.
 */
int hf__span_next_member(struct hf__span object, size_t *at, struct hf__span *ret_key,
                         struct hf__span *ret_value);

/* Iterates over an array: at begins as 0. 1 = *ret_element is set, 0 = the end, -EPROTO = not an
 * array. */
int hf__span_next(struct hf__span array, size_t *at, struct hf__span *ret_element);
