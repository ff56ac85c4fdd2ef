/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Another process that holds a lock file (leader/holder_lock.h) until the test kills it. */
#include <stdbool.h>
#include <sys/types.h>

#include "leader/holder_lock.h"

/*
 * Starts the process in a process group of its own, and returns when it has locked the file at
 * path. `process` receives its description (hf__holder_lock_process). with_child: the process also
 * forks a child, which does not exec. Call this while the test has one thread.
 */
pid_t lock_file_process_start(const char *path, bool with_child,
                              char process[HF__HOLDER_PROCESS_MAX]);
/* Kills the process and waits for it, but not for its child. */
void lock_file_process_kill(pid_t pid);
