/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares versions. Which versions count as Kubernetes' own, and their order, are those of
 * CompareKubeAwareVersionStrings in k8s.io/apimachinery.
 *
 * Invariant: it is a total order, because a list is sorted by it. So versions with equal numbers,
 * such as "v1" and "v01", are compared as texts.
 */
#include "server/resources/custom/custom_version_order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct version {
        int stability; /* 0 alpha, 1 beta, 2 stable */
        long major, minor;
};

/* Reads digits, and moves *at behind them. False: there are none; or the number does not fit in
 * ret_number. As in Go, the version then does not count as one of Kubernetes' own. */
static bool read_number(const char **at, long *ret_number) {
        char *end;

        if (**at < '0' || **at > '9')
                return false;
        errno = 0;
        *ret_number = strtol(*at, &end, 10);
        *at = end;
        return errno == 0;
}

/* "v1", "v1beta1". False: it has another form. */
static bool parse_version(const char *text, struct version *ret_version) {
        struct version version = {.stability = 2};

        if (*text++ != 'v' || !read_number(&text, &version.major))
                return false;
        if (strncmp(text, "alpha", 5) == 0)
                version.stability = 0;
        else if (strncmp(text, "beta", 4) == 0)
                version.stability = 1;
        if (version.stability < 2) {
                text += version.stability == 0 ? 5 : 4;
                if (!read_number(&text, &version.minor))
                        return false;
        }
        *ret_version = version;
        return *text == '\0';
}

/* The greater number comes first. */
static int compare_numbers(long a, long b) {
        if (a == b)
                return 0;
        return a > b ? -1 : 1;
}

int hfd_version_order(const char *a, const char *b) {
        struct version x = {0}, y = {0};
        bool is_x = parse_version(a, &x), is_y = parse_version(b, &y);

        if (!is_x || !is_y) {
                if (is_x != is_y)
                        return is_x ? -1 : 1;
                return strcmp(a, b);
        }
        if (x.stability != y.stability)
                return y.stability - x.stability;
        int order = compare_numbers(x.major, y.major);
        if (order == 0)
                order = compare_numbers(x.minor, y.minor);
        return order != 0 ? order : strcmp(a, b);
}
