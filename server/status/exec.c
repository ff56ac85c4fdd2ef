/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts holdfastd-status in place of this process (exec.h).
 *
 * Invariant: the program beside the running holdfastd comes first, so that a build directory does
 * not run an installed program of another version.
 */
#include "server/status/exec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/program_file.h"

#define PROGRAM   "holdfastd-status"
#define INSTALLED HFD_LIBEXECDIR "/" PROGRAM

int hfd_status_exec(char **argv) {
        char path[PATH_MAX];

        if (hf__program_file_find(PROGRAM, path))
                (void)execv(path, argv);
        (void)execv(INSTALLED, argv);
        (void)fprintf(stderr,
                      "holdfastd: cannot run %s: %s; it is installed together with holdfastd\n",
                      INSTALLED, strerror(errno));
        return 1;
}
