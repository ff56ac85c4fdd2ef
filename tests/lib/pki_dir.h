/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A temporary directory for certificates, and commands of the shell in it, such as openssl(1),
 * which is an independent implementation. Thread: one. */
#include <stdbool.h>

/* The directory; "" = it was not made. */
extern char pki_dir[64];

/* The setup and the teardown of a cmocka test. 0 or another number. */
int pki_dir_make(void **state);
int pki_dir_remove(void **state);

/* Runs a command of the shell in dir. True: exit status 0, and its output contains
 * `expected`. Otherwise prints the output. */
bool pki_dir_says(const char *dir, const char *line, const char *expected);
