/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call of SQLite by the commands for a store's file fails once: check, backup, restore and
 * shrink then say so, leave no file, and do not damage the one that they read or change. The same
 * when a store is made: the next start completes it. The test replaces functions of hfd_sqlite;
 * closing and binding are not among them.
 */
#undef NDEBUG
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_descriptors.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/files/backup.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/files/shrink.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};

/* ---- the calls ---- */

static struct hfd_sqlite_library real;
static atomic_int calls_left = INT32_MAX; /* before one fails */
static atomic_int failure;                /* what that one returns */
static atomic_bool has_failed;
static _Thread_local bool failed_last; /* this thread's last call was the one */
static _Thread_local bool is_tester;   /* the calls of the store's own threads do not fail */

static bool fails(void) {
        failed_last = is_tester && atomic_fetch_sub(&calls_left, 1) == 0;
        if (failed_last)
                atomic_store(&has_failed, true);
        return failed_last;
}

static void arm(int n, int error) {
        atomic_store(&failure, error);
        atomic_store(&has_failed, false);
        failed_last = false;
        atomic_store(&calls_left, n);
}

static void disarm(void) {
        atomic_store(&calls_left, INT32_MAX);
        failed_last = false;
}

static int bad_step(sqlite3_stmt *statement) { return fails() ? failure : real.step(statement); }
static int bad_prepare(sqlite3 *db, const char *text, int n, sqlite3_stmt **ret,
                       const char **ret_tail) {
        return fails() ? failure : real.prepare_v2(db, text, n, ret, ret_tail);
}
static bool other_is_first; /* another process makes the tables of new.db before the store does */

static void let_other_be_first(const char *text) {
        struct hfd_sqlite_db db;
        struct hf_status status = {0};

        if (!other_is_first || strcmp(text, "BEGIN IMMEDIATE") != 0)
                return;
        const char *path = sqlite_fixture_path("new.db");
        other_is_first = false;
        assert_int_equal(hfd_sqlite_db_open(&db, path, true, &status), 0);
        assert_int_equal(hfd_sqlite_db_fill(&db, path, &status), 0);
        hfd_sqlite_db_close(&db);
}

static int bad_exec(sqlite3 *db, const char *text, int (*row)(void *, int, char **, char **),
                    void *ctx, char **reterr_message) {
        let_other_be_first(text);
        return fails() ? failure : real.exec(db, text, row, ctx, reterr_message);
}
static int bad_persistent(sqlite3 *db, const char *text, int n, unsigned flags, sqlite3_stmt **ret,
                          const char **ret_tail) {
        return fails() ? failure : real.prepare_v3(db, text, n, flags, ret, ret_tail);
}
/* As SQLite does, it makes a handle even then. */
static int bad_open(const char *path, sqlite3 **ret_db, int flags, const char *vfs) {
        int r = real.open_v2(path, ret_db, flags, vfs);

        return fails() ? failure : r;
}
static int longest_wait; /* ms: for a lock of another process */

static int note_wait(sqlite3 *db, int msec) {
        longest_wait = msec > longest_wait ? msec : longest_wait;
        return real.busy_timeout(db, msec);
}

static int errcode_of_failure(sqlite3 *db) { return failed_last ? failure : real.errcode(db); }

static int set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        is_tester = true;
        real = hfd_sqlite;
        hfd_sqlite.step = bad_step;
        hfd_sqlite.prepare_v2 = bad_prepare;
        hfd_sqlite.prepare_v3 = bad_persistent;
        hfd_sqlite.exec = bad_exec;
        hfd_sqlite.open_v2 = bad_open;
        hfd_sqlite.busy_timeout = note_wait;
        hfd_sqlite.errcode = errcode_of_failure;
        return 0;
}

static int tear_down(void **state) {
        hfd_sqlite = real;
        return sqlite_fixture_teardown(state);
}

/* ---- files ---- */

static void make_store(const char *name) {
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store,
                                              &status),
                         0);
        for (int i = 0; i < 3; i++)
                assert_true(store_client_put(store, "/registry/a", "x") > 0);
        assert_true(store_client_put(store, "/registry/b", "x") > 0);
        assert_true(store_client_delete(store, "/registry/b") > 0);
        store->ops->free(store);
}

static bool exists(const char *name) { return access(sqlite_fixture_path(name), F_OK) == 0; }

/* How many files the directory of the tests has, without the logs of stores: a reader leaves an
 * empty one. */
static unsigned count_files(void) {
        DIR *dir = opendir(sqlite_fixture_path("."));
        const struct dirent *entry;
        unsigned n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir)) != NULL)
                n += !strstr(entry->d_name, ".db-wal") && !strstr(entry->d_name, ".db-shm");
        closedir(dir);
        return n;
}

static void expect_sound(const char *name) {
        struct hfd_sqlite_faults faults = {0};
        struct hf_status status = {0};

        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path(name), &faults, &status), 0);
        assert_int_equal(faults.n, 0);
}

/* ---- commands ---- */

static int check(struct hf_status *status) {
        struct hfd_sqlite_faults faults = {0};
        int r = hfd_sqlite_check(sqlite_fixture_path("source.db"), &faults, status);

        if (r == 0)
                assert_int_equal(faults.n, 0);
        return r;
}
static int backup(struct hf_status *status) {
        return hfd_sqlite_backup(sqlite_fixture_path("source.db"), sqlite_fixture_path("target.db"),
                                 status);
}
static int restore(struct hf_status *status) {
        return hfd_sqlite_restore(sqlite_fixture_path("backup.db"),
                                  sqlite_fixture_path("target.db"), "/registry", status);
}
static int shrink(struct hf_status *status) {
        struct hfd_sqlite_shrunk shrunk;

        return hfd_sqlite_shrink(sqlite_fixture_path("source.db"), &shrunk, status);
}

static const struct {
        int code, error;
} failures[] = {{SQLITE_IOERR, -EIO},
                {SQLITE_FULL, -ENOSPC},
                {SQLITE_BUSY, HF_E_BUSY},
                {SQLITE_READONLY, -EROFS},
                {SQLITE_NOMEM, -ENOMEM}};
#define N_FAILURES (sizeof failures / sizeof failures[0])

/* source: the file that the command reads or changes. */
static void fail_each_call(int (*command)(struct hf_status *status), const char *source, size_t i) {
        unsigned n_files = count_files(), n_descriptors = count_descriptors();
        int n = 0, r;

        do {
                struct hf_status status = {0};
                arm(n++, failures[i].code);
                r = command(&status);
                disarm();
                assert_int_equal(r, has_failed ? failures[i].error : 0);
                assert_true((r == 0) == (status.message[0] == '\0'));
                if (r == 0)
                        break;
                assert_non_null(strstr(status.message, ".db"));
                assert_int_equal(count_files(), n_files);
                assert_int_equal(count_descriptors(), n_descriptors);
                expect_sound(source);
        } while (true);
        assert_true(n > 5);
        if (exists("target.db")) {
                expect_sound("target.db");
                assert_int_equal(unlink(sqlite_fixture_path("target.db")), 0);
        }
}

static void test_a_check_that_fails_says_so(void **state) {
        make_store("source.db");
        longest_wait = 0;
        for (size_t i = 0; i < N_FAILURES; i++)
                fail_each_call(check, "source.db", i);
        assert_true(longest_wait > 0); /* a lock that is held for a moment is no failure */
}

static void test_a_backup_that_fails_leaves_no_file(void **state) {
        make_store("source.db");
        for (size_t i = 0; i < 2; i++)
                fail_each_call(backup, "source.db", i);
}

static void test_a_restore_that_fails_leaves_no_file(void **state) {
        struct hf_status status = {0};

        make_store("source.db");
        assert_int_equal(hfd_sqlite_backup(sqlite_fixture_path("source.db"),
                                           sqlite_fixture_path("backup.db"), &status),
                         0);
        for (size_t i = 0; i < 2; i++)
                fail_each_call(restore, "backup.db", i);
}

static void test_a_shrink_that_fails_leaves_a_sound_file(void **state) {
        for (size_t i = 0; i < 2; i++) {
                (void)unlink(sqlite_fixture_path("source.db"));
                make_store("source.db");
                fail_each_call(shrink, "source.db", i);
                /* The last version of /registry/a, and the deletion that is the newest write. */
                assert_int_equal(sqlite_fixture_sql("source.db", "SELECT count(*) FROM versions"),
                                 2);
        }
}

static void remove_store(const char *name) {
        static const char *const endings[] = {"", "-wal", "-shm", "-notify"};
        char file[32];

        for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
                (void)snprintf(file, sizeof file, "%s%s", name, endings[i]);
                (void)unlink(sqlite_fixture_path(file));
        }
}

static int open_store(struct hfd_store **ret_store, struct hf_status *status) {
        return hfd_sqlite_store_new(&host, sqlite_fixture_path("new.db"), true, ret_store, status);
}

/* is_new: the file does not exist before each attempt. */
static void fail_each_call_of_start(bool is_new, int code) {
        int n = 0, r;

        do {
                struct hfd_store *store = NULL;
                struct hf_status status = {0};
                if (is_new)
                        remove_store("new.db");
                unsigned n_descriptors = count_descriptors();
                arm(n++, code);
                r = open_store(&store, &status);
                disarm();
                assert_true((r == 0) == (store != NULL));
                assert_true((r != 0) == atomic_load(&has_failed)); /* no failure is passed over */
                if (r != 0) {
                        assert_non_null(strstr(status.message, "new.db"));
                        assert_int_equal(count_descriptors(), n_descriptors);
                        assert_int_equal(open_store(&store, &status), 0);
                }
                assert_true(store_client_put(store, "/registry/a", "x") > 0);
                store->ops->free(store);
                expect_sound("new.db");
                assert_int_equal(sqlite_fixture_sql("new.db", "PRAGMA auto_vacuum"), 2);
        } while (r != 0);
        assert_true(n > 5);
}

static void test_a_start_that_fails_can_be_repeated(void **state) {
        fail_each_call_of_start(true, SQLITE_IOERR);
        fail_each_call_of_start(false, SQLITE_FULL);
}

static void test_two_processes_make_one_store(void **state) {
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        remove_store("new.db");
        other_is_first = true;
        assert_int_equal(open_store(&store, &status), 0);
        assert_false(other_is_first);
        assert_true(store_client_put(store, "/registry/a", "x") > 0);
        store->ops->free(store);
        expect_sound("new.db");
}

/* Another process may hold SQLite's lock for a moment. */
static void test_a_store_waits_for_the_locks_of_others(void **state) {
        struct hfd_store *store = NULL;
        struct hf_status status = {0};

        longest_wait = 0;
        assert_int_equal(open_store(&store, &status), 0);
        assert_true(longest_wait >= 1000);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_check_that_fails_says_so),
                cmocka_unit_test(test_a_backup_that_fails_leaves_no_file),
                cmocka_unit_test(test_a_restore_that_fails_leaves_no_file),
                cmocka_unit_test(test_a_shrink_that_fails_leaves_a_sound_file),
                cmocka_unit_test(test_a_start_that_fails_can_be_repeated),
                cmocka_unit_test(test_two_processes_make_one_store),
                cmocka_unit_test(test_a_store_waits_for_the_locks_of_others),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
