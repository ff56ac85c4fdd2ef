/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against a server in this process: one request at a time. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include "base/http/engine_private.h"
#include "base/strbuf.h"
#include "http_engine_fixture.h"
#include "time_units.h"

static struct http_engine_fixture f;

/* The engine's last sleep: the timeout of its last epoll_wait. */
static struct {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int limit_ms;
} sleep_of_engine = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int limit_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int limit_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int limit_ms) {
        pthread_mutex_lock(&sleep_of_engine.mu);
        sleep_of_engine.limit_ms = limit_ms;
        pthread_cond_broadcast(&sleep_of_engine.cond);
        pthread_mutex_unlock(&sleep_of_engine.mu);
        return __real_epoll_wait(fd, events, n, limit_ms);
}

static int setup(void **state) {
        http_engine_fixture_start(&f);
        return 0;
}

static int teardown(void **state) {
        http_engine_fixture_stop(&f);
        return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void test_gets_share_a_kept_connection(void **state) {
        struct http_engine_response a;
        for (int i = 0; i < 20; i++) {
                http_engine_fixture_get(&f, &a, "/ok");
                assert_int_equal(a.outcome, 0);
                assert_int_equal(a.code, 200);
                assert_string_equal(a.body, "hello");
                assert_string_equal(a.fence, "(none)");
        }
        assert_int_equal(atomic_load(&f.server.base.n_connections), 1);
}

static void assert_sleeps_without_limit(void) {
        pthread_mutex_lock(&sleep_of_engine.mu);
        while (sleep_of_engine.limit_ms == 0) /* the engine still has work that is due at once */
                pthread_cond_wait(&sleep_of_engine.cond, &sleep_of_engine.mu);
        int limit_ms = sleep_of_engine.limit_ms;
        pthread_mutex_unlock(&sleep_of_engine.mu);
        assert_int_equal(limit_ms, -1);
}

static void test_an_engine_sleeps_until_something_happens(void **state) {
        struct http_engine_response a;
        char url[128];

        http_engine_fixture_get(&f, &a, "/ok");
        assert_sleeps_without_limit();
        /* it also sleeps while a request waits: a timer has the deadline */
        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/never", url, sizeof url);
        request.deadline = in_msec(200);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        http_engine_response_deinit(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_sleeps_without_limit();
}

static void test_post_sends_body_and_headers(void **state) {
        struct http_engine_response a;
        char url[128], big[100000];
        const char *headers[] = {"X-One: 1", "Content-Type: application/json"};

        memset(big, 'x', sizeof big);
        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/echo", url, sizeof url);
        request.method = "PUT";
        request.body = big;
        request.n_body = sizeof big;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        memset(big, 'y', sizeof big); /* the engine has copied it */
        http_engine_response_wait(&a);
        http_engine_response_deinit(&a);
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.n_body, sizeof big);
        assert_int_equal(a.body[0], 'x');

        http_engine_response_init(&a);
        request = http_engine_fixture_request(&f, &a, "/head", url, sizeof url);
        request.method = "PATCH";
        request.headers = headers;
        request.n_headers = 2;
        request.body = "{}";
        request.n_body = 2;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        http_engine_response_deinit(&a);
        assert_memory_equal(a.body, "PATCH /head HTTP/1.1", 20);
        assert_non_null(strstr(a.body, "X-One: 1"));
        assert_non_null(strstr(a.body, "Content-Type: application/json"));
        assert_null(strcasestr(a.body, "expect"));
        assert_null(strcasestr(a.body, "urlencoded"));
}

/* Whether the body of the response finds no memory. */
static atomic_bool lacks_memory;

void __real_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void __wrap_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void __wrap_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n) {
        if (atomic_load(&lacks_memory) && n == 5 && memcmp(data, "hello", n) == 0)
                s->error = -ENOMEM;
        else
                __real_hf__strbuf_add(s, data, n);
}

/* A caller must not take this process's lack of memory for a failure of the server. */
static void test_a_body_that_finds_no_memory_is_no_failure_of_the_server(void **state) {
        struct http_engine_response a;

        atomic_store(&lacks_memory, true);
        http_engine_fixture_get(&f, &a, "/ok");
        atomic_store(&lacks_memory, false);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(a.no_memory);
        http_engine_fixture_get(&f, &a, "/ok");
        assert_int_equal(a.outcome, 0);
        assert_false(a.no_memory);
}

static void test_headers_are_parsed(void **state) {
        struct http_engine_response a;
        http_engine_fixture_get(&f, &a, "/busy");
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.code, 429);
        assert_int_equal(a.retry_after_s, 7);
        assert_string_equal(a.fence, "ns/x;5;me");
        http_engine_fixture_get(&f, &a, "/early");
        assert_int_equal(a.code, 201);
        assert_int_equal(a.retry_after_s,
                         0); /* the 103 has the header, the final response does not */
        http_engine_fixture_get(&f, &a, "/trailers");
        assert_string_equal(a.body, "onetwo");
}

static void test_each_failure_has_its_outcome(void **state) {
        struct http_engine_response a;
        char url[128], good[64];

        http_engine_fixture_get(&f, &a, "/cut");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(a.error_text[0]);
        http_engine_fixture_get(&f, &a, "/cut-body");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(a.n_body, 0);

        struct http1_server closed; /* its port, on which nothing listens any more */
        http1_server_start(&closed);
        http1_server_stop(&closed);
        memcpy(good, f.url, sizeof good);
        snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", closed.base.port);
        http_engine_fixture_get(&f, &a, "/ok");
        memcpy(f.url, good, sizeof good);
        assert_int_equal(a.outcome, HF_E_UNAVAILABLE);
        assert_int_equal(a.code, 0);

        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/big", url, sizeof url);
        request.max_body = 1000;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_TOO_LARGE);
        http_engine_response_deinit(&a);

        http_engine_response_init(&a);
        request = http_engine_fixture_request(&f, &a, "", url, sizeof url);
        request.url = "gopher://127.0.0.1/";
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_INVALID);
        http_engine_response_deinit(&a);
        request.on_done = NULL;
        assert_true(hf__http_submit(f.engine, &request, NULL) < 0);
}

static void test_deadlines_end_requests(void **state) {
        struct http_engine_response a;
        char url[128];

        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/never", url, sizeof url);
        request.deadline = in_msec(20);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(in_msec(0) >= request.deadline);
        /* On a busy machine the deadline may pass before the request is sent. The message is then
         * longer. */
        static const char passed[] = "the deadline passed";
        assert_memory_equal(a.error_text, passed, sizeof passed - 1);
        http_engine_response_deinit(&a);

        http_engine_response_init(&a);
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 20 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_string_equal(a.error_text, "the response header did not arrive in time");
        http_engine_response_deinit(&a);

        http_engine_response_init(&a);
        request.deadline = in_msec(0) - 1; /* passed before the request is submitted */
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        http_engine_response_deinit(&a);
        http_engine_fixture_get(&f, &a, "/ok");
        assert_int_equal(a.outcome, 0);
}

static void test_stream_outlives_its_head_timeout_and_is_canceled(void **state) {
        struct http_engine_response a, timer;
        char url[128];
        uint64_t id = 0;

        http_engine_response_init(&a);
        http_engine_response_init(&timer);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/stream", url, sizeof url);
        request.on_head = http_engine_response_on_head;
        request.on_data = http_engine_response_on_data;
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 2000 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        assert_true(id != 0);
        http_engine_response_wait_data(&a, "onetwo");
        assert_int_equal(a.head_code, 200);
        assert_int_equal(a.n_done, 0);
        hf__http_cancel(f.engine, id);
        hf__http_cancel(f.engine, id);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        assert_int_equal(a.code, 200);
        hf__http_cancel(f.engine, id); /* the request has ended already */
        hf__http_cancel(f.engine, 999999);

        http_engine_response_deinit(&a);
        http_engine_response_init(&a);
        a.stop_at_data = 1; /* the callback stops the request */
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        http_engine_response_deinit(&a);
        http_engine_response_deinit(&timer);
}

/*
 * The server has received the request on a kept connection and closed it: curl must not send it
 * again by itself.
 */
static void test_post_is_never_sent_twice(void **state) {
        struct http_engine_response a;
        char url[128];

        http_engine_fixture_get(&f, &a, "/ok");
        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/cut-second", url, sizeof url);
        request.method = "POST";
        request.body = "x";
        request.n_body = 1;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        http_engine_response_deinit(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(atomic_load(&f.server.n_cut), 1);
}

static void test_lanes_do_not_share_connections(void **state) {
        struct http_engine_response a;
        char url[128];

        for (int round = 0; round < 2; round++)
                for (unsigned lane = 0; lane < HF__HTTP_N_LANES; lane++) {
                        http_engine_response_init(&a);
                        struct hf__http_request request =
                                http_engine_fixture_request(&f, &a, "/ok", url, sizeof url);
                        request.lane = lane;
                        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                        http_engine_response_wait(&a);
                        assert_int_equal(a.outcome, 0);
                        http_engine_response_deinit(&a);
                }
        assert_int_equal(atomic_load(&f.server.base.n_connections), HF__HTTP_N_LANES);
}

static void post(struct http_engine_response *a, const char *path, const char *header,
                 const char *body) {
        char url[128];

        http_engine_response_init(a);
        struct hf__http_request request = http_engine_fixture_request(&f, a, path, url, sizeof url);
        request.method = "POST";
        request.headers = &header;
        request.n_headers = header ? 1 : 0;
        request.body = body;
        request.n_body = strlen(body);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(a);
        http_engine_response_deinit(a);
}

/* The engine uses a curl handle again, but none of its earlier options. */
static void test_a_request_has_nothing_of_earlier_requests(void **state) {
        struct http_engine_response a;

        for (int i = 0; i < 3; i++) {
                post(&a, "/head", "X-First: 1", "abc");
                assert_int_equal(a.outcome, 0);
                assert_memory_equal(a.body, "POST /head HTTP/1.1", 19);
                assert_non_null(strstr(a.body, "X-First: 1"));
                assert_non_null(strstr(a.body, "Content-Length: 3"));
                post(&a, "/echo", NULL, "one");
                assert_string_equal(a.body, "one");
                post(&a, "/head", NULL, "");
                assert_null(strstr(a.body, "X-First"));
                assert_non_null(strstr(a.body, "Content-Length: 0"));
                post(&a, "/cut", NULL, "x");
                assert_int_equal(a.outcome, HF_E_TIMEOUT);
                post(&a, "/echo", NULL, "");
                assert_int_equal(a.outcome, 0);
                assert_string_equal(a.body, "");
                http_engine_fixture_get(&f, &a, "/head");
                assert_memory_equal(a.body, "GET /head HTTP/1.1", 18);
        }
}

static _Atomic unsigned n_iterations;

static void count_iteration(void *ctx) { n_iterations++; }

/*
 * Replaces the function of the C library: it fails, but always only after the engine has begun to
 * wait for it.
 */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_addresses) {
        for (int i = 0; i < 3; i++) {
                unsigned before = n_iterations;
                if (hf__http_schedule(f.engine, 0, count_iteration, NULL) != 0)
                        break; /* the engine stops */
                while (n_iterations == before)
                        sched_yield();
        }
        return EAI_NONAME;
}

/*
 * Asserts that each descriptor that the engine believes to be in the epoll set is in it. Otherwise
 * the engine would see a response only when a timer of libcurl is due.
 */
static void check_watched(void *ctx, const struct hf__http_result *result) {
        for (size_t fd = 0; fd < f.engine->lanes.n_sockets; fd++) {
                struct epoll_event event = {.events = f.engine->lanes.sockets[fd].watched,
                                            .data.fd = (int)fd};
                if (event.events)
                        assert(epoll_ctl(f.engine->epoll_fd, EPOLL_CTL_MOD, (int)fd, &event) == 0);
        }
        http_engine_response_on_done(ctx, result);
}

/*
 * While libcurl resolves a name, it uses a descriptor that it closes without telling the engine.
 * The next connection may get the same number.
 */
static void test_a_connection_works_after_a_failed_name_lookup(void **state) {
        struct http_engine_response a;
        char url[128];

        http_engine_response_init(&a);
        struct hf__http_request request =
                http_engine_fixture_request(&f, &a, "/ok", url, sizeof url);
        request.url = "http://name.invalid/ok";
        request.on_done = check_watched;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, HF_E_UNAVAILABLE);
        http_engine_response_deinit(&a);
        http_engine_response_init(&a);
        request.url = url;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        http_engine_response_wait(&a);
        assert_int_equal(a.outcome, 0);
        http_engine_response_deinit(&a);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_gets_share_a_kept_connection),
                TEST(test_an_engine_sleeps_until_something_happens),
                TEST(test_post_sends_body_and_headers),
                TEST(test_a_body_that_finds_no_memory_is_no_failure_of_the_server),
                TEST(test_headers_are_parsed),
                TEST(test_each_failure_has_its_outcome),
                TEST(test_deadlines_end_requests),
                TEST(test_stream_outlives_its_head_timeout_and_is_canceled),
                TEST(test_post_is_never_sent_twice),
                TEST(test_lanes_do_not_share_connections),
                TEST(test_a_request_has_nothing_of_earlier_requests),
                TEST(test_a_connection_works_after_a_failed_name_lookup),
        };
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
