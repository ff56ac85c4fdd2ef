/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds parts of a JSON text by their brackets and strings.
 *
 * Invariants: no function reads outside of its span, whatever the text is. A walk takes time in
 * proportion to the span. Depth is counted, not recursed into, so a deeply nested text costs no
 * stack.
 */
#include "client/json_span.h"

#include <errno.h>
#include <string.h>

static size_t skip_space(struct hf__span s, size_t i) {
        while (i < s.n &&
               (s.data[i] == ' ' || s.data[i] == '\t' || s.data[i] == '\n' || s.data[i] == '\r'))
                i++;
        return i;
}

/* s.data[i] is the opening quote. Returns the index after the closing quote, or 0 if there is none.
 * A quote after an odd number of backslashes is part of the string. memchr finds the next quote
 * many bytes at a time, and most strings have no backslash. */
static size_t skip_string(struct hf__span s, size_t i) {
        const char *begin = s.data + i + 1, *end = s.data + s.n, *quote = begin;

        while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL) {
                const char *text_end = quote;

                while (text_end > begin && text_end[-1] == '\\')
                        text_end--;
                quote++;
                if ((quote - text_end) % 2 == 1) /* the backslashes and the quote */
                        return (size_t)(quote - s.data);
        }
        return 0;
}

/* Returns the index after the value that begins at i, or 0 if it is missing or incomplete. */
static size_t skip_value(struct hf__span s, size_t i) {
        size_t depth = 0, begin = i;

        /* Does not distinguish brackets from braces. A text that mixes them up is not JSON, and
         * parsing the part will fail. */
        while (i < s.n) {
                char c = s.data[i];
                if (c == '"') {
                        i = skip_string(s, i);
                        if (i == 0 || depth == 0)
                                return i;
                        continue;
                }
                if (c == '{' || c == '[') {
                        depth++;
                } else if (c == '}' || c == ']') {
                        if (depth == 0) /* the container ends, and with it a number or a word */
                                return i > begin ? i : 0;
                        if (--depth == 0)
                                return i + 1;
                } else if (depth == 0 &&
                           (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
                        return i > begin ? i : 0;
                }
                i++;
        }
        return 0;
}

int hf__span_next_key(struct hf__span object, size_t *at, struct hf__span *ret_key) {
        size_t i = skip_space(object, *at);
        bool first = *at == 0;

        if (i >= object.n || (first && object.data[i] != '{'))
                return -EPROTO;
        if (!first && object.data[i] == '}') {
                *at = i + 1;
                return 0;
        }
        if (!first && object.data[i] != ',')
                return -EPROTO;
        i = skip_space(object, i + 1);
        if (first && i < object.n && object.data[i] == '}') {
                *at = i + 1;
                return 0;
        }
        if (i >= object.n || object.data[i] != '"')
                return -EPROTO;
        size_t name = i + 1, end = skip_string(object, i);
        if (end == 0)
                return -EPROTO;
        i = skip_space(object, end);
        if (i >= object.n || object.data[i] != ':')
                return -EPROTO;
        *ret_key = (struct hf__span){object.data + name, end - 1 - name};
        *at = skip_space(object, i + 1);
        return 1;
}

int hf__span_value(struct hf__span object, size_t *at, struct hf__span *ret_value) {
        size_t begin = *at, end = skip_value(object, begin);

        if (end == 0)
                return -EPROTO;
        *ret_value = (struct hf__span){object.data + begin, end - begin};
        *at = end;
        return 0;
}

int hf__span_next_member(struct hf__span object, size_t *at, struct hf__span *ret_key,
                         struct hf__span *ret_value) {
        int r = hf__span_next_key(object, at, ret_key);

        if (r <= 0)
                return r;
        return hf__span_value(object, at, ret_value) == 0 ? 1 : -EPROTO;
}

bool hf__span_is_plain(struct hf__span value) {
        if (value.n < 2 || value.data[0] != '"' || value.data[value.n - 1] != '"')
                return false;
        for (size_t i = 1; i < value.n - 1; i++)
                if ((unsigned char)value.data[i] < 0x20 || value.data[i] == '"' ||
                    value.data[i] == '\\')
                        return false;
        return true;
}

bool hf__span_member(struct hf__span object, const char *key, struct hf__span *ret_value) {
        struct hf__span name, value;
        size_t n_key = strlen(key), at = 0;

        while (hf__span_next_member(object, &at, &name, &value) > 0)
                if (name.n == n_key && memcmp(name.data, key, n_key) == 0) {
                        *ret_value = value;
                        return true;
                }
        return false;
}

int hf__span_next(struct hf__span array, size_t *at, struct hf__span *ret_element) {
        size_t i = skip_space(array, *at);
        bool first = *at == 0;

        if (i >= array.n || (first && array.data[i] != '['))
                return -EPROTO;
        if (!first && array.data[i] == ']')
                return 0;
        if (!first && array.data[i] != ',')
                return -EPROTO;
        i = skip_space(array, i + 1);
        if (first && i < array.n && array.data[i] == ']')
                return 0;
        size_t end = skip_value(array, i);
        if (end == 0)
                return -EPROTO;
        *ret_element = (struct hf__span){array.data + i, end - i};
        *at = end;
        return 1;
}
