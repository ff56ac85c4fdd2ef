/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How many descriptors this process has open, for tests that none is left. Thread: any. */
#include <assert.h>
#include <dirent.h>
#include <stddef.h>

static inline unsigned count_descriptors(void) {
        DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        assert(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}
