/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sub-command `holdfastd release`: frees the Lease of an instance that has died. */
struct hfd_config;

/*
 * Releases what the run file of config->instance names, unless the instance is alive. Prints what
 * it did. Blocks for up to a few store deadlines (5 s each). Returns the exit status: 0 released,
 * nothing to release, or the Lease belongs to another process by now; 1 otherwise.
 */
int hfd_release_main(const struct hfd_config *config);
