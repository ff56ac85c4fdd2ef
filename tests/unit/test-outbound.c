/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to other servers over HTTPS, through the real module and to a real TLS server. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "h2_echo_server.h"
#include "patience.h"
#include "server/outbound/outbound.h"
#include "text_asserts.h"

static struct h2_echo_server *server; /* large */
static struct hf_host host;
static struct hfd_outbound *outbound;
static char url[128];

struct answer {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        enum hfd_outbound_end end;
        int code;
        char body[300], text[600];
};

static void on_done(void *ctx, const struct hfd_outbound_result *result) {
        struct answer *answer = ctx;

        pthread_mutex_lock(&answer->mu);
        assert_false(answer->done);
        answer->done = true;
        answer->end = result->end;
        answer->code = result->code;
        (void)snprintf(answer->body, sizeof answer->body, "%.*s", (int)result->n_body,
                       (const char *)result->body);
        (void)snprintf(answer->text, sizeof answer->text, "%s", result->text);
        pthread_cond_broadcast(&answer->cond);
        pthread_mutex_unlock(&answer->mu);
}

static void answer_init(struct answer *answer) {
        *answer = (struct answer){0};
        assert_int_equal(hf__mutex_cond_init(&answer->mu, &answer->cond), 0);
}

static void answer_await(struct answer *answer) {
        pthread_mutex_lock(&answer->mu);
        PATIENCE_AWAIT_LOCKED(&answer->cond, &answer->mu, answer->done);
        pthread_mutex_unlock(&answer->mu);
        pthread_mutex_destroy(&answer->mu);
        pthread_cond_destroy(&answer->cond);
}

/* A POST of the text to the server, which trusts the server's certificate. */
static struct hfd_outbound_request request_of(const char *text, struct answer *answer) {
        return (struct hfd_outbound_request){.url = url,
                                             .ca_pem = server->identity.cert_pem,
                                             .body = text,
                                             .n_body = strlen(text),
                                             .deadline = in_msec(PATIENCE_MSEC),
                                             .done = on_done,
                                             .ctx = answer};
}

static struct answer post(struct hfd_outbound_request request) {
        struct answer answer;

        answer_init(&answer);
        request.ctx = &answer;
        assert_int_equal(hfd_outbound_post_json(outbound, &request, NULL), 0);
        answer_await(&answer);
        return answer;
}

static void start(const char *module) {
        const struct hfd_outbound_config config = {.module = module};

        (void)signal(SIGPIPE, SIG_IGN);
        server = calloc(1, sizeof *server);
        assert_non_null(server);
        h2_echo_server_start(server);
        (void)snprintf(url, sizeof url, "https://localhost:%d/hook?timeout=10s", server->base.port);
        host = (struct hf_host){.size = sizeof host};
        assert_int_equal(hfd_outbound_new(&host, &config, &outbound), 0);
}

static int setup(void **state) {
        start(OUTBOUND_MODULE);
        return 0;
}

static int teardown(void **state) {
        outbound = hfd_outbound_free(outbound);
        h2_echo_server_stop(server);
        free(server);
        return 0;
}

/* ---- answers ---- */

static void test_a_call_gets_the_answer_of_the_server(void **state) {
        struct answer answer = post(request_of("echo", NULL));

        assert_int_equal(answer.end, HFD_OUTBOUND_ANSWERED);
        assert_int_equal(answer.code, 200);
        assert_string_equal(answer.body, "echo");
        assert_string_equal(answer.text, "");
}

static void test_calls_share_a_connection(void **state) {
        for (int i = 0; i < 5; i++)
                assert_int_equal(post(request_of("echo", NULL)).end, HFD_OUTBOUND_ANSWERED);
        assert_int_equal(atomic_load(&server->base.n_connections), 1);
}

static void test_a_call_can_go_to_an_address_that_is_not_the_urls(void **state) {
        struct hfd_outbound_request request = request_of("echo", NULL);
        char to[32];

        (void)snprintf(to, sizeof to, "127.0.0.1:%d", server->base.port);
        request.url = "https://localhost:1/hook";
        request.connect_to = to;
        assert_string_equal(post(request).body, "echo");
}

/* ---- failures ---- */

static void test_a_server_of_another_ca_is_untrusted(void **state) {
        struct x509_identity other = x509_identity_make("other", "other", NULL, true, 3600);
        struct hfd_outbound_request request = request_of("echo", NULL);
        char expected[300];

        request.ca_pem = other.cert_pem;
        struct answer answer = post(request);
        assert_int_equal(answer.end, HFD_OUTBOUND_UNTRUSTED);
        (void)snprintf(expected, sizeof expected,
                       "Post \"%s\": tls: failed to verify certificate: x509: certificate signed "
                       "by "
                       "unknown authority",
                       url);
        assert_string_equal(answer.text, expected);
        x509_identity_deinit(&other);
}

static void test_a_certificate_for_another_name_is_untrusted(void **state) {
        struct hfd_outbound_request request = request_of("echo", NULL);
        char to[32];

        (void)snprintf(to, sizeof to, "127.0.0.1:%d", server->base.port);
        request.url = "https://hook.ns.svc:443/x";
        request.connect_to = to;
        struct answer answer = post(request);
        assert_int_equal(answer.end, HFD_OUTBOUND_UNTRUSTED);
        assert_string_equal(answer.text,
                            "Post \"https://hook.ns.svc:443/x\": tls: failed to verify "
                            "certificate: x509: certificate is not valid for hook.ns.svc");
}

static void test_a_closed_port_is_unreachable(void **state) {
        struct hfd_outbound_request request = request_of("echo", NULL);

        request.url = "https://127.0.0.1:1/hook";
        struct answer answer = post(request);
        assert_int_equal(answer.end, HFD_OUTBOUND_UNREACHABLE);
        assert_string_equal(answer.text, "Post \"https://127.0.0.1:1/hook\": dial tcp 127.0.0.1:1: "
                                         "connect: connection refused");
}

static void test_a_hung_server_holds_nobody_else(void **state) {
        struct hfd_outbound_request hung = request_of("never", NULL);
        struct answer answer;

        hung.deadline = in_msec(300);
        answer_init(&answer);
        hung.ctx = &answer;
        assert_int_equal(hfd_outbound_post_json(outbound, &hung, NULL), 0);
        assert_string_equal(post(request_of("echo", NULL)).body, "echo");
        answer_await(&answer);
        assert_int_equal(answer.end, HFD_OUTBOUND_TIMED_OUT);
        assert_in(answer.text, "\": context deadline exceeded");
}

static void test_an_answer_that_is_too_long_is_refused(void **state) {
        struct hfd_outbound_request request = request_of("l5000", NULL);

        request.max_response = 4000;
        assert_int_equal(post(request).end, HFD_OUTBOUND_TOO_LARGE);
}

static void test_a_call_is_repeated_once_if_it_may_be(void **state) {
        struct hfd_outbound_request request = request_of("close", NULL);

        assert_int_equal(post(request).end, HFD_OUTBOUND_BROKEN);
        assert_int_equal(atomic_load(&server->base.n_connections), 1);
        request.may_repeat = true;
        struct answer answer = post(request);
        assert_int_equal(answer.end, HFD_OUTBOUND_BROKEN);
        assert_in(answer.text, "\": EOF");
        assert_int_equal(atomic_load(&server->base.n_connections), 3);
}

static void test_what_is_no_https_url_is_refused(void **state) {
        struct answer answer;
        struct hfd_outbound_request request = request_of("echo", &answer);

        request.url = "http://localhost/";
        assert_int_equal(hfd_outbound_post_json(outbound, &request, NULL), HF_E_INVALID);
        request.url = "https://a:b@localhost/";
        assert_int_equal(hfd_outbound_post_json(outbound, &request, NULL), HF_E_INVALID);
}

/* Also while the module is not loaded yet. */
static void test_a_request_with_too_many_headers_is_refused_at_once(void **state) {
        const char *headers[HFD_OUTBOUND_MAX_HEADERS + 1];
        struct hfd_outbound_request request = request_of("echo", NULL);

        for (size_t i = 0; i <= HFD_OUTBOUND_MAX_HEADERS; i++)
                headers[i] = "X-Name: value";
        request.method = "GET";
        request.headers = headers;
        for (int loaded = 0; loaded < 2; loaded++) {
                request.n_headers = HFD_OUTBOUND_MAX_HEADERS + 1;
                assert_int_equal(hfd_outbound_send(outbound, &request, NULL), -EINVAL);
                (void)post(request_of("echo", NULL));
        }
}

static void test_a_missing_module_is_named(void **state) {
        outbound = hfd_outbound_free(outbound);
        const struct hfd_outbound_config config = {.module = "/nonexistent/holdfastd-outbound.so"};
        assert_int_equal(hfd_outbound_new(&host, &config, &outbound), 0);
        for (int i = 0; i < 2; i++) {
                struct answer answer = post(request_of("echo", NULL));
                assert_int_equal(answer.end, HFD_OUTBOUND_LOCAL);
                assert_in(answer.text, "cannot load /nonexistent/holdfastd-outbound.so");
                assert_in(answer.text, "installed together with holdfastd");
        }
}

/* ---- canceling and stopping ---- */

static void test_a_canceled_call_ends(void **state) {
        struct hfd_outbound_request request = request_of("never", NULL);
        struct answer answer;
        uint64_t id = 0;

        for (int loaded = 0; loaded < 2; loaded++) {
                answer_init(&answer);
                request.ctx = &answer;
                assert_int_equal(hfd_outbound_post_json(outbound, &request, &id), 0);
                hfd_outbound_cancel(outbound, id);
                answer_await(&answer);
                assert_int_equal(answer.end, HFD_OUTBOUND_CANCELED);
        }
        hfd_outbound_cancel(outbound, id);
        hfd_outbound_cancel(outbound, 4711);
}

static void test_freeing_ends_all_calls(void **state) {
        static struct answer answers[20];
        struct hfd_outbound_request request = request_of("never", NULL);

        for (int loaded = 0; loaded < 2; loaded++) {
                if (loaded)
                        (void)post(request_of("echo", NULL));
                for (size_t i = 0; i < 20; i++) {
                        answer_init(&answers[i]);
                        request.ctx = &answers[i];
                        assert_int_equal(hfd_outbound_post_json(outbound, &request, NULL), 0);
                }
                hfd_outbound_stop(outbound);
                assert_int_equal(hfd_outbound_post_json(outbound, &request, NULL), HF_E_CLOSED);
                outbound = hfd_outbound_free(outbound);
                for (size_t i = 0; i < 20; i++) {
                        assert_true(answers[i].done);
                        assert_int_equal(answers[i].end, HFD_OUTBOUND_CANCELED);
                        answer_await(&answers[i]);
                }
                const struct hfd_outbound_config config = {.module = OUTBOUND_MODULE};
                assert_int_equal(hfd_outbound_new(&host, &config, &outbound), 0);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_call_gets_the_answer_of_the_server),
                TEST(test_calls_share_a_connection),
                TEST(test_a_call_can_go_to_an_address_that_is_not_the_urls),
                TEST(test_a_server_of_another_ca_is_untrusted),
                TEST(test_a_certificate_for_another_name_is_untrusted),
                TEST(test_a_closed_port_is_unreachable),
                TEST(test_a_hung_server_holds_nobody_else),
                TEST(test_an_answer_that_is_too_long_is_refused),
                TEST(test_a_call_is_repeated_once_if_it_may_be),
                TEST(test_what_is_no_https_url_is_refused),
                TEST(test_a_request_with_too_many_headers_is_refused_at_once),
                TEST(test_a_missing_module_is_named),
                TEST(test_a_canceled_call_ends),
                TEST(test_freeing_ends_all_calls),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
