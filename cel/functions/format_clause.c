/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the clauses of a format, when an expression is compiled and when it is evaluated.
 *
 * Invariant: the messages are those of Kubernetes, which shows each byte of a text as the character
 * with the byte's value as its code point. But a message shows at most 200 digits of a precision.
 */
#include "cel/functions/format_clause.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define ERROR "could not parse formatting clause: "

/* Reads the digits of a precision. Returns their number. */
static size_t read_digits(const char *text, size_t n, int *ret_precision) {
        size_t at = 0;

        *ret_precision = 0;
        for (; at < n && text[at] >= '0' && text[at] <= '9'; at++)
                /* Digits after the limit is exceeded are skipped, so that the value does not
                 * overflow. Go accepts any precision below 2^63, so only a larger one is malformed
                 * here (fits_integer); format.c refuses all others above the limit. */
                if (*ret_precision <= HF__CEL_PRECISION_MAX)
                        *ret_precision = *ret_precision * 10 + (text[at] - '0');
        if (*ret_precision > HF__CEL_PRECISION_MAX)
                *ret_precision = HF__CEL_PRECISION_MAX + 1;
        return at;
}

/* Whether the digits are a number below 2^63. */
static bool fits_integer(const char *digits, size_t n) {
        int64_t number = 0;

        for (size_t i = 0; i < n; i++)
                if (__builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, digits[i] - '0', &number))
                        return false;
        return true;
}

size_t hf__cel_format_clause(const char *text, size_t n, int *ret_precision, char *reterr_message,
                             size_t max_message) {
        const char *digits = text + 1;
        size_t n_digits = 0;
        size_t at = 0;
        unsigned char letter;

        *ret_precision = -1;
        if (text[0] == '.') {
                n_digits = read_digits(digits, n - 1, ret_precision);
                at = 1 + n_digits;
        }
        if (at == n) {
                snprintf(reterr_message, max_message,
                         ERROR "error while parsing precision: could not find end of precision "
                               "specifier");
                return 0;
        }
        if (at > 0 && (n_digits == 0 || !fits_integer(digits, n_digits))) {
                snprintf(reterr_message, max_message,
                         ERROR "error while parsing precision: error while converting precision "
                               "to integer: strconv.Atoi: parsing \"%.*s\": %s",
                         n_digits > 200 ? 200 : (int)n_digits, digits,
                         n_digits == 0 ? "invalid syntax" : "value out of range");
                return 0;
        }
        letter = (unsigned char)text[at];
        if (letter == 0 || letter >= 0x80 || !strchr("sdfebxXo", letter)) {
                char shown[HF__UTF8_MAX + 1] = {0};

                (void)hf__utf8_encode(letter, shown);
                snprintf(reterr_message, max_message, ERROR "unrecognized formatting clause \"%s\"",
                         shown);
                return 0;
        }
        return at + 1;
}

const char *hf__cel_format_refusal(char clause) {
        switch (clause) {
        case 's':
                return "string clause can only be used on strings, bools, bytes, ints, doubles, "
                       "maps, lists, types, durations, and timestamps";
        case 'd': return "decimal clause can only be used on integers";
        case 'f': return "fixed-point clause can only be used on doubles";
        case 'e': return "scientific clause can only be used on doubles";
        case 'b': return "only integers and bools can be formatted as binary";
        case 'o': return "octal clause can only be used on integers";
        default: return "only integers, byte buffers, and strings can be formatted as hex";
        }
}
