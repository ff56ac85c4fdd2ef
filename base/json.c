/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: parsing, reading and building. An hf__json is a cJSON item under another name, so
 * that the rest of the project does not depend on cJSON's header. Printing is in json_print.c.
 *
 * Three invariants protect the code that reads what clients send. No parsed string contains a NUL,
 * because C code would read such a name as a shorter one. No parsed value is nested deeper than
 * HF__JSON_DEPTH_MAX, so that recursive functions fit on small stacks. Both are checked before
 * cJSON gets the text. And no function that checks or compares whole values takes quadratic time in
 * the number of members, because a client chooses this number.
 */
#include "base/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json_number.h"

/* Both are only casts. Most of cJSON's functions take no const items, so cjson_of drops the const.
 * Functions here that take a const hf__json still only read it. */
static cJSON *cjson_of(const struct hf__json *json) { return (cJSON *)(void *)(uintptr_t)json; }
static struct hf__json *json_of(cJSON *c) { return (struct hf__json *)(void *)c; }

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

int hf__json_parse(const char *data, size_t n, struct hf__json **ret_json, size_t *reterr_offset) {
        size_t bad = n > 0 ? find_nul(data, n) : 0;
        const char *end = data;

        assert(data || n == 0);
        if (bad == n && n > 0)
                bad = find_excess_depth(data, n);
        if (bad < n || n == 0) {
                if (reterr_offset)
                        *reterr_offset = bad;
                return HF_E_INVALID;
        }
        /* cJSON returns NULL for bad text and when memory is exhausted. Of the functions that it
         * calls only malloc sets errno to ENOMEM. */
        errno = 0;
        cJSON *root = cJSON_ParseWithLengthOpts(data, n, &end, false);
        if (!root && errno == ENOMEM)
                return -ENOMEM;
        /* After a syntax error cJSON sets `end` to the place of the error. The range is checked,
         * because callers index the text with the offset. */
        size_t offset = end >= data && end <= data + n ? (size_t)(end - data) : n;
        if (root)
                while (offset < n && strchr(" \t\r\n", data[offset]))
                        offset++;
        int r = 0;
        if (!root || offset < n) {
                size_t begin = hf__json_number_too_long(data, n, offset);
                r = begin < n ? HF_E_TOO_LARGE : HF_E_INVALID;
                offset = begin < n ? begin : offset;
        } else {
                r = hf__json_number_check(data, n, &offset);
                if (r == 0)
                        r = hf__json_number_complete(json_of(root), data, n, &offset);
        }
        if (r != 0) {
                cJSON_Delete(root);
                if (reterr_offset)
                        *reterr_offset = offset;
                return r;
        }
        *ret_json = json_of(root);
        return 0;
}

struct hf__json *hf__json_free(struct hf__json *json) {
        cJSON_Delete(cjson_of(json));
        return NULL;
}

/* The nesting is limited when the text is parsed. */
static void wipe_strings(cJSON *c) {
        for (; c; c = c->next) {
                if (c->valuestring)
                        explicit_bzero(c->valuestring, strlen(c->valuestring));
                wipe_strings(c->child);
        }
}

struct hf__json *hf__json_wipe_free(struct hf__json *json) {
        if (json)
                wipe_strings(cjson_of(json));
        return hf__json_free(json);
}

struct hf__json *hf__json_dup(const struct hf__json *json) {
        return json ? json_of(cJSON_Duplicate(cjson_of(json), true)) : NULL;
}

static const char *key_of(const cJSON *c) { return c->string ? c->string : ""; }

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- comparing ---- */

/* Returns a key that two members have; NULL = all keys differ. Compares each pair, so use it only
 * for few members. */
static const char *find_duplicate(const cJSON *object) {
        for (const cJSON *a = object->child; a; a = a->next)
                for (const cJSON *b = a->next; b; b = b->next)
                        if (*key_of(a) == *key_of(b) && strcmp(key_of(a), key_of(b)) == 0)
                                return key_of(a);
        return NULL;
}

/* Like find_duplicate, but sorts the keys, so that many members do not take quadratic time. 0 or
 * -ENOMEM. */
static int find_duplicate_of_many(const cJSON *object, size_t n, const char **ret_key) {
        const char **keys = malloc(n * sizeof *keys);
        size_t i = 0;

        if (!keys)
                return -ENOMEM;
        for (const cJSON *m = object->child; m; m = m->next)
                keys[i++] = key_of(m);
        qsort(keys, n, sizeof *keys, compare_texts);
        for (i = 1; i < n && !*ret_key; i++)
                if (strcmp(keys[i - 1], keys[i]) == 0)
                        *ret_key = keys[i];
        free(keys);
        return 0;
}

#define FEW_MEMBERS 16

/* Most objects have few members. For those, comparing each pair needs no memory and is faster than
 * sorting. */
static int check_keys(const cJSON *object, const char **reterr_key) {
        size_t n = (size_t)cJSON_GetArraySize(object);
        const char *key = n <= FEW_MEMBERS ? find_duplicate(object) : NULL;
        int r = n <= FEW_MEMBERS ? 0 : find_duplicate_of_many(object, n, &key);

        if (key && reterr_key)
                *reterr_key = key;
        return key ? HF_E_INVALID : r;
}

/* The recursion is bounded, because the parser limits the nesting. */
int hf__json_check_unique(const struct hf__json *json, const char **reterr_key) {
        const cJSON *c = cjson_of(json);
        int r = cJSON_IsObject(c) ? check_keys(c, reterr_key) : 0;

        if (cJSON_IsObject(c) || cJSON_IsArray(c))
                for (const cJSON *m = c->child; m && r == 0; m = m->next)
                        r = hf__json_check_unique(json_of((cJSON *)(uintptr_t)m), reterr_key);
        return r;
}

static int compare_keys(const void *a, const void *b) {
        const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;

        return strcmp(key_of(x), key_of(y));
}

static const cJSON **sorted_members(const cJSON *first, size_t n) {
        const cJSON **members = calloc(n, sizeof *members);
        size_t i = 0;

        for (const cJSON *m = first; members && m; m = m->next)
                members[i++] = m;
        if (members)
                qsort(members, n, sizeof *members, compare_keys);
        return members;
}

static bool items_equal(const cJSON *a, const cJSON *b);

/*
 * Compares the members from x on with the members from y on, in any order: sorts both by key. Both
 * lists have the same length. If memory is exhausted, they count as different.
 */
static bool items_equal_unordered(const cJSON *x, const cJSON *y) {
        size_t n = 0;

        for (const cJSON *m = x; m; m = m->next)
                n++;
        const cJSON **as = sorted_members(x, n), **bs = sorted_members(y, n);
        bool same = as && bs;
        for (size_t i = 0; i < n && same; i++)
                same = strcmp(key_of(as[i]), key_of(bs[i])) == 0 && items_equal(as[i], bs[i]);
        free(as);
        free(bs);
        return same;
}

/* Whether a and b have equally many children. Stops at the end of the smaller one. */
static bool counts_equal(const cJSON *a, const cJSON *b) {
        const cJSON *x = a->child, *y = b->child;

        for (; x && y; x = x->next)
                y = y->next;
        return !x && !y;
}

/* A number has digits only if it was written as an integer (json_number.c). One without them is
 * printed as the integer that its double holds, so it equals that integer. */
static bool numbers_equal(const cJSON *a, const cJSON *b) {
        char text[32];

        if (!a->valuestring == !b->valuestring)
                return a->valuestring ? strcmp(a->valuestring, b->valuestring) == 0
                                      : a->valuedouble == b->valuedouble;
        const cJSON *digits = a->valuestring ? a : b, *other = a->valuestring ? b : a;
        if (fabs(other->valuedouble) >= 1e19) /* digits fit into an int64_t */
                return false;
        (void)snprintf(text, sizeof text, "%.0f", other->valuedouble);
        return strcmp(digits->valuestring, text) == 0;
}

/* Compares members in order as long as their keys match, because that is the usual case and needs
 * no sorting. */
static bool items_equal(const cJSON *a, const cJSON *b) {
        if ((a->type & 0xff) != (b->type & 0xff))
                return false;
        if (cJSON_IsNumber(a))
                return numbers_equal(a, b);
        if (cJSON_IsString(a))
                return strcmp(a->valuestring, b->valuestring) == 0;
        if (!cJSON_IsArray(a) && !cJSON_IsObject(a))
                return true;
        if (!counts_equal(a, b))
                return false;
        for (const cJSON *x = a->child, *y = b->child; x && y; x = x->next, y = y->next) {
                if (cJSON_IsObject(a) && strcmp(key_of(x), key_of(y)) != 0)
                        return items_equal_unordered(x, y);
                if (!items_equal(x, y))
                        return false;
        }
        return true;
}

bool hf__json_equal(const struct hf__json *a, const struct hf__json *b) {
        return a && b ? items_equal(cjson_of(a), cjson_of(b)) : a == b;
}

/* ---- reading ---- */

/* Compares the first bytes before it calls strncmp, because most keys differ there. */
static bool key_equals(const char *string, const char *key, size_t n) {
        return string && (n == 0 || string[0] == key[0]) && strncmp(string, key, n) == 0 &&
               string[n] == '\0';
}

/* The member of object whose key is the n bytes at key; NULL = none. */
static cJSON *find_member(const cJSON *object, const char *key, size_t n) {
        if (!cJSON_IsObject(object))
                return NULL;
        for (cJSON *m = object->child; m; m = m->next)
                if (key_equals(m->string, key, n))
                        return m;
        return NULL;
}

/* The length of the first key of a path. */
static size_t key_length(const char *path) { return (size_t)(strchrnul(path, '.') - path); }

struct hf__json *hf__json_get(const struct hf__json *object, const char *key) {
        return json_of(find_member(cjson_of(object), key, strlen(key)));
}

struct hf__json *hf__json_path(const struct hf__json *object, const char *path) {
        cJSON *c = cjson_of(object);

        for (;;) {
                size_t n = key_length(path);
                c = find_member(c, path, n);
                if (!c || !path[n])
                        return json_of(c);
                path += n + 1;
        }
}

const char *hf__json_string(const struct hf__json *object, const char *path) {
        return hf__json_text(hf__json_path(object, path));
}

bool hf__json_i64(const struct hf__json *object, const char *path, int64_t *ret_value) {
        return hf__json_integer(hf__json_path(object, path), ret_value);
}

bool hf__json_integer(const struct hf__json *json, int64_t *ret_value) {
        cJSON *c = cjson_of(json);

        if (cJSON_IsNumber(c) && c->valuestring) { /* digits that fit (json_number.c) */
                *ret_value = strtoll(c->valuestring, NULL, 10);
                return true;
        }
        /* The comparison is strict, because 2^63 itself does not fit. It is also false for NaN. */
        if (!cJSON_IsNumber(c) || c->valuedouble != floor(c->valuedouble) ||
            !(fabs(c->valuedouble) < 0x1p63))
                return false;
        *ret_value = (int64_t)c->valuedouble;
        return true;
}

bool hf__json_bool(const struct hf__json *object, const char *path, bool otherwise) {
        cJSON *c = cjson_of(hf__json_path(object, path));
        return cJSON_IsBool(c) ? cJSON_IsTrue(c) : otherwise;
}

bool hf__json_is_object(const struct hf__json *json) { return cJSON_IsObject(cjson_of(json)); }
bool hf__json_is_array(const struct hf__json *json) { return cJSON_IsArray(cjson_of(json)); }
bool hf__json_is_string(const struct hf__json *json) { return cJSON_IsString(cjson_of(json)); }
bool hf__json_is_number(const struct hf__json *json) { return cJSON_IsNumber(cjson_of(json)); }
bool hf__json_is_bool(const struct hf__json *json) { return cJSON_IsBool(cjson_of(json)); }
bool hf__json_is_null(const struct hf__json *json) { return cJSON_IsNull(cjson_of(json)); }
const char *hf__json_text(const struct hf__json *json) {
        return cJSON_IsString(cjson_of(json)) ? cjson_of(json)->valuestring : NULL;
}
double hf__json_number(const struct hf__json *json) {
        return cJSON_IsNumber(cjson_of(json)) ? cjson_of(json)->valuedouble : 0;
}
const char *hf__json_key(const struct hf__json *m) { return m ? cjson_of(m)->string : NULL; }
struct hf__json *hf__json_next(const struct hf__json *m) {
        return m ? json_of(cjson_of(m)->next) : NULL;
}

struct hf__json *hf__json_first(const struct hf__json *container) {
        return hf__json_is_object(container) || hf__json_is_array(container)
                       ? json_of(cjson_of(container)->child)
                       : NULL;
}

size_t hf__json_count(const struct hf__json *container) {
        size_t n = 0;
        for (struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                n++;
        return n;
}

/* ---- building ---- */

struct hf__json *hf__json_object(void) {
        return json_of(cJSON_CreateObject());
}
struct hf__json *hf__json_array(void) {
        return json_of(cJSON_CreateArray());
}

/* Sets the member whose key is the n bytes at key. Takes ownership of value, also on failure. A
 * NULL value means that its constructor was out of memory. */
static int put_member(cJSON *object, const char *key, size_t n, cJSON *value) {
        char *copy = value ? cJSON_malloc(n + 1) : NULL;

        assert(cJSON_IsObject(object));
        if (!copy) {
                cJSON_Delete(value);
                return -ENOMEM;
        }
        memcpy(copy, key, n);
        copy[n] = '\0';
        /* Replace at the same position, so that the order of the members does not change. */
        cJSON *old = find_member(object, copy, n);
        if (old) {
                if (!(value->type & cJSON_StringIsConst))
                        cJSON_free(value->string);
                value->string = copy;
                value->type &= ~cJSON_StringIsConst; /* cJSON must free the copy with the item */
                (void)cJSON_ReplaceItemViaPointer(object, old, value);
                return 0;
        }
        bool added = cJSON_AddItemToObject(object, copy, value);
        cJSON_free(copy);
        if (!added)
                cJSON_Delete(value);
        return added ? 0 : -ENOMEM;
}

int hf__json_set(struct hf__json *object, const char *path, struct hf__json *value) {
        cJSON *c = cjson_of(object);

        for (;;) {
                size_t n = key_length(path);
                if (!cJSON_IsObject(c)) {
                        cJSON_Delete(cjson_of(value));
                        return -EINVAL;
                }
                if (!path[n])
                        return put_member(c, path, n, cjson_of(value));
                cJSON *inner = find_member(c, path, n);
                if (!inner) {
                        inner = cJSON_CreateObject();
                        int r = put_member(c, path, n, inner);
                        if (r < 0) {
                                cJSON_Delete(cjson_of(value));
                                return r;
                        }
                }
                c = inner;
                path += n + 1;
        }
}

int hf__json_put(struct hf__json *object, const char *key, struct hf__json *value) {
        if (!hf__json_is_object(object)) {
                cJSON_Delete(cjson_of(value));
                return -EINVAL;
        }
        return put_member(cjson_of(object), key, strlen(key), cjson_of(value));
}

int hf__json_put_string(struct hf__json *object, const char *key, const char *value) {
        return hf__json_put(object, key, json_of(cJSON_CreateString(value)));
}

struct hf__json *hf__json_detach(struct hf__json *container, struct hf__json *m) {
        return json_of(cJSON_DetachItemViaPointer(cjson_of(container), cjson_of(m)));
}

int hf__json_replace(struct hf__json *container, struct hf__json *m, struct hf__json *value) {
        cJSON *old = cjson_of(m), *c = cjson_of(value);

        if (!c)
                return -ENOMEM;
        /* The new value takes over the key of the old one, so that nothing is allocated. */
        if (!(c->type & cJSON_StringIsConst))
                cJSON_free(c->string);
        c->string = old->string;
        c->type = (c->type & ~cJSON_StringIsConst) | (old->type & cJSON_StringIsConst);
        old->string = NULL;
        (void)cJSON_ReplaceItemViaPointer(cjson_of(container), old, c);
        return 0;
}

int hf__json_set_text(struct hf__json *string, const char *text) {
        assert(hf__json_is_string(string));
        size_t n = strlen(text) + 1;
        char *copy = cJSON_malloc(n);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, text, n);
        cJSON_free(cjson_of(string)->valuestring);
        cjson_of(string)->valuestring = copy;
        return 0;
}

/* Does not use cJSON_InsertItemInArray, which takes an index and searches the list for it. */
int hf__json_insert(struct hf__json *array, struct hf__json *before, struct hf__json *value) {
        cJSON *a = cjson_of(array), *next = cjson_of(before), *c = cjson_of(value);

        assert(!before || hf__json_is_array(array));
        if (!next || !c)
                return hf__json_append(array, value);
        /* In cJSON's lists the first item's prev is the last item, and the last item's next is
         * NULL. */
        c->next = next;
        c->prev = next->prev;
        next->prev = c;
        if (a->child == next)
                a->child = c;
        else
                c->prev->next = c;
        return 0;
}

int hf__json_add(struct hf__json *object, const char *key, struct hf__json *value) {
        assert(!object || hf__json_is_object(object));
        if (!value)
                return -ENOMEM;
        if (cJSON_AddItemToObject(cjson_of(object), key, cjson_of(value)))
                return 0;
        cJSON_Delete(cjson_of(value));
        return -ENOMEM;
}

int hf__json_add_string(struct hf__json *object, const char *key, const char *value) {
        return hf__json_add(object, key, json_of(cJSON_CreateString(value)));
}

void hf__json_drop(struct hf__json *object, const char *key) {
        cJSON *m = find_member(cjson_of(object), key, strlen(key));
        if (m)
                cJSON_Delete(cJSON_DetachItemViaPointer(cjson_of(object), m));
}

int hf__json_set_string(struct hf__json *object, const char *path, const char *value) {
        return hf__json_set(object, path, json_of(cJSON_CreateString(value)));
}

int hf__json_set_i64(struct hf__json *object, const char *path, int64_t value) {
        return hf__json_set(object, path, hf__json_number_new(value));
}

int hf__json_set_bool(struct hf__json *object, const char *path, bool value) {
        return hf__json_set(object, path, json_of(cJSON_CreateBool(value)));
}

int hf__json_append(struct hf__json *array, struct hf__json *value) {
        if (!value)
                return -ENOMEM;
        if (!hf__json_is_array(array)) {
                cJSON_Delete(cjson_of(value));
                return -EINVAL;
        }
        if (cJSON_AddItemToArray(cjson_of(array), cjson_of(value)))
                return 0;
        cJSON_Delete(cjson_of(value));
        return -ENOMEM;
}

int hf__json_append_string(struct hf__json *array, const char *value) {
        return hf__json_append(array, json_of(cJSON_CreateString(value)));
}

void hf__json_remove(struct hf__json *object, const char *path) {
        cJSON *c = cjson_of(object);

        for (;;) {
                size_t n = key_length(path);
                cJSON *m = find_member(c, path, n);
                if (!m)
                        return;
                if (!path[n]) {
                        cJSON_Delete(cJSON_DetachItemViaPointer(c, m));
                        return;
                }
                c = m;
                path += n + 1;
        }
}
