/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to the file of a store, for commands that run no store: backup, restore, check and
 * compact. The statements are texts, because each runs once.
 *
 * Invariant: a connection of HFD_SQLITE_READ cannot write. So it does not copy the WAL into the
 * file when it is closed either, and cannot disturb an instance that does so.
 */
#include "server/storage/sqlite/files/plain.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/engine/header.h"
#include "server/storage/store.h"

/* How long a statement waits for locks of other processes. It is longer than in a server
 * (database.c), because no client waits for a command. */
#define BUSY_TIMEOUT_MSEC 5000

int hfd_sqlite_plain_fail(sqlite3 *db, const char *path, struct hf_status *reterr_status) {
        int r;

        if (!db)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        switch (hfd_sqlite.errcode(db) & 0xff) {
        case SQLITE_NOTADB:
        case SQLITE_ERROR: /* a table is missing */
        case SQLITE_CORRUPT: r = HF_E_INVALID; break;
        case SQLITE_BUSY:
        case SQLITE_LOCKED: r = HF_E_BUSY; break;
        case SQLITE_FULL: r = -ENOSPC; break;
        case SQLITE_NOMEM: r = -ENOMEM; break;
        case SQLITE_READONLY: r = -EROFS; break;
        default: r = hfd_sqlite.system_errno(db) == ENOSPC ? -ENOSPC : -EIO;
        }
        return hf_fail(reterr_status, r, "%s: %s", path, hfd_sqlite.errmsg(db));
}

int hfd_sqlite_plain_exec(sqlite3 *db, const char *path, const char *text,
                          struct hf_status *reterr_status) {
        assert(db && text);
        return hfd_sqlite.exec(db, text, NULL, NULL, NULL) == SQLITE_OK
                       ? 0
                       : hfd_sqlite_plain_fail(db, path, reterr_status);
}

int hfd_sqlite_plain_number(sqlite3 *db, const char *path, const char *text, int64_t *ret_number,
                            struct hf_status *reterr_status) {
        sqlite3_stmt *statement = NULL;
        int step, r = 0;

        assert(db && text);
        *ret_number = 0;
        if (hfd_sqlite.prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK)
                return hfd_sqlite_plain_fail(db, path, reterr_status);
        step = hfd_sqlite.step(statement);
        if (step == SQLITE_ROW)
                *ret_number = hfd_sqlite.column_int64(statement, 0);
        else if (step != SQLITE_DONE)
                r = hfd_sqlite_plain_fail(db, path, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        return r;
}

int hfd_sqlite_plain_set(sqlite3 *db, const char *path, const char *name, int64_t value,
                         struct hf_status *reterr_status) {
        char text[128];

        /* name is one of our own words, so it needs no quoting. */
        (void)snprintf(text, sizeof text, "INSERT OR REPLACE INTO meta VALUES('%s', %" PRId64 ")",
                       name, value);
        return hfd_sqlite_plain_exec(db, path, text, reterr_status);
}

int hfd_sqlite_plain_begin(sqlite3 *db, const char *path, int64_t *ret_revision,
                           struct hf_status *reterr_status) {
        int64_t newest = 0;
        int r = hfd_sqlite_plain_exec(db, path, "BEGIN IMMEDIATE", reterr_status);

        assert(ret_revision);
        if (r == 0)
                r = hfd_sqlite_plain_number(db, path, "SELECT max(id) FROM versions", &newest,
                                            reterr_status);
        *ret_revision = newest / HFD_TXN_MAX;
        return r;
}

/* Checks that the file is a store of a schema that this program knows. */
static int check_owner(sqlite3 *db, const char *path, struct hf_status *reterr_status) {
        int64_t application, version = 0;
        int r = hfd_sqlite_plain_number(db, path, "PRAGMA application_id", &application,
                                        reterr_status);

        if (r == 0)
                r = hfd_sqlite_plain_number(db, path, "PRAGMA user_version", &version,
                                            reterr_status);
        if (r != 0)
                return r;
        if (application == 0) /* perhaps a file without contents */
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not a store of holdfastd", path);
        return hfd_sqlite_check_numbers(application, version, path, reterr_status);
}

int hfd_sqlite_plain_open(const char *path, enum hfd_sqlite_plain_mode mode, sqlite3 **ret_db,
                          struct hf_status *reterr_status) {
        int flags = mode == HFD_SQLITE_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
        int r = 0;

        *ret_db = NULL;
        if (access(path, F_OK) != 0)
                return hf_fail(reterr_status, errno == ENOENT ? HF_E_NOT_FOUND : -errno, "%s: %s",
                               path, strerror(errno));
        r = hfd_sqlite_load(reterr_status);
        if (r != 0)
                return r;
        if (hfd_sqlite_open_file(path, flags | SQLITE_OPEN_NOMUTEX, ret_db) != SQLITE_OK)
                r = hfd_sqlite_plain_fail(*ret_db, path, reterr_status);
        /* The first read takes the lock, so the locking mode must be set before it. */
        if (r == 0 && mode == HFD_SQLITE_EXCLUSIVE)
                r = hfd_sqlite_plain_exec(*ret_db, path,
                                          "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL",
                                          reterr_status);
        if (r == 0)
                (void)hfd_sqlite.busy_timeout(*ret_db, BUSY_TIMEOUT_MSEC);
        if (r == 0)
                r = check_owner(*ret_db, path, reterr_status);
        if (r != 0) {
                hfd_sqlite_keep_filled_wal(*ret_db);
                (void)hfd_sqlite_close(*ret_db);
                *ret_db = NULL;
        }
        return r;
}
