/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Another process that has a lock file (leader/holder_lock.h), until the test kills it. */
#include <stdbool.h>
#include <sys/types.h>

#include "leader/holder_lock.h"

/*
 * Starts it, in a process group of its own, and returns when it has locked the file at path.
 * process: its description. with_child: it has a child too, by a fork without an exec. Call it
 * while the test has one thread.
 */
pid_t lock_file_process_start(const char *path, bool with_child,
                              char process[HF__HOLDER_PROCESS_MAX]);
void lock_file_process_kill(pid_t pid); /* and waits for it; not for its child */
