/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which a store in a file of SQLite begins the operations that wait. A callback holds
 * the thread that would run them, so that the test decides what waits.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/thread.h"
#include "patience.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};

/* The operations that have been answered, by the last letter of their key. */
static struct {
        struct hfd_store *store;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        bool is_held, let_go;
        char order[64];
        uint64_t revisions[64]; /* of the replies, in this order */
        size_t n;
} f;

static void open_store(const char *name) {
        struct hf_status status = {0};

        memset(&f, 0, sizeof f);
        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.changed), 0);
        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &f.store, &status) != 0)
                fail_msg("%s", status.message);
}

static void close_store(void) {
        f.store->ops->free(f.store);
        pthread_cond_destroy(&f.changed);
        pthread_mutex_destroy(&f.mu);
}

/* A callback that keeps its thread until let_go. */
static void hold(void *ctx, const struct hfd_store_reply *reply) {
        pthread_mutex_lock(&f.mu);
        f.is_held = true;
        pthread_cond_broadcast(&f.changed);
        PATIENCE_AWAIT_LOCKED(&f.changed, &f.mu, f.let_go);
        pthread_mutex_unlock(&f.mu);
}

static void await_hold(void) {
        pthread_mutex_lock(&f.mu);
        PATIENCE_AWAIT_LOCKED(&f.changed, &f.mu, f.is_held);
        pthread_mutex_unlock(&f.mu);
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static void note(void *ctx, const struct hfd_store_reply *reply) {
        const char *letter = ctx;

        pthread_mutex_lock(&f.mu);
        assert_true(f.n < sizeof f.order - 1);
        f.revisions[f.n] = reply->revision;
        f.order[f.n++] = reply->error == 0 ? *letter : '!';
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
}

static void let_go_and_await(const char *expected) {
        pthread_mutex_lock(&f.mu);
        f.let_go = true;
        pthread_cond_broadcast(&f.changed);
        PATIENCE_AWAIT_LOCKED(&f.changed, &f.mu, f.n == strlen(expected));
        assert_string_equal(f.order, expected);
        pthread_mutex_unlock(&f.mu);
}

static const char *key_of(char letter) {
        static char key[8];

        (void)snprintf(key, sizeof key, "/k/%c", letter);
        return key;
}

static void start_get(char letter, bool urgent, hfd_store_fn done) {
        assert_int_equal(f.store->ops->get(f.store, key_of(letter), urgent, in_msec(PATIENCE_MSEC),
                                           done, (void *)strchr(letters, letter)),
                         0);
}

static void start_put(char letter, bool urgent, size_t n, hfd_store_fn done) {
        struct hf__buf *value = hf__buf_new(n);
        const struct hfd_op op = {.kind = HFD_PUT, .key = key_of(letter), .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1, .urgent = urgent};

        assert_non_null(value);
        memset(value->data, 'v', n);
        assert_int_equal(f.store->ops->txn(f.store, &txn, in_msec(PATIENCE_MSEC), done,
                                           (void *)strchr(letters, letter)),
                         0);
        hf__buf_unref(value);
}

static void test_urgent_reads_are_begun_first(void **state) {
        open_store("reads.db");
        start_get('z', false, hold);
        await_hold();
        start_get('a', false, note);
        start_get('b', true, note);
        start_get('c', false, note);
        start_get('d', true, note);
        start_get('e', true, note);
        let_go_and_await("bdeac");
        /* The queues are empty, and work on. */
        start_get('f', false, note);
        let_go_and_await("bdeacf");
        start_get('g', true, note);
        let_go_and_await("bdeacfg");
        close_store();
}

/* The writes of one batch have the revisions in the order in which they were taken. */
static void test_urgent_writes_are_begun_first(void **state) {
        open_store("writes.db");
        start_put('z', false, 1, hold);
        await_hold();
        start_put('a', false, 1, note);
        start_put('b', true, 1, note);
        start_put('c', false, 1, note);
        start_put('d', true, 1, note);
        let_go_and_await("bdac");
        for (size_t i = 1; i < f.n; i++)
                assert_int_equal(f.revisions[i], f.revisions[0] + i);
        assert_int_equal(store_client_mod_revision(f.store, "/k/b"), f.revisions[0]);
        assert_int_equal(store_client_mod_revision(f.store, "/k/c"), f.revisions[3]);
        assert_int_equal(store_client_revision(f.store), f.revisions[3]);
        close_store();
}

static uint32_t u32_of(const unsigned char *bytes) {
        return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
               bytes[3];
}

/* The commits that a new WAL has: frames that name the size of the file after the commit. */
static int commits_in_log(const char *name) {
        unsigned char header[32], frame[24];
        FILE *log = fopen(sqlite_fixture_path(name), "re");
        int n = 0;

        assert_non_null(log);
        assert_int_equal(fread(header, 1, sizeof header, log), sizeof header);
        while (fread(frame, 1, sizeof frame, log) == sizeof frame &&
               memcmp(frame + 8, header + 16, 8) == 0) {
                n += u32_of(frame + 4) != 0;
                assert_int_equal(fseek(log, (long)u32_of(header + 8), SEEK_CUR), 0);
        }
        assert_int_equal(fclose(log), 0);
        return n;
}

/* So all of them wait for the disk once. */
static void test_writes_that_wait_are_committed_together(void **state) {
        open_store("together.db");
        start_put('z', false, 1, hold);
        await_hold();
        int before = commits_in_log("together.db-wal");
        for (char c = 'a'; c <= 'x'; c++)
                start_put(c, false, 1, note);
        let_go_and_await("abcdefghijklmnopqrstuvwx");
        assert_int_equal(commits_in_log("together.db-wal"), before + 1);
        start_put('y', false, 1, note);
        let_go_and_await("abcdefghijklmnopqrstuvwxy");
        assert_int_equal(commits_in_log("together.db-wal"), before + 2);
        close_store();
}

/* Large writes fill batches; each is written once all the same, in its order. */
static void test_large_writes_that_wait_keep_their_order(void **state) {
        open_store("large.db");
        start_put('z', false, 1, hold);
        await_hold();
        for (char c = 'a'; c <= 'h'; c++)
                start_put(c, false, 400 * 1024, note);
        let_go_and_await("abcdefgh");
        for (size_t i = 1; i < f.n; i++)
                assert_int_equal(f.revisions[i], f.revisions[0] + i);
        close_store();
}

/* A batch ends with the write with which it has 1 MiB, so that the next write, of a Lease perhaps,
 * waits for no more. Two of these have just so much. */
static void test_large_writes_that_wait_are_committed_in_pieces(void **state) {
        const struct hfd_op put = {.kind = HFD_PUT, .key = "/k/a", .value = hf__buf_new(1)};
        const struct hfd_txn small = {.ops = &put, .n_ops = 1};
        size_t n = 512 * 1024 + 1 - hfd_txn_bytes(&small);

        hf__buf_unref(put.value);
        open_store("pieces.db");
        start_put('z', false, 1, hold);
        await_hold();
        int before = commits_in_log("pieces.db-wal");
        for (char c = 'a'; c <= 'f'; c++)
                start_put(c, false, n, note);
        let_go_and_await("abcdef");
        assert_int_equal(commits_in_log("pieces.db-wal"), before + 3);
        close_store();
}

/* The arguments are copied, so that the caller may change them when the call has returned. */
static void test_arguments_are_copied(void **state) {
        char key[] = "/k/a", compared[] = "x", absent[] = "/k/b", prefix[] = "/k/",
             start[] = "/k/a";
        const char *gets[] = {key, absent};
        struct hfd_compare compares[] =
                {{.kind = HFD_VALUE_EQUALS, .key = key, .value = compared, .n_value = 1},
                 {.kind = HFD_MOD_EQUALS, .key = absent, .revision = 7}};
        struct hfd_op ops[] = {{.kind = HFD_DELETE, .key = key}};
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = 2,
                              .ops = ops,
                              .n_ops = 1,
                              .get_on_failure = gets,
                              .n_get_on_failure = 2};
        struct store_reply conflict, done;

        open_store("copied.db");
        assert_true(store_client_put(f.store, key, "x") > 0);
        start_put('z', false, 1, hold);
        await_hold();
        store_reply_init(&conflict);
        store_reply_init(&done);
        assert_int_equal(f.store->ops->txn(f.store, &txn, in_msec(PATIENCE_MSEC), store_reply_fill,
                                           &conflict),
                         0);
        compares[1].revision = 0;
        assert_int_equal(f.store->ops->txn(f.store, &txn, in_msec(PATIENCE_MSEC), store_reply_fill,
                                           &done),
                         0);
        memset(key, '#', sizeof key - 1);
        memset(compared, '#', sizeof compared - 1);
        memset(absent, '#', sizeof absent - 1);
        memset(compares, 0, sizeof compares);
        memset(ops, 0, sizeof ops);
        memset(gets, 0, sizeof gets);
        let_go_and_await("");
        assert_int_equal(store_reply_wait(&conflict), HF_E_CONFLICT);
        assert_int_equal(conflict.n_kvs, 1);
        assert_string_equal(conflict.kvs[0].key, "/k/a");
        assert_int_equal(store_reply_wait(&done), 0);
        assert_int_equal(store_client_mod_revision(f.store, "/k/a"), 0);
        store_reply_deinit(&conflict);
        store_reply_deinit(&done);
        /* The same with a list. */
        f.is_held = f.let_go = false;
        assert_int_equal(f.store->ops->list(f.store, "/k/", NULL, 0, 0, false,
                                            in_msec(PATIENCE_MSEC), hold, NULL),
                         0);
        await_hold();
        store_reply_init(&done);
        assert_int_equal(f.store->ops->list(f.store, prefix, start, 0, 0, false,
                                            in_msec(PATIENCE_MSEC), store_reply_fill, &done),
                         0);
        memset(prefix, '#', sizeof prefix - 1);
        memset(start, '#', sizeof start - 1);
        let_go_and_await("");
        assert_int_equal(store_reply_wait(&done), 0);
        assert_int_equal(done.n_kvs, 1);
        assert_string_equal(done.kvs[0].key, "/k/z");
        store_reply_deinit(&done);
        close_store();
}

/* A list does not keep reads and writes waiting, nor do they each other. */
static void test_reads_writes_and_lists_do_not_wait_for_each_other(void **state) {
        open_store("threads.db");
        assert_true(store_client_put(f.store, "/k/a", "x") > 0);
        assert_int_equal(f.store->ops->list(f.store, "/k/", NULL, 0, 0, false,
                                            in_msec(PATIENCE_MSEC), hold, NULL),
                         0);
        await_hold();
        assert_true(store_client_put(f.store, "/k/b", "x") > 0);
        assert_true(store_client_mod_revision(f.store, "/k/b") > 0);
        assert_true(store_client_revision(f.store) > 0);
        let_go_and_await("");
        close_store();
}

/* Operations whose deadline passes while they wait are answered meanwhile, and not begun later. */
static void test_an_operation_that_waits_ends_at_its_deadline(void **state) {
        struct store_reply reply;

        open_store("late.db");
        start_get('z', false, hold);
        await_hold();
        store_reply_init(&reply);
        assert_int_equal(f.store->ops->get(f.store, "/k/a", false, in_msec(1), store_reply_fill,
                                           &reply),
                         0);
        start_get('b', false, note);
        assert_int_equal(store_reply_wait(&reply), HF_E_UNAVAILABLE);
        assert_string_equal(reply.status.message, "the operation did not begin in time");
        store_reply_deinit(&reply);
        let_go_and_await("b");
        close_store();
}

/* Operations that wait when the store is closed get a reply too. */
static void test_a_stop_answers_what_waits(void **state) {
        open_store("stop.db");
        start_get('z', false, hold);
        await_hold();
        start_get('a', false, note);
        start_get('b', true, note);
        f.store->ops->stop(f.store);
        assert_int_equal(f.store->ops->get(f.store, "/k/c", false, in_msec(1000), note, NULL),
                         HF_E_CLOSED);
        pthread_mutex_lock(&f.mu);
        f.let_go = true;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        f.store->ops->free(f.store);
        assert_int_equal(f.n, 2);
        pthread_cond_destroy(&f.changed);
        pthread_mutex_destroy(&f.mu);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_urgent_reads_are_begun_first),
                cmocka_unit_test(test_urgent_writes_are_begun_first),
                cmocka_unit_test(test_writes_that_wait_are_committed_together),
                cmocka_unit_test(test_large_writes_that_wait_keep_their_order),
                cmocka_unit_test(test_large_writes_that_wait_are_committed_in_pieces),
                cmocka_unit_test(test_arguments_are_copied),
                cmocka_unit_test(test_reads_writes_and_lists_do_not_wait_for_each_other),
                cmocka_unit_test(test_an_operation_that_waits_ends_at_its_deadline),
                cmocka_unit_test(test_a_stop_answers_what_waits),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
