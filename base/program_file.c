/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds files beside the running program (program_file.h).
 *
 * Invariant: the kernel says where the program is. Its name on the command line and the variable
 * PATH do not count, because the user who starts the program chooses them.
 */
#include "base/program_file.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

bool hf__program_file_find(const char *name, char path[PATH_MAX]) {
        size_t n_name = strlen(name);

        assert(n_name > 0 && n_name < PATH_MAX && !strchr(name, '/'));
        size_t room = PATH_MAX - n_name - 1; /* the name must fit behind the directory */
        ssize_t n = readlink("/proc/self/exe", path, room);
        if (n <= 0 || (size_t)n >= room)
                return false; /* a full buffer: readlink may have cut the path off */
        path[n] = '\0';
        char *slash = strrchr(path, '/');
        if (!slash)
                return false;
        memcpy(slash + 1, name, n_name + 1);
        return access(path, F_OK) == 0;
}
