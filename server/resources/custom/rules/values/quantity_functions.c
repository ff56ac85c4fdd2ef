/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CEL expressions that take or return a quantity.
 *
 * A quantity is a sign, a whole amount and an amount of billionths (schema/quantity.h). Its values
 * are immutable, so a sum is a new value.
 *
 * Invariants: a sum outside of the range of a quantity becomes the nearest bound, as a parsed
 * quantity does. isInteger(), asInteger() and asApproximateFloat() tell how Go holds the quantity:
 * for them the digits and the power of ten of the text are kept (struct amount).
 */
#include "server/resources/custom/rules/values/quantity_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/schema/quantity.h"

#define NANO         1000000000U
#define EXPONENT_MAX 1000 /* of ten; a larger one makes every amount but zero too large */
/* Digits of a text, and those of a number before a binary suffix, up to which Go keeps an amount.
 */
#define DIGITS_MAX        18
#define BINARY_DIGITS_MAX 14

static const struct hf__cel_type quantity_type = {.kind = HF__CEL_OPAQUE,
                                                  .weight = 1,
                                                  .name = "kubernetes.Quantity"};

/* What Go keeps of a quantity that is not too long: value times ten to the power of scale. */
struct amount {
        bool kept; /* otherwise Go has a number of any length, which is no integer for CEL */
        int64_t value;
        int scale; /* at least -9 */
};

/* A value of the CEL type kubernetes.Quantity. */
struct held {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it is one to the value */
        struct hfd_quantity quantity;
        struct amount amount;
};

static const struct hfd_quantity *quantity_of(struct hf__cel_value value) {
        return &((const struct held *)(const void *)value.as.opaque)->quantity;
}

static const struct amount *amount_of(struct hf__cel_value value) {
        return &((const struct held *)(const void *)value.as.opaque)->amount;
}

static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return hfd_quantity_compare(&((const struct held *)(const void *)a)->quantity,
                                    &((const struct held *)(const void *)b)->quantity) == 0;
}

/* A CEL value with a copy of the quantity, in the memory of the run. */
static struct hf__cel_value
keep_quantity(struct hf__cel_run *run, const struct hfd_quantity *quantity, struct amount amount) {
        struct held *held = hf__cel_alloc(run, sizeof *held);

        if (!held)
                return hf__cel_failure(run);
        held->opaque = (struct hf__cel_opaque){.type = &quantity_type, .equal = are_equal};
        held->quantity = *quantity;
        held->amount = amount;
        return hf__cel_opaque_value(&held->opaque);
}

/* Multiplies by a power of ten. False: the product is too large. */
static bool scale_up(int64_t *value, int power) {
        for (; power > 0 && *value != 0; power--)
                if (__builtin_mul_overflow(*value, 10, value))
                        return false;
        return true;
}

/* The power of ten, or of two for a binary form, that the suffix of a quantity stands for. */
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

/* What Go keeps of the text of a quantity. The conditions are those of its fast path. */
static struct amount read_amount(const char *text, enum hfd_quantity_form form) {
        static const char digits[] = "0123456789";
        struct amount amount = {.kept = true};
        bool negative = *text == '-';
        const char *number = text + (*text == '-' || *text == '+' ? 1 : 0);
        const char *suffix;
        size_t n, n_fraction = 0;
        int exponent;

        number += strspn(number, "0");
        n = strspn(number, digits);
        suffix = number + n;
        if (*suffix == '.') {
                n_fraction = strspn(suffix + 1, digits);
                suffix += 1 + n_fraction;
        }
        exponent = exponent_of(suffix, form);
        n = n > 0 ? n : 1; /* a zero */
        if (form == HFD_QUANTITY_BINARY
                    ? n_fraction > 0 || (int)n + exponent * 3 / 10 > BINARY_DIGITS_MAX
                    : n + n_fraction > DIGITS_MAX || exponent - (int)n_fraction < -9)
                return (struct amount){.kept = false};
        for (; number < suffix; number++)
                if (*number != '.')
                        amount.value = amount.value * 10 + (*number - '0');
        if (form != HFD_QUANTITY_BINARY)
                amount.scale = exponent - (int)n_fraction;
        else if (__builtin_mul_overflow(amount.value, INT64_C(1) << exponent, &amount.value))
                amount.kept = false;
        if (negative)
                amount.value = -amount.value;
        return amount;
}

/* Returns NULL, or why the text is not a quantity. A text that is too long is cut one byte behind
 * the limit, so that the parser refuses it. */
static const char *parse_quantity(struct hf__cel_value text, struct hfd_quantity *ret_quantity,
                                  struct amount *ret_amount) {
        char copy[HFD_QUANTITY_INPUT_MAX + 2];
        size_t n = text.n > HFD_QUANTITY_INPUT_MAX ? HFD_QUANTITY_INPUT_MAX + 1 : text.n;
        const char *wrong;

        if (n > 0)
                memcpy(copy, text.as.text, n);
        copy[n] = 0;
        /* A text of CEL may contain NULs, which must not end it: no quantity has an 'x' either. */
        for (size_t i = 0; i < n; i++)
                if (copy[i] == 0)
                        copy[i] = 'x';
        wrong = hfd_quantity_parse(copy, ret_quantity);
        if (wrong)
                return wrong;
        *ret_amount = read_amount(copy, ret_quantity->form);
        /* Go takes a number without digits for zero only where it keeps the amount. */
        if (!ret_amount->kept && strcspn(copy, "0123456789") >= strcspn(copy, "eEinumkKMGTP"))
                return "unable to parse numeric part of quantity";
        return NULL;
}

static struct hf__cel_value call_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_quantity parsed;
        struct amount amount;
        const char *wrong = parse_quantity(args[0], &parsed, &amount);

        return wrong ? hf__cel_error_text(wrong) : keep_quantity(run, &parsed, amount);
}

static struct hf__cel_value is_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct hfd_quantity parsed;
        struct amount amount;

        return hf__cel_bool(parse_quantity(args[0], &parsed, &amount) == NULL);
}

static struct hf__cel_value call_sign(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct hfd_quantity *q = quantity_of(args[0]);

        if (q->whole == 0 && q->nano == 0)
                return hf__cel_int(0);
        return hf__cel_int(q->negative ? -1 : 1);
}

static int compare_args(const struct hf__cel_value *args) {
        int r = hfd_quantity_compare(quantity_of(args[0]), quantity_of(args[1]));

        return (r > 0) - (r < 0);
}

static struct hf__cel_value compare_to(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return hf__cel_int(compare_args(args));
}

static struct hf__cel_value is_less(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        return hf__cel_bool(compare_args(args) < 0);
}

static struct hf__cel_value is_greater(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return hf__cel_bool(compare_args(args) > 0);
}

/* Whether Go's AsInt64 has a result: digits after the point are not reduced, so 1.0 has none. */
static bool take_integer(struct hf__cel_value value, int64_t *ret_integer) {
        const struct amount *amount = amount_of(value);

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

/* As in Go the digits, as a double, are multiplied by the power of ten. So 0.3 is not 0.3. */
static struct hf__cel_value as_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct hfd_quantity *q = quantity_of(args[0]);
        const struct amount *amount = amount_of(args[0]);
        char digits[40];

        if (amount->kept)
                return hf__cel_double((double)amount->value * power_of_ten(amount->scale));
        if (q->whole == INT64_MAX)
                return hf__cel_double(q->negative ? -0x1p63 : 0x1p63);
        /* Go has rounded it to billionths. */
        (void)snprintf(digits, sizeof digits, "%s%llu%09u", q->negative ? "-" : "",
                       (unsigned long long)q->whole, q->nano);
        return hf__cel_double(strtod(digits, NULL) * power_of_ten(-9));
}

/* ---- sums ---- */

/* The next three functions see amounts without their signs. */

/* a += b. */
static void add_amounts(struct hfd_quantity *a, const struct hfd_quantity *b) {
        a->nano += b->nano;
        a->whole += b->whole + a->nano / NANO; /* each is at most INT64_MAX */
        a->nano %= NANO;
        if (a->whole > INT64_MAX || (a->whole == INT64_MAX && a->nano > 0)) {
                a->whole = INT64_MAX;
                a->nano = 0;
        }
}

/* a -= b. a is not smaller than b. */
static void subtract_amounts(struct hfd_quantity *a, const struct hfd_quantity *b) {
        if (a->nano < b->nano) {
                a->nano += NANO;
                a->whole--;
        }
        a->nano -= b->nano;
        a->whole -= b->whole;
}

static bool is_smaller_amount(const struct hfd_quantity *a, const struct hfd_quantity *b) {
        return a->whole != b->whole ? a->whole < b->whole : a->nano < b->nano;
}

/* What Go keeps of a sum. */
static struct amount add_kept(struct amount a, struct amount b) {
        struct amount sum = {.kept = false};

        if (!a.kept || !b.kept)
                return sum;
        if (a.value == 0 || b.value == 0)
                return b.value == 0 ? a : b;
        sum.scale = a.scale < b.scale ? a.scale : b.scale;
        sum.kept = scale_up(&a.value, a.scale - sum.scale) &&
                   scale_up(&b.value, b.scale - sum.scale) &&
                   !__builtin_add_overflow(a.value, b.value, &sum.value) && sum.value != INT64_MIN;
        return sum;
}

/* The sum has the form of a (decimal or binary suffix), as in Kubernetes, and zero has no sign. */
static struct hf__cel_value sum_of(struct hf__cel_run *run, struct hfd_quantity a,
                                   struct hfd_quantity b, struct amount amount) {
        struct hfd_quantity result = a;

        if (a.negative == b.negative) {
                add_amounts(&result, &b);
        } else if (is_smaller_amount(&a, &b)) {
                result = b;
                result.form = a.form;
                subtract_amounts(&result, &a);
        } else {
                subtract_amounts(&result, &b);
        }
        if (result.whole == 0 && result.nano == 0)
                result.negative = false;
        return keep_quantity(run, &result, amount);
}

/* The second argument of a sum: a quantity, or an int, which becomes one. */
static struct hfd_quantity operand(struct hf__cel_value value) {
        struct hfd_quantity quantity;

        if (value.kind != HF__CEL_INT)
                return *quantity_of(value);
        quantity =
                hfd_quantity_of(value.as.i < 0 ? 0 - (uint64_t)value.as.i : (uint64_t)value.as.i);
        quantity.negative = value.as.i < 0;
        return quantity;
}

/* The same, as Go keeps it. */
static struct amount amount_operand(struct hf__cel_value value) {
        if (value.kind != HF__CEL_INT)
                return *amount_of(value);
        return (struct amount){.kept = true, .value = value.as.i};
}

static struct hf__cel_value call_add(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return sum_of(run, *quantity_of(args[0]), operand(args[1]),
                      add_kept(*amount_of(args[0]), amount_operand(args[1])));
}

static struct hf__cel_value call_subtract(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_quantity other = operand(args[1]);
        struct amount amount = amount_operand(args[1]);

        amount.kept = amount.kept && !__builtin_sub_overflow(0, amount.value, &amount.value);
        other.negative = !other.negative && (other.whole > 0 || other.nano > 0);
        return sum_of(run, *quantity_of(args[0]), other, add_kept(*amount_of(args[0]), amount));
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
