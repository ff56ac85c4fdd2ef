/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 over real connections: framing, limits, slow and dishonest clients. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "http_fixture.h"
#include "patience.h"
#include "server/http/connection/http_private.h"

static struct http_fixture f;

/*
 * Reads one response and copies its body to body. Returns the status, or 0 when the connection has
 * ended.
 */
static int read_response(struct tls_client *c, char *body, size_t space) {
        char *end = tls_client_await(c, "\r\n\r\n"), *length;
        size_t head, n = 0;
        int code;

        if (!end)
                return 0;
        head = (size_t)(end + 4 - c->in);
        *end = '\0';
        code = atoi(c->in + 9);
        length = strstr(c->in, "content-length: ");
        if (length)
                n = strtoul(length + 16, NULL, 10);
        tls_client_drop(c, head);
        while (c->n_in < n)
                if (!tls_client_read(c))
                        return 0;
        if (body)
                snprintf(body, space, "%.*s", (int)(n < space ? n : space - 1), c->in);
        tls_client_drop(c, n);
        return code;
}

static void open_h1(struct tls_client *c) {
        assert_int_equal(tls_client_open(c, hfd_http_port(f.http), "http/1.1", NULL, 0), 0);
}

/* Sends raw bytes. Returns the code of the first response; 0 = closed. */
static int send_bytes(const char *data, size_t n) {
        struct tls_client c;
        int code;

        open_h1(&c);
        tls_client_send(&c, data, n);
        code = read_response(&c, NULL, 0);
        tls_client_close(&c);
        return code;
}

static int send_request(const char *text) { return send_bytes(text, strlen(text)); }

static void test_get_and_post_share_a_connection(void **state) {
        struct tls_client c;
        char body[64];

        open_h1(&c);
        tls_client_puts(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "hello");
        tls_client_puts(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "abc");
        tls_client_puts(&c, "GET /query?a=b&c HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "a=b&c");
        tls_client_puts(&c, "GET /header HTTP/1.1\r\nHost: a\r\nX-Test: 1\r\nx-TEST:  2 \r\n\r\n");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "1, 2");
        tls_client_puts(&c, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_true(tls_client_is_closed(&c));
        tls_client_close(&c);
}

static void test_a_response_to_head_has_no_body(void **state) {
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_non_null(tls_client_await(&c, "content-length: 5\r\n"));
        assert_non_null(tls_client_await(&c, "\r\n\r\n"));
        while (tls_client_read(&c))
                ;
        assert_memory_equal(c.in + c.n_in - 4, "\r\n\r\n", 4);
        tls_client_close(&c);
}

static void test_a_head_may_be_split_at_each_byte(void **state) {
        static const char text[] =
                "POST /echo HTTP/1.1\r\nHost: a\r\nX-Test: v\r\nTransfer-Encoding: "
                "chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nt: u\r\n\r\n";
        struct tls_client c;
        char body[64];

        open_h1(&c);
        for (size_t i = 0; i < sizeof text - 1; i++)
                tls_client_send(&c, text + i, 1);
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "abc");
        tls_client_close(&c);
}

static void test_pipelined_requests_are_answered_in_order(void **state) {
        struct hfd_http_request *held;
        struct tls_client c;
        char body[64];

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: "
                            "a\r\nContent-Length: 1\r\n\r\n2"
                            "GET /query?3 HTTP/1.1\r\nHost: a\r\n\r\n");
        held = http_fixture_take_held(&f);
        http_fixture_respond(held, 200, "1");
        hfd_http_request_unref(held);
        for (int i = 1; i <= 3; i++) {
                assert_int_equal(read_response(&c, body, sizeof body), 200);
                assert_int_equal(body[0], '0' + i);
        }
        tls_client_close(&c);
}

/* Input that waits for the end of a response is in the memory account until it is parsed. */
static void test_pipelined_input_is_accounted(void **state) {
        static const char hello[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
        enum { N = 200 };
        const struct hfd_account *account = &f.http->account;
        struct hfd_http_request *held;
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        held = http_fixture_take_held(&f);
        size_t before = account->known + account->strangers;
        for (int i = 0; i < N; i++)
                tls_client_puts(&c, hello);
        PATIENCE_AWAIT(account->known + account->strangers >= before + N * strlen(hello));
        assert_int_equal(account->known + account->strangers, before + N * strlen(hello));
        http_fixture_respond(held, 200, "1");
        hfd_http_request_unref(held);
        for (int i = 0; i < 1 + N; i++)
                assert_int_equal(read_response(&c, NULL, 0), 200);
        PATIENCE_AWAIT(account->known + account->strangers == 0);
        assert_int_equal(account->known + account->strangers, 0);
        tls_client_close(&c);
}

/* Input that is never parsed leaves the account when its connection ends. */
static void test_pipelined_input_of_a_closed_connection_is_not_accounted(void **state) {
        const struct hfd_account *account = &f.http->account;
        struct hfd_http_request *held;
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\n");
        held = http_fixture_take_held(&f);
        tls_client_close(&c);
        PATIENCE_AWAIT(account->known + account->strangers == 0);
        assert_int_equal(account->known + account->strangers, 0);
        http_fixture_respond(held, 200, "too late");
        hfd_http_request_unref(held);
}

static void test_smuggling_is_refused(void **state) {
        static const char nul[] = "GET /hello HTTP/1.1\r\nHost: a\r\nX-Test: a\0b\r\n\r\n";

        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                         400);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                      "chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
                         400);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "3\r\nContent-Length: 4\r\n\r\nabcd"),
                         400);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "3\r\nContent-Length: 3\r\n\r\nabc"),
                         400);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3, "
                                      "3\r\n\r\nabc"),
                         400);
        assert_int_equal(send_request(
                                 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc"),
                         400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\nHost: a\n\n"), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\nX-Test: b\r\n\r\n"), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\nX-Test : b\r\n\r\n"), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\nX-Test: b\r\n c\r\n\r\n"),
                         400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\nX-Test: b\r\n\tc\r\n\r\n"),
                         400);
        assert_int_equal(send_bytes(nul, sizeof nul - 1), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nX-Test: b\r\n\r\n"), 400);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
        assert_true(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                 "chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") >= 400);
        assert_true(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, "
                                 "chunked\r\n\r\n0\r\n\r\n") >= 400);
        assert_true(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                 "xchunked\r\n\r\n0\r\n\r\n") >= 400);
        assert_true(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                 "chunked\r\n\r\n1\nab\r\n0\r\n\r\n") >= 400);
        assert_true(send_request("GET /hello HTTP/2.0\r\nHost: a\r\n\r\n") >= 400);
        assert_int_equal(send_request("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        assert_int_equal(send_request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        assert_int_equal(send_request("GET http://a/hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        /* The path is "/", which the fixture does not have: the slash is in the query. */
        assert_int_equal(send_request("GET http://a?x=/hello HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
        assert_int_equal(send_request("GET /hello HTTP/1.0\r\n\r\n"), 200);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: "
                                      "Upgrade\r\nUpgrade: "
                                      "websocket\r\n\r\n"),
                         200);
        assert_int_equal(send_request("\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        assert_true(send_request("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n") >= 400);
}

static void test_requests_beyond_the_limits_are_refused(void **state) {
        const size_t n = 70000;
        static char big[70100];
        char *end;

        end = stpcpy(big, "GET /hello HTTP/1.1\r\nHost: a\r\nX: ");
        memset(end, 'x', n);
        assert_int_equal(send_bytes(big, n), 431);
        end = stpcpy(big, "GET /hello HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < 300; i++)
                end = stpcpy(end, "a:b\r\n");
        strcpy(end, "\r\n");
        assert_int_equal(send_request(big), 431);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "3145729\r\n\r\n"),
                         413);
        /* An endless chunk extension is framing, not body. */
        end = stpcpy(big, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;");
        memset(end, 'x', 40000);
        assert_int_equal(send_bytes(big, 40000), 413);
}

static void test_a_chunked_body_beyond_the_limit_is_refused(void **state) {
        static char chunk[65536 + 16];
        struct tls_client c;
        int n = sprintf(chunk, "10000\r\n");

        memset(chunk + n, 'x', 65536);
        memcpy(chunk + n + 65536, "\r\n", 2);
        open_h1(&c);
        tls_client_puts(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 50; i++)
                tls_client_send(&c, chunk, (size_t)n + 65536 + 2);
        assert_int_equal(read_response(&c, NULL, 0), 413);
        tls_client_close(&c);
}

static void test_expect_100_continue_is_served(void **state) {
        struct tls_client c;
        char body[16];

        open_h1(&c);
        tls_client_puts(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: "
                            "100-continue\r\n\r\n");
        assert_int_equal(read_response(&c, NULL, 0), 100);
        tls_client_puts(&c, "ok");
        assert_int_equal(read_response(&c, body, sizeof body), 200);
        assert_string_equal(body, "ok");
        tls_client_close(&c);
        assert_int_equal(send_request(
                                 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: "
                                 "wonders\r\n\r\n"),
                         417);
        assert_int_equal(send_request("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "4000000\r\nExpect: "
                                      "100-continue\r\n\r\n"),
                         413);
}

static void test_a_slow_head_times_out(void **state) {
        struct tls_client c, idle;

        open_h1(&idle);
        open_h1(&c);
        tls_client_puts(&c, "GET /hello HTTP/1.1\r\nHo");
        /*
         * When another connection of the same worker has a response, the server has also read this
         * beginning. Two connections cover both workers.
         */
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        http_fixture_skip_time(&f, 33 * HF_NSEC_PER_SEC);
        assert_int_equal(read_response(&c, NULL, 0), 408);
        tls_client_close(&c);
        http_fixture_skip_time(&f, 60 * HF_NSEC_PER_SEC);
        assert_true(tls_client_is_closed(&idle));
        tls_client_close(&idle);
}

static void test_a_stream_is_chunked_and_flushed_at_once(void **state) {
        struct hf__buf *piece = hf__buf_copy("one", 3);
        struct hfd_http_request *held;
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        held = http_fixture_take_held(&f);
        hfd_http_request_stream(held, 200, "application/json", NULL, 0);
        assert_non_null(tls_client_await(&c, "transfer-encoding: chunked\r\n"));
        assert_int_equal(hfd_http_request_push(held, piece), 0);
        assert_non_null(tls_client_await(&c, "\r\n\r\n3\r\none\r\n"));
        assert_int_equal(hfd_http_request_push(held, piece), 0);
        hfd_http_request_end(held);
        assert_int_equal(hfd_http_request_push(held, piece) != 0, 1);
        assert_non_null(tls_client_await(&c, "one\r\n0\r\n\r\n"));
        hfd_http_request_unref(held);
        hf__buf_unref(piece);
        tls_client_close(&c);
}

static void test_a_slow_reader_is_disconnected(void **state) {
        struct hf__buf *piece = hf__buf_new(4096);
        struct hfd_http_request *held;
        struct tls_client c;
        unsigned gone = http_fixture_read(&f, &f.n_gone);
        size_t pushed = 0;
        int r = 0;

        memset(piece->data, 'x', piece->n);
        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), "http/1.1", NULL, 4096), 0);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        held = http_fixture_take_held(&f);
        hfd_http_request_stream(held, 200, "application/json", NULL, 0);
        for (int i = 0; i < 20000 && r == 0; i++, pushed++)
                r = hfd_http_request_push(held, piece);
        assert_int_equal(r, -ENOBUFS);
        assert_int_equal(hfd_http_request_push(held, piece), -EPIPE);
        assert_true(pushed < 5000);
        http_fixture_await(&f, &f.n_gone, gone + 1);
        hfd_http_request_unref(held);
        hf__buf_unref(piece);
        tls_client_close(&c);
}

static void test_a_handler_learns_that_the_peer_is_gone(void **state) {
        struct hf__buf *piece = hf__buf_copy("x", 1);
        unsigned gone = http_fixture_read(&f, &f.n_gone);
        unsigned finished = http_fixture_read(&f, &f.n_finished);
        struct hfd_http_request *held;
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        held = http_fixture_take_held(&f);
        tls_client_close(&c);
        http_fixture_await(&f, &f.n_gone, gone + 1);
        http_fixture_await(&f, &f.n_finished, finished + 1);
        http_fixture_respond(held, 200, "too late");
        assert_int_equal(hfd_http_request_push(held, piece), -EPIPE);
        hf__buf_unref(piece);
        hfd_http_request_unref(held);
}

static void test_a_handler_learns_that_the_response_is_sent(void **state) {
        unsigned gone = http_fixture_read(&f, &f.n_gone);
        unsigned finished = http_fixture_read(&f, &f.n_finished);

        assert_int_equal(send_request("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        http_fixture_await(&f, &f.n_finished, finished + 1);
        assert_int_equal(f.last_code, 200);
        assert_int_equal(f.last_bytes, 5);
        assert_int_equal(http_fixture_read(&f, &f.n_gone), gone);
}

static void test_a_large_body_is_echoed(void **state) {
        size_t n = 3 << 20;
        char *data = malloc(n), head[128];
        struct tls_client c;
        char *end;

        for (size_t i = 0; i < n; i++)
                data[i] = (char)('a' + i % 23);
        open_h1(&c);
        sprintf(head, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", n);
        tls_client_puts(&c, head);
        tls_client_send(&c, data, n);
        end = tls_client_await(&c, "\r\n\r\n");
        assert_non_null(end);
        tls_client_drop(&c, (size_t)(end + 4 - c.in));
        while (c.n_in < n)
                assert_true(tls_client_read(&c));
        assert_memory_equal(c.in, data, n);
        tls_client_close(&c);
        free(data);
}

static void test_response_headers_cannot_split_the_response(void **state) {
        const struct hfd_header headers[] = {{"x-good", "yes"},
                                             {"x-bad", "a\r\nx-evil: 1"},
                                             {"content-length", "1"}};
        struct hfd_http_request *held;
        struct tls_client c;

        open_h1(&c);
        tls_client_puts(&c, "GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        held = http_fixture_take_held(&f);
        hfd_http_request_reply(held, 200, NULL, headers, 3, NULL);
        hfd_http_request_unref(held);
        assert_non_null(tls_client_await(&c, "x-good: yes\r\n"));
        assert_non_null(tls_client_await(&c, "\r\n\r\n"));
        assert_null(strstr(c.in, "x-evil"));
        assert_non_null(strstr(c.in, "content-length: 0\r\n"));
        tls_client_close(&c);
}

static int setup(void **state) {
        http_fixture_start(&f);
        return 0;
}

static int teardown(void **state) {
        http_fixture_stop(&f);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_get_and_post_share_a_connection),
                cmocka_unit_test(test_a_response_to_head_has_no_body),
                cmocka_unit_test(test_a_head_may_be_split_at_each_byte),
                cmocka_unit_test(test_pipelined_requests_are_answered_in_order),
                cmocka_unit_test(test_pipelined_input_is_accounted),
                cmocka_unit_test(test_pipelined_input_of_a_closed_connection_is_not_accounted),
                cmocka_unit_test(test_smuggling_is_refused),
                cmocka_unit_test(test_requests_beyond_the_limits_are_refused),
                cmocka_unit_test(test_a_chunked_body_beyond_the_limit_is_refused),
                cmocka_unit_test(test_expect_100_continue_is_served),
                cmocka_unit_test(test_a_stream_is_chunked_and_flushed_at_once),
                cmocka_unit_test(test_a_slow_reader_is_disconnected),
                cmocka_unit_test(test_a_handler_learns_that_the_peer_is_gone),
                cmocka_unit_test(test_a_handler_learns_that_the_response_is_sent),
                cmocka_unit_test(test_a_large_body_is_echoed),
                cmocka_unit_test(test_response_headers_cannot_split_the_response),
                cmocka_unit_test(test_a_slow_head_times_out),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
