/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Quantities: the numbers of Kubernetes' resources, "500m", "2", "1k", "64Mi", "1e3". A quantity
 * has at most nine digits after the point, and lies between -(2^63-1) and 2^63-1. As in
 * Kubernetes, a text with more digits is rounded away from zero. A value outside becomes the
 * nearest bound, also a sum; in Kubernetes only a text with a binary suffix has these bounds.
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The form in which a quantity is written: the suffixes that it may have. */
enum hfd_quantity_form {
        HFD_QUANTITY_DECIMAL,  /* n, u, m, no suffix, k, M, G, T, P, E */
        HFD_QUANTITY_BINARY,   /* Ki, Mi, Gi, Ti, Pi, Ei */
        HFD_QUANTITY_EXPONENT, /* e3 */
};

struct hfd_quantity {
        bool negative;  /* false for zero */
        uint64_t whole; /* at most INT64_MAX */
        uint32_t nano;  /* the fraction in units of 10^-9, less than 10^9 */
        enum hfd_quantity_form form;
};

#define HFD_QUANTITY_TEXT_MAX  40  /* bytes of the canonical text, with the NUL */
#define HFD_QUANTITY_INPUT_MAX 100 /* bytes of a text that is parsed */

/*
 * Parses text. NULL = success. Otherwise the text is not a quantity, or longer than
 * HFD_QUANTITY_INPUT_MAX: the result is Kubernetes' message, a constant, and *ret_quantity is not
 * set.
 */
const char *hfd_quantity_parse(const char *text, struct hfd_quantity *ret_quantity);
/* A whole number in decimal form; a number above the maximum becomes the maximum. */
struct hfd_quantity hfd_quantity_of(uint64_t whole);
/* The canonical text, which is the form that is stored and served: "1k" for "1000". Kubernetes
 * keeps the client's text if it has few digits and looks canonical, such as "01" or "8E3". */
void hfd_quantity_format(const struct hfd_quantity *quantity, char text[HFD_QUANTITY_TEXT_MAX]);
/* < 0: a is less than b; 0: they are equal; > 0: a is greater. */
int hfd_quantity_compare(const struct hfd_quantity *a, const struct hfd_quantity *b);
/* Adds 1 to a quantity, which must not be negative. The maximum stays as it is. Keeps the form. */
void hfd_quantity_increment(struct hfd_quantity *quantity);
/*
 * a += b; and a -= b, but not below zero. Neither may be negative. The sum is at most the maximum.
 * The result has the form of a, or that of b if a is zero and b is not.
 */
void hfd_quantity_add(struct hfd_quantity *a, const struct hfd_quantity *b);
void hfd_quantity_subtract(struct hfd_quantity *a, const struct hfd_quantity *b);
bool hfd_quantity_is_zero(const struct hfd_quantity *quantity);
/* Rounds a quantity, which must not be negative, up to a whole number. */
void hfd_quantity_round_up(struct hfd_quantity *quantity);
/* Rounds a quantity away from zero to thousandths. The maximum stays as it is. */
void hfd_quantity_round_to_thousandths(struct hfd_quantity *quantity);
/* Whether the value is a whole number after it is rounded away from zero to thousandths. */
bool hfd_quantity_is_whole(const struct hfd_quantity *quantity);
/* The value as a double, for ratios. */
double hfd_quantity_number(const struct hfd_quantity *quantity);
