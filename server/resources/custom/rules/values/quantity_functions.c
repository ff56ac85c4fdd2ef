/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CEL expressions that take or return a quantity.
 *
 * A quantity is a sign, a whole amount and an amount of billionths (schema/quantity.h). Its values
 * are immutable, so a sum is a new value.
 *
 * Invariant: a sum outside of the range of a quantity becomes the nearest bound, as a parsed
 * quantity does.
 */
#include "server/resources/custom/rules/values/quantity_functions.h"

#include <string.h>

#include "server/schema/quantity.h"

#define NANO 1000000000U

static const struct hf__cel_type quantity_type = {.kind = HF__CEL_OPAQUE,
                                                  .weight = 1,
                                                  .name = "kubernetes.Quantity"};

/* A value of the CEL type kubernetes.Quantity. */
struct held {
        struct hf__cel_opaque opaque; /* first, so that a pointer to it is one to the value */
        struct hfd_quantity quantity;
};

static const struct hfd_quantity *quantity_of(struct hf__cel_value value) {
        return &((const struct held *)(const void *)value.as.opaque)->quantity;
}

static bool are_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        return hfd_quantity_compare(&((const struct held *)(const void *)a)->quantity,
                                    &((const struct held *)(const void *)b)->quantity) == 0;
}

/* A CEL value with a copy of the quantity, in the memory of the run. */
static struct hf__cel_value keep_quantity(struct hf__cel_run *run,
                                          const struct hfd_quantity *quantity) {
        struct held *held = hf__cel_alloc(run, sizeof *held);

        if (!held)
                return hf__cel_failure(run);
        held->opaque = (struct hf__cel_opaque){.type = &quantity_type, .equal = are_equal};
        held->quantity = *quantity;
        return hf__cel_opaque_value(&held->opaque);
}

/* Returns NULL, or why the text is not a quantity. A text that is too long is cut one byte behind
 * the limit, so that the parser refuses it. */
static const char *parse_quantity(struct hf__cel_value text, struct hfd_quantity *ret_quantity) {
        char copy[HFD_QUANTITY_INPUT_MAX + 2];
        size_t n = text.n > HFD_QUANTITY_INPUT_MAX ? HFD_QUANTITY_INPUT_MAX + 1 : text.n;

        if (n > 0)
                memcpy(copy, text.as.text, n);
        copy[n] = 0;
        return hfd_quantity_parse(copy, ret_quantity);
}

static struct hf__cel_value call_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_quantity parsed;
        const char *wrong = parse_quantity(args[0], &parsed);

        return wrong ? hf__cel_error_text(wrong) : keep_quantity(run, &parsed);
}

static struct hf__cel_value is_quantity(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct hfd_quantity parsed;

        return hf__cel_bool(parse_quantity(args[0], &parsed) == NULL);
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

static struct hf__cel_value is_integer(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        return hf__cel_bool(quantity_of(args[0])->nano == 0);
}

static struct hf__cel_value as_integer(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        const struct hfd_quantity *q = quantity_of(args[0]);

        if (q->nano != 0)
                return hf__cel_error_text("cannot convert value to integer");
        return hf__cel_int(q->negative ? -(int64_t)q->whole : (int64_t)q->whole);
}

static struct hf__cel_value as_double(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        return hf__cel_double(hfd_quantity_number(quantity_of(args[0])));
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

/* The sum has the form of a (decimal or binary suffix), as in Kubernetes, and zero has no sign. */
static struct hf__cel_value sum_of(struct hf__cel_run *run, struct hfd_quantity a,
                                   struct hfd_quantity b) {
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
        return keep_quantity(run, &result);
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

static struct hf__cel_value call_add(struct hf__cel_run *run, const struct hf__cel_value *args,
                                     unsigned n) {
        return sum_of(run, *quantity_of(args[0]), operand(args[1]));
}

static struct hf__cel_value call_subtract(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        struct hfd_quantity other = operand(args[1]);

        other.negative = !other.negative && (other.whole > 0 || other.nano > 0);
        return sum_of(run, *quantity_of(args[0]), other);
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
