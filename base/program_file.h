/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds files that belong to the running program. In a build directory they are beside the program,
 * so that it does not use an installed file of another version. Blocks on the file system. Thread:
 * any.
 */
#include <limits.h>
#include <stdbool.h>

/* Makes the path of the file `name` in the directory of the running program. False: there is no
 * such file, the directory is unknown, or its path is too long; path is then undefined. */
bool hf__program_file_find(const char *name, char path[PATH_MAX]);
