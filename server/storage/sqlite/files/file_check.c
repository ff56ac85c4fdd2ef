/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the file of a store: SQLite's own structure first, then what versions.c relies on.
 *
 * Invariants: the file is only read, so an instance may use it meanwhile. Because compactions
 * remove versions (hfd_sqlite_sweep), a missing version is a fault only if it is newer than the
 * compacted revision: a good file never has a fault.
 */
#include "server/storage/sqlite/files/file_check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/storage/keys.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/files/plain.h"
#include "server/storage/store.h"

#define FIRST_WRITTEN 2 /* the revision of the first write */

struct check {
        sqlite3 *db;
        const char *path;
        struct hfd_sqlite_faults *faults;
        int64_t compacted; /* a revision; 0 = nothing was compacted */
};

/* Reports a fault. The first one is kept; of many, only the first HFD_SQLITE_FAULTS_MAX are
 * reported, and all are counted. */
static void __attribute__((format(printf, 2, 3)))
fault(struct hfd_sqlite_faults *faults, const char *format, ...) {
        char text[sizeof faults->first];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (faults->n++ == 0)
                memcpy(faults->first, text, sizeof text);
        if (faults->report && faults->n <= HFD_SQLITE_FAULTS_MAX)
                faults->report(faults->ctx, text);
}

/* HF_E_INVALID (damage, for example) counts as a fault, and the result is 0. Any other error is
 * returned and ends the check. */
static int fault_or_fail(struct check *check, int error, struct hf_status *status) {
        if (error != HF_E_INVALID)
                return error;
        fault(check->faults, "%s", status->message);
        return 0;
}

static int64_t revision_of(int64_t id) { return id / HFD_TXN_MAX; }

/* ---- SQLite's structure ---- */

/* A row of SQLite's check may have several lines, of which the first only names the database. */
static void add_structure_faults(struct check *check, const char *text) {
        static const char heading[] = "*** in database ";

        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                if (n > 0 && strncmp(text, heading, sizeof heading - 1) != 0)
                        fault(check->faults, "SQLite: %.*s", n < 400 ? (int)n : 400, text);
        }
}

static int check_structure(struct check *check, struct hf_status *reterr_status) {
        sqlite3_stmt *statement = NULL;
        int step;

        if (hfd_sqlite.prepare_v2(check->db, "PRAGMA integrity_check(100)", -1, &statement, NULL) !=
            SQLITE_OK)
                return hfd_sqlite_plain_fail(check->db, check->path, reterr_status);
        while ((step = hfd_sqlite.step(statement)) == SQLITE_ROW) {
                const char *text = (const char *)hfd_sqlite.column_text(statement, 0);

                if (text && strcmp(text, "ok") != 0)
                        add_structure_faults(check, text);
        }
        int r = step == SQLITE_DONE ? 0
                                    : hfd_sqlite_plain_fail(check->db, check->path, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        return r;
}

/* ---- meta ---- */

/* Checks the numbers in the table meta. As revisions: 0 <= swept <= compacted <= newest. */
static int check_meta(struct check *check, struct hf_status *reterr_status) {
        int64_t history, swept, newest;
        int r = hfd_sqlite_plain_number(check->db, check->path,
                                        "SELECT value FROM meta WHERE name = 'history'", &history,
                                        reterr_status);

        if (r == 0)
                r = hfd_sqlite_plain_number(check->db, check->path,
                                            "SELECT value FROM meta WHERE name = 'compacted'",
                                            &check->compacted, reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_number(check->db, check->path,
                                            "SELECT value FROM meta WHERE name = 'swept'", &swept,
                                            reterr_status);
        if (r == 0)
                r = hfd_sqlite_plain_number(check->db, check->path, "SELECT max(id) FROM versions",
                                            &newest, reterr_status);
        if (r != 0)
                return r;
        if (history == 0)
                fault(check->faults, "the store has no history number");
        if (check->compacted < 0 || check->compacted > revision_of(newest))
                fault(check->faults,
                      "the compacted revision is %" PRId64 ", but the newest one is %" PRId64,
                      check->compacted, revision_of(newest));
        if (swept < 0 || revision_of(swept) > check->compacted)
                fault(check->faults,
                      "versions were removed up to revision %" PRId64
                      ", but the compacted revision is %" PRId64,
                      revision_of(swept), check->compacted);
        return 0;
}

/* ---- versions ---- */

/* A row of the table versions. */
struct version {
        int64_t id, previous, created;
        bool is_deletion;
};

/* before: the version of the same key before this one in the file; NULL = there is none, or a
 * compaction has removed it. */
static void check_previous(struct check *check, const char *key, const struct version *version,
                           const struct version *before) {
        int64_t revision = revision_of(version->id);

        if (before) {
                if (version->previous != before->id)
                        fault(check->faults,
                              "%s, revision %" PRId64 ": the previous version has revision %" PRId64
                              ", but this one refers to revision %" PRId64,
                              key, revision, revision_of(before->id),
                              revision_of(version->previous));
                return;
        }
        if (version->previous < 0 || version->previous >= version->id)
                fault(check->faults,
                      "%s, revision %" PRId64 ": it refers to a previous version of revision "
                      "%" PRId64 ", which is not an older one",
                      key, revision, revision_of(version->previous));
        else if (version->previous > 0 && revision_of(version->previous) > check->compacted)
                fault(check->faults,
                      "%s, revision %" PRId64 ": the previous version, of revision %" PRId64
                      ", is missing, although the store is compacted only up to revision %" PRId64,
                      key, revision, revision_of(version->previous), check->compacted);
}

/* A key keeps its creation revision until it is deleted. */
static void check_created(struct check *check, const char *key, const struct version *version,
                          const struct version *before) {
        int64_t revision = revision_of(version->id), wanted = revision;
        bool existed = before && !before->is_deletion;

        if (version->is_deletion && (before ? before->is_deletion : version->previous == 0)) {
                fault(check->faults,
                      "%s, revision %" PRId64 ": it deletes a key that did not exist", key,
                      revision);
                return;
        }
        if (!version->is_deletion && existed)
                wanted = before->created;
        /* If a compaction has removed the version before it, the key may have been created at any
         * revision up to this one. */
        bool any = !version->is_deletion && !before && version->previous > 0;
        if (any ? version->created < FIRST_WRITTEN || version->created > revision
                : version->created != wanted)
                fault(check->faults,
                      "%s, revision %" PRId64 ": its creation revision, %" PRId64 ", is wrong", key,
                      revision, version->created);
}

static void check_version(struct check *check, const char *key, const struct version *version,
                          const struct version *before) {
        if (revision_of(version->id) < FIRST_WRITTEN)
                fault(check->faults,
                      "%s: a version has the revision %" PRId64
                      ", but the first write has revision %d",
                      key, revision_of(version->id), FIRST_WRITTEN);
        check_previous(check, key, version, before);
        check_created(check, key, version, before);
}

/* Called for the last version of each key. Finds a copy that was not completed: such a store still
 * has a key that ends in .holdfast/copying (copy.h). */
static void check_last(struct check *check, const char *key, const struct version *version) {
        static const char mark[] = ".holdfast/copying";
        size_t n = strlen(key);

        if (n >= sizeof mark - 1 && strcmp(key + n - (sizeof mark - 1), mark) == 0 &&
            !version->is_deletion)
                fault(check->faults,
                      "the store is a copy that was not completed: it has the key %s", key);
}

/* Whether the column has a key of a type and size that a store writes. */
static bool is_key(sqlite3_stmt *statement, int column) {
        /* Test the type before reading the text, because reading converts a BLOB to text. */
        if (hfd_sqlite.column_type(statement, column) != SQLITE_TEXT)
                return false;
        const char *key = (const char *)hfd_sqlite.column_text(statement, column);
        size_t n = (size_t)hfd_sqlite.column_bytes(statement, column);

        return key && n > 0 && n < HFD_KEY_MAX && strlen(key) == n;
}

/* Reads the versions in the order of their keys, and those of each key from the oldest on. */
static int check_versions(struct check *check, struct hf_status *reterr_status) {
        static const char text[] = "SELECT key, id, previous, created, typeof(value) FROM versions "
                                   "INDEXED BY versions_by_key ORDER BY key, id";
        struct version version, before = {0};
        sqlite3_stmt *statement = NULL;
        char key[HFD_KEY_MAX] = "";
        int step;

        if (hfd_sqlite.prepare_v2(check->db, text, -1, &statement, NULL) != SQLITE_OK)
                return hfd_sqlite_plain_fail(check->db, check->path, reterr_status);
        while ((step = hfd_sqlite.step(statement)) == SQLITE_ROW) {
                const char *type = (const char *)hfd_sqlite.column_text(statement, 4);

                version = (struct version){.id = hfd_sqlite.column_int64(statement, 1),
                                           .previous = hfd_sqlite.column_int64(statement, 2),
                                           .created = hfd_sqlite.column_int64(statement, 3),
                                           .is_deletion = type && strcmp(type, "null") == 0};
                if (!is_key(statement, 0) ||
                    (!version.is_deletion && type && strcmp(type, "blob") != 0)) {
                        fault(check->faults,
                              "the version with the id %" PRId64
                              " has a key or a value of a wrong type or size",
                              version.id);
                        continue;
                }
                const char *next = (const char *)hfd_sqlite.column_text(statement, 0);
                bool same = strcmp(next, key) == 0;
                if (key[0] && !same)
                        check_last(check, key, &before);
                (void)snprintf(key, sizeof key, "%s", next);
                check_version(check, key, &version, same ? &before : NULL);
                before = version;
        }
        if (key[0])
                check_last(check, key, &before);
        int r = step == SQLITE_DONE ? 0
                                    : hfd_sqlite_plain_fail(check->db, check->path, reterr_status);
        (void)hfd_sqlite.finalize(statement);
        return r;
}

static int check_open(struct check *check, struct hf_status *reterr_status) {
        static int (*const parts[])(struct check * check,
                                    struct hf_status * reterr_status) = {check_structure,
                                                                         check_meta,
                                                                         check_versions};
        int r = hfd_sqlite_plain_exec(check->db, check->path, "BEGIN", reterr_status);

        for (size_t i = 0; i < sizeof parts / sizeof parts[0] && r == 0; i++) {
                r = parts[i](check, reterr_status);
                if (r != 0)
                        r = fault_or_fail(check, r, reterr_status);
        }
        return r;
}

int hfd_sqlite_check(const char *path, struct hfd_sqlite_faults *faults,
                     struct hf_status *reterr_status) {
        struct check check = {.path = path, .faults = faults};
        struct hf_status status = {0};

        assert(faults->n == 0);
        /* A machine without SQLite says nothing about the file. */
        int r = hfd_sqlite_load(reterr_status);
        if (r != 0)
                return r;
        r = hfd_sqlite_plain_open(path, HFD_SQLITE_READ, &check.db, &status);
        if (r != 0)
                r = fault_or_fail(&check, r, &status);
        else
                r = check_open(&check, &status);
        (void)hfd_sqlite_close(check.db);
        if (r != 0)
                *reterr_status = status;
        return r;
}
