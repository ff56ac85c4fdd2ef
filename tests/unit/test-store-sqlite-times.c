/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a store in a file of SQLite does what: how long the writer waits for more writes, when it
 * tries a failed removal of old versions again, when it frees what it keeps, and when a thread
 * counts as hanging. Also what a batch of writes remembers, and what is left of one that fails. The
 * clock stands still until the test moves it (tests/lib/timed_sqlite.h).
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mailbox.h"
#include "failing_memory.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/store.h"
#include "store_client.h"
#include "timed_sqlite.h"

/* ---- waiting for more writes ---- */

/* The last reply of a batch, which then has taken 10 ms. `ctx`: how many writes come meanwhile. */
static void take_long(void *ctx, const struct hfd_store_reply *reply) {
        const int *n = ctx;

        hand_clock_move(10 * MSEC);
        timed_sqlite_start_puts(*n);
        timed_sqlite_count_done(NULL, reply);
}

/* A batch of 19 and one more, while 8 come: three quarters of 28 are expected. */
static void test_a_batch_waits_for_the_writes_that_follow_a_large_one(void **state) {
        static const int meanwhile[] = {8, 1, 2};

        timed_sqlite_open("gathers.db");
        timed_sqlite_hold_writer();
        timed_sqlite_start_puts(19);
        timed_sqlite_start_put("/last", take_long, (void *)&meanwhile[0]);
        atomic_store(&timed.let_go, true);
        hand_clock_await_deadline(MSEC, MSEC);
        assert_int_equal(atomic_load(&timed.n_done), 20);
        timed_sqlite_start_puts(11);
        timed_sqlite_start_put("/last", take_long, (void *)&meanwhile[1]);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&timed.n_done), 20);
        timed_sqlite_start_puts(1);
        /* 21 are there. After them one more comes, of 16 that are expected. */
        timed_sqlite_await_done(41);
        hand_clock_await_deadline(MSEC, MSEC);
        hand_clock_move(MSEC - 1);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&timed.n_done), 41);
        hand_clock_move(1);
        timed_sqlite_await_done(42);
        /* A small batch is not waited for. */
        timed_sqlite_hold_writer();
        timed_sqlite_start_puts(14);
        timed_sqlite_start_put("/last", take_long, (void *)&meanwhile[2]);
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(42 + 15 + 2);
        timed_sqlite_close();
}

/* At the stop, the writes that have come are done without those that were expected. */
static void test_a_stop_does_not_wait_for_more_writes(void **state) {
        static const int meanwhile = 1;

        timed_sqlite_open("stops.db");
        timed_sqlite_hold_writer();
        timed_sqlite_start_puts(19);
        timed_sqlite_start_put("/last", take_long, (void *)&meanwhile);
        atomic_store(&timed.let_go, true);
        hand_clock_await_deadline(MSEC, MSEC);
        assert_int_equal(atomic_load(&timed.n_done), 20);
        timed.store->ops->stop(timed.store);
        timed_sqlite_await_done(21);
        timed_sqlite_close();
}

/* ---- old versions ---- */

static void fail_from_now_on(void *ctx, const struct hfd_store_reply *reply) {
        assert(reply->error == 0);
        atomic_store(&timed.fails, true);
        atomic_fetch_add(&timed.n_done, 1);
}

static int64_t count_versions(void) {
        return sqlite_fixture_sql("retries.db", "SELECT count(*) FROM versions");
}

/* Each pause is twice as long as the last one, and the longest one is a minute. */
static void test_a_removal_that_fails_is_tried_again(void **state) {
        static const int pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};

        timed_sqlite_open("retries.db");
        for (int round = 1; round <= 2; round++) {
                timed_sqlite_put(10);
                hand_clock_move(SEC); /* the next step may begin */
                int n_done = atomic_load(&timed.n_done);
                assert_int_equal(timed.store->ops->compact(timed.store,
                                                           atomic_load(&timed.revision),
                                                           HF_NSEC_NEVER, fail_from_now_on, NULL),
                                 0);
                timed_sqlite_await_done(n_done + 1);
                for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                        hand_clock_await_deadline(pauses[i] * SEC, pauses[i] * SEC);
                        hand_clock_move(pauses[i] * SEC - 1);
                        hand_clock_await_deadline(1, 1);
                        hand_clock_move(1);
                }
                hand_clock_await_deadline(60 * SEC, 60 * SEC);
                assert_int_equal(atomic_load(&timed.n_warnings),
                                 round); /* once, and not each time */
                atomic_store(&timed.fails, false);
                hand_clock_move(60 * SEC);
                PATIENCE_AWAIT(count_versions() == 1);
                hand_clock_move(SEC); /* the last step, which finds nothing more */
        }
        timed_sqlite_close();
}

/* ctx: the text of a statement */
static void fail_in_it_from_now_on(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&timed.fails_in, ctx);
        timed_sqlite_count_done(NULL, reply);
}

/* Whichever statement of a removal fails, nothing is taken for removed, and nothing is left. */
static void test_each_step_of_a_removal_may_fail(void **state) {
        static const char *const steps[] = {"SELECT id, previous, value IS NULL",
                                            "DELETE FROM versions",
                                            "INSERT INTO meta",
                                            "PRAGMA freelist_count",
                                            "PRAGMA incremental_vacuum",
                                            "COMMIT"};

        timed_sqlite_open("retries.db");
        for (int i = 0; i < (int)(sizeof steps / sizeof steps[0]); i++) {
                timed_sqlite_put(
                        5); /* 36 writes in all: after 64 the writer waits to free its pages */
                hand_clock_move(SEC);
                int n_done = atomic_load(&timed.n_done);
                int64_t n_versions = count_versions();
                assert_int_equal(timed.store->ops->compact(timed.store,
                                                           atomic_load(&timed.revision),
                                                           HF_NSEC_NEVER, fail_in_it_from_now_on,
                                                           (void *)steps[i]),
                                 0);
                timed_sqlite_await_done(n_done + 1);
                hand_clock_await_deadline(1 * SEC, 1 * SEC);
                assert_int_equal(atomic_load(&timed.n_warnings), i + 1);
                assert_int_equal(count_versions(), n_versions);
                atomic_store(&timed.fails_in, NULL);
                hand_clock_move(1 * SEC);
                PATIENCE_AWAIT(count_versions() == 1);
                hand_clock_move(SEC); /* the last step, which finds nothing more */
        }
        timed_sqlite_close();
}

static int count_transactions_in(int seconds) {
        int before = atomic_load(&timed.n_transactions);

        for (int i = 0; i < seconds; i++) {
                hand_clock_move(SEC);
                hand_clock_await_waiter();
        }
        return atomic_load(&timed.n_transactions) - before;
}

/* Each removal takes the lock of the file, so a writer that has nothing to remove does not try. */
static void expect_no_removals(void) {
        PATIENCE_AWAIT(count_transactions_in(3) == 0);
        assert_int_equal(count_transactions_in(5), 0);
        assert_int_equal(atomic_load(&timed.n_warnings), 0);
}

static void compact_and_await(int64_t n_left) {
        int n_done = atomic_load(&timed.n_done);

        assert_int_equal(timed.store->ops->compact(timed.store, atomic_load(&timed.revision),
                                                   HF_NSEC_NEVER, timed_sqlite_count_done, NULL),
                         0);
        timed_sqlite_await_done(n_done + 1);
        while (count_versions() != n_left)
                (void)count_transactions_in(1);
}

/* Nor does it when SQLite cannot give pages back, in a file that was made by another program. */
static void test_a_writer_with_nothing_to_remove_waits(void **state) {
        timed_sqlite_open("retries.db");
        expect_no_removals();
        timed_sqlite_put(300);
        expect_no_removals();
        compact_and_await(1);
        expect_no_removals();
        timed_sqlite_close();
        (void)sqlite_fixture_sql("retries.db", "PRAGMA auto_vacuum=0; VACUUM");
        timed_sqlite_open("retries.db");
        timed_sqlite_put(300);
        compact_and_await(1);
        assert_true(sqlite_fixture_sql("retries.db", "PRAGMA freelist_count") > 0);
        expect_no_removals();
        timed_sqlite_close();
}

/* ---- memory ---- */

/* What is kept for the next writes is freed half a second after the last one, but not for a few. */
static void test_what_is_kept_for_writes_is_freed_when_none_comes(void **state) {
        timed_sqlite_open("releases.db");
        timed_sqlite_put(63);
        hand_clock_move(SEC);
        timed_sqlite_put(1);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        hand_clock_move(500 * MSEC - 1);
        hand_clock_await_deadline(1, 1);
        timed_sqlite_put(1);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        assert_int_equal(atomic_load(&timed.n_releases), 0);
        hand_clock_move(500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&timed.n_releases) == 1);
        hand_clock_await_waiter();
        size_t n_live = failing_memory_n_live();
        /* The rows of a batch of four are remembered. */
        for (int i = 0; i < 16; i++) {
                atomic_store(&timed.n_done, 0);
                timed_sqlite_hold_writer();
                timed_sqlite_start_puts(4);
                atomic_store(&timed.let_go, true);
                timed_sqlite_await_done(4);
        }
        assert_int_equal(atomic_load(&timed.n_releases), 1);
        PATIENCE_AWAIT(failing_memory_n_live() > n_live);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        hand_clock_move(500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&timed.n_releases) == 2);
        PATIENCE_AWAIT(failing_memory_n_live() == n_live);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&timed.n_releases), 2);
        timed_sqlite_close();
}

/* The lister frees the pages of a list when no other list waits. */
static void test_the_pages_of_a_list_are_freed(void **state) {
        timed_sqlite_open("lists.db");
        timed_sqlite_put(1);
        assert_int_equal(store_client_get(timed.store, "/a", NULL), 0);
        assert_int_equal(atomic_load(&timed.n_releases), 0);
        for (int i = 1; i <= 3; i++) {
                assert_int_equal(store_client_list(timed.store, "/", NULL, 0, 0, false, NULL), 0);
                PATIENCE_AWAIT(atomic_load(&timed.n_releases) == i);
                hand_clock_await_waiter();
                assert_int_equal(atomic_load(&timed.n_releases), i);
        }
        timed_sqlite_close();
}

/* ---- threads that hang ---- */

static void expect_hanging(void) {
        assert_true(timed.store->ops->iterations(timed.store) > 0);
        hand_clock_move(10 * SEC);
        assert_true(timed.store->ops->iterations(timed.store) > 0);
        hand_clock_move(1);
        assert_int_equal(timed.store->ops->iterations(timed.store), 0);
        atomic_store(&timed.let_go, true);
        PATIENCE_AWAIT(timed.store->ops->iterations(timed.store) > 0);
        hand_clock_move(20 * SEC);
        assert_true(timed.store->ops->iterations(timed.store) > 0);
        atomic_store(&timed.is_held, false);
        atomic_store(&timed.let_go, false);
}

static void test_a_thread_that_works_for_ten_seconds_hangs(void **state) {
        timed_sqlite_open("hangs.db");
        timed_sqlite_put(1);
        PATIENCE_AWAIT(timed.store->ops->iterations(timed.store) > 0);
        timed_sqlite_hold_writer();
        expect_hanging();
        assert_int_equal(timed.store->ops->get(timed.store, "/a", false, HF_NSEC_NEVER,
                                               timed_sqlite_hold, NULL),
                         0);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        expect_hanging();
        assert_int_equal(timed.store->ops->list(timed.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER,
                                                timed_sqlite_hold, NULL),
                         0);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        expect_hanging();
        timed_sqlite_close();
}

/* ---- the end ---- */

static void test_a_list_ends_when_the_store_is_stopped(void **state) {
        struct store_reply reply;

        timed_sqlite_open("canceled.db");
        timed_sqlite_put(3);
        store_reply_init(&reply);
        atomic_store(&timed.holds, "hfd-sql-list");
        assert_int_equal(timed.store->ops->list(timed.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER,
                                                store_reply_fill, &reply),
                         0);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        timed.store->ops->stop(timed.store);
        atomic_store(&timed.let_go, true);
        assert_int_equal(store_reply_wait(&reply), HF_E_CANCELED);
        assert_string_equal(reply.status.message, "the store was stopped");
        store_reply_deinit(&reply);
        timed_sqlite_close();
}

/* ---- the replies of a batch ---- */

static struct hf__mailbox mailbox;

static bool is_woken(void) {
        struct pollfd poll_fd = {.fd = mailbox.fd, .events = POLLIN};

        return poll(&poll_fd, 1, 0) == 1;
}

static atomic_bool was_woken_early;

static void post_to_another_thread(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&was_woken_early, is_woken());
        hf__mailbox_post_lazily(&mailbox, ctx);
        timed_sqlite_count_done(NULL, reply);
}

/* It is woken once, after the last reply of the batch. */
static void test_the_replies_of_a_batch_wake_another_thread(void **state) {
        struct hf__message first = {0}, second = {0};

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        timed_sqlite_open("batch.db");
        timed_sqlite_hold_writer();
        timed_sqlite_start_put("/a", post_to_another_thread, &first);
        timed_sqlite_start_put("/b", post_to_another_thread, &second);
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(2);
        PATIENCE_AWAIT(is_woken());
        assert_false(atomic_load(&was_woken_early));
        timed_sqlite_close();
        struct hf__message *taken = hf__mailbox_take(&mailbox);
        assert_ptr_equal(taken, &first);
        assert_ptr_equal(taken->next, &second);
        hf__mailbox_done(&mailbox);
}

/* ---- deadlines ---- */

/* The writer is busy, so the write ends by its deadline alone; not before it, and not after. */
static void test_an_operation_ends_at_its_deadline(void **state) {
        size_t n_live = failing_memory_n_live();
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/a", .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct store_reply reply;

        timed_sqlite_open("exact.db");
        timed_sqlite_hold_writer();
        store_reply_init(&reply);
        assert_int_equal(timed.store->ops->txn(timed.store, &txn, hand_clock_now() + SEC / 2,
                                               store_reply_fill, &reply),
                         0);
        hf__buf_unref(value);
        hand_clock_move(SEC / 2 - 1);
        uint64_t iterations = timed.store->ops->iterations(timed.store);
        PATIENCE_AWAIT(timed.store->ops->iterations(timed.store) > iterations + 1);
        pthread_mutex_lock(&reply.mu);
        assert_false(reply.done);
        pthread_mutex_unlock(&reply.mu);
        hand_clock_move(1);
        assert_int_equal(store_reply_wait(&reply), HF_E_UNAVAILABLE);
        assert_int_equal(reply.status.error, HF_E_UNAVAILABLE);
        store_reply_deinit(&reply);
        atomic_store(&timed.let_go, true);
        timed_sqlite_close();
        assert_int_equal(failing_memory_n_live(), n_live);
}

static void must_not_be_called(void *ctx, const struct hfd_store_reply *reply) { assert(false); }

static int start_without_memory(int kind) {
        const struct hfd_op op = {.kind = HFD_DELETE, .key = "/a"};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        const struct hfd_store_ops *ops = timed.store->ops;
        const hfd_store_fn done = must_not_be_called;

        switch (kind) {
        case 0: return ops->get(timed.store, "/a", false, HF_NSEC_NEVER, done, NULL);
        case 1: return ops->list(timed.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER, done, NULL);
        case 2: return ops->txn(timed.store, &txn, HF_NSEC_NEVER, done, NULL);
        case 3: return ops->compact(timed.store, 1, HF_NSEC_NEVER, done, NULL);
        default: return ops->revision(timed.store, HF_NSEC_NEVER, done, NULL);
        }
}

static void test_an_operation_without_memory_is_refused(void **state) {
        timed_sqlite_open("refused.db");
        timed_sqlite_put(1);
        hand_clock_await_waiter();
        for (int kind = 0; kind < 5; kind++) {
                failing_memory_arm(0);
                int r = start_without_memory(kind);
                failing_memory_disarm();
                assert_int_equal(r, -ENOMEM);
        }
        timed_sqlite_put(1);
        timed_sqlite_close();
}
/* Clients that renew Leases write the same keys again and again. */
static void test_a_key_that_a_batch_has_written_is_not_looked_up(void **state) {
        timed_sqlite_open("remembered.db");
        timed_sqlite_hold_writer();
        timed_sqlite_start_puts(4);
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(4);
        for (int round = 0; round < 3; round++) {
                uint64_t first = atomic_load(&timed.revision) - 3;
                timed_sqlite_hold_writer();
                int n_looked_up = atomic_load(&timed.n_looked_up);
                for (int i = 0; i < 4; i++)
                        timed_sqlite_start_put_if(timed_sqlite_key(i), first + (uint64_t)i,
                                                  timed_sqlite_count_done, NULL);
                atomic_store(&timed.let_go, true);
                timed_sqlite_await_done(8 + 4 * round);
                assert_int_equal(atomic_load(&timed.n_looked_up), n_looked_up);
        }
        timed_sqlite_close();
}

static void start_large(const char *key, char content, size_t n) {
        struct hf__buf *value = hf__buf_new(n);
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_non_null(value);
        memset(value->data, content, n);
        assert_int_equal(timed.store->ops->txn(timed.store, &txn, HF_NSEC_NEVER,
                                               timed_sqlite_count_any, NULL),
                         0);
        hf__buf_unref(value);
}

static void expect_large(struct hfd_store *store, const char *key, char content, size_t n) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, key, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_int_equal(reply.kvs[0].value->n, n);
        for (size_t i = 0; i < n; i++)
                assert_true(reply.kvs[0].value->data[i] == content);
        store_reply_deinit(&reply);
}

/* Pages of a batch that is larger than SQLite's memory go to its log before the commit. After the
 * batch has failed, another store writes at the same place of the log. */
static void test_a_large_batch_that_fails_is_not_written_later(void **state) {
        enum { N = 400 * 1024, N_OTHERS = 1024 * 1024 };
        struct hfd_sqlite_faults faults = {0};
        struct hfd_store *others = NULL, *own;
        struct hf_status status = {0};

        timed_sqlite_open("spilled.db");
        timed_sqlite_put(1);
        assert_int_equal(hfd_sqlite_store_new(&timed_sqlite_host, sqlite_fixture_path("spilled.db"),
                                              false, &others, &status),
                         0);
        timed_sqlite_hold_writer();
        for (int i = 0; i < 3; i++)
                start_large(timed_sqlite_key(i), 'a', N);
        atomic_store(&timed.fails_in, "COMMIT");
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(1 + 3);
        atomic_store(&timed.fails_in, NULL);
        assert_int_equal(atomic_load(&timed.n_written), 1);
        own = timed.store;
        timed.store = others;
        start_large("/others", 'b', N_OTHERS);
        timed_sqlite_await_done(1 + 3 + 1);
        timed.store = own;
        timed_sqlite_put(1);
        assert_int_equal(store_client_mod_revision(own, timed_sqlite_key(0)), 0);
        expect_large(own, "/others", 'b', N_OTHERS);
        expect_large(others, "/others", 'b', N_OTHERS);
        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path("spilled.db"), &faults, &status), 0);
        assert_int_equal(faults.n, 0);
        others->ops->free(others);
        timed_sqlite_close();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_batch_waits_for_the_writes_that_follow_a_large_one),
                cmocka_unit_test(test_a_stop_does_not_wait_for_more_writes),
                cmocka_unit_test(test_a_removal_that_fails_is_tried_again),
                cmocka_unit_test(test_each_step_of_a_removal_may_fail),
                cmocka_unit_test(test_a_writer_with_nothing_to_remove_waits),
                cmocka_unit_test(test_what_is_kept_for_writes_is_freed_when_none_comes),
                cmocka_unit_test(test_the_pages_of_a_list_are_freed),
                cmocka_unit_test(test_a_thread_that_works_for_ten_seconds_hangs),
                cmocka_unit_test(test_a_list_ends_when_the_store_is_stopped),
                cmocka_unit_test(test_the_replies_of_a_batch_wake_another_thread),
                cmocka_unit_test(test_an_operation_ends_at_its_deadline),
                cmocka_unit_test(test_an_operation_without_memory_is_refused),
                cmocka_unit_test(test_a_key_that_a_batch_has_written_is_not_looked_up),
                cmocka_unit_test(test_a_large_batch_that_fails_is_not_written_later),
        };
        return cmocka_run_group_tests(tests, timed_sqlite_set_up, timed_sqlite_tear_down);
}
