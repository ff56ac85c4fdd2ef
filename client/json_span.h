/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds parts of a JSON text without parsing them. The members of a list's item or of a watch
 * event's object are delivered as the bytes that the server sent, so that no number is rounded and
 * no key is reordered. The library reads only the few of them that it needs.
 *
 * These functions follow brackets and strings, and never read beyond the span. They accept some
 * texts that are not JSON, so a caller that relies on a part must parse it. Pure; spans are
 * borrowed from the text.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__span {
        const char *data;
        size_t n;
};

/* Finds the value of the first member with that name, which must be plain ASCII without escapes.
 * False: there is no such member, or the span is not an object. */
bool hf__span_member(struct hf__span object, const char *key, struct hf__span *ret_value);

/* Whether the span is a JSON string without escapes and control characters: the bytes between its
 * quotes are its text. */
bool hf__span_is_plain(struct hf__span value);

/*
 * Iterates over the members of an object; *at is 0 before the first call. 1: *ret_key (without its
 * quotes, with its escapes) and *ret_value are set. 0: the end. -EPROTO: it is not an object.
 */
int hf__span_next_member(struct hf__span object, size_t *at, struct hf__span *ret_key,
                         struct hf__span *ret_value);

/*
 * The same in two steps, for a caller that looks into some values and skips the others. After a key
 * (1), *at is where its value begins; the caller must move it to the end of the value, for example
 * with hf__span_value. After the last member (0), *at is behind the closing brace.
 */
int hf__span_next_key(struct hf__span object, size_t *at, struct hf__span *ret_key);
/* The value that begins at *at; moves *at to its end. 0, or -EPROTO: it is missing or
 * incomplete. */
int hf__span_value(struct hf__span object, size_t *at, struct hf__span *ret_value);

/* Iterates over the elements of an array; *at is 0 before the first call. 1: *ret_element is set.
 * 0: the end. -EPROTO: it is not an array. */
int hf__span_next(struct hf__span array, size_t *at, struct hf__span *ret_element);
