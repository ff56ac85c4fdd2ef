/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program holdfastd: the command line and its sub-commands. Test programs run the same code
 * with additional controllers. */
#include "server/extra.h"

/*
 * Parses the command line and runs the sub-command. extra may be NULL; it is borrowed until the
 * function returns. Call from main, before there are other threads: it changes settings of the
 * whole process, for example it ignores SIGPIPE. Returns the exit status; 2 = a mistake that only
 * the user can correct (program.c). `status` replaces the process by another program.
 */
int hfd_program_main(int argc, char **argv, const struct hfd_extra *extra);
