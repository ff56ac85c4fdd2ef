/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of SQLite stores without a store: backups, the changes of a restore, which damage a
 * check finds, and the file after it was shrunk.
 */
#undef NDEBUG
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_descriptors.h"
#include "server/storage/key_prefixes.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/files/backup.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/files/file_use.h"
#include "server/storage/sqlite/files/shrink.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hf_status status;

static long file_system;             /* the type that the kernel reports; 0 = the real one */
static const char *remote_directory; /* it reports this type for paths with this; NULL = all */

int __real_statfs64(const char *path, struct statfs *ret);
int __wrap_statfs64(const char *path, struct statfs *ret);
int __wrap_statfs64(const char *path, struct statfs *ret) {
        int r = __real_statfs64(path, ret);

        if (file_system && (!remote_directory || strstr(path, remote_directory)))
                ret->f_type = file_system;
        return r;
}

/* The answer to the question who holds a lock. NULL: that of the kernel. */
static const struct flock *lock_of_others;
static int lock_error; /* errno of that question; 0 = none */

int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...) {
        va_list args;

        va_start(args, command);
        void *arg = va_arg(args, void *);
        va_end(args);
        if (command == F_OFD_GETLK && lock_error != 0) {
                errno = lock_error;
                return -1;
        }
        int r = __real_fcntl64(fd, command, arg);
        if (command == F_OFD_GETLK && lock_of_others)
                *(struct flock *)arg = *lock_of_others;
        return r;
}

static struct hfd_store *open_store(const char *name) {
        struct hfd_store *store = NULL;

        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store, &status) != 0)
                fail_msg("%s", status.message);
        return store;
}

/* A store that was compacted, partly swept, and written to afterwards. */
static struct hfd_store *make_store(const char *name) {
        struct hfd_store *store = open_store(name);
        char text[32];

        /* It identifies the file, so it is not 0; SQLite's numbers have a sign. */
        int64_t history = sqlite_fixture_sql(name, "SELECT value FROM meta WHERE name = 'history'");
        assert_true(history > 0 && history % 2 == 1);

        for (int i = 0; i < 300; i++) {
                (void)snprintf(text, sizeof text, "%d", i);
                assert_true(store_client_put(store, "/registry/often", text) > 0);
        }
        (void)store_client_put(store, "/registry/gone", "x");
        (void)store_client_delete(store, "/registry/gone");
        assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
        (void)store_client_put(store, "/registry/gone", "again");
        (void)store_client_put(store, "/registry/other", "one");
        (void)store_client_put(store, "/registry/other", "two");
        (void)store_client_delete(store, "/registry/other");
        return store;
}

static void assert_has(struct hfd_store *store, const char *key, const char *value) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, key, &reply), 0);
        assert_int_equal(reply.n_kvs, value ? 1 : 0);
        if (value)
                assert_string_equal(store_reply_value(&reply, 0), value);
        store_reply_deinit(&reply);
}

static uint64_t history_of(struct hfd_store *store) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, "/", &reply), 0);
        uint64_t history = reply.cluster_id;
        store_reply_deinit(&reply);
        return history;
}

/* Reads one byte of the file. Call this only while no store of this process has the file open: the
 * close would drop the locks of the store. */
static int byte_of(const char *name, off_t at) {
        FILE *file = fopen(sqlite_fixture_path(name), "re");

        assert_non_null(file);
        assert_int_equal(fseeko(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fclose(file), 0);
        return byte;
}

/* The files whose names begin with this. */
static int count_files(const char *beginning) {
        DIR *dir = opendir(sqlite_fixture_path(""));
        struct dirent *entry;
        int n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir)))
                n += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
        closedir(dir);
        return n;
}

static void ok(int r) {
        if (r != 0)
                fail_msg("%d: %s", r, status.message);
}

/* Each message is one line. */
static void expect_refused(int r, int error, const char *why) {
        if (r != error || !strstr(status.message, why) || strchr(status.message, '\n'))
                fail_msg("%d: \"%s\" does not say \"%s\"", r, status.message, why);
}

static int backup(const char *from, const char *to) {
        return hfd_sqlite_backup(sqlite_fixture_path(from), sqlite_fixture_path(to), &status);
}

static int restore_prefix(const char *from, const char *to, const char *prefix) {
        return hfd_sqlite_restore(sqlite_fixture_path(from), sqlite_fixture_path(to), prefix,
                                  &status);
}

static int restore(const char *from, const char *to) {
        return restore_prefix(from, to, "/registry");
}

/* ---- check ---- */

static char reported[4096];

static void add_fault(void *ctx, const char *text) {
        size_t n = strlen(reported);

        (void)snprintf(reported + n, sizeof reported - n, "%s\n", text);
}

static size_t check(const char *name) {
        struct hfd_sqlite_faults faults = {.report = add_fault};

        reported[0] = '\0';
        ok(hfd_sqlite_check(sqlite_fixture_path(name), &faults, &status));
        return faults.n;
}

static void expect_fault(const char *name, const char *text) {
        if (check(name) == 0 || !strstr(reported, text))
                fail_msg("%s: \"%s\" does not say \"%s\"", name, reported, text);
}

static void expect_no_fault(const char *name) {
        if (check(name) != 0)
                fail_msg("%s: %s", name, reported);
}

/* This test is the first one, because the process then keeps the library. */
static void test_the_first_command_loads_sqlite(void **state) {
        (void)sqlite_fixture_sql("first.db", "CREATE TABLE t (x)");
        expect_fault("first.db", "not a store");
}

static void test_a_sound_file_has_no_faults(void **state) {
        struct hfd_store *store = make_store("sound.db");

        expect_no_fault("sound.db"); /* while the store uses it, and may still sweep */
        store->ops->free(store);
        expect_no_fault("sound.db");
        store = open_store("new.db");
        expect_no_fault("new.db");
        store->ops->free(store);
        expect_no_fault("new.db");
}

/* /a has revisions 2 and 3, /b 4 and its deletion 5. */
static void make_two_keys(const char *name) {
        struct hfd_store *store = open_store(name);

        (void)store_client_put(store, "/a", "one");
        (void)store_client_put(store, "/a", "two");
        (void)store_client_put(store, "/b", "one");
        (void)store_client_delete(store, "/b");
        store->ops->free(store);
        expect_no_fault(name);
}

/* The first version of /a was removed by a compaction. */
#define COMPACTED_AT_2                                                                             \
        "DELETE FROM versions WHERE id = 32; INSERT INTO meta VALUES('compacted', 2); "

static void test_damage_of_the_contents_is_found(void **state) {
        static const struct {
                const char *sql, *fault;
        } damages[] = {
                {"DELETE FROM meta WHERE name = 'history'", "no history"},
                {"INSERT INTO meta VALUES('compacted', 6)", "compacted revision is 6"},
                {"INSERT INTO meta VALUES('compacted', -1)", "compacted revision is -1"},
                {"INSERT INTO meta VALUES('compacted', 3), ('swept', -1)", "up to revision 0"},
                {"INSERT INTO meta VALUES('compacted', 3), ('swept', 64)", "up to revision 4"},
                {"DELETE FROM versions WHERE id = 32", "revision 2, is missing"},
                {"UPDATE versions SET previous = 0 WHERE id = 48",
                 "has revision 2, but this one refers to revision 0"},
                {"UPDATE versions SET previous = 64 WHERE id = 48",
                 "has revision 2, but this one refers to revision 4"},
                {"UPDATE versions SET previous = 33 WHERE id = 32",
                 "revision 2, which is not an older one"},
                {"UPDATE versions SET previous = 32 WHERE id = 32",
                 "revision 2, which is not an older one"},
                {"UPDATE versions SET previous = -1 WHERE id = 32", "which is not an older one"},
                {"DELETE FROM versions WHERE id = 32; INSERT INTO meta VALUES('compacted', 1)",
                 "revision 2, is missing"},
                {COMPACTED_AT_2 "UPDATE versions SET created = 1 WHERE id = 48",
                 "creation revision, 1, is wrong"},
                {COMPACTED_AT_2 "UPDATE versions SET created = 4 WHERE id = 48",
                 "creation revision, 4, is wrong"},
                {"UPDATE versions SET value = NULL WHERE id = 64",
                 "/b, revision 5: it deletes a key that did not exist"},
                {"UPDATE versions SET key = 'a' || char(0) || 'b' WHERE id = 32",
                 "wrong type or size"},
                {"UPDATE versions SET key = hex(zeroblob(512)) WHERE id = 32",
                 "wrong type or size"},
                {"UPDATE versions SET id = 31 WHERE id = 32", "has the revision 1"},
                {"UPDATE versions SET key = '.holdfast/copying' WHERE key = '/a'", "not completed"},
                {"UPDATE versions SET created = 3 WHERE id = 48", "creation revision, 3, is wrong"},
                {"UPDATE versions SET created = 9 WHERE id = 32", "creation revision, 9, is wrong"},
                {"DELETE FROM versions WHERE id = 64; UPDATE versions SET previous = 0 "
                 "WHERE id = 80",
                 "deletes a key that did not exist"},
                {"UPDATE versions SET value = 'text' WHERE id = 32", "wrong type or size"},
                {"UPDATE versions SET key = '' WHERE id = 32", "wrong type or size"},
                {"UPDATE versions SET key = x'00' WHERE id = 32", "wrong type or size"},
                {"UPDATE versions SET key = x'2f61' WHERE key = '/a'", "wrong type or size"},
                {"UPDATE versions SET id = 3 WHERE id = 32", "has the revision 0"},
                {"UPDATE versions SET key = '/registry.holdfast/copying' WHERE key = '/a'",
                 "not completed"},
                {"DROP TABLE meta", "meta"},
                {"DROP INDEX versions_by_key", "versions_by_key"},
                {"PRAGMA user_version = 2", "schema 2"},
                {"PRAGMA application_id = 1", "not a store"},
        };
        char name[32];

        for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
                (void)snprintf(name, sizeof name, "damaged-%zu.db", i);
                make_two_keys(name);
                (void)sqlite_fixture_sql(name, damages[i].sql);
                expect_fault(name, damages[i].fault);
        }
}

/* What a store may write as well, at the edge of what is damage. */
static void test_what_looks_like_damage_is_none(void **state) {
        static const char *const changes[] = {
                "INSERT INTO meta VALUES('compacted', 5)",
                "INSERT INTO meta VALUES('compacted', 3), ('swept', 63)",
                COMPACTED_AT_2 "INSERT INTO meta VALUES('swept', 47)",
                COMPACTED_AT_2 "UPDATE versions SET created = 3 WHERE id = 48",
                ("UPDATE versions SET key = 'x' || substr(hex(zeroblob(511)), 1, 1022) "
                 "WHERE key = '/a'"),
                "UPDATE versions SET key = '/registry.holdfast/copying' WHERE key = '/b'",
                "UPDATE versions SET key = '/registry.holdfast/copyinh' WHERE key = '/a'",
        };
        char name[32];

        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
                (void)snprintf(name, sizeof name, "changed-%zu.db", i);
                make_two_keys(name);
                (void)sqlite_fixture_sql(name, changes[i]);
                expect_no_fault(name);
        }
}

static unsigned n_reports;

static void count_report(void *ctx, const char *text) { n_reports++; }

static void test_so_many_faults_are_reported(void **state) {
        struct hfd_sqlite_faults faults = {.report = count_report};
        struct hfd_store *store = open_store("many.db");

        for (int i = 0; i < HFD_SQLITE_FAULTS_MAX + 1; i++)
                (void)store_client_put(store, "/a", "x");
        store->ops->free(store);
        (void)sqlite_fixture_sql("many.db", "UPDATE versions SET value = 'text'");
        ok(hfd_sqlite_check(sqlite_fixture_path("many.db"), &faults, &status));
        assert_int_equal(faults.n, HFD_SQLITE_FAULTS_MAX + 1);
        assert_int_equal(n_reports, HFD_SQLITE_FAULTS_MAX);
        assert_non_null(strstr(faults.first, "the version with the id 32 "));
}

static void overwrite(const char *name, off_t at, size_t n) {
        int fd = open(sqlite_fixture_path(name), O_WRONLY);

        assert_true(fd >= 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(pwrite(fd, "!", 1, at + (off_t)i), 1);
        assert_int_equal(close(fd), 0);
}

static void test_damage_of_the_file_is_found(void **state) {
        struct hfd_sqlite_faults faults = {0};
        struct hfd_store *store = make_store("bytes.db");

        store->ops->free(store);
        ok(backup("bytes.db", "bytes-2.db"));
        ok(backup("bytes.db", "bytes-3.db"));
        overwrite("bytes.db", 3 * 4096 + 8, 64);
        assert_true(check("bytes.db") > 0);
        assert_non_null(strstr(reported, "SQLite: "));
        assert_null(strstr(reported, "*** in database")); /* a heading, which says nothing */
        expect_refused(backup("bytes.db", "never.db"), HF_E_INVALID, "");
        assert_int_equal(truncate(sqlite_fixture_path("bytes-2.db"), 2 * 4096), 0);
        assert_true(check("bytes-2.db") > 0);
        expect_refused(restore("bytes-2.db", "never.db"), HF_E_INVALID, "damaged");
        overwrite("bytes-3.db", 0, 100);
        expect_fault("bytes-3.db", "not a database");
        expect_refused(restore("bytes-3.db", "never.db"), HF_E_INVALID, "not a database");
        assert_int_equal(truncate(sqlite_fixture_path("bytes-3.db"), 0), 0);
        expect_fault("bytes-3.db", "not a store");
        assert_int_equal(count_files("never.db"), 0);
        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path("missing.db"), &faults, &status),
                         HF_E_NOT_FOUND);
}

/* ---- backup ---- */

static void test_a_backup_has_the_state_of_its_time(void **state) {
        struct hfd_store *store = make_store("live.db");
        struct stat info;

        ok(backup("live.db", "backup.db"));
        uint64_t revision = store_client_revision(store);
        assert_true(store_client_put(store, "/registry/often", "later") > revision);
        assert_int_equal(stat(sqlite_fixture_path("backup.db"), &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(count_files("backup.db"), 1);
        expect_no_fault("backup.db");
        assert_int_equal(count_files("backup.db"), 1);
        assert_int_equal(sqlite_fixture_sql("backup.db", "PRAGMA auto_vacuum"), 2);
        struct hfd_store *copy = open_store("backup.db");
        assert_int_equal(store_client_revision(copy), revision);
        assert_int_equal(history_of(copy), history_of(store));
        assert_has(copy, "/registry/often", "299");
        assert_has(copy, "/registry/gone", "again");
        assert_has(copy, "/registry/other", NULL);
        copy->ops->free(copy);
        store->ops->free(store);
}

static void test_a_backup_replaces_nothing(void **state) {
        struct hfd_store *store = make_store("a.db");
        struct stat before, after;

        ok(backup("a.db", "b.db"));
        assert_int_equal(stat(sqlite_fixture_path("b.db"), &before), 0);
        expect_refused(backup("a.db", "b.db"), HF_E_EXISTS, "b.db exists");
        assert_int_equal(stat(sqlite_fixture_path("b.db"), &after), 0);
        assert_true(before.st_ino == after.st_ino &&
                    before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
        /* Its WAL must not be called something to move away. */
        expect_refused(backup("a.db", "a.db"), HF_E_EXISTS, "a.db exists");
        expect_refused(backup("missing.db", "c.db"), HF_E_NOT_FOUND, "missing.db");
        (void)sqlite_fixture_sql("other.db", "CREATE TABLE theirs(x)");
        expect_refused(backup("other.db", "c.db"), HF_E_INVALID, "not a store");
        assert_int_equal(count_files("c.db"), 0);
        assert_int_equal(symlink("nowhere", sqlite_fixture_path("d.db")), 0);
        expect_refused(backup("a.db", "d.db"), HF_E_EXISTS, "d.db exists");
        store->ops->free(store);
}

/* SQLite would take the files beside the target for the target's own, so all their names must fit
 * into a path. The longest one ends in -journal. */
static void test_a_target_has_room_for_the_names_beside_it(void **state) {
        const char *directory = sqlite_fixture_path("");
        struct hfd_store *store = open_store("short.db");
        char source[128], target[PATH_MAX];

        store->ops->free(store);
        (void)snprintf(source, sizeof source, "%s", sqlite_fixture_path("short.db"));
        for (size_t n = PATH_MAX - 9; n <= PATH_MAX - 8; n++) {
                size_t n_directory = strlen(directory);
                memcpy(target, directory, n_directory);
                memset(target + n_directory, '/', n - n_directory);
                strcpy(target + n - 4, "t.db");
                int r = hfd_sqlite_backup(source, target, &status);
                if (n == PATH_MAX - 9)
                        ok(r);
                else
                        expect_refused(r, HF_E_TOO_LARGE, "the path is too long");
                assert_int_equal(count_files("t.db"), n == PATH_MAX - 9 ? 1 : 0);
                (void)unlink(target);
        }
}

/* ---- restore ---- */

/* The limit of a file's size stands for a disk that is full: only the target is written. */
static void test_a_backup_that_cannot_be_written_names_the_target(void **state) {
        struct hfd_store *store = make_store("source.db");
        struct rlimit before, small;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        small = (struct rlimit){.rlim_cur = 8192, .rlim_max = before.rlim_max};
        (void)signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int r = backup("source.db", "too-large.db");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        expect_refused(r, -EIO, "source.db cannot be copied to");
        expect_refused(r, -EIO, "too-large.db");
        assert_int_equal(count_files("too-large.db"), 0);
        store->ops->free(store);
}

static int (*real_step)(sqlite3_stmt *statement);
static int (*real_errcode)(sqlite3 *db);
static bool is_full; /* the last step was of the copy */

static int full_step(sqlite3_stmt *statement) {
        is_full = strncmp(sqlite3_sql(statement), "VACUUM INTO", 11) == 0;
        return is_full ? SQLITE_FULL : real_step(statement);
}
static int full_errcode(sqlite3 *db) { return is_full ? SQLITE_FULL : real_errcode(db); }

/* SQLite reports a full disk too when a damaged source has a row with an impossible number. */
static void test_a_source_that_is_damaged_is_not_a_full_disk(void **state) {
        struct hfd_store *store = make_store("sound-2.db");

        store->ops->free(store);
        ok(backup("sound-2.db", "unsound-2.db"));
        (void)sqlite_fixture_sql("unsound-2.db", "UPDATE versions SET value = 'text' WHERE id = "
                                                 "(SELECT max(id) FROM versions)");
        const struct hfd_sqlite_library real = hfd_sqlite;
        real_step = real.step;
        real_errcode = real.errcode;
        for (int i = 0; i < 2; i++) {
                hfd_sqlite.step = full_step;
                hfd_sqlite.errcode = full_errcode;
                int r = backup(i == 0 ? "sound-2.db" : "unsound-2.db", "never-2.db");
                hfd_sqlite = real;
                if (i == 0)
                        expect_refused(r, -ENOSPC, "never-2.db");
                else
                        expect_refused(r, HF_E_INVALID,
                                       "unsound-2.db is damaged: 1 fault, the first: ");
                assert_int_equal(count_files("never-2.db"), 0);
        }
}

static void test_no_descriptor_is_left(void **state) {
        struct hfd_sqlite_shrunk shrunk;
        struct hfd_store *store = make_store("open.db");

        store->ops->free(store);
        ok(backup("open.db", "open-2.db"));
        unsigned n = count_descriptors();
        ok(backup("open.db", "open-3.db"));
        ok(restore("open-3.db", "open-4.db"));
        ok(hfd_sqlite_shrink(sqlite_fixture_path("open.db"), &shrunk, &status));
        expect_no_fault("open.db");
        assert_int_equal(count_descriptors(), n);
}

/* A backup is checked before it gets its name, and so is what is restored. */
static void test_a_damaged_source_leaves_no_backup(void **state) {
        struct hfd_store *store = make_store("sound-3.db");

        store->ops->free(store);
        ok(backup("sound-3.db", "unsound-3.db"));
        (void)sqlite_fixture_sql("unsound-3.db", "UPDATE versions SET value = 'text' WHERE id = "
                                                 "(SELECT max(id) FROM versions)");
        expect_refused(backup("unsound-3.db", "never-3.db"), HF_E_INVALID,
                       "found 1 fault, the first: ");
        expect_refused(restore("unsound-3.db", "never-3.db"), HF_E_INVALID,
                       "unsound-3.db is damaged: 1 fault, the first: ");
        assert_int_equal(count_files("never-3.db"), 0);
}

static void test_a_restored_file_has_a_history_of_its_own(void **state) {
        struct hfd_store *store = make_store("before.db");
        struct store_reply reply;

        (void)store_client_put(store, "/registry.holdfast/epoch", "first");
        uint64_t revision = store_client_revision(store), history = history_of(store);
        ok(backup("before.db", "kept.db"));
        store->ops->free(store);
        ok(restore("kept.db", "after.db"));
        assert_int_equal(count_files("after.db"), 1);
        expect_no_fault("after.db");
        store = open_store("after.db");
        assert_int_not_equal(history_of(store), history);
        assert_int_equal(store_client_revision(store), revision + HFD_SQLITE_RESTORE_STEP);
        assert_has(store, "/registry/often", "299");
        assert_has(store, "/registry/other", NULL);
        assert_int_equal(store_client_get(store, "/registry.holdfast/epoch", &reply), 0);
        assert_string_not_equal(store_reply_value(&reply, 0), "first");
        assert_int_equal(reply.kvs[0].create_revision, revision);
        store_reply_deinit(&reply);
        /* What clients of the lost history have seen lies between the two revisions. */
        assert_int_equal(store_client_list(store, "/", NULL, revision + 5, 0, true, &reply),
                         HF_E_GONE);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_put(store, "/registry/new", "x"),
                         revision + HFD_SQLITE_RESTORE_STEP + 1);
        store->ops->free(store);
        assert_int_equal(byte_of("after.db", 18), 2); /* it has a log again (WAL) */
        expect_no_fault("after.db");
        /* Each restore is another history. */
        ok(restore("kept.db", "after-2.db"));
        struct hfd_store *one = open_store("after.db"), *two = open_store("after-2.db");
        assert_int_not_equal(history_of(one), history_of(two));
        one->ops->free(one);
        two->ops->free(two);
}

static void test_a_restore_needs_a_prefix_that_the_backup_has(void **state) {
        struct hfd_store *store = open_store("empty.db");

        /* With nothing in the backup, every prefix will do. */
        store->ops->free(store);
        ok(backup("empty.db", "empty-backup.db"));
        ok(restore_prefix("empty-backup.db", "empty-after.db", "/other"));

        store = open_store("two.db");
        (void)store_client_put(store, "/two/a", "x");
        store->ops->free(store);
        ok(backup("two.db", "two-backup.db"));
        /* There is no key that only holdfastd writes, so the message names another one. */
        expect_refused(restore_prefix("two-backup.db", "never.db", "/tw"), HF_E_NOT_FOUND,
                       "/two/a");
        store = open_store("two.db");
        (void)store_client_put(store, "/one.holdfast/epoch", "x");
        (void)store_client_put(store, "/one.holdfast/compact", "x");
        (void)store_client_put(store, "/t/wo.holdfast/terms/a/b", "x");
        store->ops->free(store);
        ok(backup("two.db", "two-backup-2.db"));
        expect_refused(restore_prefix("two-backup-2.db", "never.db", "/registry"), HF_E_NOT_FOUND,
                       "no keys of --etcd-prefix=/registry, but keys of /one, /t/wo");
        assert_int_equal(count_files("never.db"), 0);
        ok(restore_prefix("two-backup-2.db", "one-after.db", "/one"));
        ok(restore_prefix("two-backup-2.db", "two-after.db", "/two"));
}

/* The message lists as many prefixes as fit, and says when there are more. */
static void test_the_prefixes_of_a_backup_are_named(void **state) {
        struct hfd_key_prefixes prefixes = {.wanted = "/other"};
        char key[128];

        ok(hfd_key_prefixes_check(&prefixes, "x.db", &status)); /* there was no key */
        hfd_key_prefixes_add(&prefixes, "/registry/a");
        expect_refused(hfd_key_prefixes_check(&prefixes, "x.db", &status), HF_E_NOT_FOUND,
                       "x.db has no keys of --etcd-prefix=/other; its first key is /registry/a");
        for (int n = 64; n >= 63; n--) { /* the longer one is left out */
                memset(key, 'a' + n - 63, (size_t)n);
                strcpy(key + n, ".holdfast/x");
                hfd_key_prefixes_add(&prefixes, key);
        }
        assert_int_equal(prefixes.n, 1);
        assert_int_equal(strlen(prefixes.found[0]), 63);
        hfd_key_prefixes_add(&prefixes, "/b.holdfast/x");
        hfd_key_prefixes_add(&prefixes, "/b.holdfast/y");
        hfd_key_prefixes_add(&prefixes, "/c.holdfast/x");
        assert_int_equal(prefixes.n, 3);
        hfd_key_prefixes_add(&prefixes, "/d.holdfast/x");
        expect_refused(hfd_key_prefixes_check(&prefixes, "x.db", &status), HF_E_NOT_FOUND,
                       "aaa, /b, /c, /d");
        assert_null(strstr(status.message, "and others"));
        hfd_key_prefixes_add(&prefixes, "/d.holdfast/z");
        assert_false(prefixes.has_more);
        hfd_key_prefixes_add(&prefixes, "/e.holdfast/x");
        expect_refused(hfd_key_prefixes_check(&prefixes, "x.db", &status), HF_E_NOT_FOUND,
                       "/d and others");
        hfd_key_prefixes_add(&prefixes, "/otherwise/x");
        assert_false(prefixes.has_wanted);
        hfd_key_prefixes_add(&prefixes, "/other/x");
        ok(hfd_key_prefixes_check(&prefixes, "x.db", &status));
}

static void test_a_restore_needs_a_free_name(void **state) {
        struct hfd_store *store = make_store("full.db");

        ok(backup("full.db", "full-backup.db"));
        store->ops->free(store);
        expect_refused(restore("full-backup.db", "full.db"), HF_E_EXISTS, "full.db exists");
        assert_int_equal(rename(sqlite_fixture_path("full.db"),
                                sqlite_fixture_path("elsewhere.db")),
                         0);
        int fd = open(sqlite_fixture_path("full.db-wal"), O_CREAT | O_WRONLY | O_EXCL, 0600);
        assert_int_equal(close(fd), 0);
        expect_refused(restore("full-backup.db", "full.db"), HF_E_EXISTS, "full.db-wal exists");
        assert_int_equal(unlink(sqlite_fixture_path("full.db-wal")), 0);
        ok(restore("full-backup.db", "full.db"));
}

/* ---- shrink ---- */

static void test_a_file_that_is_used_is_not_shrunk(void **state) {
        struct hfd_store *store = make_store("used.db");
        struct hfd_sqlite_shrunk shrunk;

        memset(&shrunk, 0xff, sizeof shrunk);
        expect_refused(hfd_sqlite_shrink(sqlite_fixture_path("used.db"), &shrunk, &status),
                       HF_E_BUSY, "used.db is used");
        assert_int_equal(shrunk.n_removed, 0);
        assert_int_equal(shrunk.n_bytes_after, 0);
        store->ops->free(store);
        ok(hfd_sqlite_check_unused(sqlite_fixture_path("used.db"), &status));
        ok(hfd_sqlite_shrink(sqlite_fixture_path("used.db"), &shrunk, &status));
}

/* The kernel knows no process if the holder is in another PID namespace. */
static void test_a_lock_of_an_unknown_process_is_a_use(void **state) {
        const struct flock lock = {.l_type = F_WRLCK, .l_pid = 0};
        struct hfd_store *store = open_store("foreign.db");
        char path[128];

        store->ops->free(store);
        (void)snprintf(path, sizeof path, "%s", sqlite_fixture_path("foreign.db"));
        lock_of_others = &lock;
        int r = hfd_sqlite_check_unused(path, &status);
        lock_of_others = NULL;
        expect_refused(r, HF_E_BUSY, "foreign.db is used by another process: ");
        lock_error = ENOLCK;
        r = hfd_sqlite_check_unused(path, &status);
        lock_error = 0;
        expect_refused(r, -ENOLCK, "cannot ask for the locks of ");
}

/* Its log is not copied into it, either. */
static void test_a_file_that_is_no_store_is_not_changed_by_shrinking(void **state) {
        struct hfd_sqlite_shrunk shrunk;
        struct stat before, after;
        sqlite3 *db;

        (void)sqlite_fixture_sql("theirs.db", "PRAGMA journal_mode=WAL; CREATE TABLE theirs(x)");
        assert_int_equal(sqlite3_open(sqlite_fixture_path("theirs.db"), &db), SQLITE_OK);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        assert_int_equal(sqlite3_exec(db, "INSERT INTO theirs VALUES(7)", NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        ok(stat(sqlite_fixture_path("theirs.db-wal"), &before));
        assert_true(before.st_size > 0);
        expect_refused(hfd_sqlite_shrink(sqlite_fixture_path("theirs.db"), &shrunk, &status),
                       HF_E_INVALID, "not a store");
        ok(stat(sqlite_fixture_path("theirs.db-wal"), &after));
        assert_int_equal(after.st_size, before.st_size);
}

static void test_a_store_without_writes_is_shrunk(void **state) {
        struct hfd_store *store = open_store("unwritten.db");
        struct hfd_sqlite_shrunk shrunk;

        store->ops->free(store);
        ok(hfd_sqlite_shrink(sqlite_fixture_path("unwritten.db"), &shrunk, &status));
        assert_int_equal(shrunk.revision, 0);
        assert_int_equal(shrunk.n_removed, 0);
        expect_no_fault("unwritten.db");
        (void)sqlite_fixture_sql("unwritten.db",
                                 "INSERT INTO versions VALUES(-16, 0, -1, '/a', x'')");
        expect_refused(hfd_sqlite_shrink(sqlite_fixture_path("unwritten.db"), &shrunk, &status),
                       HF_E_INVALID, "unwritten.db is damaged: a revision in it is negative");
}

static void test_shrinking_leaves_the_current_versions_and_the_revision(void **state) {
        struct hfd_store *store = open_store("large.db");
        struct hfd_sqlite_shrunk shrunk;
        struct store_reply reply;
        struct stat info;
        char *value = malloc(20001);

        assert_non_null(value);
        memset(value, 'v', 20000);
        value[20000] = '\0';
        for (int i = 0; i < 100; i++)
                (void)store_client_put(store, "/registry/large", value);
        free(value);
        (void)store_client_put(store, "/registry/large", "small");
        (void)store_client_put(store, "/registry/gone", "x");
        (void)store_client_delete(store, "/registry/gone");
        (void)store_client_put(store, "/registry/last", "x");
        uint64_t revision = store_client_delete(store, "/registry/last");
        store->ops->free(store);
        ok(hfd_sqlite_shrink(sqlite_fixture_path("large.db"), &shrunk, &status));
        assert_int_equal(shrunk.revision, revision);
        assert_int_equal(shrunk.n_removed, 100 + 2 + 1);
        assert_true(shrunk.n_bytes_before > 2000000 && shrunk.n_bytes_after < 65536);
        assert_int_equal(stat(sqlite_fixture_path("large.db"), &info), 0);
        assert_int_equal(shrunk.n_bytes_after, info.st_size); /* there is no log any more */
        assert_int_equal(sqlite_fixture_sql("large.db", "PRAGMA freelist_count"), 0);
        assert_int_equal(sqlite_fixture_sql("large.db", "SELECT count(*) FROM versions"), 2);
        /* Nothing is left to sweep. */
        assert_int_equal(sqlite_fixture_sql("large.db",
                                            "SELECT value FROM meta WHERE name = 'swept'"),
                         (int64_t)revision * HFD_TXN_MAX - 1);
        expect_no_fault("large.db");
        store = open_store("large.db");
        assert_int_equal(store_client_revision(store), revision);
        assert_has(store, "/registry/large", "small");
        assert_int_equal(store_client_list(store, "/", NULL, revision - 1, 0, true, &reply),
                         HF_E_GONE);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_put(store, "/registry/last", "y"), revision + 1);
        store->ops->free(store);
        expect_no_fault("large.db");
        ok(hfd_sqlite_shrink(sqlite_fixture_path("large.db"), &shrunk, &status));
        assert_int_equal(shrunk.n_removed, 1); /* the deletion of /registry/last */
}

/* On each of them a file is refused with one line, and nothing is made. */
static void test_a_network_file_system_is_refused(void **state) {
        static const struct {
                long type; /* as in statfs(2) */
                const char *name;
        } systems[] = {{0x6969, "(NFS)"},        {0x517b, "(SMB)"},        {0xff534d42, "(CIFS)"},
                       {0xfe534d42, "(SMB)"},    {0x00c36400, "(Ceph)"},   {0x5346414f, "(AFS)"},
                       {0x01021997, "(9P)"},     {0x0bd00bd0, "(Lustre)"}, {0x47504653, "(GPFS)"},
                       {0x19830326, "(BeeGFS)"}, {0x73757245, "(Coda)"},   {0x7461636f, "(OCFS2)"},
                       {0x01161970, "(GFS2)"},   {0x6b414653, "(AFS)"}};
        const char *path = sqlite_fixture_path("remote.db");
        struct hfd_store *store = NULL;

        for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
                file_system = systems[i].type;
                assert_int_equal(hfd_sqlite_store_new(&host, path, true, &store, &status),
                                 HF_E_INVALID);
                assert_null(store);
                assert_non_null(strstr(status.message, path));
                assert_non_null(strstr(status.message, systems[i].name));
                assert_non_null(strstr(status.message, "use a local disk, or etcd"));
                assert_null(strchr(status.message, '\n'));
                assert_int_equal(access(path, F_OK), -1);
        }
        file_system = 0xef53; /* ext4 */
        store = open_store("remote.db");
        store->ops->free(store);
        file_system = 0;
}

/* SQLite has its log and its locks beside the file, and not beside the link. */
static void test_a_link_to_a_network_file_system_is_refused(void **state) {
        struct hfd_store *store = NULL;
        char target[256];

        assert_int_equal(mkdir(sqlite_fixture_path("remote-dir"), 0700), 0);
        (void)snprintf(target, sizeof target, "%s", sqlite_fixture_path("remote-dir/a.db"));
        store = open_store("remote-dir/a.db");
        store->ops->free(store);
        assert_int_equal(unlink(sqlite_fixture_path("remote-dir/a.db-notify")), 0);
        assert_int_equal(symlink(target, sqlite_fixture_path("near.db")), 0);
        file_system = 0x6969;
        remote_directory = "remote-dir";
        int r = hfd_sqlite_store_new(&host, sqlite_fixture_path("near.db"), true, &store, &status);
        file_system = 0;
        remote_directory = NULL;
        expect_refused(r, HF_E_INVALID, "remote-dir/a.db is on a network file system (NFS)");
        assert_int_equal(access(sqlite_fixture_path("remote-dir/a.db-notify"), F_OK), -1);
        assert_int_equal(unlink(target), 0);
        (void)unlink(sqlite_fixture_path("remote-dir/a.db-wal"));
        (void)unlink(sqlite_fixture_path("remote-dir/a.db-shm"));
        assert_int_equal(rmdir(sqlite_fixture_path("remote-dir")), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_command_loads_sqlite),
                cmocka_unit_test(test_a_network_file_system_is_refused),
                cmocka_unit_test(test_a_link_to_a_network_file_system_is_refused),
                cmocka_unit_test(test_a_sound_file_has_no_faults),
                cmocka_unit_test(test_damage_of_the_contents_is_found),
                cmocka_unit_test(test_what_looks_like_damage_is_none),
                cmocka_unit_test(test_so_many_faults_are_reported),
                cmocka_unit_test(test_damage_of_the_file_is_found),
                cmocka_unit_test(test_a_backup_has_the_state_of_its_time),
                cmocka_unit_test(test_a_backup_replaces_nothing),
                cmocka_unit_test(test_a_target_has_room_for_the_names_beside_it),
                cmocka_unit_test(test_a_backup_that_cannot_be_written_names_the_target),
                cmocka_unit_test(test_a_source_that_is_damaged_is_not_a_full_disk),
                cmocka_unit_test(test_no_descriptor_is_left),
                cmocka_unit_test(test_a_damaged_source_leaves_no_backup),
                cmocka_unit_test(test_a_restored_file_has_a_history_of_its_own),
                cmocka_unit_test(test_a_restore_needs_a_prefix_that_the_backup_has),
                cmocka_unit_test(test_the_prefixes_of_a_backup_are_named),
                cmocka_unit_test(test_a_restore_needs_a_free_name),
                cmocka_unit_test(test_a_file_that_is_used_is_not_shrunk),
                cmocka_unit_test(test_a_lock_of_an_unknown_process_is_a_use),
                cmocka_unit_test(test_a_file_that_is_no_store_is_not_changed_by_shrinking),
                cmocka_unit_test(test_a_store_without_writes_is_shrunk),
                cmocka_unit_test(test_shrinking_leaves_the_current_versions_and_the_revision),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
