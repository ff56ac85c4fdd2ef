/* SPDX-License-Identifier: Apache-2.0 */
/* How the cache lists: in pages, when a list is as good as a revision, and when it must list again.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/informer.h>

#include "api-fake.c"
#include "client/informer_barrier.h"
#include "client/informer_private.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        struct api_fake *fake;
        struct hf_informer *informer;
        struct hf_informer_handler *handler;
        pthread_mutex_t mu;
        char text[4096]; /* what the handler was told */
        size_t n;
} w = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void told(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                 const char *object, size_t n) {
        pthread_mutex_lock(&w.mu);
        w.n += (size_t)snprintf(w.text + w.n, sizeof w.text - w.n, "%c%s ", "+~-"[type], name);
        assert(w.n < sizeof w.text);
        pthread_mutex_unlock(&w.mu);
}

static void assert_told(const char *text) {
        pthread_mutex_lock(&w.mu);
        assert_string_equal(w.text, text);
        pthread_mutex_unlock(&w.mu);
}

static void setup(bool one_revision) {
        w.fake = api_fake_new(&host);
        w.n = 0;
        w.text[0] = '\0';
        const struct hf_informer_config config = {
                .size = sizeof config,
                .client = api_fake_client(w.fake),
                .resource = {.group = "", .version = "v1", .plural = "things"},
                .one_revision = one_revision,
        };
        assert_int_equal(hf_informer_new(&host, &config, &w.informer), 0);
        assert_int_equal(hf_informer_add_handler(w.informer, told, NULL, &w.handler), 0);
}

static void teardown(void) {
        hf_informer_remove_handler(w.informer, w.handler);
        hf_informer_free(w.informer);
        hf_client_free(api_fake_client(w.fake));
}

static uint64_t put_many(unsigned from, unsigned to) {
        uint64_t revision = 0;

        for (unsigned i = from; i < to; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%u", i);
                revision = api_fake_put(w.fake, "a", name, "1");
        }
        return revision;
}

static void wait_for(uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(w.informer, revision ? text : NULL, hf_cancel_never()),
                         0);
}

static void assert_last_query(const char *expected) {
        char query[160];
        api_fake_last_query(w.fake, query);
        assert_string_equal(query, expected);
}

/* ---- pages ---- */

static void test_a_list_comes_in_pages(void **state) {
        setup(false);
        api_fake_page(w.fake, 2);
        put_many(0, 5);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        assert_last_query("limit=500&continue=6%2B4");
        assert_int_equal(hf_informer_count(w.informer), 5);
        assert_told("+n0 +n1 +n2 +n3 +n4 ");
        teardown();
}

/* The watch begins at the list's revision: nothing that happens between two pages is missed. */
static void test_what_happens_between_pages_is_seen(void **state) {
        setup(false);
        api_fake_page(w.fake, 2);
        api_fake_hold_pages(w.fake, true);
        put_many(0, 3);
        assert_int_equal(hf_informer_start(w.informer), 0);
        api_fake_await_list(w.fake, 2);
        assert_false(hf_informer_synced(w.informer)); /* half a list is none */
        api_fake_delete(w.fake, "a", "n0");
        api_fake_put(w.fake, "a", "n2", "2");
        uint64_t last = put_many(3, 4);
        api_fake_hold_pages(w.fake, false);
        wait_for(last);
        assert_told("+n0 +n1 +n2 -n0 ~n2 +n3 ");
        assert_int_equal(hf_informer_count(w.informer), 3);
        teardown();
}

static void test_a_broken_list_begins_again(void **state) {
        setup(false);
        api_fake_page(w.fake, 2);
        api_fake_fail_list(w.fake, 2, HF_E_UNAVAILABLE);
        put_many(0, 3);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        assert_int_equal(api_fake_n_lists(w.fake), 4);
        assert_told("+n0 +n1 +n2 ");
        teardown();
}

static void test_a_forgotten_page_makes_a_whole_list(void **state) {
        setup(false);
        api_fake_page(w.fake, 2);
        api_fake_hold_pages(w.fake, true);
        put_many(0, 5);
        assert_int_equal(hf_informer_start(w.informer), 0);
        api_fake_await_list(w.fake, 2);
        put_many(5, 6);
        api_fake_compact(w.fake);
        api_fake_hold_pages(w.fake, false);
        wait_for(0);
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        assert_last_query("limit=0");
        assert_int_equal(hf_informer_count(w.informer), 6);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_page(w.fake, 0);
        put_many(6, 7);
        api_fake_compact(w.fake); /* the next one is in pages again */
        api_fake_await_list(w.fake, 4);
        assert_last_query("limit=500");
        teardown();
}

static void test_a_list_in_pages_tells_what_went(void **state) {
        setup(false);
        put_many(0, 5);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_page(w.fake, 2);
        api_fake_delete(w.fake, "a", "n4");
        api_fake_delete(w.fake, "a", "n3");
        api_fake_put(w.fake, "a", "n1", "2");
        uint64_t last = api_fake_put(w.fake, "a", "n5", "1");
        api_fake_compact(w.fake);
        api_fake_mute_watches(w.fake, false);
        api_fake_await_watch(w.fake, 2);
        wait_for(last);
        assert_told("+n0 +n1 +n2 +n3 +n4 ~n1 +n5 -n3 -n4 ");
        teardown();
}

/* Deleted and made anew while nobody watched: who knew the old one is told that it went. */
static void test_another_of_the_same_name_is_another(void **state) {
        setup(false);
        put_many(0, 2);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_delete(w.fake, "a", "n0");
        uint64_t last = api_fake_put(w.fake, "a", "n0", "1");
        api_fake_compact(w.fake);
        api_fake_mute_watches(w.fake, false);
        api_fake_await_watch(w.fake, 2);
        wait_for(last);
        assert_told("+n0 +n1 -n0 +n0 ");
        assert_int_equal(hf_informer_count(w.informer), 2);
        teardown();
}

/* ---- lists for who waits ---- */

/* A probe whose answer has more pages is not laid beside the watch: it becomes the list. */
static void test_a_probe_of_many_becomes_the_list(void **state) {
        setup(false);
        put_many(0, 3);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_page(w.fake, 2);
        api_fake_mute_watches(w.fake, true);
        api_fake_delete(w.fake, "a", "n0");
        wait_for(put_many(3, 5));
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        api_fake_mute_watches(w.fake, false);
        api_fake_await_watch(w.fake, 2);
        wait_for(api_fake_delete(w.fake, "a", "n4"));
        assert_int_equal(hf_informer_count(w.informer), 3);
        pthread_mutex_lock(&w.mu);
        assert_non_null(strstr(w.text, "-n0 "));
        assert_non_null(strstr(w.text, "-n4 "));
        pthread_mutex_unlock(&w.mu);
        teardown();
}

/* A foreign server may keep this collection in a store of its own, whose revisions never reach
 * those of the Lease. */
static void test_a_consistent_list_is_as_good_as_a_revision(void **state) {
        setup(false);
        put_many(0, 2);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        put_many(2, 3);
        wait_for(1000000);
        assert_int_equal(hf_informer_count(w.informer),
                         3); /* what was written before the call is in */
        assert_int_equal(api_fake_n_lists(w.fake), 2);
        wait_for(1000000); /* each call wants a list begun after it */
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        teardown();
}

static void *wait_far(void *ctx) {
        return hf_informer_wait(w.informer, "1000", ctx) == 0 ? ctx : NULL;
}

/* One that was under way when the call came is not: it may have been answered before the write that
 * is waited for. */
static void test_a_list_under_way_is_not(void **state) {
        pthread_t first, second;
        void *r = NULL;

        setup(false);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_hold_calls(w.fake, true);
        assert_int_equal(pthread_create(&first, NULL, wait_far, hf_cancel_never()), 0);
        api_fake_await_list(w.fake, 2);
        assert_int_equal(pthread_create(&second, NULL, wait_far, hf_cancel_never()), 0);
        for (bool both = false; !both; sched_yield()) {
                pthread_mutex_lock(&w.informer->mu);
                both = w.informer->waiters && w.informer->waiters->next;
                pthread_mutex_unlock(&w.informer->mu);
        }
        api_fake_hold_calls(w.fake, false);
        assert_int_equal(pthread_join(first, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(pthread_join(second, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        teardown();
}

/* Where all collections share one revision the number is what counts, and a list that does not have
 * it is none. */
static void test_with_one_revision_the_number_counts(void **state) {
        pthread_t thread;
        void *r = NULL;

        setup(true);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        assert_int_equal(pthread_create(&thread, NULL, wait_far, hf_cancel_never()), 0);
        api_fake_await_list(w.fake, 3);
        pthread_mutex_lock(&w.informer->mu);
        assert_non_null(w.informer->waiters);
        pthread_mutex_unlock(&w.informer->mu);
        api_fake_other_writes(w.fake, 2000);
        assert_int_equal(pthread_join(thread, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        teardown();
}

/* A probe that hangs must not hold up the list that is needed when the watch's history is lost. */
static void test_a_lost_watch_does_not_wait_for_a_probe(void **state) {
        pthread_t thread;
        void *r = NULL;

        setup(false);
        put_many(0, 1);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_hold_calls(w.fake, true);
        assert_int_equal(pthread_create(&thread, NULL, wait_far, hf_cancel_never()), 0);
        api_fake_await_list(w.fake, 2); /* the probe */
        put_many(1, 2);
        api_fake_compact(w.fake);
        api_fake_await_list(w.fake, 3); /* the list, though the probe has no answer */
        api_fake_hold_calls(w.fake, false);
        api_fake_mute_watches(w.fake, false);
        assert_int_equal(pthread_join(thread, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(hf_informer_count(w.informer), 2);
        teardown();
}

static void test_several_are_waited_for_at_once(void **state) {
        struct hf_informer *informers[2] = {NULL, NULL};

        setup(true);
        put_many(0, 2);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = api_fake_client(w.fake),
                                                  .resource = {.group = "",
                                                               .version = "v1",
                                                               .plural = "things"}};
        informers[0] = w.informer;
        assert_int_equal(hf_informer_new(&host, &config, &informers[1]), 0);
        assert_int_equal(hf_informer_start(informers[0]), 0);
        assert_int_equal(hf_informer_start(informers[1]), 0);
        assert_int_equal(hf_informer_wait_all(informers, 2, "3", hf_cancel_never()), 0);
        assert_int_equal(hf_informer_count(informers[0]), 2);
        assert_int_equal(hf_informer_count(informers[1]), 2);
        assert_int_equal(hf_informer_wait_all(informers, 0, "3", hf_cancel_never()), 0);
        hf_informer_free(informers[1]);
        teardown();
}

/* ---- servers that were set back ---- */

static void test_a_server_set_back_is_listed_again(void **state) {
        setup(false);
        put_many(0, 2);
        api_fake_other_writes(w.fake, 100);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_set_back(w.fake, 50);
        put_many(2, 3); /* an event of a revision that was seen long ago */
        api_fake_await_watch(w.fake, 2);
        wait_for(put_many(3, 4));
        assert_told("+n0 +n1 +n2 +n3 ");
        teardown();
}

/* In the time that was undone n1 was given a revision; in the time that came instead it is given
 * the same one. */
static void test_a_revision_that_was_issued_anew(void **state) {
        char *object = NULL;

        setup(false);
        uint64_t revision = put_many(0, 2);
        api_fake_other_writes(w.fake, 100);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_set_back(w.fake, revision - 1);
        assert_int_equal(api_fake_put(w.fake, "a", "n1", "another"), revision);
        api_fake_await_watch(w.fake, 2);
        wait_for(put_many(2, 3));
        assert_told("+n0 +n1 ~n1 +n2 ");
        assert_int_equal(hf_informer_get(w.informer, "a", "n1", &object, NULL), 0);
        assert_non_null(strstr(object, "another"));
        free(object);
        teardown();
}

static void test_a_server_that_is_behind_is_listed_again(void **state) {
        setup(false);
        put_many(0, 2);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(0);
        api_fake_await_watch(w.fake, 1);
        api_fake_end_watches_with(w.fake, HF_E_TIMEOUT,
                                  "Timeout: Too large resource version: 3, current: 1");
        api_fake_await_list(w.fake, 2);
        wait_for(put_many(2, 3));
        assert_told("+n0 +n1 +n2 ");
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_list_comes_in_pages),
                cmocka_unit_test(test_what_happens_between_pages_is_seen),
                cmocka_unit_test(test_a_broken_list_begins_again),
                cmocka_unit_test(test_a_forgotten_page_makes_a_whole_list),
                cmocka_unit_test(test_a_list_in_pages_tells_what_went),
                cmocka_unit_test(test_another_of_the_same_name_is_another),
                cmocka_unit_test(test_a_probe_of_many_becomes_the_list),
                cmocka_unit_test(test_a_consistent_list_is_as_good_as_a_revision),
                cmocka_unit_test(test_a_list_under_way_is_not),
                cmocka_unit_test(test_with_one_revision_the_number_counts),
                cmocka_unit_test(test_a_lost_watch_does_not_wait_for_a_probe),
                cmocka_unit_test(test_several_are_waited_for_at_once),
                cmocka_unit_test(test_a_server_set_back_is_listed_again),
                cmocka_unit_test(test_a_revision_that_was_issued_anew),
                cmocka_unit_test(test_a_server_that_is_behind_is_listed_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
