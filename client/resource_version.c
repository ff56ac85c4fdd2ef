/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a resourceVersion as a number. Kubernetes calls it opaque, but all known servers send a
 * 64-bit number. A server that does not must still work: the result is then 0, which means that
 * versions cannot be ordered.
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
