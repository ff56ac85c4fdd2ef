/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client engine over TLS with the real server: which server it trusts, which certificate
 * it sends, which name it checks, and a handshake that hangs. A relay in between counts
 * connections, and makes the first ones hang if the test wants that.
 */
#undef NDEBUG
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "http_fixture.h"
#include "tcp_relay.h"

#include <stdatomic.h>

#include <holdfast/cancel.h>

#include "base/http/engine.h"
#include "base/http/global.h"
#include "base/http/http_tls.h"

/* ---- the client's side ---- */

struct response {
        int outcome, code;
        char body[256], text[256];
        bool other_ca, done;
};

struct fixture {
        struct http_fixture http;
        struct tcp_relay relay;
        struct hf__http_engine *engine;
        pthread_mutex_t mu;
        pthread_cond_t cond;
};

static struct fixture f;

/* Like http_fixture_handle. /host responds with the authority of the request. */
static void handle_host(void *ctx, struct hfd_http_request *request) {
        if (strcmp(hfd_http_request_path(request), "/host") != 0) {
                http_fixture_handle(ctx, request);
                return;
        }
        const char *host = hfd_http_request_header(request, "host");
        http_fixture_respond(request, 200, host ? host : "(absent)");
        hfd_http_request_unref(request);
}

static void fixture_start(const char *server_cn, long valid_seconds) {
        struct hf_status status = {0};

        http_fixture_prepare(&f.http);
        x509_identity_deinit(&f.http.server);
        f.http.server = x509_identity_make(server_cn, NULL, &f.http.ca, false, valid_seconds);
        struct hfd_http_config config = http_fixture_config(&f.http);
        config.handler = handle_host;
        assert_int_equal(hfd_http_new(&f.http.host, &config, &f.http.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http.http), 0);
        tcp_relay_start(&f.relay, hfd_http_port(f.http.http));
        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.cond), 0);
        static struct hf_host host = {.size = sizeof host};
        assert_int_equal(hf__http_engine_new(&host, "test-http", &f.engine), 0);
}

static void fixture_stop(void) {
        f.engine = hf__http_engine_free(f.engine);
        tcp_relay_stop(&f.relay);
        http_fixture_stop(&f.http);
        pthread_cond_destroy(&f.cond);
        pthread_mutex_destroy(&f.mu);
}

static void on_done(void *ctx, const struct hf__http_result *result) {
        struct response *a = ctx;

        pthread_mutex_lock(&f.mu);
        a->outcome = result->outcome;
        a->code = result->code;
        snprintf(a->body, sizeof a->body, "%.*s", (int)result->n_body, (const char *)result->body);
        snprintf(a->text, sizeof a->text, "%s", result->error_text);
        a->other_ca = result->other_ca;
        a->done = true;
        pthread_cond_broadcast(&f.cond);
        pthread_mutex_unlock(&f.mu);
}

static uint64_t submit_to(struct response *a, const char *method, enum hf__http_version version,
                          struct hf__http_tls *tls, const char *url, hf_nsec within) {
        uint64_t id = 0;

        *a = (struct response){0};
        struct hf__http_request request = {
                .method = method,
                .url = url,
                .version = version,
                .tls = tls,
                .deadline = hf_now(hf_clock_system()) + within,
                .on_done = on_done,
                .ctx = a,
        };
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        return id;
}

static uint64_t submit_as(struct response *a, const char *method, enum hf__http_version version,
                          struct hf__http_tls *tls, const char *path, hf_nsec within) {
        char url[128];

        snprintf(url, sizeof url, "https://127.0.0.1:%u%s", f.relay.port, path);
        return submit_to(a, method, version, tls, url, within);
}

static uint64_t submit(struct response *a, struct hf__http_tls *tls, const char *path,
                       hf_nsec within) {
        return submit_as(a, "GET", HF__HTTP_ANY, tls, path, within);
}

static void wait_done(struct response *a) {
        const struct hf_clock *clock = hf_clock_system();

        pthread_mutex_lock(&f.mu);
        while (!a->done)
                assert_int_equal(clock->wait(clock->ctx, &f.cond, &f.mu,
                                             hf_now(clock) + 60 * HF_NSEC_PER_SEC),
                                 0);
        pthread_mutex_unlock(&f.mu);
}

static struct response get(const struct hf__http_tls_config *config, const char *path) {
        struct hf__http_tls *tls = NULL;
        struct response a;

        assert_int_equal(hf__http_tls_new(config, &tls), 0);
        submit(&a, tls, path, 30 * HF_NSEC_PER_SEC);
        hf__http_tls_unref(tls); /* the request has its own reference */
        wait_done(&a);
        return a;
}

/* ---- tests ---- */

static void test_only_the_given_ca_is_trusted(void **state) {
        fixture_start("127.0.0.1", 3600);
        struct x509_identity other = x509_identity_make("other-ca", NULL, NULL, true, 3600);
        struct response a =
                get(&(struct hf__http_tls_config){.ca_pem = f.http.ca.cert_pem}, "/hello");
        assert_int_equal(a.outcome, 0);
        assert_string_equal(a.body, "hello");
        assert_false(a.other_ca);
        a = get(&(struct hf__http_tls_config){.ca_pem = other.cert_pem}, "/hello");
        assert_int_equal(a.outcome, HF_E_UNAUTHORIZED);
        assert_true(a.other_ca);
        assert_true(a.text[0]);
        /* the system's CAs do not include it */
        a = get(&(struct hf__http_tls_config){0}, "/hello");
        assert_int_equal(a.outcome, HF_E_UNAUTHORIZED);
        assert_int_equal(f.http.n_handled, 1);
        a = get(&(struct hf__http_tls_config){.insecure = true}, "/hello");
        assert_int_equal(a.outcome, 0);
        x509_identity_deinit(&other);
        fixture_stop();
}

/*
 * The server has the request when its kept connection breaks, and has another certificate when curl
 * connects again. The refusal says nothing about the first connection.
 */
static void test_a_write_that_was_sent_does_not_end_as_refused(void **state) {
        struct hf__http_tls *tls = NULL;
        struct hf_status status = {0};
        struct response a;

        fixture_start("127.0.0.1", 3600);
        struct x509_identity other = x509_identity_make("127.0.0.1", NULL, NULL, true, 3600);
        const struct hf__http_tls_config config = {.ca_pem = f.http.ca.cert_pem};
        assert_int_equal(hf__http_tls_new(&config, &tls), 0);
        submit_as(&a, "GET", HF__HTTP_1_1, tls, "/hello", 60 * HF_NSEC_PER_SEC);
        wait_done(&a);
        assert_int_equal(a.outcome, 0);
        submit_as(&a, "POST", HF__HTTP_1_1, tls, "/hold", 60 * HF_NSEC_PER_SEC);
        struct hfd_http_request *held = http_fixture_take_held(&f.http);
        assert_int_equal(f.relay.n_accepted, 1);
        assert_int_equal(hfd_http_reload(f.http.http, other.cert_pem, other.key_pem,
                                         f.http.ca.cert_pem, &status),
                         0);
        tcp_relay_break(&f.relay, 0);
        wait_done(&a);
        assert_int_equal(f.relay.n_accepted, 2);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        hfd_http_request_unref(held);
        hf__http_tls_unref(tls);
        x509_identity_deinit(&other);
        fixture_stop();
}

static void test_an_expired_server_is_refused(void **state) {
        fixture_start("127.0.0.1", -60);
        struct response a =
                get(&(struct hf__http_tls_config){.ca_pem = f.http.ca.cert_pem}, "/hello");
        assert_int_equal(a.outcome, HF_E_UNAUTHORIZED);
        assert_false(a.other_ca);
        assert_int_equal(f.http.n_handled, 0);
        fixture_stop();
}

static void test_the_server_name_replaces_the_urls_host_in_tls_only(void **state) {
        char authority[64];

        fixture_start("holdfast.test", 3600);
        snprintf(authority, sizeof authority, "127.0.0.1:%u", f.relay.port);
        struct hf__http_tls_config config = {.ca_pem = f.http.ca.cert_pem};
        struct response a = get(&config, "/host"); /* the URL's host is not in the certificate */
        assert_int_equal(a.outcome, HF_E_UNAUTHORIZED);
        assert_false(a.other_ca);
        config.server_name = "elsewhere.test";
        assert_int_equal(get(&config, "/host").outcome, HF_E_UNAUTHORIZED);
        config.server_name = "holdfast.test";
        a = get(&config, "/host");
        assert_int_equal(a.outcome, 0);
        assert_string_equal(a.body, authority); /* the configured name is used for TLS only */
        fixture_stop();
}

static void test_a_malformed_url_is_invalid_with_a_server_name_too(void **state) {
        struct hf__http_tls_config config = {.insecure = true};
        const char *const names[] = {NULL, "holdfast.test"};

        fixture_start("127.0.0.1", 3600);
        for (size_t i = 0; i < 2; i++) {
                struct hf__http_tls *tls = NULL;
                struct response a;

                config.server_name = names[i];
                assert_int_equal(hf__http_tls_new(&config, &tls), 0);
                submit_to(&a, "GET", HF__HTTP_ANY, tls, "https://[bad", 30 * HF_NSEC_PER_SEC);
                hf__http_tls_unref(tls);
                wait_done(&a);
                assert_int_equal(a.outcome, HF_E_INVALID);
        }
        fixture_stop();
}

static void test_the_client_certificate_is_sent(void **state) {
        fixture_start("127.0.0.1", 3600);
        struct x509_identity me = x509_identity_make("me", "us", &f.http.ca, false, 3600),
                             stranger = x509_identity_make("x", "y", NULL, false, 3600);
        struct hf__http_tls_config config = {.ca_pem = f.http.ca.cert_pem};
        assert_string_equal(get(&config, "/peer").body, "none  -");
        config.cert_pem = me.cert_pem;
        config.key_pem = me.key_pem;
        assert_string_equal(get(&config, "/peer").body, "verified me us");
        /*
         * The key belongs to another certificate. The client detects this mistake before it sends
         * anything.
         */
        config.cert_pem = stranger.cert_pem;
        assert_int_equal(get(&config, "/peer").outcome, HF_E_UNAUTHORIZED);
        config.key_pem = stranger.key_pem;
        struct response a = get(&config, "/peer");
        assert_true(a.outcome == HF_E_UNAUTHORIZED || a.code == 401);
        /* A connection of one identity is never used for another. */
        config.cert_pem = config.key_pem = NULL;
        assert_string_equal(get(&config, "/peer").body, "none  -");
        x509_identity_deinit(&me);
        x509_identity_deinit(&stranger);
        fixture_stop();
}

static void test_requests_share_a_connection(void **state) {
        struct hf__http_tls *tls = NULL;
        struct response a[20];

        fixture_start("127.0.0.1", 3600);
        assert_int_equal(hf__http_tls_new(&(struct hf__http_tls_config){.ca_pem =
                                                                                f.http.ca.cert_pem},
                                          &tls),
                         0);
        for (int i = 0; i < 20; i++)
                submit(&a[i], tls, "/hold", 60 * HF_NSEC_PER_SEC);
        http_fixture_await(&f.http, &f.http.n_held,
                           20); /* all at the same time: HTTP/2 was negotiated */
        assert_int_equal(f.relay.n_accepted, 1);
        for (int i = 0; i < 20; i++) {
                struct hfd_http_request *request = http_fixture_take_held(&f.http);
                http_fixture_respond(request, 200, "held");
                hfd_http_request_unref(request);
        }
        for (int i = 0; i < 20; i++) {
                wait_done(&a[i]);
                assert_string_equal(a[i].body, "held");
        }
        hf__http_tls_unref(tls);
        fixture_stop();
}

/*
 * The handshake of a stream hangs, as with a dead backend behind a load balancer. A Lease renewal
 * must not wait until that times out.
 */
static void test_a_hanging_handshake_does_not_hold_up_the_lane(void **state) {
        struct hf__http_tls *tls = NULL;
        struct response stream, first, second;

        fixture_start("127.0.0.1", 3600);
        f.relay.n_hanging = 1;
        assert_int_equal(hf__http_tls_new(&(struct hf__http_tls_config){.ca_pem =
                                                                                f.http.ca.cert_pem},
                                          &tls),
                         0);
        uint64_t id = submit(&stream, tls, "/hello", 60 * HF_NSEC_PER_SEC);
        while (!f.relay.n_accepted)
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        submit(&first, tls, "/hello", HF_NSEC_PER_SEC); /* it waits for that connection */
        wait_done(&first);
        submit(&second, tls, "/hello", 20 * HF_NSEC_PER_SEC);
        wait_done(&second);
        assert_int_equal(second.outcome, 0);
        pthread_mutex_lock(&f.mu);
        assert_false(stream.done);
        pthread_mutex_unlock(&f.mu);
        hf__http_cancel(f.engine, id);
        wait_done(&stream);
        assert_int_equal(stream.outcome, HF_E_CANCELED);
        hf__http_tls_unref(tls);
        fixture_stop();
}

/* Many streams share as few connections as their number permits. */
static void test_many_streams_share_few_connections(void **state) {
        enum { N = 150 };
        static struct response a[N];
        struct hf__http_tls *tls = NULL;

        fixture_start("127.0.0.1", 3600);
        assert_int_equal(hf__http_tls_new(&(struct hf__http_tls_config){.ca_pem =
                                                                                f.http.ca.cert_pem},
                                          &tls),
                         0);
        for (int i = 0; i < N; i++)
                submit(&a[i], tls, "/hold", 60 * HF_NSEC_PER_SEC);
        http_fixture_await(&f.http, &f.http.n_held, N);
        assert_true(f.relay.n_accepted <= 4 + N / 64);
        for (int i = 0; i < N; i++) {
                struct hfd_http_request *request = http_fixture_take_held(&f.http);
                http_fixture_respond(request, 200, "held");
                hfd_http_request_unref(request);
        }
        for (int i = 0; i < N; i++) {
                wait_done(&a[i]);
                assert_string_equal(a[i].body, "held");
        }
        hf__http_tls_unref(tls);
        fixture_stop();
}

/* ---- a server that speaks HTTP/1.1 only, with responses that do not end ---- */

#define N_STREAMS 12

static struct {
        int fd;
        SSL_CTX *ctx;
        struct {
                pthread_t thread;
                int fd;
        } peer[2 * N_STREAMS];
        unsigned n_peers;
        atomic_uint n_served;
} old;

static void *serve_old(void *ctx) {
        static const char head[] =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
        int fd = *(int *)ctx;
        SSL *ssl = SSL_new(old.ctx);
        char data[4096];

        assert(ssl && SSL_set_fd(ssl, fd) == 1);
        if (SSL_accept(ssl) == 1 && SSL_read(ssl, data, sizeof data) > 0 &&
            SSL_write(ssl, head, sizeof head - 1) > 0) {
                atomic_fetch_add(&old.n_served, 1);
                while (SSL_read(ssl, data, sizeof data) > 0)
                        ;
        }
        SSL_free(ssl);
        return NULL;
}

static void *accept_old(void *ctx) {
        int fd;

        while ((fd = accept(old.fd, NULL, NULL)) >= 0) {
                assert(old.n_peers < 2 * N_STREAMS);
                old.peer[old.n_peers].fd = fd;
                assert(pthread_create(&old.peer[old.n_peers].thread, NULL, serve_old,
                                      &old.peer[old.n_peers].fd) == 0);
                old.n_peers++;
        }
        return NULL;
}

static uint16_t old_start(const struct x509_identity *me) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof in;
        BIO *cert = BIO_new_mem_buf(me->cert_pem, -1), *key = BIO_new_mem_buf(me->key_pem, -1);
        X509 *x509 = PEM_read_bio_X509(cert, NULL, NULL, NULL);
        EVP_PKEY *pkey = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

        old.ctx = SSL_CTX_new(TLS_server_method());
        assert_int_equal(SSL_CTX_use_certificate(old.ctx, x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(old.ctx, pkey), 1);
        X509_free(x509);
        EVP_PKEY_free(pkey);
        BIO_free(cert);
        BIO_free(key);
        old.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(old.fd, (struct sockaddr *)&in, sizeof in), 0);
        assert_int_equal(getsockname(old.fd, (struct sockaddr *)&in, &n), 0);
        assert_int_equal(listen(old.fd, 64), 0);
        return ntohs(in.sin_port);
}

/*
 * With HTTP/1.1 each stream needs its own connection and gets it: the limit of a lane applies only
 * to shared connections.
 */
static void test_streams_that_cannot_share_have_a_connection_each(void **state) {
        struct hf__http_tls *tls = NULL;
        struct response a[N_STREAMS];
        uint64_t ids[N_STREAMS];
        pthread_t thread;

        fixture_start("127.0.0.1", 3600);
        uint16_t real = f.relay.port;
        f.relay.port = old_start(&f.http.server);
        assert_int_equal(pthread_create(&thread, NULL, accept_old, NULL), 0);
        assert_int_equal(hf__http_tls_new(&(struct hf__http_tls_config){.ca_pem =
                                                                                f.http.ca.cert_pem},
                                          &tls),
                         0);
        for (int i = 0; i < N_STREAMS; i++)
                ids[i] = submit(&a[i], tls, "/watch", 60 * HF_NSEC_PER_SEC);
        while (atomic_load(&old.n_served) < N_STREAMS)
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        for (int i = 0; i < N_STREAMS; i++) {
                hf__http_cancel(f.engine, ids[i]);
                wait_done(&a[i]);
                assert_int_equal(a[i].outcome, HF_E_CANCELED);
        }
        hf__http_tls_unref(tls);
        shutdown(old.fd, SHUT_RDWR);
        pthread_join(thread, NULL);
        close(old.fd);
        f.relay.port = real;
        fixture_stop(); /* closes the client's sockets */
        for (unsigned i = 0; i < old.n_peers; i++) {
                pthread_join(old.peer[i].thread, NULL);
                close(old.peer[i].fd);
        }
        SSL_CTX_free(old.ctx);
}

int main(void) {
        assert(hf__http_global_init() == 0);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_the_given_ca_is_trusted),
                cmocka_unit_test(test_a_write_that_was_sent_does_not_end_as_refused),
                cmocka_unit_test(test_an_expired_server_is_refused),
                cmocka_unit_test(test_the_server_name_replaces_the_urls_host_in_tls_only),
                cmocka_unit_test(test_a_malformed_url_is_invalid_with_a_server_name_too),
                cmocka_unit_test(test_the_client_certificate_is_sent),
                cmocka_unit_test(test_requests_share_a_connection),
                cmocka_unit_test(test_many_streams_share_few_connections),
                cmocka_unit_test(test_streams_that_cannot_share_have_a_connection_each),
                cmocka_unit_test(test_a_hanging_handshake_does_not_hold_up_the_lane),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
