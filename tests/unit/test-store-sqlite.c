/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is special about a store in a file of SQLite: which files it takes, two stores on one file,
 * what survives a new start, and what a compaction leaves. The contract of the storage interface is
 * tested by store-conformance, store-operations and store-watches.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/storage/keys.h"
#include "server/storage/sqlite/store.h"
#include "store_client.h"
#include "watch_recorder.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static char directory[64];

static const char *path_of(const char *name) {
        static char paths[4][128];
        static unsigned next;
        char *path = paths[next++ % 4];

        (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
        return path;
}

static int make_directory(void **state) {
        (void)snprintf(directory, sizeof directory, "/tmp/hfd-sqlite-XXXXXX");
        return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
        char command[128];

        (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
        return system(command);
}

static struct hfd_store *open_store(const char *name) {
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        if (hfd_sqlite_store_new(&host, path_of(name), true, &store, &status) != 0)
                fail_msg("%s", status.message);
        return store;
}

static void expect_refused(const char *name, bool create, const char *why) {
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        assert_int_equal(hfd_sqlite_store_new(&host, path_of(name), create, &store, &status),
                         HF_E_INVALID);
        if (!strstr(status.message, why) || !strstr(status.message, path_of(name)))
                fail_msg("\"%s\" does not say \"%s\" and the file", status.message, why);
}

/* Runs SQL on the file, as another program would. Returns the first number of the last row. */
static int64_t sql(const char *name, const char *text) {
        sqlite3 *db;
        sqlite3_stmt *statement;
        int64_t value = 0;

        assert_int_equal(sqlite3_open(path_of(name), &db), SQLITE_OK);
        for (const char *at = text; *at;) {
                assert_int_equal(sqlite3_prepare_v2(db, at, -1, &statement, &at), SQLITE_OK);
                while (sqlite3_step(statement) == SQLITE_ROW)
                        value = sqlite3_column_int64(statement, 0);
                assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
        }
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        return value;
}

/* ---- files ---- */

static void test_a_new_file_is_private_and_keeps_what_was_written(void **state) {
        struct hfd_store *store = open_store("store.db");
        struct store_reply reply;
        struct stat info;
        uint64_t written = store_client_put(store, "/a", "one"), deleted;

        assert_true(written > 1);
        assert_true(store_client_put(store, "/b", "two") > written);
        deleted = store_client_delete(store, "/b");
        store->ops->free(store);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(stat(path_of(i == 0 ? "store.db" : "store.db-notify"), &info), 0);
                assert_int_equal(info.st_mode & 0777, 0600);
        }
        store = open_store("store.db");
        assert_int_equal(store_client_revision(store), deleted);
        assert_int_equal(store_client_get(store, "/a", &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), "one");
        assert_int_equal(reply.kvs[0].mod_revision, written);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_mod_revision(store, "/b"), 0);
        store->ops->free(store);
}

static void test_files_that_are_no_store_are_refused_and_kept(void **state) {
        int fd = open(path_of("text"), O_CREAT | O_WRONLY, 0600);

        for (int i = 0; i < 200; i++)
                assert_int_equal(write(fd, "this is no database\n", 20), 20);
        assert_int_equal(close(fd), 0);
        expect_refused("text", true, "not a database");
        (void)sql("other", "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(7)");
        expect_refused("other", true, "another program");
        assert_int_equal(sql("other", "SELECT x FROM theirs"), 7);
        struct hfd_store *store = open_store("later");
        store->ops->free(store);
        (void)sql("later", "PRAGMA user_version=2");
        expect_refused("later", true, "later version");
        assert_int_equal(sql("later", "PRAGMA user_version"), 2);
        expect_refused("missing", false, "cannot be opened");
        assert_int_equal(access(path_of("missing"), F_OK), -1);
        expect_refused("no/directory", true, "cannot be created");
}

/* ---- two stores on one file, as two processes have them ---- */

static void test_another_store_sees_a_commit(void **state) {
        struct hfd_store *one = open_store("shared.db"), *two = open_store("shared.db");
        static struct watch_recorder recorder;
        char end[HFD_KEY_MAX];
        struct store_reply reply;

        assert_int_equal(hfd_key_prefix_end(end, "/"), 0);
        assert_int_equal(watch_recorder_start(&recorder, two, "/", end,
                                              store_client_revision(one) + 1),
                         0);
        uint64_t revision = store_client_put(one, "/a", "from one");
        assert_int_equal(store_client_get(two, "/a", &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_int_equal(reply.kvs[0].mod_revision, revision);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_put(two, "/a", "from two"), revision + 1);
        watch_recorder_await(&recorder, 2);
        assert_string_equal(recorder.events[0].value->data, "from one");
        assert_string_equal(recorder.events[1].value->data, "from two");
        watch_recorder_stop(&recorder);
        one->ops->free(one);
        two->ops->free(two);
}

/* ---- compaction ---- */

/* Waits until the sweep has removed everything but n rows. */
static void await_rows(const char *name, int64_t n) {
        for (int i = 0; sql(name, "SELECT count(*) FROM versions") != n; i++) {
                assert_true(i < 3000);
                (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
}

static void test_a_compaction_leaves_the_current_versions(void **state) {
        struct hfd_store *store = open_store("compacted.db");
        struct store_reply reply;
        char text[16];

        for (int i = 0; i < 400; i++) {
                (void)snprintf(text, sizeof text, "%d", i);
                assert_true(store_client_put(store, "/often", text) > 0);
        }
        (void)store_client_put(store, "/gone", "x");
        (void)store_client_delete(store, "/gone");
        uint64_t kept = store_client_put(store, "/often", "last but one");
        (void)store_client_put(store, "/often", "last");
        assert_int_equal(store_client_compact(store, kept), 0);
        assert_int_equal(store_client_compact(store, kept), HF_E_GONE);
        await_rows("compacted.db", 2);
        assert_int_equal(store_client_list(store, "/", NULL, kept, 0, false, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), "last but one");
        store_reply_deinit(&reply);
        assert_int_equal(store_client_list(store, "/", NULL, kept - 1, 0, false, &reply),
                         HF_E_GONE);
        store_reply_deinit(&reply);
        store->ops->free(store);
}

/* The newest write is a deletion, and the compaction is at its revision: the revision stays. */
static void test_a_compaction_keeps_the_revision(void **state) {
        struct hfd_store *store = open_store("empty.db");

        (void)store_client_put(store, "/a", "x");
        uint64_t revision = store_client_delete(store, "/a");
        assert_int_equal(store_client_compact(store, revision), 0);
        await_rows("empty.db", 1);
        store->ops->free(store);
        store = open_store("empty.db");
        assert_int_equal(store_client_revision(store), revision);
        assert_int_equal(store_client_put(store, "/b", "y"), revision + 1);
        store->ops->free(store);
}

/* A process that ends before it has removed everything leaves that to the next one. */
static void test_a_sweep_goes_on_after_a_restart(void **state) {
        struct hfd_store *store = open_store("swept.db");

        for (int i = 0; i < 300; i++)
                (void)store_client_put(store, "/often", "x");
        uint64_t revision = store_client_revision(store);
        store->ops->free(store);
        (void)sql("swept.db", "DELETE FROM meta WHERE name IN ('compacted', 'swept')");
        char text[96];
        (void)snprintf(text, sizeof text, "INSERT INTO meta VALUES('compacted', %llu)",
                       (unsigned long long)revision);
        (void)sql("swept.db", text);
        store = open_store("swept.db");
        await_rows("swept.db", 1);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_new_file_is_private_and_keeps_what_was_written),
                cmocka_unit_test(test_files_that_are_no_store_are_refused_and_kept),
                cmocka_unit_test(test_another_store_sees_a_commit),
                cmocka_unit_test(test_a_compaction_leaves_the_current_versions),
                cmocka_unit_test(test_a_compaction_keeps_the_revision),
                cmocka_unit_test(test_a_sweep_goes_on_after_a_restart),
        };
        return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
