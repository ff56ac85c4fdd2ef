/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies configuration structs of callers that were compiled with another release.
 *
 * Invariant: nothing beyond the first `size` bytes of the caller's struct is read, because the
 * caller's struct may be smaller than ours.
 */
#include "base/sized_config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int hf__sized_config_copy(void *to, size_t n, size_t min_size, const void *from) {
        const unsigned char *bytes = from;
        size_t size;

        assert(min_size >= sizeof size && min_size <= n);
        memcpy(&size, from, sizeof size);
        if (size < min_size)
                return -EINVAL;
        for (size_t i = n; i < size; i++)
                if (bytes[i] != 0)
                        return -EINVAL;
        memset(to, 0, n);
        memcpy(to, from, size < n ? size : n);
        memcpy(to, &n, sizeof n);
        return 0;
}
