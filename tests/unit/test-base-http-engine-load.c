/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine under load: racing cancellations, bursts, scheduled calls, and freeing it with all of
 * these under way.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "base/thread.h"
#include "http_engine_fixture.h"
#include "time_units.h"

static struct http_engine_fixture f;

static int setup(void **state) {
        http_engine_fixture_start(&f);
        return 0;
}

static int teardown(void **state) {
        http_engine_fixture_stop(&f);
        return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

struct tally {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int left, n[_HF_E_MAX];
};

static void on_tally(void *ctx, const struct hf__http_result *result) {
        struct tally *t = ctx;
        pthread_mutex_lock(&t->mu);
        assert(result->outcome >= 0);
        t->n[result->outcome]++;
        if (--t->left == 0)
                pthread_cond_broadcast(&t->cond);
        pthread_mutex_unlock(&t->mu);
}

static void tally_init(struct tally *t, int n) {
        *t = (struct tally){.left = n};
        assert_int_equal(hf__mutex_cond_init(&t->mu, &t->cond), 0);
}

static void tally_wait(struct tally *t) {
        pthread_mutex_lock(&t->mu);
        while (t->left)
                assert_int_equal(hf_clock_system()->wait(NULL, &t->cond, &t->mu, in_msec(60000)),
                                 0);
        pthread_mutex_unlock(&t->mu);
}

/*
 * Several threads send requests and cancel them at once. Each request ends exactly once, with a
 * response or as canceled.
 */
static void *submit_and_cancel(void *ctx) {
        for (int i = 0; i < 50; i++) {
                char url[128];
                uint64_t id;
                snprintf(url, sizeof url, "%s/ok", f.url);
                struct hf__http_request request = {.method = "GET",
                                                   .url = url,
                                                   .deadline = in_msec(30000),
                                                   .on_done = on_tally,
                                                   .ctx = ctx};
                assert(hf__http_submit(f.engine, &request, &id) == 0);
                hf__http_cancel(f.engine, id - (uint64_t)(i % 3));
                hf__http_cancel(f.engine, id);
        }
        return NULL;
}

static void test_requests_canceled_at_any_moment_end_once(void **state) {
        pthread_t thread[3];
        struct tally t;

        tally_init(&t, 150);
        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, submit_and_cancel, &t), 0);
        for (int i = 0; i < 3; i++)
                pthread_join(thread[i], NULL);
        tally_wait(&t);
        assert_int_equal(t.n[0] + t.n[HF_E_CANCELED], 150);
        assert_true(t.n[HF_E_CANCELED] > 0);
}

static void test_free_with_requests_under_way(void **state) {
        struct tally t;
        static const char *const paths[] = {"/never", "/stream", "/ok"};

        for (int round = 0; round < 10; round++) {
                tally_init(&t, 30);
                for (int i = 0; i < 30; i++) {
                        char url[128];
                        snprintf(url, sizeof url, "%s%s", f.url, paths[i % 3]);
                        struct hf__http_request request = {.method = "GET",
                                                           .url = url,
                                                           .lane = (unsigned)i % 4,
                                                           .deadline = in_msec(30000),
                                                           .on_done = on_tally,
                                                           .ctx = &t};
                        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                }
                f.engine = hf__http_engine_free(f.engine);
                assert_int_equal(t.left, 0);
                assert_int_equal(t.n[0] + t.n[HF_E_CANCELED], 30);
                assert_true(t.n[HF_E_CANCELED] >= 20);
                assert_int_equal(hf__http_engine_new(&f.host, "test-http", &f.engine), 0);
        }
}

static void test_a_thousand_requests_at_once_succeed(void **state) {
        struct tally t;

        tally_init(&t, 1000);
        for (int i = 0; i < 1000; i++) {
                char url[128];
                snprintf(url, sizeof url, "%s/ok", f.url);
                /* Requests come in waves, because the server has a thread per connection. */
                struct hf__http_request request = {.method = "GET",
                                                   .url = url,
                                                   .deadline = in_msec(60000),
                                                   .on_done = on_tally,
                                                   .ctx = &t};
                assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                if (i % 100 == 99) {
                        pthread_mutex_lock(&t.mu);
                        while (t.left > 999 - i)
                                assert_int_equal(hf_clock_system()->wait(NULL, &t.cond, &t.mu,
                                                                         in_msec(1)) &
                                                         ~HF_E_TIMEOUT,
                                                 0);
                        pthread_mutex_unlock(&t.mu);
                }
        }
        tally_wait(&t);
        assert_int_equal(t.n[0], 1000);
}

struct ring {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int order[4], n;
        struct ring_call {
                struct ring *ring;
                int number;
        } calls[4];
};

static void on_ring(void *ctx) {
        struct ring_call *call = ctx;
        pthread_mutex_lock(&call->ring->mu);
        call->ring->order[call->ring->n++] = call->number;
        pthread_cond_broadcast(&call->ring->cond);
        pthread_mutex_unlock(&call->ring->mu);
}

static void test_scheduled_calls_come_in_time_order(void **state) {
        static const int64_t ms[] = {20, 0, 10, 3600000};
        struct ring ring = {0};
        hf_nsec start = in_msec(0);

        assert_int_equal(hf__mutex_cond_init(&ring.mu, &ring.cond), 0);
        for (int i = 0; i < 4; i++) {
                ring.calls[i] = (struct ring_call){&ring, i};
                assert_int_equal(hf__http_schedule(f.engine, start + ms[i] * HF_NSEC_PER_MSEC,
                                                   on_ring, &ring.calls[i]),
                                 0);
        }
        pthread_mutex_lock(&ring.mu);
        while (ring.n < 3)
                assert_int_equal(hf_clock_system()->wait(NULL, &ring.cond, &ring.mu,
                                                         in_msec(60000)),
                                 0);
        assert_true(in_msec(0) >= start + 20 * HF_NSEC_PER_MSEC);
        pthread_mutex_unlock(&ring.mu);
        assert_int_equal(ring.order[0], 1);
        assert_int_equal(ring.order[1], 2);
        assert_int_equal(ring.order[2], 0);
        f.engine = hf__http_engine_free(f.engine); /* runs the call that is due in an hour */
        assert_int_equal(ring.n, 4);
        assert_int_equal(ring.order[3], 3);
}

static struct hf__http_engine *submit_engine;
static void never_called(void *ctx) { fail(); }
static int submit_again_result, call_again_result;
static void on_done_submit_again(void *ctx, const struct hf__http_result *result) {
        struct hf__http_request request = {.method = "GET",
                                           .url = "http://127.0.0.1:1/",
                                           .deadline = in_msec(1000),
                                           .on_done = on_done_submit_again};
        submit_again_result = hf__http_submit(submit_engine, &request, NULL);
        call_again_result = hf__http_schedule(submit_engine, 0, never_called, NULL);
}

static void test_submission_during_the_stop_is_refused(void **state) {
        char url[128];
        struct http_engine_response a;

        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/never", url, sizeof url);
        request.on_done = on_done_submit_again;
        submit_engine = f.engine;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        f.engine = hf__http_engine_free(f.engine);
        assert_int_equal(submit_again_result, HF_E_CLOSED);
        assert_int_equal(call_again_result, HF_E_CLOSED);
        http_engine_response_deinit(&a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_requests_canceled_at_any_moment_end_once),
                TEST(test_free_with_requests_under_way),
                TEST(test_a_thousand_requests_at_once_succeed),
                TEST(test_scheduled_calls_come_in_time_order),
                TEST(test_submission_during_the_stop_is_refused),
        };
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
