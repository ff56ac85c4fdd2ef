/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes literals: integers exactly or not at all, the nearest doubles, strings with their
 * escapes.
 *
 * Invariant: the lexer has checked the form, so an escape is complete. A text is never longer than
 * its literal, because every escape has more bytes than the character that it stands for.
 */
#include "cel/syntax/literal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"

/* Reads a number. false: it does not fit into 64 bits. */
static bool read_u64(const char *text, size_t n, uint64_t *ret_value) {
        bool is_hex = n > 2 && text[1] == 'x';
        uint64_t base = is_hex ? 16 : 10;
        uint64_t value = 0;

        for (size_t i = is_hex ? 2 : 0; i < n; i++) {
                uint64_t digit = (uint64_t)hf__hex_digit(text[i]);

                if (value > (UINT64_MAX - digit) / base)
                        return false;
                value = value * base + digit;
        }
        *ret_value = value;
        return true;
}

static int read_int(const char *text, size_t n, bool negative, struct hf__cel_value *ret_value) {
        uint64_t max = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
        uint64_t value;

        if (!read_u64(text, n, &value) || value > max)
                return HF_E_INVALID;
        if (!negative)
                *ret_value = hf__cel_int((int64_t)value);
        else
                *ret_value = hf__cel_int(value == max ? INT64_MIN : -(int64_t)value);
        return 0;
}

static int read_double(struct hf__arena *arena, const char *text, size_t n, bool negative,
                       struct hf__cel_value *ret_value) {
        const char *copy = hf__arena_text(arena, text, n);
        double value;

        if (!copy)
                return -ENOMEM;
        value = strtod(copy, NULL);
        /* As in Go's ParseFloat, a number that is too large is out of range, and a tiny one becomes
         * 0. */
        if (isinf(value))
                return HF_E_INVALID;
        *ret_value = hf__cel_double(negative ? -value : value);
        return 0;
}

/* The characters that are not in this list, such as quotes, stand for themselves. */
static char simple_escape(char c) {
        static const char from[] = "abfnrtv";
        static const char to[] = "\a\b\f\n\r\t\v";
        const char *at = strchr(from, c);

        return at ? to[at - from] : c;
}

/* Appends one LF for a CR LF. Returns the length of the CR LF. So an expression has the same value,
 * whether its lines end with LF or with CR LF. */
static size_t put_newline(char **out) {
        *(*out)++ = '\n';
        return 2;
}

/* Appends the character of the escape at text, which begins with a backslash. Returns the length of
 * the escape; 0: it is not allowed, and *reterr_message says why. */
static size_t put_escape(const char *text, bool bytes, char **out, const char **reterr_message) {
        char c = text[1];
        bool octal = c >= '0' && c <= '3';
        size_t digits = octal ? 3 : 0;
        size_t first = octal ? 1 : 2;
        uint32_t value = 0;

        if (c == 'x' || c == 'X')
                digits = 2;
        if (c == 'u')
                digits = 4;
        if (c == 'U')
                digits = 8;
        if (digits == 0) {
                *(*out)++ = simple_escape(c);
                return 2;
        }
        for (size_t i = first; i < first + digits; i++)
                value = octal ? value * 8 + (uint32_t)(text[i] - '0')
                              : value * 16 + (uint32_t)hf__hex_digit(text[i]);
        /* \x and octal escapes are bytes in a literal of bytes, and characters in a text. \u and \U
         * always mean characters, so bytes cannot have them. */
        *reterr_message = "unable to unescape string";
        if (bytes && (c == 'u' || c == 'U'))
                return 0;
        if (bytes) {
                *(*out)++ = (char)(unsigned char)value;
                return first + digits;
        }
        *reterr_message = "invalid unicode code point";
        /* Halves of surrogate pairs are no characters, and have no form in UTF-8. */
        if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
                return 0;
        *out += hf__utf8_encode(value, *out);
        return first + digits;
}

static int read_string(struct hf__arena *arena, const char *text, size_t n, bool bytes,
                       struct hf__cel_value *ret_value, const char **reterr_message) {
        bool raw = *text == 'r' || *text == 'R';
        size_t quotes;
        char *start;
        char *out;

        text += raw ? 1 : 0;
        n -= raw ? 1 : 0;
        quotes = n >= 6 && text[1] == text[0] && text[2] == text[0] ? 3 : 1;
        assert(n >= 2 * quotes);
        /* A text gets no longer when its escapes are replaced. */
        start = out = hf__arena_alloc(arena, n);
        if (!out)
                return -ENOMEM;
        for (size_t i = quotes; i < n - quotes;) {
                size_t length = 1;

                if (text[i] == '\\' && !raw)
                        length = put_escape(text + i, bytes, &out, reterr_message);
                else if (text[i] == '\r' && text[i + 1] == '\n')
                        length = put_newline(&out);
                else
                        *out++ = text[i] == '\r' ? '\n' : text[i];
                if (length == 0)
                        return HF_E_INVALID;
                i += length;
        }
        *ret_value = bytes ? hf__cel_bytes(start, (size_t)(out - start))
                           : hf__cel_string(start, (size_t)(out - start));
        return 0;
}

int hf__cel_literal(struct hf__arena *arena, const char *text, struct hf__cel_token token,
                    bool negative, struct hf__cel_value *ret_value, const char **reterr_message) {
        const char *start = text + token.at;
        uint64_t value;

        switch (token.kind) {
        case HF__CEL_TOKEN_INT:
                *reterr_message = "invalid int literal";
                return read_int(start, token.n, negative, ret_value);
        case HF__CEL_TOKEN_UINT:
                *reterr_message = "invalid uint literal";
                if (!read_u64(start, token.n - 1, &value))
                        return HF_E_INVALID;
                *ret_value = hf__cel_uint(value);
                return 0;
        case HF__CEL_TOKEN_FLOAT:
                *reterr_message = "invalid double literal";
                return read_double(arena, start, token.n, negative, ret_value);
        case HF__CEL_TOKEN_BYTES:
                return read_string(arena, start + 1, token.n - 1, true, ret_value, reterr_message);
        default:
                assert(token.kind == HF__CEL_TOKEN_STRING);
                return read_string(arena, start, token.n, false, ret_value, reterr_message);
        }
}
