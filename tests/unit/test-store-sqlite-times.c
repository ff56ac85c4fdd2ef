/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a store in a file of SQLite does what: how long the writer waits for more writes, when it
 * tries a failed removal of old versions again, when it frees what it keeps, and when a thread
 * counts as hanging. The clock stands still until the test moves it. Some functions of SQLite are
 * replaced, so that steps fail or wait as the test wants, and so that the test sees them.
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
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "base/mailbox.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/files/file_check.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

#define LOG "SELECT id, created, key, value FROM versions WHERE id >=" /* what watches read */

static struct hfd_sqlite_library real;

static struct {
        struct hfd_store *store;
        atomic_bool fails; /* steps of SQLite do */
        /* Those do whose text begins with this, on the thread of this name. NULL: none; the
         * writer. */
        _Atomic(const char *) fails_in, fails_on;
        atomic_int n_logged;         /* rows that the watcher has read from the file */
        atomic_int n_looked_up;      /* keys whose newest row the writer has read from it */
        _Atomic(const char *) holds; /* the next step of the thread of this name waits */
        atomic_bool is_held, let_go;
        atomic_int n_releases, n_warnings;
        atomic_int n_transactions;     /* of the writer, also those that remove old versions */
        atomic_int n_done, n_written;  /* operations; and those that succeeded */
        atomic_int last_error;         /* of one that did not */
        atomic_uint_fast64_t revision; /* of the last one */
} f;

/* ---- SQLite and the host ---- */

static bool is_thread(const char *wanted) {
        char name[16] = "";

        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        return strcmp(name, wanted) == 0;
}

static void hold_if_wanted(void) {
        const char *wanted = atomic_load(&f.holds);

        if (!wanted || !is_thread(wanted))
                return;
        atomic_store(&f.holds, NULL);
        atomic_store(&f.is_held, true);
        PATIENCE_AWAIT(atomic_load(&f.let_go));
}

static bool begins_with(const char *text, const char *beginning) {
        return strncmp(text, beginning, strlen(beginning)) == 0;
}

static int step_or_fail(sqlite3_stmt *statement) {
        const char *text = sqlite3_sql(statement), *fails_in = atomic_load(&f.fails_in);

        hold_if_wanted();
        atomic_fetch_add(&f.n_transactions, begins_with(text, "BEGIN IMMEDIATE"));
        atomic_fetch_add(&f.n_looked_up, begins_with(text, "SELECT id, created, value IS NULL"));
        if (fails_in && begins_with(text, fails_in) &&
            is_thread(f.fails_on ? f.fails_on : "hfd-sql-write"))
                return SQLITE_IOERR;
        int r = atomic_load(&f.fails) ? SQLITE_IOERR : real.step(statement);
        atomic_fetch_add(&f.n_logged, r == SQLITE_ROW && begins_with(text, LOG));
        return r;
}

static int errcode_of_failure(sqlite3 *db) {
        return atomic_load(&f.fails) || atomic_load(&f.fails_in) ? SQLITE_IOERR : real.errcode(db);
}

static int count_release(sqlite3 *db) {
        atomic_fetch_add(&f.n_releases, 1);
        return real.db_release_memory(db);
}

static void count_warning(void *ctx, enum hf_log_level level, const char *component,
                          const char *message) {
        atomic_fetch_add(&f.n_warnings, level == HF_LOG_WARNING);
}

static const struct hf_host host = {.size = sizeof(struct hf_host),
                                    .clock = &hand_clock,
                                    .log = {.write = count_warning}};

static int set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        real = hfd_sqlite;
        hfd_sqlite.step = step_or_fail;
        hfd_sqlite.errcode = errcode_of_failure;
        hfd_sqlite.db_release_memory = count_release;
        return 0;
}

static int tear_down(void **state) {
        hfd_sqlite = real;
        return sqlite_fixture_teardown(state);
}

static void open_store(const char *name) {
        struct hf_status status = {0};

        memset(&f, 0, sizeof f);
        hand_clock_reset();
        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &f.store, &status) != 0)
                fail_msg("%s", status.message);
}

static void close_store(void) { f.store->ops->free(f.store); }

/* ---- operations ---- */

static void count_any(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&f.revision, reply->revision);
        if (reply->error != 0)
                atomic_store(&f.last_error, reply->error);
        atomic_fetch_add(&f.n_written, reply->error == 0);
        atomic_fetch_add(&f.n_done, 1);
}

static void count_done(void *ctx, const struct hfd_store_reply *reply) {
        assert(reply->error == 0);
        count_any(ctx, reply);
}

/* Keeps its thread until let_go. */
static void hold(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&f.is_held, true);
        PATIENCE_AWAIT(atomic_load(&f.let_go));
}

/* compared: the revision that the key must have; 0 = it does not matter */
static void start_put_if(const char *key, uint64_t compared, hfd_store_fn done, void *ctx) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = compared};
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = compared != 0 ? 1 : 0,
                                    .ops = &op,
                                    .n_ops = 1};

        assert(f.store->ops->txn(f.store, &txn, HF_NSEC_NEVER, done, ctx) == 0);
        hf__buf_unref(value);
}

static void start_put(const char *key, hfd_store_fn done, void *ctx) {
        start_put_if(key, 0, done, ctx);
}

static const char *key_of(int i) {
        static _Thread_local char key[16];

        (void)snprintf(key, sizeof key, "/k/%d", i);
        return key;
}

static void start_puts(int n) {
        for (int i = 0; i < n; i++)
                start_put(key_of(i), count_done, NULL);
}

static void await_done(int n) { PATIENCE_AWAIT(atomic_load(&f.n_done) == n); }

static void put_one_by_one(int n) {
        for (int i = 0; i < n; i++) {
                int before = atomic_load(&f.n_done);
                start_put("/a", count_done, NULL);
                await_done(before + 1);
        }
}

/* The thread that is busy with one operation runs what was queued meanwhile in one batch. */
static void hold_writer(void) {
        atomic_store(&f.is_held, false);
        atomic_store(&f.let_go, false);
        start_put("/held", hold, NULL);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
}

/* ---- waiting for more writes ---- */

/* The last reply of a batch, which then has taken 10 ms. `ctx`: how many writes come meanwhile. */
static void take_long(void *ctx, const struct hfd_store_reply *reply) {
        const int *n = ctx;

        hand_clock_move(10 * MSEC);
        start_puts(*n);
        count_done(NULL, reply);
}

/* A batch of 19 and one more, while 8 come: three quarters of 28 are expected. */
static void test_a_batch_waits_for_the_writes_that_follow_a_large_one(void **state) {
        static const int meanwhile[] = {8, 1, 2};

        open_store("gathers.db");
        hold_writer();
        start_puts(19);
        start_put("/last", take_long, (void *)&meanwhile[0]);
        atomic_store(&f.let_go, true);
        hand_clock_await_deadline(MSEC, MSEC);
        assert_int_equal(atomic_load(&f.n_done), 20);
        start_puts(11);
        start_put("/last", take_long, (void *)&meanwhile[1]);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&f.n_done), 20);
        start_puts(1);
        /* 21 are there. After them one more comes, of 16 that are expected. */
        await_done(41);
        hand_clock_await_deadline(MSEC, MSEC);
        hand_clock_move(MSEC - 1);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&f.n_done), 41);
        hand_clock_move(1);
        await_done(42);
        /* A small batch is not waited for. */
        hold_writer();
        start_puts(14);
        start_put("/last", take_long, (void *)&meanwhile[2]);
        atomic_store(&f.let_go, true);
        await_done(42 + 15 + 2);
        close_store();
}

/* At the stop, the writes that have come are done without those that were expected. */
static void test_a_stop_does_not_wait_for_more_writes(void **state) {
        static const int meanwhile = 1;

        open_store("stops.db");
        hold_writer();
        start_puts(19);
        start_put("/last", take_long, (void *)&meanwhile);
        atomic_store(&f.let_go, true);
        hand_clock_await_deadline(MSEC, MSEC);
        assert_int_equal(atomic_load(&f.n_done), 20);
        f.store->ops->stop(f.store);
        await_done(21);
        close_store();
}

/* ---- old versions ---- */

static void fail_from_now_on(void *ctx, const struct hfd_store_reply *reply) {
        assert(reply->error == 0);
        atomic_store(&f.fails, true);
        atomic_fetch_add(&f.n_done, 1);
}

static int64_t count_versions(void) {
        return sqlite_fixture_sql("retries.db", "SELECT count(*) FROM versions");
}

/* Each pause is twice as long as the last one, and the longest one is a minute. */
static void test_a_removal_that_fails_is_tried_again(void **state) {
        static const int pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};

        open_store("retries.db");
        for (int round = 1; round <= 2; round++) {
                put_one_by_one(10);
                hand_clock_move(SEC); /* the next step may begin */
                int n_done = atomic_load(&f.n_done);
                assert_int_equal(f.store->ops->compact(f.store, atomic_load(&f.revision),
                                                       HF_NSEC_NEVER, fail_from_now_on, NULL),
                                 0);
                await_done(n_done + 1);
                for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                        hand_clock_await_deadline(pauses[i] * SEC, pauses[i] * SEC);
                        hand_clock_move(pauses[i] * SEC - 1);
                        hand_clock_await_deadline(1, 1);
                        hand_clock_move(1);
                }
                hand_clock_await_deadline(60 * SEC, 60 * SEC);
                assert_int_equal(atomic_load(&f.n_warnings), round); /* once, and not each time */
                atomic_store(&f.fails, false);
                hand_clock_move(60 * SEC);
                PATIENCE_AWAIT(count_versions() == 1);
                hand_clock_move(SEC); /* the last step, which finds nothing more */
        }
        close_store();
}

/* ctx: the text of a statement */
static void fail_in_it_from_now_on(void *ctx, const struct hfd_store_reply *reply) {
        atomic_store(&f.fails_in, ctx);
        count_done(NULL, reply);
}

/* Whichever statement of a removal fails, nothing is taken for removed, and nothing is left. */
static void test_each_step_of_a_removal_may_fail(void **state) {
        static const char *const steps[] = {"SELECT id, previous, value IS NULL",
                                            "DELETE FROM versions",
                                            "INSERT INTO meta",
                                            "PRAGMA freelist_count",
                                            "PRAGMA incremental_vacuum",
                                            "COMMIT"};

        open_store("retries.db");
        for (int i = 0; i < (int)(sizeof steps / sizeof steps[0]); i++) {
                put_one_by_one(
                        5); /* 36 writes in all: after 64 the writer waits to free its pages */
                hand_clock_move(SEC);
                int n_done = atomic_load(&f.n_done);
                int64_t n_versions = count_versions();
                assert_int_equal(f.store->ops->compact(f.store, atomic_load(&f.revision),
                                                       HF_NSEC_NEVER, fail_in_it_from_now_on,
                                                       (void *)steps[i]),
                                 0);
                await_done(n_done + 1);
                hand_clock_await_deadline(1 * SEC, 1 * SEC);
                assert_int_equal(atomic_load(&f.n_warnings), i + 1);
                assert_int_equal(count_versions(), n_versions);
                atomic_store(&f.fails_in, NULL);
                hand_clock_move(1 * SEC);
                PATIENCE_AWAIT(count_versions() == 1);
                hand_clock_move(SEC); /* the last step, which finds nothing more */
        }
        close_store();
}

static int count_transactions_in(int seconds) {
        int before = atomic_load(&f.n_transactions);

        for (int i = 0; i < seconds; i++) {
                hand_clock_move(SEC);
                hand_clock_await_waiter();
        }
        return atomic_load(&f.n_transactions) - before;
}

/* Each removal takes the lock of the file, so a writer that has nothing to remove does not try. */
static void expect_no_removals(void) {
        PATIENCE_AWAIT(count_transactions_in(3) == 0);
        assert_int_equal(count_transactions_in(5), 0);
        assert_int_equal(atomic_load(&f.n_warnings), 0);
}

static void compact_and_await(int64_t n_left) {
        int n_done = atomic_load(&f.n_done);

        assert_int_equal(f.store->ops->compact(f.store, atomic_load(&f.revision), HF_NSEC_NEVER,
                                               count_done, NULL),
                         0);
        await_done(n_done + 1);
        while (count_versions() != n_left)
                (void)count_transactions_in(1);
}

/* Nor does it when SQLite cannot give pages back, in a file that was made by another program. */
static void test_a_writer_with_nothing_to_remove_waits(void **state) {
        open_store("retries.db");
        expect_no_removals();
        put_one_by_one(300);
        expect_no_removals();
        compact_and_await(1);
        expect_no_removals();
        close_store();
        (void)sqlite_fixture_sql("retries.db", "PRAGMA auto_vacuum=0; VACUUM");
        open_store("retries.db");
        put_one_by_one(300);
        compact_and_await(1);
        assert_true(sqlite_fixture_sql("retries.db", "PRAGMA freelist_count") > 0);
        expect_no_removals();
        close_store();
}

/* ---- memory ---- */

/* What is kept for the next writes is freed half a second after the last one, but not for a few. */
static void test_what_is_kept_for_writes_is_freed_when_none_comes(void **state) {
        open_store("releases.db");
        put_one_by_one(63);
        hand_clock_move(SEC);
        put_one_by_one(1);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        hand_clock_move(500 * MSEC - 1);
        hand_clock_await_deadline(1, 1);
        put_one_by_one(1);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        assert_int_equal(atomic_load(&f.n_releases), 0);
        hand_clock_move(500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&f.n_releases) == 1);
        hand_clock_await_waiter();
        size_t n_live = failing_memory_n_live();
        /* The rows of a batch of four are remembered. */
        for (int i = 0; i < 16; i++) {
                atomic_store(&f.n_done, 0);
                hold_writer();
                start_puts(4);
                atomic_store(&f.let_go, true);
                await_done(4);
        }
        assert_int_equal(atomic_load(&f.n_releases), 1);
        PATIENCE_AWAIT(failing_memory_n_live() > n_live);
        hand_clock_await_deadline(500 * MSEC, 500 * MSEC);
        hand_clock_move(500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&f.n_releases) == 2);
        PATIENCE_AWAIT(failing_memory_n_live() == n_live);
        hand_clock_await_waiter();
        assert_int_equal(atomic_load(&f.n_releases), 2);
        close_store();
}

/* The lister frees the pages of a list when no other list waits. */
static void test_the_pages_of_a_list_are_freed(void **state) {
        open_store("lists.db");
        put_one_by_one(1);
        assert_int_equal(store_client_get(f.store, "/a", NULL), 0);
        assert_int_equal(atomic_load(&f.n_releases), 0);
        for (int i = 1; i <= 3; i++) {
                assert_int_equal(store_client_list(f.store, "/", NULL, 0, 0, false, NULL), 0);
                PATIENCE_AWAIT(atomic_load(&f.n_releases) == i);
                hand_clock_await_waiter();
                assert_int_equal(atomic_load(&f.n_releases), i);
        }
        close_store();
}

/* ---- threads that hang ---- */

static void expect_hanging(void) {
        assert_true(f.store->ops->iterations(f.store) > 0);
        hand_clock_move(10 * SEC);
        assert_true(f.store->ops->iterations(f.store) > 0);
        hand_clock_move(1);
        assert_int_equal(f.store->ops->iterations(f.store), 0);
        atomic_store(&f.let_go, true);
        PATIENCE_AWAIT(f.store->ops->iterations(f.store) > 0);
        hand_clock_move(20 * SEC);
        assert_true(f.store->ops->iterations(f.store) > 0);
        atomic_store(&f.is_held, false);
        atomic_store(&f.let_go, false);
}

static void test_a_thread_that_works_for_ten_seconds_hangs(void **state) {
        open_store("hangs.db");
        put_one_by_one(1);
        PATIENCE_AWAIT(f.store->ops->iterations(f.store) > 0);
        hold_writer();
        expect_hanging();
        assert_int_equal(f.store->ops->get(f.store, "/a", false, HF_NSEC_NEVER, hold, NULL), 0);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        expect_hanging();
        assert_int_equal(f.store->ops->list(f.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER, hold,
                                            NULL),
                         0);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        expect_hanging();
        close_store();
}

/* ---- the end ---- */

static void test_a_list_ends_when_the_store_is_stopped(void **state) {
        struct store_reply reply;

        open_store("canceled.db");
        put_one_by_one(3);
        store_reply_init(&reply);
        atomic_store(&f.holds, "hfd-sql-list");
        assert_int_equal(f.store->ops->list(f.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER,
                                            store_reply_fill, &reply),
                         0);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        f.store->ops->stop(f.store);
        atomic_store(&f.let_go, true);
        assert_int_equal(store_reply_wait(&reply), HF_E_CANCELED);
        assert_string_equal(reply.status.message, "the store was stopped");
        store_reply_deinit(&reply);
        close_store();
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
        count_done(NULL, reply);
}

/* It is woken once, after the last reply of the batch. */
static void test_the_replies_of_a_batch_wake_another_thread(void **state) {
        struct hf__message first = {0}, second = {0};

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        open_store("batch.db");
        hold_writer();
        start_put("/a", post_to_another_thread, &first);
        start_put("/b", post_to_another_thread, &second);
        atomic_store(&f.let_go, true);
        await_done(2);
        PATIENCE_AWAIT(is_woken());
        assert_false(atomic_load(&was_woken_early));
        close_store();
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

        open_store("exact.db");
        hold_writer();
        store_reply_init(&reply);
        assert_int_equal(f.store->ops->txn(f.store, &txn, hand_clock_now() + SEC / 2,
                                           store_reply_fill, &reply),
                         0);
        hf__buf_unref(value);
        hand_clock_move(SEC / 2 - 1);
        uint64_t iterations = f.store->ops->iterations(f.store);
        PATIENCE_AWAIT(f.store->ops->iterations(f.store) > iterations + 1);
        pthread_mutex_lock(&reply.mu);
        assert_false(reply.done);
        pthread_mutex_unlock(&reply.mu);
        hand_clock_move(1);
        assert_int_equal(store_reply_wait(&reply), HF_E_UNAVAILABLE);
        assert_int_equal(reply.status.error, HF_E_UNAVAILABLE);
        store_reply_deinit(&reply);
        atomic_store(&f.let_go, true);
        close_store();
        assert_int_equal(failing_memory_n_live(), n_live);
}

static void must_not_be_called(void *ctx, const struct hfd_store_reply *reply) { assert(false); }

static int start_without_memory(int kind) {
        const struct hfd_op op = {.kind = HFD_DELETE, .key = "/a"};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        const struct hfd_store_ops *ops = f.store->ops;
        const hfd_store_fn done = must_not_be_called;

        switch (kind) {
        case 0: return ops->get(f.store, "/a", false, HF_NSEC_NEVER, done, NULL);
        case 1: return ops->list(f.store, "/", NULL, 0, 0, false, HF_NSEC_NEVER, done, NULL);
        case 2: return ops->txn(f.store, &txn, HF_NSEC_NEVER, done, NULL);
        case 3: return ops->compact(f.store, 1, HF_NSEC_NEVER, done, NULL);
        default: return ops->revision(f.store, HF_NSEC_NEVER, done, NULL);
        }
}

static void test_an_operation_without_memory_is_refused(void **state) {
        open_store("refused.db");
        put_one_by_one(1);
        hand_clock_await_waiter();
        for (int kind = 0; kind < 5; kind++) {
                failing_memory_arm(0);
                int r = start_without_memory(kind);
                failing_memory_disarm();
                assert_int_equal(r, -ENOMEM);
        }
        put_one_by_one(1);
        close_store();
}

/* ---- a watch ---- */

static atomic_int n_events, watch_error;
static atomic_uint_fast64_t first_revision;   /* of the events */
static atomic_bool watch_ended, holds_events; /* the next ones wait */

static void count_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        if (atomic_load(&n_events) == 0)
                atomic_store(&first_revision, events[0].revision);
        atomic_fetch_add(&n_events, (int)n);
        if (!atomic_exchange(&holds_events, false))
                return;
        atomic_store(&f.is_held, true);
        PATIENCE_AWAIT(atomic_load(&f.let_go));
}

static void note_end(void *ctx, int error, const struct hf_status *status) {
        assert(status->error == error && status->message[0] != '\0');
        atomic_store(&watch_error, error);
        atomic_store(&watch_ended, true);
}

static uint64_t start_watch_at(uint64_t revision) {
        static const struct hfd_watch_handler handler = {.event = count_events, .end = note_end};
        uint64_t id = 0;

        atomic_store(&n_events, 0);
        atomic_store(&watch_ended, false);
        assert_int_equal(f.store->ops->watch(f.store, "/", "0", revision, &handler, NULL, &id), 0);
        return id;
}

/* From the next write on. */
static uint64_t start_watch(void) { return start_watch_at(atomic_load(&f.revision) + 1); }

/* A watch without a revision has nothing that was written before. */
static void test_a_watch_may_begin_now(void **state) {
        open_store("now.db");
        put_one_by_one(5);
        uint64_t last = atomic_load(&f.revision), id = start_watch_at(0);
        do
                put_one_by_one(1);
        while (atomic_load(&n_events) == 0);
        assert_true(atomic_load(&first_revision) > last);
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        close_store();
}

/* It consists of three blocks. */
static void test_a_watch_without_memory_is_refused(void **state) {
        static const struct hfd_watch_handler handler = {.event = count_events, .end = note_end};

        open_store("no-watch.db");
        put_one_by_one(1);
        hand_clock_await_waiter();
        atomic_store(&watch_ended, false);
        for (int n = 0; n < 3; n++) {
                size_t n_live = failing_memory_n_live();
                failing_memory_arm(n);
                int r = f.store->ops->watch(f.store, "/", "0", 1, &handler, NULL, NULL);
                failing_memory_disarm();
                assert_int_equal(r, -ENOMEM);
                assert_int_equal(failing_memory_n_live(), n_live);
        }
        close_store();
        assert_false(atomic_load(&watch_ended));
}

/* The changes that could not be kept in memory are read from the file. */
static void test_a_watch_misses_nothing_for_lack_of_memory(void **state) {
        int n = 0, n_held = 0;

        open_store("watched.db");
        put_one_by_one(1);
        uint64_t id = start_watch();
        do {
                int n_done = atomic_load(&f.n_done);
                hold_writer();
                n_held++;
                for (int i = 0; i < 5; i++)
                        start_put(key_of(i), count_any, NULL);
                failing_memory_arm(n++);
                atomic_store(&f.let_go, true);
                await_done(n_done + 5);
                failing_memory_disarm();
                PATIENCE_AWAIT(atomic_load(&watch_ended) ||
                               atomic_load(&n_events) == atomic_load(&f.n_written) - 1 + n_held);
        } while (failing_memory_hit() && !atomic_load(&watch_ended));
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        close_store();
}

/* The watch has missed a write of another store when it gets one of its own from memory. */
static void test_a_watch_reads_what_others_have_written_before(void **state) {
        struct hfd_store *others = NULL;
        struct hf_status status = {0};

        open_store("others.db");
        put_one_by_one(1);
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("others.db"), false,
                                              &others, &status),
                         0);
        uint64_t id = start_watch();
        atomic_store(&holds_events, true);
        put_one_by_one(1);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        struct hfd_store *own = f.store;
        f.store = others;
        put_one_by_one(1);
        f.store = own;
        put_one_by_one(1);
        atomic_store(&f.let_go, true);
        PATIENCE_AWAIT(atomic_load(&n_events) == 3);
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), 3);
        others->ops->free(others);
        close_store();
}

static bool is_delivered_from_memory(void) {
        int n_logged = atomic_load(&f.n_logged), n = atomic_load(&n_events);

        put_one_by_one(1);
        PATIENCE_AWAIT(atomic_load(&n_events) == n + 1);
        return atomic_load(&f.n_logged) == n_logged;
}

/* The store's own writes need not be read from the file, except if the watcher looks at the file
 * just after a commit, before the writer has handed it over. */
static void test_a_watch_gets_own_writes_from_memory(void **state) {
        open_store("own.db");
        put_one_by_one(1);
        uint64_t id = start_watch();
        put_one_by_one(1);
        PATIENCE_AWAIT(atomic_load(&n_events) == 1);
        PATIENCE_AWAIT(is_delivered_from_memory());
        int n = atomic_load(&n_events), n_done = atomic_load(&f.n_done);
        start_put("~", count_done, NULL); /* outside of its range */
        await_done(n_done + 1);
        put_one_by_one(1);
        PATIENCE_AWAIT(atomic_load(&n_events) > n);
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), n + 1);
        close_store();
}

static void *free_store(void *ctx) {
        close_store();
        return NULL;
}

static bool is_drained(void) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(f.store);

        pthread_mutex_lock(&sqlite->mu);
        bool drained = sqlite->drained;
        pthread_mutex_unlock(&sqlite->mu);
        return drained;
}

/* The watcher ends without having looked at a commit that came while it was busy. */
static void test_a_commit_at_the_end_leaves_nothing(void **state) {
        size_t n_live = failing_memory_n_live();
        pthread_t thread;

        open_store("end.db");
        put_one_by_one(1);
        (void)start_watch();
        atomic_store(&holds_events, true);
        put_one_by_one(1);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        put_one_by_one(1);
        assert_int_equal(pthread_create(&thread, NULL, free_store, NULL), 0);
        PATIENCE_AWAIT(is_drained());
        atomic_store(&f.let_go, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&watch_error), HF_E_CANCELED);
        assert_int_equal(failing_memory_n_live(), n_live);
}

/* Then it reads the rows to see whether there are any. */
static void test_a_watch_goes_on_while_sqlite_cannot_tell_of_commits(void **state) {
        struct hfd_store *others = NULL;
        struct hf_status status = {0};

        open_store("blind.db");
        put_one_by_one(1);
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("blind.db"), false,
                                              &others, &status),
                         0);
        uint64_t id = start_watch();
        atomic_store(&f.fails_on, "hfd-sql-watch");
        atomic_store(&f.fails_in, "PRAGMA data_version");
        for (int i = 1; i <= 3; i++) {
                assert_true(store_client_put(others, "/a", "x") > 0);
                PATIENCE_AWAIT(atomic_load(&n_events) == i);
        }
        atomic_store(&f.fails_in, NULL);
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        others->ops->free(others);
        close_store();
}

/* Its read fails as well, but that no longer matters. */
static void test_a_watch_that_is_canceled_while_it_reads_ends_as_canceled(void **state) {
        open_store("canceled-watch.db");
        put_one_by_one(1);
        atomic_store(&f.holds, "hfd-sql-watch");
        uint64_t id = start_watch();
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        f.store->ops->watch_cancel(f.store, id);
        atomic_store(&f.fails, true);
        atomic_store(&f.let_go, true);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&watch_error), HF_E_CANCELED);
        atomic_store(&f.fails, false);
        close_store();
}

/* What a batch has remembered of its rows, and what it has kept for watches, is forgotten when it
 * fails. Nobody knows whether a commit that failed is on the disk. */
static void test_a_batch_that_fails_leaves_no_trace(void **state) {
        size_t n_live = failing_memory_n_live();
        uint64_t revision;

        open_store("failed.db");
        hold_writer();
        start_puts(4);
        atomic_store(&f.let_go, true);
        await_done(4);
        revision = atomic_load(&f.revision) - 3; /* of the first */
        uint64_t id = start_watch();
        hold_writer();
        for (int i = 0; i < 4; i++)
                start_put(key_of(i), count_any, NULL);
        atomic_store(&f.fails_in, "COMMIT");
        atomic_store(&f.let_go, true);
        await_done(8);
        atomic_store(&f.fails_in, NULL);
        assert_int_equal(atomic_load(&f.n_written), 4);
        assert_int_equal(atomic_load(&f.last_error), HF_E_TIMEOUT);
        hold_writer();
        for (int i = 0; i < 4; i++)
                start_put_if(key_of(i), revision + (uint64_t)i, count_done, NULL);
        atomic_store(&f.let_go, true);
        await_done(12);
        PATIENCE_AWAIT(atomic_load(&n_events) >= 2 + 4); /* /held twice */
        f.store->ops->watch_cancel(f.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), 2 + 4);
        close_store();
        assert_int_equal(failing_memory_n_live(), n_live);
}

/* Clients that renew Leases write the same keys again and again. */
static void test_a_key_that_a_batch_has_written_is_not_looked_up(void **state) {
        open_store("remembered.db");
        hold_writer();
        start_puts(4);
        atomic_store(&f.let_go, true);
        await_done(4);
        for (int round = 0; round < 3; round++) {
                uint64_t first = atomic_load(&f.revision) - 3;
                hold_writer();
                int n_looked_up = atomic_load(&f.n_looked_up);
                for (int i = 0; i < 4; i++)
                        start_put_if(key_of(i), first + (uint64_t)i, count_done, NULL);
                atomic_store(&f.let_go, true);
                await_done(8 + 4 * round);
                assert_int_equal(atomic_load(&f.n_looked_up), n_looked_up);
        }
        close_store();
}

static void start_large(const char *key, char content, size_t n) {
        struct hf__buf *value = hf__buf_new(n);
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_non_null(value);
        memset(value->data, content, n);
        assert_int_equal(f.store->ops->txn(f.store, &txn, HF_NSEC_NEVER, count_any, NULL), 0);
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

        open_store("spilled.db");
        put_one_by_one(1);
        assert_int_equal(hfd_sqlite_store_new(&host, sqlite_fixture_path("spilled.db"), false,
                                              &others, &status),
                         0);
        hold_writer();
        for (int i = 0; i < 3; i++)
                start_large(key_of(i), 'a', N);
        atomic_store(&f.fails_in, "COMMIT");
        atomic_store(&f.let_go, true);
        await_done(1 + 3);
        atomic_store(&f.fails_in, NULL);
        assert_int_equal(atomic_load(&f.n_written), 1);
        own = f.store;
        f.store = others;
        start_large("/others", 'b', N_OTHERS);
        await_done(1 + 3 + 1);
        f.store = own;
        put_one_by_one(1);
        assert_int_equal(store_client_mod_revision(own, key_of(0)), 0);
        expect_large(own, "/others", 'b', N_OTHERS);
        expect_large(others, "/others", 'b', N_OTHERS);
        assert_int_equal(hfd_sqlite_check(sqlite_fixture_path("spilled.db"), &faults, &status), 0);
        assert_int_equal(faults.n, 0);
        others->ops->free(others);
        close_store();
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
                cmocka_unit_test(test_a_watch_may_begin_now),
                cmocka_unit_test(test_a_watch_without_memory_is_refused),
                cmocka_unit_test(test_a_watch_misses_nothing_for_lack_of_memory),
                cmocka_unit_test(test_a_watch_reads_what_others_have_written_before),
                cmocka_unit_test(test_a_watch_gets_own_writes_from_memory),
                cmocka_unit_test(test_a_commit_at_the_end_leaves_nothing),
                cmocka_unit_test(test_a_watch_goes_on_while_sqlite_cannot_tell_of_commits),
                cmocka_unit_test(test_a_watch_that_is_canceled_while_it_reads_ends_as_canceled),
                cmocka_unit_test(test_a_batch_that_fails_leaves_no_trace),
                cmocka_unit_test(test_a_key_that_a_batch_has_written_is_not_looked_up),
                cmocka_unit_test(test_a_large_batch_that_fails_is_not_written_later),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
