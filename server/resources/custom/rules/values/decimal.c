/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decimal numbers (decimal.h), in groups of nine digits.
 *
 * Invariant: the most significant group of a number, which is the last one, is not 0. So of two
 * numbers without their signs, the one with more groups is larger.
 */
#include "server/resources/custom/rules/values/decimal.h"

#define GROUP_DIGITS 9           /* as many as there are after the point */
#define GROUP        1000000000U /* 10^GROUP_DIGITS; two groups and a carry fit into uint32_t */
#define PRINT_STEPS  4 /* of work for a group: for its digits, and for those who read them */

/* Leaves out the groups that are 0 at the end. */
static struct hfd_decimal trim_decimal(bool negative, const uint32_t *groups, size_t n) {
        while (n > 0 && groups[n - 1] == 0)
                n--;
        return (struct hfd_decimal){.negative = negative && n > 0, .n = n, .groups = groups};
}

static bool has_digit(const char *digits, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (digits[i] != '0')
                        return true;
        return false;
}

/* Adds 1 to the least group; the last one has room for the carry. */
static void round_up(uint32_t *groups) {
        while (++*groups == GROUP)
                *groups++ = 0;
}

/* CEL's cost of a call does not depend on the length of a number, so the groups count as work of
 * the run. NULL: the run has failed. */
static uint32_t *alloc_groups(struct hf__cel_run *run, size_t n) {
        return hf__cel_work(run, n) ? hf__cel_alloc(run, n * sizeof(uint32_t)) : NULL;
}

bool hfd_decimal_read(struct hf__cel_run *run, bool negative, const char *digits, size_t n,
                      int exponent, struct hfd_decimal *ret_decimal) {
        size_t n_zeros = 0, n_dropped = 0; /* zeros to add; digits that are rounded away */
        bool rounds;

        if (exponent >= -GROUP_DIGITS)
                n_zeros = (size_t)(exponent + GROUP_DIGITS);
        else
                n_dropped = (size_t)(-GROUP_DIGITS - exponent);
        n_dropped = n_dropped < n ? n_dropped : n;
        n -= n_dropped;
        rounds = has_digit(digits + n, n_dropped);
        /* One more for the digits that fill a group only in part, and one for the carry. */
        const size_t n_groups = (n + n_zeros) / GROUP_DIGITS + 2;
        uint32_t *groups = alloc_groups(run, n_groups);
        if (!groups)
                return false;
        for (size_t i = n_groups; i-- > 0;) {
                groups[i] = 0;
                for (size_t at = (i + 1) * GROUP_DIGITS; at-- > i * GROUP_DIGITS;)
                        groups[i] = groups[i] * 10 +
                                    (at < n_zeros || at >= n + n_zeros
                                             ? 0
                                             : (uint32_t)(digits[n + n_zeros - 1 - at] - '0'));
        }
        if (rounds)
                round_up(groups);
        *ret_decimal = trim_decimal(negative, groups, n_groups);
        return true;
}

static int compare_amounts(const struct hfd_decimal *a, const struct hfd_decimal *b) {
        if (a->n != b->n)
                return a->n < b->n ? -1 : 1;
        for (size_t i = a->n; i-- > 0;)
                if (a->groups[i] != b->groups[i])
                        return a->groups[i] < b->groups[i] ? -1 : 1;
        return 0;
}

int hfd_decimal_compare(const struct hfd_decimal *a, const struct hfd_decimal *b) {
        if (a->negative != b->negative)
                return a->negative ? -1 : 1;
        return a->negative ? compare_amounts(b, a) : compare_amounts(a, b);
}

/* a is not smaller than b, and both count without their signs. groups has room for one more than a
 * has. The same holds for subtract_amounts. */
static void add_amounts(const struct hfd_decimal *a, const struct hfd_decimal *b,
                        uint32_t *groups) {
        uint32_t carry = 0;

        for (size_t i = 0; i < a->n; i++) {
                groups[i] = a->groups[i] + (i < b->n ? b->groups[i] : 0) + carry;
                carry = groups[i] >= GROUP ? 1 : 0;
                groups[i] -= carry * GROUP;
        }
        groups[a->n] = carry;
}

static void subtract_amounts(const struct hfd_decimal *a, const struct hfd_decimal *b,
                             uint32_t *groups) {
        uint32_t borrow = 0;

        for (size_t i = 0; i < a->n; i++) {
                const uint32_t taken = (i < b->n ? b->groups[i] : 0) + borrow;
                borrow = a->groups[i] < taken ? 1 : 0;
                groups[i] = a->groups[i] + borrow * GROUP - taken;
        }
        groups[a->n] = 0;
}

bool hfd_decimal_add(struct hf__cel_run *run, const struct hfd_decimal *a,
                     const struct hfd_decimal *b, struct hfd_decimal *ret_sum) {
        if (compare_amounts(a, b) < 0) {
                const struct hfd_decimal *smaller = a;
                a = b;
                b = smaller;
        }
        uint32_t *groups = alloc_groups(run, a->n + 1);
        if (!groups)
                return false;
        if (a->negative == b->negative)
                add_amounts(a, b, groups);
        else
                subtract_amounts(a, b, groups);
        *ret_sum = trim_decimal(a->negative, groups, a->n + 1);
        return true;
}

static void print_group(uint32_t group, char *digits) {
        for (size_t i = GROUP_DIGITS; i-- > 0; group /= 10)
                digits[i] = (char)('0' + group % 10);
}

char *hfd_decimal_digits(struct hf__cel_run *run, const struct hfd_decimal *decimal) {
        if (!hf__cel_work(run, decimal->n * PRINT_STEPS))
                return NULL;
        char *digits = hf__cel_alloc(run, decimal->n * GROUP_DIGITS + 1), *at = digits;
        if (!digits)
                return NULL;
        for (size_t i = decimal->n; i-- > 0; at += GROUP_DIGITS)
                print_group(decimal->groups[i], at);
        *at = 0;
        return digits;
}
