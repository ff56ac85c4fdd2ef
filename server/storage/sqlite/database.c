/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the file of a SQLite store.
 *
 * Invariants:
 *  - a commit is on the disk when it returns: WAL with synchronous=FULL;
 *  - a file that is neither a store nor empty, or is a store of a later schema, is refused and not
 *    changed;
 *  - without SQLite, database.c opens only a file that it creates, and closes it before SQLite
 *    opens it: closing a descriptor drops all POSIX locks that the process has on that file.
 */
#include "server/storage/sqlite/database.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/storage/sqlite/engine/file_lock.h"
#include "server/storage/sqlite/engine/header.h"
#include "server/storage/sqlite/engine/wal_file.h"

/* How long a statement waits for SQLite's locks. The stores of holdfastd do not wait for each other
 * here, because they take turns by file_lock.h. A statement waits only in rare cases: for another
 * program that writes, or for the first connection after a crash, which reads the whole WAL with
 * all locks held. */
#define BUSY_TIMEOUT_MSEC 2000

/* BEGIN IMMEDIATE takes SQLite's write lock at once. A plain BEGIN would take it at the first write
 * and fail there, without waiting, if another process had committed since the first read. */
static const char *const statement_texts[HFD_SQL_N] = {
        [HFD_SQL_BEGIN_READ] = "BEGIN",
        [HFD_SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
        [HFD_SQL_COMMIT] = "COMMIT",
        [HFD_SQL_ROLLBACK] = "ROLLBACK",
        [HFD_SQL_NEWEST] = "SELECT max(id) FROM versions",
        [HFD_SQL_META_GET] = "SELECT value FROM meta WHERE name = ?1",
        [HFD_SQL_META_SET] = "INSERT INTO meta(name, value) VALUES(?1, ?2) "
                             "ON CONFLICT(name) DO UPDATE SET value = excluded.value",
        [HFD_SQL_CURRENT] = "SELECT id, created, value FROM versions WHERE key = ?1 "
                            "ORDER BY id DESC LIMIT 1",
        [HFD_SQL_CURRENT_ID] = "SELECT id, created, value IS NULL FROM versions WHERE key = ?1 "
                               "ORDER BY id DESC LIMIT 1",
        [HFD_SQL_INSERT] = "INSERT INTO versions(id, previous, created, key, value) "
                           "VALUES(?1, ?2, ?3, ?4, ?5)",
        [HFD_SQL_KEYS] = "SELECT key, id FROM versions WHERE key >= ?1 ORDER BY key, id",
        [HFD_SQL_KEYS_AFTER] = "SELECT key, id FROM versions WHERE key > ?1 ORDER BY key, id",
        [HFD_SQL_LAST_ID] = "SELECT id FROM versions WHERE key = ?1 AND id <= ?2 "
                            "ORDER BY id DESC LIMIT 1",
        [HFD_SQL_ROW] = "SELECT created, value FROM versions WHERE id = ?1",
        [HFD_SQL_ROW_CREATED] = "SELECT created, value IS NULL FROM versions WHERE id = ?1",
        [HFD_SQL_LOG] = "SELECT id, created, key, value FROM versions WHERE id >= ?1 "
                        "ORDER BY id LIMIT ?2",
        [HFD_SQL_SWEEP] = "SELECT id, previous, value IS NULL FROM versions "
                          "WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
        [HFD_SQL_DELETE] = "DELETE FROM versions WHERE id = ?1",
        [HFD_SQL_VACUUM] = "PRAGMA incremental_vacuum(64)",
        [HFD_SQL_FREE_PAGES] = "PRAGMA freelist_count",
        [HFD_SQL_CHANGES] = "PRAGMA data_version",
};

/* id is SQLite's rowid, which every entry of an index has at its end. So versions_by_key also has
 * the versions of a key in order, and it has everything that a walk over the keys needs. */
static const char schema_text[] =
        "CREATE TABLE versions(id INTEGER PRIMARY KEY, previous INTEGER NOT NULL, "
        "created INTEGER NOT NULL, key TEXT NOT NULL, value BLOB);"
        "CREATE INDEX versions_by_key ON versions(key);"
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;";

/* ---- errors ---- */

int hfd_sqlite_db_fail(struct hfd_sqlite_db *db, struct hf_status *reterr_status) {
        const char *text = db->handle ? hfd_sqlite.errmsg(db->handle) : "out of memory";
        int r;

        /* The lowest byte of a result code is its kind. */
        switch (db->handle ? hfd_sqlite.errcode(db->handle) & 0xff : SQLITE_NOMEM) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED: r = HF_E_UNAVAILABLE; break;
        case SQLITE_FULL: r = -ENOSPC; break;
        case SQLITE_NOMEM: r = -ENOMEM; break;
        case SQLITE_READONLY: r = -EROFS; break;
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT: r = -EBADMSG; break;
        case SQLITE_IOERR: /* SQLITE_FULL is for writes only; a sync may find the disk full, too */
                r = hfd_sqlite.system_errno(db->handle) == ENOSPC ? -ENOSPC : -EIO;
                break;
        default: r = -EIO;
        }
        return hf_fail(reterr_status, r, "the store's file: %s", text);
}

/* Reports why the file cannot be opened. Unlike hfd_sqlite_db_fail it names the file and, if that
 * is damaged, says what to do. */
static int fail_open(struct hfd_sqlite_db *db, const char *path, struct hf_status *reterr_status) {
        int code = db->handle ? hfd_sqlite.errcode(db->handle) & 0xff : SQLITE_NOMEM;
        struct hf_status status = {0};
        int r = hfd_sqlite_db_fail(db, &status);

        switch (code) {
        case SQLITE_NOTADB:
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is not a database of SQLite, or is damaged: move it away, and "
                               "make a new file from a backup with holdfastd store restore "
                               "(holdfastd "
                               "store check says what is wrong)",
                               path);
        case SQLITE_CORRUPT:
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is damaged: move it away, and make a new file from a backup "
                               "with "
                               "holdfastd store restore (holdfastd store check says what is wrong)",
                               path);
        case SQLITE_READONLY:
                return hf_fail(reterr_status, HF_E_INVALID, "%s cannot be written", path);
        case SQLITE_CANTOPEN:
                r = hfd_sqlite.system_errno(db->handle);
                return hf_fail(reterr_status, hfd_sqlite_open_result(r), "%s cannot be opened: %s",
                               path, strerror(r));
        default: return hf_fail(reterr_status, r, "%s cannot be used: %s", path, status.message);
        }
}

/* ---- statements ---- */

/* A statement is prepared when it is first needed, because each connection uses only a few. The
 * result of the reset is that of the last step, which was reported then. */
sqlite3_stmt *hfd_sqlite_db_statement(struct hfd_sqlite_db *db, enum hfd_sqlite_statement which) {
        sqlite3_stmt **statement = &db->statements[which];

        if (!*statement &&
            hfd_sqlite.prepare_v3(db->handle, statement_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                  statement, NULL) != SQLITE_OK)
                return NULL;
        (void)hfd_sqlite.reset(*statement);
        return *statement;
}

int hfd_sqlite_db_finish(struct hfd_sqlite_db *db, sqlite3_stmt *statement,
                         struct hf_status *reterr_status) {
        int step;

        do
                step = hfd_sqlite.step(statement);
        while (step == SQLITE_ROW);
        int r = step == SQLITE_DONE ? 0 : hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.reset(statement);
        return r;
}

int hfd_sqlite_db_run(struct hfd_sqlite_db *db, enum hfd_sqlite_statement which,
                      struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, which);

        return statement ? hfd_sqlite_db_finish(db, statement, reterr_status)
                         : hfd_sqlite_db_fail(db, reterr_status);
}

int hfd_sqlite_db_meta(struct hfd_sqlite_db *db, const char *name, uint64_t *ret_value,
                       struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_META_GET);
        int r = 0;

        *ret_value = 0;
        if (!statement)
                return hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.bind_text(statement, 1, name, -1, SQLITE_STATIC);
        switch (hfd_sqlite.step(statement)) {
        case SQLITE_ROW: *ret_value = (uint64_t)hfd_sqlite.column_int64(statement, 0); break;
        case SQLITE_DONE: break;
        default: r = hfd_sqlite_db_fail(db, reterr_status);
        }
        (void)hfd_sqlite.reset(statement);
        return r;
}

int hfd_sqlite_db_set_meta(struct hfd_sqlite_db *db, const char *name, uint64_t value,
                           struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_META_SET);

        if (!statement)
                return hfd_sqlite_db_fail(db, reterr_status);
        (void)hfd_sqlite.bind_text(statement, 1, name, -1, SQLITE_STATIC);
        (void)hfd_sqlite.bind_int64(statement, 2, (sqlite3_int64)value);
        return hfd_sqlite_db_finish(db, statement, reterr_status);
}

/* ---- opening ---- */

/* Makes an empty file unless there is one. SQLite would make it readable by others, as the umask
 * says. */
static int create_file(const char *path, struct hf_status *reterr_status) {
        int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd >= 0)
                return close(fd) == 0 ? 0
                                      : hf_fail(reterr_status, -errno, "%s cannot be created: %s",
                                                path, strerror(errno));
        if (errno == EEXIST)
                return 0;
        return hf_fail(reterr_status, hfd_sqlite_open_result(errno), "%s cannot be created: %s",
                       path, strerror(errno));
}

/* Returns a result code of SQLite. *ret_value stays as it is if the statement returns no row. */
static int read_pragma(struct hfd_sqlite_db *db, const char *text, int64_t *ret_value) {
        sqlite3_stmt *statement;
        int code = hfd_sqlite.prepare_v2(db->handle, text, -1, &statement, NULL);

        if (code != SQLITE_OK)
                return code;
        code = hfd_sqlite.step(statement);
        if (code == SQLITE_ROW)
                *ret_value = hfd_sqlite.column_int64(statement, 0);
        (void)hfd_sqlite.finalize(statement);
        return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int exec_text(struct hfd_sqlite_db *db, const char *text) {
        return hfd_sqlite.exec(db->handle, text, NULL, NULL, NULL);
}

/* Creates the tables of an empty file. Looks at the version inside the transaction, so that only
 * one of two processes creates them. After an error the transaction may still be open: the caller
 * closes the connection, which rolls the transaction back. */
static int create_schema(struct hfd_sqlite_db *db, const char *path,
                         struct hf_status *reterr_status) {
        int64_t version = 0;
        uint64_t history = 0;
        char text[128];

        if (getrandom(&history, sizeof history, 0) != (ssize_t)sizeof history)
                return hf_fail(reterr_status, -EIO,
                               "%s cannot be used: there are no random numbers", path);
        history = (history >> 1) | 1; /* not 0, and positive in SQLite */
        int code = exec_text(db, "BEGIN IMMEDIATE");
        if (code == SQLITE_OK)
                code = read_pragma(db, "PRAGMA user_version", &version);
        if (code == SQLITE_OK && version == 0) {
                (void)snprintf(text, sizeof text,
                               "PRAGMA application_id=%d; PRAGMA user_version=%d;"
                               "INSERT INTO meta VALUES('history', %lld)",
                               HFD_SQLITE_APPLICATION_ID, HFD_SQLITE_SCHEMA_VERSION,
                               (long long)history);
                code = exec_text(db, schema_text);
                if (code == SQLITE_OK)
                        code = exec_text(db, text);
        }
        if (code == SQLITE_OK)
                code = exec_text(db, "COMMIT");
        return code == SQLITE_OK ? 0 : fail_open(db, path, reterr_status);
}

/* Checks that the file is a store, or empty, before anything is written to it. */
static int check_owner(struct hfd_sqlite_db *db, const char *path, bool *ret_empty,
                       struct hf_status *reterr_status) {
        int64_t application = 0, version = 0, tables = 0;

        if (read_pragma(db, "PRAGMA application_id", &application) != SQLITE_OK ||
            read_pragma(db, "PRAGMA user_version", &version) != SQLITE_OK ||
            read_pragma(db, "SELECT count(*) FROM sqlite_master", &tables) != SQLITE_OK)
                return fail_open(db, path, reterr_status);
        *ret_empty = application == 0 && version == 0 && tables == 0;
        if (*ret_empty)
                return 0;
        return hfd_sqlite_check_numbers(application, version, path, reterr_status);
}

/* A file that may not be written is opened by SQLite all the same, for reading only: nothing but
 * the first write would fail. */
static int check_writable(struct hfd_sqlite_db *db, const char *path,
                          struct hf_status *reterr_status) {
        if (hfd_sqlite.db_readonly(db->handle, "main") != 1)
                return 0;
        int error = faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? EROFS : errno;
        return hf_fail(reterr_status, HF_E_INVALID, "%s cannot be written: %s", path,
                       strerror(error));
}

/* The pragmas hold for this connection only.
 *  - synchronous=FULL syncs the WAL at each commit; NORMAL, SQLite's advice for WAL, would lose the
 *    last commits when the machine fails, although clients have got their replies;
 *  - cache_size is in KiB if it is negative;
 *  - journal_size_limit cuts a WAL that one large write has made longer than 8 MiB;
 *  - foreign_keys: no table has any, but a build of SQLite may look for them by default. */
static int configure_connection(struct hfd_sqlite_db *db, const char *path, bool create,
                                struct hf_status *reterr_status) {
        bool empty = false;

        (void)hfd_sqlite.busy_timeout(db->handle, BUSY_TIMEOUT_MSEC);
        int r = check_owner(db, path, &empty, reterr_status);
        if (r == 0)
                r = check_writable(db, path, reterr_status);
        if (r != 0)
                return r;
        if (empty && !create)
                return hf_fail(reterr_status, HF_E_INVALID, "%s is empty", path);
        return exec_text(db,
                         "PRAGMA synchronous=FULL; PRAGMA cache_size=-1024;"
                         "PRAGMA journal_size_limit=8388608; PRAGMA foreign_keys=OFF") == SQLITE_OK
                       ? 0
                       : fail_open(db, path, reterr_status);
}

/* If SQLite cannot set the mode, it returns the name of the mode that stays. */
static int set_wal(struct hfd_sqlite_db *db, const char *path, struct hf_status *reterr_status) {
        sqlite3_stmt *statement;
        bool is_wal = false;

        if (hfd_sqlite.prepare_v2(db->handle, "PRAGMA journal_mode=WAL", -1, &statement, NULL) !=
            SQLITE_OK)
                return fail_open(db, path, reterr_status);
        int step = hfd_sqlite.step(statement);
        if (step == SQLITE_ROW)
                is_wal = strcmp((const char *)hfd_sqlite.column_text(statement, 0), "wal") == 0;
        (void)hfd_sqlite.finalize(statement);
        if (step != SQLITE_ROW)
                return fail_open(db, path, reterr_status);
        return is_wal ? 0
                      : hf_fail(reterr_status, HF_E_INVALID,
                                "%s is on a file system without shared memory, which "
                                "SQLite's WAL needs: use a local disk, or etcd",
                                path);
}

int hfd_sqlite_db_fill(struct hfd_sqlite_db *db, const char *path,
                       struct hf_status *reterr_status) {
        bool empty = false;
        int r = check_owner(db, path, &empty, reterr_status);

        /* The vacuum mode is part of the file, and must be set before its first table. */
        if (r == 0 && empty && exec_text(db, "PRAGMA auto_vacuum=INCREMENTAL") != SQLITE_OK)
                r = fail_open(db, path, reterr_status);
        if (r == 0)
                r = set_wal(db, path, reterr_status);
        if (r == 0 && empty)
                r = create_schema(db, path, reterr_status);
        return r;
}

/* A path that begins with '/' or "./" is never one of SQLite's special names. */
static int open_with(const char *path, int flags, const char *vfs, sqlite3 **ret_db) {
        char with_dot[PATH_MAX + 2]; /* "./" and the path */

        if (path[0] != '/') {
                if (snprintf(with_dot, sizeof with_dot, "./%s", path) >= (int)sizeof with_dot)
                        return SQLITE_CANTOPEN;
                path = with_dot;
        }
        return hfd_sqlite.open_v2(path, ret_db, flags, vfs);
}

int hfd_sqlite_open_file(const char *path, int flags, sqlite3 **ret_db) {
        return open_with(path, flags, NULL, ret_db);
}

int hfd_sqlite_db_open(struct hfd_sqlite_db *db, const char *path, bool create,
                       struct hf_status *reterr_status) {
        int r = hfd_sqlite_check_place(path, reterr_status);

        *db = (struct hfd_sqlite_db){0};
        if (r == 0)
                r = hfd_sqlite_load(reterr_status);
        if (r != 0)
                return r;
        r = create ? create_file(path, reterr_status) : 0;
        if (r != 0)
                return r;
        if (hfd_sqlite_wal_register() != SQLITE_OK ||
            open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, HFD_SQLITE_VFS,
                      &db->handle) != SQLITE_OK)
                r = fail_open(db, path, reterr_status);
        else
                r = configure_connection(db, path, create, reterr_status);
        if (r != 0) {
                hfd_sqlite_keep_filled_wal(db->handle);
                hfd_sqlite_db_close(db);
        }
        return r;
}

void hfd_sqlite_db_close(struct hfd_sqlite_db *db) {
        hfd_heads_clear(&db->heads);
        for (int i = 0; i < HFD_SQL_N; i++)
                if (db->statements[i])
                        (void)hfd_sqlite.finalize(db->statements[i]);
        int code = hfd_sqlite_close(db->handle);
        assert(code == SQLITE_OK); /* no statement is left */
        (void)code;
        *db = (struct hfd_sqlite_db){0};
}
