/* SPDX-License-Identifier: Apache-2.0 */
#include "server/trim.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* What every call runs through is left alone: the program itself, the C library, and the way to
 * etcd. */
static bool is_hot(const char *path) {
        static const char *const hot[] = {"/libc.so", "/ld-linux", "/libcurl", "/libnghttp2"};

        for (size_t i = 0; i < sizeof hot / sizeof *hot; i++)
                if (strstr(path, hot[i]))
                        return true;
        return !strstr(path, ".so");
}

/* Code is never written to, so a page of it that is given back is the same when it is read from its
 * file again. */
static void give_back_code(const char *line) {
        unsigned long begin, end;
        int path = 0;

        if (sscanf(line, "%lx-%lx r-xp %*s %*s %*s %n", &begin, &end, &path) != 2 ||
            line[path] != '/' || is_hot(line + path))
                return;
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void hfd_trim_after_start(void) {
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[512];

        (void)malloc_trim(0);
        while (maps && fgets(line, sizeof line, maps))
                give_back_code(line);
        if (maps)
                (void)fclose(maps);
}
