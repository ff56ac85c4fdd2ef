/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/version.h"

#include <stddef.h>
#include <string.h>

static size_t n_digits(const char *text) { return strspn(text, "0123456789"); }

/* Identifiers with dots between them. NULL when there is an empty one, else where they end. */
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

/* Numbers of any length: without leading zeros the longer one is the greater. */
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

/* The next of the leading numbers; a missing one is 0, which is an empty run of digits. */
static int compare_next_number(const char **a, const char **b) {
        size_t n_a = n_digits(*a), n_b = n_digits(*b);
        int order = compare_numbers(*a, n_a, *b, n_b);

        *a += n_a;
        *b += n_b;
        *a += **a == '.';
        *b += **b == '.';
        return order;
}

/* semver 11.4: numbers by value and before words, words by their bytes, and more identifiers after
 * fewer. */
static int compare_pre_releases(const char *a, const char *b) {
        for (;;) {
                size_t n_a = strcspn(a, ".+"), n_b = strcspn(b, ".+"), n = n_a < n_b ? n_a : n_b;
                bool number_a = n_digits(a) == n_a, number_b = n_digits(b) == n_b;
                int order;
                if (number_a && number_b)
                        order = compare_numbers(a, n_a, b, n_b);
                else if (number_a != number_b)
                        order = number_a ? -1 : 1;
                else if ((order = memcmp(a, b, n)) == 0)
                        order = n_a < n_b ? -1 : n_a > n_b;
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
        for (unsigned i = 0; i < 3; i++) {
                int order = compare_next_number(&a, &b);
                if (order != 0)
                        return order;
        }
        if (*a != '-' || *b != '-')
                return (*b == '-') - (*a == '-'); /* the pre-release comes first */
        return compare_pre_releases(a + 1, b + 1);
}
