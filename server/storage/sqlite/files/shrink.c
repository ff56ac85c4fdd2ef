/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shrinks a file.
 *
 * Invariants:
 *  - one transaction removes the old versions and sets the compacted revision, below which reads
 *    end with HF_E_GONE;
 *  - the row of the newest revision stays (versions.c), so the revision does not go back.
 */
#include "server/storage/sqlite/files/shrink.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/storage/sqlite/files/file_use.h"
#include "server/storage/sqlite/files/plain.h"
#include "server/storage/store.h"

static int size_of(const char *path, uint64_t *ret_size, struct hf_status *reterr_status) {
        char log[PATH_MAX];
        struct stat info;
        int n = snprintf(log, sizeof log, "%s-wal", path);

        if (stat(path, &info) != 0)
                return hf_fail(reterr_status, errno == ENOENT ? HF_E_NOT_FOUND : -errno, "%s: %s",
                               path, strerror(errno));
        *ret_size = (uint64_t)info.st_size;
        if (n > 0 && (size_t)n < sizeof log && stat(log, &info) == 0)
                *ret_size += (uint64_t)info.st_size;
        return 0;
}

/* Removes all versions that are not the newest of their keys, and all deletions but those of the
 * newest revision. */
static int remove_old(sqlite3 *db, const char *path, struct hfd_sqlite_shrunk *shrunk,
                      struct hf_status *reterr_status) {
        char text[512];
        int64_t revision;
        int r = hfd_sqlite_plain_begin(db, path, &revision, reterr_status);

        if (r != 0)
                return r;
        if (revision < 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is damaged: a revision in it is negative", path);
        int64_t before = hfd_sqlite.total_changes64(db);
        r = hfd_sqlite_plain_exec(db, path,
                                  "DELETE FROM versions WHERE id IN (SELECT previous FROM "
                                  "versions)",
                                  reterr_status);
        (void)snprintf(text, sizeof text,
                       "DELETE FROM versions WHERE value IS NULL AND id < %" PRId64,
                       revision * HFD_TXN_MAX);
        if (r == 0)
                r = hfd_sqlite_plain_exec(db, path, text, reterr_status);
        shrunk->n_removed = (uint64_t)(hfd_sqlite.total_changes64(db) - before);
        shrunk->revision = (uint64_t)revision;
        if (r == 0 && revision > 0)
                r = hfd_sqlite_plain_set(db, path, "compacted", revision, reterr_status);
        if (r == 0 && revision > 0)
                r = hfd_sqlite_plain_set(db, path, "swept", revision * HFD_TXN_MAX - 1,
                                         reterr_status);
        return r == 0 ? hfd_sqlite_plain_exec(db, path, "COMMIT", reterr_status) : r;
}

int hfd_sqlite_shrink(const char *path, struct hfd_sqlite_shrunk *ret_shrunk,
                      struct hf_status *reterr_status) {
        sqlite3 *db;
        int r;

        *ret_shrunk = (struct hfd_sqlite_shrunk){0};
        r = size_of(path, &ret_shrunk->n_bytes_before, reterr_status);
        if (r == 0)
                r = hfd_sqlite_check_unused(path, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_open(path, HFD_SQLITE_EXCLUSIVE, &db, reterr_status);
        if (r != 0)
                return r;
        r = remove_old(db, path, ret_shrunk, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_exec(db, path,
                                          "PRAGMA incremental_vacuum; PRAGMA "
                                          "wal_checkpoint(TRUNCATE)",
                                          reterr_status);
        (void)hfd_sqlite_close(db);
        return r == 0 ? size_of(path, &ret_shrunk->n_bytes_after, reterr_status) : r;
}
