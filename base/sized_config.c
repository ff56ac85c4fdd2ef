/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized_config.h"

#include <errno.h>
#include <string.h>

int hf__sized_config_take(void *to, size_t n, size_t least, const void *from) {
        size_t size;

        memcpy(&size, from, sizeof size);
        if (size < least)
                return -EINVAL;
        for (size_t i = n; i < size; i++)
                if (((const unsigned char *)from)[i])
                        return -EINVAL;
        memset(to, 0, n);
        memcpy(to, from, size < n ? size : n);
        memcpy(to, &n, sizeof n);
        return 0;
}
