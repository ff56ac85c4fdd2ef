/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process mark: a number that differs from each mark that an ancestor of this process had got
 * before it forked. State that must not be used after a fork records the mark, and compares it at
 * each use: in a child, inherited memory contains only such marks of ancestors.
 *
 * The process id is not such a number: if a process is the first of its pid namespace, and so is a
 * child that it makes with CLONE_NEWPID, both have the id 1. Only where the kernel does not support
 * MADV_WIPEONFORK, the mark is the process id nevertheless. A child that shares its parent's memory
 * (vfork) has its parent's mark; it must only call exec or _exit.
 *
 * Thread: any, for both functions.
 */
#include <stdint.h>

/* Must be called once before the first hf__process_mark; later calls do nothing. 0 or -errno. */
int hf__process_mark_init(void);
/* Returns the mark of the calling process, which is not 0. Usually without a system call. */
uint64_t hf__process_mark(void);
