/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client engine sends nothing after a request's deadline, also when the clock jumps: the
 * machine was suspended, or its VM was paused. The server is the real one, over TLS. A relay holds
 * back what the server sends, and so decides what the client waits for while the clock jumps.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <holdfast/cancel.h>

#include "http_fixture.h"
#include "tcp_relay.h"
#include "time_units.h"

#include "base/http/engine.h"
#include "base/http/global.h"
#include "base/http/http_tls.h"
#include "http_engine_response.h"

/* The server gives a stream so much room for its body before it has read some of it. */
#define STREAM_WINDOW ((size_t)256 << 10)

static struct fixture {
        struct http_fixture http;
        struct hf_host host; /* the client's; only its clock jumps */
        struct hf_clock clock;
        _Atomic(hf_nsec) ahead;
        struct tcp_relay relay;
        struct hf__http_tls *tls;
        struct hf__http_engine *engine;
} f;

static hf_nsec jumping_boot_time(void *ctx) {
        return hf_now(hf_clock_system()) + atomic_load(&f.ahead);
}

static int setup(void **state) {
        http_fixture_start(&f.http);
        f.clock = *hf_clock_system();
        f.clock.boot = jumping_boot_time;
        f.host = (struct hf_host){.size = sizeof f.host, .clock = &f.clock};
        tcp_relay_start(&f.relay, hfd_http_port(f.http.http));
        const struct hf__http_tls_config config = {.ca_pem = f.http.ca.cert_pem};
        assert_int_equal(hf__http_tls_new(&config, &f.tls), 0);
        assert_int_equal(hf__http_engine_new(&f.host, "test-http", &f.engine), 0);
        return 0;
}

static int teardown(void **state) {
        f.engine = hf__http_engine_free(f.engine);
        f.tls = hf__http_tls_unref(f.tls);
        tcp_relay_stop(&f.relay);
        http_fixture_stop(&f.http);
        return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void submit(struct http_engine_response *a, const char *method, const char *path,
                   const char *body, size_t n_body, hf_nsec within) {
        char url[128];

        http_engine_response_init(a);
        snprintf(url, sizeof url, "https://127.0.0.1:%u%s", f.relay.port, path);
        struct hf__http_request request = {
                .method = method,
                .url = url,
                .tls = f.tls,
                .body = body,
                .n_body = n_body,
                .deadline = hf_now(&f.clock) + within,
                .on_done = http_engine_response_on_done,
                .ctx = a,
        };
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
}

static void await(struct http_engine_response *a) {
        http_engine_response_wait(a);
        http_engine_response_deinit(a);
}

/* Requests that were sent before this one reach the server first. So afterwards, the server has
 * handled each of them that was sent at all. */
static void exchange(const char *path) {
        struct http_engine_response a;

        submit(&a, "GET", path, NULL, 0, 60 * SEC);
        await(&a);
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.code, 200);
}

static void test_nothing_is_sent_when_a_handshake_ends_too_late(void **state) {
        struct http_engine_response a;

        tcp_relay_hold(&f.relay, true);
        submit(&a, "PUT", "/hello", "{}", 2, 2 * SEC);
        tcp_relay_await_held(&f.relay); /* the server's part of the handshake */
        atomic_fetch_add(&f.ahead, 10 * SEC);
        tcp_relay_hold(&f.relay, false);
        await(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(a.not_sent);
        exchange("/hello");
        assert_int_equal(f.http.n_handled, 1);
}

/* The second request waits for the connection that the first one opens, and then shares it. */
static void test_nothing_is_sent_too_late_on_a_shared_connection(void **state) {
        struct http_engine_response first, second;

        tcp_relay_hold(&f.relay, true);
        submit(&first, "GET", "/hello", NULL, 0, 60 * SEC);
        tcp_relay_await_held(&f.relay);
        submit(&second, "PUT", "/hello", "{}", 2, 2 * SEC);
        atomic_fetch_add(&f.ahead, 10 * SEC);
        tcp_relay_hold(&f.relay, false);
        await(&first);
        assert_int_equal(first.outcome, 0);
        await(&second);
        assert_int_equal(second.outcome, HF_E_TIMEOUT);
        assert_true(second.not_sent);
        exchange("/hello");
        assert_int_equal(f.http.n_handled, 2);
}

/* The client must wait with the end of a body until the server says that it has read some of it.
 * The relay delivers that message after the deadline. */
static void test_the_rest_of_a_body_is_not_sent_too_late(void **state) {
        static char body[STREAM_WINDOW + 1000];
        struct http_engine_response a;

        exchange("/hello");
        memset(body, 'x', sizeof body);
        tcp_relay_hold(&f.relay, true);
        atomic_store(&f.relay.n_to_server, 0);
        submit(&a, "PUT", "/echo", body, sizeof body, 20 * SEC);
        while (atomic_load(&f.relay.n_to_server) < STREAM_WINDOW)
                (void)hf_cancel_wait(hf_cancel_never(), in_msec(1));
        tcp_relay_await_held(&f.relay);
        atomic_fetch_add(&f.ahead, 60 * SEC);
        tcp_relay_hold(&f.relay, false);
        await(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_false(a.not_sent);
        exchange("/hello");
        assert_int_equal(f.http.n_handled, 2);
}

int main(void) {
        assert(hf__http_global_init() == 0);
        const struct CMUnitTest tests[] = {
                TEST(test_nothing_is_sent_when_a_handshake_ends_too_late),
                TEST(test_nothing_is_sent_too_late_on_a_shared_connection),
                TEST(test_the_rest_of_a_body_is_not_sent_too_late),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
