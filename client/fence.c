/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats and parses a fence as the value of an HTTP header. The text must therefore contain no
 * line break, and must not begin or end with a space, because HTTP parsers trim it.
 *
 * Namespace and name contain neither '/' nor ';'. The identity comes last, so it may contain any
 * separator. A comma after the first term introduces a second Lease. A server that supports only
 * one Lease finds a term that is not a number and rejects the whole fence, so it never compares
 * only half of it.
 *
 * Invariant: each fence has exactly one text form, so fences can be compared as strings.
 */
#include <holdfast/fence.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether the text is valid in a fence: not empty, at most `max` bytes, no space at either end, no
 * control characters and no forbidden ones. */
static bool is_part(const char *text, size_t n, size_t max, const char *forbidden) {
        if (n == 0 || n > max || text[0] == ' ' || text[n - 1] == ' ')
                return false;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c < 0x20 || c == 0x7f || strchr(forbidden, c))
                        return false;
        }
        return true;
}

static bool is_name(const char *text, size_t n) { return is_part(text, n, HF_NAME_MAX, " /;"); }
static bool is_identity(const char *text, size_t n) {
        return is_part(text, n, HF_IDENTITY_MAX, "");
}

static bool is_lease(const char ns[HF_NAME_MAX + 1], const char name[HF_NAME_MAX + 1]) {
        return is_name(ns, strnlen(ns, HF_NAME_MAX + 1)) &&
               is_name(name, strnlen(name, HF_NAME_MAX + 1));
}

int hf_fence_format(const struct hf_fence *fence, char *text, size_t max_text) {
        int n;
        if (!fence || fence->term == 0 || !is_lease(fence->ns, fence->name) ||
            !is_identity(fence->identity, strnlen(fence->identity, sizeof fence->identity)))
                return -EINVAL;
        if (fence->also_term == 0)
                n = snprintf(text, max_text, "%s/%s;%" PRIu64 ";%s", fence->ns, fence->name,
                             fence->term, fence->identity);
        else if (is_lease(fence->also_ns, fence->also_name))
                n = snprintf(text, max_text, "%s/%s;%" PRIu64 ",%s/%s;%" PRIu64 ";%s", fence->ns,
                             fence->name, fence->term, fence->also_ns, fence->also_name,
                             fence->also_term, fence->identity);
        else
                return -EINVAL;
        return n < 0 || (size_t)n >= max_text ? -ENOSPC : n;
}

/* Accepts no sign and no leading zero, so that each number has one spelling. */
static bool parse_term(const char *text, size_t n, uint64_t *ret_term) {
        uint64_t term = 0;

        if (n == 0 || text[0] == '0')
                return false;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(term, 10, &term) ||
                    __builtin_add_overflow(term, (uint64_t)(text[i] - '0'), &term))
                        return false;
        }
        *ret_term = term;
        return true;
}

/* The part of the text that is still to be parsed. */
struct cursor {
        const char *at, *end;
};

/* Returns the text before the next separator, and advances the cursor past that separator. False:
 * there is no separator. */
static bool next_part(struct cursor *cursor, char separator, const char **ret_text, size_t *ret_n) {
        const char *found = memchr(cursor->at, separator, (size_t)(cursor->end - cursor->at));
        if (!found)
                return false;
        *ret_text = cursor->at;
        *ret_n = (size_t)(found - cursor->at);
        cursor->at = found + 1;
        return true;
}

/* Copies the name before the next separator to `to`, which the caller has zeroed. */
static bool next_name(struct cursor *cursor, char separator, char to[HF_NAME_MAX + 1]) {
        const char *text;
        size_t n;
        if (!next_part(cursor, separator, &text, &n) || !is_name(text, n))
                return false;
        memcpy(to, text, n);
        return true;
}

static bool next_term(struct cursor *cursor, char separator, uint64_t *ret_term) {
        const char *text;
        size_t n;
        return next_part(cursor, separator, &text, &n) && parse_term(text, n, ret_term);
}

/* Whether a second Lease follows: a comma comes before the next semicolon. */
static bool has_second_lease(const struct cursor *cursor) {
        const char *semicolon = memchr(cursor->at, ';', (size_t)(cursor->end - cursor->at));
        return semicolon && memchr(cursor->at, ',', (size_t)(semicolon - cursor->at));
}

int hf_fence_parse(const char *text, size_t n, struct hf_fence *ret_fence) {
        struct cursor cursor = {text, text ? text + n : NULL};
        struct hf_fence fence = {0};

        if (!text || !next_name(&cursor, '/', fence.ns) || !next_name(&cursor, ';', fence.name))
                return -EINVAL;
        if (has_second_lease(&cursor) &&
            (!next_term(&cursor, ',', &fence.term) || !next_name(&cursor, '/', fence.also_ns) ||
             !next_name(&cursor, ';', fence.also_name) ||
             !next_term(&cursor, ';', &fence.also_term)))
                return -EINVAL;
        if (fence.also_term == 0 && !next_term(&cursor, ';', &fence.term))
                return -EINVAL;
        if (!is_identity(cursor.at, (size_t)(cursor.end - cursor.at)))
                return -EINVAL;
        memcpy(fence.identity, cursor.at, (size_t)(cursor.end - cursor.at));
        *ret_fence = fence;
        return 0;
}
