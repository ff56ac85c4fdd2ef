/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a query string. They are not parsed in advance: each lookup searches the text,
 * because most requests have no parameters.
 *
 * Invariant: hfd_query_next never takes a value that cannot be decoded for an absent one. It
 * returns HF_E_INVALID, so that the caller can refuse the request.
 */
#include "server/filters/request/query.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/percent.h"

/* Whether the encoded name at..end is key. */
static bool is_named(const char *at, const char *end, const char *key) {
        size_t n_key = strlen(key);
        char name[128];

        assert(n_key < sizeof name);
        int n = hf__percent_decode(at, (size_t)(end - at), true, name, sizeof name);
        return n >= 0 && (size_t)n == n_key && memcmp(name, key, n_key) == 0;
}

int hfd_query_next(const char **cursor, const char *key, char *ret_value, size_t max_value) {
        assert(max_value > 0);
        while (**cursor) {
                const char *at = *cursor;
                const char *end = at + strcspn(at, "&");
                const char *equals = memchr(at, '=', (size_t)(end - at));

                *cursor = *end ? end + 1 : end;
                if (!is_named(at, equals ? equals : end, key))
                        continue;
                const char *value = equals ? equals + 1 : end;
                int n = hf__percent_decode(value, (size_t)(end - value), true, ret_value,
                                           max_value);
                return n < 0 ? HF_E_INVALID : 0;
        }
        return HF_E_NOT_FOUND;
}

int hfd_query_get(const char *query, const char *key, char *ret_value, size_t max_value) {
        return hfd_query_next(&query, key, ret_value, max_value);
}

bool hfd_query_bool(const char *query, const char *key) {
        char value[16];
        int r = hfd_query_get(query, key, value, sizeof value);

        if (r == HF_E_NOT_FOUND)
                return false;
        return r != 0 || (strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0);
}

/* The length of the first term of a selector. A comma after a backslash is part of a value. */
static size_t term_length(const char *text) {
        size_t n = 0;

        while (text[n] && text[n] != ',')
                n += text[n] == '\\' && text[n + 1] ? 2 : 1;
        return n;
}

/* Copies the n bytes of a value without their backslashes. False: it is malformed, empty, too long,
 * or no name of an object. */
static bool copy_name(const char *value, size_t n, char ret_name[HF_NAME_MAX + 1]) {
        size_t n_name = 0;

        for (size_t i = 0; i < n; i++) {
                bool escaped = value[i] == '\\';
                i += escaped;
                if (i == n || n_name == HF_NAME_MAX || escaped != !!strchr("\\,=", value[i]))
                        return false;
                ret_name[n_name++] = value[i];
        }
        ret_name[n_name] = '\0';
        return n_name > 0 && !strpbrk(ret_name, "/%") && strcmp(ret_name, ".") != 0 &&
               strcmp(ret_name, "..") != 0;
}

/*
 * authorization.c uses the result to authorize the request for that object only. This does not
 * widen the user's rights if the terms here are those of the selector that is applied when the
 * request is served (hfd_selector_parse): then the response contains no other object. Terms of
 * other forms are ignored here. If the result is false, the request is authorized for all objects.
 */
bool hfd_query_selected_name(const char *query, char ret_name[HF_NAME_MAX + 1]) {
        static const char field[] = "metadata.name";
        char selector[1024];

        if (hfd_query_get(query, "fieldSelector", selector, sizeof selector) != 0)
                return false;
        for (char *term = selector; *term;) {
                size_t n = term_length(term);
                size_t n_skip = n + (term[n] == ',');
                if (n > sizeof field - 1 && memcmp(term, field, sizeof field - 1) == 0 &&
                    term[sizeof field - 1] == '=') {
                        const char *value = term + sizeof field;
                        value += *value == '='; /* "==" is the same as "=" */
                        return copy_name(value, (size_t)(term + n - value), ret_name);
                }
                term += n_skip;
        }
        return false;
}
