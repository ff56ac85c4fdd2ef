/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and restores backups.
 *
 * Invariants:
 *  - the target appears under its name only when it is complete, checked and on the disk;
 *  - the source is opened for reading only, so nothing of it changes.
 */
#include "server/storage/sqlite/files/backup.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/storage/epoch.h"
#include "server/storage/key_prefixes.h"
#include "server/storage/keys.h"
#include "server/storage/new_file.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/files/plain.h"
#include "server/storage/store.h"

/* ---- the target ---- */

/* Refuses a target with files beside it that SQLite would take for the target's own. */
static int check_beside(const char *target, struct hf_status *reterr_status) {
        static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
        char path[PATH_MAX];
        int r = 0;

        for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && r == 0; i++) {
                int n = snprintf(path, sizeof path, "%s%s", target, suffixes[i]);

                if (n < 0 || (size_t)n >= sizeof path)
                        return hf_fail(reterr_status, HF_E_TOO_LARGE, "the path is too long");
                r = hfd_new_file_check_absent(path, reterr_status);
        }
        return r;
}

static const char *plural_s(size_t n) { return n == 1 ? "" : "s"; }

static int check_copy(const char *path, struct hf_status *reterr_status) {
        struct hfd_sqlite_faults faults = {0};
        int r = hfd_sqlite_check(path, &faults, reterr_status);

        if (r == 0 && faults.n > 0)
                r = hf_fail(reterr_status, HF_E_INVALID, "found %zu fault%s, the first: %s",
                            faults.n, plural_s(faults.n), faults.first);
        return r;
}

/* ---- copying ---- */

/* Fills the status after a failed copy. Damage is always in the source; another failure may concern
 * either file, so its message names both. */
static int fail_copy(sqlite3 *db, const char *path, const char *temporary,
                     struct hf_status *reterr_status) {
        int r = hfd_sqlite_plain_fail(db, path, reterr_status);

        return r == HF_E_INVALID ? r
                                 : hf_fail(reterr_status, r, "%s cannot be copied to %s: %s", path,
                                           temporary, hfd_sqlite.errmsg(db));
}

/* SQLite calls a target full too when a damaged source asks for a row or a page with a number that
 * no file can have. So the source is checked before the file system is blamed. */
static int explain_full(const char *path, struct hf_status *reterr_status) {
        struct hfd_sqlite_faults faults = {0};
        struct hf_status ignored = {0};

        if (hfd_sqlite_check(path, &faults, &ignored) != 0 || faults.n == 0)
                return -ENOSPC;
        return hf_fail(reterr_status, HF_E_INVALID, "%s is damaged: %zu fault%s, the first: %.300s",
                       path, faults.n, plural_s(faults.n), faults.first);
}

/* VACUUM INTO reads everything at one revision and leaves out free pages. It accepts a target that
 * exists if it is empty, and keeps that file's mode. */
static int copy_file(const char *path, const char *temporary, struct hf_status *reterr_status) {
        sqlite3_stmt *statement = NULL;
        sqlite3 *db;
        int r = hfd_sqlite_plain_open(path, HFD_SQLITE_READ, &db, reterr_status);

        if (r != 0)
                return r;
        if (hfd_sqlite.prepare_v2(db, "VACUUM INTO ?1", -1, &statement, NULL) != SQLITE_OK ||
            hfd_sqlite.bind_text(statement, 1, temporary, -1, SQLITE_STATIC) != SQLITE_OK ||
            hfd_sqlite.step(statement) != SQLITE_DONE)
                r = fail_copy(db, path, temporary, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        (void)hfd_sqlite_close(db);
        return r == -ENOSPC ? explain_full(path, reterr_status) : r;
}

typedef int (*change_fn)(const char *path, const char *prefix, struct hf_status *reterr_status);

/* Copies, changes the copy, and gives it its name. */
static int copy_and_change(const char *path, const char *target, change_fn change,
                           const char *prefix, struct hf_status *reterr_status) {
        char temporary[PATH_MAX];
        /* The target first: the message says to move what exists away. If the target is a store
         * that is in use, its WAL must not be moved. */
        int r = hfd_new_file_check_absent(target, reterr_status);

        if (r == 0)
                r = check_beside(target, reterr_status);
        if (r == 0)
                r = hfd_new_file_begin(target, temporary, reterr_status);
        if (r != 0)
                return r;
        r = copy_file(path, temporary, reterr_status);
        if (r == 0 && change)
                r = change(temporary, prefix, reterr_status);
        if (r == 0)
                r = check_copy(temporary, reterr_status);
        if (r == 0)
                r = hfd_new_file_publish(temporary, target, reterr_status);
        if (r != 0)
                (void)unlink(temporary);
        return r;
}

int hfd_sqlite_backup(const char *path, const char *target, struct hf_status *reterr_status) {
        return copy_and_change(path, target, NULL, NULL, reterr_status);
}

/* ---- restoring ---- */

/* The values that a restore writes into the copy; no other restore writes the same ones. */
struct stamp {
        int64_t history;
        char epoch[HFD_EPOCH_MAX];
};

static int make_stamp(struct stamp *ret_stamp, struct hf_status *reterr_status) {
        uint64_t random;

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                return hf_fail(reterr_status, -EIO, "there are no random numbers");
        ret_stamp->history = (int64_t)((random >> 1) | 1); /* positive, and not 0 */
        return hfd_epoch_make(ret_stamp->epoch, reterr_status);
}

/* Adds the row that versions.c would write for a put of the epoch as this revision. */
static int put_epoch(sqlite3 *db, const char *path, const char *key, int64_t revision,
                     const char *epoch, struct hf_status *reterr_status) {
        static const char text[] =
                "WITH last AS (SELECT id, created, value FROM versions WHERE key = ?1 "
                "ORDER BY id DESC LIMIT 1) "
                "INSERT INTO versions(id, previous, created, key, value) "
                "VALUES(?2, coalesce((SELECT id FROM last), 0), "
                "coalesce((SELECT created FROM last WHERE value IS NOT NULL), ?3), ?1, ?4)";
        sqlite3_stmt *statement = NULL;
        int r = 0;

        if (hfd_sqlite.prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK ||
            hfd_sqlite.bind_text(statement, 1, key, -1, SQLITE_STATIC) != SQLITE_OK ||
            hfd_sqlite.bind_int64(statement, 2, revision * HFD_TXN_MAX) != SQLITE_OK ||
            hfd_sqlite.bind_int64(statement, 3, revision) != SQLITE_OK ||
            hfd_sqlite.bind_blob(statement, 4, epoch, (int)strlen(epoch), SQLITE_STATIC) !=
                    SQLITE_OK ||
            hfd_sqlite.step(statement) != SQLITE_DONE)
                r = hfd_sqlite_plain_fail(db, path, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        return r;
}

static int write_stamp(sqlite3 *db, const char *path, const char *key, const struct stamp *stamp,
                       struct hf_status *reterr_status) {
        int64_t revision;
        int r = hfd_sqlite_plain_begin(db, path, &revision, reterr_status);

        if (r != 0)
                return r;
        revision += (int64_t)HFD_SQLITE_RESTORE_STEP;
        r = put_epoch(db, path, key, revision, stamp->epoch, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_set(db, path, "history", stamp->history, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_set(db, path, "compacted", revision, reterr_status);
        return r == 0 ? hfd_sqlite_plain_exec(db, path, "COMMIT", reterr_status) : r;
}

static int stamp_file(const char *path, const char *prefix, struct hf_status *reterr_status) {
        char key[HFD_KEY_MAX];
        struct stamp stamp;
        sqlite3 *db;
        int r = hfd_key_own(key, prefix, "epoch");

        if (r != 0)
                return hf_fail(reterr_status, r, "the prefix is too long");
        r = make_stamp(&stamp, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_open(path, HFD_SQLITE_EXCLUSIVE, &db, reterr_status);
        if (r != 0)
                return r;
        r = write_stamp(db, path, key, &stamp, reterr_status);
        (void)hfd_sqlite_close(db);
        return r;
}

/* Refuses a prefix that no key of the backup has, unless the backup has no keys at all. */
static int check_prefix(const char *path, const char *prefix, struct hf_status *reterr_status) {
        struct hfd_key_prefixes prefixes = {.wanted = prefix};
        sqlite3_stmt *statement = NULL;
        sqlite3 *db;
        int step = SQLITE_DONE;
        int r = hfd_sqlite_plain_open(path, HFD_SQLITE_READ, &db, reterr_status);

        if (r != 0)
                return r;
        if (hfd_sqlite.prepare_v2(db, "SELECT DISTINCT key FROM versions", -1, &statement, NULL) !=
            SQLITE_OK)
                r = hfd_sqlite_plain_fail(db, path, reterr_status);
        while (r == 0 && !prefixes.has_wanted &&
               (step = hfd_sqlite.step(statement)) == SQLITE_ROW) {
                const unsigned char *key = hfd_sqlite.column_text(statement, 0);

                if (key) /* NULL: memory has run out, which the next step reports */
                        hfd_key_prefixes_add(&prefixes, (const char *)key);
        }
        if (r == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
                r = hfd_sqlite_plain_fail(db, path, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        (void)hfd_sqlite_close(db);
        return r == 0 ? hfd_key_prefixes_check(&prefixes, path, reterr_status) : r;
}

int hfd_sqlite_restore(const char *backup, const char *target, const char *prefix,
                       struct hf_status *reterr_status) {
        struct hfd_sqlite_faults faults = {0};
        int r = hfd_sqlite_check(backup, &faults, reterr_status);

        assert(prefix && target);
        if (r == 0 && faults.n > 0)
                r = hf_fail(reterr_status, HF_E_INVALID,
                            "%s is damaged: %zu fault%s, the first: %.300s; holdfastd store check "
                            "prints them all",
                            backup, faults.n, plural_s(faults.n), faults.first);
        if (r == 0)
                r = check_prefix(backup, prefix, reterr_status);
        return r == 0 ? copy_and_change(backup, target, stamp_file, prefix, reterr_status) : r;
}
