/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a query string. They are not parsed in advance: each lookup searches the text,
 * because most requests have no parameters.
 *
 * Invariant: a parameter that cannot be decoded is never treated as absent. HF_E_INVALID lets the
 * caller refuse it.
 */
#include "server/filters/query.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/percent.h"

int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value) {
        size_t n_key = strlen(key);
        char name[128];

        assert(n_key < sizeof name);
        for (const char *at = query; *at;) {
                const char *end = at + strcspn(at, "&");
                const char *equals = memchr(at, '=', (size_t)(end - at));
                const char *name_end = equals ? equals : end;
                int n_name =
                        hf__percent_decode(at, (size_t)(name_end - at), true, name, sizeof name);
                if (n_name >= 0 && (size_t)n_name == n_key && memcmp(name, key, n_key) == 0 &&
                    nth-- == 0) {
                        const char *value = equals ? equals + 1 : end;
                        int n = hf__percent_decode(value, (size_t)(end - value), true, ret_value,
                                                   max_value);
                        return n < 0 ? HF_E_INVALID : 0;
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
 * authorization.c uses the result to authorize the request for that object only. This does not
 * widen the user's rights: the selector is parsed completely when the request is served, so the
 * response contains no other object. Terms of other forms are ignored here.
 */
bool hfd_query_selected_name(const char *query, char ret_name[HF_NAME_MAX + 1]) {
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
