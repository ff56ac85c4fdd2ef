/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: parsing and reading. json_build.c builds and changes values, json_compare.c compares
 * them, json_print.c prints them.
 *
 * Two invariants protect the code that reads what clients send. No parsed string contains a NUL,
 * because C code would read such a name as a shorter one. No value of hf__json_parse is nested
 * deeper than HF__JSON_DEPTH_MAX, so that recursive functions fit on small stacks. Both are checked
 * before cJSON gets the text; json_plain.c does it quickly for most texts.
 */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json_item.h"
#include "base/json_number.h"
#include "base/json_plain.h"
#include "base/text.h"

/* ---- parsing ---- */

/* The offset of the first raw NUL or \u0000 escape; n = there is none. */
static size_t find_nul(const char *data, size_t n) {
        const char *raw = memchr(data, 0, n);
        size_t end = raw ? (size_t)(raw - data) : n;

        const char *p = memchr(data, '\\', end);
        while (p && (p = memmem(p, end - (size_t)(p - data), "\\u0000", 6)) != NULL) {
                /* Count the backslashes up to and including this one. If their number is even, this
                 * one is itself escaped and does not begin an escape. */
                size_t n_backslashes = 1;
                while (p - n_backslashes >= data && p[-(ptrdiff_t)n_backslashes] == '\\')
                        n_backslashes++;
                if (n_backslashes % 2 == 1)
                        return (size_t)(p - data);
                p += 6;
        }
        return end;
}

/* The code of the escape \uXXXX at the start of the n bytes of text; -1: there is none. */
static int read_escape(const char *text, size_t n) {
        int code = 0;

        if (n < 6 || text[0] != '\\' || text[1] != 'u')
                return -1;
        for (size_t i = 2; i < 6; i++) {
                int digit = hf__hex_digit(text[i]);
                if (digit < 0)
                        return -1;
                code = code * 16 + digit;
        }
        return code;
}

/* The offset of the first control character that is not allowed where it is, or of the first \u
 * without four digits, which cJSON would read as a NUL; n = there is none. Most texts have no
 * control character and no \u. memmem and the first loop, which the compiler vectorizes, find that
 * out quickly. */
static size_t find_bad_character(const char *data, size_t n) {
        bool any = memmem(data, n, "\\u", 2) != NULL, in_string = false;

        for (size_t i = 0; i < n; i++)
                any |= (unsigned char)data[i] < ' ';
        for (size_t i = 0; i < n && any; i++) {
                if ((unsigned char)data[i] < ' ' && (in_string || !strchr("\t\n\r", data[i])))
                        return i;
                if (data[i] == '"')
                        in_string = !in_string;
                if (data[i] != '\\' || !in_string)
                        continue;
                if (i + 1 < n && data[i + 1] == 'u' && read_escape(data + i, n - i) < 0)
                        return i;
                i++;
        }
        return n;
}

/* Writes U+FFFD in place of each escape that is one half of a surrogate pair without the other, as
 * Kubernetes' decoder reads it. No offset changes. Returns whether there was one. */
static bool replace_lone_surrogates(char *data, size_t n) {
        bool found = false;

        for (size_t i = 0; i < n; i++) {
                int code = read_escape(data + i, n - i);
                if (code >= 0xd800 && code < 0xdc00 && i + 6 < n) {
                        int low = read_escape(data + i + 6, n - i - 6);
                        if (low >= 0xdc00 && low < 0xe000) {
                                i += 11; /* with the loop's step, both escapes */
                                continue;
                        }
                }
                if (code >= 0xd800 && code < 0xe000) {
                        (void)memcpy(data + i + 2, "fffd", 4);
                        found = true;
                }
                if (data[i] == '\\')
                        i += code >= 0 ? 5 : 1;
        }
        return found;
}

/* Parses the text. NULL: out of memory (errno is ENOMEM), or the text is not JSON. *ret_end: how
 * far cJSON has read. */
static cJSON *parse_text(const char *data, size_t n, size_t *ret_end) {
        const char *end = data;

        /* cJSON returns NULL for bad text and when memory is exhausted. Of the functions that it
         * calls only malloc sets errno to ENOMEM. */
        errno = 0;
        cJSON *root = cJSON_ParseWithLengthOpts(data, n, &end, false);
        /* After a syntax error cJSON sets `end` to the place of the error. The range is checked,
         * because callers index the text with the offset. */
        *ret_end = end >= data && end <= data + n ? (size_t)(end - data) : n;
        return root;
}

/* Parses again a text that cJSON has refused, with its lone surrogates replaced. NULL as for
 * parse_text, or if the text has no lone surrogates. */
static cJSON *parse_repaired(const char *data, size_t n, size_t *ret_end) {
        char *copy = malloc(n);
        cJSON *root = NULL;

        if (!copy) {
                errno = ENOMEM;
                return NULL;
        }
        memcpy(copy, data, n);
        errno = 0;
        if (replace_lone_surrogates(copy, n))
                root = parse_text(copy, n, ret_end);
        int error = errno;
        free(copy);
        errno = error;
        return root;
}

/* How often c occurs in the n bytes. Stops counting at HF__JSON_DEPTH_MAX + 1. */
static size_t count_up_to_limit(const char *data, size_t n, char c) {
        const char *end = data + n;
        size_t found = 0;

        while (found <= HF__JSON_DEPTH_MAX &&
               (data = memchr(data, c, (size_t)(end - data))) != NULL) {
                data++;
                found++;
        }
        return found;
}

/* The offset at which the nesting becomes too deep; n = it does not. The text need not be JSON: the
 * parser reports syntax errors later. */
static size_t find_excess_depth(const char *data, size_t n) {
        size_t depth = 0;

        /* Fast path: the depth is at most the number of brackets, and most bodies have few. */
        if (count_up_to_limit(data, n, '{') + count_up_to_limit(data, n, '[') <= HF__JSON_DEPTH_MAX)
                return n;
        for (size_t i = 0; i < n; i++) {
                if (data[i] == '"') {
                        for (i++; i < n && data[i] != '"'; i++)
                                i += data[i] == '\\';
                } else if (data[i] == '[' || data[i] == '{') {
                        if (++depth > HF__JSON_DEPTH_MAX)
                                return i;
                } else if ((data[i] == ']' || data[i] == '}') && depth > 0) {
                        depth--;
                }
        }
        return n;
}

/* The careful checks. Returns the offset of a character that cJSON must not get; n = the text has
 * none. */
static size_t find_bad(const char *data, size_t n) {
        if (n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
                return 0; /* cJSON would skip the byte order mark */
        size_t bad = find_nul(data, n);
        if (bad == n)
                bad = find_excess_depth(data, n);
        if (bad == n)
                bad = find_bad_character(data, n);
        return bad;
}

int hf__json_parse(const char *data, size_t n, struct hf__json **ret_json, size_t *reterr_offset) {
        assert(data || n == 0);
        bool is_plain = n > 0 && hf__json_is_plain(data, n, HF__JSON_DEPTH_MAX);
        size_t bad = n == 0 || is_plain ? n : find_bad(data, n), offset;

        if (bad < n || n == 0) {
                if (reterr_offset)
                        *reterr_offset = bad;
                return HF_E_INVALID;
        }
        cJSON *root = parse_text(data, n, &offset);
        if (!root && errno != ENOMEM)
                root = parse_repaired(data, n, &offset);
        if (!root && errno == ENOMEM)
                return -ENOMEM;
        if (root)
                while (offset < n && strchr(" \t\r\n", data[offset]))
                        offset++;
        int r = 0;
        if (!root || offset < n) {
                size_t begin = hf__json_number_too_long(data, n, offset);
                r = begin < n ? HF_E_TOO_LARGE : HF_E_INVALID;
                offset = begin < n ? begin : offset;
        } else if (!is_plain) { /* a plain text has only whole numbers that are exact */
                r = hf__json_number_check(data, n, &offset);
                if (r == 0)
                        r = hf__json_number_complete(hf__json_of(root), data, n, &offset);
        }
        if (r != 0) {
                cJSON_Delete(root);
                if (reterr_offset)
                        *reterr_offset = offset;
                return r;
        }
        *ret_json = hf__json_of(root);
        return 0;
}

struct hf__json *hf__json_free(struct hf__json *json) {
        cJSON_Delete(hf__json_item(json));
        return NULL;
}

/* The recursion is bounded, because the parser limits the nesting. */
static void wipe_strings(cJSON *c) {
        for (; c; c = c->next) {
                if (c->valuestring)
                        explicit_bzero(c->valuestring, strlen(c->valuestring));
                wipe_strings(c->child);
        }
}

struct hf__json *hf__json_wipe_free(struct hf__json *json) {
        if (json)
                wipe_strings(hf__json_item(json));
        return hf__json_free(json);
}

struct hf__json *hf__json_dup(const struct hf__json *json) {
        return json ? hf__json_of(cJSON_Duplicate(hf__json_item(json), true)) : NULL;
}

/* ---- reading ---- */

/* The handler of a write looks for many members, most of which do not exist. So, for speed, the
 * functions that look for a member do not call cJSON. They compare the first bytes without a call
 * of strcmp, because most keys differ there. */

static bool key_equals(const char *string, const char *key, size_t n) {
        return string && (n == 0 || string[0] == key[0]) && strncmp(string, key, n) == 0 &&
               string[n] == '\0';
}

cJSON *hf__json_find_member(const cJSON *object, const char *key, size_t n) {
        if (!hf__json_item_is(object, cJSON_Object))
                return NULL;
        for (cJSON *m = object->child; m; m = m->next)
                if (key_equals(m->string, key, n))
                        return m;
        return NULL;
}

struct hf__json *hf__json_get(const struct hf__json *object, const char *key) {
        const cJSON *c = hf__json_item(object);

        for (cJSON *m = hf__json_item_is(c, cJSON_Object) ? c->child : NULL; m; m = m->next)
                if (m->string && m->string[0] == key[0] && strcmp(m->string, key) == 0)
                        return hf__json_of(m);
        return NULL;
}

/* Whether the first key of the path is `key`. If so, *ret_rest is the text after it. */
static bool begins_with(const char *path, const char *key, const char **ret_rest) {
        while (*path && *path == *key && *path != '.') {
                path++;
                key++;
        }
        *ret_rest = path;
        return *key == '\0' && (*path == '\0' || *path == '.');
}

struct hf__json *hf__json_path(const struct hf__json *object, const char *path) {
        cJSON *c = hf__json_item(object);
        const char *rest;

        for (;;) {
                c = hf__json_item_is(c, cJSON_Object) ? c->child : NULL;
                while (c && (!c->string || !begins_with(path, c->string, &rest)))
                        c = c->next;
                if (!c || !*rest)
                        return hf__json_of(c);
                path = rest + 1;
        }
}

const char *hf__json_string(const struct hf__json *object, const char *path) {
        return hf__json_text(hf__json_path(object, path));
}

const char *hf__json_string_or_empty(const struct hf__json *object, const char *path) {
        return hf__json_text_or_empty(hf__json_path(object, path));
}

bool hf__json_i64(const struct hf__json *object, const char *path, int64_t *ret_value) {
        return hf__json_integer(hf__json_path(object, path), ret_value);
}

bool hf__json_integer(const struct hf__json *json, int64_t *ret_value) {
        cJSON *c = hf__json_item(json);

        if (cJSON_IsNumber(c) && c->valuestring) { /* the digits of an int64_t (json_number.c) */
                *ret_value = strtoll(c->valuestring, NULL, 10);
                return true;
        }
        /* The comparison is strict: 2^63 does not fit, and the double -2^63 may stand for a smaller
         * number, such as -2^63 - 1. It is also false for NaN. */
        if (!cJSON_IsNumber(c) || c->valuedouble != floor(c->valuedouble) ||
            !(fabs(c->valuedouble) < 0x1p63))
                return false;
        *ret_value = (int64_t)c->valuedouble;
        return true;
}

bool hf__json_bool(const struct hf__json *object, const char *path, bool otherwise) {
        cJSON *c = hf__json_item(hf__json_path(object, path));
        return cJSON_IsBool(c) ? cJSON_IsTrue(c) : otherwise;
}

bool hf__json_is_object(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_Object);
}
bool hf__json_is_array(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_Array);
}
bool hf__json_is_string(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_String);
}
bool hf__json_is_number(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_Number);
}
bool hf__json_is_bool(const struct hf__json *json) { return cJSON_IsBool(hf__json_item(json)); }
bool hf__json_is_null(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_NULL);
}
bool hf__json_is_true(const struct hf__json *json) { return cJSON_IsTrue(hf__json_item(json)); }
const char *hf__json_text(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_String)
                       ? hf__json_item(json)->valuestring
                       : NULL;
}
const char *hf__json_text_or_empty(const struct hf__json *json) {
        const char *text = hf__json_text(json);

        return text ? text : "";
}
double hf__json_number(const struct hf__json *json) {
        return hf__json_item_is(hf__json_item(json), cJSON_Number)
                       ? hf__json_item(json)->valuedouble
                       : 0;
}
const char *hf__json_key(const struct hf__json *m) {
        if (!m)
                return NULL;
        return hf__json_item(m)->string ? hf__json_item(m)->string : "";
}
struct hf__json *hf__json_next(const struct hf__json *m) {
        return m ? hf__json_of(hf__json_item(m)->next) : NULL;
}

struct hf__json *hf__json_first(const struct hf__json *container) {
        return hf__json_is_object(container) || hf__json_is_array(container)
                       ? hf__json_of(hf__json_item(container)->child)
                       : NULL;
}

size_t hf__json_count(const struct hf__json *container) {
        size_t n = 0;
        for (struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                n++;
        return n;
}

bool hf__json_has_element(const struct hf__json *array, const char *text) {
        if (!hf__json_is_array(array))
                return false;
        for (const struct hf__json *m = hf__json_first(array); m; m = hf__json_next(m))
                if (hf__json_is_string(m) && strcmp(hf__json_text(m), text) == 0)
                        return true;
        return false;
}
