/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes a file that appears under its name only when it is complete and on the disk, and that
 * replaces nothing. The caller writes a temporary file beside it, TARGET.XXXXXX, with mode 0600.
 *
 * Thread: any. The functions block for the disk. Messages name the path, unless it is too long.
 */
#include <holdfast/error.h>

/* Makes an empty temporary file, and writes its path to temporary, which has PATH_MAX bytes. The
 * caller publishes or unlinks the file. 0, HF_E_EXISTS (the target exists), HF_E_TOO_LARGE (the
 * path) or -errno. */
int hfd_new_file_begin(const char *target, char *temporary, struct hf_status *reterr_status);
/* Syncs the temporary file, renames it to the target, and syncs the directory. 0, HF_E_EXISTS or
 * -errno. After an error the temporary file still exists, unless only the sync of the directory has
 * failed: then the target exists. */
int hfd_new_file_publish(const char *temporary, const char *target,
                         struct hf_status *reterr_status);
/* 0: there is nothing at this path. HF_E_EXISTS: there is, and the message says what to do. Or
 * -errno. */
int hfd_new_file_check_absent(const char *path, struct hf_status *reterr_status);
