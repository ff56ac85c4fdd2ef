/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain by which the cache follows the store: the epoch, the list, the watch; the effect of
 * each of their failures, and when it comes; and a new filling at any moment.
 */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/cancel.h>

#include "base/buf.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/state/cacher_state.h"
#include "time_units.h"

/* Returns why the cacher is not synced now; 0 = it is. */
static int why_unsynced(struct hf_status *status) {
        struct hf_cancel *token;

        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_fire(token, HF_CANCEL_STOPPING);
        int r = hfd_cacher_wait_synced(scripted.cacher, token, status);
        hf_cancel_unref(token);
        return r;
}

static void expect_unsynced(int r, const char *message) {
        struct hf_status status = {0};

        assert_false(hfd_cacher_synced(scripted.cacher));
        assert_int_equal(why_unsynced(&status), r);
        assert_int_equal(status.error, r);
        assert_string_equal(status.message, message);
}

/* Waits for the end of a backoff of this length. */
static void expect_backoff(hf_nsec length) {
        scripted_cacher_await_backoff();
        scripted_cacher_move(length - 1);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_cacher_move(1);
        PATIENCE_AWAIT(scripted_store_n_waiting(&scripted.store) == 1);
}

static void fail_epoch(int error, const char *message) {
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_GET);
        struct hfd_store_reply reply = {.error = error, .status.error = error};

        strcpy(reply.status.message, message);
        scripted_reply(&request, &reply);
}

/* ---- the first filling ---- */

static void test_each_step_has_its_parameters(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 1);
        expect_unsynced(HF_E_CANCELED, "the store did not respond: no reply yet");
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_GET);
        assert_string_equal(request.key, "/registry.holdfast/epoch");
        assert_true(request.deadline == hand_clock_now() + 5 * SEC);
        assert_false(request.urgent);
        hand_clock_move(SEC);
        scripted_reply_revision(&request, 10);
        request = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_string_equal(request.key, "/registry/");
        assert_string_equal(request.start, "");
        assert_int_equal(request.revision, 0);
        assert_int_equal(request.limit, 500);
        assert_true(request.deadline == hand_clock_now() + 30 * SEC);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 0);
        assert_true(hfd_cacher_fill_progress(scripted.cacher) == 0);
        scripted_reply_key(&request, 10, scripted_cacher_key("a"), SCRIPTED_OBJECT("a"), 5);
        scripted_cacher_await_watch(1);
        assert_string_equal(scripted.store.begin, "/registry.");
        assert_string_equal(scripted.store.end, "/registry0");
        assert_int_equal(scripted.store.from, 11);
        assert_true(hfd_cacher_synced(scripted.cacher));
        assert_int_equal(why_unsynced(NULL), 0);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 10);
        assert_true(hfd_cacher_fill_progress(scripted.cacher) == hand_clock_now());
        assert_true(hfd_cacher_last_store_contact(scripted.cacher) == hand_clock_now());
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
        assert_int_equal(atomic_load(&scripted.n_observed), 1);
        assert_int_equal(atomic_load(&scripted.observed), SCRIPTED_CONFIGMAPS | SCRIPTED_SECRETS);
}

static void test_pauses_between_attempts_double_up_to_a_second(void **state) {
        static const hf_nsec pauses[] = {50, 100, 200, 400, 800, 1000, 1000};

        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                fail_epoch(HF_E_UNAVAILABLE, i % 2 ? "refused" : "");
                scripted_cacher_await_backoff();
                expect_unsynced(HF_E_CANCELED, i % 2 ? "the store did not respond: refused"
                                                     : "the store did not respond: unavailable");
                expect_backoff(pauses[i] * MSEC);
        }
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(1);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(50 * MSEC); /* the filling has ended the row of failures */
        fail_epoch(HF_E_UNAVAILABLE, "");
        expect_backoff(100 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_watch(2);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(200 * MSEC); /* a watch that delivers nothing has not ended it */
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_watch(3);
        scripted_store_event(&scripted.store, NULL, NULL, 12);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(50 * MSEC); /* an event has ended it */
        scripted_cacher_reply_epoch(NULL, 12);
        scripted_cacher_await_watch(4);
        assert_int_equal(scripted.store.from, 13);
}

/* A damaged store has an error of its own, because no repetition helps. */
static void test_a_damaged_store_is_told_apart(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        fail_epoch(-EBADMSG, "page 7 is damaged");
        scripted_cacher_await_backoff();
        expect_unsynced(-EBADMSG, "page 7 is damaged");
        expect_backoff(50 * MSEC);
        fail_epoch(HF_E_TIMEOUT, "late");
        scripted_cacher_await_backoff();
        expect_unsynced(HF_E_CANCELED, "the store did not respond: late");
}

/* The store refuses the list and the watch before they begin. */
static void test_requests_that_are_refused_are_repeated(void **state) {
        scripted_store_refuse(&scripted.store, SCRIPTED_GET, -ENOMEM);
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_await_backoff();
        scripted_store_refuse(&scripted.store, SCRIPTED_GET, 0);
        scripted_store_refuse(&scripted.store, SCRIPTED_LIST, -ENOMEM);
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_backoff();
        scripted_store_refuse(&scripted.store, SCRIPTED_LIST, 0);
        scripted_store_refuse_watch(&scripted.store, -ENOMEM);
        expect_backoff(100 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_backoff();
        scripted_store_refuse_watch(&scripted.store, 0);
        assert_true(hfd_cacher_synced(scripted.cacher));
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_watch(1); /* without another list */
}

struct sync_wait {
        struct hf_cancel *token;
        pthread_t thread;
        atomic_bool is_over;
        int r;
};
static struct sync_wait sync_wait;

static void *await_sync(void *ctx) {
        struct sync_wait *wait = ctx;

        wait->r = hfd_cacher_wait_synced(scripted.cacher, wait->token, NULL);
        atomic_store(&wait->is_over, true);
        return NULL;
}

static void hold_watch(struct scripted_store *store) {
        PATIENCE_AWAIT(atomic_load(&sync_wait.is_over));
}

/* The store may take its time to open the watch. */
static void test_the_filling_wakes_those_who_wait_for_it(void **state) {
        sync_wait = (struct sync_wait){0};
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &sync_wait.token), 0);
        hf_cancel_set_deadline(sync_wait.token, hand_clock_now() + 3600 * SEC);
        scripted.store.on_watch = hold_watch;
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        assert_int_equal(pthread_create(&sync_wait.thread, NULL, await_sync, &sync_wait), 0);
        hand_clock_await_deadline(3600 * SEC, 3600 * SEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        pthread_join(sync_wait.thread, NULL);
        assert_int_equal(sync_wait.r, 0);
        hf_cancel_unref(sync_wait.token);
        scripted_cacher_await_watch(1);
}

/* ---- the list ---- */

static void test_a_list_that_finds_no_store_waits_for_the_next_attempt(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        scripted_reply(&page, &(struct hfd_store_reply){.error = HF_E_UNAVAILABLE,
                                                        .status.message = "no member"});
        scripted_cacher_await_backoff();
        expect_unsynced(HF_E_CANCELED, "the store did not respond: no member");
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(1);
}

/* Each page of a listing is smaller after a failure; after eight of them it is over. */
static void test_a_page_is_requested_nine_times(void **state) {
        struct scripted_request page;

        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        for (size_t limit = 500, i = 0; i <= 8; i++, limit /= 2) {
                page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
                assert_int_equal(page.limit, limit > 0 ? limit : 1);
                assert_string_equal(page.start, "");
                scripted_reply_error(&page, HF_E_TIMEOUT);
        }
        scripted_cacher_await_backoff();
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_int_equal(page.limit, 500); /* the first page of another listing */
        scripted_reply_error(&page, HF_E_UNAVAILABLE);
}

/* Pages grow with what the store has already sent, up to 100,000 objects. */
static void test_a_page_has_a_largest_size(void **state) {
        enum { N = 25001 };
        static char keys[N][32];
        static struct hfd_kv kvs[N];

        for (size_t i = 0; i < N; i++) { /* the keys of no kind, which cost little */
                (void)snprintf(keys[i], sizeof keys[i], "/registry/others/%06zu", i);
                kvs[i] = (struct hfd_kv){.key = keys[i], .mod_revision = 5};
        }
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        scripted_reply(&page, &(struct hfd_store_reply){.revision = 10,
                                                        .kvs = kvs,
                                                        .n_kvs = N,
                                                        .more = true});
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_int_equal(page.limit, 100000); /* and not four times as many as there are */
        scripted_reply_error(&page, HF_E_UNAVAILABLE);
}

/* No store that works does this, but the cache must not keep both. */
static void test_a_key_that_is_listed_twice_is_one_object(void **state) {
        static const char a[] = SCRIPTED_OBJECT("a");
        struct hfd_kv kvs[2];

        for (size_t i = 0; i < 2; i++)
                kvs[i] = (struct hfd_kv){.key = "/registry/configmaps/ns/a",
                                         .value = hf__buf_copy(a, strlen(a)),
                                         .mod_revision = 5 + i};
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        scripted_reply(&page, &(struct hfd_store_reply){.revision = 10, .kvs = kvs, .n_kvs = 2});
        scripted_cacher_await_watch(1);
        assert_int_equal(scripted_cacher_seen("ns/a"), 6);
        for (size_t i = 0; i < 2; i++)
                hf__buf_unref(kvs[i].value);
}

/* The revision is gone: the pages so far are useless. */
static void test_a_listing_whose_revision_is_gone_begins_again(void **state) {
        const struct hfd_kv kv = {.key = "/registry/configmaps/ns/a", .mod_revision = 5};

        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        scripted_reply(&page, &(struct hfd_store_reply){.revision = 10,
                                                        .kvs = &kv,
                                                        .n_kvs = 1,
                                                        .more = true});
        expect_unsynced(HF_E_CANCELED, "the cache has 1 objects so far");
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_string_equal(page.key, "/registry/configmaps/ns/"); /* the rest of the namespace */
        assert_int_equal(page.revision, 10);
        assert_int_equal(page.limit, 4);
        scripted_reply_error(&page, HF_E_GONE);
        expect_backoff(50 * MSEC);
        expect_unsynced(HF_E_CANCELED,
                        "the store did not respond: the revision is no longer available");
        scripted_cacher_reply_epoch(NULL, 11);
        page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        assert_string_equal(page.start, "");
        assert_int_equal(page.revision, 0);
        scripted_reply_error(&page, HF_E_UNAVAILABLE);
}

/* A listing of the old history is not served, however late it ends. */
static void test_a_listing_from_before_a_replacement_is_not_published(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        hfd_store_identity_replaced(scripted.cacher, "a test");
        scripted_cacher_reply_list(10);
        struct scripted_request epoch = scripted_store_next(&scripted.store, SCRIPTED_GET);
        assert_false(hfd_cacher_synced(scripted.cacher));
        assert_int_equal(atomic_load(&scripted.n_observed), 0);
        scripted_reply_revision(&epoch, 8);
        scripted_cacher_reply_list(8);
        scripted_cacher_await_watch(1);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 8);
        assert_int_equal(scripted.store.from, 9);
}

/* ---- the watch ---- */

static void test_a_watch_that_ended_goes_on_where_it_was(void **state) {
        scripted_cacher_fill();
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), SCRIPTED_OBJECT("c"), 12);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, "the member was restarted");
        assert_int_equal(scripted_cacher_n_logged("7 cacher: the watch of the store ended: the "
                                                  "member was restarted"),
                         1);
        expect_backoff(50 * MSEC);
        assert_int_equal(scripted_cacher_seen("ns/c"), 12); /* the object is served meanwhile */
        scripted_cacher_reply_epoch(NULL, 12);
        scripted_cacher_await_watch(2);
        assert_int_equal(scripted.store.from, 13);
        assert_int_equal(atomic_load(&scripted.n_observed), 2);
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        assert_int_equal(scripted_cacher_n_logged("the watch of the store ended: unavailable"), 1);
}

static void end_and_open_next(struct scripted_store *store) {
        store->on_watch = NULL;
        scripted_store_end_watch(store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(100 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
}

/* The watch ends, and the next one is opened, before the thread that opened it has its ID. */
static void test_a_late_id_is_not_that_of_the_watch(void **state) {
        scripted_cacher_fill();
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(50 * MSEC);
        scripted.store.on_watch = end_and_open_next;
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_await_watch(3);
}

static void test_after_a_compaction_everything_is_listed(void **state) {
        scripted_cacher_fill();
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), SCRIPTED_OBJECT("c"), 12);
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 20);
        assert_int_equal(scripted_cacher_seen("ns/c"), 12);
        scripted_cacher_reply_list(20);
        scripted_cacher_await_watch(2);
        assert_int_equal(scripted_cacher_seen("ns/c"), 0);
        assert_int_equal(scripted.store.from, 21);
        assert_int_equal(atomic_load(&scripted.n_observed), 3);
        assert_int_equal(atomic_load(&scripted.observed), SCRIPTED_CONFIGMAPS | SCRIPTED_SECRETS);
}

/* ---- a filling on demand ---- */

struct refill {
        struct hf_cancel *token;
        pthread_t thread;
        atomic_bool is_over;
        int r;
};

static void *refill_main(void *ctx) {
        struct refill *refill = ctx;

        refill->r = hfd_cacher_refill(scripted.cacher, refill->token);
        atomic_store(&refill->is_over, true);
        return NULL;
}

static void begin_refill(struct refill *refill) {
        *refill = (struct refill){0};
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &refill->token), 0);
        assert_int_equal(pthread_create(&refill->thread, NULL, refill_main, refill), 0);
}

static int end_refill(struct refill *refill) {
        pthread_join(refill->thread, NULL);
        hf_cancel_unref(refill->token);
        return refill->r;
}

static bool has_refill_begun(void) {
        pthread_mutex_lock(&scripted.cacher->mu);
        bool has = hfd_store_identity_generation_locked(scripted.cacher) > 0;
        pthread_mutex_unlock(&scripted.cacher->mu);
        return has;
}

static void test_a_refill_ends_when_the_cache_is_filled(void **state) {
        struct refill refill;

        scripted_cacher_fill();
        begin_refill(&refill);
        PATIENCE_AWAIT(!scripted_store_is_watched(&scripted.store));
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 10);
        assert_false(atomic_load(&refill.is_over));
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
        scripted_cacher_reply_list(10); /* nothing was written meanwhile */
        assert_int_equal(end_refill(&refill), 0);
        scripted_cacher_await_watch(2);
        assert_int_equal(atomic_load(&scripted.n_replaced), 0);
}

static void test_a_refill_can_be_given_up(void **state) {
        struct refill refill;

        scripted_cacher_fill();
        begin_refill(&refill);
        PATIENCE_AWAIT(!scripted_store_is_watched(&scripted.store));
        hf_cancel_fire(refill.token, HF_CANCEL_STOPPING);
        assert_int_equal(end_refill(&refill), HF_E_CANCELED);
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 11);
        scripted_cacher_reply_list(11); /* the filling completes all the same */
        scripted_cacher_await_watch(2);
}

/* A refill does not wait for the end of a pause. */
static void test_a_refill_ends_a_pause(void **state) {
        struct refill refill;

        scripted_cacher_fill();
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        scripted_cacher_await_backoff();
        begin_refill(&refill);
        scripted_cacher_reply_epoch(NULL, 11);
        scripted_cacher_reply_list(11);
        assert_int_equal(end_refill(&refill), 0);
        scripted_cacher_await_watch(2);
        assert_int_equal(scripted.store.n_canceled, 0); /* there was no watch */
}

/* A running listing may have decrypted values with the old keys. */
static void test_a_refill_during_a_listing_lists_again(void **state) {
        struct refill refill;

        scripted_cacher_fill();
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        expect_backoff(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 11);
        struct scripted_request page = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        begin_refill(&refill);
        PATIENCE_AWAIT(has_refill_begun());
        scripted_reply_revision(&page, 11);
        scripted_cacher_reply_epoch(NULL, 12);
        assert_false(atomic_load(&refill.is_over));
        scripted_cacher_reply_list(12);
        assert_int_equal(end_refill(&refill), 0);
        scripted_cacher_await_watch(2);
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
}

/* ---- the stop ---- */

/* The tear-down frees the cacher in each of these states, and nothing is left. */
static void test_it_can_be_stopped_in_a_pause(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        fail_epoch(HF_E_UNAVAILABLE, "");
        scripted_cacher_await_backoff();
}

static void test_it_can_be_stopped_while_it_lists(void **state) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        PATIENCE_AWAIT(scripted_store_n_waiting(&scripted.store) == 1);
}

static void *free_cacher(void *ctx) {
        hfd_cacher_free(scripted.cacher);
        return NULL;
}

/* The clients need not wait for a store that hangs. */
static void test_watches_end_before_the_store_replies(void **state) {
        struct scripted_watch watch;
        pthread_t thread;

        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.from_now = true});
        scripted_store_end_watch(&scripted.store, HF_E_UNAVAILABLE, NULL);
        expect_backoff(50 * MSEC);
        struct scripted_request epoch = scripted_store_next(&scripted.store, SCRIPTED_GET);
        assert_int_equal(pthread_create(&thread, NULL, free_cacher, NULL), 0);
        scripted_watch_await(&watch);
        scripted_watch_expect(&watch, "END:0 ");
        scripted_watch_done(&watch);
        scripted_reply_revision(&epoch, 10);
        pthread_join(thread, NULL);
        scripted.cacher = NULL;
}

static void test_it_can_be_freed_without_a_start(void **state) {
        assert_false(hfd_cacher_synced(scripted.cacher));
        assert_string_equal(hfd_cacher_prefix(scripted.cacher), "/registry");
        assert_ptr_equal(hfd_cacher_table(scripted.cacher), scripted.table);
}

static void test_the_prefix_has_a_greatest_length(void **state) {
        char prefix[257];
        struct hfd_cacher *cacher;
        struct hfd_cacher_config config = {.store = &scripted.store.base, .prefix = prefix};

        memset(prefix, '/', sizeof prefix);
        prefix[256] = '\0';
        assert_int_equal(hfd_cacher_new(&scripted.host, &config, &cacher), -EINVAL);
        prefix[255] = '\0';
        assert_int_equal(hfd_cacher_new(&scripted.host, &config, &cacher), 0);
        assert_string_equal(hfd_cacher_prefix(cacher), prefix);
        assert_null(hfd_cacher_free(cacher));
        assert_null(hfd_cacher_free(NULL));
        config.prefix = NULL;
        assert_int_equal(hfd_cacher_new(&scripted.host, &config, &cacher), -EINVAL);
        config = (struct hfd_cacher_config){.prefix = "/registry"};
        assert_int_equal(hfd_cacher_new(&scripted.host, &config, &cacher), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_each_step_has_its_parameters),
                SCRIPTED_TEST(test_pauses_between_attempts_double_up_to_a_second),
                SCRIPTED_TEST(test_a_damaged_store_is_told_apart),
                SCRIPTED_TEST(test_requests_that_are_refused_are_repeated),
                SCRIPTED_TEST(test_the_filling_wakes_those_who_wait_for_it),
                SCRIPTED_TEST(test_a_list_that_finds_no_store_waits_for_the_next_attempt),
                SCRIPTED_TEST(test_a_page_is_requested_nine_times),
                SCRIPTED_TEST(test_a_page_has_a_largest_size),
                SCRIPTED_TEST(test_a_key_that_is_listed_twice_is_one_object),
                SCRIPTED_TEST(test_a_listing_whose_revision_is_gone_begins_again),
                SCRIPTED_TEST(test_a_listing_from_before_a_replacement_is_not_published),
                SCRIPTED_TEST(test_a_watch_that_ended_goes_on_where_it_was),
                SCRIPTED_TEST(test_a_late_id_is_not_that_of_the_watch),
                SCRIPTED_TEST(test_after_a_compaction_everything_is_listed),
                SCRIPTED_TEST(test_a_refill_ends_when_the_cache_is_filled),
                SCRIPTED_TEST(test_a_refill_can_be_given_up),
                SCRIPTED_TEST(test_a_refill_ends_a_pause),
                SCRIPTED_TEST(test_a_refill_during_a_listing_lists_again),
                SCRIPTED_TEST(test_it_can_be_stopped_in_a_pause),
                SCRIPTED_TEST(test_it_can_be_stopped_while_it_lists),
                SCRIPTED_TEST(test_watches_end_before_the_store_replies),
                SCRIPTED_TEST(test_it_can_be_freed_without_a_start),
                SCRIPTED_TEST(test_the_prefix_has_a_greatest_length),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
