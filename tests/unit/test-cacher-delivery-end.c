/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a watch begins and ends: the events of its snapshot, the events before its end, and the
 * memory that it keeps afterwards. test-cacher-delivery.c has the events in between.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "one_watch.h"

/* Labels that the selector k=v matches, and labels that it does not match. */
#define YES "\"k\":\"v\""
#define NO  "\"k\":\"w\""

#define BATCH_MAX 64

/* ---- the end ---- */

static void test_an_end_comes_after_what_is_queued(void **state) {
        one_watch_queue_bookmarks(1, 100);
        one_watch_request_end(HF_E_GONE);
        one_watch_request_end(HF_E_UNAVAILABLE); /* the first reason counts */
        one_watch_queue_bookmarks(200, 1);       /* too late */
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 100);
        assert_int_equal(one_watch_seen.end_error, HF_E_GONE);
        assert_int_equal(one_watch_seen.end_code, 410);
        assert_true(one_watch_seen.end_has_body);
        assert_false(one_watch_run());
        one_watch_cancel(); /* no effect: the watch has ended */
        assert_int_equal(one_watch.end_error, HF_E_GONE);
        assert_int_equal(one_watch_seen.n_ends, 1);
}

static void test_a_clean_end_has_no_response(void **state) {
        one_watch_request_end(0);
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.end_error, 0);
        assert_int_equal(one_watch_seen.end_code, 0);
        assert_false(one_watch_seen.end_has_body);
}

static void test_a_canceled_watch_delivers_nothing_more(void **state) {
        one_watch_queue_bookmarks(1, 100);
        one_watch_request_end(HF_E_GONE);
        one_watch_cancel();
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
        assert_int_equal(one_watch_seen.end_error, HF_E_CANCELED);
        assert_int_equal(one_watch_seen.end_code, 0);
}

static void test_a_cancellation_needs_no_start(void **state) {
        one_watch.started = false;
        one_watch_queue_bookmarks(1, 1);
        one_watch_cancel();
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
}

static void test_an_end_before_the_start_drops_the_changes(void **state) {
        one_watch.started = false;
        one_watch_queue_bookmarks(1, 1);
        one_watch_request_end(0);
        assert_false(one_watch_run()); /* the owner has not opened the watch yet */
        one_watch.opened = true;
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
        assert_int_equal(one_watch_seen.n_ends, 1);
}

static void test_an_end_does_not_wait_for_room(void **state) {
        one_watch_seen.n_room = 0;
        one_watch_seen.resumes = true;
        one_watch_queue_bookmarks(1, 1);
        one_watch_request_end(0);
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
}

static void test_a_sink_that_accepts_no_more_ends_the_watch(void **state) {
        one_watch_seen.refuses = true;
        one_watch_queue_bookmarks(1, 2 * BATCH_MAX);
        assert_false(one_watch.end_requested);
        assert_true(one_watch_run());
        assert_int_equal(one_watch.end_error, 0);
        assert_int_equal(one_watch_seen.n_calls, 1); /* the sink is not called again */
        assert_int_equal(one_watch_seen.n_ends, 1);
}

/* Memory runs out before one of the events: the watch ends, and none of the later events, which
 * are in the next batch, is delivered. */
static void test_no_event_follows_a_lost_one(void **state) {
        one_watch_select_by("k=v", "");
        one_watch_queue("ns/a", YES, NULL, 1);
        for (uint64_t i = 2; i <= 2 * BATCH_MAX; i++)
                one_watch_queue("ns/b", NO, YES, i);
        failing_memory_arm(2);
        assert_true(one_watch_run());
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        assert_true(one_watch_seen.n_events < BATCH_MAX);
        assert_int_equal(one_watch_seen.end_error, 0);
}

/* Each allocation fails once: the watch ends, so that no event is lost. */
static void test_an_event_without_memory_ends_the_watch(void **state) {
        bool failed = true;

        for (int n = 0; failed; n++) {
                (void)one_watch_tear_down(NULL);
                (void)one_watch_set_up(NULL);
                one_watch_select_by("k=v", "");
                one_watch_queue("ns/a", YES, NULL, 1);
                one_watch_queue("ns/b", NO, YES, 2);
                failing_memory_arm(n);
                bool ended = one_watch_run();
                failing_memory_disarm();
                failed = failing_memory_hit();
                assert_int_equal(ended, failed);
                if (!failed)
                        assert_string_equal(one_watch_seen.text, "+a@1 -b@2 ");
        }
}

/* ---- the snapshot ---- */

static void give_snapshot(unsigned n) {
        struct hfd_object *old;
        char path[16];

        one_watch.snapshot = calloc(1, sizeof *one_watch.snapshot);
        assert_non_null(one_watch.snapshot);
        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(path, sizeof path, "%s/n%03u", i % 2 ? "odd" : "even", i);
                assert_int_equal(hfd_object_tree_put(&one_watch.snapshot->objects,
                                                     one_watch_make(path, i % 4 ? NO : YES, i + 1),
                                                     &old),
                                 0);
        }
}

static void test_the_snapshot_comes_first_and_needs_no_room(void **state) {
        one_watch_seen.n_room = 0;
        give_snapshot(3);
        one_watch_queue_bookmarks(10, 1);
        assert_false(one_watch_run());
        assert_string_equal(one_watch_seen.text, "+n000@1 +n002@3 +n001@2 ");
        assert_null(one_watch.snapshot);
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        assert_string_equal(one_watch_seen.text, "+n000@1 +n002@3 +n001@2 b@10 ");
}

static void test_a_large_snapshot_comes_in_batches(void **state) {
        give_snapshot(2 * BATCH_MAX);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 2 * BATCH_MAX);
        assert_int_equal(one_watch_seen.n_calls, 2);
        assert_int_equal(one_watch_seen.largest, BATCH_MAX);
}

static void test_only_what_is_watched_of_the_snapshot_comes(void **state) {
        one_watch.ns = "even";
        one_watch.n_ns = 4;
        one_watch_select_by("k=v", "");
        give_snapshot(2 * BATCH_MAX);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX / 2);
}

static void test_one_object_of_the_snapshot_comes(void **state) {
        one_watch.name = "n002";
        give_snapshot(5);
        assert_false(one_watch_run());
        one_watch.ns = "even";
        one_watch.n_ns = 4;
        give_snapshot(5);
        assert_false(one_watch_run());
        one_watch.ns = "odd";
        one_watch.n_ns = 3;
        give_snapshot(5);
        assert_false(one_watch_run());
        assert_string_equal(one_watch_seen.text, "+n002@3 +n002@3 ");
}

static void test_a_refused_snapshot_ends_the_watch(void **state) {
        one_watch_seen.refuses = true;
        give_snapshot(2 * BATCH_MAX);
        one_watch_queue_bookmarks(1000, 1); /* the client must not watch again from there */
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_calls, 1);
        assert_int_equal(one_watch_seen.end_error, HF_E_GONE);
        assert_null(one_watch.snapshot);
}

/* ---- what an ended watch keeps ---- */

/* A caller may keep a reference to the watch for long. Its changes are freed earlier, when the
 * watch ends. */
static void test_an_ended_watch_keeps_no_changes(void **state) {
        one_watch_seen.n_room = 0;
        one_watch_queue("ns/a", "", "", 11);
        one_watch_cancel();
        assert_true(one_watch_run());
        assert_null(one_watch.queue);
        assert_int_equal(atomic_load(&one_watch.n_bytes), 0);
}

static void test_a_watch_that_is_freed_early_leaves_nothing(void **state) {
        give_snapshot(5);
        one_watch_queue("ns/a", YES, NO, 9);
        one_watch_select_by("k=v", "metadata.name=a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, one_watch_set_up, one_watch_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_end_comes_after_what_is_queued),
                TEST(test_a_clean_end_has_no_response),
                TEST(test_a_canceled_watch_delivers_nothing_more),
                TEST(test_a_cancellation_needs_no_start),
                TEST(test_an_end_before_the_start_drops_the_changes),
                TEST(test_an_end_does_not_wait_for_room),
                TEST(test_a_sink_that_accepts_no_more_ends_the_watch),
                TEST(test_no_event_follows_a_lost_one),
                TEST(test_an_event_without_memory_ends_the_watch),
                TEST(test_the_snapshot_comes_first_and_needs_no_room),
                TEST(test_a_large_snapshot_comes_in_batches),
                TEST(test_only_what_is_watched_of_the_snapshot_comes),
                TEST(test_one_object_of_the_snapshot_comes),
                TEST(test_a_refused_snapshot_ends_the_watch),
                TEST(test_an_ended_watch_keeps_no_changes),
                TEST(test_a_watch_that_is_freed_early_leaves_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
