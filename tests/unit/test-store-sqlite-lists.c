/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a store in a file of SQLite: that a long one does not count as hanging, that one for
 * which nobody waits any more ends, and which version of a key it shows. The clock stands still
 * until the test moves it, and the lister waits before the steps that the test chooses.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/storage/sqlite/engine/sqlite_library.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

/* Before its first row a list takes fewer steps, and from row to row at most two. */
enum { FIRST_STEPS = 10, N_KEYS = 2000 };

static struct hfd_sqlite_library real;
static const struct hf_host host = {.size = sizeof(struct hf_host), .clock = &hand_clock};

static struct {
        struct hfd_store *store;
        atomic_int n_steps;  /* of the lister since the test has set it to 0 */
        atomic_int holds_at; /* this step waits; 0 = none */
        atomic_bool is_held, goes_on;
        atomic_int n_done;
} f;

/* ---- SQLite ---- */

static int count_step(sqlite3_stmt *statement) {
        char name[16] = "";

        (void)pthread_getname_np(pthread_self(), name, sizeof name);
        if (strcmp(name, "hfd-sql-list") == 0 &&
            atomic_fetch_add(&f.n_steps, 1) + 1 == atomic_load(&f.holds_at)) {
                atomic_store(&f.is_held, true);
                PATIENCE_AWAIT(atomic_exchange(&f.goes_on, false));
        }
        return real.step(statement);
}

static void hold_at(int step) {
        atomic_store(&f.is_held, false);
        atomic_store(&f.holds_at, step);
}

static int set_up(void **state) {
        struct hf_status status = {0};

        if (sqlite_fixture_setup(state) != 0 || hfd_sqlite_load(&status) != 0)
                return 1;
        real = hfd_sqlite;
        hfd_sqlite.step = count_step;
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

static void count_done(void *ctx, const struct hfd_store_reply *reply) {
        assert(reply->error == 0);
        atomic_fetch_add(&f.n_done, 1);
}

static void fill(void) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        char key[16];
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        for (int i = 0; i < N_KEYS; i++) {
                (void)snprintf(key, sizeof key, "/k/%04d", i);
                assert_int_equal(f.store->ops->txn(f.store, &txn, HF_NSEC_NEVER, count_done, NULL),
                                 0);
        }
        hf__buf_unref(value);
        PATIENCE_AWAIT(atomic_load(&f.n_done) == N_KEYS);
}

/* Starts a list, which then waits. */
static void start_list(hf_nsec deadline, struct store_reply *reply) {
        store_reply_init(reply);
        atomic_store(&f.n_steps, 0);
        hold_at(FIRST_STEPS);
        assert_int_equal(f.store->ops->list(f.store, "/k/", NULL, 0, 0, false, deadline,
                                            store_reply_fill, reply),
                         0);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
}

static void go_on(void) { atomic_store(&f.goes_on, true); }

/* ---- tests ---- */

/* It hangs if it makes no progress for 10 s, however long it takes in all. */
static void test_a_long_list_does_not_hang(void **state) {
        struct store_reply reply;

        open_store("long.db");
        fill();
        PATIENCE_AWAIT(f.store->ops->iterations(f.store) > 0);
        start_list(HF_NSEC_NEVER, &reply);
        hand_clock_move(9 * SEC);
        assert_true(f.store->ops->iterations(f.store) > 0);
        hold_at(FIRST_STEPS + 2 * 1100);
        go_on();
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        hand_clock_move(9 * SEC);
        assert_true(f.store->ops->iterations(f.store) > 0);
        hand_clock_move(2 * SEC);
        assert_int_equal(f.store->ops->iterations(f.store), 0);
        go_on();
        assert_int_equal(store_reply_wait(&reply), 0);
        assert_int_equal(reply.n_kvs, N_KEYS);
        store_reply_deinit(&reply);
        f.store->ops->free(f.store);
}

static void test_a_list_ends_after_its_deadline(void **state) {
        struct store_reply reply;

        open_store("late.db");
        fill();
        start_list(hand_clock_now() + SEC / 2, &reply);
        hand_clock_move(SEC);
        assert_int_equal(store_reply_wait(&reply), HF_E_UNAVAILABLE);
        assert_int_equal(reply.n_kvs, 0);
        store_reply_deinit(&reply);
        go_on();
        /* The next list begins when this one has ended. */
        assert_int_equal(store_client_list(f.store, "/k/", NULL, 0, 1, true, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        store_reply_deinit(&reply);
        assert_true(atomic_load(&f.n_steps) < 4 * FIRST_STEPS);
        f.store->ops->free(f.store);
}

static void test_a_list_ends_at_the_stop(void **state) {
        struct store_reply reply;

        open_store("stopped.db");
        fill();
        start_list(HF_NSEC_NEVER, &reply);
        f.store->ops->stop(f.store);
        go_on();
        assert_int_equal(store_reply_wait(&reply), HF_E_CANCELED);
        assert_int_equal(reply.n_kvs, 0);
        store_reply_deinit(&reply);
        assert_true(atomic_load(&f.n_steps) < 4 * FIRST_STEPS);
        f.store->ops->free(f.store);
}

static void expect_list(uint64_t revision, const char *expected) {
        struct store_reply reply;
        char found[64] = "";

        assert_int_equal(store_client_list(f.store, "/", NULL, revision, 0, false, &reply), 0);
        for (size_t i = 0; i < reply.n_kvs; i++) {
                size_t n = strlen(found);
                (void)snprintf(found + n, sizeof found - n, "%s=%s ", reply.kvs[i].key,
                               store_reply_value(&reply, i));
        }
        store_reply_deinit(&reply);
        assert_string_equal(found, expected);
}

static uint64_t put_often(const char *key, int n) {
        uint64_t revision = 0;
        char value[8];

        for (int i = 1; i <= n; i++) {
                (void)snprintf(value, sizeof value, "%d", i);
                revision = store_client_put(f.store, key, value);
                assert_true(revision > 0);
        }
        return revision;
}

/* A list at an old revision shows no key that was made later, whether it has few versions since
 * then or many. */
static void test_a_list_shows_no_later_key(void **state) {
        open_store("later.db");
        (void)put_often("/a", 1);
        uint64_t before = put_often("/e", 1);
        (void)put_often("/b", 2);
        (void)put_often("/c", 30);
        (void)put_often("/d", 8);
        uint64_t after = put_often("/f", 30);
        expect_list(before, "/a=1 /e=1 ");
        expect_list(before + 2, "/a=1 /b=2 /e=1 ");
        expect_list(before + 2 + 5, "/a=1 /b=2 /c=5 /e=1 ");
        expect_list(after - 30, "/a=1 /b=2 /c=30 /d=8 /e=1 ");
        expect_list(after, "/a=1 /b=2 /c=30 /d=8 /e=1 /f=30 ");
        f.store->ops->free(f.store);
}

/* Each list begins a snapshot of its own, also after one that has searched for versions. */
static void test_a_list_shows_what_was_written_before_it(void **state) {
        open_store("fresh.db");
        (void)put_often("/a", 30);
        expect_list(0, "/a=30 ");
        (void)put_often("/a", 7);
        expect_list(0, "/a=7 ");
        (void)put_often("/b", 1);
        expect_list(0, "/a=7 /b=1 ");
        f.store->ops->free(f.store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_long_list_does_not_hang),
                cmocka_unit_test(test_a_list_ends_after_its_deadline),
                cmocka_unit_test(test_a_list_ends_at_the_stop),
                cmocka_unit_test(test_a_list_shows_no_later_key),
                cmocka_unit_test(test_a_list_shows_what_was_written_before_it),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
