/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opens files and directories that only root and the user of this process can change.
 *
 * A path is trusted if root or the effective user owns the file, every directory above it and every
 * symbolic link on the path, and if nobody else may write to any of them. Other users may write to
 * a directory above the file only if that directory has the sticky bit (/tmp): there they cannot
 * replace what they do not own. They may never write to the file or directory that the path names;
 * HFD_TRUSTED_PARENT is the exception. The permissions for the group count as those of others,
 * because they also limit access control lists.
 *
 * Threads: any. Blocks on files. Messages name the path and the fault, and the command that
 * corrects an owner or a mode.
 */
#include <holdfast/error.h>

enum hfd_trusted_kind {
        /* A file, opened for reading, without waiting for the writer of a FIFO. */
        HFD_TRUSTED_FILE,
        /* A directory, opened with O_PATH. */
        HFD_TRUSTED_DIRECTORY,
        /* A directory where the caller replaces a file, opened with O_PATH. Others may write to it
         * if it has the sticky bit, because that keeps them from replacing the file. */
        HFD_TRUSTED_PARENT,
        /* A directory, opened with O_PATH. The directory and its parents are made if they are
         * missing, with mode 0700. */
        HFD_TRUSTED_NEW_DIRECTORY,
        /* Checks whether HFD_TRUSTED_NEW_DIRECTORY would succeed, and makes nothing. *ret_fd is the
         * directory, or the last directory on the path that exists. */
        HFD_TRUSTED_FUTURE_DIRECTORY,
};

/* 0: the caller closes *ret_fd, which is close-on-exec. HF_E_INVALID: the path is not trusted.
 * HF_E_NOT_FOUND: there is no such file (HFD_TRUSTED_FILE only). -errno: all other errors. */
int hfd_trusted_open(const char *path, enum hfd_trusted_kind kind, int *ret_fd,
                     struct hf_status *reterr_status);
