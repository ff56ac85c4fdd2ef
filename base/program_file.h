/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds files that belong to the running program. In a build directory such files are beside the
 * program. Callers look there before they use an installed file, which may be of another version.
 * Blocks on the file system. Thread: any.
 */
#include <limits.h>
#include <stdbool.h>

/* Makes the path of the file `name` in the directory of the running program. name is not empty and
 * has no slash (asserted). False: there is no such file, the directory is unknown, or the path is
 * too long; path is then undefined. */
bool hf__program_file_find(const char *name, char path[PATH_MAX]);
