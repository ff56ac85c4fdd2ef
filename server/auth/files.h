/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small files that are written as a whole, the directories for them, and lock files.
 *
 * Threads: any, no lock in this process. Every function blocks on files: for start-up and reload
 * only. Messages name the path and the cause.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/cancel.h>
#include <holdfast/clock.h>
#include <holdfast/error.h>

/* Creates the directory path and its missing parents, with mode 0700. 0 or -errno. */
int hfd_make_dir(const char *path, struct hf_status *reterr_status);

/* Reads a whole file (at most 1 MiB) into malloc'ed, NUL-terminated text, which the caller frees.
 * HF_E_NOT_FOUND, HF_E_TOO_LARGE or -errno. */
int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status);

/* Replaces the file as a whole: writes a temporary file next to path, syncs it, renames it to path
 * and syncs the directory. A file at path never has a mode other than the given one. 0 or
 * -errno. */
int hfd_write_file(const char *path, const char *text, mode_t mode,
                   struct hf_status *reterr_status);

/*
 * Opens a lock file (create: creates it with mode 0600 if it is missing) and takes an exclusive OFD
 * lock on it. Does not wait. The lock lasts until the descriptor, which is close-on-exec, is
 * closed; the death of the process releases it. 0, HF_E_BUSY (it is held), HF_E_NOT_FOUND (no such
 * file, and create is false) or -errno.
 */
int hfd_lock_file(const char *path, bool create, int *ret_fd, struct hf_status *reterr_status);

/*
 * Opens a lock file (created with mode 0600 if it is missing) and takes an exclusive lock on it.
 * Waits for the lock until timeout has passed or token fires: for locks that are held for a short
 * time. A lock that is free is taken even if token has fired. 0, HF_E_BUSY (timeout), HF_E_CANCELED
 * (by token) or -errno.
 *
 * The lock excludes other processes, not other threads of this one. It ends when the process closes
 * any descriptor of the file or dies, so no other descriptor of the file may be opened meanwhile.
 * If the holder is on another machine (NFS), its release is noticed only when timeout has passed.
 * Do not mix with hfd_lock_file on one file.
 */
int hfd_await_lock(const char *path, hf_nsec timeout, struct hf_cancel *token, int *ret_fd,
                   struct hf_status *reterr_status);
