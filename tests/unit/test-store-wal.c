/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the WAL of a SQLite store is written (wal_file.h): the frames of a commit leave together, in
 * their order, before the file is synced, and what was kept of a commit that failed is never
 * written. The test stands between wal_file.c and SQLite's own file, and sees each write.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <sqlite3.h>

#include <holdfast/error.h>

#include "failing_memory.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/engine/wal_file.h"
#include "sqlite_fixture.h"

#define FRAME (24 + 4096)
#define KEPT  (64 * 1024)

static sqlite3_vfs *unix_vfs;
static const sqlite3_io_methods *unix_methods;
static sqlite3 *db;

/* What was done with the WAL since the last reset. */
static struct {
        int n_writes, n_syncs, largest;
        sqlite3_int64 n_bytes, end; /* end: of the last write */
        int n_gaps;                 /* writes that do not follow the one before */
        bool fails;
} seen;

/* ---- between wal_file.c and SQLite ---- */

static int see_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at) {
        if (seen.fails)
                return SQLITE_FULL;
        seen.n_gaps += seen.n_writes > 0 && at != seen.end;
        seen.n_writes++;
        seen.n_bytes += n;
        seen.end = at + n;
        seen.largest = n > seen.largest ? n : seen.largest;
        return unix_methods->xWrite(file, data, n, at);
}

static int see_sync(sqlite3_file *file, int flags) {
        seen.n_syncs++;
        return unix_methods->xSync(file, flags);
}

static int see_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags) {
        static sqlite3_io_methods methods;
        int code = unix_vfs->xOpen(unix_vfs, name, file, flags, ret_flags);

        if (code != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0)
                return code;
        unix_methods = file->pMethods;
        methods = *unix_methods;
        methods.xWrite = see_write;
        methods.xSync = see_sync;
        file->pMethods = &methods;
        return code;
}

static sqlite3_vfs *find_vfs(const char *name) {
        static sqlite3_vfs vfs;

        unix_vfs = sqlite3_vfs_find(name);
        vfs = *unix_vfs;
        vfs.xOpen = see_open;
        return &vfs;
}

static int set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        hfd_sqlite.vfs_find = find_vfs;
        return hfd_sqlite_wal_register() == SQLITE_OK ? 0 : 1;
}

/* ---- a database ---- */

static int run(const char *text) { return sqlite3_exec(db, text, NULL, NULL, NULL); }

static int64_t number(const char *text) {
        sqlite3_stmt *statement;

        assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        int64_t result = sqlite3_column_int64(statement, 0);
        assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
        return result;
}

static void open_db(const char *name) {
        assert_int_equal(sqlite3_open_v2(sqlite_fixture_path(name), &db,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                         HFD_SQLITE_VFS),
                         SQLITE_OK);
        assert_int_equal(run("PRAGMA page_size=4096; PRAGMA journal_mode=WAL;"
                             "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                             "CREATE TABLE t (x); INSERT INTO t VALUES(1)"),
                         SQLITE_OK);
        memset(&seen, 0, sizeof seen);
}

static void close_db(void) {
        assert_int_equal(number("SELECT count(*) FROM pragma_integrity_check WHERE "
                                "integrity_check = 'ok'"),
                         1);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int insert(int n_kib) {
        char text[96];

        (void)snprintf(text, sizeof text, "INSERT INTO t VALUES(zeroblob(%d))", n_kib * 1024);
        return run(text);
}

static void test_a_small_commit_is_one_write(void **state) {
        open_db("small.db");
        assert_int_equal(insert(40), SQLITE_OK);
        assert_int_equal(seen.n_writes, 1);
        assert_int_equal(seen.n_bytes % FRAME, 0);
        assert_true(seen.n_bytes > 40 * 1024 && seen.n_bytes < KEPT);
        assert_true(seen.n_syncs > 0);
        for (int i = 0; i < 3; i++) {
                memset(&seen, 0, sizeof seen);
                assert_int_equal(insert(1), SQLITE_OK);
                assert_int_equal(seen.n_writes, 1);
        }
        close_db();
}

static void test_a_large_commit_is_written_in_pieces(void **state) {
        open_db("large.db");
        assert_int_equal(insert(1000), SQLITE_OK);
        assert_int_equal(seen.n_gaps, 0);
        assert_int_equal(seen.n_bytes % FRAME, 0);
        assert_true(seen.largest <= KEPT && seen.largest > KEPT - FRAME);
        assert_true(seen.n_writes <= seen.n_bytes / (KEPT - FRAME) + 1);
        assert_int_equal(number("SELECT sum(length(x)) FROM t WHERE typeof(x) = 'blob'"), 1024000);
        close_db();
}

/* An operator's or SQLite's own request to shorten the log reaches the file. */
static void test_the_log_can_be_shortened(void **state) {
        struct stat info;

        open_db("shortened.db");
        assert_int_equal(insert(200), SQLITE_OK);
        assert_int_equal(stat(sqlite_fixture_path("shortened.db-wal"), &info), 0);
        assert_true(info.st_size > 200 * 1024);
        assert_int_equal(run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
        assert_int_equal(stat(sqlite_fixture_path("shortened.db-wal"), &info), 0);
        assert_int_equal(info.st_size, 0);
        assert_int_equal(insert(1), SQLITE_OK);
        assert_int_equal(number("SELECT count(*) FROM t"), 3);
        close_db();
}

/* Pages that have no room in the cache go to the WAL before the commit, and are read from it. */
static void test_what_is_kept_is_found_by_a_read(void **state) {
        open_db("spilled.db");
        assert_int_equal(run("PRAGMA cache_size=5; BEGIN"), SQLITE_OK);
        for (int i = 0; i < 100; i++)
                assert_int_equal(insert(3), SQLITE_OK);
        assert_int_equal(number("SELECT sum(length(x)) FROM t WHERE typeof(x) = 'blob'"),
                         100 * 3 * 1024);
        assert_int_equal(run("UPDATE t SET x = zeroblob(2048)"), SQLITE_OK);
        assert_int_equal(run("COMMIT"), SQLITE_OK);
        assert_int_equal(number("SELECT sum(length(x)) FROM t"), 101 * 2048);
        close_db();
}

static void test_a_commit_works_without_memory(void **state) {
        open_db("memory.db");
        failing_memory_arm(0);
        assert_int_equal(insert(40), SQLITE_OK);
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        assert_int_equal(seen.n_gaps, 0);
        assert_int_equal(number("SELECT sum(length(x)) FROM t WHERE typeof(x) = 'blob'"), 40960);
        close_db();
}

/* The next commit is at the same place in the WAL. */
static void test_a_commit_that_fails_is_forgotten(void **state) {
        size_t n_live;

        open_db("failed.db");
        n_live = failing_memory_n_live();
        for (int i = 0; i < 3; i++) {
                bool frees = i != 1;
                seen.fails = true;
                assert_int_equal(run("BEGIN"), SQLITE_OK);
                assert_int_equal(insert(i == 2 ? 1000 : 1), SQLITE_OK);
                assert_int_not_equal(run("COMMIT"), SQLITE_OK);
                hfd_sqlite_wal_drop(db, frees);
                if (frees)
                        assert_int_equal(failing_memory_n_live(), n_live);
                seen.fails = false;
                if (sqlite3_get_autocommit(db) == 0)
                        assert_int_equal(run("ROLLBACK"), SQLITE_OK);
                assert_int_equal(number("SELECT count(*) FROM t"), 1 + i);
                memset(&seen, 0, sizeof seen);
                assert_int_equal(run("INSERT INTO t VALUES(1)"), SQLITE_OK);
                assert_int_equal(seen.n_writes, 1);
        }
        assert_int_equal(failing_memory_n_live(), n_live);
        close_db();
}

/* Nothing is kept in other files, and dropping it does nothing there. */
static void test_another_connection_has_nothing_to_drop(void **state) {
        sqlite3 *plain;

        assert_int_equal(sqlite3_open(sqlite_fixture_path("plain.db"), &plain), SQLITE_OK);
        hfd_sqlite_wal_drop(plain, true);
        assert_int_equal(sqlite3_exec(plain, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
        hfd_sqlite_wal_drop(plain, true);
        assert_int_equal(sqlite3_close(plain), SQLITE_OK);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_small_commit_is_one_write),
                cmocka_unit_test(test_a_large_commit_is_written_in_pieces),
                cmocka_unit_test(test_the_log_can_be_shortened),
                cmocka_unit_test(test_what_is_kept_is_found_by_a_read),
                cmocka_unit_test(test_a_commit_works_without_memory),
                cmocka_unit_test(test_a_commit_that_fails_is_forgotten),
                cmocka_unit_test(test_another_connection_has_nothing_to_drop),
        };
        return cmocka_run_group_tests(tests, set_up, sqlite_fixture_teardown);
}
