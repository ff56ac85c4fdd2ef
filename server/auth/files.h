/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small files, the directories for them, and lock files. write_file.h writes files.
 *
 * Threads: any thread that serves no requests, because every function but hfd_secret_free blocks on
 * files. The functions share no state. Messages name the path and the cause.
 */
#include <stdbool.h>
#include <sys/types.h>

#include <holdfast/cancel.h>
#include <holdfast/clock.h>
#include <holdfast/error.h>

/* Creates the directory at path and its missing parents, with mode 0700. 0 also if it exists.
 * HF_E_INVALID: other users could replace the directory or its files (trusted_path.h). -errno. */
int hfd_make_dir(const char *path, struct hf_status *reterr_status);

/* Reads a whole file (at most 1 MiB) into malloc'ed, NUL-terminated text, which the caller frees.
 * If the text is secret, the caller overwrites it first (hfd_secret_free). HF_E_INVALID: other
 * users could replace the file (trusted_path.h), or it contains a NUL. HF_E_NOT_FOUND,
 * HF_E_TOO_LARGE or -errno. */
int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status);

/*
 * Opens a lock file and acquires an exclusive OFD lock on it. If create is true, a missing file is
 * created with mode 0600. Does not wait for the lock. The lock lasts until the caller closes the
 * descriptor, which is close-on-exec, or the process dies. 0, HF_E_BUSY (the lock is held),
 * HF_E_NOT_FOUND (no such file, and create is false) or -errno.
 */
int hfd_lock_file(const char *path, bool create, int *ret_fd, struct hf_status *reterr_status);

/*
 * Opens a lock file, which is created with mode 0600 if it is missing, and acquires an exclusive
 * lock on it. Waits until timeout has passed or token fires, so it is for locks that are held for a
 * short time. A free lock is acquired even if token has fired. 0: closing *ret_fd releases the
 * lock. HF_E_BUSY (timeout), HF_E_CANCELED (by token) or -errno.
 *
 * The lock excludes other processes, not other threads of this one. It ends when the process dies
 * or closes any descriptor of the file, so the process must not open the file a second time while
 * it holds the lock. If the holder is on another machine (NFS), its release is noticed only when
 * timeout has passed. Do not use hfd_lock_file on the same file: a waiter may miss the release of
 * an OFD lock.
 */
int hfd_await_lock(const char *path, hf_nsec timeout, struct hf_cancel *token, int *ret_fd,
                   struct hf_status *reterr_status);

/* Overwrites a text, for example a key, and frees it, so that the text does not remain in freed
 * memory. Accepts NULL. Does not block. */
void hfd_secret_free(char *text);
