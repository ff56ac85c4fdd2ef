/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over a text in place of the many passes of the careful checks (json.c, json_number.c).
 * Each text that is parsed goes through here, so it is made for speed.
 *
 * Invariant: a text that the careful checks would refuse or change is not plain. If in doubt, treat
 * a text as not plain: that costs only time.
 */
#include "base/json_plain.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_MAX 15 /* whole numbers of so many digits are below 2^53 */

/* Whether the character is part of a string and stands for itself. */
static bool is_plain_in_string(char c) { return (unsigned char)c >= ' ' && c != '"' && c != '\\'; }

/*
 * Counts the plain characters among the 8 at p, up to the first that is not plain. Checks all of
 * them at once: in the lowest byte of x that is zero, `x - ones` has the highest bit set and x has
 * not. `x - ones * ' '` finds a byte below ' ' in the same way. Higher bytes may be marked wrongly,
 * but only the lowest marked byte is used.
 */
static size_t count_plain(const char *p) {
        const uint64_t ones = 0x0101010101010101, highest = ones << 7;
        uint64_t x, quote, backslash, found;

        memcpy(&x, p, sizeof x);
        x = le64toh(x); /* the first character is the lowest byte */
        quote = x ^ (ones * '"');
        backslash = x ^ (ones * '\\');
        found = ((x - ones * ' ') & ~x) | ((quote - ones) & ~quote) |
                ((backslash - ones) & ~backslash);
        found &= highest;
        return found == 0 ? 8 : (size_t)(ffsll((long long)found) - 1) / 8;
}

const char *hf__json_skip_plain(const char *p, const char *end) {
        size_t n = 8;

        while (n == 8 && end - p >= 8) {
                n = count_plain(p);
                p += n;
        }
        while (p < end && is_plain_in_string(*p))
                p++;
        return p;
}

/* p: after the quote that begins a string. Returns the quote that ends it; NULL: not plain. */
static const char *skip_string(const char *p, const char *end) {
        p = hf__json_skip_plain(p, end);
        return p < end && *p == '"' ? p : NULL;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns the last character of the number that begins at p; NULL: not plain. */
static const char *skip_number(const char *p, const char *end) {
        if (*p == '-')
                p++;
        const char *digits = p;
        while (p < end && is_digit(*p))
                p++;
        if (p == digits || p - digits > DIGITS_MAX || (*digits == '0' && p - digits > 1))
                return NULL;
        /* a fraction, an exponent, or an invalid number */
        if (p < end && (*p == '.' || *p == '-' || *p == '+' || *p == 'e' || *p == 'E'))
                return NULL;
        return p - 1;
}

bool hf__json_is_plain(const char *data, size_t n, size_t depth_max) {
        const char *end = data + n;
        size_t depth = 0;

        for (const char *p = data; p < end; p++)
                switch (*p) {
                case '"':
                        p = skip_string(p + 1, end);
                        if (!p)
                                return false;
                        break;
                case '{':
                case '[':
                        if (++depth > depth_max)
                                return false;
                        break;
                case '}':
                case ']': depth -= depth > 0; break;
                case ',':
                case ':':
                case ' ':
                case '\t':
                case '\n':
                case '\r': break;
                default:
                        if (*p == '-' || is_digit(*p)) {
                                p = skip_number(p, end);
                                if (!p)
                                        return false;
                        } else if (*p < 'a' || *p > 'z') { /* true, false, null */
                                return false;
                        }
                }
        return true;
}
