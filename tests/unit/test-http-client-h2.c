/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client engine over HTTP/2: shared connections, trailers, and broken connections. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>

#include "base/http/engine.h"
#include "base/http/http_tls.h"
#include "base/thread.h"
#include "h2_echo_server.h"
#include "time_units.h"

struct exchange {
        struct exchanges *exchanges;
        struct hf__http_result result; /* its pointers are invalid now, except text */
        char text[64];
        uint64_t id;
        bool done;
};

struct exchanges {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct h2_echo_server server;
        struct hf_host host;
        struct hf__http_engine *engine;
        struct hf__http_tls *tls;
        char url[64];
        struct exchange exchange[1000];
} f;

static int setup(void **state) {
        memset(&f, 0, sizeof f);
        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.cond), 0);
        h2_echo_server_start(&f.server);
        snprintf(f.url, sizeof f.url, "https://localhost:%d/x", f.server.base.port);
        const struct hf__http_tls_config config = {.ca_pem = f.server.identity.cert_pem};
        assert_int_equal(hf__http_tls_new(&config, &f.tls), 0);
        f.host = (struct hf_host){.size = sizeof f.host};
        return hf__http_engine_new(&f.host, "test-http", &f.engine);
}

static int teardown(void **state) {
        f.engine = hf__http_engine_free(f.engine);
        f.tls = hf__http_tls_unref(f.tls);
        h2_echo_server_stop(&f.server);
        pthread_mutex_destroy(&f.mu);
        pthread_cond_destroy(&f.cond);
        return 0;
}

static void on_done(void *ctx, const struct hf__http_result *result) {
        struct exchange *exchange = ctx;
        pthread_mutex_lock(&f.mu);
        assert_false(exchange->done);
        exchange->done = true;
        exchange->result = *result;
        snprintf(exchange->text, sizeof exchange->text, "%.*s", (int)result->n_body,
                 (const char *)result->body);
        pthread_cond_broadcast(&f.cond);
        pthread_mutex_unlock(&f.mu);
}

static int on_data(void *ctx, const void *data, size_t n) {
        struct exchange *exchange = ctx;
        pthread_mutex_lock(&f.mu);
        snprintf(exchange->text, sizeof exchange->text, "%.*s", (int)n, (const char *)data);
        pthread_cond_broadcast(&f.cond);
        pthread_mutex_unlock(&f.mu);
        return 0;
}

static struct exchange *start(int i, const char *body, int64_t deadline_ms) {
        static const char *const headers[] = {"content-type: application/json", "te: trailers"};
        f.exchange[i] = (struct exchange){.exchanges = &f};
        struct hf__http_request request = {.method = "POST",
                                           .url = f.url,
                                           .headers = headers,
                                           .n_headers = 2,
                                           .body = body,
                                           .n_body = strlen(body),
                                           .version = HF__HTTP_ANY,
                                           .tls = f.tls,
                                           .deadline = deadline_ms ? in_msec(deadline_ms)
                                                                   : HF_NSEC_NEVER,
                                           .on_data = body[0] == 's' ? on_data : NULL,
                                           .on_done = on_done,
                                           .ctx = &f.exchange[i]};
        assert_int_equal(hf__http_submit(f.engine, &request, &f.exchange[i].id), 0);
        return &f.exchange[i];
}

static bool is_done(const struct exchange *exchange) {
        pthread_mutex_lock(&f.mu);
        bool done = exchange->done;
        pthread_mutex_unlock(&f.mu);
        return done;
}

static struct exchange *finish(struct exchange *exchange) {
        pthread_mutex_lock(&f.mu);
        while (!exchange->done)
                assert_int_equal(hf_clock_system()->wait(NULL, &f.cond, &f.mu, in_msec(60000)), 0);
        pthread_mutex_unlock(&f.mu);
        return exchange;
}

static void wait_text(struct exchange *exchange, const char *expected) {
        pthread_mutex_lock(&f.mu);
        while (strcmp(exchange->text, expected) != 0)
                assert_int_equal(hf_clock_system()->wait(NULL, &f.cond, &f.mu, in_msec(60000)), 0);
        pthread_mutex_unlock(&f.mu);
}

static void assert_echoes(int i) {
        struct exchange *exchange = finish(start(i, "echo", 30000));
        assert_int_equal(exchange->result.outcome, 0);
        assert_int_equal(exchange->result.code, 200);
        assert_string_equal(exchange->text, "echo");
}

static int n_connections(void) { return atomic_load(&f.server.base.n_connections); }

/* The limit of base/http/lane.c: four connections, and one more for each 64 requests. */
static void test_1000_requests_share_connections(void **state) {
        char body[16];

        for (int i = 0; i < 1000; i++) {
                snprintf(body, sizeof body, "e%d", i);
                start(i, body, 60000);
        }
        for (int i = 0; i < 1000; i++) {
                finish(&f.exchange[i]);
                snprintf(body, sizeof body, "e%d", i);
                assert_int_equal(f.exchange[i].result.outcome, 0);
                assert_string_equal(f.exchange[i].text, body);
        }
        assert_in_range(n_connections(), 1, 4 + 1000 / 64);
}

static void test_trailers_do_not_disturb_the_response(void **state) {
        struct exchange *exchange = finish(start(0, "trailers", 30000));
        assert_int_equal(exchange->result.outcome, 0);
        assert_string_equal(exchange->text, "trailers");
        exchange = finish(start(1, "only", 30000));
        assert_int_equal(exchange->result.outcome, 0);
        assert_int_equal(exchange->result.n_body, 0);
        assert_echoes(2);
}

/*
 * The end of a response is read from the socket together with its middle. The engine must not wait
 * for more data.
 */
static void test_large_responses_arrive_whole(void **state) {
        char body[16];

        for (size_t n = 4000; n <= 200000; n += 4000) {
                snprintf(body, sizeof body, "l%zu", n);
                struct exchange *exchange = finish(start(0, body, 10000));
                assert_int_equal(exchange->result.outcome, 0);
                assert_int_equal(exchange->result.n_body, n);
        }
}

/* The same with several at once: the end of one is read together with another. */
static void test_concurrent_large_responses_arrive_whole(void **state) {
        char body[16];

        for (int i = 0; i < 100; i++) {
                snprintf(body, sizeof body, "l%d", 1000 * i);
                start(i, body, 20000);
        }
        for (int i = 0; i < 100; i++) {
                finish(&f.exchange[i]);
                assert_int_equal(f.exchange[i].result.outcome, 0);
                assert_int_equal(f.exchange[i].result.n_body, 1000 * i);
        }
}

static void test_a_stream_does_not_block_other_requests(void **state) {
        struct exchange *stream = start(0, "stream", 0);

        wait_text(stream, "stream");
        for (int i = 1; i < 50; i++)
                assert_echoes(i);
        assert_int_equal(n_connections(), 1);
        hf__http_cancel(f.engine, stream->id);
        assert_int_equal(finish(stream)->result.outcome, HF_E_CANCELED);
        assert_echoes(1);
        assert_int_equal(n_connections(), 1);
}

static void test_a_silent_connection_is_not_used_again(void **state) {
        assert_echoes(0);
        struct exchange *stream = start(1, "stream", 0);
        wait_text(stream, "stream");
        assert_int_equal(finish(start(2, "dead", 2000))->result.outcome, HF_E_TIMEOUT);
        assert_echoes(3);
        assert_echoes(4);
        assert_int_equal(n_connections(), 2);
        assert_false(stream->done); /* it has not timed out yet */
        hf__http_cancel(f.engine, stream->id);
        assert_int_equal(finish(stream)->result.outcome, HF_E_CANCELED);
        for (int i = 5; i < 15; i++)
                assert_echoes(i);
        assert_int_equal(n_connections(), 2);
}

static void test_a_slow_request_keeps_its_connection(void **state) {
        struct exchange *slow = start(0, "never", 3000);

        for (int i = 1; !is_done(slow) && i < 20; i++)
                assert_echoes(i);
        assert_int_equal(finish(slow)->result.outcome, HF_E_TIMEOUT);
        assert_echoes(999);
        assert_int_equal(n_connections(), 1);
}

static void test_broken_connections_are_replaced(void **state) {
        assert_int_equal(finish(start(0, "cut", 30000))->result.outcome, HF_E_TIMEOUT);
        assert_echoes(1);
        /* on a kept connection */
        assert_int_equal(finish(start(2, "cut", 30000))->result.outcome, HF_E_TIMEOUT);
        assert_echoes(3);
        assert_int_equal(finish(start(4, "reset", 30000))->result.outcome, HF_E_TIMEOUT);
        assert_echoes(5);
}

/*
 * A server that shuts down sends GOAWAY: open streams go on, later requests use a new connection.
 */
static void test_a_goaway_lets_open_streams_finish(void **state) {
        struct exchange *stream = start(0, "stream", 0);

        wait_text(stream, "stream");
        struct exchange *last = finish(start(1, "goodbye", 30000));
        assert_int_equal(last->result.outcome, 0);
        assert_string_equal(last->text, "goodbye");
        assert_echoes(2);
        for (int i = 3; i < 30; i++)
                assert_echoes(i);
        assert_false(stream->done);
        hf__http_cancel(f.engine, stream->id);
        assert_int_equal(finish(stream)->result.outcome, HF_E_CANCELED);
        assert_echoes(30);
        assert_int_equal(n_connections(), 2);
}

/*
 * The server ignores requests that arrive after its GOAWAY. Each request ends once, and none of
 * these counts as successful.
 */
static void test_requests_that_cross_a_goaway_succeed_or_time_out(void **state) {
        assert_echoes(0);
        start(1, "goodbye", 30000);
        for (int i = 2; i < 30; i++)
                start(i, "echo", 2000);
        int n_done = 0;
        for (int i = 1; i < 30; i++) {
                finish(&f.exchange[i]);
                int outcome = f.exchange[i].result.outcome;
                assert_true(outcome == 0 || outcome == HF_E_TIMEOUT);
                n_done += outcome == 0;
                if (outcome == 0)
                        assert_string_equal(f.exchange[i].text, i == 1 ? "goodbye" : "echo");
        }
        print_message("%d of 29 done\n", n_done);
        assert_echoes(30);
}

static void test_freeing_the_engine_cancels_open_streams(void **state) {
        for (int i = 0; i < 20; i++)
                start(i, i % 2 ? "stream" : "never", 0);
        assert_echoes(20);
        f.engine = hf__http_engine_free(f.engine);
        for (int i = 0; i < 20; i++) {
                assert_true(f.exchange[i].done);
                assert_int_equal(f.exchange[i].result.outcome, HF_E_CANCELED);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_1000_requests_share_connections),
                TEST(test_trailers_do_not_disturb_the_response),
                TEST(test_large_responses_arrive_whole),
                TEST(test_concurrent_large_responses_arrive_whole),
                TEST(test_a_stream_does_not_block_other_requests),
                TEST(test_a_silent_connection_is_not_used_again),
                TEST(test_a_slow_request_keeps_its_connection),
                TEST(test_broken_connections_are_replaced),
                TEST(test_a_goaway_lets_open_streams_finish),
                TEST(test_requests_that_cross_a_goaway_succeed_or_time_out),
                TEST(test_freeing_the_engine_cancels_open_streams),
        };
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
