/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 over real connections: streams, limits, floods and strangers. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "h2_client.h"
#include "http_fixture.h"
#include "patience.h"
#include "server/http/connection/http_private.h"

static struct http_fixture f;

static int setup(void **state) {
        http_fixture_start(&f);
        return 0;
}

static int teardown(void **state) {
        http_fixture_stop(&f);
        return 0;
}

static struct h2_client *h2_open(uint32_t window, int rcvbuf) {
        return h2_client_open(hfd_http_port(f.http), window, rcvbuf);
}

static void test_get_and_post_share_a_connection_with_many_streams(void **state) {
        struct h2_client *h = h2_open(0, 0);
        nghttp2_nv more[] = {h2_client_header("x-test", "1"), h2_client_header("x-test", "2")};
        int32_t ids[100];
        struct h2_client_stream *s;

        s = h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL));
        assert_int_equal(s->code, 200);
        assert_string_equal(s->body, "hello");
        s = h2_client_await(h, h2_client_ask(h, "POST", "/echo", "abc"));
        assert_string_equal(s->body, "abc");
        s = h2_client_await(h, h2_client_ask(h, "HEAD", "/hello", NULL));
        assert_int_equal(s->code, 200);
        assert_int_equal(s->n, 0);
        s = h2_client_await(h, h2_client_ask_with(h, "GET", "/header", more, 2, NULL, 0));
        assert_string_equal(s->body, "1, 2");
        for (int i = 0; i < 100; i++)
                ids[i] = h2_client_ask(h, "GET", "/hello", NULL);
        for (int i = 0; i < 100; i++)
                assert_int_equal(h2_client_await(h, ids[i])->code, 200);
        h2_client_close(h);
}

static void test_responses_may_come_later_and_in_any_order(void **state) {
        struct h2_client *h = h2_open(0, 0);
        int32_t a = h2_client_ask(h, "GET", "/hold", NULL),
                b = h2_client_ask(h, "GET", "/hold", NULL);
        struct hfd_http_request *ra = http_fixture_take_held(&f), *rb = http_fixture_take_held(&f);

        http_fixture_respond(rb, 201, "b");
        assert_int_equal(h2_client_await(h, b)->code, 201);
        http_fixture_respond(ra, 202, "a");
        assert_int_equal(h2_client_await(h, a)->code, 202);
        hfd_http_request_unref(ra);
        hfd_http_request_unref(rb);
        h2_client_close(h);
}

static void test_a_large_body_is_sent_without_a_copy(void **state) {
        struct h2_client *h = h2_open(0, 0);
        size_t n = 3000000;
        char *data = malloc(n + 1);
        struct h2_client_stream *s;

        for (size_t i = 0; i < n; i++)
                data[i] = (char)('a' + i % 23);
        s = h2_client_await(h, h2_client_ask_with(h, "POST", "/echo", NULL, 0, data, n));
        assert_int_equal(s->code, 200);
        assert_int_equal(s->n, n);
        assert_memory_equal(s->body, data, n);
        free(data);
        h2_client_close(h);
}

static void test_a_body_beyond_the_limit_is_refused(void **state) {
        struct h2_client *h = h2_open(0, 0);
        size_t n = 4000000;
        char *data = calloc(1, n + 1);
        nghttp2_nv more[] = {h2_client_header("content-length", "4000000")};

        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "POST", "/echo", NULL, 0, data, n))
                                 ->code,
                         413);
        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "POST", "/echo", more, 1, data, n))
                                 ->code,
                         413);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        free(data);
        h2_client_close(h);
}

static void test_headers_beyond_the_limits_are_refused(void **state) {
        struct h2_client *h = h2_open(0, 0);
        char *big = malloc(16001);
        nghttp2_nv more[301];

        memset(big, 'x', 16000);
        big[16000] = '\0';
        for (int i = 0; i < 5; i++)
                more[i] = h2_client_header("x-big", big);
        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "GET", "/hello", more, 3, NULL, 0))
                                 ->code,
                         200);
        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "GET", "/hello", more, 5, NULL, 0))
                                 ->code,
                         431);
        for (int i = 0; i < 300; i++)
                more[i] = h2_client_header("x-s", "y");
        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "GET", "/hello", more, 300, NULL, 0))
                                 ->code,
                         431);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        free(big);
        h2_client_close(h);
}

static void test_authority_and_host_must_agree(void **state) {
        struct h2_client *h = h2_open(0, 0);
        nghttp2_nv other[] = {h2_client_header("host", "b")},
                   same[] = {h2_client_header("host", "a")};

        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "GET", "/hello", other, 1, NULL, 0))
                                 ->code,
                         400);
        assert_int_equal(h2_client_await(h,
                                         h2_client_ask_with(h, "GET", "/hello", same, 1, NULL, 0))
                                 ->code,
                         200);
        /* nghttp2 refuses it already */
        assert_int_not_equal(h2_client_await(h, h2_client_ask(h, "GET", "http://a", NULL))
                                     ->error_code,
                             0);
        h2_client_close(h);
}

/* Go's library takes a value of HTTP/2 as it is, white space included. */
static void test_a_value_may_begin_and_end_with_white_space(void **state) {
        struct h2_client *h = h2_open(0, 0);
        nghttp2_nv spaces[] = {h2_client_header("x-test", " a\t ")},
                   control[] = {h2_client_header("x-test", "a\x01")};

        assert_string_equal(h2_client_await(h, h2_client_ask_with(h, "GET", "/header", spaces, 1,
                                                                  NULL, 0))
                                    ->body,
                            " a\t ");
        /* The header is never ignored: it may say as whom the request is made. */
        assert_int_equal(h2_client_await(h, h2_client_ask_with(h, "GET", "/header", control, 1,
                                                               NULL, 0))
                                 ->error_code,
                         NGHTTP2_PROTOCOL_ERROR);
        h2_client_close(h);
}

static void test_many_watch_streams_deliver_events(void **state) {
        struct h2_client *h = h2_open(0, 0);
        struct hfd_http_request *held[50];
        struct hf__buf *event = hf__buf_copy("event\n", 6);
        int32_t ids[50];

        for (int i = 0; i < 50; i++)
                ids[i] = h2_client_ask(h, "GET", "/hold", NULL);
        for (int i = 0; i < 50; i++) {
                held[i] = http_fixture_take_held(&f);
                hfd_http_request_stream(held[i], 200, "application/json", NULL, 0);
        }
        for (int round = 0; round < 20; round++)
                for (int i = 0; i < 50; i++)
                        assert_int_equal(hfd_http_request_push(held[i], event), 0);
        for (int i = 0; i < 50; i++) {
                while (h2_client_stream_of(h, ids[i])->n < 120)
                        assert_true(h2_client_iteration(h));
                assert_false(h2_client_stream_of(h, ids[i])->closed);
                hfd_http_request_end(held[i]);
                hfd_http_request_unref(held[i]);
        }
        for (int i = 0; i < 50; i++) {
                assert_int_equal(h2_client_await(h, ids[i])->n, 120);
                assert_int_equal(h2_client_stream_of(h, ids[i])->error_code, 0);
        }
        hf__buf_unref(event);
        h2_client_close(h);
}

/* The window stays shut: the response queue fills, then only that stream is reset. */
static void test_a_slow_reader_is_disconnected(void **state) {
        struct h2_client *h = h2_open(100, 0);
        struct hf__buf *event = hf__buf_new(1000);
        int32_t slow = h2_client_ask(h, "GET", "/hold", NULL);
        struct hfd_http_request *held = http_fixture_take_held(&f);
        unsigned gone = http_fixture_read(&f, &f.n_gone);
        int r = 0, pushed = 0;

        memset(event->data, 'x', event->n);
        hfd_http_request_stream(held, 200, "application/json", NULL, 0);
        for (; pushed < 5000 && r == 0; pushed++)
                r = hfd_http_request_push(held, event);
        assert_int_equal(r, -ENOBUFS);
        assert_in_range(pushed, 1024, 1030);
        http_fixture_await(&f, &f.n_gone, gone + 1);
        assert_int_not_equal(h2_client_await(h, slow)->error_code, 0);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        hfd_http_request_unref(held);
        hf__buf_unref(event);
        h2_client_close(h);
}

static void test_a_handler_learns_that_the_peer_is_gone(void **state) {
        struct h2_client *h = h2_open(0, 0);
        unsigned gone = http_fixture_read(&f, &f.n_gone);
        int32_t id = h2_client_ask(h, "GET", "/hold", NULL);
        struct hfd_http_request *a = http_fixture_take_held(&f), *b;

        nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        h2_client_flush(h);
        http_fixture_await(&f, &f.n_gone, gone + 1);
        h2_client_ask(h, "GET", "/hold", NULL);
        b = http_fixture_take_held(&f);
        h2_client_close(h);
        http_fixture_await(&f, &f.n_gone, gone + 2);
        http_fixture_respond(a, 200, "late");
        http_fixture_respond(b, 200, "late");
        hfd_http_request_unref(a);
        hfd_http_request_unref(b);
}

static void test_an_unfinished_upload_is_reset(void **state) {
        struct h2_client *h = h2_open(0, 0);
        int32_t id;

        /* HEADERS alone, END_STREAM never comes. */
        nghttp2_nv nvs[] = {h2_client_header(":method", "POST"),
                            h2_client_header(":scheme", "https"),
                            h2_client_header(":authority", "a"),
                            h2_client_header(":path", "/echo")};
        id = nghttp2_submit_headers(h->session, NGHTTP2_FLAG_NONE, -1, NULL, nvs, 4, NULL);
        h2_client_flush(h);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        http_fixture_skip_time(&f, 91 * HF_NSEC_PER_SEC);
        assert_int_not_equal(h2_client_await(h, id)->error_code, 0);
        h2_client_close(h);
}

/* ---- floods: raw frames that a correct session would not send ---- */

static size_t put_frame(uint8_t *out, size_t n, uint8_t type, uint8_t flags, uint32_t id) {
        const uint8_t header[9] =
                {(uint8_t)(n >> 16),  (uint8_t)(n >> 8),   (uint8_t)n,         type,       flags,
                 (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};

        memcpy(out, header, 9);
        return 9;
}

/* HPACK: GET, https, /hello or /echo as literal path, authority a */
static const uint8_t hello_block[] = {0x82, 0x87, 0x44, 0x06, '/',  'h', 'e',
                                      'l',  'l',  'o',  0x41, 0x01, 'a'};
static const uint8_t echo_block[] = {0x82, 0x87, 0x44, 0x05, '/',  'e',
                                     'c',  'h',  'o',  0x41, 0x01, 'a'};

static void flood_ends(struct h2_client *h, const uint8_t *frames, size_t n, int times) {
        for (int i = 0; i < times; i++)
                tls_client_send(&h->tls, frames, n);
        assert_true(tls_client_is_closed(&h->tls));
        h2_client_close(h);
        /* The server still works. */
        h = h2_open(0, 0);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        h2_client_close(h);
}

static void test_a_rapid_reset_flood_ends_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t *frames = malloc(5000 * 64), *at = frames;

        for (uint32_t i = 0; i < 5000; i++) {
                at += put_frame(at, sizeof echo_block, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS,
                                2 * i + 1);
                memcpy(at, echo_block, sizeof echo_block);
                at += sizeof echo_block;
                at += put_frame(at, 4, NGHTTP2_RST_STREAM, 0, 2 * i + 1);
                memcpy(at, "\0\0\0\x08", 4);
                at += 4;
        }
        flood_ends(h, frames, (size_t)(at - frames), 1);
        free(frames);
}

static void test_a_ping_flood_ends_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t *frames = calloc(1000, 17), *at = frames;

        for (int i = 0; i < 1000; i++)
                at += put_frame(at, 8, NGHTTP2_PING, 0, 0) + 8;
        flood_ends(h, frames, 17000, 200);
        free(frames);
}

static void test_a_settings_flood_ends_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t *frames = calloc(1000, 9), *at = frames;

        for (int i = 0; i < 1000; i++)
                at += put_frame(at, 0, NGHTTP2_SETTINGS, 0, 0);
        flood_ends(h, frames, 9000, 200);
        free(frames);
}

static void test_settings_with_many_entries_end_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t frame[9 + 6 * 100] = {0};

        put_frame(frame, 600, NGHTTP2_SETTINGS, 0, 0);
        for (int i = 0; i < 100; i++)
                memcpy(frame + 9 + 6 * i, "\x00\x03\x00\x00\x00\x10", 6);
        flood_ends(h, frame, sizeof frame, 1);
}

static void test_a_continuation_flood_ends_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t first[9 + sizeof hello_block], more[9];

        put_frame(first, sizeof hello_block, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1);
        memcpy(first + 9, hello_block, sizeof hello_block);
        put_frame(more, 0, NGHTTP2_CONTINUATION, 0, 1);
        tls_client_send(&h->tls, first, sizeof first);
        flood_ends(h, more, sizeof more, 100);
}

/*
 * One large entry in the dynamic table, then a block that refers to it thousands of times with one
 * byte each.
 */
static void test_an_hpack_bomb_ends_the_connection(void **state) {
        struct h2_client *h = h2_open(0, 0);
        uint8_t *block = malloc(20000), *at = block + 9;
        unsigned handled = http_fixture_read(&f, &f.n_handled);

        memcpy(at, hello_block, sizeof hello_block);
        at += sizeof hello_block;
        /* literal with incremental indexing, new name "x", value of 3,900 bytes (7-bit prefix
         * integer: 127 + 3,773) */
        memcpy(at, "\x40\x01x\x7f\xbd\x1d", 6);
        at += 6;
        memset(at, 'y', 3900);
        at += 3900;
        memset(at, 0xbe, 12000); /* index 62 */
        at += 12000;
        put_frame(block, (size_t)(at - block - 9), NGHTTP2_HEADERS,
                  NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1);
        tls_client_send(&h->tls, block, (size_t)(at - block));
        assert_true(tls_client_is_closed(&h->tls));
        assert_int_equal(http_fixture_read(&f, &f.n_handled), handled);
        free(block);
        h2_client_close(h);
}

/* ---- strangers ---- */

static enum hfd_http_verdict treat_as_stranger(void *ctx, struct hfd_http_request *request) {
        static const char reason[8192];
        struct hf__buf *body;

        if (strcmp(hfd_http_request_path(request), "/forbidden") == 0) {
                hfd_http_request_reply(request, 403, "text/plain", NULL, 0, NULL);
                return HFD_HTTP_REFUSED;
        }
        if (strcmp(hfd_http_request_path(request), "/explained") == 0) {
                body = hf__buf_copy(reason, sizeof reason);
                hfd_http_request_reply(request, 403, "text/plain", NULL, 0, body);
                hf__buf_unref(body);
                return HFD_HTTP_REFUSED;
        }
        return strcmp(hfd_http_request_path(request), "/upload") == 0 ? HFD_HTTP_READ_BODY
                                                                      : HFD_HTTP_IGNORE_BODY;
}

/* Replaces the fixture's server by one that takes every sender for a stranger, except that of an
 * /upload. Returns the former
 * server, which the test puts back. */
static struct hfd_http *start_for_strangers(void) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *known = f.http;

        config.on_head = treat_as_stranger;
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        return known;
}

/* The responses come although the bodies never do, and the streams end without an error. */
static void test_a_strangers_body_is_not_awaited(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(0, 0);
        int32_t ids[2];

        for (int i = 0; i < 2; i++) {
                int32_t next = (int32_t)nghttp2_session_get_next_stream_id(h->session);

                h2_client_stream_of(h, next)->upload_stalls = true;
                ids[i] = h2_client_ask(h, "POST", i == 0 ? "/forbidden" : "/echo", "x");
        }
        assert_int_equal(h2_client_await(h, ids[0])->code, 403);
        assert_int_equal(h2_client_await(h, ids[1])->code, 200);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(h2_client_stream_of(h, ids[i])->error_code, NGHTTP2_NO_ERROR);
                assert_int_equal(h2_client_stream_of(h, ids[i])->n, 0);
        }
        h2_client_close(h);
        hfd_http_free(f.http);
        f.http = known;
}

/* The server ends the connection, which gives back all that it held. */
static void expect_end(struct h2_client *h) {
        assert_true(tls_client_is_closed(&h->tls));
        h2_client_close(h);
        h = h2_open(0, 0);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        h2_client_close(h);
        PATIENCE_AWAIT(atomic_load(&f.http->account.strangers) == 0);
}

/* Many requests with large heads at once. The GOAWAY names the last one that was handled, so that
 * the client may send the others again. */
static void test_a_strangers_heads_are_counted(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(0, 0);
        unsigned handled = http_fixture_read(&f, &f.n_handled);
        char *big = malloc(48001);

        memset(big, 'x', 48000);
        big[48000] = '\0';
        const nghttp2_nv more = h2_client_header("x-big", big);
        for (int i = 0; i < 60; i++)
                (void)h2_client_ask_with(h, "GET", "/hold", &more, 1, NULL, 0);
        while (h2_client_iteration(h))
                continue;
        assert_int_equal((h->goaway_last + 1) / 2, http_fixture_read(&f, &f.n_handled) - handled);
        expect_end(h);
        assert_in_range(http_fixture_read(&f, &f.n_handled) - handled, 2, 11);
        free(big);
        hfd_http_free(f.http);
        f.http = known;
}

/* The first block puts a method of 3,900 bytes into the dynamic table. The others refer to it. */
static void test_a_strangers_methods_are_counted(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(1, 0);
        unsigned handled = http_fixture_read(&f, &f.n_handled);
        const size_t n = 3904 + sizeof hello_block - 1;
        uint8_t *block = malloc(9 + n + 200 * 13), *at = block;

        at += put_frame(at, n, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                        1);
        /* literal with incremental indexing, name of index 2, value of 3,900 bytes */
        memcpy(at, "\x42\x7f\xbd\x1d", 4);
        memset(at + 4, 'A', 3900);
        memcpy(at + 3904, hello_block + 1, sizeof hello_block - 1); /* without its method */
        at += n;
        for (uint32_t i = 1; i < 200; i++) {
                at += put_frame(at, 4, NGHTTP2_HEADERS,
                                NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1);
                memcpy(at, "\xc0\x87\xbf\xbe", 4); /* method, scheme, path, authority */
                at += 4;
        }
        tls_client_send(&h->tls, block, (size_t)(at - block));
        expect_end(h);
        assert_in_range(http_fixture_read(&f, &f.n_handled) - handled, 2, 200 - 50);
        free(block);
        hfd_http_free(f.http);
        f.http = known;
}

/* Refusals whose bodies the stranger does not let through. */
static void test_a_strangers_refusals_are_counted(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(1, 0);

        for (int i = 0; i < 100; i++)
                (void)h2_client_ask(h, "GET", "/explained", NULL);
        expect_end(h);
        hfd_http_free(f.http);
        f.http = known;
}

/* The requests of an ordinary client fit into the account, as many as one connection may have. */
static void test_a_strangers_small_requests_are_served(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(1, 0);
        nghttp2_nv more[] = {h2_client_header("user-agent", "curl/8.5.0 (x86_64-pc-linux-gnu)"),
                             h2_client_header("accept", "application/json, */*"),
                             h2_client_header("accept-encoding", "gzip, deflate, br, zstd")};
        int32_t last = 0;

        for (int i = 0; i < 250; i++)
                last = h2_client_ask_with(h, "GET", "/hello", more, 3, NULL, 0);
        while (h2_client_stream_of(h, last)->code == 0)
                assert_true(h2_client_iteration(h));
        assert_int_equal(h2_client_stream_of(h, last)->code, 200);
        assert_false(h2_client_stream_of(h, last)->closed);
        h2_client_close(h);
        hfd_http_free(f.http);
        f.http = known;
}

/* The connection may be that of a proxy, with requests of several users. */
static void test_a_request_keeps_its_limits_beside_that_of_a_stranger(void **state) {
        struct hfd_http *known = start_for_strangers();
        struct h2_client *h = h2_open(0, 0);
        size_t n = HFD_ACCOUNT_STRANGER_SHARE + 1;
        char *big = calloc(1, n);
        int32_t id = (int32_t)nghttp2_session_get_next_stream_id(h->session);

        h2_client_stream_of(h, id)->upload_stalls = true;
        assert_int_equal(h2_client_ask_with(h, "POST", "/upload", NULL, 0, big, n), id);
        assert_int_equal(h2_client_await(h, h2_client_ask(h, "GET", "/hello", NULL))->code, 200);
        h2_client_stream_of(h, id)->upload_stalls = false;
        assert_int_equal(nghttp2_session_resume_data(h->session, id), 0);
        h2_client_flush(h);
        assert_int_equal(h2_client_await(h, id)->code, 404);
        h2_client_close(h);
        free(big);
        hfd_http_free(f.http);
        f.http = known;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_get_and_post_share_a_connection_with_many_streams),
                cmocka_unit_test(test_responses_may_come_later_and_in_any_order),
                cmocka_unit_test(test_a_large_body_is_sent_without_a_copy),
                cmocka_unit_test(test_a_body_beyond_the_limit_is_refused),
                cmocka_unit_test(test_headers_beyond_the_limits_are_refused),
                cmocka_unit_test(test_authority_and_host_must_agree),
                cmocka_unit_test(test_a_value_may_begin_and_end_with_white_space),
                cmocka_unit_test(test_many_watch_streams_deliver_events),
                cmocka_unit_test(test_a_slow_reader_is_disconnected),
                cmocka_unit_test(test_a_handler_learns_that_the_peer_is_gone),
                cmocka_unit_test(test_an_unfinished_upload_is_reset),
                cmocka_unit_test(test_a_rapid_reset_flood_ends_the_connection),
                cmocka_unit_test(test_a_ping_flood_ends_the_connection),
                cmocka_unit_test(test_a_settings_flood_ends_the_connection),
                cmocka_unit_test(test_settings_with_many_entries_end_the_connection),
                cmocka_unit_test(test_a_continuation_flood_ends_the_connection),
                cmocka_unit_test(test_an_hpack_bomb_ends_the_connection),
                cmocka_unit_test(test_a_strangers_body_is_not_awaited),
                cmocka_unit_test(test_a_strangers_heads_are_counted),
                cmocka_unit_test(test_a_strangers_methods_are_counted),
                cmocka_unit_test(test_a_strangers_refusals_are_counted),
                cmocka_unit_test(test_a_strangers_small_requests_are_served),
                cmocka_unit_test(test_a_request_keeps_its_limits_beside_that_of_a_stranger),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
