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

#include "base/text.h"

#define DIGITS_MAX 15 /* whole numbers of so many digits are below 2^53 */

/* Whether the character is part of a string and stands for itself. */
static bool is_plain_in_string(char c) { return (unsigned char)c >= ' ' && c != '"' && c != '\\'; }

/*
 * Counts the plain characters among the 8 at p, up to the first that is not plain. Checks all of
 * them at once: for c <= 0x80, `x - ones * c` has the highest bit of a byte set, and x has not, if
 * that byte of x is less than c. Higher bytes may be marked wrongly, but only the lowest marked
 * byte is used. `low` has the codes of the quote and of the space exchanged, so that one comparison
 * finds the quote and all characters below the space.
 */
static size_t count_plain(const char *p) {
        const uint64_t ones = 0x0101010101010101, highest = ones << 7;
        uint64_t x, low, backslash, found;

        memcpy(&x, p, sizeof x);
        x = le64toh(x); /* the first character is the lowest byte */
        low = x ^ (ones * ('"' ^ ' '));
        backslash = x ^ (ones * '\\');
        found = ((low - ones * (' ' + 1)) & ~low) | ((backslash - ones) & ~backslash);
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

/* Returns the last character of the number that begins at p; NULL: not plain. */
static const char *skip_number(const char *p, const char *end) {
        if (*p == '-')
                p++;
        const char *digits = p;
        while (p < end && hf__is_digit(*p))
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
                        if (*p == '-' || hf__is_digit(*p)) {
                                p = skip_number(p, end);
                                if (!p)
                                        return false;
                        } else if (*p < 'a' || *p > 'z') { /* true, false, null */
                                return false;
                        }
                }
        return true;
}

/* ---- whole values ---- */

/* p: the key of a member. Returns where its value begins; NULL: not plain. */
static const char *skip_key(const char *p, const char *end) {
        p = p < end && *p == '"' ? skip_string(p + 1, end) : NULL;
        return p && end - p > 1 && p[1] == ':' ? p + 2 : NULL;
}

const char *hf__json_skip_plain_value(const char *p, const char *end) {
        uint64_t objects = 0; /* a bit for each container that p is in: whether it is an object */
        unsigned depth = 0;

        do { /* a value begins at p */
                if (p == end)
                        return NULL;
                if (*p == '"') {
                        p = skip_string(p + 1, end);
                } else if (*p == '{' || *p == '[') {
                        if (depth++ == 64)
                                return NULL;
                        objects = objects << 1 | (*p == '{');
                        if (end - p > 1 && p[1] != '}' && p[1] != ']') {
                                p = objects & 1 ? skip_key(p + 1, end) : p + 1;
                                continue;
                        }
                } else {
                        return NULL;
                }
                if (!p)
                        return NULL;
                p++;
                for (; p < end && depth > 0 && *p == (objects & 1 ? '}' : ']'); p++, depth--)
                        objects >>= 1;
                if (depth == 0)
                        return p;
                if (p == end || *p++ != ',')
                        return NULL;
                if (objects & 1)
                        p = skip_key(p, end);
        } while (p);
        return NULL;
}
