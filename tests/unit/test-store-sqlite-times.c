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
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "count_descriptors.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

#define SWEEP "SELECT id, previous, value IS NULL" /* reads what a compaction leaves to remove */

static struct hfd_sqlite_library real;

static struct {
        struct hfd_store *store;
        atomic_bool fails;              /* steps of SQLite do */
        _Atomic(const char *) fails_in; /* those do whose text begins with this; NULL = none */
        _Atomic(const char *) holds;    /* the next step of the thread of this name waits */
        atomic_bool is_held, let_go;
        atomic_int n_releases, n_warnings;
        atomic_int n_done, n_written;  /* operations; and those that succeeded */
        atomic_uint_fast64_t revision; /* of the last one */
} f;

/* ---- SQLite and the host ---- */

static void hold_if_wanted(void) {
        const char *wanted = atomic_load(&f.holds);
        char name[16] = "";

        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        if (!wanted || strcmp(name, wanted) != 0)
                return;
        atomic_store(&f.holds, NULL);
        atomic_store(&f.is_held, true);
        PATIENCE_AWAIT(atomic_load(&f.let_go));
}

static int step_or_fail(sqlite3_stmt *statement) {
        hold_if_wanted();
        const char *fails_in = atomic_load(&f.fails_in);
        if (fails_in && strncmp(sqlite3_sql(statement), fails_in, strlen(fails_in)) == 0)
                return SQLITE_IOERR;
        return atomic_load(&f.fails) ? SQLITE_IOERR : real.step(statement);
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

/* The rows cannot be read, but they are not taken for removed. */
static void test_a_removal_that_cannot_read_leaves_nothing_out(void **state) {
        open_store("retries.db");
        put_one_by_one(10);
        hand_clock_move(SEC);
        atomic_store(&f.fails_in, SWEEP);
        assert_int_equal(f.store->ops->compact(f.store, atomic_load(&f.revision), HF_NSEC_NEVER,
                                               count_done, NULL),
                         0);
        await_done(11);
        hand_clock_await_deadline(1 * SEC, 1 * SEC);
        atomic_store(&f.fails_in, NULL);
        hand_clock_move(1 * SEC);
        PATIENCE_AWAIT(count_versions() == 1);
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

static bool has_log(void) { return access(sqlite_fixture_path("closed.db-wal"), F_OK) == 0; }

/* Only the holder of the lock copies the log into the file, because a store of another process may
 * write to it meanwhile. */
static void test_only_the_holder_of_the_lock_removes_the_log(void **state) {
        open_store("closed.db");
        put_one_by_one(1);
        assert_true(has_log());
        int fd = open(sqlite_fixture_path("closed.db-notify"), O_WRONLY | O_CLOEXEC);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        close_store();
        assert_true(has_log());
        close(fd);
        open_store("closed.db");
        assert_true(store_client_mod_revision(f.store, "/a") > 0);
        close_store();
        assert_false(has_log());
}

/* ---- shortage ---- */

static void test_a_store_without_descriptors_is_refused(void **state) {
        struct rlimit before, limit;
        unsigned n_before, n_refused = 0;
        int r = -1;

        open_store("descriptors.db");
        close_store();
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

/* What a batch has remembered of its rows is forgotten when it fails. */
static void test_a_batch_that_fails_leaves_no_trace(void **state) {
        uint64_t revision;

        open_store("failed.db");
        hold_writer();
        start_puts(4);
        atomic_store(&f.let_go, true);
        await_done(4);
        revision = atomic_load(&f.revision) - 3; /* of the first */
        hold_writer();
        for (int i = 0; i < 4; i++)
                start_put(key_of(i), count_any, NULL);
        atomic_store(&f.fails_in, "COMMIT");
        atomic_store(&f.let_go, true);
        await_done(8);
        atomic_store(&f.fails_in, NULL);
        assert_int_equal(atomic_load(&f.n_written), 4);
        hold_writer();
        for (int i = 0; i < 4; i++)
                start_put_if(key_of(i), revision + (uint64_t)i, count_done, NULL);
        atomic_store(&f.let_go, true);
        await_done(12);
        close_store();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_batch_waits_for_the_writes_that_follow_a_large_one),
                cmocka_unit_test(test_a_stop_does_not_wait_for_more_writes),
                cmocka_unit_test(test_a_removal_that_fails_is_tried_again),
                cmocka_unit_test(test_a_removal_that_cannot_read_leaves_nothing_out),
                cmocka_unit_test(test_what_is_kept_for_writes_is_freed_when_none_comes),
                cmocka_unit_test(test_the_pages_of_a_list_are_freed),
                cmocka_unit_test(test_a_thread_that_works_for_ten_seconds_hangs),
                cmocka_unit_test(test_a_list_ends_when_the_store_is_stopped),
                cmocka_unit_test(test_only_the_holder_of_the_lock_removes_the_log),
                cmocka_unit_test(test_a_store_without_descriptors_is_refused),
                cmocka_unit_test(test_an_operation_without_memory_is_refused),
                cmocka_unit_test(test_a_watch_may_begin_now),
                cmocka_unit_test(test_a_watch_without_memory_is_refused),
                cmocka_unit_test(test_a_watch_misses_nothing_for_lack_of_memory),
                cmocka_unit_test(test_a_watch_reads_what_others_have_written_before),
                cmocka_unit_test(test_a_watch_that_is_canceled_while_it_reads_ends_as_canceled),
                cmocka_unit_test(test_a_batch_that_fails_leaves_no_trace),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
