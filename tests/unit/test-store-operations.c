/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the storage interface: when operations end, and what callbacks may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "store_fixture.h"
#include "time_units.h"
#include "watch_recorder.h"

/* A deadline in the past ends the operation at once, with or without success. It never hangs. */
static void test_a_deadline_ends_an_operation(void **state) {
        struct store_fixture *f = *state;
        struct store_reply response;

        store_reply_init(&response);
        assert_int_equal(f->store->ops->get(f->store, store_fixture_key(f, "a"), false, 1,
                                            store_reply_fill, &response),
                         0);
        store_reply_wait(&response);
        assert_true(response.error == 0 || response.error == HF_E_TIMEOUT ||
                    response.error == HF_E_UNAVAILABLE);
        store_reply_deinit(&response);
}

static void test_iterations_and_revision_increase(void **state) {
        struct store_fixture *f = *state;
        uint64_t iterations = f->store->ops->iterations(f->store),
                 revision = store_client_revision(f->store);

        for (int i = 0; i < 5; i++) {
                uint64_t next = store_client_put(f->store, store_fixture_key(f, "a"), "x");

                assert_true(next > revision);
                revision = next;
        }
        assert_true(store_client_revision(f->store) >= revision);
        /* At least every few seconds; the thread that counts is none of those that replied. */
        PATIENCE_AWAIT(f->store->ops->iterations(f->store) > iterations);
}

/* An operation that is started in a callback, like the retry of an update. */
struct chain {
        struct hfd_store *store;
        const char *key;
        int left;
        struct store_reply last;
};

static void chain_next(void *ctx, const struct hfd_store_reply *reply) {
        struct chain *chain = ctx;

        if (reply->error || chain->left-- == 0)
                store_reply_fill(&chain->last, reply);
        else if (chain->store->ops->get(chain->store, chain->key, false, in_msec(20000), chain_next,
                                        chain))
                abort();
}

static void test_callbacks_start_operations(void **state) {
        struct store_fixture *f = *state;
        struct chain chain = {.store = f->store, .key = store_fixture_key(f, "a"), .left = 50};

        store_client_put(f->store, store_fixture_key(f, "a"), "x");
        store_reply_init(&chain.last);
        assert_int_equal(f->store->ops->get(f->store, chain.key, false, in_msec(20000), chain_next,
                                            &chain),
                         0);
        assert_int_equal(store_reply_wait(&chain.last), 0);
        assert_int_equal(chain.last.n_kvs, 1);
        store_reply_deinit(&chain.last);
}

static void test_freeing_ends_all_operations(void **state) {
        struct store_fixture *f = *state;
        enum { N = 64 };
        struct hfd_store *own = store_fixture_open();
        struct store_reply *replies = calloc(N, sizeof *replies);
        static struct watch_recorder recorders[4];
        struct hf__buf *value = hf__buf_copy("v", 1);

        for (int i = 0; i < 4; i++)
                assert_int_equal(watch_recorder_start(&recorders[i], own, f->prefix,
                                                      store_fixture_prefix_end(f), 0),
                                 0);
        for (int i = 0; i < N; i++) {
                struct hfd_op op = {.kind = HFD_PUT,
                                    .key = store_fixture_key(f, "a"),
                                    .value = value};
                struct hfd_txn txn = {.ops = &op, .n_ops = 1};

                store_reply_init(&replies[i]);
                assert_int_equal(own->ops->txn(own, &txn, in_msec(20000), store_reply_fill,
                                               &replies[i]),
                                 0);
        }
        own->ops->free(own);
        for (int i = 0; i < N; i++) {
                assert_true(replies[i].done);
                assert_true(replies[i].error == 0 || replies[i].error == HF_E_CANCELED);
                store_reply_deinit(&replies[i]);
        }
        for (int i = 0; i < 4; i++) {
                assert_true(recorders[i].ended);
                assert_int_equal(recorders[i].error, HF_E_CANCELED);
                recorders[i].store = NULL;
                watch_recorder_stop(&recorders[i]);
        }
        free(replies);
        hf__buf_unref(value);
}

static void must_not_be_called(void *ctx, const struct hfd_store_reply *reply) { abort(); }
static void must_not_be_sent(void *ctx, const struct hfd_watch_event *events, size_t n) { abort(); }
static void must_not_be_ended(void *ctx, int error, const struct hf_status *status) { abort(); }

static void test_a_stopped_store_refuses_everything(void **state) {
        static const struct hfd_watch_handler handler = {.event = must_not_be_sent,
                                                         .end = must_not_be_ended};
        const struct hfd_op op = {.kind = HFD_DELETE, .key = "/a"};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct hfd_store *own = store_fixture_open();
        const struct hfd_store_ops *ops = own->ops;
        const hf_nsec until = in_msec(20000);

        for (int i = 0; i < 2; i++) {
                ops->stop(own);
                assert_int_equal(ops->get(own, "/a", false, until, must_not_be_called, NULL),
                                 HF_E_CLOSED);
                assert_int_equal(ops->list(own, "/", NULL, 0, 0, false, until, must_not_be_called,
                                           NULL),
                                 HF_E_CLOSED);
                assert_int_equal(ops->txn(own, &txn, until, must_not_be_called, NULL), HF_E_CLOSED);
                assert_int_equal(ops->compact(own, 1, until, must_not_be_called, NULL),
                                 HF_E_CLOSED);
                assert_int_equal(ops->revision(own, until, must_not_be_called, NULL), HF_E_CLOSED);
                assert_int_equal(ops->watch(own, "/", "0", 0, &handler, NULL, NULL), HF_E_CLOSED);
        }
        ops->free(own);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                STORE_TEST(test_a_deadline_ends_an_operation),
                STORE_TEST(test_iterations_and_revision_increase),
                STORE_TEST(test_callbacks_start_operations),
                STORE_TEST(test_freeing_ends_all_operations),
                STORE_TEST(test_a_stopped_store_refuses_everything),
        };
        return store_fixture_run(tests, sizeof tests / sizeof tests[0]);
}
