/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A plain connection to the file of a SQLite store, for the commands that check, copy or shrink it
 * without a store. Unlike those of database.h, the functions neither create the file nor change its
 * mode or its journal mode. Private to this folder.
 *
 * Thread: one. Functions block for the disk.
 */
#include <stdint.h>

#include <holdfast/error.h>

#include "server/storage/sqlite/engine/sqlite_library.h"

enum hfd_sqlite_plain_mode {
        HFD_SQLITE_READ,      /* read only; others may use the file */
        HFD_SQLITE_EXCLUSIVE, /* reads and writes; keeps others out until it is closed */
};

/*
 * Opens an existing file. HF_E_INVALID: the file is damaged, is not a store, or has an unknown
 * schema, or SQLite cannot be loaded; the message says which. HF_E_NOT_FOUND, HF_E_BUSY (another
 * process uses the file, and one of the two wants it alone), another error of
 * hfd_sqlite_plain_fail, or another -errno. After an error *ret_db is NULL. The caller closes
 * *ret_db by hfd_sqlite_close, which accepts NULL.
 */
int hfd_sqlite_plain_open(const char *path, enum hfd_sqlite_plain_mode mode, sqlite3 **ret_db,
                          struct hf_status *reterr_status);
/* The error of the last call of SQLite: HF_E_INVALID (damaged, no database, or a table is missing),
 * HF_E_BUSY, -ENOSPC, -ENOMEM, -EROFS or -EIO. The message begins with the path. db NULL: SQLite
 * had no memory for the connection; -ENOMEM, and the message has no path. */
int hfd_sqlite_plain_fail(sqlite3 *db, const char *path, struct hf_status *reterr_status);
/* Runs statements without values. 0 or an error of _fail. */
int hfd_sqlite_plain_exec(sqlite3 *db, const char *path, const char *text,
                          struct hf_status *reterr_status);
/* Sets a number of the table meta. 0 or an error of _fail. */
int hfd_sqlite_plain_set(sqlite3 *db, const char *path, const char *name, int64_t value,
                         struct hf_status *reterr_status);
/* Begins a transaction that writes, and reads the revision of the newest write; 0 = nothing was
 * written yet. To undo the transaction, close the connection. 0 or an error of _fail. */
int hfd_sqlite_plain_begin(sqlite3 *db, const char *path, int64_t *ret_revision,
                           struct hf_status *reterr_status);
/* The first number that a query finds. It is 0 if the query finds NULL or no row. 0 or an error of
 * _fail. */
int hfd_sqlite_plain_number(sqlite3 *db, const char *path, const char *text, int64_t *ret_number,
                            struct hf_status *reterr_status);
