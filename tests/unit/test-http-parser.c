/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1.1 parser, the queue of a response, and the router. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/protocol/h1_parser.h"
#include "server/http/router.h"

/* Feeds text in pieces of at most `step` bytes. Returns the last event. */
static enum hfd_h1_event feed(struct hfd_h1_parser *parser, struct hfd_http_request *request,
                              const char *text, size_t step, int *ret_code) {
        size_t n = strlen(text), used;
        enum hfd_h1_event event = HFD_H1_MORE;

        while (n > 0 && event != HFD_H1_DONE && event != HFD_H1_BAD) {
                event = hfd_h1_parser_feed(parser, request, text, n < step ? n : step, &used,
                                           ret_code);
                text += used;
                n -= used;
        }
        return event;
}

static void test_any_split_gives_the_same_request(void **state) {
        static const char text[] = "PUT /a/b?c=d HTTP/1.1\r\nHost: x\r\nX-One:\t v \r\nx-one: "
                                   "w\r\nCookie: a\r\ncookie: b\r\n"
                                   "Content-Length: 4\r\n\r\nbody";

        for (size_t step = 1; step <= sizeof text; step++) {
                struct hfd_h1_parser *parser;
                struct hfd_http_request *request;
                size_t n;
                int code = 0;

                assert_int_equal(hfd_h1_parser_new(1000, 1000, &parser), 0);
                assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
                assert_int_equal(feed(parser, request, text, step, &code), HFD_H1_DONE);
                assert_string_equal(hfd_http_request_method(request), "PUT");
                assert_string_equal(hfd_http_request_path(request), "/a/b");
                assert_string_equal(hfd_http_request_query(request), "c=d");
                assert_string_equal(hfd_http_request_header(request, "x-one"), "v, w");
                assert_string_equal(hfd_http_request_header(request, "cookie"), "a; b");
                assert_null(hfd_http_request_header(request, "x"));
                assert_string_equal(hfd_http_request_body(request, &n), "body");
                assert_int_equal(n, 4);
                assert_true(hfd_h1_parser_in_head(parser)); /* the next one's */
                assert_int_equal(hfd_h1_parser_memory(parser), 0);
                hfd_http_request_unref(request);
                hfd_h1_parser_free(parser);
        }
}

static void add(struct hfd_http_request *request, const char *name, const char *value) {
        assert_int_equal(hfd_http_request_add_header(request, name, strlen(name), value,
                                                     strlen(value)),
                         0);
}

/* Each header costs in proportion to its own size, whatever came before: the bytes that are stored
 * stay where they are. They are joined once, at the end. */
static void test_a_repeated_header_moves_no_other(void **state) {
        enum { N_LARGE = 13, N_COOKIES = 241, LARGE = 4000 };
        char *large = calloc(1, LARGE + 1), *stored = malloc((size_t)1 << 17);
        struct hfd_http_request *request;

        assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
        memset(large, 'y', LARGE);
        add(request, "cookie", "");
        for (int i = 0; i < N_LARGE; i++)
                add(request, "x1", large);
        for (int i = 1; i < N_COOKIES; i++) {
                size_t n = request->n_headers_bytes;

                memcpy(stored, request->headers, n);
                add(request, "cookie", "");
                assert_memory_equal(request->headers, stored, n);
        }
        assert_int_equal(hfd_http_request_join_headers(request), 0);
        assert_int_equal(strlen(hfd_http_request_header(request, "cookie")), 2 * (N_COOKIES - 1));
        assert_int_equal(strlen(hfd_http_request_header(request, "x1")),
                         N_LARGE * LARGE + 2 * (N_LARGE - 1));
        hfd_http_request_unref(request);
        free(large);
        free(stored);
}

/* Some names occur once, some often; most are of the same length. */
static void test_repeated_headers_are_joined_in_order(void **state) {
        static const char *const names[] = {"cookie", "accept", "x-name", "x", "impersonate-group",
                                            "x-once"};
        static const char *const separators[] = {"; ", ", ", ", ", ", ", "\n\n", ", "};
        enum { ONCE = 5, N_NAMES };
        static char expected[N_NAMES][2048];

        srand(5);
        for (int round = 0; round < 50; round++) {
                struct hfd_http_request *request;
                const char *name;

                memset(expected, 0, sizeof expected);
                assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
                for (int i = 0; i < HFD_HEADERS_MAX; i++) {
                        size_t which = i == round ? ONCE : (size_t)rand() % ONCE;
                        char value[8], *end = expected[which] + strlen(expected[which]);

                        (void)snprintf(value, sizeof value, "%d", rand() % 1000);
                        (void)sprintf(end, "%s%s", expected[which][0] ? separators[which] : "",
                                      value);
                        add(request, names[which], value);
                }
                assert_int_equal(hfd_http_request_join_headers(request), 0);
                for (size_t i = 0; i < N_NAMES; i++) {
                        const char *joined = hfd_http_request_header(request, names[i]);

                        assert_string_equal(joined ? joined : "", expected[i]);
                }
                /* Of x-name, x and x-once each is there once. */
                assert_non_null(hfd_http_request_header_like(request, "x", 2, &name));
                assert_null(hfd_http_request_header_like(request, "x", 3, &name));
                hfd_http_request_unref(request);
        }
}

/* RFC 9112 3.2.2 and RFC 9110 4.2.3: after a host, an empty path is equal to "/". */
static void test_a_target_may_be_an_absolute_url(void **state) {
        static const struct {
                const char *target, *path, *query; /* path NULL: it is refused */
        } cases[] = {
                {"http://host", "/", ""},
                {"https://host:6443", "/", ""},
                {"http://a", "/", ""},
                {"http://[::1]:6443/a", "/a", ""},
                {"http://host/a?b=/c", "/a", "b=/c"},
                {"http://host?b=/c", "/", "b=/c"},
                {"http://host?", "/", ""},
                {"http://host/?b", "/", "b"},
                {"/http://host", "/http://host", ""},
                {"/?http://host", "/", "http://host"},
                {"http://", NULL, NULL},
                {"http:///a", NULL, NULL},
                {"http://?a", NULL, NULL},
                {"ftp://host/a", NULL, NULL},
                {"host/a", NULL, NULL},
                {"?a", NULL, NULL},
        };
        char text[100];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_h1_parser *parser;
                struct hfd_http_request *request;
                int code = 0;

                assert_int_equal(hfd_h1_parser_new(1000, 1000, &parser), 0);
                assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
                (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n",
                               cases[i].target);
                enum hfd_h1_event event = feed(parser, request, text, sizeof text, &code);
                if (cases[i].path) {
                        assert_int_equal(event, HFD_H1_DONE);
                        assert_string_equal(hfd_http_request_path(request), cases[i].path);
                        assert_string_equal(hfd_http_request_query(request), cases[i].query);
                } else {
                        assert_int_equal(event, HFD_H1_BAD);
                        assert_int_equal(code, 400);
                }
                hfd_http_request_unref(request);
                hfd_h1_parser_free(parser);
        }
}

static void test_bytes_after_the_request_are_left(void **state) {
        static const char text[] =
                "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n";
        struct hfd_h1_parser *parser;
        struct hfd_http_request *a, *b;
        size_t used;
        int code;

        assert_int_equal(hfd_h1_parser_new(1000, 1000, &parser), 0);
        assert_int_equal(hfd_http_request_new(NULL, NULL, &a), 0);
        assert_int_equal(hfd_http_request_new(NULL, NULL, &b), 0);
        assert_int_equal(hfd_h1_parser_feed(parser, a, text, sizeof text - 1, &used, &code),
                         HFD_H1_DONE);
        assert_int_equal(used, strlen("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_true(hfd_h1_parser_keep_alive(parser));
        assert_int_equal(hfd_h1_parser_feed(parser, b, text + used, sizeof text - 1 - used, &used,
                                            &code),
                         HFD_H1_DONE);
        assert_string_equal(hfd_http_request_path(b), "/2");
        hfd_http_request_unref(a);
        hfd_http_request_unref(b);
        hfd_h1_parser_free(parser);
}

static void test_a_response_queue_has_limits(void **state) {
        struct hf__buf *small = hf__buf_copy("x", 1),
                       *big = hf__buf_new(HFD_RESPONSE_MAX_BYTES + 1);
        struct hfd_http_request *request;

        assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
        assert_int_equal(hfd_http_request_push(request, small), -EINVAL); /* not started */
        hfd_http_request_stream(request, 200, NULL, NULL, 0);
        for (int i = 0; i < HFD_RESPONSE_MAX_PIECES; i++)
                assert_int_equal(hfd_http_request_push(request, small), 0);
        assert_int_equal(hfd_http_request_push(request, small), -ENOBUFS);
        assert_int_equal(hfd_http_request_push(request, small), -EPIPE);
        hfd_http_request_unref(request);

        assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
        hfd_http_request_stream(request, 200, NULL, NULL, 0);
        /* The first piece may be larger than the limit, and then does not count. */
        assert_int_equal(hfd_http_request_push(request, big), 0);
        assert_int_equal(hfd_http_request_push(request, small), 0);
        assert_int_equal(hfd_http_request_push(request, big), -ENOBUFS);
        hfd_http_request_unref(request);

        /* When the queue has been read, counting begins at zero again. */
        char *out = malloc(HFD_RESPONSE_MAX_BYTES + 1);
        assert_non_null(out);
        assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
        hfd_http_request_stream(request, 200, NULL, NULL, 0);
        memset(big->data, 'b', big->n);
        assert_int_equal(hfd_http_request_push(request, big), 0);
        assert_int_equal(hfd_http_request_push(request, small), 0);
        assert_int_equal(hfd_http_response_read(request, out, big->n, 0), big->n);
        assert_int_equal(hfd_http_request_push(request, big), -ENOBUFS);
        hfd_http_request_unref(request);
        free(out);
        hf__buf_unref(small);
        hf__buf_unref(big);
}

static void test_a_response_queue_keeps_its_order_while_it_grows(void **state) {
        struct hfd_http_request *request;
        char out[3];
        unsigned next = 0, want = 0;

        assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
        hfd_http_request_stream(request, 200, NULL, NULL, 0);
        for (int i = 0; i < 300; i++) {
                char text[2] = {(char)next, (char)(next + 1)};
                struct hf__buf *piece = hf__buf_copy(text, 2);
                size_t n;

                next += 2;

                assert_int_equal(hfd_http_request_push(request, piece), 0);
                hf__buf_unref(piece);
                n = hfd_http_response_read(request, out, i % 3, 0);
                for (size_t k = 0; k < n; k++)
                        assert_int_equal((unsigned char)out[k], want++ & 0xff);
        }
        while (hfd_http_response_read(request, out, 1, 0) == 1)
                assert_int_equal((unsigned char)out[0], want++ & 0xff);
        assert_int_equal(want, next);
        hfd_http_request_unref(request);
}

static void count(void *ctx) { (*(unsigned *)ctx)++; }

static void test_a_drained_queue_is_reported_whatever_room_there_was(void **state) {
        struct hf__buf *piece = hf__buf_copy("ab", 2);

        for (size_t n = 2; n < 5; n++) {
                struct hfd_http_request *request;
                unsigned n_calls = 0;
                char out[4];
                assert_int_equal(hfd_http_request_new(NULL, NULL, &request), 0);
                hfd_http_request_on_drained(request, 2, count, &n_calls);
                hfd_http_request_stream(request, 200, NULL, NULL, 0);
                assert_int_equal(hfd_http_request_push(request, piece), 0);
                assert_int_equal(hfd_http_response_read(request, out, n, 0), 2);
                assert_int_equal(n_calls, 1);
                assert_int_equal(hfd_http_request_push(request, piece), 0);
                assert_int_equal(hfd_http_request_push(request, piece), 0);
                assert_int_equal(hfd_http_response_read(request, out, n, 0), n);
                assert_int_equal(n_calls, n == 4 ? 2 : 1);
                hfd_http_request_unref(request);
        }
        hf__buf_unref(piece);
}

static void nothing(void *ctx, struct hfd_http_request *request) {}

static void test_the_router_prefers_the_longest_path(void **state) {
        struct hfd_router *router;
        hfd_http_handler handler;
        void *ctx;
        int a, b, c;

        assert_int_equal(hfd_router_new(&router), 0);
        assert_int_equal(hfd_router_add(router, "/", nothing, &a), 0);
        assert_int_equal(hfd_router_add(router, "/apis/", nothing, &b), 0);
        assert_int_equal(hfd_router_add(router, "/apis", nothing, &c), 0);
        assert_int_equal(hfd_router_add(router, "/apis", nothing, &c), HF_E_EXISTS);
        assert_int_equal(hfd_router_add(router, "apis", nothing, &c), -EINVAL);
        assert_int_equal(hfd_router_find(router, "/apis/apps", &handler, &ctx), 0);
        assert_ptr_equal(ctx, &b);
        assert_int_equal(hfd_router_find(router, "/apis", &handler, &ctx), 0);
        assert_ptr_equal(ctx, &c);
        assert_int_equal(hfd_router_find(router, "/", &handler, &ctx), 0);
        assert_ptr_equal(ctx, &a);
        assert_int_equal(hfd_router_find(router, "/apisx", &handler, &ctx), HF_E_NOT_FOUND);
        hfd_router_free(router);
        assert_int_equal(hfd_router_new(&router), 0);
        assert_int_equal(hfd_router_find(router, "/x", &handler, &ctx), HF_E_NOT_FOUND);
        hfd_router_free(router);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_split_gives_the_same_request),
                cmocka_unit_test(test_a_repeated_header_moves_no_other),
                cmocka_unit_test(test_repeated_headers_are_joined_in_order),
                cmocka_unit_test(test_a_target_may_be_an_absolute_url),
                cmocka_unit_test(test_bytes_after_the_request_are_left),
                cmocka_unit_test(test_a_response_queue_has_limits),
                cmocka_unit_test(test_a_response_queue_keeps_its_order_while_it_grows),
                cmocka_unit_test(test_a_drained_queue_is_reported_whatever_room_there_was),
                cmocka_unit_test(test_the_router_prefers_the_longest_path),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
