/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in the cacher, on a clock that moves only when the test moves it. Consistent reads: how
 * long they wait for the cache, which of them share a request for the store's revision (the test
 * itself replies to it), and when reads go to the store at once. And when the cache is compared
 * with the store.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "faulty_store.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/cacher/cacher.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/cache_audit.h"
#include "server/cacher/sync/consistent_read.h"
#include "store_client.h"
#include "time_units.h"

static struct {
        struct hf_host host;
        struct faulty_store store;
        struct hfd_cacher *cacher;
        uint64_t revision; /* the revision of the cache */
} f;

struct read {
        struct hfd_consistent_read base; /* first */
        atomic_bool is_over;
};

static uint64_t cached_revision(void) {
        pthread_mutex_lock(&f.cacher->mu);
        uint64_t revision = f.cacher->revision;
        pthread_mutex_unlock(&f.cacher->mu);
        return revision;
}

/* Writes an object, and waits until the cache has it. */
static void put(void) {
        static const char text[] = "{\"metadata\":{\"name\":\"a\"}}";

        f.revision = store_client_put(f.store.inner, "/registry/workspaces/a", text);
        PATIENCE_AWAIT(cached_revision() >= f.revision);
}

static int set_up(void **state) {
        struct hf_cancel *token = NULL;

        memset(&f, 0, sizeof f);
        hand_clock_reset();
        f.host = (struct hf_host){.size = sizeof f.host, .clock = &hand_clock};
        assert_int_equal(hf_metrics_new(&f.host.metrics), 0);
        faulty_store_init(&f.store, &f.host);
        const struct hfd_cacher_config config = {.store = &f.store.base, .prefix = "/registry"};
        assert_int_equal(hfd_cacher_new(&f.host, &config, &f.cacher), 0);
        assert_int_equal(hfd_cacher_start(f.cacher), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(60000));
        assert_int_equal(hfd_cacher_wait_synced(f.cacher, token, NULL), 0);
        hf_cancel_unref(token);
        faulty_store_await_watch(&f.store);
        put();
        assert_int_equal(cached_revision(), f.revision);
        hand_clock_await_waiter();
        return 0;
}

static int tear_down(void **state) {
        hfd_cacher_free(f.cacher);
        faulty_store_deinit(&f.store);
        hf_metrics_free(f.host.metrics);
        return 0;
}

static void on_ready(struct hfd_consistent_read *base) {
        atomic_store(&((struct read *)base)->is_over, true);
}
static bool is_over(struct read *read) { return atomic_load(&read->is_over); }

static void begin(struct read *read, hf_nsec deadline) {
        *read = (struct read){.base = {.deadline = hand_clock_now() + deadline, .ready = on_ready}};
        hfd_consistent_read_start(f.cacher, &read->base);
}

/* Begins a read whose request for the revision is held. */
static void begin_held(struct read *read, hf_nsec deadline) {
        f.store.hold = true;
        begin(read, deadline);
        assert_false(f.store.hold);
        assert_false(is_over(read));
}

static void reply(int error, uint64_t revision) {
        const struct hfd_store_reply reply = {.error = error, .revision = revision};

        f.store.held(f.store.held_ctx, &reply);
}

static void move(hf_nsec by) {
        hand_clock_await_waiter();
        hand_clock_move(by);
        hand_clock_await_waiter();
}

static void expect_late(struct read *read, hf_nsec after) {
        move(after - 1);
        assert_false(is_over(read));
        move(1);
        PATIENCE_AWAIT(is_over(read));
        assert_int_equal(read->base.outcome, HF_E_TIMEOUT);
}

/* A read for which the cache is too late. */
static void be_late(void) {
        struct read read;

        begin_held(&read, 60 * SEC);
        reply(0, f.revision + 1);
        expect_late(&read, 100 * MSEC);
}

static bool goes_to_the_store(void) {
        struct read read;
        int n = f.store.n_revisions;

        put(); /* so the store's revision grows */
        f.store.hold = true;
        begin(&read, 60 * SEC);
        if (f.store.hold) { /* nothing was requested */
                f.store.hold = false;
                assert_true(is_over(&read));
                assert_int_equal(read.base.outcome, HF_E_TIMEOUT);
                assert_int_equal(f.store.n_revisions, n);
                return true;
        }
        reply(0, f.revision);
        assert_true(is_over(&read));
        assert_int_equal(read.base.outcome, 0);
        return false;
}

/* ---- how long a read waits ---- */

static void test_a_cache_that_has_the_revision_serves_at_once(void **state) {
        struct read read;

        begin_held(&read, SEC);
        reply(0, f.revision);
        assert_true(is_over(&read));
        assert_int_equal(read.base.outcome, 0);
}

static void test_a_read_waits_until_the_cache_has_the_revision(void **state) {
        struct read read;

        begin_held(&read, SEC);
        reply(0, f.revision + 1);
        assert_false(is_over(&read));
        put();
        PATIENCE_AWAIT(is_over(&read));
        assert_int_equal(read.base.outcome, 0);
}

static void test_a_read_waits_for_a_tenth_of_a_second(void **state) {
        struct read read;

        begin_held(&read, SEC);
        reply(0, f.revision + 1);
        expect_late(&read, 100 * MSEC);
}

static void test_a_read_waits_no_longer_than_its_request_may(void **state) {
        struct read read;

        begin_held(&read, 30 * MSEC);
        reply(0, f.revision + 1);
        expect_late(&read, 30 * MSEC);
}

static void test_a_revision_of_the_client_is_waited_for_as_long_as_it_says(void **state) {
        struct read read = {.base = {.deadline = hand_clock_now() + 60 * SEC, .ready = on_ready}};

        hfd_consistent_read_after(f.cacher, &read.base, f.revision, 3 * SEC);
        assert_true(is_over(&read));
        assert_int_equal(read.base.outcome, 0);
        read = (struct read){.base = {.deadline = hand_clock_now() + 60 * SEC, .ready = on_ready}};
        hfd_consistent_read_after(f.cacher, &read.base, f.revision + 1, 3 * SEC);
        assert_false(is_over(&read));
        expect_late(&read, 3 * SEC);
        assert_int_equal(f.store.n_revisions, 0);
}

/* Each one ends in time, whichever of them began first. */
static void test_reads_with_different_times_end_one_after_the_other(void **state) {
        static const hf_nsec times[] = {3 * SEC, SEC, 2 * SEC};
        struct read reads[3];

        for (int i = 0; i < 3; i++) {
                reads[i] = (struct read){
                        .base = {.deadline = hand_clock_now() + 60 * SEC, .ready = on_ready}};
                hfd_consistent_read_after(f.cacher, &reads[i].base, f.revision + 1, times[i]);
        }
        expect_late(&reads[1], SEC);
        expect_late(&reads[2], SEC);
        expect_late(&reads[0], SEC);
}

/* ---- which reads share a request ---- */

/* A write may have come between a request and a later read, so its reply does not count for that.
 */
static void test_reads_that_begin_later_share_the_next_request(void **state) {
        struct read first, second, third;

        begin_held(&first, SEC);
        begin(&second, SEC);
        begin(&third, SEC);
        assert_int_equal(f.store.n_revisions, 1);
        f.store.hold = true;
        reply(0, f.revision);
        assert_true(is_over(&first));
        assert_false(is_over(&second) || is_over(&third));
        assert_int_equal(f.store.n_revisions, 2);
        reply(0, f.revision);
        assert_true(is_over(&second) && is_over(&third));
        assert_int_equal(f.store.n_revisions, 2);
}

static void test_a_failure_is_reported_with_the_stores_words(void **state) {
        struct read read;

        begin_held(&read, SEC);
        struct hfd_store_reply failed = {.error = HF_E_UNAVAILABLE};
        strcpy(failed.status.message, "no member answers");
        f.store.held(f.store.held_ctx, &failed);
        assert_true(is_over(&read));
        assert_int_equal(read.base.outcome, HF_E_UNAVAILABLE);
        assert_string_equal(read.base.status.message, "no member answers");
}

/* A request ends with the nearest deadline of its reads. The others have time for another one. */
static void test_a_request_that_timed_out_is_repeated_for_those_with_time_left(void **state) {
        struct read first, second;

        begin_held(&first, SEC);
        begin(&second, 2 * SEC);
        f.store.hold = true;
        reply(0, f.revision);
        assert_true(is_over(&first) && !is_over(&second));
        f.store.hold = true;
        reply(HF_E_TIMEOUT, 0);
        assert_false(is_over(&second));
        assert_int_equal(f.store.n_revisions, 3);
        hand_clock_move(2 * SEC);
        reply(HF_E_TIMEOUT, 0);
        assert_true(is_over(&second));
        assert_int_equal(second.base.outcome, HF_E_UNAVAILABLE);
        assert_int_equal(f.store.n_revisions, 3);
}

/* ---- a cache that is late again and again ---- */

static void test_after_three_late_reads_reads_go_to_the_store_for_ten_seconds(void **state) {
        for (int i = 0; i < 3; i++) {
                assert_false(goes_to_the_store());
                be_late();
        }
        assert_true(goes_to_the_store());
        move(10 * SEC - 1);
        assert_true(goes_to_the_store());
        move(1);
        assert_false(goes_to_the_store());
}

static void test_a_read_that_was_served_ends_a_row_of_late_ones(void **state) {
        for (int round = 0; round < 3; round++) {
                struct read read;

                be_late();
                be_late();
                begin_held(&read, 60 * SEC);
                reply(0, f.revision + 1);
                put();
                PATIENCE_AWAIT(is_over(&read));
                assert_int_equal(read.base.outcome, 0);
                assert_false(goes_to_the_store());
        }
}

static void test_reads_that_are_late_together_count_once(void **state) {
        struct read reads[4];

        begin_held(&reads[0], 60 * SEC);
        for (int i = 1; i < 4; i++)
                begin(&reads[i], 60 * SEC);
        f.store.hold = true;
        reply(0, f.revision + 1);
        reply(0, f.revision + 1);
        expect_late(&reads[0], 100 * MSEC);
        for (int i = 1; i < 4; i++)
                PATIENCE_AWAIT(is_over(&reads[i]));
        assert_false(goes_to_the_store());
}

/* A client may name a revision that the store never reaches. */
static void test_revisions_of_clients_say_nothing_about_the_cache(void **state) {
        for (int i = 0; i < 4; i++) {
                struct read read = {
                        .base = {.deadline = hand_clock_now() + 60 * SEC, .ready = on_ready}};
                hfd_consistent_read_after(f.cacher, &read.base, f.revision + 100, 50 * MSEC);
                expect_late(&read, 50 * MSEC);
                assert_false(goes_to_the_store());
        }
}

/* ---- what else a reply shows ---- */

/* A failed request does not show that the store is there. */
static void test_a_reply_shows_that_the_store_is_there(void **state) {
        hf_nsec last = hfd_cacher_last_store_contact(f.cacher);
        struct read read;

        assert_true(last > 0);
        begin_held(&read, 60 * SEC);
        hand_clock_move(2 * SEC); /* less than the time after which the cacher asks by itself */
        reply(HF_E_UNAVAILABLE, 0);
        assert_int_equal(hfd_cacher_last_store_contact(f.cacher), last);
        begin_held(&read, 60 * SEC);
        hand_clock_move(SEC);
        reply(HF_E_FORBIDDEN, 0);
        assert_int_equal(hfd_cacher_last_store_contact(f.cacher), last + 3 * SEC);
        begin_held(&read, 60 * SEC);
        hand_clock_move(SEC);
        reply(0, f.revision);
        assert_int_equal(hfd_cacher_last_store_contact(f.cacher), last + 4 * SEC);
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

static void test_the_time_of_a_request_is_measured_by_operation(void **state) {
        struct hf__strbuf text = {0};
        struct read read;

        begin_held(&read, 60 * SEC);
        hand_clock_move(3 * SEC);
        reply(0, f.revision);
        hf_metrics_write(f.host.metrics, add_text, &text);
        hf__strbuf_putc(&text, '\0');
        assert_non_null(strstr(text.data,
                               "etcd_request_duration_seconds_count{operation=\"revision\"} 1\n"));
        assert_non_null(
                strstr(text.data, "etcd_request_duration_seconds_sum{operation=\"revision\"} 3\n"));
        hf__strbuf_done(&text);
}

/* ---- the comparison with the store ---- */

static bool is_compared(void) {
        pthread_mutex_lock(&f.cacher->mu);
        bool is = f.cacher->audit->running;
        pthread_mutex_unlock(&f.cacher->mu);
        return is;
}

/* The comparison must begin by itself, again and again. */
static void test_the_cache_is_compared_with_the_store_at_intervals(void **state) {
        for (int i = 0; i < 3; i++) {
                int n = faulty_store_n_lists(&f.store);

                move(HFD_CACHE_AUDIT_INTERVAL - 1);
                assert_int_equal(faulty_store_n_lists(&f.store), n);
                move(1);
                PATIENCE_AWAIT(faulty_store_n_lists(&f.store) == n + 1);
                PATIENCE_AWAIT(!is_compared());
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
                TEST(test_a_cache_that_has_the_revision_serves_at_once),
                TEST(test_a_read_waits_until_the_cache_has_the_revision),
                TEST(test_a_read_waits_for_a_tenth_of_a_second),
                TEST(test_a_read_waits_no_longer_than_its_request_may),
                TEST(test_a_revision_of_the_client_is_waited_for_as_long_as_it_says),
                TEST(test_reads_with_different_times_end_one_after_the_other),
                TEST(test_reads_that_begin_later_share_the_next_request),
                TEST(test_a_failure_is_reported_with_the_stores_words),
                TEST(test_a_request_that_timed_out_is_repeated_for_those_with_time_left),
                TEST(test_after_three_late_reads_reads_go_to_the_store_for_ten_seconds),
                TEST(test_a_read_that_was_served_ends_a_row_of_late_ones),
                TEST(test_reads_that_are_late_together_count_once),
                TEST(test_revisions_of_clients_say_nothing_about_the_cache),
                TEST(test_a_reply_shows_that_the_store_is_there),
                TEST(test_the_time_of_a_request_is_measured_by_operation),
                TEST(test_the_cache_is_compared_with_the_store_at_intervals),
#undef TEST
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
