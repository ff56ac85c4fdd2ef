/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of a store in a file of SQLite only: which files it opens, two stores on one file,
 * which data survives a restart, and the file after a compaction. The contract of the storage
 * interface is tested by store-conformance, store-operations and store-watches.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_descriptors.h"
#include "server/storage/keys.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "time_units.h"
#include "watch_recorder.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hfd_store *open_store(const char *name) {
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store, &status) != 0)
                fail_msg("%s", status.message);
        return store;
}

static void expect_refused(const char *name, bool create, const char *why) {
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path(name), create, &store,
                                              &status),
                         HF_E_INVALID);
        if (!strstr(status.message, why) || !strstr(status.message, sqlite_fixture_path(name)))
                fail_msg("\"%s\" does not say \"%s\" and the file", status.message, why);
}

/* What one row says of another is true. */
static void expect_sound(const char *name) {
        struct hfd_sqlite_faults faults = {0};
        struct hf_status status = {0};

        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path(name), &faults, &status), 0);
        if (faults.n != 0)
                fail_msg("%s", faults.first);
}

/* Waits until the sweep has removed everything but n rows. */
static void await_rows(const char *name, int64_t n) {
        hf_nsec until = in_msec(PATIENCE_MSEC);

        while (sqlite_fixture_sql(name, "SELECT count(*) FROM versions") != n) {
                assert_true(in_msec(0) < until);
                sched_yield();
        }
}

/* ---- memory ---- */

/* A server without clients should be small, and has four connections to its file. mallinfo2 counts
 * nothing under a sanitizer. */
static void test_an_open_store_sets_no_memory_aside(void **state) {
        struct mallinfo2 before = mallinfo2(), open;
        struct hfd_store *store = open_store("small.db");

        (void)store_client_put(store, "/a", "one");
        open = mallinfo2();
        assert_int_equal(sqlite3_memory_used(), 0); /* it does not count, which takes a lock */
        assert_true(open.uordblks + open.hblkhd <
                    before.uordblks + before.hblkhd + (size_t)256 * 1024);
        store->ops->free(store);
}

/* ---- files ---- */

static void test_a_new_file_is_private_and_keeps_what_was_written(void **state) {
        static const char *const files[] = {"store.db", "store.db-wal", "store.db-shm",
                                            "store.db-notify"};
        struct hfd_store *store = open_store("store.db");
        struct store_reply reply;
        struct stat info;
        uint64_t written = store_client_put(store, "/a", "one"), deleted;

        assert_true(written > 1);
        assert_true(store_client_put(store, "/b", "two") > written);
        deleted = store_client_delete(store, "/b");
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
                assert_int_equal(stat(sqlite_fixture_path(files[i]), &info), 0);
                assert_int_equal(info.st_mode & 0777, 0600);
        }
        store->ops->free(store);
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

/* Without the lock, a WAL must not be copied into the file at the close: see file_lock.h. */
static void test_the_log_of_a_refused_file_is_kept(void **state) {
        struct hfd_store *store = open_store("logged");
        char *error = NULL;
        sqlite3 *db;
        struct stat before, after;

        store->ops->free(store);
        assert_int_equal(sqlite3_open(sqlite_fixture_path("logged"), &db), SQLITE_OK);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=2", NULL, NULL, &error), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        assert_int_equal(stat(sqlite_fixture_path("logged-wal"), &before), 0);
        assert_true(before.st_size > 0);
        expect_refused("logged", true, "later version");
        assert_int_equal(stat(sqlite_fixture_path("logged-wal"), &after), 0);
        assert_int_equal(after.st_size, before.st_size);
}

/* SQLite makes a log when it reads a file in WAL mode. A restore does not write beside one. */
static void test_no_log_is_left_beside_a_refused_file(void **state) {
        (void)sqlite_fixture_sql("unlogged", "PRAGMA journal_mode=WAL; CREATE TABLE theirs(x)");
        expect_refused("unlogged", true, "another program");
        assert_int_equal(access(sqlite_fixture_path("unlogged-wal"), F_OK), -1);
        assert_int_equal(access(sqlite_fixture_path("unlogged-shm"), F_OK), -1);
}

static void test_files_that_are_no_store_are_refused_and_kept(void **state) {
        int fd = open(sqlite_fixture_path("text"), O_CREAT | O_WRONLY, 0600);

        for (int i = 0; i < 200; i++)
                assert_int_equal(write(fd, "this is no database\n", 20), 20);
        assert_int_equal(close(fd), 0);
        expect_refused("text", true, "not a database");
        (void)sqlite_fixture_sql("other", "CREATE TABLE theirs(x); INSERT INTO theirs VALUES(7)");
        expect_refused("other", true, "another program");
        assert_int_equal(sqlite_fixture_sql("other", "SELECT x FROM theirs"), 7);
        struct hfd_store *store = open_store("later");
        store->ops->free(store);
        (void)sqlite_fixture_sql("later", "PRAGMA user_version=2");
        expect_refused("later", true, "later version");
        assert_int_equal(sqlite_fixture_sql("later", "PRAGMA user_version"), 2);
        (void)sqlite_fixture_sql("marked", "PRAGMA application_id=7");
        expect_refused("marked", true, "another program");
        expect_refused("missing", false, "cannot be opened: No such file or directory");
        assert_int_equal(access(sqlite_fixture_path("missing"), F_OK), -1);
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

/* ---- the lock between the stores of one file ---- */

/* As another process that holds the lock. */
static int hold_lock(const char *name) {
        char path[128];

        (void)snprintf(path, sizeof path, "%s-notify", sqlite_fixture_path(name));
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        return fd;
}

/* Nothing may be written while another process holds the lock, and nobody waits for it for long.
 * The close of the store does not copy SQLite's log into the file either. */
static void test_nothing_is_written_beside_the_holder_of_the_lock(void **state) {
        struct hfd_store *store = open_store("locked.db");
        struct store_reply reply;
        struct stat info;
        char log[128];

        uint64_t revision = store_client_put(store, "/a", "before");
        int fd = hold_lock("locked.db");
        assert_int_equal(store_client_compact(store, revision), HF_E_UNAVAILABLE);
        assert_int_equal(store_client_revision(store), revision);
        assert_int_equal(close(fd), 0);
        assert_int_equal(store_client_put(store, "/a", "after"), revision + 1);
        fd = hold_lock("locked.db");
        store->ops->free(store);
        (void)snprintf(log, sizeof log, "%s-wal", sqlite_fixture_path("locked.db"));
        assert_int_equal(stat(log, &info), 0);
        assert_true(info.st_size > 0);
        assert_int_equal(close(fd), 0);
        store = open_store("locked.db");
        assert_int_equal(store_client_get(store, "/a", &reply), 0);
        assert_string_equal(store_reply_value(&reply, 0), "after");
        store_reply_deinit(&reply);
        store->ops->free(store);
}

/* ---- the newest rows that the writer remembers ---- */

enum { N_SHARED = 8 };

/* Begins a write of each of the keys /key-0 and so on, if its newest write had the revision
 * `expected`. NULL as value: a deletion. */
static void begin_writes(struct hfd_store *store, const uint64_t expected[N_SHARED],
                         const char *value, struct store_reply replies[N_SHARED]) {
        struct hf__buf *buf = value ? hf__buf_copy(value, strlen(value)) : NULL;

        for (int i = 0; i < N_SHARED; i++) {
                char key[16];
                (void)snprintf(key, sizeof key, "/key-%d", i);
                const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                                    .key = key,
                                                    .revision = expected[i]};
                const struct hfd_op op = {.kind = value ? HFD_PUT : HFD_DELETE,
                                          .key = key,
                                          .value = buf};
                const struct hfd_txn txn = {.compares = &compare,
                                            .n_compares = 1,
                                            .ops = &op,
                                            .n_ops = 1};
                store_reply_init(&replies[i]);
                assert_int_equal(store->ops->txn(store, &txn, in_msec(PATIENCE_MSEC),
                                                 store_reply_fill, &replies[i]),
                                 0);
        }
        if (buf)
                hf__buf_unref(buf);
}

/* Does these writes together: the first one waits for the lock, and the others behind it. All must
 * have the same result. */
static void write_shared(struct hfd_store *store, const uint64_t expected[N_SHARED],
                         const char *value, int result, uint64_t revisions[N_SHARED]) {
        struct store_reply replies[N_SHARED];
        int fd = hold_lock("heads.db");

        begin_writes(store, expected, value, replies);
        assert_int_equal(close(fd), 0);
        for (int i = 0; i < N_SHARED; i++) {
                assert_int_equal(store_reply_wait(&replies[i]), result);
                revisions[i] = replies[i].revision;
                store_reply_deinit(&replies[i]);
        }
}

static void test_a_write_is_compared_with_the_newest_of_any_process(void **state) {
        struct hfd_store *one = open_store("heads.db"), *two = open_store("heads.db");
        static const uint64_t none[N_SHARED] = {0};
        uint64_t first[N_SHARED], second[N_SHARED], third[N_SHARED], ignored[N_SHARED];

        write_shared(one, none, "1", 0, first);
        write_shared(one, first, "2", 0, second);
        write_shared(one, first, "stale", HF_E_CONFLICT, ignored);
        /* Another store writes, and the first has to notice. */
        write_shared(two, second, "3", 0, third);
        write_shared(one, second, "stale", HF_E_CONFLICT, ignored);
        write_shared(one, third, "4", 0, first);
        /* Deleted keys do not exist. */
        write_shared(one, first, NULL, 0, ignored);
        write_shared(one, first, "stale", HF_E_CONFLICT, ignored);
        write_shared(one, none, "5", 0, first);
        write_shared(two, first, NULL, 0, ignored);
        write_shared(one, none, "6", 0, first);
        for (int i = 0; i < N_SHARED; i++) {
                char key[16];
                (void)snprintf(key, sizeof key, "/key-%d", i);
                assert_int_equal(store_client_mod_revision(two, key), first[i]);
        }
        /* Each row is the successor of the row before it: a sweep depends on it. */
        assert_int_equal(sqlite_fixture_sql("heads.db", "SELECT count(*) FROM versions AS v WHERE "
                                                        "previous != coalesce((SELECT max(id) FROM "
                                                        "versions AS b WHERE b.key = v.key AND "
                                                        "b.id < v.id), 0)"),
                         0);
        one->ops->free(one);
        two->ops->free(two);
        expect_sound("heads.db");
}

/* ---- two stores take turns ---- */

/* Whatever a store has read or removed, it keeps no snapshot of the file: its next write would then
 * fail, because the other one has written since. */
static void do_everything(struct hfd_store *store, const char *value) {
        const struct hfd_compare compares[] =
                {{.kind = HFD_VALUE_EQUALS, .key = "/value", .value = "1", .n_value = 1},
                 {.kind = HFD_MOD_EQUALS, .key = "/none"}};
        const struct hfd_op gone = {.kind = HFD_DELETE, .key = "/gone"};
        const char *const keys[] = {"/value", "/none"};
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = 2,
                              .ops = &gone,
                              .n_ops = 1,
                              .get_on_failure = keys,
                              .n_get_on_failure = 2};
        struct store_reply reply;

        assert_true(store_client_put(store, "/gone", value) > 0);
        assert_int_equal(store_client_txn(store, &txn, NULL), 0);
        assert_int_equal(store_client_mod_revision(store, "/gone"), 0);
        assert_true(store_client_put(store, "/none", value) > 0);
        assert_int_equal(store_client_txn(store, &txn, &reply), HF_E_CONFLICT);
        assert_int_equal(reply.n_kvs, 2);
        assert_string_equal(store_reply_value(&reply, 1), value);
        store_reply_deinit(&reply);
        uint64_t last = store_client_delete(store, "/none");
        assert_int_equal(store_client_compact(store, last), 0);
        assert_int_equal(store_client_compact(store, last), HF_E_GONE);
        for (int i = 0; i < 10; i++)
                assert_true(store_client_put(store, "/often", value) > 0);
        assert_int_equal(store_client_list(store, "/often", NULL, 0, 0, false, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), value);
        store_reply_deinit(&reply);
}

static void test_two_stores_take_turns(void **state) {
        struct hfd_store *stores[] = {open_store("turns.db"), open_store("turns.db")};
        char value[8];

        assert_true(store_client_put(stores[0], "/value", "1") > 0);
        for (int i = 0; i < 6; i++) {
                (void)snprintf(value, sizeof value, "%d", i);
                do_everything(stores[i % 2], value);
        }
        /* /value, the deletion at the compacted revision, and /often at that revision and later. */
        await_rows("turns.db", 1 + 1 + 1 + 10);
        stores[0]->ops->free(stores[0]);
        stores[1]->ops->free(stores[1]);
        expect_sound("turns.db");
}

/* SQLite follows symbolic links, so its log is beside the file itself. So must be the lock. */
static void test_a_link_to_the_file_has_the_same_lock(void **state) {
        char target[128];
        struct hfd_store *one = open_store("behind.db"), *two;
        uint64_t revision = store_client_put(one, "/a", "one");

        (void)snprintf(target, sizeof target, "%s", sqlite_fixture_path("behind.db"));
        assert_int_equal(symlink(target, sqlite_fixture_path("link.db")), 0);
        two = open_store("link.db");
        assert_int_equal(store_client_put(two, "/a", "two"), revision + 1);
        assert_int_equal(access(sqlite_fixture_path("link.db-notify"), F_OK), -1);
        int fd = hold_lock("behind.db");
        assert_int_equal(store_client_compact(two, revision), HF_E_UNAVAILABLE);
        assert_int_equal(close(fd), 0);
        two->ops->free(two);
        one->ops->free(one);
}

static _Atomic hf_nsec clock_offset;
static hf_nsec shifted_boot(void *ctx) { return hf_now(hf_clock_system()) + clock_offset; }
static int shifted_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        const struct hf_clock *clock = hf_clock_system();

        return clock->wait(clock->ctx, cond, mutex, deadline - clock_offset);
}

/* The writer hangs for 20 s of a clock that is set forward. The operation itself goes on for less
 * than 2 s: then the writer is no longer counted as hanging. */
static void test_the_iterations_show_a_writer_that_hangs(void **state) {
        static struct hf_clock clock;
        static struct hf_host shifted = {.size = sizeof shifted, .clock = &clock};
        struct hf_status status = {0};
        struct hfd_store *store = NULL;
        struct store_reply reply;

        clock = *hf_clock_system();
        clock.boot = shifted_boot;
        clock.wait = shifted_wait;
        assert_int_equal(hfd_sqlite_store_new(&shifted, sqlite_fixture_path("hanging.db"), true,
                                              &store, &status),
                         0);
        assert_true(store_client_put(store, "/a", "x") > 0);
        while (store->ops->iterations(store) == 0)
                sched_yield();
        int fd = hold_lock("hanging.db");
        store_reply_init(&reply);
        /* Without a deadline, which the clock below would pass before a busy machine begins. */
        assert_int_equal(store->ops->compact(store, 2, HF_NSEC_NEVER, store_reply_fill, &reply), 0);
        hf_nsec until = in_msec(PATIENCE_MSEC);
        /* The writer notes when it began, some time after the call. */
        while (store->ops->iterations(store) != 0 && in_msec(0) < until) {
                clock_offset += 20 * SEC;
                sched_yield();
        }
        assert_true(in_msec(0) < until);
        assert_int_equal(close(fd), 0);
        (void)store_reply_wait(&reply);
        store_reply_deinit(&reply);
        while (store->ops->iterations(store) == 0)
                sched_yield();
        store->ops->free(store);
}

static void test_the_largest_transaction_is_stored(void **state) {
        struct hfd_store *store = open_store("largest.db");

        for (size_t extra = 0; extra <= 1; extra++) {
                struct hf__buf *value = hf__buf_new(HFD_TXN_BYTES_MAX - strlen("/a") + extra);
                const struct hfd_op op = {.kind = HFD_PUT, .key = "/a", .value = value};
                const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
                assert_non_null(value);
                memset(value->data, 'v', value->n);
                assert_int_equal(store_client_txn(store, &txn, NULL),
                                 extra == 0 ? 0 : HF_E_TOO_LARGE);
                hf__buf_unref(value);
        }
        store->ops->free(store);
}

/* ---- compaction ---- */

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

/* The compaction is not in the file, so nothing may be removed. The writer looks for something to
 * remove after each batch, so after the put it has done that. */
static void test_a_compaction_that_fails_removes_nothing(void **state) {
        struct hfd_store *store = open_store("failing.db");
        struct store_reply reply;
        uint64_t first = store_client_put(store, "/a", "first");

        uint64_t newest = store_client_put(store, "/a", "second");
        (void)sqlite_fixture_sql("failing.db",
                                 "CREATE TRIGGER refuse BEFORE INSERT ON meta WHEN NEW.name = "
                                 "'compacted' BEGIN SELECT RAISE(ABORT, 'refused'); END");
        assert_int_equal(store_client_compact(store, newest), HF_E_UNAVAILABLE);
        assert_int_equal(store_client_put(store, "/b", "x"), newest + 1);
        assert_int_equal(store_client_put(store, "/b", "y"), newest + 2);
        assert_int_equal(store_client_list(store, "/", NULL, first, 0, false, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_string_equal(store_reply_value(&reply, 0), "first");
        store_reply_deinit(&reply);
        store->ops->free(store);
}

/* A list steps over a few versions of a key, and searches behind many. Some keys have few, some
 * many; some appear late, some are deleted. */
static void test_lists_skip_the_versions_of_a_key(void **state) {
        enum { N_KEYS = 6, N_ROUNDS = 40 };
        struct hfd_store *store = open_store("versions.db");
        uint64_t revisions[N_ROUNDS];
        struct store_reply reply;
        char key[8], text[8];

        for (int round = 0; round < N_ROUNDS; round++)
                for (int k = 0; k < N_KEYS; k++) {
                        (void)snprintf(key, sizeof key, "/%d", k);
                        (void)snprintf(text, sizeof text, "%d", round);
                        if (round % (k + 1) == 0)
                                (void)store_client_put(store, key, text);
                        if (k == 4 && round == 30)
                                (void)store_client_delete(store, key);
                        revisions[round] = store_client_revision(store);
                }
        for (int round = 0; round < N_ROUNDS; round++)
                for (size_t limit = 0; limit <= N_KEYS; limit++) {
                        bool deleted = round >= 30 && round < 35;
                        size_t n_keys = deleted ? N_KEYS - 1 : N_KEYS, at = 0;
                        size_t expected = limit > 0 && limit < n_keys ? limit : n_keys;

                        assert_int_equal(store_client_list(store, "/", NULL, revisions[round],
                                                           limit, false, &reply),
                                         0);
                        assert_int_equal(reply.n_kvs, expected);
                        assert_int_equal(reply.more, expected < n_keys);
                        for (int k = 0; k < N_KEYS && at < expected; k++) {
                                if (deleted && k == 4)
                                        continue;
                                (void)snprintf(key, sizeof key, "/%d", k);
                                (void)snprintf(text, sizeof text, "%d", round - round % (k + 1));
                                assert_string_equal(reply.kvs[at].key, key);
                                assert_string_equal(store_reply_value(&reply, at), text);
                                at++;
                        }
                        store_reply_deinit(&reply);
                }
        store->ops->free(store);
}

/* The sweep looks at 128 rows in one step. Here the last of them is a deletion at the compacted
 * revision, which stays for watches from there on. The next compaction removes it. */
static void test_a_deletion_at_the_end_of_a_step_is_removed_later(void **state) {
        struct hfd_store *store = open_store("steps.db");
        char key[16];

        for (int i = 0; i < 127; i++) {
                (void)snprintf(key, sizeof key, "/%03d", i);
                (void)store_client_put(store, key, "x");
        }
        uint64_t deleted = store_client_delete(store, "/000");
        uint64_t newest = store_client_put(store, "/z", "x");
        assert_int_equal(store_client_compact(store, deleted), 0);
        await_rows("steps.db", 128);
        assert_int_equal(store_client_compact(store, newest), 0);
        await_rows("steps.db", 127);
        store->ops->free(store);
}

/* More keys than a step looks at have only one version, which stays. */
static void test_a_sweep_goes_on_behind_what_stays(void **state) {
        enum { N = 300 };
        struct hfd_store *store = open_store("stays.db");
        char key[16];

        for (int i = 0; i < N; i++) {
                (void)snprintf(key, sizeof key, "/%03d", i);
                (void)store_client_put(store, key, "x");
        }
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < 10; i++)
                        (void)store_client_put(store, "/z", "x");
                assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
                await_rows("stays.db", N + 1);
        }
        store->ops->free(store);
        expect_sound("stays.db");
}

/* Puts to one key, many at a time, so that they share commits. */
struct burst {
        struct hfd_store *store;
        struct hf__buf *value;
        atomic_int left, running, failed;
};

static void put_next(void *ctx, const struct hfd_store_reply *reply) {
        struct burst *burst = ctx;
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/lease", .value = burst->value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        if (reply && reply->error != 0)
                atomic_fetch_add(&burst->failed, 1);
        if (atomic_fetch_sub(&burst->left, 1) <= 0 ||
            burst->store->ops->txn(burst->store, &txn, in_msec(PATIENCE_MSEC), put_next, burst) !=
                    0)
                atomic_fetch_sub(&burst->running, 1);
}

static int64_t bytes_of(const char *name, const char *end) {
        struct stat info;
        char path[128];

        (void)snprintf(path, sizeof path, "%s%s", sqlite_fixture_path(name), end);
        return stat(path, &info) == 0 ? info.st_size : 0;
}

/* 100,000 updates of an object of 900 bytes take some 100 MB until they are compacted. */
static void test_the_file_shrinks_after_a_compaction(void **state) {
        enum { N_AT_ONCE = 256, MAX_BYTES = 64 * 1024 * 1024 };
        struct hfd_store *store = open_store("updates.db");
        struct burst burst = {.store = store, .value = hf__buf_new(900), .left = 100000};
        hf_nsec until = in_msec(PATIENCE_MSEC);

        assert_non_null(burst.value);
        memset(burst.value->data, 'v', burst.value->n);
        burst.running = N_AT_ONCE;
        for (int i = 0; i < N_AT_ONCE; i++)
                put_next(&burst, NULL);
        while (atomic_load(&burst.running) > 0 && in_msec(0) < until)
                sched_yield();
        assert_int_equal(atomic_load(&burst.running), 0);
        assert_int_equal(atomic_load(&burst.failed), 0);
        assert_true(bytes_of("updates.db", "") + bytes_of("updates.db", "-wal") > MAX_BYTES);
        assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
        await_rows("updates.db", 1);
        while (bytes_of("updates.db", "") + bytes_of("updates.db", "-wal") > MAX_BYTES &&
               in_msec(0) < until)
                sched_yield();
        assert_in_range(bytes_of("updates.db", "") + bytes_of("updates.db", "-wal"), 1, MAX_BYTES);
        hf__buf_unref(burst.value);
        store->ops->free(store);
}

/* The values of one step have more pages than the step gives back. */
static void test_the_pages_of_large_values_are_given_back(void **state) {
        struct hfd_store *store = open_store("large.db");
        hf_nsec until = in_msec(PATIENCE_MSEC);
        char *text = calloc(1, 300001);

        assert_non_null(text);
        memset(text, 'v', 300000);
        for (int i = 0; i < 20; i++)
                assert_true(store_client_put(store, "/a", text) > 0);
        free(text);
        assert_int_equal(store_client_compact(store, store_client_revision(store)), 0);
        await_rows("large.db", 1);
        while (sqlite_fixture_sql("large.db", "PRAGMA freelist_count") != 0) {
                assert_true(in_msec(0) < until);
                sched_yield();
        }
        store->ops->free(store);
}

/* SQLite would keep ":memory:" in memory. */
static void test_every_name_is_that_of_a_file(void **state) {
        static const char *const names[] = {":memory:", "file:a?mode=memory"};
        struct hf_status status = {0};
        int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(here >= 0);
        assert_int_equal(chdir(sqlite_fixture_path("")), 0);
        for (size_t i = 0; i < 2; i++) {
                struct hfd_store *store = NULL;
                assert_int_equal(hfd_sqlite_store_new(&host, names[i], true, &store, &status), 0);
                uint64_t revision = store_client_put(store, "/a", "x");
                store->ops->free(store);
                assert_int_equal(hfd_sqlite_store_new(&host, names[i], false, &store, &status), 0);
                assert_int_equal(store_client_mod_revision(store, "/a"), revision);
                store->ops->free(store);
        }
        assert_int_equal(fchdir(here), 0);
        assert_int_equal(close(here), 0);
}

static bool has_log(void) { return access(sqlite_fixture_path("closed.db-wal"), F_OK) == 0; }

/* Only the holder of the lock copies the log into the file, because a store of another process may
 * write to it meanwhile. */
static void test_only_the_holder_of_the_lock_removes_the_log(void **state) {
        struct hfd_store *store = open_store("closed.db");

        assert_true(store_client_put(store, "/a", "x") > 0);
        assert_true(has_log());
        int fd = open(sqlite_fixture_path("closed.db-notify"), O_WRONLY | O_CLOEXEC);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        store->ops->free(store);
        assert_true(has_log());
        close(fd);
        store = open_store("closed.db");
        assert_true(store_client_mod_revision(store, "/a") > 0);
        store->ops->free(store);
        assert_false(has_log());
}

static void test_a_store_without_descriptors_is_refused(void **state) {
        struct rlimit before, limit;
        unsigned n_before, n_refused = 0;
        int r = -1;

        struct hfd_store *first = open_store("descriptors.db");
        first->ops->free(first);
        n_before = count_descriptors();
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        for (rlim_t n = 0; r != 0; n++) {
                struct hfd_store *opened = NULL;
                struct hf_status status = {0};
                int lowest = dup(STDOUT_FILENO);
                close(lowest);
                limit = before;
                limit.rlim_cur = (rlim_t)lowest + n;
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
                r = hfd_sqlite_store_new(&host, sqlite_fixture_path("descriptors.db"), false,
                                         &opened, &status);
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
                assert_true((r == 0) == (opened != NULL));
                assert_true((r == 0) == (status.message[0] == '\0'));
                n_refused += r != 0;
                if (opened)
                        opened->ops->free(opened);
                assert_int_equal(count_descriptors(), n_before);
        }
        assert_true(n_refused >= 4);
}

static void test_a_write_reports_that_the_file_is_damaged(void **state) {
        struct hfd_store *store = open_store("damaged.db");

        assert_true(store_client_put(store, "/a", "x") > 0);
        (void)sqlite_fixture_sql("damaged.db", "PRAGMA writable_schema=ON; UPDATE sqlite_schema "
                                               "SET rootpage=999999 "
                                               "WHERE name='versions'; PRAGMA schema_version=99");
        assert_int_equal(store_client_compact(store, 2), -EBADMSG);
        store->ops->free(store);
}

/* A process that ends before it has removed everything leaves that to the next one. */
static void test_a_sweep_goes_on_after_a_restart(void **state) {
        struct hfd_store *store = open_store("swept.db");

        for (int i = 0; i < 300; i++)
                (void)store_client_put(store, "/often", "x");
        uint64_t revision = store_client_revision(store);
        store->ops->free(store);
        (void)sqlite_fixture_sql("swept.db",
                                 "DELETE FROM meta WHERE name IN ('compacted', 'swept')");
        char text[96];
        (void)snprintf(text, sizeof text, "INSERT INTO meta VALUES('compacted', %llu)",
                       (unsigned long long)revision);
        (void)sqlite_fixture_sql("swept.db", text);
        store = open_store("swept.db");
        await_rows("swept.db", 1);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_open_store_sets_no_memory_aside), /* first */
                cmocka_unit_test(test_a_new_file_is_private_and_keeps_what_was_written),
                cmocka_unit_test(test_the_log_of_a_refused_file_is_kept),
                cmocka_unit_test(test_no_log_is_left_beside_a_refused_file),
                cmocka_unit_test(test_files_that_are_no_store_are_refused_and_kept),
                cmocka_unit_test(test_another_store_sees_a_commit),
                cmocka_unit_test(test_nothing_is_written_beside_the_holder_of_the_lock),
                cmocka_unit_test(test_a_write_is_compared_with_the_newest_of_any_process),
                cmocka_unit_test(test_two_stores_take_turns),
                cmocka_unit_test(test_a_link_to_the_file_has_the_same_lock),
                cmocka_unit_test(test_the_iterations_show_a_writer_that_hangs),
                cmocka_unit_test(test_the_largest_transaction_is_stored),
                cmocka_unit_test(test_a_compaction_leaves_the_current_versions),
                cmocka_unit_test(test_a_compaction_keeps_the_revision),
                cmocka_unit_test(test_a_compaction_that_fails_removes_nothing),
                cmocka_unit_test(test_lists_skip_the_versions_of_a_key),
                cmocka_unit_test(test_a_deletion_at_the_end_of_a_step_is_removed_later),
                cmocka_unit_test(test_a_sweep_goes_on_behind_what_stays),
                cmocka_unit_test(test_the_file_shrinks_after_a_compaction),
                cmocka_unit_test(test_the_pages_of_large_values_are_given_back),
                cmocka_unit_test(test_every_name_is_that_of_a_file),
                cmocka_unit_test(test_only_the_holder_of_the_lock_removes_the_log),
                cmocka_unit_test(test_a_store_without_descriptors_is_refused),
                cmocka_unit_test(test_a_write_reports_that_the_file_is_damaged),
                cmocka_unit_test(test_a_sweep_goes_on_after_a_restart),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
