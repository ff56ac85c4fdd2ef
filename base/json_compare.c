/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares JSON values, and finds keys that occur twice. The functions are declared in json.h.
 *
 * Invariant: the time is not quadratic in the number of members, because a client chooses this
 * number. So the functions sort the members instead of comparing each with each, unless there are
 * few.
 */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json_item.h"
#include "base/text.h"

static const char *key_of(const cJSON *c) { return c->string ? c->string : ""; }

/* ---- keys that occur twice ---- */

/* Returns a key that two members have; NULL = all keys differ. Compares each pair, so use it only
 * for few members. */
static const char *find_duplicate(const cJSON *object) {
        for (const cJSON *a = object->child; a; a = a->next)
                for (const cJSON *b = a->next; b; b = b->next)
                        if (*key_of(a) == *key_of(b) && strcmp(key_of(a), key_of(b)) == 0)
                                return key_of(a);
        return NULL;
}

/* Like find_duplicate, but sorts the keys, so that many members do not take quadratic time.
 * *ret_key must be NULL before, and stays NULL if all keys differ. 0 or -ENOMEM. */
static int find_duplicate_of_many(const cJSON *object, size_t n, const char **ret_key) {
        const char **keys = malloc(n * sizeof *keys);
        size_t i = 0;

        if (!keys)
                return -ENOMEM;
        for (const cJSON *m = object->child; m; m = m->next)
                keys[i++] = key_of(m);
        qsort(keys, n, sizeof *keys, hf__text_compare);
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
        const cJSON *c = hf__json_item(json);
        int r = cJSON_IsObject(c) ? check_keys(c, reterr_key) : 0;

        if (cJSON_IsObject(c) || cJSON_IsArray(c))
                for (const cJSON *m = c->child; m && r == 0; m = m->next)
                        r = hf__json_check_unique(hf__json_of((cJSON *)(uintptr_t)m), reterr_key);
        return r;
}

/* ---- equal values ---- */

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

/* A comparison that is under way. */
struct comparison {
        hf__json_knows *knows; /* NULL = nothing is known */
        const void *ctx;       /* of knows */
        int r;
};

static const struct hf__json *value_of(const cJSON *item) {
        return (const struct hf__json *)(const void *)item;
}

static bool items_equal(const cJSON *a, const cJSON *b, struct comparison *c);

/*
 * Compares the members from x on with the members from y on, in any order: sorts both by key. Both
 * lists have the same length. If memory is exhausted, they count as different, and c->r says so.
 */
static bool items_equal_unordered(const cJSON *x, const cJSON *y, struct comparison *c) {
        size_t n = 0;

        for (const cJSON *m = x; m; m = m->next)
                n++;
        const cJSON **as = sorted_members(x, n), **bs = sorted_members(y, n);
        bool same = as && bs;
        if (!same)
                c->r = -ENOMEM;
        for (size_t i = 0; i < n && same; i++)
                same = strcmp(key_of(as[i]), key_of(bs[i])) == 0 && items_equal(as[i], bs[i], c);
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

/* Only a large integer has its digits in valuestring (json_number.c). A number without, such as
 * 1e16, is printed as the integer that its double holds, so it equals that integer. */
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
static bool items_equal(const cJSON *a, const cJSON *b, struct comparison *c) {
        bool equal;

        if ((a->type & 0xff) != (b->type & 0xff))
                return false;
        if (cJSON_IsNumber(a))
                return numbers_equal(a, b);
        if (cJSON_IsString(a) || cJSON_IsRaw(a))
                return strcmp(a->valuestring, b->valuestring) == 0;
        if (!cJSON_IsArray(a) && !cJSON_IsObject(a))
                return true;
        if (c->knows && c->knows(c->ctx, value_of(a), value_of(b), &equal))
                return equal;
        if (!counts_equal(a, b))
                return false;
        for (const cJSON *x = a->child, *y = b->child; x && y; x = x->next, y = y->next) {
                if (cJSON_IsObject(a) && strcmp(key_of(x), key_of(y)) != 0)
                        return items_equal_unordered(x, y, c);
                if (!items_equal(x, y, c))
                        return false;
        }
        return true;
}

int hf__json_are_equal_knowing(const struct hf__json *a, const struct hf__json *b,
                               hf__json_knows *knows, const void *ctx, bool *ret_equal) {
        struct comparison c = {.knows = knows, .ctx = ctx};

        *ret_equal = a && b ? items_equal(hf__json_item(a), hf__json_item(b), &c) : a == b;
        return c.r;
}

int hf__json_are_equal(const struct hf__json *a, const struct hf__json *b, bool *ret_equal) {
        return hf__json_are_equal_knowing(a, b, NULL, NULL, ret_equal);
}

bool hf__json_equal(const struct hf__json *a, const struct hf__json *b) {
        bool equal;

        (void)hf__json_are_equal(a, b, &equal);
        return equal;
}
