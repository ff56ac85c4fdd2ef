/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a reflector sends which request, on a clock that the test moves: lists, watches, resyncs.
 * test-client-reflector-waits.c has threads that wait for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reflector_fixture.h"

/* ---- lists ---- */

static void test_a_list_that_fails_is_repeated_ever_more_slowly(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        for (hf_nsec pause = 100; pause < 80000; pause *= 2) {
                reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL,
                                       pause < 30000 ? pause : 30000);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        }
        assert_non_null(strstr(f->log, "4 list of things failed: the test says so\n7 list of"));
        /* Success ends the row. */
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", ""), "watch 7", REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, 100);
        reflector_fixture_free(f);
}

static void test_retry_after_counts_up_to_five_minutes(void **state) {
        static const struct {
                uint32_t seconds;
                hf_nsec pause;
        } cases[] = {{0, 100}, {1, 1000}, {300, 300000}, {301, 300000}, {UINT32_MAX, 300000}};
        struct reflector_fixture *f = reflector_fixture_new(false, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                reflector_fixture_list(f, HF_E_TOO_MANY, cases[i].seconds, NULL, NULL,
                                       cases[i].pause);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        }
        reflector_fixture_free(f);
}

static void test_a_list_without_a_version_is_a_failure(void **state) {
        static const char *const bad[] = {
                "",
                "[]",
                "{",
                "{\"items\":[]}",
                "{\"metadata\":[],\"items\":[]}",
                "{\"metadata\":{},\"items\":[]}",
                REFLECTOR_LIST("", ""),
                REFLECTOR_LIST("01234567890123456789012345678901234567890123456789012345678"
                               "90123456789",
                               ""),
                "{\"metadata\":{\"resourceVersion\":\"7\"}}",
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":{}}",
                REFLECTOR_LIST("7", "1"),
                REFLECTOR_LIST("7", "{}"),
                REFLECTOR_LIST("7", "{\"metadata\":{\"name\":\"\",\"resourceVersion\":\"5\"}}"),
                REFLECTOR_LIST("7", "{\"metadata\":{\"name\":\"a\"}}"),
        };
        struct reflector_fixture *f = reflector_fixture_new(false, 0);
        hf_nsec pause = 100;

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                unsigned n = reflector_fixture_n_sleeps(f);
                reflector_fixture_respond(f, 0, 0, bad[i]);
                reflector_fixture_assert_step(f, n, NULL, pause);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
                pause = pause * 2 < 30000 ? pause * 2 : 30000;
                assert_false(hf_informer_synced(f->informer));
        }
        reflector_fixture_free(f);
}

static void test_the_next_page_is_requested_at_once(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0,
                               "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x+y\"},"
                               "\"items\":"
                               "[" REFLECTOR_THING("a", "5", "1") "]}",
                               "list limit=500&continue=x%2By", REFLECTOR_NEVER);
        assert_false(hf_informer_synced(f->informer));
        /* The history behind the second page is compacted: no paging, then paging again. */
        reflector_fixture_list(f, HF_E_GONE, 0, NULL, NULL, 100);
        reflector_fixture_time(f, "list limit=0", REFLECTOR_NEVER);
        reflector_fixture_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, 200);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("b", "6", "1")),
                               "watch 9", REFLECTOR_NEVER);
        assert_int_equal(hf_informer_count(f->informer), 1);
        reflector_fixture_free(f);
}

/* One list without paging is enough: the next one may be large again. */
static void test_a_list_without_paging_is_the_only_one(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0,
                               "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x\"},"
                               "\"items\":[]}",
                               "list limit=500&continue=x", REFLECTOR_NEVER);
        reflector_fixture_list(f, HF_E_GONE, 0, NULL, NULL, 100);
        reflector_fixture_time(f, "list limit=0", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", ""), "watch 9", REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

/* ---- watches ---- */

static void test_a_watch_that_fails_is_repeated_ever_more_slowly(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        for (hf_nsec pause = 100; pause < 80000; pause *= 2) {
                reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL,
                                            pause < 30000 ? pause : 30000);
                reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        }
        assert_non_null(
                strstr(f->log, "4 watch of things failed: the watch has ended\n7 watch of"));
        /* An event ends the row, and so does a watch that has lived for a second. */
        reflector_fixture_event(f, HF_EVENT_ADDED, REFLECTOR_THING("b", "8", "1"), "8", NULL,
                                REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        reflector_fixture_time(f, "watch 8", REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 200);
        reflector_fixture_time(f, "watch 8", REFLECTOR_NEVER);
        reflector_fixture_pass(f, HF_NSEC_PER_SEC);
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        reflector_fixture_free(f);
}

static void test_a_watch_that_ends_without_an_error_is_repeated_at_once_if_it_worked(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        reflector_fixture_watch_end(f, 0, NULL, NULL, 100); /* no event */
        assert_string_equal(f->log, "");
        reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        reflector_fixture_pass(f, HF_NSEC_PER_SEC - 1);
        reflector_fixture_watch_end(f, 0, NULL, NULL, 200);
        reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        reflector_fixture_pass(f, HF_NSEC_PER_SEC);
        reflector_fixture_watch_end(f, 0, NULL, "watch 7", REFLECTOR_NEVER);
        reflector_fixture_event(f, HF_EVENT_BOOKMARK, NULL, "9", NULL, REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, 0, NULL, "watch 9", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

static void test_a_compacted_history_makes_a_new_list_at_once_but_not_twice(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        assert_string_equal(f->log, ""); /* servers do this */
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "1")),
                               "watch 9", REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, NULL, 200);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

/* After a rollback the server has other contents under versions that it issued before. */
static void test_a_server_that_is_behind_is_listed_and_compared(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        assert_string_equal(f->events, "added a;");
        reflector_fixture_watch_end(f, HF_E_TIMEOUT, "Too large resource version: 7, current: 3",
                                    NULL, 100);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "2")),
                               "watch 7", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* Any other timeout says nothing about the server's state. */
        reflector_fixture_watch_end(f, HF_E_TIMEOUT, "too slow", NULL, 200);
        reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

static void test_an_older_event_means_that_the_history_was_replaced(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        reflector_fixture_event(f, HF_EVENT_ADDED, REFLECTOR_THING("b", "6", "1"), "6",
                                "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("6", REFLECTOR_THING("a", "5", "2")),
                               "watch 6", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* Later lists trust versions again. */
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "3")),
                               "watch 7", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        reflector_fixture_free(f);
}

static void test_an_older_list_means_that_the_history_was_replaced(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "2")),
                               "watch 7", REFLECTOR_NEVER);
        assert_string_equal(f->events,
                            "added a;"); /* this version of the object was seen already */
        reflector_fixture_event(f, HF_EVENT_ADDED, REFLECTOR_THING("b", "8", "1"), "8", NULL,
                                REFLECTOR_NEVER);
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("6", REFLECTOR_THING("a", "5", "3")),
                               "watch 6", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;added b;modified a;deleted b;");
        reflector_fixture_free(f);
}

static void test_an_event_that_cannot_be_applied_makes_a_new_list(void **state) {
        static const char *const bad[] = {"{", "{}", "{\"metadata\":{\"name\":\"b\"}}", "[]"};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct reflector_fixture *f = reflector_fixture_new_watching(false);
                reflector_fixture_event(f, HF_EVENT_ADDED, bad[i], "8", NULL, 100);
                assert_non_null(strstr(f->log, "4 watch of things failed: "));
                assert_true(f->watch_canceled);
                reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
                reflector_fixture_free(f);
        }
}

static void test_a_request_that_does_not_begin_is_a_failure(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        f->refuses = true;
        reflector_fixture_watch_end(f, 0, NULL, NULL, 100);
        reflector_fixture_time(f, NULL, 200);
        reflector_fixture_time(f, NULL, 400);
        f->refuses = false;
        reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        f->refuses = true;
        reflector_fixture_watch_end(f, HF_E_GONE, NULL, NULL, 800); /* a failure, after three */
        reflector_fixture_time(f, NULL, 100);
        reflector_fixture_time(f, NULL, 200);
        f->refuses = false;
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

/* The server lists a higher revision than the event had, and other contents for a known one. */
static void test_an_older_event_makes_the_next_list_count_whatever_its_revision(void **state) {
        struct reflector_fixture *f = reflector_fixture_new_watching(false);

        for (hf_nsec pause = 100; pause < 1000; pause *= 2) {
                reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause);
                reflector_fixture_time(f, "watch 7", REFLECTOR_NEVER);
        }
        reflector_fixture_event(f, HF_EVENT_ADDED, REFLECTOR_THING("b", "6", "1"), "6",
                                "list limit=500", REFLECTOR_NEVER);
        assert_true(f->watch_canceled);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("9", REFLECTOR_THING("a", "5", "2")),
                               "watch 9", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* The event has shown that watches work: the row of failures has ended. */
        reflector_fixture_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        reflector_fixture_free(f);
}

static void test_a_version_has_up_to_31_bytes(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("12345678901234567890123456789012", ""),
                               NULL, 100);
        reflector_fixture_time(f, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("1234567890123456789012345678901", ""),
                               "watch 1234567890123456789012345678901", REFLECTOR_NEVER);
        reflector_fixture_free(f);
}

/* ---- resyncs ---- */

static void test_a_resync_passes_all_objects_on_at_each_period(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 10 * HF_NSEC_PER_SEC);

        reflector_fixture_assert_step(f, 0, "list limit=500", 10000);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")),
                               "watch 7", 10000);
        assert_string_equal(f->events, "added a;");
        reflector_fixture_time(f, NULL, 10000);
        assert_string_equal(f->events, "added a;modified a;");
        reflector_fixture_time(f, NULL, 10000);
        assert_string_equal(f->events, "added a;modified a;modified a;");
        reflector_fixture_free(f);
}

static void test_handlers_slower_than_the_resync_hold_up_nothing(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, 10 * HF_NSEC_PER_SEC);

        reflector_fixture_assert_step(f, 0, "list limit=500", 10000);
        f->takes = 12 * HF_NSEC_PER_SEC;
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")),
                               "watch 7", 10000);
        assert_string_equal(f->events, "added a;modified a;");
        reflector_fixture_free(f);
}

static void test_a_resync_that_never_comes(void **state) {
        struct reflector_fixture *f = reflector_fixture_new(false, HF_NSEC_NEVER);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")),
                               "watch 7", REFLECTOR_NEVER);
        assert_string_equal(f->events, "added a;");
        reflector_fixture_free(f);
}

/* Names, uid and version of usual length are kept in a room of 640 bytes; longer ones are not. */
static void test_metadata_may_be_longer_than_usual(void **state) {
        static const size_t lengths[] = {36, 100, 129, 130, 131, 132, 133, 700, 5000};

        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                struct reflector_fixture *f = reflector_fixture_new(false, 0);
                char name[254], uid[5001], *body = NULL, *object = NULL;

                memset(name, 'n', sizeof name - 1);
                name[sizeof name - 1] = '\0';
                memset(uid, 'u', lengths[i]);
                uid[lengths[i]] = '\0';
                assert_true(
                        asprintf(&body,
                                 "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\"},"
                                 "\"items\":[{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
                                 "\"uid\":\"%s\",\"resourceVersion\":\"5\"}}]}",
                                 name, name, uid) > 0);
                reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
                reflector_fixture_list(f, 0, 0, body, "watch 7", REFLECTOR_NEVER);
                assert_int_equal(hf_informer_count(f->informer), 1);
                assert_int_equal(hf_informer_get(f->informer, name, name, &object, NULL), 0);
                assert_non_null(strstr(object, uid));
                free(object);
                free(body);
                reflector_fixture_free(f);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_list_that_fails_is_repeated_ever_more_slowly),
                cmocka_unit_test(test_retry_after_counts_up_to_five_minutes),
                cmocka_unit_test(test_a_list_without_a_version_is_a_failure),
                cmocka_unit_test(test_the_next_page_is_requested_at_once),
                cmocka_unit_test(test_a_list_without_paging_is_the_only_one),
                cmocka_unit_test(test_a_watch_that_fails_is_repeated_ever_more_slowly),
                cmocka_unit_test(
                        test_a_watch_that_ends_without_an_error_is_repeated_at_once_if_it_worked),
                cmocka_unit_test(test_a_compacted_history_makes_a_new_list_at_once_but_not_twice),
                cmocka_unit_test(test_a_server_that_is_behind_is_listed_and_compared),
                cmocka_unit_test(test_an_older_event_means_that_the_history_was_replaced),
                cmocka_unit_test(test_an_older_list_means_that_the_history_was_replaced),
                cmocka_unit_test(test_an_event_that_cannot_be_applied_makes_a_new_list),
                cmocka_unit_test(test_a_request_that_does_not_begin_is_a_failure),
                cmocka_unit_test(
                        test_an_older_event_makes_the_next_list_count_whatever_its_revision),
                cmocka_unit_test(test_a_version_has_up_to_31_bytes),
                cmocka_unit_test(test_a_resync_passes_all_objects_on_at_each_period),
                cmocka_unit_test(test_handlers_slower_than_the_resync_hold_up_nothing),
                cmocka_unit_test(test_a_resync_that_never_comes),
                cmocka_unit_test(test_metadata_may_be_longer_than_usual),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
