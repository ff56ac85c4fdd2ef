/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves plain scalars. The rules are those of YAML 1.1 as go-yaml v2 has implemented them: yes
 * and on are booleans, underscores in numbers are skipped, 0777 is octal. A time remains a text.
 *
 * Invariant: the JSON of a number reads back as the same number, and has an exponent only where Go
 * prints one, because decoders of integers refuse an exponent.
 */
#include "client/yaml_scalar.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* bytes of a number as text, with the NUL; a longer one is a text */

/* Returns the JSON of a word that has a meaning, or "NaN", "+Inf" or "-Inf". NULL: it has none, and
 * is a number or an ordinary text. */
static const char *find_word(const char *text, size_t n) {
        static const struct {
                const char *words; /* separated by spaces */
                const char *json;
        } all[] = {{" y Y yes Yes YES true True TRUE on On ON ", "true"},
                   {" n N no No NO false False FALSE off Off OFF ", "false"},
                   {" ~ null Null NULL ", "null"},
                   {" .nan .NaN .NAN ", "NaN"},
                   {" .inf .Inf .INF +.inf +.Inf +.INF ", "+Inf"},
                   {" -.inf -.Inf -.INF ", "-Inf"}};
        char spaced[16];

        if (n == 0)
                return "null";
        /* Two spaces and the NUL are added to the text. */
        if (n > sizeof spaced - 3 || memchr(text, ' ', n) || memchr(text, '\0', n))
                return NULL;
        (void)snprintf(spaced, sizeof spaced, " %.*s ", (int)n, text);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strstr(all[i].words, spaced))
                        return all[i].json;
        return NULL;
}

/* Finds the base of a number as Go's strconv.ParseInt does with base 0: by the prefixes 0x, 0o, 0b,
 * and 0 for octal. *ret_digits is the text after the prefix. */
static int find_base(const char *digits, const char **ret_digits) {
        *ret_digits = digits;
        if (digits[0] != '0' || !digits[1])
                return 10;
        *ret_digits = digits + 2;
        switch (digits[1]) {
        case 'x':
        case 'X': return 16;
        case 'o':
        case 'O': return 8;
        case 'b':
        case 'B': return 2;
        default: *ret_digits = digits + 1; return 8;
        }
}

/* False: it is not an integer, or not one of 64 bits. */
static bool resolve_integer(const char *text, char json[HF__YAML_SCALAR_MAX]) {
        bool negative = *text == '-', positive = *text == '+';
        const char *digits;
        char *end;

        if (*text == '-' || *text == '+')
                text++;
        int base = find_base(text, &digits);
        if (!*digits || strspn(digits, "0123456789abcdefABCDEF") != strlen(digits))
                return false;
        errno = 0;
        uint64_t value = strtoull(digits, &end, base);
        /* A sign makes it a signed integer, as in Go. */
        if (*end || errno != 0 || (negative && value > (uint64_t)INT64_MAX + 1) ||
            (positive && value > (uint64_t)INT64_MAX))
                return false;
        (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s%" PRIu64, negative && value > 0 ? "-" : "",
                       value);
        return true;
}

/* Whether the text matches [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *text) {
        static const char digits[] = "0123456789";

        if (*text == '-' || *text == '+')
                text++;
        size_t n_whole = strspn(text, digits), n_part = 0;
        text += n_whole;
        if (*text == '.') {
                n_part = strspn(text + 1, digits);
                text += 1 + n_part;
        }
        if (n_whole + n_part == 0)
                return false;
        if (*text == 'e' || *text == 'E') {
                text++;
                if (*text == '-' || *text == '+')
                        text++;
                size_t n = strspn(text, digits);
                if (n == 0)
                        return false;
                text += n;
        }
        return !*text;
}

/* Writes the shortest text that reads as the same number. It has 17 digits at most. Fewer than 15
 * (precision 14) are tried only for a subnormal number: any other number that has such a text also
 * has it with zeros at the end, which are cut. As in Go, only a number below 1e-6 or from 1e21 on
 * has an exponent, because decoders of integers refuse an exponent. */
static void format_float(double value, char json[HF__YAML_SCALAR_MAX]) {
        char text[32], digits[20];
        int n = 0, precision = fabs(value) < DBL_MIN ? 0 : 14;

        do
                (void)snprintf(text, sizeof text, "%.*e", precision, fabs(value));
        while (strtod(text, NULL) != fabs(value) && ++precision < 17);
        int exponent = atoi(strchr(text, 'e') + 1);
        for (const char *c = text; *c != 'e'; c++)
                if (*c != '.')
                        digits[n++] = *c;
        while (n > 1 && digits[n - 1] == '0')
                n--;
        digits[n] = '\0';
        const char *sign = value < 0 ? "-" : "";
        if (exponent >= 21 || exponent < -6)
                (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s%c%s%se%c%d", sign, digits[0],
                               n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
                               abs(exponent));
        else if (exponent < 0)
                (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s0.%.*s%s", sign, -exponent - 1,
                               "00000", digits);
        else if (n <= exponent + 1)
                (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s%s%.*s", sign, digits,
                               exponent + 1 - n, "00000000000000000000");
        else
                (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s%.*s.%s", sign, exponent + 1, digits,
                               digits + exponent + 1);
}

enum hf__yaml_scalar hf__yaml_scalar_resolve(const char *text, size_t n,
                                             char json[HF__YAML_SCALAR_MAX]) {
        const char *word = find_word(text, n);
        char number[NUMBER_MAX];
        size_t n_number = 0;

        if (word) {
                (void)snprintf(json, HF__YAML_SCALAR_MAX, "%s", word);
                return *word == 'n' || *word == 't' || *word == 'f' ? HF__YAML_VALUE
                                                                    : HF__YAML_UNSUPPORTED;
        }
        if (n >= sizeof number || !strchr("+-.0123456789", text[0]))
                return HF__YAML_TEXT;
        for (size_t i = 0; i < n; i++)
                if (text[i] != '_')
                        number[n_number++] = text[i];
        number[n_number] = '\0';
        if (strlen(number) != n_number)
                return HF__YAML_TEXT;
        if (text[0] != '.' && resolve_integer(number, json))
                return HF__YAML_VALUE;
        if (!is_float(number))
                return HF__YAML_TEXT;
        double value = strtod(number, NULL);
        if (!isfinite(value))
                return HF__YAML_TEXT; /* Go's ParseFloat refuses it, too */
        format_float(value, json);
        return HF__YAML_VALUE;
}
