/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CEL expressions that take or return a quantity.
 *
 * As in Go, a quantity has one of two forms. If its text meets the conditions of read_amount, it is
 * a number of 64 bits and a power of ten (struct amount). A sum of two such quantities has this
 * form too, unless it overflows. Any other quantity is a decimal of any length. The form is
 * visible: the results of isInteger(), asInteger() and asApproximateFloat() depend on it.
 * Quantities are immutable, so a sum is a new value.
 *
 * Invariant: a quantity of either form has a decimal too, for comparisons and sums.
 */
#include "server/resources/custom/rules/values/quantity_functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/custom/rules/values/decimal.h"
#include "server/schema/values/quantity.h"

#define EXPONENT_MAX 1000 /* of ten; an exponent beyond it, of either sign, is replaced by it */
/* Go keeps a quantity as an amount if its number has at most so many digits. Before a binary suffix
 * the limit is for the digits of the number and those that the suffix adds, estimated as 3 for each
 * 10 doublings. */
#define DIGITS_MAX        18
#define BINARY_DIGITS_MAX 14

static const struct hf__cel_type quantity_type = {.kind = HF__CEL_OPAQUE,
                                                  .weight = 1,
                                                  .name = "kubernetes.Quantity"};

/* How Go holds a quantity: a value times ten to the power of scale. */
struct amount {
        bool kept;     /* as a number of 64 bits; otherwise it is no integer for CEL */
        int64_t value; /* if kept */
        int scale;     /* at least -9 */
};

/* A value of the CEL type kubernetes.Quantity. */
struct held {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it also points to the struct */
        struct hfd_decimal decimal;
        struct amount amount;
};

static const struct held *held_of(struct hf__cel_value value) {
        return (const struct held *)(const void *)value.as.opaque;
}

static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return hfd_decimal_compare(&((const struct held *)(const void *)a)->decimal,
                                   &((const struct held *)(const void *)b)->decimal) == 0;
}

/* A CEL value in the memory of the run. */
static struct hf__cel_value keep_quantity(struct hf__cel_run *run, struct hfd_decimal decimal,
                                          struct amount amount) {
        struct held *held = hf__cel_alloc(run, sizeof *held);

        if (!held)
                return hf__cel_failure(run);
        held->opaque = (struct hf__cel_opaque){.type = &quantity_type,
                                               .equal = are_equal,
                                               .n_text = decimal.n * sizeof *decimal.groups};
        held->decimal = decimal;
        held->amount = amount;
        return hf__cel_opaque_value(&held->opaque);
}

/* The decimal of an amount that is kept. False: the run has failed. */
static bool decimal_of(struct hf__cel_run *run, struct amount amount,
                       struct hfd_decimal *ret_decimal) {
        char digits[24];
        const uint64_t value =
                amount.value < 0 ? 0 - (uint64_t)amount.value : (uint64_t)amount.value;
        const int n = snprintf(digits, sizeof digits, "%" PRIu64, value);

        return hfd_decimal_read(run, amount.value < 0, digits, (size_t)n, amount.scale,
                                ret_decimal);
}

/* Multiplies by a power of ten. False: the product is too large. */
static bool scale_up(int64_t *value, int power) {
        for (; power > 0 && *value != 0; power--)
                if (__builtin_mul_overflow(*value, 10, value))
                        return false;
        return true;
}

/* The suffix of a quantity stands for a power of ten or, in the binary form ("Ki"), for a power of
 * two. Returns its exponent. */
static int exponent_of(const char *suffix, enum hfd_quantity_form form) {
        static const char decimal[] = "num kMGTPE";
        static const char binary[] = "KMGTPE";
        long exponent;

        if (!*suffix)
                return 0;
        if (form == HFD_QUANTITY_BINARY)
                return 10 * (int)(strchr(binary, *suffix) - binary + 1);
        if (form == HFD_QUANTITY_DECIMAL)
                return 3 * (int)(strchr(decimal, *suffix) - decimal - 3);
        exponent = strtol(suffix + 1, NULL, 10);
        if (exponent > EXPONENT_MAX)
                return EXPONENT_MAX;
        return exponent < -EXPONENT_MAX ? -EXPONENT_MAX : (int)exponent;
}

/* A text that is a quantity, and what it consists of. */
struct text {
        char copy[HFD_QUANTITY_INPUT_MAX + 2];
        struct hfd_quantity
                parsed; /* bounded (schema/values/quantity.h); CEL bounds only a binary form */
        char digits[HFD_QUANTITY_INPUT_MAX + 2];
        /* How many digits there are, without zeros at the front; how many are after the point. */
        size_t n_digits, n_fraction;
        int exponent; /* that the suffix stands for (exponent_of) */
        struct amount amount;
};

/* Sets the members from `digits` to `exponent`. */
static void read_digits(struct text *text) {
        const char *at = text->copy + strspn(text->copy, "+-");
        bool is_fraction = false;

        text->n_digits = text->n_fraction = 0;
        at += strspn(at, "0");
        for (; (*at >= '0' && *at <= '9') || *at == '.'; at++) {
                if (*at != '.') {
                        text->digits[text->n_digits++] = *at;
                        text->n_fraction += is_fraction;
                }
                is_fraction = is_fraction || *at == '.';
        }
        text->exponent = exponent_of(at, text->parsed.form);
}

/* Sets `amount`: how Go holds the quantity. It is kept under the conditions of the fast path of
 * Go's ParseQuantity. */
static void read_amount(struct text *text) {
        struct amount *amount = &text->amount;
        const bool is_binary = text->parsed.form == HFD_QUANTITY_BINARY;
        size_t n = text->n_digits - text->n_fraction;

        *amount = (struct amount){.kept = true};
        n = n > 0 ? n : 1; /* Go counts a 0 if no other digit is before the point */
        if (is_binary ? text->n_fraction > 0 || (int)n + text->exponent * 3 / 10 > BINARY_DIGITS_MAX
                      : n + text->n_fraction > DIGITS_MAX ||
                                text->exponent - (int)text->n_fraction < -9)
                amount->kept = false;
        for (size_t i = 0; amount->kept && i < text->n_digits; i++)
                amount->value = amount->value * 10 + (text->digits[i] - '0');
        if (!is_binary)
                amount->scale = text->exponent - (int)text->n_fraction;
        else if (amount->kept && __builtin_mul_overflow(amount->value, INT64_C(1) << text->exponent,
                                                        &amount->value))
                amount->kept = false;
        if (text->copy[0] == '-')
                amount->value = -amount->value;
}

/* Returns NULL, or why the text is not a quantity. A text that is too long is cut one byte behind
 * the limit, so that the parser refuses it. */
static const char *parse_text(struct hf__cel_value value, struct text *text) {
        size_t n = value.n > HFD_QUANTITY_INPUT_MAX ? HFD_QUANTITY_INPUT_MAX + 1 : value.n;
        const char *wrong;

        if (n > 0)
                memcpy(text->copy, value.as.text, n);
        text->copy[n] = 0;
        /* A text of CEL may contain NULs, which would end it for the parser. They become 'x', which
         * the parser refuses anywhere. */
        for (size_t i = 0; i < n; i++)
                if (text->copy[i] == 0)
                        text->copy[i] = 'x';
        wrong = hfd_quantity_parse(text->copy, &text->parsed);
        if (wrong)
                return wrong;
        read_digits(text);
        read_amount(text);
        /* A number without digits, as in ".Ki", is zero to Go only where it keeps the amount. */
        if (!text->amount.kept &&
            strcspn(text->copy, "0123456789") >= strcspn(text->copy, "eEinumkKMGTP"))
                return "unable to parse numeric part of quantity";
        return NULL;
}

/* Makes the decimal of a quantity that is not kept as an amount, and sets amount.scale. The decimal
 * is rounded to billionths, so the scale becomes -9. (The scale of a zero may stay larger. In Go
 * it may also be smaller, which does not change the value.) Only a quantity with a binary suffix is
 * bounded, by INT64_MAX, and the bound has the scale 0. False: the run has failed. */
static bool read_decimal(struct hf__cel_run *run, struct text *text,
                         struct hfd_decimal *ret_decimal) {
        const struct hfd_quantity *parsed = &text->parsed;
        const bool is_binary = parsed->form == HFD_QUANTITY_BINARY;
        char digits[40];
        int n;

        if (parsed->whole > 0 || parsed->nano > 0 || text->amount.scale < -9)
                text->amount.scale = is_binary && parsed->whole == INT64_MAX ? 0 : -9;
        if (!is_binary)
                return hfd_decimal_read(run, text->copy[0] == '-', text->digits, text->n_digits,
                                        text->exponent - (int)text->n_fraction, ret_decimal);
        n = snprintf(digits, sizeof digits, "%" PRIu64 "%09u", parsed->whole, parsed->nano);
        return hfd_decimal_read(run, parsed->negative, digits, (size_t)n, -9, ret_decimal);
}

static struct hf__cel_value call_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_decimal decimal;
        struct text text;
        const char *wrong = parse_text(args[0], &text);

        if (wrong)
                return hf__cel_error_text(wrong);
        if (text.amount.kept ? !decimal_of(run, text.amount, &decimal)
                             : !read_decimal(run, &text, &decimal))
                return hf__cel_failure(run);
        return keep_quantity(run, decimal, text.amount);
}

static struct hf__cel_value is_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct text text;

        return hf__cel_bool(parse_text(args[0], &text) == NULL);
}

static struct hf__cel_value call_sign(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct hfd_decimal *decimal = &held_of(args[0])->decimal;

        if (decimal->n == 0)
                return hf__cel_int(0);
        return hf__cel_int(decimal->negative ? -1 : 1);
}

/* False: the run has failed. */
static bool compare_args(struct hf__cel_run *run, const struct hf__cel_value *args,
                         int *ret_order) {
        const struct hfd_decimal *a = &held_of(args[0])->decimal, *b = &held_of(args[1])->decimal;

        *ret_order = hfd_decimal_compare(a, b);
        return hf__cel_work(run, a->n);
}

static struct hf__cel_value compare_to(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int order;

        return compare_args(run, args, &order) ? hf__cel_int(order) : hf__cel_failure(run);
}

static struct hf__cel_value is_less(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        int order;

        return compare_args(run, args, &order) ? hf__cel_bool(order < 0) : hf__cel_failure(run);
}

static struct hf__cel_value is_greater(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int order;

        return compare_args(run, args, &order) ? hf__cel_bool(order > 0) : hf__cel_failure(run);
}

/* Whether Go's AsInt64 has a result: digits after the point are not reduced, so 1.0 has none. */
static bool take_integer(struct hf__cel_value value, int64_t *ret_integer) {
        const struct amount *amount = &held_of(value)->amount;

        *ret_integer = amount->value;
        return amount->kept && amount->scale >= 0 && scale_up(ret_integer, amount->scale);
}

static struct hf__cel_value is_integer(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int64_t integer;

        return hf__cel_bool(take_integer(args[0], &integer));
}

static struct hf__cel_value as_integer(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        int64_t integer;

        if (!take_integer(args[0], &integer))
                return hf__cel_error_text("cannot convert value to integer");
        return hf__cel_int(integer);
}

/* The power of ten as Go's math.Pow10 computes it, from tables of every power up to 31 and of every
 * 32nd. power: at least -9. */
static double power_of_ten(int power) {
        char large[16], small[16];

        if (power < 0)
                return 1 / power_of_ten(-power);
        (void)snprintf(large, sizeof large, "1e%d", power / 32 * 32);
        (void)snprintf(small, sizeof small, "1e%d", power % 32);
        return strtod(large, NULL) * strtod(small, NULL);
}

/* As in Go, the digits become a double, which is multiplied by the power of ten. So the result for
 * 0.3 is 3 * 0.1, which is not the double 0.3. The decimal has nine digits after the point; those
 * beyond the scale are zeros and are cut off. */
static struct hf__cel_value as_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct held *held = held_of(args[0]);
        double number = (double)held->amount.value;

        if (!held->amount.kept) {
                char *digits = hfd_decimal_digits(run, &held->decimal);
                if (!digits)
                        return hf__cel_failure(run);
                const size_t n_digits = strlen(digits), n_left = (size_t)(held->amount.scale + 9);
                digits[n_digits > n_left ? n_digits - n_left : 0] = 0;
                number = held->decimal.negative ? -strtod(digits, NULL) : strtod(digits, NULL);
        }
        return hf__cel_double(held->amount.scale == 0 ? number
                                                      : number * power_of_ten(held->amount.scale));
}

/* ---- sums ---- */

/* How Go holds a sum. If it is not kept, only its scale is set. */
static struct amount add_kept(struct amount a, struct amount b) {
        struct amount sum = {.scale = a.scale < b.scale ? a.scale : b.scale};

        if (!a.kept || !b.kept)
                return sum;
        if (a.value == 0 || b.value == 0)
                return b.value == 0 ? a : b;
        sum.kept = scale_up(&a.value, a.scale - sum.scale) &&
                   scale_up(&b.value, b.scale - sum.scale) &&
                   !__builtin_add_overflow(a.value, b.value, &sum.value);
        return sum;
}

static struct hf__cel_value sum_of(struct hf__cel_run *run, const struct held *a,
                                   const struct hfd_decimal *b, struct amount amount) {
        const struct amount sum = add_kept(a->amount, amount);
        struct hfd_decimal decimal;

        if (sum.kept ? !decimal_of(run, sum, &decimal)
                     : !hfd_decimal_add(run, &a->decimal, b, &decimal))
                return hf__cel_failure(run);
        return keep_quantity(run, decimal, sum);
}

/* The second argument of a sum: a quantity, or an int, which becomes one. False: the run has
 * failed. */
static bool take_operand(struct hf__cel_run *run, struct hf__cel_value value,
                         struct hfd_decimal *ret_decimal, struct amount *ret_amount) {
        if (value.kind != HF__CEL_INT) {
                *ret_decimal = held_of(value)->decimal;
                *ret_amount = held_of(value)->amount;
                return true;
        }
        *ret_amount = (struct amount){.kept = true, .value = value.as.i};
        return decimal_of(run, *ret_amount, ret_decimal);
}

static struct hf__cel_value call_add(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        struct hfd_decimal decimal;
        struct amount amount;

        if (!take_operand(run, args[1], &decimal, &amount))
                return hf__cel_failure(run);
        return sum_of(run, held_of(args[0]), &decimal, amount);
}

/* As in Go, the negative of INT64_MIN is INT64_MIN itself. */
static struct hf__cel_value call_subtract(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_decimal decimal;
        struct amount amount;

        if (!take_operand(run, args[1], &decimal, &amount))
                return hf__cel_failure(run);
        if (amount.kept)
                amount.value = (int64_t)(0 - (uint64_t)amount.value);
        decimal.negative = !decimal.negative && decimal.n > 0;
        return sum_of(run, held_of(args[0]), &decimal, amount);
}

#define Q   "kubernetes.Quantity"
#define ONE HF__CEL_COST_ONE

/* A row: the name, the types of arguments and result (with a dot first: a method), the function,
 * and what a call is charged (function.h). */
const struct hf__cel_row hfd_quantity_functions[] = {
        {"quantity", "(string) -> " Q, call_quantity, HF__CEL_COST_FIRST},
        {"isQuantity", "(string) -> bool", is_quantity, HF__CEL_COST_FIRST},
        {"sign", "(" Q ") -> int", call_sign, ONE},
        {"compareTo", "." Q "(" Q ") -> int", compare_to, ONE},
        {"isLessThan", "." Q "(" Q ") -> bool", is_less, ONE},
        {"isGreaterThan", "." Q "(" Q ") -> bool", is_greater, ONE},
        {"isInteger", "." Q "() -> bool", is_integer, ONE},
        {"asInteger", "." Q "() -> int", as_integer, ONE},
        {"asApproximateFloat", "." Q "() -> double", as_double, ONE},
        {"add", "." Q "(" Q ") -> " Q, call_add, ONE},
        {"add", "." Q "(int) -> " Q, call_add, ONE},
        {"sub", "." Q "(" Q ") -> " Q, call_subtract, ONE},
        {"sub", "." Q "(int) -> " Q, call_subtract, ONE},
        {NULL, NULL, NULL, ONE},
};
