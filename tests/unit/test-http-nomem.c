/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing allocations and thread creations in the HTTP server: while it is made, and while it
 * accepts a connection. Each scenario runs again and again, and its n-th allocation fails, for
 * every n. The allocations of OpenSSL and nghttp2's own code are outside.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "http_fixture.h"
#include "patience.h"

#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"

static struct http_fixture f;

static int set_up(void **state) {
        http_fixture_prepare(&f);
        return 0;
}

static int tear_down(void **state) {
        http_fixture_stop(&f);
        return 0;
}

static void server_life(int n) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *http = NULL;

        config.n_workers = 2;
        failing_memory_arm(n);
        int r = hfd_http_new(&f.host, &config, &http, &status);
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (http != NULL));
        assert_true((r == 0) == (status.message[0] == '\0'));
        int started = r == 0 ? hfd_http_start(http) : 0;
        failing_memory_disarm();
        assert_true(started == 0 || is_shortage(started));
        hfd_http_free(http);
}

static void test_a_server_is_made_whole_or_not_at_all(void **state) {
        failing_memory_try_all(server_life, 8);
}

static bool is_served(const char *alpn) {
        struct tls_client client;
        bool is_open = tls_client_open(&client, hfd_http_port(f.http), alpn, NULL, 0) == 0;

        if (is_open)
                tls_client_puts(&client, HELLO);
        bool served = is_open && tls_client_await(&client, "hello") != NULL;
        tls_client_close(&client);
        return served;
}

/* A connection that finds no memory costs only itself. */
static void connection_life(int n) {
        const struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};

        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        failing_memory_enter(); /* the client's memory is not at stake */
        failing_memory_arm(n);
        bool served = is_served("http/1.1");
        PATIENCE_AWAIT(hfd_http_n_connections(f.http) == 0);
        failing_memory_disarm();
        assert_true(served || failing_memory_hit());
        assert_true(is_served("http/1.1"));
        failing_memory_leave();
        f.http = hfd_http_free(f.http);
}

static void test_a_connection_without_memory_is_closed(void **state) {
        failing_memory_try_all(connection_life, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_server_is_made_whole_or_not_at_all),
                TEST(test_a_connection_without_memory_is_closed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
