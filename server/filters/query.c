/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a query string. Nothing is decoded in advance: a parameter is searched in the text
 * each time, because most requests have none.
 */
#include "server/filters/query.h"

#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/utf8.h"

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

int hfd_percent_decode(const char *text, size_t n, bool plus_is_space, char *ret_text, size_t max) {
        size_t n_out = 0;
        if (n < max && !plus_is_space &&
            !memchr(text, '%', n)) { /* the usual segment: there is nothing to decode */
                memcpy(ret_text, text, n);
                ret_text[n] = '\0';
                return hf__utf8_valid(text, n) ? (int)n : -1;
        }
        for (size_t i = 0; i < n; i++) {
                char c = text[i];
                if (c == '%') {
                        int high = i + 2 < n ? hex_digit(text[i + 1]) : -1;
                        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
                        if (low < 0)
                                return -1;
                        c = (char)(high * 16 + low);
                        i += 2;
                } else if (c == '+' && plus_is_space)
                        c = ' ';
                if (c == '\0' || n_out + 1 >= max)
                        return -1;
                ret_text[n_out++] = c;
        }
        ret_text[n_out] = '\0';
        return hf__utf8_valid(ret_text, n_out) ? (int)n_out : -1;
}

int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value) {
        size_t n_key = strlen(key);
        char name[128];
        for (const char *at = query; *at;) {
                const char *end = at + strcspn(at, "&");
                const char *equals = memchr(at, '=', (size_t)(end - at));
                const char *name_end = equals ? equals : end;
                int n_name =
                        hfd_percent_decode(at, (size_t)(name_end - at), true, name, sizeof name);
                if (n_name >= 0 && (size_t)n_name == n_key && memcmp(name, key, n_key) == 0 &&
                    nth-- == 0) {
                        const char *value = equals ? equals + 1 : end;
                        return hfd_percent_decode(value, (size_t)(end - value), true, ret_value,
                                                  max_value) < 0
                                       ? HF_E_INVALID
                                       : 0;
                }
                at = *end ? end + 1 : end;
        }
        return HF_E_NOT_FOUND;
}

bool hfd_query_bool(const char *query, const char *key) {
        char value[16];

        int r = hfd_query_get(query, key, 0, value, sizeof value);
        if (r == HF_E_NOT_FOUND)
                return false;
        return r != 0 || (strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0);
}

/*
 * Kubernetes authorizes a list or watch of one name as a request for that name. The selector is
 * parsed again when the request is served; a term that is not understood here names no object.
 */
bool hfd_query_single_name(const char *query, char ret_name[HF_NAME_MAX + 1]) {
        static const char field[] = "metadata.name";
        char selector[1024];

        if (hfd_query_get(query, "fieldSelector", 0, selector, sizeof selector) != 0)
                return false;
        for (char *term = selector; *term;) {
                size_t n = strcspn(term, ",");
                size_t n_skip = n + (term[n] == ',');
                if (n > sizeof field - 1 && memcmp(term, field, sizeof field - 1) == 0 &&
                    term[sizeof field - 1] == '=') {
                        const char *value = term + sizeof field;
                        value += *value == '='; /* "==" is the same as "=" */
                        size_t n_value = (size_t)(term + n - value);
                        if (n_value == 0 || n_value > HF_NAME_MAX)
                                return false;
                        memcpy(ret_name, value, n_value);
                        ret_name[n_value] = '\0';
                        return true;
                }
                term += n_skip;
        }
        return false;
}
