/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `holdfastd status` is a program of its own, holdfastd-status, because it is a client: it needs
 * libcurl, which loads some 30 libraries and takes 4 MB in each process. The server needs none of
 * them, unless it calls webhooks or the issuer of tokens (outbound.h). Thread: main.
 */

/*
 * Replaces the process by holdfastd-status with the same arguments. Runs the program that is in the
 * directory of holdfastd itself, as in a build directory, or else the installed one. Returns only
 * if neither can be run: prints one line to stderr, and returns 1 for the exit status.
 */
int hfd_status_exec(char **argv);
