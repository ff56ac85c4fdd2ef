/* SPDX-License-Identifier: Apache-2.0 */
/* When a candidate of a coordinated election writes its object, under a clock that the test
 * moves. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_api_client.h"
#include "hand_clock.h"
#include "patience.h"

#include <holdfast/candidate.h>

#define KEY     "leasecandidates/kube-system/me"
#define REFRESH (300 * SEC) /* the default */

static struct {
        struct hf_host host;
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_candidate *candidate;
        pthread_mutex_t mu;
        char log[8192]; /* guarded by mu */
} f = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        pthread_mutex_lock(&f.mu);
        size_t n = strlen(f.log);
        (void)snprintf(f.log + n, sizeof f.log - n, "%d %s\n", (int)level, message);
        pthread_mutex_unlock(&f.mu);
}

/* Forwards all but the first n_refused writes. */
static atomic_uint n_refused, n_writes;

static int forward_request(struct hf_client *self, const struct hf_request *request,
                           hf_response_fn done, void *ctx, uint64_t *ret_id) {
        if (request->verb == HF_VERB_GET || atomic_fetch_add(&n_writes, 1) >= n_refused)
                return hf_client_request(&f.client->base, request, done, ctx, ret_id);
        struct hf_response refused = {.size = sizeof refused, .error = HF_E_FORBIDDEN};
        (void)hf_fail(&refused.status, HF_E_FORBIDDEN, "refused by the test");
        done(ctx, &refused);
        return 0;
}
static void forward_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(&f.client->base, id);
}
static int forward_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                         hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                         uint64_t *ret_id) {
        return hf_client_watch(&f.client->base, spec, on_event, on_end, ctx, ret_id);
}
static void forward_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&f.client->base, id);
}

static const struct hf_client_ops forward_ops = {.size = sizeof forward_ops,
                                                 .request = forward_request,
                                                 .cancel = forward_cancel,
                                                 .watch = forward_watch,
                                                 .watch_cancel = forward_watch_cancel};
static struct hf_client forward = {.ops = &forward_ops, .host = &f.host};

static void start(void) {
        atomic_store(&n_refused, 0);
        atomic_store(&n_writes, 0);
        f.log[0] = '\0';
        hand_clock_reset();
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
        f.host = (struct hf_host){.size = sizeof f.host,
                                  .clock = &hand_clock,
                                  .log = {.write = on_log, .max_level = HF_LOG_DEBUG}};
        const struct hf_candidate_config config = {.size = sizeof config,
                                                   .client = &forward,
                                                   .ns = "kube-system",
                                                   .name = "me",
                                                   .lease_name = "lead",
                                                   .binary_version = "1.3.0"};
        assert_int_equal(hf_candidate_new(&f.host, &config, &f.candidate, NULL), 0);
}

static void finish(void) {
        hf_candidate_free(f.candidate);
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

static unsigned n_requests(void) { return fake_api_n_requests(f.api); }

/* Moves the clock to a time at which nothing may happen yet, and then to one at which it must. */
static void expect_requests(hf_nsec not_yet, hf_nsec now, unsigned n) {
        unsigned from = n_requests();

        /* The last reply may not have been handled yet. */
        hand_clock_await_deadline(not_yet + 1, now);
        hand_clock_move(not_yet);
        hand_clock_await_waiter();
        assert_int_equal(n_requests(), from);
        hand_clock_move(now - not_yet);
        PATIENCE_AWAIT(n_requests() == from + n);
        hand_clock_await_waiter();
        assert_int_equal(n_requests(), from + n);
}

/* A read and a write each time. */
static void test_the_object_is_renewed_within_a_fifth_of_the_refresh_time(void **state) {
        start();
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(n_requests() == 2);
        hand_clock_await_waiter();
        for (int i = 0; i < 5; i++)
                expect_requests(REFRESH - 1, REFRESH + REFRESH / 5, 2);
        finish();
}

/* Candidates that were started together must not renew together for ever: the times are spread over
 * a fifth of the refresh time, which is a minute. */
static void test_the_times_between_renewals_differ(void **state) {
        unsigned seconds[4], longest = 0;

        start();
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(n_requests() == 2);
        hand_clock_await_waiter();
        for (unsigned i = 0; i < 4; i++) {
                unsigned from = n_requests();
                hand_clock_move(REFRESH - 1);
                for (seconds[i] = 0; n_requests() == from; seconds[i]++) {
                        assert_true(seconds[i] <= 60);
                        hand_clock_move(SEC);
                        hand_clock_await_waiter();
                }
                PATIENCE_AWAIT(n_requests() == from + 2);
                hand_clock_await_waiter();
        }
        for (unsigned i = 0; i < 4; i++)
                longest = seconds[i] > longest ? seconds[i] : longest;
        assert_false(seconds[0] == seconds[1] && seconds[1] == seconds[2] &&
                     seconds[2] == seconds[3]);
        /* By chance once in 160,000 runs. */
        assert_true(longest > 3);
        finish();
}

static void test_the_pause_after_a_failure_doubles(void **state) {
        hf_nsec pause = 500 * MSEC;

        start();
        fake_api_client_refuse(f.client, HF_E_FORBIDDEN, 0);
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(n_requests() == 1);
        hand_clock_await_waiter();
        for (int i = 0; i < 9; i++) {
                expect_requests(pause - 1, pause + pause / 5, 1);
                pause = 2 * pause < 30 * SEC ? 2 * pause : 30 * SEC;
        }
        assert_non_null(strstr(f.log, "4 kube-system/me: the fake API server: forbidden\n"));
        assert_non_null(strstr(f.log, "7 kube-system/me: the fake API server: forbidden\n"));
        fake_api_client_set_mode(f.client, FAKE_API_RESPONDS);
        expect_requests(30 * SEC - 1, 36 * SEC, 2);
        /* After a success the first pause is short again, and its failure is a warning. */
        f.log[0] = '\0';
        fake_api_client_refuse(f.client, HF_E_FORBIDDEN, 0);
        expect_requests(REFRESH - 1, REFRESH + REFRESH / 5, 1);
        assert_non_null(strstr(f.log, "4 kube-system/me: "));
        expect_requests(500 * MSEC - 1, 600 * MSEC, 1);
        finish();
}

static bool has_logged(const char *text) {
        pthread_mutex_lock(&f.mu);
        bool has = strstr(f.log, text) != NULL;
        pthread_mutex_unlock(&f.mu);
        return has;
}

static void test_a_write_that_is_refused_is_tried_again(void **state) {
        start();
        atomic_store(&n_refused, 1);
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(has_logged("4 kube-system/me: refused by the test\n"));
        hand_clock_await_waiter();
        assert_int_equal(n_requests(), 1); /* the read */
        expect_requests(500 * MSEC - 1, 600 * MSEC, 2);
        finish();
}

static bool is_renewed_at(const char *time) {
        char *text = fake_api_get(f.api, KEY);
        bool is = text && strstr(text, "\"renewTime\":\"") &&
                  strncmp(strstr(text, "\"renewTime\":\"") + 13, time, strlen(time)) == 0;

        free(text);
        return is;
}

/* No time passes in the test: the watch delivers the ping. */
static void test_a_ping_is_answered_at_once_and_once(void **state) {
        start();
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(is_renewed_at(HAND_CLOCK_REAL_Z));
        fake_api_await_watch(f.api, 1);
        /* The coordinator's clock is ahead. The response is later than its ping all the same. */
        fake_api_put(f.api, KEY,
                     "{\"metadata\":{\"name\":\"me\"},\"spec\":{\"leaseName\":\"lead\","
                     "\"pingTime\":\"2026-01-01T00:00:09.000000Z\","
                     "\"renewTime\":\"2026-01-01T00:00:00.000000Z\"}}");
        PATIENCE_AWAIT(is_renewed_at("2026-01-01T00:00:09.000001Z"));
        hand_clock_await_waiter();
        assert_int_equal(n_requests(), 4);
        /* A ping is answered once, however often the watch shows it. */
        fake_api_put(f.api, KEY,
                     "{\"metadata\":{\"name\":\"me\"},\"spec\":{\"leaseName\":\"lead\","
                     "\"pingTime\":\"2026-01-01T00:00:09.000000Z\","
                     "\"renewTime\":\"2026-01-01T00:00:09.000000Z\"}}");
        fake_api_send_bookmarks(f.api);
        hand_clock_await_waiter();
        assert_int_equal(n_requests(), 4);
        fake_api_delete(f.api, KEY);
        PATIENCE_AWAIT(is_renewed_at(HAND_CLOCK_REAL_Z));
        finish();
}

/* A member that is not an object is replaced. */
static void test_an_object_without_metadata_or_spec_is_completed(void **state) {
        start();
        fake_api_put(f.api, KEY, "{\"spec\":7}");
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        PATIENCE_AWAIT(is_renewed_at(HAND_CLOCK_REAL_Z));
        char *text = fake_api_get(f.api, KEY);
        assert_non_null(strstr(text, "\"binaryVersion\":\"1.3.0\""));
        assert_non_null(strstr(text, "\"emulationVersion\":\"1.3.0\""));
        assert_non_null(strstr(text, "\"strategy\":\"OldestEmulationVersion\""));
        free(text);
        finish();
}

static void test_a_lost_watch_is_opened_again_a_second_later(void **state) {
        start();
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        fake_api_await_watch(f.api, 1);
        PATIENCE_AWAIT(n_requests() == 2);
        hand_clock_await_waiter();
        for (unsigned i = 1; i < 4; i++) {
                fake_api_end_watches(f.api, HF_E_GONE, NULL);
                PATIENCE_AWAIT(fake_api_n_open(f.api) == 0);
                hand_clock_await_waiter();
                hand_clock_move(SEC - 1);
                hand_clock_await_waiter();
                assert_int_equal(fake_api_n_watches(f.api), i);
                hand_clock_move(1);
                PATIENCE_AWAIT(fake_api_n_watches(f.api) == i + 1);
                hand_clock_await_waiter();
                assert_int_equal(fake_api_n_watches(f.api), i + 1);
        }
        assert_int_equal(n_requests(), 2); /* the watch renews nothing */
        finish();
}

static void test_a_stop_ends_a_request_and_the_watch(void **state) {
        start();
        assert_int_equal(hf_candidate_start(f.candidate), 0);
        assert_int_equal(hf_candidate_start(f.candidate), HF_E_CLOSED);
        fake_api_await_watch(f.api, 1);
        PATIENCE_AWAIT(n_requests() == 2);
        hand_clock_await_waiter();
        fake_api_client_hold_requests(f.client, true);
        hand_clock_move(REFRESH + REFRESH / 5);
        PATIENCE_AWAIT(n_requests() == 3);
        hf_candidate_stop(f.candidate);
        PATIENCE_AWAIT(fake_api_n_open(f.api) == 0);
        assert_int_equal(hf_candidate_start(f.candidate), HF_E_CLOSED);
        assert_string_equal(f.log, "");
        finish();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_object_is_renewed_within_a_fifth_of_the_refresh_time),
                cmocka_unit_test(test_the_times_between_renewals_differ),
                cmocka_unit_test(test_the_pause_after_a_failure_doubles),
                cmocka_unit_test(test_a_write_that_is_refused_is_tried_again),
                cmocka_unit_test(test_a_ping_is_answered_at_once_and_once),
                cmocka_unit_test(test_an_object_without_metadata_or_spec_is_completed),
                cmocka_unit_test(test_a_lost_watch_is_opened_again_a_second_later),
                cmocka_unit_test(test_a_stop_ends_a_request_and_the_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
