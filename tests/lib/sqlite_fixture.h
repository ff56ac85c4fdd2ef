/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A directory for the files of a test of the SQLite store, and access to them by SQLite itself.
 * Thread: one. */
#include <stdint.h>

/* For cmocka_run_group_tests: make the directory, and remove it with all files. */
int sqlite_fixture_setup(void **state);
int sqlite_fixture_teardown(void **state);
/* The path of a file in the directory, in one of four static buffers in rotation. */
const char *sqlite_fixture_path(const char *name);
/* Runs SQL on the file, as another program would. Returns the first number of the last row. */
int64_t sqlite_fixture_sql(const char *name, const char *text);
