/* SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/fence.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * The value travels in an HTTP header, so nothing in it may end the line, and it must survive the trimming of blanks at
 * both ends. Namespace and name hold no separator; the identity comes last and may hold any.
 */
static bool text_ok(const char *text, size_t n, size_t max, const char *forbidden) {
        if (n == 0 || n > max || text[0] == ' ' || text[n - 1] == ' ')
                return false;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c < 0x20 || c == 0x7f || strchr(forbidden, c))
                        return false;
        }
        return true;
}

static bool name_ok(const char *text, size_t n) { return text_ok(text, n, HF_NAME_MAX, " /;"); }
static bool identity_ok(const char *text, size_t n) { return text_ok(text, n, HF_IDENTITY_MAX, ""); }

int hf_fence_format(const struct hf_fence *fence, char *text, size_t max_text) {
        if (!fence || fence->term == 0 || !name_ok(fence->ns, strnlen(fence->ns, sizeof fence->ns)) ||
            !name_ok(fence->name, strnlen(fence->name, sizeof fence->name)) ||
            !identity_ok(fence->identity, strnlen(fence->identity, sizeof fence->identity)))
                return -EINVAL;
        int n = snprintf(text, max_text, "%s/%s;%" PRIu64 ";%s", fence->ns, fence->name, fence->term, fence->identity);
        return n < 0 || (size_t)n >= max_text ? -ENOSPC : n;
}

/* One spelling per number: no sign, no leading zero, so that equal fences are equal texts. */
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

int hf_fence_parse(const char *text, size_t n, struct hf_fence *ret_fence) {
        const char *end = text ? text + n : NULL;
        const char *slash = text ? memchr(text, '/', n) : NULL;
        const char *first = slash ? memchr(slash, ';', (size_t)(end - slash)) : NULL;
        const char *second = first ? memchr(first + 1, ';', (size_t)(end - first - 1)) : NULL;
        uint64_t term;

        if (!second)
                return -EINVAL;
        size_t n_ns = (size_t)(slash - text), n_name = (size_t)(first - slash - 1), n_identity = (size_t)(end - second - 1);
        if (!name_ok(text, n_ns) || !name_ok(slash + 1, n_name) || !identity_ok(second + 1, n_identity) ||
            !parse_term(first + 1, (size_t)(second - first - 1), &term))
                return -EINVAL;
        *ret_fence = (struct hf_fence){.term = term};
        memcpy(ret_fence->ns, text, n_ns);
        memcpy(ret_fence->name, slash + 1, n_name);
        memcpy(ret_fence->identity, second + 1, n_identity);
        return 0;
}
