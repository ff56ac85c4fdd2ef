/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program behind holdfastd, and behind test programs that add controllers to it. */
struct hfd_extra;

/* Parses the command line and runs the sub-command. extra may be NULL. Returns the exit status: 2
 * for a usage error. */
int hfd_program_main(int argc, char **argv, const struct hfd_extra *extra);
