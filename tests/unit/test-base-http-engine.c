/* SPDX-License-Identifier: Apache-2.0 */
/* The engine against a server in this process: one request at a time. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netdb.h>
#include <sched.h>
#include <sys/epoll.h>

#include "base/http/engine_private.h"
#include "http_engine_rig.h"

static void test_get_and_connection_is_kept(void **state) {
        struct response a;
        for (int i = 0; i < 20; i++) {
                get(&a, "/ok");
                assert_int_equal(a.outcome, 0);
                assert_int_equal(a.code, 200);
                assert_string_equal(a.body, "hello");
                assert_int_equal(a.grpc_status, -1);
                assert_string_equal(a.fence, "(none)");
        }
        assert_int_equal(f.server.n_handlers, 1);
}

static void test_post_echo_and_headers(void **state) {
        struct response a;
        char url[128], big[100000];
        const char *headers[] = {"X-One: 1", "Content-Type: application/json"};

        memset(big, 'x', sizeof big);
        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/echo", url, sizeof url);
        request.method = "PUT";
        request.body = big;
        request.n_body = sizeof big;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        memset(big, 'y', sizeof big); /* it was copied */
        wait_done(&a);
        answer_done(&a);
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.n_body, sizeof big);
        assert_int_equal(a.body[0], 'x');

        answer_init(&a);
        request = request_for(&a, "/head", url, sizeof url);
        request.method = "PATCH";
        request.headers = headers;
        request.n_headers = 2;
        request.body = "{}";
        request.n_body = 2;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        answer_done(&a);
        assert_memory_equal(a.body, "PATCH /head HTTP/1.1", 20);
        assert_non_null(strstr(a.body, "X-One: 1"));
        assert_non_null(strstr(a.body, "Content-Type: application/json"));
        assert_null(strcasestr(a.body, "expect"));
        assert_null(strcasestr(a.body, "urlencoded"));
}

static void test_special_headers(void **state) {
        struct response a;
        get(&a, "/busy");
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.code, 429);
        assert_int_equal(a.retry_after_s, 7);
        assert_string_equal(a.fence, "ns/x;5;me");
        assert_int_equal(a.grpc_status, 14);
        assert_string_equal(a.grpc_message, "a b");
        get(&a, "/early");
        assert_int_equal(a.code, 201);
        assert_int_equal(a.retry_after_s, 0); /* of the 103: not the answer's */
        get(&a, "/trailers");
        assert_string_equal(a.body, "onetwo");
        assert_int_equal(a.grpc_status, 0);
        assert_string_equal(a.grpc_message, "\xc3\xa4");
}

static void test_outcomes(void **state) {
        struct response a;
        char url[128], good[64];

        get(&a, "/cut");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(a.error_text[0]);
        get(&a, "/cut-body");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(a.n_body, 0);

        struct server closed; /* a port where nobody listens any more */
        server_start(&closed, NULL);
        server_stop(&closed);
        memcpy(good, f.url, sizeof good);
        snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", closed.port);
        get(&a, "/ok");
        memcpy(f.url, good, sizeof good);
        assert_int_equal(a.outcome, HF_E_UNAVAILABLE);
        assert_int_equal(a.code, 0);

        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/big", url, sizeof url);
        request.max_body = 1000;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TOO_LARGE);
        answer_done(&a);

        answer_init(&a);
        request = request_for(&a, "", url, sizeof url);
        request.url = "gopher://127.0.0.1/";
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_INVALID);
        answer_done(&a);
        request.on_done = NULL;
        assert_true(hf__http_submit(f.engine, &request, NULL) < 0);
}

static void test_deadlines(void **state) {
        struct response a;
        char url[128];

        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/never", url, sizeof url);
        request.deadline = in_ms(20);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(in_ms(0) >= request.deadline);
        answer_done(&a);

        answer_init(&a);
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 20 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        answer_done(&a);

        answer_init(&a);
        request.deadline = in_ms(0) - 1; /* gone by before it is submitted */
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        answer_done(&a);
        get(&a, "/ok");
        assert_int_equal(a.outcome, 0);
}

static void test_stream_outlives_its_head_timeout_and_is_canceled(void **state) {
        struct response a, timer;
        char url[128];
        uint64_t id = 0;

        answer_init(&a);
        answer_init(&timer);
        struct hf__http_request request = request_for(&a, "/stream", url, sizeof url);
        request.on_head = on_head;
        request.on_data = on_data;
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 2000 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        assert_true(id != 0);
        wait_data(&a, "onetwo");
        assert_int_equal(a.head_code, 200);
        assert_int_equal(a.n_done, 0);
        hf__http_cancel(f.engine, id);
        hf__http_cancel(f.engine, id);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        assert_int_equal(a.code, 200);
        hf__http_cancel(f.engine, id); /* long ended */
        hf__http_cancel(f.engine, 999999);

        answer_done(&a);
        answer_init(&a);
        a.stop_at_data = 1; /* the callback ends it */
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        answer_done(&a);
        answer_done(&timer);
}

/* The peer has taken the request on a kept connection and broken it: curl must not send it once
 * more by itself. */
static void test_post_is_never_sent_twice(void **state) {
        struct response a;
        char url[128];

        get(&a, "/ok");
        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/cut-second", url, sizeof url);
        request.method = "POST";
        request.body = "x";
        request.n_body = 1;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        answer_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(__atomic_load_n(&f.server.n_cut_posts, __ATOMIC_SEQ_CST), 1);
}

static void test_lanes_do_not_share_connections(void **state) {
        struct response a;
        char url[128];

        for (int round = 0; round < 2; round++)
                for (unsigned lane = 0; lane < HF__HTTP_N_LANES; lane++) {
                        answer_init(&a);
                        struct hf__http_request request = request_for(&a, "/ok", url, sizeof url);
                        request.lane = lane;
                        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                        wait_done(&a);
                        assert_int_equal(a.outcome, 0);
                        answer_done(&a);
                }
        assert_int_equal(f.server.n_handlers, HF__HTTP_N_LANES);
}

static void post_recurring(struct response *a, const char *path, const char *header,
                           const char *body) {
        char url[128];

        answer_init(a);
        struct hf__http_request request = request_for(a, path, url, sizeof url);
        request.method = "POST";
        request.url_recurs = true;
        request.headers = &header;
        request.n_headers = header ? 1 : 0;
        request.body = body;
        request.n_body = strlen(body);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(a);
        answer_done(a);
}

/* What libcurl has learnt of a URL serves the next request, but nothing else of the one before
 * does. */
static void test_recurring_url(void **state) {
        struct response a;

        for (int i = 0; i < 3; i++) {
                post_recurring(&a, "/head", "X-First: 1", "abc");
                assert_int_equal(a.outcome, 0);
                assert_memory_equal(a.body, "POST /head HTTP/1.1", 19);
                assert_non_null(strstr(a.body, "X-First: 1"));
                assert_non_null(strstr(a.body, "Content-Length: 3"));
                post_recurring(&a, "/echo", NULL, "one");
                assert_string_equal(a.body, "one");
                post_recurring(&a, "/head", NULL, "");
                assert_null(strstr(a.body, "X-First"));
                assert_non_null(strstr(a.body, "Content-Length: 0"));
                post_recurring(&a, "/cut", NULL, "x");
                assert_int_equal(a.outcome, HF_E_TIMEOUT);
                post_recurring(&a, "/echo", NULL, "");
                assert_int_equal(a.outcome, 0);
                assert_string_equal(a.body, "");
                get(&a, "/head");
                assert_memory_equal(a.body, "GET /head HTTP/1.1", 18);
        }
}

/* There is room for some only; the others are served as if they did not recur, and so is what is no
 * URL. */
static void test_more_recurring_urls_than_are_kept(void **state) {
        struct response a;
        char path[32];

        for (int i = 0; i < 100; i++) {
                snprintf(path, sizeof path, "/echo#%d", i);
                post_recurring(&a, path, NULL, path);
                assert_int_equal(a.outcome, 0);
                assert_string_equal(a.body, path);
        }
        answer_init(&a);
        struct hf__http_request request = {.method = "POST",
                                           .url = "nonsense://x y",
                                           .url_recurs = true,
                                           .deadline = in_ms(30000),
                                           .on_done = on_done,
                                           .ctx = &a};
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_INVALID);
        answer_done(&a);
}

/* In the place of the C library's: an answer that no name server gives, once the engine waits for
 * it. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_addresses) {
        uint64_t iterations = hf__http_engine_iterations(f.engine);

        while (hf__http_engine_iterations(f.engine) < iterations + 3)
                sched_yield();
        return EAI_NONAME;
}

/* Each descriptor that is said to be in the epoll set is: else an answer is seen only when some
 * timer of curl's is due. */
static void check_watched(void *ctx, const struct hf__http_result *result) {
        for (size_t fd = 0; fd < f.engine->lanes.n_sockets; fd++) {
                struct epoll_event event = {.events = f.engine->lanes.sockets[fd].watched,
                                            .data.fd = (int)fd};
                if (event.events)
                        assert(epoll_ctl(f.engine->epoll_fd, EPOLL_CTL_MOD, (int)fd, &event) == 0);
        }
        on_done(ctx, result);
}

/* What waits for a name is a descriptor of curl's own, which curl closes by itself; the next
 * connection may have its number. */
static void test_unix_socket_after_an_unknown_name(void **state) {
        char dir[] = "/tmp/hf-http-XXXXXX", path[64];
        struct server server;
        struct response a;

        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/s", dir);
        server_start(&server, path);
        answer_init(&a);
        struct hf__http_request request = {.method = "GET",
                                           .url = "http://name.invalid/ok",
                                           .deadline = in_ms(30000),
                                           .on_done = on_done,
                                           .ctx = &a};
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_UNAVAILABLE);
        answer_done(&a);
        answer_init(&a);
        request.url = "http://localhost/ok";
        request.unix_socket = path;
        request.on_done = check_watched;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, 0);
        answer_done(&a);
        server_stop(&server);
        unlink(path);
        rmdir(dir);
}

static void test_unix_socket(void **state) {
        char dir[] = "/tmp/hf-http-XXXXXX", path[64];
        struct server server;
        struct response a;

        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/s", dir);
        server_start(&server, path);
        answer_init(&a);
        struct hf__http_request request = {.method = "GET",
                                           .url = "http://localhost/ok",
                                           .unix_socket = path,
                                           .deadline = in_ms(30000),
                                           .on_done = on_done,
                                           .ctx = &a};
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, 0);
        assert_string_equal(a.body, "hello");
        answer_done(&a);
        server_stop(&server);
        unlink(path);
        rmdir(dir);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_get_and_connection_is_kept),
                TEST(test_post_echo_and_headers),
                TEST(test_special_headers),
                TEST(test_outcomes),
                TEST(test_deadlines),
                TEST(test_stream_outlives_its_head_timeout_and_is_canceled),
                TEST(test_post_is_never_sent_twice),
                TEST(test_lanes_do_not_share_connections),
                TEST(test_recurring_url),
                TEST(test_more_recurring_urls_than_are_kept),
                TEST(test_unix_socket),
                TEST(test_unix_socket_after_an_unknown_name),
        };
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
