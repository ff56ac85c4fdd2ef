/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait until an informer's cache is as new as a version, and the lists ("probes") that
 * the reflector sends for them, on a clock that the test moves.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reflector_fixture.h"

struct waiter {
        pthread_t thread;
        struct reflector_fixture *f;
        const char *version;
        struct hf_cancel *token;
        bool is_term; /* it waits for the revision that began a term */
        int result;
};

static void *wait_main(void *ctx) {
        struct waiter *waiter = ctx;

        if (waiter->is_term)
                waiter->result = hf_informer_wait_term(&waiter->f->informer, 1, waiter->version,
                                                       waiter->token);
        else
                waiter->result =
                        hf_informer_wait(waiter->f->informer, waiter->version, waiter->token);
        return NULL;
}

/* Starts a thread that waits, after which the reflector sends `request` and sleeps. */
static void step_wait(struct reflector_fixture *f, struct waiter *waiter, const char *version,
                      const char *request, hf_nsec milliseconds) {
        unsigned n = reflector_fixture_n_sleeps(f);

        *waiter = (struct waiter){.f = f, .version = version, .is_term = waiter->is_term};
        assert_int_equal(hf_cancel_new(NULL, &f->clock, &waiter->token), 0);
        assert_int_equal(pthread_create(&waiter->thread, NULL, wait_main, waiter), 0);
        reflector_fixture_assert_step(f, n, request, milliseconds);
}
static void assert_waited(struct waiter *waiter, int result) {
        assert_int_equal(pthread_join(waiter->thread, NULL), 0);
        assert_int_equal(waiter->result, result);
        hf_cancel_unref(waiter->token);
}

static void test_a_consistent_list_that_begins_later_ends_a_wait(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        /* The watch goes on; what the list has shown is not shown again. */
        reflector_fixture_event(f, HF_EVENT_MODIFIED, REFLECTOR_THING("a", "9", "2"), "9", NULL,
                                REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;");
        reflector_fixture_event(f, HF_EVENT_MODIFIED, REFLECTOR_THING("a", "10", "2"), "10", NULL,
                                REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        reflector_fixture_free(f);
}

static void test_a_probe_that_fails_is_repeated_up_to_each_second(void **state) {
        static const hf_nsec pauses[] = {100, 200, 400, 800, 800, 800};
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, pauses[i]);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        }
        reflector_fixture_list(f, HF_E_TOO_MANY, 3, NULL, NULL, 3000);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        reflector_fixture_free(f);
}

/* The server may have read the list before that thread began to wait. */
static void test_who_begins_to_wait_during_a_probe_gets_another_at_once(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter first = {0}, second = {0};

        step_wait(f, &first, "20", "list limit=500", REFLECTOR_NEVER);
        step_wait(f, &second, "20", NULL, REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")),
                               "list limit=500", REFLECTOR_NEVER);
        assert_waited(&first, 0);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&second, 0);
        reflector_fixture_free(f);
}

/* Earlier failures do not delay the probe for a new waiting thread. */
static void test_who_begins_to_wait_later_is_probed_for_at_once(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter first = {0}, second = {0};

        step_wait(f, &first, "20", "list limit=500", REFLECTOR_NEVER);
        for (hf_nsec pause = 100; pause <= 800; pause *= 2) {
                reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, pause);
                if (pause < 800)
                        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        }
        step_wait(f, &second, "20", "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, 100);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&first, 0);
        assert_waited(&second, 0);
        reflector_fixture_free(f);
}

/* If all collections share one revision, only that revision ends the wait: the reflector asks until
 * the server has reached it. */
static void test_a_revision_that_is_not_reached_is_asked_for_ever_more_slowly(void **state) {
        static const hf_nsec pauses[] = {100, 200, 400, 800, 800};
        struct reflector_fixture *f = reflector_fixture_new_watching(true);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20",
                  "list limit=500&resourceVersion=20&resourceVersionMatch=NotOlderThan",
                  REFLECTOR_NEVER);
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")),
                                       NULL, pauses[i]);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        }
        /* An older list changes nothing. */
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("5", ""), NULL, 800);
        assert_int_equal(hf_informer_count(f->informer), 1);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("20", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        /* A new watch may skip no event. So an older event means again that the server has gone
         * back, and the reflector lists. */
        reflector_fixture_event(f, HF_EVENT_MODIFIED, REFLECTOR_THING("a", "21", "1"), "21", NULL,
                                REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, 0, NULL, "watch 21", REFLECTOR_NEVER);
        reflector_fixture_event(f, HF_EVENT_MODIFIED, REFLECTOR_THING("a", "19", "1"), "19",
                                "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

static void test_a_waiter_shortens_a_long_pause(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        for (hf_nsec pause = 100; pause < 20000; pause *= 2) {
                reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause);
                reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        }
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 25600);
        step_wait(f, &waiter, "20", NULL, 800);
        hf_cancel_fire(waiter.token, HF_CANCEL_STOPPING);
        assert_waited(&waiter, HF_E_CANCELED);
        reflector_fixture_free(f);
}

/* A pause that a waiting thread has cut short does not continue after the watch. */
static void test_a_shortened_pause_is_over(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(true);
        struct waiter waiter = {.is_term = true};

        for (hf_nsec pause = 100; pause < 20000; pause *= 2) {
                reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause);
                reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        }
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 25600);
        step_wait(f, &waiter, "20", NULL, 800);
        /* The reflector begins the watch, and at once the list for the waiting thread. */
        reflector_fixture_time(f,
                               "list "
                               "limit=500&resourceVersion=20&resourceVersionMatch=NotOlderThan",
                               REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("20", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        reflector_fixture_event(f, HF_EVENT_MODIFIED, REFLECTOR_THING("a", "21", "2"), "21", NULL,
                                REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, 0, NULL, "watch 21", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

/* The watch usually delivers the revision soon, and the cost of a probe grows with the collection.
 */
static void test_a_probe_gives_the_watch_some_time_first(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(true);
        struct waiter waiter = {.is_term = true};

        step_wait(f, &waiter, "20", NULL, 10);
        reflector_fixture_time(f,
                               "list "
                               "limit=500&resourceVersion=20&resourceVersionMatch=NotOlderThan",
                               REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("20", REFLECTOR_THING("a", "5", "1")), NULL,
                               REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        reflector_fixture_free(f);
        /* Only the server's own list can show that a foreign collection is new enough. */
        f = reflector_fixture_new_watching(false);
        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        hf_cancel_fire(waiter.token, HF_CANCEL_STOPPING);
        assert_waited(&waiter, HF_E_CANCELED);
        reflector_fixture_free(f);
}

static struct reflector_fixture *new_with_things(unsigned n) {
        struct reflector_fixture *f = reflector_fixture_new(true, 0);
        char *body = NULL;
        size_t n_body = 0;
        FILE *out = open_memstream(&body, &n_body);

        assert_non_null(out);
        (void)fprintf(out,
                      "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[");
        for (unsigned i = 0; i < n; i++)
                (void)fprintf(out, "%s{\"metadata\":{\"name\":\"t-%u\",\"resourceVersion\":\"5\"}}",
                              i ? "," : "", i);
        (void)fprintf(out, "]}");
        assert_int_equal(fclose(out), 0);
        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        f->events[0] = '\0';
        reflector_fixture_list(f, 0, 0, body, "watch 7", REFLECTOR_NEVER);
        free(body);
        return f;
}

static void test_a_probe_of_more_than_a_page_comes_later(void **state) {
        for (unsigned n = 500; n <= 501; n++) {
                struct reflector_fixture *f = new_with_things(n);
                struct waiter waiter = {0};

                assert_int_equal(hf_informer_count(f->informer), n);
                if (n == 500)
                        step_wait(f, &waiter, "20",
                                  "list limit=500&resourceVersion=20&resourceVersionMatch="
                                  "NotOlderThan",
                                  REFLECTOR_NEVER);
                else
                        step_wait(f, &waiter, "20", NULL, 50);
                hf_cancel_fire(waiter.token, HF_CANCEL_STOPPING);
                assert_waited(&waiter, HF_E_CANCELED);
                reflector_fixture_free(f);
        }
}

/* The response to a probe may be older than what the watch had delivered. */
static void test_a_watch_that_is_lost_during_a_probe_makes_a_new_list(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        assert_true(f->list_done != NULL);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")),
                               "watch 9", REFLECTOR_NEVER);
        assert_waited(&waiter, 0);
        reflector_fixture_free(f);
}

/* A probe that has further pages cannot be ordered against the watch. */
static void test_a_probe_in_pages_replaces_the_watch(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0,
                               "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"t\"},"
                               "\"items\":[" REFLECTOR_THING("a", "5", "1") "]}",
                               "list limit=500&continue=t", REFLECTOR_NEVER);
        assert_true(f->watch_canceled);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("b", "6", "1")),
                               "watch 9", REFLECTOR_NEVER);
        assert_int_equal(hf_informer_count(f->informer), 2);
        assert_waited(&waiter, 0);
        reflector_fixture_free(f);
}

/* Some of its objects are stored then, and the watch could take them back to older states. */
static void test_a_probe_that_fails_halfway_replaces_the_watch(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);
        struct waiter waiter = {0};

        step_wait(f, &waiter, "20", "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "9", "2") ",{}"),
                               NULL, 100);
        assert_string_equal(f->events, "added a;modified a;");
        assert_true(f->watch_canceled);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "9", "2")),
                               "watch 9", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        assert_waited(&waiter, 0);
        reflector_fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_consistent_list_that_begins_later_ends_a_wait),
                cmocka_unit_test(test_a_probe_that_fails_is_repeated_up_to_each_second),
                cmocka_unit_test(test_who_begins_to_wait_during_a_probe_gets_another_at_once),
                cmocka_unit_test(test_who_begins_to_wait_later_is_probed_for_at_once),
                cmocka_unit_test(test_a_revision_that_is_not_reached_is_asked_for_ever_more_slowly),
                cmocka_unit_test(test_a_waiter_shortens_a_long_pause),
                cmocka_unit_test(test_a_shortened_pause_is_over),
                cmocka_unit_test(test_a_probe_gives_the_watch_some_time_first),
                cmocka_unit_test(test_a_probe_of_more_than_a_page_comes_later),
                cmocka_unit_test(test_a_watch_that_is_lost_during_a_probe_makes_a_new_list),
                cmocka_unit_test(test_a_probe_in_pages_replaces_the_watch),
                cmocka_unit_test(test_a_probe_that_fails_halfway_replaces_the_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
