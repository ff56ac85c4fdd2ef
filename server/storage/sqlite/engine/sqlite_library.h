/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SQLite. It is not linked, but loaded when a file is opened, so that a server over etcd does not
 * have it in its memory: with libm, which only SQLite needs, it takes 0.5 MB. Private to
 * server/storage/sqlite.
 */
#include <sqlite3.h>

struct hf_status;

/* The functions, without "sqlite3_" in their names. They are documented with SQLite. */
struct hfd_sqlite_library {
        int (*bind_blob)(sqlite3_stmt *statement, int i, const void *value, int n,
                         void (*done)(void *));
        int (*bind_blob64)(sqlite3_stmt *statement, int i, const void *value, sqlite3_uint64 n,
                           void (*done)(void *));
        int (*bind_int64)(sqlite3_stmt *statement, int i, sqlite3_int64 value);
        int (*bind_null)(sqlite3_stmt *statement, int i);
        int (*bind_text)(sqlite3_stmt *statement, int i, const char *text, int n,
                         void (*done)(void *));
        int (*busy_timeout)(sqlite3 *db, int msec);
        int (*close)(sqlite3 *db);
        const void *(*column_blob)(sqlite3_stmt *statement, int i);
        int (*column_bytes)(sqlite3_stmt *statement, int i);
        int (*column_int)(sqlite3_stmt *statement, int i);
        sqlite3_int64 (*column_int64)(sqlite3_stmt *statement, int i);
        const unsigned char *(*column_text)(sqlite3_stmt *statement, int i);
        int (*column_type)(sqlite3_stmt *statement, int i);
        int (*config)(int option, ...);
        int (*db_config)(sqlite3 *db, int option, ...);
        sqlite3_filename (*db_filename)(sqlite3 *db, const char *name);
        int (*db_readonly)(sqlite3 *db, const char *name);
        int (*db_release_memory)(sqlite3 *db);
        int (*errcode)(sqlite3 *db);
        const char *(*errmsg)(sqlite3 *db);
        int (*exec)(sqlite3 *db, const char *text, int (*row)(void *, int, char **, char **),
                    void *ctx, char **reterr_message);
        int (*file_control)(sqlite3 *db, const char *name, int op, void *arg);
        int (*finalize)(sqlite3_stmt *statement);
        int (*get_autocommit)(sqlite3 *db);
        int (*open_v2)(const char *path, sqlite3 **ret_db, int flags, const char *vfs);
        int (*prepare_v2)(sqlite3 *db, const char *text, int n, sqlite3_stmt **ret_statement,
                          const char **ret_tail);
        int (*prepare_v3)(sqlite3 *db, const char *text, int n, unsigned flags,
                          sqlite3_stmt **ret_statement, const char **ret_tail);
        int (*reset)(sqlite3_stmt *statement);
        int (*step)(sqlite3_stmt *statement);
        int (*system_errno)(sqlite3 *db);
        sqlite3_int64 (*total_changes64)(sqlite3 *db);
        sqlite3_vfs *(*vfs_find)(const char *name);
        int (*vfs_register)(sqlite3_vfs *vfs, int make_default);
};

/* Usable after hfd_sqlite_load has returned 0. Does not change after that. */
extern struct hfd_sqlite_library hfd_sqlite;

/* Loads SQLite, if it is not loaded yet; the process keeps it. 0, or HF_E_INVALID with a message.
 * Thread: any. */
int hfd_sqlite_load(struct hf_status *reterr_status);
/* The WAL stays as it is when db is closed, even if no other connection is left. Accepts NULL. */
void hfd_sqlite_keep_wal(sqlite3 *db);
/* For a file that is refused: the same if the WAL has contents, or cannot be looked at. SQLite
 * makes an empty WAL and the file of its shared memory when it reads a file in WAL mode; the close
 * removes both, unless db is read-only. Accepts NULL. */
void hfd_sqlite_keep_filled_wal(sqlite3 *db);
/* As sqlite3_close, but accepts NULL also if SQLite is not loaded. */
int hfd_sqlite_close(sqlite3 *db);
