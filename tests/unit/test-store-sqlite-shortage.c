/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a file of SQLite while memory runs out: each allocation of an operation fails once.
 * The operation then fails, or its reply is whole; a watch has every event, or it ends.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "patience.h"
#include "server/storage/sqlite/commits.h"
#include "server/storage/sqlite/store.h"
#include "sqlite_fixture.h"
#include "store_client.h"

/* More keys than the first block of a reply has room for. */
enum { N_KEYS = 6 };

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct hfd_store *store;
static const char *const keys[N_KEYS] = {"/a", "/b", "/c", "/d", "/e", "/f"};

static void open_store(const char *name) {
        struct hf_status status = {0};

        if (hfd_sqlite_store_new(&host, sqlite_fixture_path(name), true, &store, &status) != 0)
                fail_msg("%s", status.message);
        for (int i = 0; i < N_KEYS; i++)
                assert_true(store_client_put(store, keys[i], keys[i]) > 0);
}

/* ---- operations ---- */

/* The copy of the reply is the test's, so its allocations do not fail. */
static void fill(void *ctx, const struct hfd_store_reply *from) {
        failing_memory_enter();
        store_reply_fill(ctx, from);
        failing_memory_leave();
}

/* r: the result of the call that has started the operation. */
static int wait_for(int r, struct store_reply *reply) {
        if (r != 0) {
                assert_int_equal(r, -ENOMEM);
                return r;
        }
        r = store_reply_wait(reply);
        assert_int_equal(reply->status.error, r);
        return r;
}

/* The first n keys, with their values or without, or nothing. */
static void expect_keys(const struct store_reply *reply, size_t n, bool keys_only) {
        assert_int_equal(reply->n_kvs, n);
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(reply->kvs[i].key, keys[i]);
                assert_true((reply->kvs[i].value == NULL) == keys_only);
                if (!keys_only)
                        assert_string_equal(store_reply_value(reply, i), keys[i]);
        }
}

static void get(void) {
        struct store_reply reply;

        store_reply_init(&reply);
        int r = wait_for(store->ops->get(store, "/a", false, in_msec(PATIENCE_MSEC), fill, &reply),
                         &reply);
        assert_true(r == 0 || r == -ENOMEM);
        expect_keys(&reply, r == 0 ? 1 : 0, false);
        store_reply_deinit(&reply);
}

static void list(bool keys_only) {
        struct store_reply reply;

        store_reply_init(&reply);
        int r = wait_for(store->ops->list(store, "/", NULL, 0, 0, keys_only, in_msec(PATIENCE_MSEC),
                                          fill, &reply),
                         &reply);
        assert_true(r == 0 || r == -ENOMEM);
        expect_keys(&reply, r == 0 ? N_KEYS : 0, keys_only);
        store_reply_deinit(&reply);
}

static void list_values(void) { list(false); }
static void list_keys(void) { list(true); }

static int run_txn(const struct hfd_txn *txn, struct store_reply *reply) {
        store_reply_init(reply);
        return wait_for(store->ops->txn(store, txn, in_msec(PATIENCE_MSEC), fill, reply), reply);
}

static void conflict(void) {
        const struct hfd_compare wrong = {.kind = HFD_MOD_EQUALS, .key = "/a", .revision = 1};
        const struct hfd_txn txn = {.compares = &wrong,
                                    .n_compares = 1,
                                    .get_on_failure = keys,
                                    .n_get_on_failure = N_KEYS};
        struct store_reply reply;

        int r = run_txn(&txn, &reply);
        assert_true(r == HF_E_CONFLICT || r == HF_E_UNAVAILABLE || r == -ENOMEM);
        expect_keys(&reply, r == HF_E_CONFLICT ? N_KEYS : 0, false);
        store_reply_deinit(&reply);
}

/* The compare holds, and does not fail for lack of memory. */
static void compare(void) {
        const struct hfd_compare same = {.kind = HFD_VALUE_EQUALS,
                                         .key = "/a",
                                         .value = "/a",
                                         .n_value = 2};
        const struct hfd_op absent = {.kind = HFD_DELETE, .key = "/absent"};
        const struct hfd_txn txn = {.compares = &same, .n_compares = 1, .ops = &absent, .n_ops = 1};
        struct store_reply reply;

        int r = run_txn(&txn, &reply);
        assert_true(r == 0 || r == HF_E_UNAVAILABLE || r == -ENOMEM);
        store_reply_deinit(&reply);
}

static void fail_each_allocation(void (*act)(void)) {
        int n = 0;

        do {
                size_t n_live = failing_memory_n_live();
                failing_memory_arm(n++);
                act();
                failing_memory_disarm();
                /* The store's thread frees an operation after its reply: perhaps n_live has the
                 * operation before, too. */
                PATIENCE_AWAIT(failing_memory_n_live() <= n_live);
        } while (failing_memory_hit());
        assert_true(n > 1);
}

static void test_a_reply_without_memory_is_an_error(void **state) {
        open_store("replies.db");
        fail_each_allocation(get);
        fail_each_allocation(list_values);
        fail_each_allocation(list_keys);
        fail_each_allocation(conflict);
        fail_each_allocation(compare);
        store->ops->free(store);
}

/* ---- watches ---- */

static atomic_int n_events, watch_error;
static atomic_bool watch_ended;

static void count_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        atomic_fetch_add(&n_events, (int)n);
}

static void note_end(void *ctx, int error, const struct hf_status *status) {
        atomic_store(&watch_error, error);
        atomic_store(&watch_ended, true);
}

/* It reads the past from the file. No write follows after which it would look again. */
static void test_a_watch_without_memory_ends(void **state) {
        static const struct hfd_watch_handler handler = {.event = count_events, .end = note_end};
        int n = 0;
        bool hit;

        open_store("watches.db");
        do {
                uint64_t id;
                atomic_store(&n_events, 0);
                atomic_store(&watch_ended, false);
                failing_memory_arm(n++);
                int r = store->ops->watch(store, "/", "0", 2, &handler, NULL, &id);
                if (r == 0)
                        PATIENCE_AWAIT(atomic_load(&watch_ended) ||
                                       atomic_load(&n_events) == N_KEYS);
                failing_memory_disarm();
                hit = failing_memory_hit();
                if (r != 0) {
                        assert_int_equal(r, -ENOMEM);
                        continue;
                }
                if (atomic_load(&watch_ended))
                        assert_int_equal(atomic_load(&watch_error), HF_E_UNAVAILABLE);
                else
                        store->ops->watch_cancel(store, id);
                PATIENCE_AWAIT(atomic_load(&watch_ended));
        } while (hit);
        assert_true(n > 2 * N_KEYS);
        store->ops->free(store);
}

/* One commit of n writes, of a revision each. */
static struct hfd_sqlite_commits committed(uint64_t first, size_t n) {
        struct hfd_sqlite_commits commits = {.history = 7, .first = first, .next = first + n};

        for (size_t i = 0; i < n; i++)
                assert_int_equal(hfd_sqlite_kvs_add(&commits.writes, strdup("/a"), hf__buf_new(1),
                                                    first + i, first),
                                 0);
        return commits;
}

/* Without room for both, only the later one is kept. The watcher reads the other from the file. */
static void test_commits_are_kept_together_or_only_the_later_one(void **state) {
        size_t n_live = failing_memory_n_live();

        for (int n = 0; n < 2; n++) {
                struct hfd_sqlite_commits commits = committed(2, 3), next = committed(5, 4);
                failing_memory_arm(n);
                hfd_sqlite_commits_add(&commits, &next);
                failing_memory_disarm();
                assert_int_equal(commits.first, n == 0 ? 5 : 2);
                assert_int_equal(commits.next, 9);
                assert_int_equal(commits.writes.n, n == 0 ? 4 : 7);
                for (size_t i = 0; i < commits.writes.n; i++)
                        assert_int_equal(commits.writes.kvs[i].mod_revision, commits.first + i);
                hfd_sqlite_commits_deinit(&commits);
                hfd_sqlite_commits_deinit(&next);
                assert_int_equal(failing_memory_n_live(), n_live);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_reply_without_memory_is_an_error),
                cmocka_unit_test(test_a_watch_without_memory_ends),
                cmocka_unit_test(test_commits_are_kept_together_or_only_the_later_one),
        };
        return cmocka_run_group_tests(tests, sqlite_fixture_setup, sqlite_fixture_teardown);
}
