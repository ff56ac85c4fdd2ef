/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes small files as a whole. Threads: any thread that serves no requests, because every
 * function blocks on files. The functions share no state. Messages name the path and the cause.
 */
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/error.h>

/* Replaces the file as a whole: writes a temporary file next to path, syncs it, renames it to path
 * and syncs the directory. The new file has the given mode before it has its text. Does not check
 * who may write to the directory. 0, or -errno: then either the old file or the new one is at path.
 */
int hfd_write_file(const char *path, const char *text, mode_t mode,
                   struct hf_status *reterr_status);
/* The same, and gives the new file to this owner and group before it has its text. If this process
 * may not change the owner, it changes the group alone, if it may. Neither failure is an error. */
int hfd_write_file_of(const char *path, const char *text, mode_t mode, uid_t owner, gid_t group,
                      struct hf_status *reterr_status);

struct hfd_new_file {
        const char *path, *text;
        mode_t mode;
};
/* Writes several files of one directory as hfd_write_file does. They are synced together, then
 * renamed in the order of the list, and the directory is synced once. 0, or -errno: some files at
 * the beginning of the list, or all, may have been replaced. */
int hfd_write_files(const struct hfd_new_file *files, size_t n, struct hf_status *reterr_status);
