/* SPDX-License-Identifier: Apache-2.0 */
/* A mailbox: its owner is woken for every message, at once or when the poster has finished. */
#undef NDEBUG
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mailbox.h"

#define N 20

static struct hf__message messages[N];

static bool is_woken(const struct hf__mailbox *mailbox) {
        struct pollfd fd = {.fd = mailbox->fd, .events = POLLIN};

        return poll(&fd, 1, 0) == 1;
}

static size_t count(const struct hf__message *message) {
        size_t n = 0;

        for (; message; message = message->next)
                n++;
        return n;
}

static void test_a_message_wakes_the_owner_at_once(void **state) {
        struct hf__mailbox mailbox;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_post(&mailbox, &messages[0]);
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 1);
        assert_false(is_woken(&mailbox));
        hf__mailbox_post_lazily(&mailbox, &messages[0]); /* this thread does not delay wakes */
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 1);
        hf__mailbox_done(&mailbox);
}

static void test_a_delayed_wake_comes_at_the_end(void **state) {
        struct hf__mailbox mailbox;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        hf__mailbox_post_lazily(&mailbox, &messages[1]);
        assert_false(is_woken(&mailbox));
        assert_true(hf__mailbox_is_wake_due(&mailbox));
        hf__mailbox_wake_delayed();
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 2);
        hf__mailbox_done(&mailbox);
}

static void *post_one(void *ctx) {
        hf__mailbox_post(ctx, &messages[1]);
        return NULL;
}

/* A thread that delays its own wakes must not delay the messages of other threads. */
static void test_another_thread_wakes_the_owner_at_once(void **state) {
        struct hf__mailbox mailbox;
        pthread_t other;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        assert_int_equal(pthread_create(&other, NULL, post_one, &mailbox), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 2);
        hf__mailbox_wake_delayed();
        assert_false(is_woken(&mailbox)); /* nothing waits any more */
        hf__mailbox_done(&mailbox);
}

static void test_many_messages_wake_the_owner_before_the_end(void **state) {
        struct hf__mailbox mailbox;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        for (size_t i = 0; i < N; i++)
                hf__mailbox_post_lazily(&mailbox, &messages[i]);
        assert_true(is_woken(&mailbox));
        hf__mailbox_wake_delayed();
        assert_int_equal(count(hf__mailbox_take(&mailbox)), N);
        hf__mailbox_done(&mailbox);
}

static void test_an_owner_that_is_awake_takes_messages_early(void **state) {
        struct hf__mailbox mailbox;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        assert_int_equal(count(hf__mailbox_take_early(&mailbox)), 1);
        hf__mailbox_wake_delayed();
        assert_false(is_woken(&mailbox));
        hf__mailbox_post(&mailbox, &messages[0]);
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 1);
        hf__mailbox_done(&mailbox);
}

/* A callback on a thread that delays its wakes may free the owner, or wait for it. */
static void test_a_thread_may_wake_early_and_destroy_the_mailbox(void **state) {
        struct hf__mailbox mailbox;

        hf__mailbox_wake_early(); /* nothing is delayed */
        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        assert_false(is_woken(&mailbox));
        hf__mailbox_wake_early();
        assert_true(is_woken(&mailbox));
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 1);
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        assert_int_equal(count(hf__mailbox_take_early(&mailbox)), 1);
        hf__mailbox_done(&mailbox);
        hf__mailbox_wake_delayed();
}

static void count_call(void *ctx) { ++*(unsigned *)ctx; }

static void test_a_delayed_call_is_made_once_at_the_end(void **state) {
        unsigned calls[5] = {0};

        assert_int_equal(hf__mailbox_delay_call(count_call, &calls[0]), HF__NOT_DELAYED);
        hf__mailbox_delay_wakes();
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(hf__mailbox_delay_call(count_call, &calls[i]), HF__DELAYED);
        assert_int_equal(hf__mailbox_delay_call(count_call, &calls[0]), HF__DELAYED_BEFORE);
        assert_int_equal(hf__mailbox_delay_call(count_call, &calls[4]), HF__NOT_DELAYED);
        assert_int_equal(calls[0], 0);
        hf__mailbox_wake_delayed();
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(calls[i], i < 4 ? 1 : 0);
        hf__mailbox_delay_wakes(); /* the calls are forgotten */
        hf__mailbox_wake_delayed();
        assert_int_equal(calls[0], 1);
}

/* A thread may post while it holds a lock that a delayed call takes too. */
static void test_posts_make_no_delayed_call(void **state) {
        struct hf__mailbox mailbox;
        unsigned n_calls = 0;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        assert_int_equal(hf__mailbox_delay_call(count_call, &n_calls), HF__DELAYED);
        for (size_t i = 0; i < N; i++)
                hf__mailbox_post_lazily(&mailbox, &messages[i]);
        assert_true(is_woken(&mailbox));
        assert_int_equal(n_calls, 0);
        hf__mailbox_wake_delayed();
        assert_int_equal(n_calls, 1);
        assert_int_equal(count(hf__mailbox_take(&mailbox)), N);
        hf__mailbox_done(&mailbox);
}

static void post_lazily(void *ctx) { hf__mailbox_post_lazily(ctx, &messages[1]); }

static void test_what_a_delayed_call_posts_shares_the_wake(void **state) {
        struct hf__mailbox mailbox;
        uint64_t n_wakes = 0;

        assert_int_equal(hf__mailbox_init(&mailbox), 0);
        hf__mailbox_delay_wakes();
        hf__mailbox_post_lazily(&mailbox, &messages[0]);
        assert_int_equal(hf__mailbox_delay_call(post_lazily, &mailbox), HF__DELAYED);
        hf__mailbox_wake_delayed();
        assert_int_equal(read(mailbox.fd, &n_wakes, sizeof n_wakes), sizeof n_wakes);
        assert_int_equal(n_wakes, 1);
        assert_int_equal(count(hf__mailbox_take(&mailbox)), 2);
        hf__mailbox_done(&mailbox);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_message_wakes_the_owner_at_once),
                cmocka_unit_test(test_a_delayed_wake_comes_at_the_end),
                cmocka_unit_test(test_another_thread_wakes_the_owner_at_once),
                cmocka_unit_test(test_many_messages_wake_the_owner_before_the_end),
                cmocka_unit_test(test_an_owner_that_is_awake_takes_messages_early),
                cmocka_unit_test(test_a_thread_may_wake_early_and_destroy_the_mailbox),
                cmocka_unit_test(test_a_delayed_call_is_made_once_at_the_end),
                cmocka_unit_test(test_posts_make_no_delayed_call),
                cmocka_unit_test(test_what_a_delayed_call_posts_shares_the_wake),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
