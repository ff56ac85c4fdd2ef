/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sub-command `holdfastd release`: frees the Lease of an instance that has died. Thread:
 * main. */
#include <stdbool.h>

struct hfd_config;

/*
 * Releases what the run file of config->instance names, unless the instance is alive. Prints the
 * result. Blocks on files, and up to 5 s for each Lease; there are two during a migration from one
 * to the other. Returns the exit status: 0 = released, nothing to release, or the Lease no longer
 * has that identity and term; 2 = a flag of the store, or a file that it names, must be corrected,
 * or the store is in memory; 1 = another failure.
 */
int hfd_release_main(const struct hfd_config *config);
/* Whether systemd runs this process after the server has ended with status 2, for a mistake in its
 * flags or files. The server has reported the mistake, so this process need not report it again. */
bool hfd_release_after_mistake(void);
