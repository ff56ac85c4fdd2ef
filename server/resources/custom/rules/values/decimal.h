/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decimal numbers of any length with nine digits after the point, as quantities of CEL have them:
 * Go's inf.Dec at this scale. A number is immutable; its digits are in the memory of the run that
 * makes it. Each function charges the run with work in proportion to the groups of its numbers,
 * except the comparison, which gets no run. Thread: that of the run.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/run.h"

struct hfd_decimal {
        bool negative; /* false for zero */
        size_t n;      /* groups of digits; 0 = zero */
        /* Groups of nine digits, the least first; the first one is the fraction. The last one is
         * not 0. */
        const uint32_t *groups;
};

/* The number digits * 10^exponent, rounded away from zero to nine digits after the point. n: of
 * digits, which may begin with zeros. The caller limits the exponent, because memory and work grow
 * with it. False: the run has failed. */
bool hfd_decimal_read(struct hf__cel_run *run, bool negative, const char *digits, size_t n,
                      int exponent, struct hfd_decimal *ret_decimal);
/* < 0: a is less than b; 0: they are equal; > 0: a is greater. Takes time in proportion to
 * the groups of one of them, which the caller counts as work. */
int hfd_decimal_compare(const struct hfd_decimal *a, const struct hfd_decimal *b);
/* The sum. False: the run has failed. */
bool hfd_decimal_add(struct hf__cel_run *run, const struct hfd_decimal *a,
                     const struct hfd_decimal *b, struct hfd_decimal *ret_sum);
/* All digits, also the nine after the point, without the point and without a sign; "" for zero.
 * They may begin with zeros. In the memory of the run. NULL: the run has failed. */
char *hfd_decimal_digits(struct hf__cel_run *run, const struct hfd_decimal *decimal);
