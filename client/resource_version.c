/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a resourceVersion as a number. Kubernetes calls it opaque; every server that is known
 * sends a 64-bit number, and those that do not must still work: then there is no order, and 0 says
 * so.
 */
#include "client/resource_version.h"

#include <stddef.h>

uint64_t hf__resource_version_number(const char *resource_version) {
        uint64_t number = 0;

        if (!resource_version)
                return 0;
        for (const char *c = resource_version; *c; c++)
                if (*c < '0' || *c > '9' || __builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*c - '0'), &number))
                        return 0;
        return number;
}
