/* SPDX-License-Identifier: Apache-2.0 */
/* See pki_dir.h. */
#undef NDEBUG
#include "pki_dir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char pki_dir[64];

int pki_dir_make(void **state) {
        strcpy(pki_dir, "/tmp/pki-XXXXXX");
        return mkdtemp(pki_dir) ? 0 : -1;
}

int pki_dir_remove(void **state) {
        char command[128];

        snprintf(command, sizeof command, "rm -rf '%s'", pki_dir);
        return system(command);
}

bool pki_dir_says(const char *dir, const char *line, const char *expected) {
        char command[512], output[8192];

        snprintf(command, sizeof command, "cd '%s' && { %s; } 2>&1", dir, line);
        FILE *pipe = popen(command, "r");
        assert(pipe);
        size_t n = fread(output, 1, sizeof output - 1, pipe);
        output[n] = '\0';
        bool ok = pclose(pipe) == 0 && strstr(output, expected);
        if (!ok)
                fprintf(stderr, "%s: wanted \"%s\" in:\n%s\n", line, expected, output);
        return ok;
}
