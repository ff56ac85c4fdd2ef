/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection to the file of a SQLite store: opens and checks the file, creates the schema, and
 * keeps the prepared statements. Private to server/storage/sqlite.
 *
 * The schema:
 *
 *      versions(id, previous, created, key, value)   one row for each write of a key; never updated
 *      meta(name, value)                             "history", a number that identifies the
 *                                                    history; "compacted", a revision; "swept", an
 *                                                    id: hfd_sqlite_sweep has seen rows up to it
 *
 * id is revision * HFD_TXN_MAX + the number of the write within its transaction, so that rows are
 * in the order of the writes. previous is the id of the key's previous row, 0 if there was none.
 * created is the create revision; in a deletion, its own revision. A value of NULL is a deletion.
 * The index of the keys contains the ids, so a key's versions are found in order.
 *
 * Thread: a connection belongs to one thread at a time. Functions block for the disk, and up to
 * BUSY_TIMEOUT_MSEC for other processes that use the file.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

#include "server/storage/heads.h"
#include "server/storage/sqlite/engine/sqlite_library.h"

struct hfd_sqlite_kvs;

enum hfd_sqlite_statement {
        HFD_SQL_BEGIN_READ,
        HFD_SQL_BEGIN_WRITE,
        HFD_SQL_COMMIT,
        HFD_SQL_ROLLBACK,
        HFD_SQL_NEWEST,      /* -> id */
        HFD_SQL_META_GET,    /* name -> value */
        HFD_SQL_META_SET,    /* name, value */
        HFD_SQL_CURRENT,     /* key -> id, created, value */
        HFD_SQL_CURRENT_ID,  /* key -> id, created, whether it is a deletion */
        HFD_SQL_INSERT,      /* id, previous, created, key, value */
        HFD_SQL_KEYS,        /* first key -> key, id, in order */
        HFD_SQL_KEYS_AFTER,  /* key -> key, id of all later keys, in order */
        HFD_SQL_LAST_ID,     /* key, id -> the key's last id that is not above id */
        HFD_SQL_ROW,         /* id -> created, value */
        HFD_SQL_ROW_CREATED, /* id -> created, whether it is a deletion */
        HFD_SQL_LOG,         /* first id, limit -> id, created, key, value, in order */
        HFD_SQL_SWEEP,       /* after id, to id, limit -> id, previous, whether it is a deletion */
        HFD_SQL_DELETE,      /* id */
        HFD_SQL_VACUUM,      /* gives some free pages back to the file system */
        HFD_SQL_FREE_PAGES,  /* -> the number of free pages */
        HFD_SQL_CHANGES,     /* -> a number that changes when another connection commits */
        HFD_SQL_N,
};

struct hfd_sqlite_db {
        sqlite3 *handle;
        sqlite3_stmt *statements[HFD_SQL_N]; /* prepared when first used */
        struct hfd_heads heads;              /* used by the writer's connection only */
        /* Borrowed: where writes are noted for the watcher. NULL: they are not noted, or memory ran
         * out for one of them. */
        struct hfd_sqlite_kvs *written;
};

/* As sqlite3_open_v2, but path is always that of a file: SQLite has a meaning of its own for names
 * such as ":memory:" and "file:x". SQLite must be loaded. */
int hfd_sqlite_open_file(const char *path, int flags, sqlite3 **ret_db);
/*
 * Opens the file, and checks that it is a store before anything is written to it. With `create`,
 * makes an empty file (mode 0600) if there is none, and accepts a file that is empty; the caller
 * then calls hfd_sqlite_db_fill. 0, HF_E_INVALID (it cannot be used as a store: the message says
 * why), HF_E_UNAVAILABLE (locked by another process), -ENOSPC, -ENOMEM or another -errno. After an
 * error there is nothing to close.
 */
int hfd_sqlite_db_open(struct hfd_sqlite_db *db, const char *path, bool create,
                       struct hf_status *reterr_status);
/* Sets the journal mode of the file to WAL (a backup has another mode), and makes a store of an
 * empty file. The caller holds the lock of the stores that share the file (file_lock.h). Errors as
 * hfd_sqlite_db_open. */
int hfd_sqlite_db_fill(struct hfd_sqlite_db *db, const char *path, struct hf_status *reterr_status);
/* Accepts a zeroed struct that was not opened. */
void hfd_sqlite_db_close(struct hfd_sqlite_db *db);

/* The statement, reset. It may have the values of its last use: bind all of them. NULL: it could
 * not be prepared; hfd_sqlite_db_fail says why. */
sqlite3_stmt *hfd_sqlite_db_statement(struct hfd_sqlite_db *db, enum hfd_sqlite_statement which);
/* Runs a statement without values to its end. 0 or an error as hfd_sqlite_db_fail returns it. */
int hfd_sqlite_db_run(struct hfd_sqlite_db *db, enum hfd_sqlite_statement which,
                      struct hf_status *reterr_status);
/* Runs a statement whose values are bound, which returns no row. The same results. */
int hfd_sqlite_db_finish(struct hfd_sqlite_db *db, sqlite3_stmt *statement,
                         struct hf_status *reterr_status);
/*
 * The error of the last call, as store.h names it: HF_E_UNAVAILABLE (locked by another process),
 * -ENOSPC, -ENOMEM, -EROFS, -EBADMSG (damaged), or -EIO for anything else; the message has SQLite's
 * text. The transaction that was begun, if any, must be rolled back.
 */
int hfd_sqlite_db_fail(struct hfd_sqlite_db *db, struct hf_status *reterr_status);

/* Reads the meta value `name`; *ret_value is 0 if there is none. 0 or an error of
 * hfd_sqlite_db_fail. */
int hfd_sqlite_db_meta(struct hfd_sqlite_db *db, const char *name, uint64_t *ret_value,
                       struct hf_status *reterr_status);
int hfd_sqlite_db_set_meta(struct hfd_sqlite_db *db, const char *name, uint64_t value,
                           struct hf_status *reterr_status);
