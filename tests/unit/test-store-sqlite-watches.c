/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the watches of a store in a file of SQLite have their events from, its writer's memory or
 * the file, and that none is lost or delivered twice: when memory runs out, when another store
 * writes, when a batch fails, when SQLite fails, and at the end. tests/lib/timed_sqlite.h has the
 * store.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/store.h"
#include "store_client.h"
#include "timed_sqlite.h"

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
        atomic_store(&timed.is_held, true);
        PATIENCE_AWAIT(atomic_load(&timed.let_go));
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
        assert_int_equal(timed.store->ops->watch(timed.store, "/", "0", revision, &handler, NULL,
                                                 &id),
                         0);
        return id;
}

/* From the next write on. */
static uint64_t start_watch(void) { return start_watch_at(atomic_load(&timed.revision) + 1); }

/* A watch without a revision has nothing that was written before. */
static void test_a_watch_may_begin_now(void **state) {
        timed_sqlite_open("now.db");
        timed_sqlite_put(5);
        uint64_t last = atomic_load(&timed.revision), id = start_watch_at(0);
        do
                timed_sqlite_put(1);
        while (atomic_load(&n_events) == 0);
        assert_true(atomic_load(&first_revision) > last);
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        timed_sqlite_close();
}

/* It consists of three blocks. */
static void test_a_watch_without_memory_is_refused(void **state) {
        static const struct hfd_watch_handler handler = {.event = count_events, .end = note_end};

        timed_sqlite_open("no-watch.db");
        timed_sqlite_put(1);
        hand_clock_await_waiter();
        atomic_store(&watch_ended, false);
        for (int n = 0; n < 3; n++) {
                size_t n_live = failing_memory_n_live();
                failing_memory_arm(n);
                int r = timed.store->ops->watch(timed.store, "/", "0", 1, &handler, NULL, NULL);
                failing_memory_disarm();
                assert_int_equal(r, -ENOMEM);
                assert_int_equal(failing_memory_n_live(), n_live);
        }
        timed_sqlite_close();
        assert_false(atomic_load(&watch_ended));
}

/* The changes that could not be kept in memory are read from the file. */
static void test_a_watch_misses_nothing_for_lack_of_memory(void **state) {
        int n = 0, n_held = 0;

        timed_sqlite_open("watched.db");
        timed_sqlite_put(1);
        uint64_t id = start_watch();
        do {
                int n_done = atomic_load(&timed.n_done);
                timed_sqlite_hold_writer();
                n_held++;
                for (int i = 0; i < 5; i++)
                        timed_sqlite_start_put(timed_sqlite_key(i), timed_sqlite_count_any, NULL);
                failing_memory_arm(n++);
                atomic_store(&timed.let_go, true);
                timed_sqlite_await_done(n_done + 5);
                failing_memory_disarm();
                PATIENCE_AWAIT(atomic_load(&watch_ended) ||
                               atomic_load(&n_events) ==
                                       atomic_load(&timed.n_written) - 1 + n_held);
        } while (failing_memory_hit() && !atomic_load(&watch_ended));
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        timed_sqlite_close();
}

/* The watch has missed a write of another store when it gets one of its own from memory. */
static void test_a_watch_reads_what_others_have_written_before(void **state) {
        struct hfd_store *others = NULL;
        struct hf_status status = {0};

        timed_sqlite_open("others.db");
        timed_sqlite_put(1);
        assert_int_equal(hfd_sqlite_store_new(&timed_sqlite_host, sqlite_fixture_path("others.db"),
                                              false, &others, &status),
                         0);
        uint64_t id = start_watch();
        atomic_store(&holds_events, true);
        timed_sqlite_put(1);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        struct hfd_store *own = timed.store;
        timed.store = others;
        timed_sqlite_put(1);
        timed.store = own;
        timed_sqlite_put(1);
        atomic_store(&timed.let_go, true);
        PATIENCE_AWAIT(atomic_load(&n_events) == 3);
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), 3);
        others->ops->free(others);
        timed_sqlite_close();
}

static bool is_delivered_from_memory(void) {
        int n_logged = atomic_load(&timed.n_logged), n = atomic_load(&n_events);

        timed_sqlite_put(1);
        PATIENCE_AWAIT(atomic_load(&n_events) == n + 1);
        return atomic_load(&timed.n_logged) == n_logged;
}

/* The store's own writes need not be read from the file, except if the watcher looks at the file
 * just after a commit, before the writer has handed it over. */
static void test_a_watch_gets_own_writes_from_memory(void **state) {
        timed_sqlite_open("own.db");
        timed_sqlite_put(1);
        uint64_t id = start_watch();
        timed_sqlite_put(1);
        PATIENCE_AWAIT(atomic_load(&n_events) == 1);
        PATIENCE_AWAIT(is_delivered_from_memory());
        int n = atomic_load(&n_events), n_done = atomic_load(&timed.n_done);
        timed_sqlite_start_put("~", timed_sqlite_count_done, NULL); /* outside of its range */
        timed_sqlite_await_done(n_done + 1);
        timed_sqlite_put(1);
        PATIENCE_AWAIT(atomic_load(&n_events) > n);
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), n + 1);
        timed_sqlite_close();
}

static void *free_store(void *ctx) {
        timed_sqlite_close();
        return NULL;
}

static bool is_drained(void) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(timed.store);

        pthread_mutex_lock(&sqlite->mu);
        bool drained = sqlite->drained;
        pthread_mutex_unlock(&sqlite->mu);
        return drained;
}

/* The watcher ends without having looked at a commit that came while it was busy. */
static void test_a_commit_at_the_end_leaves_nothing(void **state) {
        size_t n_live = failing_memory_n_live();
        pthread_t thread;

        timed_sqlite_open("end.db");
        timed_sqlite_put(1);
        (void)start_watch();
        atomic_store(&holds_events, true);
        timed_sqlite_put(1);
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        timed_sqlite_put(1);
        assert_int_equal(pthread_create(&thread, NULL, free_store, NULL), 0);
        PATIENCE_AWAIT(is_drained());
        atomic_store(&timed.let_go, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&watch_error), HF_E_CANCELED);
        assert_int_equal(failing_memory_n_live(), n_live);
}

/* Then it reads the rows to see whether there are any. */
static void test_a_watch_goes_on_while_sqlite_cannot_tell_of_commits(void **state) {
        struct hfd_store *others = NULL;
        struct hf_status status = {0};

        timed_sqlite_open("blind.db");
        timed_sqlite_put(1);
        assert_int_equal(hfd_sqlite_store_new(&timed_sqlite_host, sqlite_fixture_path("blind.db"),
                                              false, &others, &status),
                         0);
        uint64_t id = start_watch();
        atomic_store(&timed.fails_on, "hfd-sql-watch");
        atomic_store(&timed.fails_in, "PRAGMA data_version");
        for (int i = 1; i <= 3; i++) {
                assert_true(store_client_put(others, "/a", "x") > 0);
                PATIENCE_AWAIT(atomic_load(&n_events) == i);
        }
        atomic_store(&timed.fails_in, NULL);
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        others->ops->free(others);
        timed_sqlite_close();
}

/* Its read fails as well, but that no longer matters. */
static void test_a_watch_that_is_canceled_while_it_reads_ends_as_canceled(void **state) {
        timed_sqlite_open("canceled-watch.db");
        timed_sqlite_put(1);
        atomic_store(&timed.holds_in, "BEGIN"); /* of the read */
        atomic_store(&timed.holds, "hfd-sql-watch");
        uint64_t id = start_watch();
        PATIENCE_AWAIT(atomic_load(&timed.is_held));
        timed.store->ops->watch_cancel(timed.store, id);
        atomic_store(&timed.fails, true);
        atomic_store(&timed.let_go, true);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&watch_error), HF_E_CANCELED);
        atomic_store(&timed.fails, false);
        timed_sqlite_close();
}

/* What a batch has remembered of its rows, and what it has kept for watches, is forgotten when it
 * fails. Nobody knows whether a commit that failed is on the disk. */
static void test_a_batch_that_fails_leaves_no_trace(void **state) {
        size_t n_live = failing_memory_n_live();
        uint64_t revision;

        timed_sqlite_open("failed.db");
        timed_sqlite_hold_writer();
        timed_sqlite_start_puts(4);
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(4);
        revision = atomic_load(&timed.revision) - 3; /* of the first */
        uint64_t id = start_watch();
        timed_sqlite_hold_writer();
        for (int i = 0; i < 4; i++)
                timed_sqlite_start_put(timed_sqlite_key(i), timed_sqlite_count_any, NULL);
        atomic_store(&timed.fails_in, "COMMIT");
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(8);
        atomic_store(&timed.fails_in, NULL);
        assert_int_equal(atomic_load(&timed.n_written), 4);
        assert_int_equal(atomic_load(&timed.last_error), HF_E_TIMEOUT);
        timed_sqlite_hold_writer();
        for (int i = 0; i < 4; i++)
                timed_sqlite_start_put_if(timed_sqlite_key(i), revision + (uint64_t)i,
                                          timed_sqlite_count_done, NULL);
        atomic_store(&timed.let_go, true);
        timed_sqlite_await_done(12);
        PATIENCE_AWAIT(atomic_load(&n_events) >= 2 + 4); /* /held twice */
        timed.store->ops->watch_cancel(timed.store, id);
        PATIENCE_AWAIT(atomic_load(&watch_ended));
        assert_int_equal(atomic_load(&n_events), 2 + 4);
        timed_sqlite_close();
        assert_int_equal(failing_memory_n_live(), n_live);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_watch_may_begin_now),
                cmocka_unit_test(test_a_watch_without_memory_is_refused),
                cmocka_unit_test(test_a_watch_misses_nothing_for_lack_of_memory),
                cmocka_unit_test(test_a_watch_reads_what_others_have_written_before),
                cmocka_unit_test(test_a_watch_gets_own_writes_from_memory),
                cmocka_unit_test(test_a_commit_at_the_end_leaves_nothing),
                cmocka_unit_test(test_a_watch_goes_on_while_sqlite_cannot_tell_of_commits),
                cmocka_unit_test(test_a_watch_that_is_canceled_while_it_reads_ends_as_canceled),
                cmocka_unit_test(test_a_batch_that_fails_leaves_no_trace),
        };
        return cmocka_run_group_tests(tests, timed_sqlite_set_up, timed_sqlite_tear_down);
}
