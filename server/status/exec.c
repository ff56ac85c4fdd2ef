/* SPDX-License-Identifier: Apache-2.0 */
/* Starts holdfastd-status in place of this process (exec.h). The program beside the running
 * holdfastd comes first, so that a build directory does not run an installed program of another
 * version. */
#include "server/status/exec.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM   "holdfastd-status"
#define INSTALLED HFD_LIBEXECDIR "/" PROGRAM

/* Makes the path of PROGRAM in the directory of the running program. False: the directory is
 * unknown. */
static bool find_beside(char path[PATH_MAX]) {
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof PROGRAM);
        char *slash;

        if (n <= 0)
                return false;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return false;
        memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
        return true;
}

int hfd_status_exec(char **argv) {
        char path[PATH_MAX];

        if (find_beside(path))
                (void)execv(path, argv);
        (void)execv(INSTALLED, argv);
        (void)fprintf(stderr,
                      "holdfastd: cannot run %s: %s; it is installed together with holdfastd\n",
                      INSTALLED, strerror(errno));
        return 1;
}
