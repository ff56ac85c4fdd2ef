/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main of holdfastd.
 *
 * Invariant: it has no code of its own. Everything else is in a library, so that test programs can
 * run the whole server, too.
 */
#include <stddef.h>

#include "server/main/program.h"

int main(int argc, char **argv) { return hfd_program_main(argc, argv, NULL); }
