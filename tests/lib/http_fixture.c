/* SPDX-License-Identifier: Apache-2.0 */
/* See http_fixture.h. Callbacks run on the server's workers; mu guards all that they record. */
#include "http_fixture.h"
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "time_units.h"

/* The server's time limits use this clock. A test advances it instead of waiting for them. */
static hf_nsec skewed_boot_time(void *ctx) {
        struct http_fixture *f = ctx;

        return hf_now(hf_clock_system()) + atomic_load(&f->ahead);
}

static void count(struct http_fixture *f, unsigned *counter) {
        pthread_mutex_lock(&f->mu);
        (*counter)++;
        pthread_cond_broadcast(&f->cond);
        pthread_mutex_unlock(&f->mu);
}

static void on_gone(void *ctx) {
        struct http_fixture *f = ctx;

        count(f, &f->n_gone);
}

static void on_finished(void *ctx, int code, size_t n_bytes) {
        struct http_fixture *f = ctx;

        pthread_mutex_lock(&f->mu);
        f->last_code = code;
        f->last_bytes = n_bytes;
        pthread_mutex_unlock(&f->mu);
        count(f, &f->n_finished);
}

/* ---- the handler ---- */

void http_fixture_respond(struct hfd_http_request *request, int code, const char *text) {
        struct hf__buf *body = hf__buf_copy(text, strlen(text));

        hfd_http_request_reply(request, code, "text/plain", NULL, 0, body);
        hf__buf_unref(body);
}

static void respond_peer(struct hfd_http_request *request) {
        static const char *const kinds[] = {"none", "verified", "bad"};
        const struct hfd_client_cert cert = hfd_http_request_peer(request);
        char text[256];

        (void)snprintf(text, sizeof text, "%s %s %s", kinds[cert.kind], cert.common_name,
                       cert.n_organisations > 0 ? cert.organisations[0] : "-");
        http_fixture_respond(request, cert.kind == HFD_PEER_BAD ? 401 : 200, text);
}

static void respond_credential(struct hfd_http_request *request) {
        const struct hfd_client_cert cert = hfd_http_request_peer(request);
        char text[256];

        (void)snprintf(text, sizeof text, "uid=%s fingerprint=%s expires=%lld.", cert.uid,
                       cert.fingerprint, (long long)cert.expires);
        http_fixture_respond(request, 200, text);
}

static void respond_echo(struct hfd_http_request *request) {
        size_t n;
        const char *body = hfd_http_request_body(request, &n);
        struct hf__buf *copy = hf__buf_copy(body, n);

        hfd_http_request_reply(request, 200, "application/octet-stream", NULL, 0, copy);
        hf__buf_unref(copy);
}

static void hold_request(struct http_fixture *f, struct hfd_http_request *request) {
        pthread_mutex_lock(&f->mu);
        assert_true(f->n_held < HTTP_FIXTURE_MAX_HELD);
        f->held[f->n_held++] = request;
        pthread_cond_broadcast(&f->cond);
        pthread_mutex_unlock(&f->mu);
}

void http_fixture_handle(void *ctx, struct hfd_http_request *request) {
        struct http_fixture *f = ctx;
        const char *path = hfd_http_request_path(request);

        /* Registered for every request, so that tests can wait for the end of held requests. */
        hfd_http_request_on_gone(request, on_gone, f);
        hfd_http_request_on_finished(request, on_finished, f);
        count(f, &f->n_handled);
        if (strcmp(path, "/hold") == 0) {
                hold_request(f, request);
                return;
        }
        if (strcmp(path, "/echo") == 0) {
                respond_echo(request);
        } else if (strcmp(path, "/peer") == 0) {
                respond_peer(request);
        } else if (strcmp(path, "/credential") == 0) {
                respond_credential(request);
        } else if (strcmp(path, "/query") == 0) {
                http_fixture_respond(request, 200, hfd_http_request_query(request));
        } else if (strcmp(path, "/header") == 0) {
                const char *value = hfd_http_request_header(request, "x-test");
                http_fixture_respond(request, 200, value ? value : "(absent)");
        } else if (strcmp(path, "/hello") == 0) {
                http_fixture_respond(request, 200, "hello");
        } else {
                http_fixture_respond(request, 404, "no such page");
        }
        hfd_http_request_unref(request);
}

/* ---- starting and stopping ---- */

struct hfd_http_config http_fixture_config(struct http_fixture *f) {
        return (struct hfd_http_config){.bind_address = "127.0.0.1",
                                        .cert_pem = f->server.cert_pem,
                                        .key_pem = f->server.key_pem,
                                        .client_ca_pem = f->ca.cert_pem,
                                        .listen_fd = -1,
                                        .handler = http_fixture_handle,
                                        .ctx = f};
}

void http_fixture_prepare(struct http_fixture *f) {
        (void)signal(SIGPIPE, SIG_IGN); /* a test client may write to a closed connection */
        memset(f, 0, sizeof *f);
        f->clock = *hf_clock_system();
        f->clock.boot = skewed_boot_time;
        f->clock.ctx = f;
        f->host = (struct hf_host){.size = sizeof f->host, .clock = &f->clock};
        f->ca = x509_identity_make("test-ca", NULL, NULL, true, 3600);
        f->server = x509_identity_make("127.0.0.1", NULL, &f->ca, false, 3600);
        assert_int_equal(hf__mutex_cond_init(&f->mu, &f->cond), 0);
}

void http_fixture_start(struct http_fixture *f) {
        struct hf_status status = {0};

        http_fixture_prepare(f);
        const struct hfd_http_config config = http_fixture_config(f);
        assert_int_equal(hfd_http_new(&f->host, &config, &f->http, &status), 0);
        assert_int_equal(hfd_http_start(f->http), 0);
}

void http_fixture_stop(struct http_fixture *f) {
        f->http = hfd_http_free(f->http);
        for (unsigned i = f->n_taken; i < f->n_held; i++)
                hfd_http_request_unref(f->held[i]);
        x509_identity_deinit(&f->ca);
        x509_identity_deinit(&f->server);
        pthread_cond_destroy(&f->cond);
        pthread_mutex_destroy(&f->mu);
}

/* ---- waiting ---- */

unsigned http_fixture_read(struct http_fixture *f, const unsigned *counter) {
        pthread_mutex_lock(&f->mu);
        unsigned value = *counter;
        pthread_mutex_unlock(&f->mu);
        return value;
}

void http_fixture_await(struct http_fixture *f, const unsigned *counter, unsigned n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = in_msec(TLS_CLIENT_WAIT_S * 1000);
        int r = 0;

        pthread_mutex_lock(&f->mu);
        while (*counter < n && r == 0)
                r = clock->wait(clock->ctx, &f->cond, &f->mu, until);
        unsigned got = *counter;
        pthread_mutex_unlock(&f->mu);
        if (got < n)
                fail_msg("waited for %u, got %u", n, got);
}

struct hfd_http_request *http_fixture_take_held(struct http_fixture *f) {
        http_fixture_await(f, &f->n_held, f->n_taken + 1);
        return f->held[f->n_taken++];
}

void http_fixture_skip_time(struct http_fixture *f, hf_nsec by) { atomic_fetch_add(&f->ahead, by); }
