/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small files that must be whole or absent, and the directories they lie in. Blocks on files: for
 * start-up and reload only. Reading is hfd_read_file (pki.h). Messages name the path and the cause.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/cancel.h>
#include <holdfast/clock.h>
#include <holdfast/error.h>

/* Makes path and its parents where they are missing, with mode 0700. 0 or -errno. */
int hfd_make_dir(const char *path, struct hf_status *reterr_status);

/* Writes a temporary file beside path, syncs it, renames it to path and syncs the directory. 0 or
 * -errno. */
int hfd_write_file(const char *path, const char *text, mode_t mode,
                   struct hf_status *reterr_status);

/*
 * Opens (creating it when create is set, mode 0600) a lock file and takes an exclusive OFD lock on
 * it, if nobody has it. The lock lasts until the descriptor, which is close-on-exec, is closed:
 * death frees it. Returns 0, HF_E_BUSY, HF_E_NOT_FOUND (no such file and create not set), -errno.
 */
int hfd_lock_file(const char *path, bool create, int *ret_fd, struct hf_status *reterr_status);

/*
 * Creates and opens a lock file (mode 0600) and takes an exclusive lock on it, for which it waits
 * until timeout has passed: for work that is over soon. It locks processes out, not threads: the
 * lock is the process's, ends with the descriptor's close or with death, and no other descriptor of
 * the file may be closed meanwhile. Where the holder is on another machine (NFS) its release is not
 * told of, and seen when timeout has passed. Not to be mixed with hfd_lock_file on one file.
 *
 * The wait ends as soon as token fires; a lock that is free is taken all the same. Returns 0,
 * HF_E_BUSY (timeout), HF_E_CANCELED, -errno.
 */
int hfd_await_lock(const char *path, hf_nsec timeout, struct hf_cancel *token, int *ret_fd,
                   struct hf_status *reterr_status);
