/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivery of changes to the sink of a watch: the type of each event, the batches, and the wait for
 * room. test-cacher-delivery-end.c has the snapshot and the end of a watch; test-cacher-watcher.c
 * has watches in the cacher.
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

#include <holdfast/error.h>

#include "failing_memory.h"
#include "one_watch.h"

/* Labels that the selector k=v matches, and labels that it does not match. */
#define YES "\"k\":\"v\""
#define NO  "\"k\":\"w\""

#define BATCH_MAX 64
#define QUEUE_MAX 8192
#define PAST_MAX  1024

/* ---- which events ---- */

static void test_changes_become_events_in_order(void **state) {
        one_watch_queue("ns/a", "", NULL, 10);
        one_watch_queue("ns/a", "", "", 11);
        one_watch_queue_bookmarks(12, 1);
        one_watch_queue("ns/a", NULL, "", 13);
        assert_int_equal(one_watch_seen.n_events, 0);
        assert_false(one_watch_run());
        assert_string_equal(one_watch_seen.text, "+a@10 ~a@11 b@12 -a@13 ");
        assert_int_equal(one_watch_seen.n_calls, 1);
        assert_null(one_watch.queue); /* without changes it keeps no memory */
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_calls, 1);
}

static void test_a_namespace_and_a_name_are_watched(void **state) {
        static const struct {
                const char *ns, *name;
                bool watched;
        } cases[] = {{"", NULL, true},    {"ns", NULL, true},   {"n", NULL, false},
                     {"nx", NULL, false}, {"nsx", NULL, false}, {"", "a", true},
                     {"", "b", false},    {"ns", "a", true},    {"ns", "b", false},
                     {"nx", "a", false}};
        struct hfd_object *object = one_watch_make("ns/a", "", 1);

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                one_watch.ns = cases[i].ns;
                one_watch.n_ns = strlen(cases[i].ns);
                one_watch.name = cases[i].name;
                assert_int_equal(hfd_delivery_is_watched(&one_watch, object), cases[i].watched);
        }
        hfd_object_unref(object);
}

/* An object that begins to match is ADDED, and one that no longer matches is DELETED. */
static void test_a_selector_changes_the_type(void **state) {
        static const struct {
                const char *after, *before, *text;
        } cases[] = {{YES, NULL, "+a@9 "}, {NO, NULL, ""}, {YES, YES, "~a@9 "},  {YES, NO, "+a@9 "},
                     {NO, YES, "-a@9 "},   {NO, NO, ""},   {NULL, YES, "-a@9 "}, {NULL, NO, ""}};

        for (int by_field = 0; by_field < 2; by_field++)
                for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                        hfd_selector_done(&one_watch.labels);
                        hfd_selector_done(&one_watch.fields);
                        one_watch_select_by("k=v", by_field ? "metadata.name=a" : "");
                        one_watch_seen.n_text = 0;
                        one_watch_seen.text[0] = '\0';
                        one_watch_queue("ns/a", cases[i].after, cases[i].before, 9);
                        if (by_field)
                                one_watch_queue("ns/b", YES, YES, 10);
                        one_watch_queue_bookmarks(20, 1);
                        assert_false(one_watch_run());
                        char expected[64];
                        (void)snprintf(expected, sizeof expected, "%sb@20 ", cases[i].text);
                        assert_string_equal(one_watch_seen.text, expected);
                }
}

static void test_a_field_alone_selects_too(void **state) {
        one_watch_select_by("", "metadata.name=a");
        one_watch_queue("ns/a", "", NULL, 1);
        one_watch_queue("ns/b", "", NULL, 2);
        one_watch_queue("ns/a", "", "", 3);
        one_watch_queue("ns/b", NULL, "", 4);
        assert_false(one_watch_run());
        assert_string_equal(one_watch_seen.text, "+a@1 ~a@3 ");
        /* If the selector leaves no event of a batch, the sink is not called. */
        one_watch_queue("ns/b", "", NULL, 5);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_calls, 1);
}

/* ---- batches and room ---- */

static void test_a_long_queue_comes_in_batches(void **state) {
        one_watch_queue_bookmarks(1, 3 * BATCH_MAX + 1);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 3 * BATCH_MAX + 1);
        assert_int_equal(one_watch_seen.n_calls, 4);
        assert_int_equal(one_watch_seen.largest, BATCH_MAX);
        assert_int_equal(one_watch_seen.n_asked, 4);
}

static void test_changes_wait_for_room(void **state) {
        one_watch_seen.n_room = 1;
        one_watch_queue_bookmarks(1, 2 * BATCH_MAX);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX);
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 2 * BATCH_MAX);
        assert_string_equal(one_watch_seen.text + one_watch_seen.n_text - 6, "b@128 ");
}

/* The sink reports that it has no room, but gets room before the call for the delivery returns. */
static void test_a_resumption_is_not_lost(void **state) {
        one_watch_seen.resumes = true;
        one_watch_queue_bookmarks(1, 1);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 1);
        assert_int_equal(one_watch_seen.n_asked, 2);
}

/* A call by another thread or by the sink returns at once: the thread that delivers goes on. */
static void test_only_one_delivers(void **state) {
        one_watch_seen.runs_again = true;
        one_watch_queue_bookmarks(1, 2 * BATCH_MAX);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_calls, 2);
        assert_int_equal(one_watch_seen.last_revision, 2 * BATCH_MAX);
}

static void test_a_sink_without_ready_always_has_room(void **state) {
        one_watch.sink.ready = NULL;
        one_watch_queue_bookmarks(1, 100);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 100);
}

static void test_nothing_is_delivered_before_the_start(void **state) {
        one_watch.started = false;
        one_watch_queue_bookmarks(1, 1);
        assert_false(one_watch_run());
        one_watch.opened = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
        one_watch.started = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 1);
}

/* ---- the queue ---- */

/* If half of the array is free, the changes move to its start; otherwise it grows. */
static void test_the_array_is_used_again(void **state) {
        one_watch_seen.n_room = 1;
        one_watch_queue_bookmarks(1, 128);
        assert_int_equal(one_watch.queue_space, 128);
        assert_false(one_watch_run());
        assert_int_equal(one_watch.queue_at, 64);
        one_watch_queue_bookmarks(129, 64);
        assert_int_equal(one_watch.queue_space, 128);
        assert_int_equal(one_watch.queue_at, 0);
        assert_int_equal(one_watch.n_queue, 128);
        one_watch_queue_bookmarks(193, 1); /* it is full, and nothing is free */
        assert_int_equal(one_watch.queue_space, 256);
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        one_watch_queue_bookmarks(194, 127);
        assert_int_equal(one_watch.queue_at, 64); /* full, and less than half of it is free */
        assert_int_equal(one_watch.n_queue, 256);
        one_watch_queue_bookmarks(321, 1);
        assert_int_equal(one_watch.queue_space, 512);
        one_watch_seen.n_room = SIZE_MAX;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 321);
        assert_int_equal(one_watch_seen.last_revision, 321);
}

static void test_a_queue_that_is_too_long_ends_the_watch(void **state) {
        one_watch_queue_bookmarks(1, QUEUE_MAX);
        assert_false(one_watch.end_requested);
        one_watch_queue_bookmarks(QUEUE_MAX + 1, 2);
        assert_true(one_watch.end_requested);
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, QUEUE_MAX); /* what was queued is delivered */
        assert_int_equal(one_watch_seen.end_error, 0);
}

static void test_a_change_without_memory_ends_the_watch(void **state) {
        one_watch_queue_bookmarks(1, 4);
        failing_memory_arm(0);
        one_watch_queue_bookmarks(5, 1);
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        assert_true(one_watch_run());
        assert_string_equal(one_watch_seen.text, "b@1 b@2 b@3 b@4 ");
        assert_int_equal(one_watch_seen.end_error, 0);
}

/* ---- the past ---- */

/* A watch from an earlier revision takes no memory for what it has missed. */
static void test_the_past_comes_from_the_history(void **state) {
        for (uint64_t i = 1; i <= 200; i++)
                one_watch_remember(i % 2 ? "ns/a" : "nx/b", i);
        one_watch_begin_after(10);
        assert_null(one_watch.queue);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 0);
        assert_int_equal(one_watch_seen.n_waiting, 0);
        one_watch.started = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 190);
        assert_int_equal(one_watch_seen.largest, BATCH_MAX);
        assert_memory_equal(one_watch_seen.text, "~a@11 ~b@12 ", 12);
        assert_string_equal(one_watch_seen.text + one_watch_seen.n_text - 14, "~a@199 ~b@200 ");
        one_watch_change("ns/a", 201); /* from now on changes are queued */
        assert_int_equal(one_watch.n_queue, 1);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 191);
        one_watch.started = false;
        one_watch_begin_after(201);
        one_watch_change("ns/a", 202);
        assert_int_equal(one_watch.n_queue, 1); /* nothing was missed */
        one_watch.started = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 192);
}

static void test_the_past_is_that_of_a_namespace_and_a_name(void **state) {
        static const struct {
                const char *ns, *name, *text;
        } cases[] = {{"", NULL, "~a@1 ~b@2 ~a@3 ~b@4 "},
                     {"ns", NULL, "~a@1 ~b@4 "},
                     {"", "a", "~a@1 ~a@3 "},
                     {"nx", "b", "~b@2 "},
                     {"ny", NULL, ""},
                     {"", "", ""}};

        one_watch_remember("ns/a", 1);
        one_watch_remember("nx/b", 2);
        one_watch_remember("nx/a", 3);
        one_watch_remember("ns/b", 4);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                one_watch.ns = cases[i].ns;
                one_watch.n_ns = strlen(cases[i].ns);
                one_watch.name = cases[i].name;
                one_watch_begin_after(0);
                one_watch.started = true;
                one_watch_seen.text[0] = '\0';
                one_watch_seen.n_text = 0;
                assert_false(one_watch_run());
                assert_string_equal(one_watch_seen.text, cases[i].text);
        }
}

/* A watch of one rare object looks at many changes, and lets others have the lock in between: the
 * sink is asked without the lock. */
static void test_a_long_past_is_looked_at_in_slices(void **state) {
        for (uint64_t i = 1; i <= 10 * PAST_MAX; i++)
                one_watch_remember("ns/a", i);
        one_watch_remember("ns/rare", 10 * PAST_MAX + 1);
        one_watch.name = "rare";
        one_watch_begin_after(0);
        one_watch.started = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 1);
        assert_int_equal(one_watch_seen.n_asked, 11);
}

/* Changes come while the past is delivered: each of them comes once, in its place. */
static void test_changes_during_the_past_are_not_lost(void **state) {
        for (uint64_t i = 1; i <= 2 * BATCH_MAX; i++)
                one_watch_remember("ns/a", i);
        one_watch_begin_after(0);
        one_watch_change("ns/a", 2 * BATCH_MAX + 1);
        one_watch.started = true;
        one_watch_seen.n_room = 1;
        one_watch_seen.changes = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX);
        one_watch_seen.n_room = SIZE_MAX;
        one_watch_seen.changes = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, 2 * BATCH_MAX + 3);
        assert_int_equal(one_watch_seen.last_revision, 2 * BATCH_MAX + 3);
        assert_int_equal(one_watch_seen.told, 0);
        one_watch_seen.changes = true; /* one that has caught up gets it from the queue */
        one_watch_change("ns/a", 2 * BATCH_MAX + 4);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.last_revision, 2 * BATCH_MAX + 5);
}

/* The bookmark says that the client has all changes, so it follows them. */
static void test_a_bookmark_comes_after_the_past(void **state) {
        for (uint64_t i = 1; i <= BATCH_MAX + 1; i++)
                one_watch_remember("ns/a", i);
        one_watch_begin_after(0);
        one_watch_queue_bookmarks(BATCH_MAX + 1, 2);
        one_watch.started = true;
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        one_watch_cacher.revision = BATCH_MAX + 9; /* of another resource */
        one_watch_seen.n_room = SIZE_MAX;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX + 2);
        assert_string_equal(one_watch_seen.text + one_watch_seen.n_text - 11, "~a@65 b@73 ");
}

/* The client is so slow that the history drops what it has not got: it must list again. */
static void test_a_past_that_is_dropped_ends_the_watch(void **state) {
        for (uint64_t i = 1; i <= 2 * BATCH_MAX; i++)
                one_watch_remember("ns/a", i);
        one_watch_begin_after(0);
        one_watch.started = true;
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        one_watch_forget();
        one_watch_seen.n_room = SIZE_MAX;
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX);
        assert_int_equal(one_watch_seen.end_error, HF_E_GONE);
}

/* A client that watches again gets the rest. */
static void test_an_end_does_not_wait_for_the_past(void **state) {
        for (uint64_t i = 1; i <= 2 * BATCH_MAX; i++)
                one_watch_remember("ns/a", i);
        one_watch_begin_after(0);
        one_watch.started = true;
        one_watch_seen.n_room = 1;
        assert_false(one_watch_run());
        one_watch_request_end(0);
        one_watch_seen.n_room = SIZE_MAX;
        assert_true(one_watch_run());
        assert_int_equal(one_watch_seen.n_events, BATCH_MAX);
        assert_int_equal(one_watch_seen.end_error, 0);
}

/* ---- what waits ---- */

static void test_the_sink_is_told_what_waits(void **state) {
        one_watch_seen.n_room = 0;
        one_watch_queue("ns/a", "", "", 11);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 1);
        size_t one = one_watch_seen.told;
        assert_true(one > sizeof(struct hfd_queued_change));
        one_watch_queue("ns/a", "", "", 12);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 2);
        assert_int_equal(one_watch_seen.told, 2 * one);
        one_watch_seen.n_room = SIZE_MAX;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 3); /* the third report: nothing waits */
        assert_int_equal(one_watch_seen.told, 0);
        assert_int_equal(one_watch_seen.n_events, 2);
        one_watch_queue("ns/a", "", "", 13);
        assert_false(one_watch_run());
        /* While there is room, nothing is reported. */
        assert_int_equal(one_watch_seen.n_waiting, 3);
}

/* A change keeps both versions of its object in use; those of this test have the same size. */
static void test_what_waits_has_the_size_of_both_versions(void **state) {
        const size_t change = sizeof(struct hfd_queued_change);

        one_watch_seen.n_room = 0;
        one_watch_queue("ns/a", "", NULL, 11);
        assert_false(one_watch_run());
        size_t object = one_watch_seen.told - change;
        assert_true(object > strlen("{\"metadata\":{\"name\":\"a\"}}"));
        one_watch_queue("ns/a", "", "", 12);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.told, 2 * change + 3 * object);
        one_watch_queue_bookmarks(13, 1);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.told, 3 * change + 3 * object);
}

static void test_the_sink_is_told_what_waits_for_the_start(void **state) {
        one_watch.started = false;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 0); /* nothing waits */
        one_watch_queue("ns/a", "", "", 11);
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 1);
        assert_true(one_watch_seen.told > 0);
        one_watch.started = true;
        assert_false(one_watch_run());
        assert_int_equal(one_watch_seen.n_waiting, 2);
        assert_int_equal(one_watch_seen.told, 0);
        assert_int_equal(one_watch_seen.n_events, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, one_watch_set_up, one_watch_tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_changes_become_events_in_order),
                TEST(test_a_namespace_and_a_name_are_watched),
                TEST(test_a_selector_changes_the_type),
                TEST(test_a_field_alone_selects_too),
                TEST(test_a_long_queue_comes_in_batches),
                TEST(test_changes_wait_for_room),
                TEST(test_a_resumption_is_not_lost),
                TEST(test_only_one_delivers),
                TEST(test_a_sink_without_ready_always_has_room),
                TEST(test_nothing_is_delivered_before_the_start),
                TEST(test_the_array_is_used_again),
                TEST(test_a_queue_that_is_too_long_ends_the_watch),
                TEST(test_the_past_comes_from_the_history),
                TEST(test_the_past_is_that_of_a_namespace_and_a_name),
                TEST(test_a_long_past_is_looked_at_in_slices),
                TEST(test_changes_during_the_past_are_not_lost),
                TEST(test_a_bookmark_comes_after_the_past),
                TEST(test_a_past_that_is_dropped_ends_the_watch),
                TEST(test_an_end_does_not_wait_for_the_past),
                TEST(test_a_change_without_memory_ends_the_watch),
                TEST(test_the_sink_is_told_what_waits),
                TEST(test_what_waits_has_the_size_of_both_versions),
                TEST(test_the_sink_is_told_what_waits_for_the_start),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
