/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes percent-encoded text.
 *
 * Invariant: the output never gets ahead of the input, so that decoding in place is safe.
 */
#include "base/percent.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

/* Whether the character is ASCII, not NUL, and stands for itself. Not for text in which '+' is a
 * space. */
static bool is_plain(char c) { return (signed char)c > 0 && c != '%'; }

/* The same for eight characters at once. A subtraction sets the high bit of a zero byte. It may
 * also change the bytes above, but then the result is false already. */
static bool is_plain_word(const char *text) {
        const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
        uint64_t word, percent;

        memcpy(&word, text, sizeof word);
        percent = word ^ ('%' * ones);
        return ((word | (word - ones) | (percent - ones)) & high) == 0;
}

int hf__percent_decode(const char *text, size_t n, bool plus_is_space, char *ret_text, size_t max) {
        size_t n_out = 0;

        assert(max > 0);
        /* Most path segments are ASCII and contain nothing to decode. */
        if (n < max && !plus_is_space) {
                for (; n_out + 8 <= n && is_plain_word(text + n_out); n_out += 8)
                        memmove(ret_text + n_out, text + n_out, 8);
                for (; n_out < n && is_plain(text[n_out]); n_out++)
                        ret_text[n_out] = text[n_out];
        }
        if (n_out == n) {
                ret_text[n] = '\0';
                return (int)n;
        }
        for (size_t i = n_out; i < n; i++) {
                char c = text[i];
                if (c == '%') {
                        int high = i + 2 < n ? hf__hex_digit(text[i + 1]) : -1;
                        int low = high >= 0 ? hf__hex_digit(text[i + 2]) : -1;
                        if (low < 0)
                                return -1;
                        c = (char)(high * 16 + low);
                        i += 2;
                } else if (c == '+' && plus_is_space) {
                        c = ' ';
                }
                if (c == '\0' || n_out + 1 >= max)
                        return -1;
                ret_text[n_out++] = c;
        }
        ret_text[n_out] = '\0';
        return hf__utf8_valid(ret_text, n_out) ? (int)n_out : -1;
}
