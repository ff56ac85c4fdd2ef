/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `holdfastd status` is a program of its own, holdfastd-status, because it is a client: it needs
 * libcurl, which loads some 30 libraries and takes 4 MB in each process. The server needs none of
 * them. Thread: main.
 */

/*
 * Replaces the process by holdfastd-status with the same arguments. The program is looked for
 * beside holdfastd itself, as in a build directory, and then where it is installed. Returns the
 * exit status 1, with one line to stderr, only if neither can be run.
 */
int hfd_status_exec(char **argv);
