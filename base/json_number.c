/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that a double does not hold exactly.
 *
 * cJSON keeps numbers as doubles, which lose digits of whole numbers above 2^53, although clients
 * may store any int64_t. So an item also has its decimal digits in valuestring if its number is at
 * least 2^53 or at most -2^53, is written without fraction and exponent, and fits into an int64_t.
 * cJSON uses valuestring for strings and raw values only, but copies and frees it for every item.
 *
 * Invariant: valuestring of a number is NULL, or the canonical digits of such an int64_t. So two
 * numbers that have digits are equal if and only if their digits are.
 */
#include "base/json_number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json_item.h"

/* The most bytes of a number. cJSON before 1.7.19 stops within a longer number, and later versions
 * read it to its end. With every version hf__json_parse returns HF_E_TOO_LARGE. */
#define NUMBER_MAX 63

/* The text, and how far it has been searched for numbers. */
struct scan {
        const char *data;
        size_t n, at;
};

static bool is_number_char(char c) { return (c >= '0' && c <= '9') || (c && strchr("+-.eE", c)); }

/* Moves from the quote that begins a string to the one that ends it. */
static void skip_string(struct scan *s) {
        const char *begin = s->data + s->at + 1, *end = s->data + s->n, *quote = begin;

        while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL) {
                size_t n_backslashes = 0;
                while (quote - n_backslashes > begin &&
                       quote[-(ptrdiff_t)n_backslashes - 1] == '\\')
                        n_backslashes++;
                if (n_backslashes % 2 == 0)
                        break;
                quote++;
        }
        s->at = quote ? (size_t)(quote - s->data) : s->n;
}

/* Finds the next number outside of strings, and moves to its end. The text must be one that cJSON
 * has parsed: then the only other words are true, false and null, which have no digit or sign. */
static bool find_number(struct scan *s, size_t *ret_begin) {
        for (; s->at < s->n; s->at++) {
                char c = s->data[s->at];
                if (c == '"') {
                        skip_string(s);
                } else if (c == '-' || (c >= '0' && c <= '9')) {
                        *ret_begin = s->at;
                        while (s->at < s->n && is_number_char(s->data[s->at]))
                                s->at++;
                        return true;
                }
        }
        return false;
}

static const char *skip_digits(const char *at, const char *end) {
        while (at < end && *at >= '0' && *at <= '9')
                at++;
        return at;
}

/* RFC 8259 6: -?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)? */
static bool is_valid_number(const char *at, const char *end) {
        const char *digits;

        at += *at == '-';
        digits = at;
        at = skip_digits(at, end);
        if (at == digits || (*digits == '0' && at - digits > 1))
                return false;
        if (at < end && *at == '.') {
                digits = ++at;
                at = skip_digits(at, end);
                if (at == digits)
                        return false;
        }
        if (at < end && (*at == 'e' || *at == 'E')) {
                at++;
                at += at < end && (*at == '+' || *at == '-');
                digits = at;
                at = skip_digits(at, end);
                if (at == digits)
                        return false;
        }
        return at == end;
}

int hf__json_number_check(const char *data, size_t n, size_t *ret_offset) {
        struct scan scan = {.data = data, .n = n};

        while (find_number(&scan, ret_offset)) {
                if (scan.at - *ret_offset > NUMBER_MAX)
                        return HF_E_TOO_LARGE;
                if (!is_valid_number(data + *ret_offset, data + scan.at))
                        return HF_E_INVALID;
        }
        return 0;
}

static bool is_large(const cJSON *c) { return cJSON_IsNumber(c) && fabs(c->valuedouble) >= 0x1p53; }

/* The recursion is bounded, because the parser limits the nesting. */
static bool has_large_number(const cJSON *c) {
        for (; c; c = c->next)
                if (is_large(c) || has_large_number(c->child))
                        return true;
        return false;
}

/* 0 or -ENOMEM. */
static int set_digits(cJSON *c, int64_t value) {
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%" PRId64, value);

        c->valuestring = cJSON_malloc((size_t)n + 1);
        if (!c->valuestring)
                return -ENOMEM;
        memcpy(c->valuestring, digits, (size_t)n + 1);
        return 0;
}

/* The number is the n bytes at text. 0, -ENOMEM or HF_E_TOO_LARGE. */
static int complete_number(cJSON *c, const char *text, size_t n) {
        char digits[24], *end;

        if (isinf(c->valuedouble))
                return HF_E_TOO_LARGE;
        if (n >= sizeof digits)
                return 0; /* an int64_t has 20 characters at most */
        memcpy(digits, text, n);
        digits[n] = '\0';
        errno = 0;
        long long value = strtoll(digits, &end, 10);
        /* A fraction, an exponent or a number beyond int64_t remains a double, as in Kubernetes. */
        return *end == '\0' && errno == 0 ? set_digits(c, value) : 0;
}

/* The items and the numbers in the text have the same order. */
static int complete_items(cJSON *c, struct scan *s, size_t *ret_offset) {
        int r = 0;

        for (; c && r == 0; c = c->next) {
                if (cJSON_IsNumber(c) && find_number(s, ret_offset) && is_large(c))
                        r = complete_number(c, s->data + *ret_offset, s->at - *ret_offset);
                if (r == 0)
                        r = complete_items(c->child, s, ret_offset);
        }
        return r;
}

int hf__json_number_complete(struct hf__json *root, const char *data, size_t n,
                             size_t *ret_offset) {
        cJSON *c = hf__json_item(root);
        struct scan scan = {.data = data, .n = n};

        return has_large_number(c) ? complete_items(c, &scan, ret_offset) : 0;
}

size_t hf__json_number_too_long(const char *data, size_t n, size_t at) {
        struct scan scan = {.data = data, .n = n};
        size_t begin;

        /* find_number may search up to `at`, because cJSON has parsed the text up to there. */
        while (find_number(&scan, &begin) && begin < at)
                if (scan.at >= at && scan.at - begin > NUMBER_MAX)
                        return begin;
        return n;
}

struct hf__json *hf__json_number_new(int64_t value) {
        cJSON *c = cJSON_CreateNumber((double)value);

        if (c && is_large(c) && set_digits(c, value) != 0) {
                cJSON_Delete(c);
                return NULL;
        }
        return hf__json_of(c);
}
