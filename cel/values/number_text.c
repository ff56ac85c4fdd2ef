/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints numbers, and parses them.
 *
 * Invariant: a number that was printed is read as the same number.
 */
#include "cel/values/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"

#define DIGITS_MAX 17 /* with so many, every double is read back as itself */

void hf__cel_double_print(struct hf__strbuf *out, double value) {
        char text[40];
        int exponent;
        int n = 0;

        if (isnan(value)) {
                hf__strbuf_puts(out, "NaN");
                return;
        }
        if (isinf(value)) {
                hf__strbuf_puts(out, value > 0 ? "+Inf" : "-Inf");
                return;
        }
        do {
                snprintf(text, sizeof text, "%.*e", n++, value);
        } while (n < DIGITS_MAX && strtod(text, NULL) != value);
        exponent = atoi(strchr(text, 'e') + 1);
        /* The rule of Go's %g, with which cel-go prints doubles: it uses 6 as the precision if the
         * shortest text is asked for. */
        if (exponent < -4 || exponent >= 6)
                hf__strbuf_puts(out, text);
        else
                hf__strbuf_printf(out, "%.*f", n > exponent ? n - 1 - exponent : 0, value);
}

bool hf__cel_uint_parse(const char *text, size_t n, uint64_t *ret_value) {
        uint64_t value = 0;

        if (n == 0)
                return false;
        for (size_t i = 0; i < n; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
                        return false;
        *ret_value = value;
        return true;
}

bool hf__cel_int_parse(const char *text, size_t n, int64_t *ret_value) {
        bool negative = n > 0 && *text == '-';
        size_t sign = n > 0 && (*text == '-' || *text == '+') ? 1 : 0;
        uint64_t value;

        if (!hf__cel_uint_parse(text + sign, n - sign, &value) ||
            value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
                return false;
        if (value > INT64_MAX)
                *ret_value = INT64_MIN;
        else
                *ret_value = negative ? -(int64_t)value : (int64_t)value;
        return true;
}

/* strtod also takes white space in front, nan(...) and a NaN with a sign, which Go does not. */
static bool is_number_text(const char *text) {
        static const char *const words[] = {"inf", "infinity"};

        if (strcasecmp(text, "nan") == 0)
                return true;
        text += *text == '-' || *text == '+' ? 1 : 0;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return (*text >= '0' && *text <= '9') || *text == '.';
}

/* Removes the underscores, which in Go may stand between digits, and after "0x". An e is a digit
 * only in a hexadecimal number, whose exponent begins with p. false: an underscore stands
 * elsewhere, or a hexadecimal number has no exponent. */
static bool drop_underscores(char *text) {
        const char *digits = text + (*text == '-' || *text == '+' ? 1 : 0);
        const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
        const char *all = hex ? "0123456789abcdefABCDEF" : "0123456789";
        char *out = text;

        for (const char *at = text; *at; at++) {
                bool after_prefix = hex && at == digits + 2;

                if (*at != '_')
                        *out++ = *at;
                else if (at == text || !at[1] || !strchr(all, at[1]) ||
                         (!after_prefix && !strchr(all, at[-1])))
                        return false;
        }
        *out = 0;
        /* A hexadecimal number must have an exponent, which strtod does not ask for. */
        return !hex || strpbrk(text, "pP") != NULL;
}

bool hf__cel_double_parse(const char *text, size_t n, double *ret_value) {
        /* strtod needs a NUL at the end. A text that does not fit into the copy is refused, which
         * limits the work of strtod. */
        char copy[400];
        char *end;

        if (n == 0 || n >= sizeof copy || memchr(text, 0, n))
                return false;
        memcpy(copy, text, n);
        copy[n] = 0;
        if (!is_number_text(copy) || !drop_underscores(copy))
                return false;
        *ret_value = strtod(copy, &end);
        /* Go refuses a number that is too large for a double, but takes the word inf. */
        return !*end && (!isinf(*ret_value) || strpbrk(copy, "iI"));
}
