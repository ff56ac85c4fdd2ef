/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities: parsing, the canonical text, comparison.
 *
 * A text becomes decimal digits with a point. A decimal suffix or an exponent moves the point. A
 * binary suffix doubles the digits: ten times for Ki, twenty times for Mi. So the value is exact
 * until it is rounded once, at the end.
 *
 * Invariant: the canonical text of a quantity parses to the same value. The form may differ, as in
 * Kubernetes: "0.5Ki" is written as "512", which is decimal.
 */
#include "server/schema/values/quantity.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NANO         1000000000u
#define NANO_DIGITS  9
#define SUFFIX_CHARS "eEinumkKMGTP"
#define DIGITS       "0123456789"
/* Room for the input and for the digits, 19 at most, that doubling 60 times adds. */
#define DIGITS_MAX (HFD_QUANTITY_INPUT_MAX + 40)
/* An exponent above this makes every value but zero the maximum, and one below its negative makes
 * it 10^-9. So such exponents are replaced by these bounds. */
#define EXPONENT_MAX 1000

static const char wrong_format[] = "quantities must match the regular expression "
                                   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
static const char wrong_suffix[] = "unable to parse quantity's suffix";
static const char no_number[] = "unable to parse numeric part of quantity";

/* ---- the digits ---- */

/* The digits d[0] .. d[n-1]. The first `point` of them are before the point. point may be negative
 * or greater than n: then zeros are between the digits and the point. */
struct digits {
        unsigned char d[DIGITS_MAX];
        int n, point;
};

static void double_digits(struct digits *digits) {
        unsigned carry = 0;

        for (int i = digits->n - 1; i >= 0; i--) {
                unsigned value = 2u * digits->d[i] + carry;
                digits->d[i] = (unsigned char)(value % 10);
                carry = value / 10;
        }
        if (carry == 0)
                return;
        assert(digits->n < DIGITS_MAX);
        memmove(digits->d + 1, digits->d, (size_t)digits->n);
        digits->d[0] = (unsigned char)carry;
        digits->n++;
        digits->point++;
}

/* The digit at a position: 0 is the first one after the point, -1 the last one before it. */
static unsigned digit_at(const struct digits *digits, int position) {
        int i = digits->point + position;

        return i >= 0 && i < digits->n ? digits->d[i] : 0;
}

static bool has_digits_from(const struct digits *digits, int position) {
        int i = digits->point + position;

        for (i = i > 0 ? i : 0; i < digits->n; i++)
                if (digits->d[i] != 0)
                        return true;
        return false;
}

static void set_maximum(struct hfd_quantity *quantity) {
        quantity->whole = INT64_MAX;
        quantity->nano = 0;
}

/*
 * Sets whole and nano to the digits, rounded away from zero, or to the maximum. Kubernetes rounds
 * in this direction too: a request for resources must never become a smaller one.
 */
static void set_value(struct hfd_quantity *quantity, const struct digits *digits) {
        uint64_t whole = 0;
        uint32_t nano = 0;

        for (int i = -digits->point; i < 0; i++) {
                if (whole > ((uint64_t)INT64_MAX - digit_at(digits, i)) / 10) {
                        set_maximum(quantity);
                        return;
                }
                whole = 10 * whole + digit_at(digits, i);
        }
        for (int i = 0; i < NANO_DIGITS; i++)
                nano = 10 * nano + digit_at(digits, i);
        if (has_digits_from(digits, NANO_DIGITS))
                nano++;
        whole += nano / NANO;
        nano %= NANO;
        if (whole > INT64_MAX || (whole == INT64_MAX && nano > 0)) {
                set_maximum(quantity);
                return;
        }
        quantity->whole = whole;
        quantity->nano = nano;
}

/* ---- parsing ---- */

struct suffix {
        enum hfd_quantity_form form;
        int exponent; /* of 10; of a binary form the number of doublings */
};

static bool parse_exponent(const char *text, int *ret_exponent) {
        char *end;
        long value;

        if (!*text || !text[strcspn(text, DIGITS)])
                return false;
        value = strtol(text, &end, 10); /* a number out of range becomes LONG_MAX or LONG_MIN */
        if (*end)
                return false;
        if (value > EXPONENT_MAX)
                value = EXPONENT_MAX;
        if (value < -EXPONENT_MAX)
                value = -EXPONENT_MAX;
        *ret_exponent = (int)value;
        return true;
}

static bool parse_suffix(const char *text, struct suffix *ret_suffix) {
        static const char decimal[][2] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
        static const char binary[][3] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

        for (int i = 0; i < (int)(sizeof decimal / sizeof decimal[0]); i++)
                if (strcmp(text, decimal[i]) == 0) {
                        *ret_suffix = (struct suffix){HFD_QUANTITY_DECIMAL, 3 * (i - 3)};
                        return true;
                }
        for (int i = 1; i < (int)(sizeof binary / sizeof binary[0]); i++)
                if (strcmp(text, binary[i]) == 0) {
                        *ret_suffix = (struct suffix){HFD_QUANTITY_BINARY, 10 * i};
                        return true;
                }
        ret_suffix->form = HFD_QUANTITY_EXPONENT;
        return (*text == 'e' || *text == 'E') && parse_exponent(text + 1, &ret_suffix->exponent);
}

/* Whether the text after the sign has the form of the regular expression, with one point at most.
 * As in Kubernetes, most texts without digits are accepted, as zero. *ret_number: the length up to
 * the suffix. */
static bool has_form(const char *text, size_t *ret_number) {
        size_t n = strspn(text, DIGITS);
        const char *at;

        if (text[n] == '.')
                n += 1 + strspn(text + n + 1, DIGITS);
        *ret_number = n;
        at = text + n;
        at += strspn(at, SUFFIX_CHARS);
        if (*at == '+' || *at == '-')
                at++;
        return at[strspn(at, DIGITS)] == '\0';
}

/* Whether Kubernetes refuses a text without digits: its fast path reads zero, but it takes another
 * path for these suffixes. */
static bool needs_digits(const struct suffix *suffix) {
        return (suffix->form == HFD_QUANTITY_BINARY && suffix->exponent >= 50) ||
               (suffix->form == HFD_QUANTITY_EXPONENT && suffix->exponent < -NANO_DIGITS);
}

const char *hfd_quantity_parse(const char *text, struct hfd_quantity *ret_quantity) {
        struct hfd_quantity quantity = {0};
        struct digits digits = {0};
        struct suffix suffix = {0};
        size_t n;

        if (!*text || strnlen(text, HFD_QUANTITY_INPUT_MAX + 1) > HFD_QUANTITY_INPUT_MAX)
                return wrong_format;
        quantity.negative = *text == '-';
        if (*text == '-' || *text == '+')
                text++;
        if (!has_form(text, &n))
                return wrong_format;
        if (!parse_suffix(text + n, &suffix))
                return wrong_suffix;
        digits.point = (int)strspn(text, DIGITS);
        for (size_t i = 0; i < n; i++)
                if (text[i] != '.')
                        digits.d[digits.n++] = (unsigned char)(text[i] - '0');
        if (digits.n == 0 && needs_digits(&suffix))
                return no_number;
        if (suffix.form == HFD_QUANTITY_BINARY)
                for (int i = 0; i < suffix.exponent; i++)
                        double_digits(&digits);
        else
                digits.point += suffix.exponent;
        set_value(&quantity, &digits);
        if (quantity.whole == 0 && quantity.nano == 0)
                quantity.negative = false;
        quantity.form = suffix.form;
        *ret_quantity = quantity;
        return NULL;
}

struct hfd_quantity hfd_quantity_of(uint64_t whole) {
        struct hfd_quantity quantity = {.whole = whole};

        if (whole > INT64_MAX)
                set_maximum(&quantity);
        return quantity;
}

/* ---- the canonical text ---- */

#define DECIMALS_MAX 32 /* the 19 digits of whole, the 9 of nano, the NUL */

/* The digits of whole and nano without the point; leading zeros are left out. */
static int put_digits(const struct hfd_quantity *quantity, char text[DECIMALS_MAX]) {
        if (quantity->whole > 0)
                return snprintf(text, DECIMALS_MAX, "%" PRIu64 "%09" PRIu32, quantity->whole,
                                quantity->nano);
        return snprintf(text, DECIMALS_MAX, "%" PRIu32, quantity->nano);
}

/* Writes the value with the suffix of the largest power of 1000 that divides it. */
static void format_decimal(const struct hfd_quantity *quantity, bool with_exponent,
                           char text[HFD_QUANTITY_TEXT_MAX]) {
        static const char *const suffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"},
                                 *const exponents[] = {"e-9", "e-6", "e-3", "",    "e3",
                                                       "e6",  "e9",  "e12", "e15", "e18"};
        char digits[DECIMALS_MAX];
        int n = put_digits(quantity, digits), thousands = 0;

        while (n > 3 && thousands < 9 && strcmp(digits + n - 3, "000") == 0) {
                n -= 3;
                digits[n] = '\0';
                thousands++;
        }
        (void)snprintf(text, HFD_QUANTITY_TEXT_MAX, "%s%s%s", quantity->negative ? "-" : "", digits,
                       with_exponent ? exponents[thousands] : suffixes[thousands]);
}

static void format_binary(const struct hfd_quantity *quantity, char text[HFD_QUANTITY_TEXT_MAX]) {
        static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
        uint64_t value = quantity->whole;
        int i = 0;

        for (; value % 1024 == 0; i++) /* value is from 1024 to 2^63 - 1, so i ends at 6 or less */
                value /= 1024;
        (void)snprintf(text, HFD_QUANTITY_TEXT_MAX, "%s%" PRIu64 "%s",
                       quantity->negative ? "-" : "", value, suffixes[i]);
}

void hfd_quantity_format(const struct hfd_quantity *quantity, char text[HFD_QUANTITY_TEXT_MAX]) {
        if (quantity->whole == 0 && quantity->nano == 0)
                (void)snprintf(text, HFD_QUANTITY_TEXT_MAX, "0");
        else if (quantity->form == HFD_QUANTITY_BINARY && quantity->whole >= 1024 &&
                 quantity->nano == 0) /* otherwise the binary text would not be exact */
                format_binary(quantity, text);
        else
                format_decimal(quantity, quantity->form == HFD_QUANTITY_EXPONENT, text);
}

/* ---- values ---- */

static int compare_sizes(const struct hfd_quantity *a, const struct hfd_quantity *b) {
        if (a->whole != b->whole)
                return a->whole < b->whole ? -1 : 1;
        if (a->nano != b->nano)
                return a->nano < b->nano ? -1 : 1;
        return 0;
}

int hfd_quantity_compare(const struct hfd_quantity *a, const struct hfd_quantity *b) {
        if (a->negative != b->negative)
                return a->negative ? -1 : 1;
        return a->negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

void hfd_quantity_increment(struct hfd_quantity *quantity) {
        assert(!quantity->negative);
        if (quantity->whole < INT64_MAX - 1)
                quantity->whole++;
        else
                set_maximum(quantity);
}

bool hfd_quantity_is_zero(const struct hfd_quantity *quantity) {
        return quantity->whole == 0 && quantity->nano == 0;
}

/* As in Kubernetes: a sum begins as a decimal 0, and the first quantity in it that is not zero
 * decides how the sum is written. */
static void take_form(struct hfd_quantity *a, const struct hfd_quantity *b) {
        if (hfd_quantity_is_zero(a) && !hfd_quantity_is_zero(b))
                a->form = b->form;
}

void hfd_quantity_add(struct hfd_quantity *a, const struct hfd_quantity *b) {
        assert(!a->negative && !b->negative);
        take_form(a, b);
        a->whole += b->whole; /* both are at most INT64_MAX */
        a->nano += b->nano;
        if (a->nano >= NANO) {
                a->nano -= NANO;
                a->whole++;
        }
        if (a->whole >= INT64_MAX)
                set_maximum(a);
}

void hfd_quantity_subtract(struct hfd_quantity *a, const struct hfd_quantity *b) {
        assert(!a->negative && !b->negative);
        take_form(a, b);
        if (compare_sizes(a, b) <= 0) {
                a->whole = 0;
                a->nano = 0;
                return;
        }
        if (a->nano < b->nano) {
                a->nano += NANO;
                a->whole--;
        }
        a->nano -= b->nano;
        a->whole -= b->whole;
}

void hfd_quantity_round_up(struct hfd_quantity *quantity) {
        assert(!quantity->negative);
        if (quantity->nano != 0)
                hfd_quantity_increment(quantity);
        quantity->nano = 0;
}

void hfd_quantity_round_to_thousandths(struct hfd_quantity *quantity) {
        const uint32_t thousandth = NANO / 1000;
        uint32_t n = (quantity->nano + thousandth - 1) / thousandth;

        quantity->nano = n * thousandth;
        if (n < 1000)
                return;
        quantity->nano = 0;
        if (quantity->whole < INT64_MAX)
                quantity->whole++;
}

bool hfd_quantity_is_whole(const struct hfd_quantity *quantity) {
        /* Rounding to thousandths carries more than 999 of them to the next whole number. */
        return quantity->nano == 0 || quantity->nano > NANO - NANO / 1000;
}

double hfd_quantity_number(const struct hfd_quantity *quantity) {
        double size = (double)quantity->whole + (double)quantity->nano / NANO;

        return quantity->negative ? -size : size;
}
