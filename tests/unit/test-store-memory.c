/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of the memory store only: it survives each failing allocation, has etcd's limit to the
 * byte, its thread is woken for each kind of work, and a slow watch loses nothing by a compaction.
 * test-store-conformance.c has what all stores promise.
 */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/storage/memory/store.h"
#include "store_client.h"

static const struct hf_host host = {.size = sizeof host};
static atomic_int n_replies, n_events, n_ends;
static atomic_int last_error;

/* ctx: how many keys the reply has, or NULL. */
static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        if (ctx)
                assert_int_equal(reply->n_kvs, *(const size_t *)ctx);
        atomic_store(&last_error, reply->error);
        atomic_fetch_add(&n_replies, 1);
}
static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        atomic_fetch_add(&n_events, (int)n);
}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        assert_int_equal(status->error, error);
        assert_string_equal(status->message, error == HF_E_GONE
                                                     ? "the watch's start revision is compacted"
                                                     : "the watch was canceled");
        atomic_store(&last_error, error);
        atomic_fetch_add(&n_ends, 1);
}
static const struct hfd_watch_handler handler = {.event = on_events, .end = on_end};

static hf_nsec soon(void) { return in_msec(PATIENCE_MSEC); }

static int setup(void **state) {
        atomic_store(&n_replies, 0);
        atomic_store(&n_events, 0);
        atomic_store(&n_ends, 0);
        atomic_store(&last_error, 0);
        return 0;
}

/* Starts one operation of each kind. Returns how many were started; the others report why not. */
static int start_all(struct hfd_store *store, const struct hfd_txn *put, const struct hfd_txn *late,
                     int (*expect)(int r), int *ret_watches, int *ret_events) {
        static const size_t none = 0, one = 1, three = 3;
        const struct hfd_store_ops *ops = store->ops;
        int n = 0;

        *ret_watches = expect(ops->watch(store, "/", "", 0, &handler, NULL, NULL));
        bool written = expect(ops->txn(store, put, soon(), on_reply, NULL));
        *ret_events = *ret_watches && written ? 3 : 0;
        n += written;
        n += expect(
                ops->get(store, "/a", false, soon(), on_reply, (void *)(written ? &one : &none)));
        n += expect(ops->list(store, "/", NULL, 0, 0, false, soon(), on_reply,
                              (void *)(written ? &three : &none)));
        n += expect(ops->txn(store, late, soon(), on_reply, (void *)(written ? &three : &none)));
        n += expect(ops->revision(store, soon(), on_reply, NULL));
        n += expect(ops->compact(store, 1, soon(), on_reply, NULL));
        return n;
}

/* 1 = it was started */
static int started_or_short(int r) {
        assert_true(r == 0 || is_shortage(r));
        return r == 0;
}
static int refused(int r) {
        assert_int_equal(r, HF_E_CLOSED);
        return 0;
}

static const char *const keys[] = {"/a", "/b", "/c"};
static const struct hfd_compare nothing_there = {.kind = HFD_MOD_EQUALS, .key = "/a"};

static void store_life(int n) {
        struct hf__buf *value = hf__buf_copy("1", 1);
        const struct hfd_op puts[] = {{.kind = HFD_PUT, .key = "/a", .value = value},
                                      {.kind = HFD_PUT, .key = "/b", .value = value},
                                      {.kind = HFD_PUT, .key = "/c", .value = value}};
        const struct hfd_txn put = {.ops = puts, .n_ops = 3};
        const struct hfd_txn late = {.compares = &nothing_there,
                                     .n_compares = 1,
                                     .get_on_failure = keys,
                                     .n_get_on_failure = 3};
        struct hfd_store *store = NULL;
        int n_watches = 0, n_told = 0;

        (void)setup(NULL);
        failing_memory_arm(n);
        int r = hfd_memory_store_new(&host, &store);
        assert_true(r == 0 || is_shortage(r));
        if (r == 0) {
                int n_started =
                        start_all(store, &put, &late, started_or_short, &n_watches, &n_told);
                PATIENCE_AWAIT(atomic_load(&n_events) == n_told);
                store->ops->free(store); /* every callback has returned then */
                assert_int_equal(n_replies, n_started);
                assert_int_equal(n_ends, n_watches);
                assert_true(n_started + n_watches >= 6);
        }
        failing_memory_disarm();
        hf__buf_unref(value);
}

static void test_a_failed_allocation_is_reported(void **state) {
        failing_memory_try_all(store_life, 15);
}

static void test_a_stopped_store_refuses_each_operation(void **state) {
        const struct hfd_txn delete = {.ops = &(struct hfd_op){.kind = HFD_DELETE, .key = "/a"},
                                       .n_ops = 1};
        struct hfd_store *store;
        int n_watches, n_told;

        size_t before = failing_memory_n_live();
        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        store->ops->stop(store);
        assert_int_equal(start_all(store, &delete, &delete, refused, &n_watches, &n_told), 0);
        store->ops->free(store);
        assert_int_equal(n_replies + n_ends, 0);
        assert_int_equal(failing_memory_n_live(), before);
}

/* The keys and values of compares and operations count, to the byte. */
static void test_a_request_has_a_limit(void **state) {
        struct hfd_store *store;
        char *text = malloc(HFD_TXN_BYTES_MAX);

        assert_non_null(text);
        memset(text, 'x', HFD_TXN_BYTES_MAX);
        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        for (size_t extra = 0; extra < 2; extra++) {
                struct hf__buf *value = hf__buf_copy(text, HFD_TXN_BYTES_MAX / 2 - 2);
                const struct hfd_op ops[] = {{.kind = HFD_PUT, .key = "/a", .value = value},
                                             {.kind = HFD_DELETE, .key = "/b"}};
                const struct hfd_compare compare = {.kind = HFD_VALUE_EQUALS,
                                                    .key = "/c",
                                                    .value = text,
                                                    .n_value = HFD_TXN_BYTES_MAX / 2 - 4 + extra};
                const struct hfd_txn txn = {.compares = &compare,
                                            .n_compares = 1,
                                            .ops = ops,
                                            .n_ops = 2};
                assert_int_equal(store_client_txn(store, &txn, NULL),
                                 extra == 0 ? HF_E_CONFLICT : HF_E_TOO_LARGE);
                hf__buf_unref(value);
        }
        store->ops->free(store);
        free(text);
}

/* ---- watches ---- */

static atomic_int n_calls, largest;
static void count_batch(void *ctx, const struct hfd_watch_event *events, size_t n) {
        atomic_fetch_add(&n_calls, 1);
        if ((int)n > largest)
                atomic_store(&largest, (int)n);
        on_events(ctx, events, n);
}

/* A watch from the past gets at most 256 events at once. More come together only if they have one
 * revision. */
static void test_events_come_in_batches_of_whole_revisions(void **state) {
        static const struct hfd_watch_handler counting = {.event = count_batch, .end = on_end};
        static const struct {
                size_t n_singles, n_together; /* writes of one key, then one write of several */
                int n_calls, largest;
        } cases[] = {{256, 1, 2, 256}, {255, 2, 1, 257}, {256, 16, 2, 256}, {255, 16, 1, 271}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__buf *value = hf__buf_copy("1", 1);
                struct hfd_op ops[HFD_TXN_MAX];
                char names[HFD_TXN_MAX][4];
                struct hfd_store *store;

                (void)setup(NULL);
                atomic_store(&n_calls, 0);
                atomic_store(&largest, 0);
                assert_int_equal(hfd_memory_store_new(&host, &store), 0);
                for (size_t j = 0; j < cases[i].n_singles; j++)
                        assert_true(store_client_put(store, "/a", "1") > 0);
                for (size_t j = 0; j < cases[i].n_together; j++) {
                        memcpy(names[j], "/b?", 4);
                        names[j][2] = (char)('a' + j);
                        ops[j] = (struct hfd_op){.kind = HFD_PUT, .key = names[j], .value = value};
                }
                const struct hfd_txn txn = {.ops = ops, .n_ops = cases[i].n_together};
                assert_int_equal(store_client_txn(store, &txn, NULL), 0);
                assert_int_equal(store->ops->watch(store, "/", "", 1, &counting, NULL, NULL), 0);
                PATIENCE_AWAIT(atomic_load(&n_events) ==
                               (int)(cases[i].n_singles + cases[i].n_together));
                assert_int_equal(n_calls, cases[i].n_calls);
                assert_int_equal(largest, cases[i].largest);
                store->ops->free(store);
                hf__buf_unref(value);
        }
}

static void test_a_watch_that_begins_too_early_is_gone(void **state) {
        struct hfd_store *store;

        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        uint64_t revision = store_client_put(store, "/a", "1");
        assert_int_equal(store_client_compact(store, revision), 0);
        assert_int_equal(store->ops->watch(store, "/", "", revision, &handler, NULL, NULL), 0);
        PATIENCE_AWAIT(atomic_load(&n_events) == 1);
        assert_int_equal(store->ops->watch(store, "/", "", revision - 1, &handler, NULL, NULL), 0);
        PATIENCE_AWAIT(atomic_load(&n_ends) == 1);
        assert_int_equal(last_error, HF_E_GONE);
        store->ops->free(store);
        assert_int_equal(n_ends, 2);
}

/* The store's thread looks once a second by itself. On a clock that stands still it sees only what
 * it is woken for. */
static void test_the_stores_thread_is_woken(void **state) {
        static const struct hf_host by_hand = {.size = sizeof by_hand, .clock = &hand_clock};
        struct hfd_store *store;
        uint64_t id = 0;

        hand_clock_reset();
        assert_int_equal(hfd_memory_store_new(&by_hand, &store), 0);
        hand_clock_await_waiter();
        uint64_t revision = store_client_put(store, "/a", "1");
        hand_clock_await_waiter();
        assert_int_equal(store->ops->watch(store, "/", "", revision, &handler, NULL, &id), 0);
        PATIENCE_AWAIT(atomic_load(&n_events) == 1);
        hand_clock_await_waiter();
        store->ops->watch_cancel(store, id);
        PATIENCE_AWAIT(atomic_load(&n_ends) == 1);
        hand_clock_await_waiter();
        store->ops->free(store);
}

/* ---- a slow watch ---- */

static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        bool is_inside, may_go_on;
        uint64_t revisions[16];
        size_t n;
} slow = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Holds the store's thread at the first event. */
static void on_slow_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        pthread_mutex_lock(&slow.mu);
        for (size_t i = 0; i < n; i++)
                slow.revisions[slow.n++] = events[i].revision;
        slow.is_inside = true;
        pthread_cond_broadcast(&slow.changed);
        PATIENCE_AWAIT_LOCKED(&slow.changed, &slow.mu, slow.may_go_on);
        pthread_mutex_unlock(&slow.mu);
        for (size_t i = 0; i < n; i++) { /* they stay until the callback returns */
                assert_string_equal(events[i].kv.key, "/a");
                assert_int_equal(events[i].kv.value->n, 1);
        }
}

static void put_later(struct hfd_store *store) {
        struct hf__buf *value = hf__buf_copy("1", 1);
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/a", .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_int_equal(store->ops->txn(store, &txn, soon(), on_reply, NULL), 0);
        hf__buf_unref(value);
}

static void test_a_slow_watch_loses_nothing_by_a_compaction(void **state) {
        static const struct hfd_watch_handler slow_handler = {.event = on_slow_events,
                                                              .end = on_end};
        struct hfd_store *store;

        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        assert_int_equal(store->ops->watch(store, "/", "", 0, &slow_handler, NULL, NULL), 0);
        put_later(store);
        pthread_mutex_lock(&slow.mu);
        PATIENCE_AWAIT_LOCKED(&slow.changed, &slow.mu, slow.is_inside);
        pthread_mutex_unlock(&slow.mu);
        for (int i = 0; i < 4; i++)
                put_later(store); /* revisions 3 to 6, which the watch has not got */
        /* Watches that need less of the history: from now on, and from a later revision. */
        assert_int_equal(store->ops->watch(store, "/", "", 0, &handler, NULL, NULL), 0);
        assert_int_equal(store->ops->watch(store, "/", "", 100, &handler, NULL, NULL), 0);
        assert_int_equal(store->ops->compact(store, 6, soon(), on_reply, NULL), 0);
        pthread_mutex_lock(&slow.mu);
        slow.may_go_on = true;
        pthread_cond_broadcast(&slow.changed);
        pthread_mutex_unlock(&slow.mu);
        PATIENCE_AWAIT(atomic_load(&n_replies) == 6);
        assert_int_equal(last_error, 0);
        put_later(store);
        PATIENCE_AWAIT(atomic_load(&n_replies) == 7);
        pthread_mutex_lock(&slow.mu);
        PATIENCE_AWAIT_LOCKED(&slow.changed, &slow.mu, slow.n == 6);
        pthread_mutex_unlock(&slow.mu);
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(slow.revisions[i], 2 + i);
        store->ops->free(store);
        assert_int_equal(n_events, 1); /* the watch from the later revision gets the last write */
        assert_int_equal(n_ends, 3);
        assert_int_equal(last_error, HF_E_CANCELED);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, NULL)
        const struct CMUnitTest cases[] = {
                CASE(test_a_failed_allocation_is_reported),
                CASE(test_a_stopped_store_refuses_each_operation),
                CASE(test_a_request_has_a_limit),
                CASE(test_events_come_in_batches_of_whole_revisions),
                CASE(test_a_watch_that_begins_too_early_is_gone),
                CASE(test_the_stores_thread_is_woken),
                CASE(test_a_slow_watch_loses_nothing_by_a_compaction),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
