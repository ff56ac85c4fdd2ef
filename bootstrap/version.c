/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares versions.
 *
 * Invariant: a number may be too long for any integer type, so numbers are compared as texts and
 * never converted.
 */
#include "bootstrap/version.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static size_t n_digits(const char *text) { return strspn(text, "0123456789"); }

/* Skips identifiers that are separated by dots. Returns where they end, or NULL if one is empty. */
static const char *skip_identifiers(const char *text) {
        for (;;) {
                size_t n =
                        strspn(text,
                               "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
                if (n == 0)
                        return NULL;
                text += n;
                if (*text != '.')
                        return text;
                text++;
        }
}

bool hf__version_valid(const char *text) {
        if (!text || strlen(text) > HF__VERSION_MAX)
                return false;
        for (unsigned i = 0; i < 3; i++) {
                size_t n = n_digits(text);
                if (n == 0)
                        return false;
                text += n;
                if (*text != '.' || i == 2)
                        break;
                text++;
        }
        if (*text == '-')
                text = skip_identifiers(text + 1);
        if (text && *text == '+')
                text = skip_identifiers(text + 1);
        return text && *text == '\0';
}

/* Compares numbers of any length: without leading zeros, the longer one is greater. */
static int compare_numbers(const char *a, size_t n_a, const char *b, size_t n_b) {
        while (n_a > 0 && *a == '0') {
                a++;
                n_a--;
        }
        while (n_b > 0 && *b == '0') {
                b++;
                n_b--;
        }
        if (n_a != n_b)
                return n_a < n_b ? -1 : 1;
        return n_a ? memcmp(a, b, n_a) : 0;
}

/* Compares the next of the leading numbers and skips it, with its dot. A missing number is an empty
 * run of digits, which counts as 0. */
static int compare_next_number(const char **a, const char **b) {
        size_t n_a = n_digits(*a), n_b = n_digits(*b);
        int order = compare_numbers(*a, n_a, *b, n_b);

        *a += n_a;
        *b += n_b;
        if (**a == '.')
                ++*a;
        if (**b == '.')
                ++*b;
        return order;
}

/* Compares two identifiers, as in Semantic Versioning 2.0.0, section 11.4: numbers by value and
 * before words, words by their bytes. */
static int compare_identifiers(const char *a, size_t n_a, const char *b, size_t n_b) {
        bool is_number_a = n_digits(a) == n_a, is_number_b = n_digits(b) == n_b;

        if (is_number_a && is_number_b)
                return compare_numbers(a, n_a, b, n_b);
        if (is_number_a != is_number_b)
                return is_number_a ? -1 : 1;
        int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
        if (order == 0 && n_a != n_b)
                order = n_a < n_b ? -1 : 1;
        return order;
}

/* Both texts begin after the '-'. If all common identifiers are equal, the pre-release with fewer
 * identifiers is older. */
static int compare_pre_releases(const char *a, const char *b) {
        for (;;) {
                size_t n_a = strcspn(a, ".+"), n_b = strcspn(b, ".+");
                int order = compare_identifiers(a, n_a, b, n_b);
                if (order != 0)
                        return order;
                a += n_a;
                b += n_b;
                if (*a != '.' || *b != '.')
                        return (*a == '.') - (*b == '.');
                a++;
                b++;
        }
}

int hf__version_compare(const char *a, const char *b) {
        assert(hf__version_valid(a) && hf__version_valid(b));
        for (unsigned i = 0; i < 3; i++) {
                int order = compare_next_number(&a, &b);
                if (order != 0)
                        return order;
        }
        if (*a != '-' || *b != '-')
                return (*b == '-') - (*a == '-'); /* a pre-release comes before its release */
        return compare_pre_releases(a + 1, b + 1);
}
