/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small files that are written as a whole, the directories for them, and lock files.
 *
 * Threads: any that serves no requests, because every function blocks on files; there is no lock.
 * Messages name the path and the cause.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/cancel.h>
#include <holdfast/clock.h>
#include <holdfast/error.h>

/* Creates the directory at path and its missing parents, with mode 0700. HF_E_INVALID: other users
 * could replace the directory or its files (trusted_path.h). -errno. */
int hfd_make_dir(const char *path, struct hf_status *reterr_status);

/* Reads a whole file (at most 1 MiB) into malloc'ed, NUL-terminated text, which the caller frees;
 * if it is secret, the caller overwrites it first. HF_E_INVALID: other users could replace the file
 * (trusted_path.h), or it contains a NUL. HF_E_NOT_FOUND, HF_E_TOO_LARGE or -errno. */
int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status);

/* Replaces the file as a whole: writes a temporary file next to path, syncs it, renames it to path
 * and syncs the directory. The new file has the given mode before it has its text. 0 or -errno:
 * then either the old file or the new one is at path. */
int hfd_write_file(const char *path, const char *text, mode_t mode,
                   struct hf_status *reterr_status);
/* The same, and gives the new file to this owner and group before it has its text, as far as this
 * process may do so. */
int hfd_write_file_of(const char *path, const char *text, mode_t mode, uid_t owner, gid_t group,
                      struct hf_status *reterr_status);

/*
 * Opens a lock file and acquires an exclusive OFD lock on it. If create is true, a missing file is
 * created with mode 0600. Does not wait. The lock lasts until the descriptor, which is
 * close-on-exec, is closed; the death of the process releases it. 0, HF_E_BUSY (it is held),
 * HF_E_NOT_FOUND (no such file, and create is false) or -errno.
 */
int hfd_lock_file(const char *path, bool create, int *ret_fd, struct hf_status *reterr_status);

/*
 * Opens a lock file, which is created with mode 0600 if it is missing, and acquires an exclusive
 * lock on it. Waits until timeout has passed or token fires, so it is for locks that are held for a
 * short time. A free lock is acquired even if token has fired. 0, HF_E_BUSY (timeout),
 * HF_E_CANCELED (by token) or -errno.
 *
 * The lock excludes other processes, not other threads of this one. It ends when the process dies
 * or closes any descriptor of the file, so the process must not open the file a second time while
 * it holds the lock. If the holder is on another machine (NFS), its release is noticed only when
 * timeout has passed. Do not use hfd_lock_file on the same file: a waiter may miss the release of
 * an OFD lock.
 */
int hfd_await_lock(const char *path, hf_nsec timeout, struct hf_cancel *token, int *ret_fd,
                   struct hf_status *reterr_status);

/* Overwrites the text, for example a key, before it frees it, so that it does not remain in freed
 * memory. Accepts NULL. */
void hfd_secret_free(char *text);
