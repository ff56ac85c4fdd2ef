/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lock file that proves the death of a process on this host, so that its Lease can be taken
 * before it expires. A process locks a file of its own while it may lead, and describes itself and
 * the file in the Lease. A peer that finds the very file unlocked knows that the process is dead,
 * or that it has freed its electors: the lock is freed only then.
 *
 * A description counts only if it was made under the same boot of the same kernel, in the same pid
 * namespace and with the same root directory, and if the file of that name in the peer's own
 * directory, or the peer's own file, has the same device, inode and time of creation. Otherwise
 * nothing is known.
 *
 * Thread: any, but one at a time for one object. A function may block for a short time, on a local
 * file system.
 */
#include <stdbool.h>

#include <holdfast/error.h>

struct hf__holder_lock;

#define HF__HOLDER_PROCESS_MAX 320 /* bytes of a description and its NUL */

/*
 * Opens the file at path, which is created with mode 0600 if it is missing, and locks it until the
 * lock is freed. The file is never removed. HF_E_BUSY: a living process has the lock. HF_E_INVALID:
 * the file's name is not allowed (it is empty, has more than 100 bytes, begins with a dot, or has
 * another character than a letter, a digit or one of "._-"), or the path does not name a regular
 * file on a local file system that records times of creation. Or -errno, also for a directory and
 * for a symbolic link.
 */
int hf__holder_lock_new(const char *path, struct hf__holder_lock **ret_lock,
                        struct hf_status *reterr_status);
/* Unlocks and closes the file. Accepts NULL, returns NULL. */
struct hf__holder_lock *hf__holder_lock_free(struct hf__holder_lock *lock);
/* Describes this process and its file: visible ASCII and spaces. Borrowed. */
const char *hf__holder_lock_process(const struct hf__holder_lock *lock);

/* Whether the described process is certainly dead, or has freed its electors. Never waits for a
 * lock, and takes none. */
bool hf__holder_lock_is_dead(const struct hf__holder_lock *lock, const char *process);
/* A descriptor that becomes readable when the described process may have died; the caller closes
 * it. -1 = none. It only tells when to look again: it proves no death. */
int hf__holder_lock_pidfd(const struct hf__holder_lock *lock, const char *process);
