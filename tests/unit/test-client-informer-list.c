/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an informer lists: in pages, when a list counts as a revision, and when it must list again.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/informer.h>

#include "client/informer_barrier.h"
#include "client/informer_lookup.h"
#include "client/informer_private.h"
#include "fake_api_client.h"
#include "patience.h"

/* The warnings of informers, and a token that the first warning fires. */
static struct {
        pthread_mutex_t mu;
        struct hf_cancel *token;
        char text[512];
} warnings = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void keep_warning(void *ctx, enum hf_log_level level, const char *component,
                         const char *message) {
        if (level > HF_LOG_WARNING)
                return;
        pthread_mutex_lock(&warnings.mu);
        size_t n = strlen(warnings.text);
        (void)snprintf(warnings.text + n, sizeof warnings.text - n, "%s: %s;", component, message);
        struct hf_cancel *token = warnings.token;
        pthread_mutex_unlock(&warnings.mu);
        if (token)
                hf_cancel_fire(token, HF_CANCEL_STOPPING);
}

static const struct hf_host host = {.size = sizeof host, .log = {.write = keep_warning}};

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer *informer;
        struct hf_informer_handler *handler;
        pthread_mutex_t mu;
        char text[4096]; /* the events that the handler got */
        size_t n;
} f = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void record_event(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                         const char *object, size_t n) {
        pthread_mutex_lock(&f.mu);
        f.n += (size_t)snprintf(f.text + f.n, sizeof f.text - f.n, "%c%s ", "+~-"[type], name);
        assert(f.n < sizeof f.text);
        pthread_mutex_unlock(&f.mu);
}

static void assert_told(const char *text) {
        pthread_mutex_lock(&f.mu);
        assert_string_equal(f.text, text);
        pthread_mutex_unlock(&f.mu);
}

static void setup(bool one_revision) {
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
        f.n = 0;
        f.text[0] = '\0';
        const struct hf_informer_config config = {
                .size = sizeof config,
                .client = &f.client->base,
                .resource = {.group = "", .version = "v1", .plural = "things"},
                .one_revision = one_revision,
        };
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), 0);
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, NULL, &f.handler), 0);
}

static void teardown(void) {
        hf_informer_remove_handler(f.informer, f.handler);
        hf_informer_free(f.informer);
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

static uint64_t put_many(unsigned from, unsigned to) {
        uint64_t revision = 0;

        for (unsigned i = from; i < to; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%u", i);
                revision = fake_api_put_thing(f.api, "a", name, "1");
        }
        return revision;
}

static void wait_for(uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(f.informer, revision ? text : NULL, hf_cancel_never()),
                         0);
}

/* Starts the informer with n objects, and waits until it has them and watches. */
static void start_with(unsigned n) {
        put_many(0, n);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        fake_api_await_watch(f.api, 1);
}

static void assert_last_query(const char *expected) {
        char query[160];
        fake_api_last_list_query(f.api, query);
        assert_string_equal(query, expected);
}

/* ---- pages ---- */

static void test_a_list_comes_in_pages(void **state) {
        setup(false);
        fake_api_set_page(f.api, 2);
        put_many(0, 5);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_int_equal(fake_api_n_lists(f.api), 3);
        assert_last_query("limit=500&continue=6%2B4");
        assert_int_equal(hf_informer_count(f.informer), 5);
        assert_told("+n0 +n1 +n2 +n3 +n4 ");
        teardown();
}

static void test_a_namespace_has_objects_or_not(void **state) {
        char name[HF_NAME_MAX + 2];

        memset(name, 'n', sizeof name - 1);
        name[sizeof name - 1] = '\0';
        setup(false);
        fake_api_put_thing(f.api, "b", "one", "1");
        fake_api_put_thing(f.api, "", name,
                           "1"); /* without a namespace, and with a very long name */
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_true(hf__informer_has_in(f.informer, "b"));
        assert_false(hf__informer_has_in(f.informer, "a"));
        assert_false(hf__informer_has_in(f.informer, "c"));
        assert_false(hf__informer_has_in(f.informer, name));
        assert_false(hf__informer_has_in(f.informer, name + 1));
        teardown();
}

/* Kubernetes' names need no escapes, but other servers' objects may have them. */
static void test_a_name_may_have_escapes(void **state) {
        setup(false);
        fake_api_put_thing(f.api, "a", "n\\\"0", "1");
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_told("+n\"0 ");
        teardown();
}

static void assert_begins_with(const char *name, const char *text) {
        char *object = NULL;

        assert_int_equal(hf_informer_get(f.informer, "a", name, &object, NULL), 0);
        object[strlen(text)] = '\0';
        assert_string_equal(object, text);
        free(object);
}

/* Kubernetes leaves kind and apiVersion out of the items of lists of built-in kinds. Those that an
 * item has stay. */
static void test_an_item_has_the_kind_of_its_list(void **state) {
        setup(false);
        char *key = fake_store_key("things", "a", "bare");
        fake_api_put(f.api, key,
                     "{\"metadata\":{\"namespace\":\"a\",\"name\":\"bare\"},\"v\":\"1\"}");
        free(key);
        fake_api_put_thing(f.api, "a", "typed", "1");
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_begins_with("bare", "{\"kind\":\"Thing\",\"apiVersion\":\"v1\",\"metadata\":{");
        assert_begins_with("typed", "{\"kind\":\"Thing\",\"metadata\":{");
        teardown();
}

/* The watch begins at the list's revision, so nothing that happens between two pages is missed. */
static void test_what_happens_between_pages_is_seen(void **state) {
        setup(false);
        fake_api_set_page(f.api, 2);
        fake_api_client_hold_pages(f.client, true);
        put_many(0, 3);
        assert_int_equal(hf_informer_start(f.informer), 0);
        fake_api_await_list(f.api, 2);
        assert_false(hf_informer_synced(f.informer)); /* a part of a list is not enough */
        fake_api_delete_thing(f.api, "a", "n0");
        fake_api_put_thing(f.api, "a", "n2", "2");
        uint64_t last = put_many(3, 4);
        fake_api_client_hold_pages(f.client, false);
        wait_for(last);
        assert_told("+n0 +n1 +n2 -n0 ~n2 +n3 ");
        assert_int_equal(hf_informer_count(f.informer), 3);
        teardown();
}

static void test_a_list_that_fails_halfway_begins_again(void **state) {
        setup(false);
        fake_api_set_page(f.api, 2);
        fake_api_fail_list(f.api, 2, HF_E_UNAVAILABLE);
        put_many(0, 3);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_int_equal(fake_api_n_lists(f.api), 4);
        assert_told("+n0 +n1 +n2 ");
        teardown();
}

static void test_a_compacted_page_is_followed_by_a_whole_list(void **state) {
        setup(false);
        fake_api_set_page(f.api, 2);
        fake_api_client_hold_pages(f.client, true);
        put_many(0, 5);
        assert_int_equal(hf_informer_start(f.informer), 0);
        fake_api_await_list(f.api, 2);
        put_many(5, 6);
        fake_api_compact(f.api);
        fake_api_client_hold_pages(f.client, false);
        wait_for(0);
        assert_int_equal(fake_api_n_lists(f.api), 3);
        assert_last_query("limit=0");
        assert_int_equal(hf_informer_count(f.informer), 6);
        fake_api_await_watch(f.api, 1);
        fake_api_client_hold_events(f.client, true);
        fake_api_set_page(f.api, 0);
        put_many(6, 7);
        fake_api_compact(f.api); /* the next list is in pages again */
        fake_api_await_list(f.api, 4);
        assert_last_query("limit=500");
        teardown();
}

static void test_a_list_in_pages_reports_deletions(void **state) {
        setup(false);
        start_with(5);
        fake_api_client_hold_events(f.client, true);
        fake_api_set_page(f.api, 2);
        fake_api_delete_thing(f.api, "a", "n4");
        fake_api_delete_thing(f.api, "a", "n3");
        fake_api_put_thing(f.api, "a", "n1", "2");
        uint64_t last = fake_api_put_thing(f.api, "a", "n5", "1");
        fake_api_compact(f.api);
        fake_api_client_hold_events(f.client, false);
        fake_api_await_watch(f.api, 2);
        wait_for(last);
        assert_told("+n0 +n1 +n2 +n3 +n4 ~n1 +n5 -n3 -n4 ");
        teardown();
}

/*
 * The object was deleted and recreated while no watch was open: the handler is called for the
 * deletion of the old object.
 */
static void test_a_recreated_object_is_reported_as_deleted_and_added(void **state) {
        setup(false);
        start_with(2);
        fake_api_client_hold_events(f.client, true);
        fake_api_delete_thing(f.api, "a", "n0");
        uint64_t last = fake_api_put_thing(f.api, "a", "n0", "1");
        fake_api_compact(f.api);
        fake_api_client_hold_events(f.client, false);
        fake_api_await_watch(f.api, 2);
        wait_for(last);
        assert_told("+n0 +n1 -n0 +n0 ");
        assert_int_equal(hf_informer_count(f.informer), 2);
        teardown();
}

/* ---- lists for callers that wait ---- */

/* A probe whose response has further pages is not compared with the watch: it becomes the list. */
static void test_a_probe_with_several_pages_becomes_the_list(void **state) {
        setup(false);
        start_with(3);
        fake_api_set_page(f.api, 2);
        fake_api_client_hold_events(f.client, true);
        fake_api_delete_thing(f.api, "a", "n0");
        wait_for(put_many(3, 5));
        assert_int_equal(fake_api_n_lists(f.api), 3);
        fake_api_client_hold_events(f.client, false);
        fake_api_await_watch(f.api, 2);
        wait_for(fake_api_delete_thing(f.api, "a", "n4"));
        assert_int_equal(hf_informer_count(f.informer), 3);
        pthread_mutex_lock(&f.mu);
        assert_non_null(strstr(f.text, "-n0 "));
        assert_non_null(strstr(f.text, "-n4 "));
        pthread_mutex_unlock(&f.mu);
        teardown();
}

/*
 * A foreign server may keep this collection in another store, whose revisions never reach that of
 * the Lease.
 */
static void test_a_consistent_list_is_as_good_as_a_revision(void **state) {
        setup(false);
        start_with(2);
        fake_api_client_hold_events(f.client, true);
        put_many(2, 3);
        wait_for(1000000);
        /* the list contains everything that was written before the wait began */
        assert_int_equal(hf_informer_count(f.informer), 3);
        assert_int_equal(fake_api_n_lists(f.api), 2);
        wait_for(1000000); /* each wait needs a list that began after it */
        assert_int_equal(fake_api_n_lists(f.api), 3);
        teardown();
}

/*
 * The Lease and this collection have separate revisions, and those of the collection are higher. So
 * the collection's own revision says nothing about what the last leader wrote before the Lease was
 * acquired.
 */
static void test_at_a_new_term_only_a_list_counts(void **state) {
        setup(false);
        fake_api_raise_revision(f.api, 100);
        start_with(2);
        fake_api_client_hold_events(f.client, true);
        put_many(2, 3); /* the last leader's object; no event tells of it */
        assert_int_equal(hf_informer_wait_term(&f.informer, 1, "7", hf_cancel_never()), 0);
        assert_int_equal(hf_informer_count(f.informer), 3);
        assert_int_equal(fake_api_n_lists(f.api), 2);
        teardown();
}

static void *wait_far(void *ctx) {
        return hf_informer_wait(f.informer, "1000", ctx) == 0 ? ctx : NULL;
}

static bool has_two_waiters(void) {
        pthread_mutex_lock(&f.informer->mu);
        bool both = f.informer->waiters && f.informer->waiters->next;
        pthread_mutex_unlock(&f.informer->mu);
        return both;
}

/*
 * A list that was under way when the wait began does not count: the server may have served it
 * before the write that the caller waits for.
 */
static void test_a_list_begun_earlier_does_not_count(void **state) {
        pthread_t first, second;
        void *r = NULL;

        setup(false);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        fake_api_await_watch(f.api, 1);
        fake_api_client_hold_requests(f.client, true);
        assert_int_equal(pthread_create(&first, NULL, wait_far, hf_cancel_never()), 0);
        fake_api_await_list(f.api, 2);
        assert_int_equal(pthread_create(&second, NULL, wait_far, hf_cancel_never()), 0);
        PATIENCE_AWAIT(has_two_waiters());
        fake_api_client_hold_requests(f.client, false);
        assert_int_equal(pthread_join(first, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(pthread_join(second, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(fake_api_n_lists(f.api), 3);
        teardown();
}

/*
 * If all collections share one revision, only the revision counts. A list that has not reached it
 * does not count.
 */
static void test_with_one_revision_only_the_revision_counts(void **state) {
        pthread_t thread;
        void *r = NULL;

        setup(true);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        assert_int_equal(pthread_create(&thread, NULL, wait_far, hf_cancel_never()), 0);
        fake_api_await_list(f.api, 3);
        pthread_mutex_lock(&f.informer->mu);
        assert_non_null(f.informer->waiters);
        pthread_mutex_unlock(&f.informer->mu);
        fake_api_raise_revision(f.api, 2000);
        assert_int_equal(pthread_join(thread, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        teardown();
}

/* A probe that hangs must not delay the list that is needed when the watch's history is lost. */
static void test_a_lost_watch_does_not_wait_for_a_probe(void **state) {
        pthread_t thread;
        void *r = NULL;

        setup(false);
        start_with(1);
        fake_api_client_hold_events(f.client, true);
        fake_api_client_hold_requests(f.client, true);
        assert_int_equal(pthread_create(&thread, NULL, wait_far, hf_cancel_never()), 0);
        fake_api_await_list(f.api, 2); /* the probe */
        put_many(1, 2);
        fake_api_compact(f.api);
        fake_api_await_list(f.api, 3); /* the list, although the probe has no response yet */
        fake_api_client_hold_requests(f.client, false);
        fake_api_client_hold_events(f.client, false);
        assert_int_equal(pthread_join(thread, &r), 0);
        assert_ptr_equal(r, hf_cancel_never());
        assert_int_equal(hf_informer_count(f.informer), 2);
        teardown();
}

static void test_several_informers_are_waited_for_together(void **state) {
        struct hf_informer *informers[2] = {NULL, NULL};

        setup(true);
        put_many(0, 2);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .resource = {.group = "",
                                                               .version = "v1",
                                                               .plural = "things"}};
        informers[0] = f.informer;
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

/* PN11: An informer that cannot sync is named in the log at its first failure, long before the
 * threads that wait for it give up. */
static void test_an_informer_that_cannot_sync_is_named(void **state) {
        setup(false);
        warnings.text[0] = '\0';
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &warnings.token), 0);
        hf_cancel_set_deadline(warnings.token, hf_now(hf_clock_system()) + 60 * HF_NSEC_PER_SEC);
        fake_api_client_refuse(f.client, HF_E_FORBIDDEN, 0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        assert_int_equal(hf_informer_wait(f.informer, NULL, warnings.token), HF_E_CANCELED);
        assert_int_equal(hf_cancel_reason(warnings.token), HF_CANCEL_STOPPING);
        assert_false(hf_informer_synced(f.informer));
        teardown();
        assert_non_null(strstr(warnings.text, "informer: list of things failed: "));
        warnings.token = hf_cancel_unref(warnings.token);
}

/* ---- servers that were rolled back ---- */

static void test_a_server_rolled_back_is_listed_again(void **state) {
        setup(false);
        put_many(0, 2);
        fake_api_raise_revision(f.api, 100);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        fake_api_await_watch(f.api, 1);
        fake_api_roll_back(f.api, 50);
        put_many(2, 3); /* an event with a revision that the informer has already seen */
        fake_api_await_watch(f.api, 2);
        wait_for(put_many(3, 4));
        assert_told("+n0 +n1 +n2 +n3 ");
        teardown();
}

/*
 * n1 had this revision before the server was rolled back. Afterwards the same revision is used for
 * other content.
 */
static void test_a_revision_that_is_used_again_is_noticed(void **state) {
        char *object = NULL;

        setup(false);
        uint64_t revision = put_many(0, 2);
        fake_api_raise_revision(f.api, 100);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(0);
        fake_api_await_watch(f.api, 1);
        fake_api_roll_back(f.api, revision - 1);
        assert_int_equal(fake_api_put_thing(f.api, "a", "n1", "another"), revision);
        fake_api_await_watch(f.api, 2);
        wait_for(put_many(2, 3));
        assert_told("+n0 +n1 ~n1 +n2 ");
        assert_int_equal(hf_informer_get(f.informer, "a", "n1", &object, NULL), 0);
        assert_non_null(strstr(object, "another"));
        free(object);
        teardown();
}

static void test_a_server_that_is_behind_is_listed_again(void **state) {
        setup(false);
        start_with(2);
        fake_api_end_watches(f.api, HF_E_TIMEOUT,
                             "Timeout: Too large resource version: 3, current: 1");
        fake_api_await_list(f.api, 2);
        wait_for(put_many(2, 3));
        assert_told("+n0 +n1 +n2 ");
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_list_comes_in_pages),
                cmocka_unit_test(test_a_namespace_has_objects_or_not),
                cmocka_unit_test(test_a_name_may_have_escapes),
                cmocka_unit_test(test_an_item_has_the_kind_of_its_list),
                cmocka_unit_test(test_what_happens_between_pages_is_seen),
                cmocka_unit_test(test_a_list_that_fails_halfway_begins_again),
                cmocka_unit_test(test_a_compacted_page_is_followed_by_a_whole_list),
                cmocka_unit_test(test_a_list_in_pages_reports_deletions),
                cmocka_unit_test(test_a_recreated_object_is_reported_as_deleted_and_added),
                cmocka_unit_test(test_a_probe_with_several_pages_becomes_the_list),
                cmocka_unit_test(test_a_consistent_list_is_as_good_as_a_revision),
                cmocka_unit_test(test_at_a_new_term_only_a_list_counts),
                cmocka_unit_test(test_a_list_begun_earlier_does_not_count),
                cmocka_unit_test(test_with_one_revision_only_the_revision_counts),
                cmocka_unit_test(test_a_lost_watch_does_not_wait_for_a_probe),
                cmocka_unit_test(test_several_informers_are_waited_for_together),
                cmocka_unit_test(test_an_informer_that_cannot_sync_is_named),
                cmocka_unit_test(test_a_server_rolled_back_is_listed_again),
                cmocka_unit_test(test_a_revision_that_is_used_again_is_noticed),
                cmocka_unit_test(test_a_server_that_is_behind_is_listed_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
