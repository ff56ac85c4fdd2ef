/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that wait for the cache while it cannot serve them: before it is filled, while the store is
 * being replaced, and when the cacher is freed. That they are served before watches. And the
 * request that they share: its deadline, and when it is sent.
 * test-cacher-times.c has how long they wait.
 */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mailbox.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/sync/consistent_read.h"
#include "time_units.h"

struct read {
        struct hfd_consistent_read base; /* first */
        atomic_int n_ready;
};

static void on_ready(struct hfd_consistent_read *base) {
        atomic_fetch_add(&((struct read *)base)->n_ready, 1);
}

static struct read new_read(hf_nsec deadline) {
        return (struct read){.base = {.deadline = hand_clock_now() + deadline, .ready = on_ready}};
}

static void expect_over(struct read *read, int outcome) {
        PATIENCE_AWAIT(atomic_load(&read->n_ready) > 0);
        assert_int_equal(atomic_load(&read->n_ready), 1);
        assert_int_equal(read->base.outcome, outcome);
}

static void expect_waiting(struct read *read) { assert_int_equal(atomic_load(&read->n_ready), 0); }

static void test_before_the_filling_reads_go_to_the_store(void **state) {
        struct read read = new_read(SEC), after = new_read(SEC);

        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        hfd_consistent_read_start(scripted.cacher, &read.base);
        expect_over(&read, HF_E_TIMEOUT);
        hfd_consistent_read_after(scripted.cacher, &after.base, 1, SEC);
        expect_over(&after, HF_E_TIMEOUT);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 1); /* the epoch */
}

/* The cache still has the old history, and revisions of the new one may have the same numbers. */
static void test_during_a_replacement_reads_go_to_the_store(void **state) {
        struct read before = new_read(SEC), during = new_read(SEC), after = new_read(SEC);

        scripted_cacher_fill();
        hfd_consistent_read_start(scripted.cacher, &before.base);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        hfd_store_identity_replaced(scripted.cacher, "a test");
        scripted_reply_revision(&probe, 10);
        expect_over(&before, HF_E_TIMEOUT);
        hfd_consistent_read_start(scripted.cacher, &during.base);
        expect_over(&during, HF_E_TIMEOUT);
        hfd_consistent_read_after(scripted.cacher, &after.base, 10, SEC);
        expect_over(&after, HF_E_TIMEOUT);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

/* The filling serves the waiting reads. */
static void test_a_filling_ends_waits(void **state) {
        struct read reached = new_read(60 * SEC), later = new_read(60 * SEC);

        scripted_cacher_fill();
        hfd_consistent_read_after(scripted.cacher, &reached.base, 20, 60 * SEC);
        hfd_consistent_read_after(scripted.cacher, &later.base, 21, 60 * SEC);
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        scripted_cacher_await_backoff();
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 20);
        expect_waiting(&reached);
        scripted_cacher_reply_list(20);
        expect_over(&reached, 0);
        scripted_cacher_await_watch(2);
        expect_waiting(&later);
        scripted_store_event(&scripted.store, NULL, NULL, 21);
        expect_over(&later, 0);
}

static struct scripted_watch watch;
static atomic_bool was_first;

static void on_ready_before_watch(struct hfd_consistent_read *base) {
        pthread_mutex_lock(&watch.mu);
        atomic_store(&was_first, watch.n == 0);
        pthread_mutex_unlock(&watch.mu);
        on_ready(base);
}

static struct read new_read_before_watch(void) {
        struct read read = new_read(60 * SEC);

        atomic_store(&was_first, false);
        read.base.ready = on_ready_before_watch;
        return read;
}

/* A client waits for each of them, and there may be many watches. */
static void test_reads_are_served_before_watches(void **state) {
        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.from_now = true});
        struct read at_event = new_read_before_watch();
        hfd_consistent_read_after(scripted.cacher, &at_event.base, 11, 60 * SEC);
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), SCRIPTED_OBJECT("c"), 11);
        expect_over(&at_event, 0);
        assert_true(atomic_load(&was_first));
        scripted_watch_expect(&watch, "+c@11 ");
        struct read at_filling = new_read_before_watch();
        hfd_consistent_read_after(scripted.cacher, &at_filling.base, 20, 60 * SEC);
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        scripted_cacher_await_backoff();
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 20);
        scripted_cacher_reply_list(20);
        scripted_cacher_await_watch(2);
        expect_over(&at_filling, 0);
        assert_true(atomic_load(&was_first));
        scripted_watch_expect(&watch, "END:410 ");
        scripted_watch_done(&watch);
}

static void test_a_request_has_the_nearest_deadline(void **state) {
        struct read reads[] = {new_read(3 * SEC), new_read(2 * SEC), new_read(4 * SEC)};
        struct read first = new_read(60 * SEC);

        scripted_cacher_fill();
        hfd_consistent_read_start(scripted.cacher, &first.base);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        assert_true(probe.deadline == hand_clock_now() + 5 * SEC);
        for (int i = 0; i < 3; i++)
                hfd_consistent_read_start(scripted.cacher, &reads[i].base);
        scripted_reply_revision(&probe, 10);
        expect_over(&first, 0);
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        assert_true(probe.deadline == hand_clock_now() + 2 * SEC);
        scripted_reply_revision(&probe, 10);
        for (int i = 0; i < 3; i++)
                expect_over(&reads[i], 0);
}

static size_t n_sent_before;

static void on_ready_after_request(struct hfd_consistent_read *base) {
        n_sent_before = scripted_store_n_waiting(&scripted.store);
        on_ready(base);
}

/* What the first reads lead to may take its time. */
static void test_the_next_request_is_sent_before_the_reads_of_this_one_go_on(void **state) {
        struct read first = new_read(SEC), next = new_read(SEC);

        first.base.ready = on_ready_after_request;
        scripted_cacher_fill();
        hfd_consistent_read_start(scripted.cacher, &first.base);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        hfd_consistent_read_start(scripted.cacher, &next.base);
        scripted_reply_revision(&probe, 10);
        expect_over(&first, 0);
        assert_int_equal(n_sent_before, 1);
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        expect_over(&next, 0);
}

/* A worker that has received several requests at once starts their reads like this. */
static void test_reads_of_one_input_share_a_request(void **state) {
        struct read reads[] = {new_read(SEC), new_read(SEC), new_read(SEC)}, other = new_read(SEC);

        scripted_cacher_fill();
        hf__mailbox_delay_wakes();
        for (int i = 0; i < 3; i++)
                hfd_consistent_read_start(scripted.cacher, &reads[i].base);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        hf__mailbox_wake_delayed();
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        hfd_consistent_read_start(scripted.cacher, &other.base);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_reply_revision(&probe, 10);
        for (int i = 0; i < 3; i++)
                expect_over(&reads[i], 0);
        expect_waiting(&other); /* this read began after the request was sent */
        probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 10);
        expect_over(&other, 0);
}

static void *start_read(void *read) {
        hfd_consistent_read_start(scripted.cacher, read);
        return NULL;
}

/* A read does not wait until another thread has handled its input: that thread may hang. */
static void test_another_thread_sends_the_request_at_once(void **state) {
        struct read delayed = new_read(SEC), other = new_read(SEC);
        pthread_t thread;

        scripted_cacher_fill();
        hf__mailbox_delay_wakes();
        hfd_consistent_read_start(scripted.cacher, &delayed.base);
        assert_int_equal(pthread_create(&thread, NULL, start_read, &other.base), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        hf__mailbox_wake_delayed();
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_reply_revision(&probe, 10);
        expect_over(&delayed, 0);
        expect_over(&other, 0);
}

static atomic_bool is_freed;

static void *free_cacher(void *ctx) {
        hfd_cacher_free(scripted.cacher);
        atomic_store(&is_freed, true);
        return NULL;
}

static void test_a_free_waits_for_a_delayed_request(void **state) {
        struct read read = new_read(SEC);
        pthread_t thread;

        scripted_cacher_fill();
        hf__mailbox_delay_wakes();
        hfd_consistent_read_start(scripted.cacher, &read.base);
        assert_int_equal(pthread_create(&thread, NULL, free_cacher, NULL), 0);
        expect_over(&read, HF_E_CANCELED);
        assert_false(atomic_load(&is_freed));
        hf__mailbox_wake_delayed();
        assert_int_equal(pthread_join(thread, NULL), 0);
        scripted.cacher = NULL;
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
}

/* The other read shows how far the end has come: from now on nobody would end a wait. */
static void test_a_reply_during_the_end_lets_no_read_wait(void **state) {
        struct read waits = new_read(60 * SEC), late = new_read(60 * SEC);
        pthread_t thread;

        scripted_cacher_fill();
        hfd_consistent_read_after(scripted.cacher, &waits.base, 99, 60 * SEC);
        hfd_consistent_read_start(scripted.cacher, &late.base);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        assert_int_equal(pthread_create(&thread, NULL, free_cacher, NULL), 0);
        expect_over(&waits, HF_E_CANCELED);
        expect_waiting(&late);
        scripted_reply_revision(&probe, 99);
        expect_over(&late, HF_E_CANCELED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        scripted.cacher = NULL;
}

/* No reply follows, and the reads need not wait for one. */
static void test_a_request_that_is_refused_fails_its_reads(void **state) {
        struct read read = new_read(SEC), next = new_read(SEC);

        scripted_cacher_fill();
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, HF_E_CLOSED);
        hfd_consistent_read_start(scripted.cacher, &read.base);
        expect_over(&read, HF_E_CLOSED);
        assert_string_equal(read.base.status.message, "");
        scripted_store_refuse(&scripted.store, SCRIPTED_REVISION, 0);
        hfd_consistent_read_start(scripted.cacher, &next.base);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 9);
        expect_over(&next, 0);
}

/* Frees the cacher with reads in each state; the tear-down makes the requests end. */
static struct read left[3];

static int free_and_check(void **state) {
        int r = scripted_cacher_tear_down(state);

        expect_over(&left[0], HF_E_CANCELED);
        expect_over(&left[1], HF_E_CANCELED);
        expect_over(&left[2], HF_E_CLOSED); /* its request was refused */
        return r;
}

static void test_a_free_ends_all_reads(void **state) {
        for (int i = 0; i < 3; i++)
                left[i] = new_read(60 * SEC);
        scripted_cacher_fill();
        hfd_consistent_read_after(scripted.cacher, &left[0].base, 99, 60 * SEC);
        hfd_consistent_read_start(scripted.cacher, &left[1].base); /* its request is under way */
        hfd_consistent_read_start(scripted.cacher, &left[2].base); /* it needs the next one */
        expect_waiting(&left[0]);
        expect_waiting(&left[1]);
        expect_waiting(&left[2]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_before_the_filling_reads_go_to_the_store),
                SCRIPTED_TEST(test_during_a_replacement_reads_go_to_the_store),
                SCRIPTED_TEST(test_a_filling_ends_waits),
                SCRIPTED_TEST(test_reads_are_served_before_watches),
                SCRIPTED_TEST(test_a_request_has_the_nearest_deadline),
                SCRIPTED_TEST(test_the_next_request_is_sent_before_the_reads_of_this_one_go_on),
                SCRIPTED_TEST(test_reads_of_one_input_share_a_request),
                SCRIPTED_TEST(test_another_thread_sends_the_request_at_once),
                SCRIPTED_TEST(test_a_free_waits_for_a_delayed_request),
                SCRIPTED_TEST(test_a_reply_during_the_end_lets_no_read_wait),
                SCRIPTED_TEST(test_a_request_that_is_refused_fails_its_reads),
                cmocka_unit_test_setup_teardown(test_a_free_ends_all_reads, scripted_cacher_set_up,
                                                free_and_check),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
