/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Backups of the file of a SQLite store. A backup is a file of the same format, without a WAL
 * beside it.
 *
 * Both functions write a temporary file beside the target, check it (file_check.h), sync it, and
 * rename it to the target. The target must not exist, so nothing is replaced, and a file at the
 * target is complete. TARGET-wal, TARGET-shm and TARGET-journal must not exist either, because
 * SQLite would take them for the target's own. The target's mode is 0600. A process that is killed
 * leaves the temporary file, TARGET.XXXXXX, and perhaps TARGET.XXXXXX-journal. The functions block
 * for the disk. Thread: any.
 *
 * They return 0, HF_E_EXISTS (the target or a file beside it exists), HF_E_NOT_FOUND, HF_E_INVALID
 * (the source is damaged, is not a store, or has a later schema, or SQLite cannot be loaded),
 * HF_E_BUSY, HF_E_TOO_LARGE (the path or the prefix) or -errno; the message says what is at fault.
 */
#include <stdint.h>

#include <holdfast/error.h>

/* Copies the state of the file at one revision. Other processes may use the file meanwhile. */
int hfd_sqlite_backup(const char *path, const char *target, struct hf_status *reterr_status);

/*
 * Makes a store of a backup. The store has a history of its own (struct hfd_store_reply's
 * cluster_id) and a new epoch at `prefix`. Its revision is that of the backup plus
 * HFD_SQLITE_RESTORE_STEP, and is compacted. So a client that has seen the lost part of the history
 * must list again, and no revision or term of that part is given again. A backup that has keys, but
 * none of this prefix, is refused (HF_E_NOT_FOUND).
 */
#define HFD_SQLITE_RESTORE_STEP UINT64_C(10000000000)
int hfd_sqlite_restore(const char *backup, const char *target, const char *prefix,
                       struct hf_status *reterr_status);
