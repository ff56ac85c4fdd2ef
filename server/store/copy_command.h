/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sub-command `holdfastd store copy`: copies the keys below --etcd-prefix to an empty store.
 * Thread: main. */
struct hfd_config;

/* Prints the progress and the result to stderr. Blocks. Returns the exit status: 0 = the target is
 * complete; 2 = a mistake on the command line; 1 = anything else. */
int hfd_store_copy_main(const struct hfd_config *config);
