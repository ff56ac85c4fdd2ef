/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the HTTP server's tests share: certificates made on the spot, a server on a free port with a
 * handler that does as the path says, and a blocking TLS client. Each read of the client has a
 * deadline, so that a test fails instead of hanging.
 *
 * Paths: /hello answers "hello"; /echo the body; /query the query; /header the header x-test; /peer
 * the client certificate; /hold is kept for the test, which takes it with take_held (it owns the
 * reference).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "server/http/http.h"

#define HELPER       __attribute__((unused)) static
#define PATIENCE_S   20
#define MAX_HELD     300
#define ANSWER_SPACE (4u << 20)

/* ---- certificates ---- */

struct identity {
        EVP_PKEY *key;
        X509 *cert;
        char *cert_pem, *key_pem;
};

static char *pem_text(BIO *bio) {
        char *data, *text;
        long n = BIO_get_mem_data(bio, &data);

        text = strndup(data, (size_t)n);
        BIO_free(bio);
        return text;
}

/* issuer NULL = signs itself. seconds: how long it is valid; negative = expired. */
HELPER struct identity make_identity(const char *cn, const char *organisation,
                                     const struct identity *issuer, bool ca, long seconds) {
        static int serial;
        struct identity id = {.key = EVP_EC_gen("P-256"), .cert = X509_new()};
        X509_NAME *name = X509_get_subject_name(id.cert);
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints,
                                                  ca ? "critical,CA:TRUE" : "CA:FALSE");
        BIO *bio;

        X509_set_version(id.cert, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(id.cert), ++serial);
        X509_gmtime_adj(X509_getm_notBefore(id.cert), -7200);
        X509_gmtime_adj(X509_getm_notAfter(id.cert), seconds);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
        if (organisation)
                X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
                                           (const unsigned char *)organisation, -1, -1, 0);
        X509_set_issuer_name(id.cert, issuer ? X509_get_subject_name(issuer->cert) : name);
        X509_set_pubkey(id.cert, id.key);
        X509_add_ext(id.cert, ext, -1);
        X509_EXTENSION_free(ext);
        assert_true(X509_sign(id.cert, issuer ? issuer->key : id.key, EVP_sha256()) > 0);
        bio = BIO_new(BIO_s_mem());
        PEM_write_bio_X509(bio, id.cert);
        id.cert_pem = pem_text(bio);
        bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PrivateKey(bio, id.key, NULL, NULL, 0, NULL, NULL);
        id.key_pem = pem_text(bio);
        return id;
}

HELPER void drop_identity(struct identity *id) {
        EVP_PKEY_free(id->key);
        X509_free(id->cert);
        free(id->cert_pem);
        free(id->key_pem);
}

/* ---- the server ---- */

struct fixture {
        struct hf_host host;
        struct hf_clock clock; /* the system's, ahead by `skew` */
        hf_nsec skew;          /* atomic */
        struct identity ca, server;
        struct hfd_http *http;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct hfd_http_request *held[MAX_HELD]; /* guarded by mu, as all below */
        unsigned n_held, n_taken, n_gone, n_finished, n_handled;
        int last_code;
        size_t last_bytes;
};

static hf_nsec skewed_boot(void *ctx) {
        struct fixture *f = ctx;

        return hf_now(hf_clock_system()) + __atomic_load_n(&f->skew, __ATOMIC_RELAXED);
}

HELPER void answer_text(struct hfd_http_request *request, int code, const char *text) {
        struct hf__buf *body = hf__buf_copy(text, strlen(text));

        hfd_http_request_reply(request, code, "text/plain", NULL, 0, body);
        hf__buf_unref(body);
}

static void count(struct fixture *f, unsigned *counter) {
        pthread_mutex_lock(&f->mu);
        (*counter)++;
        pthread_cond_broadcast(&f->cond);
        pthread_mutex_unlock(&f->mu);
}

static void on_gone(void *ctx) {
        struct fixture *f = ctx;

        count(f, &f->n_gone);
}

static void on_finished(void *ctx, int code, size_t n_bytes) {
        struct fixture *f = ctx;

        pthread_mutex_lock(&f->mu);
        f->last_code = code;
        f->last_bytes = n_bytes;
        pthread_mutex_unlock(&f->mu);
        count(f, &f->n_finished);
}

static void answer_peer(struct hfd_http_request *request) {
        static const char *const kinds[] = {"none", "verified", "bad"};
        const char *cn, *const *organisations;
        size_t n;
        enum hfd_peer_cert kind = hfd_http_request_peer(request, &cn, &organisations, &n);
        char text[256];

        snprintf(text, sizeof text, "%s %s %s", kinds[kind], cn, n ? organisations[0] : "-");
        answer_text(request, kind == HFD_PEER_BAD ? 401 : 200, text);
}

static void handle(void *ctx, struct hfd_http_request *request) {
        struct fixture *f = ctx;
        const char *path = hfd_http_request_path(request), *body, *value;
        size_t n;

        hfd_http_request_on_gone(request, on_gone, f);
        hfd_http_request_on_finished(request, on_finished, f);
        count(f, &f->n_handled);
        if (strcmp(path, "/hold") == 0) {
                pthread_mutex_lock(&f->mu);
                assert_true(f->n_held < MAX_HELD);
                f->held[f->n_held++] = request;
                pthread_cond_broadcast(&f->cond);
                pthread_mutex_unlock(&f->mu);
                return;
        }
        if (strcmp(path, "/echo") == 0) {
                struct hf__buf *copy;

                body = hfd_http_request_body(request, &n);
                copy = hf__buf_copy(body, n);
                hfd_http_request_reply(request, 200, "application/octet-stream", NULL, 0, copy);
                hf__buf_unref(copy);
        } else if (strcmp(path, "/peer") == 0) {
                answer_peer(request);
        } else if (strcmp(path, "/query") == 0) {
                answer_text(request, 200, hfd_http_request_query(request));
        } else if (strcmp(path, "/header") == 0) {
                value = hfd_http_request_header(request, "x-test");
                answer_text(request, 200, value ? value : "(absent)");
        } else if (strcmp(path, "/hello") == 0) {
                answer_text(request, 200, "hello");
        } else {
                answer_text(request, 404, "no such page");
        }
        hfd_http_request_unref(request);
}

HELPER struct hfd_http_config basic_config(struct fixture *f) {
        return (struct hfd_http_config){.bind_address = "127.0.0.1",
                                        .cert_pem = f->server.cert_pem,
                                        .key_pem = f->server.key_pem,
                                        .client_ca_pem = f->ca.cert_pem,
                                        .listen_fd = -1,
                                        .handler = handle,
                                        .ctx = f};
}

/* Everything but the server itself. */
HELPER void fixture_prepare(struct fixture *f) {
        signal(SIGPIPE,
               SIG_IGN); /* the client writes to connections that the server may have closed */
        memset(f, 0, sizeof *f);
        f->clock = *hf_clock_system();
        f->clock.boot = skewed_boot;
        f->clock.ctx = f;
        f->host = (struct hf_host){.size = sizeof f->host, .clock = &f->clock};
        f->ca = make_identity("test-ca", NULL, NULL, true, 3600);
        f->server = make_identity("127.0.0.1", NULL, &f->ca, false, 3600);
        pthread_mutex_init(&f->mu, NULL);
        hf_cond_init(&f->cond);
}

HELPER void fixture_start(struct fixture *f) {
        struct hf_status status = {0};
        struct hfd_http_config config;

        fixture_prepare(f);
        config = basic_config(f);
        assert_int_equal(hfd_http_new(&f->host, &config, &f->http, &status), 0);
        assert_int_equal(hfd_http_start(f->http), 0);
}

HELPER void fixture_stop(struct fixture *f) {
        f->http = hfd_http_free(f->http);
        for (unsigned i = f->n_taken; i < f->n_held; i++)
                hfd_http_request_unref(f->held[i]);
        drop_identity(&f->ca);
        drop_identity(&f->server);
        pthread_cond_destroy(&f->cond);
        pthread_mutex_destroy(&f->mu);
}

/* Waits until *counter is at least n. */
HELPER void await(struct fixture *f, const unsigned *counter, unsigned n) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PATIENCE_S;
        pthread_mutex_lock(&f->mu);
        while (*counter < n)
                if (pthread_cond_timedwait(&f->cond, &f->mu, &until))
                        break;
        if (*counter < n) {
                unsigned got = *counter;

                pthread_mutex_unlock(&f->mu);
                fail_msg("waited for %u, got %u", n, got);
        }
        pthread_mutex_unlock(&f->mu);
}

HELPER struct hfd_http_request *take_held(struct fixture *f) {
        await(f, &f->n_held, f->n_taken + 1);
        return f->held[f->n_taken++];
}

HELPER void skip_time(struct fixture *f, hf_nsec by) {
        __atomic_add_fetch(&f->skew, by, __ATOMIC_RELAXED);
}

/* ---- the client ---- */

struct client {
        int fd;
        SSL_CTX *ctx;
        SSL *ssl;
        char *in; /* what was read and not yet used */
        size_t n_in;
};

HELPER int dial(uint16_t port, int rcvbuf) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct timeval patience = {.tv_sec = PATIENCE_S};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        if (rcvbuf)
                setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
                close(fd);
                return -1;
        }
        return fd;
}

/* alpn: "h2", "http/1.1" or NULL. 0 = connected. */
HELPER int client_open(struct client *c, uint16_t port, const char *alpn, const struct identity *id,
                       int rcvbuf) {
        unsigned char wire[32];

        *c = (struct client){.fd = dial(port, rcvbuf)};
        if (c->fd < 0)
                return -1;
        c->ctx = SSL_CTX_new(TLS_client_method());
        if (id) {
                SSL_CTX_use_certificate(c->ctx, id->cert);
                SSL_CTX_use_PrivateKey(c->ctx, id->key);
        }
        c->ssl = SSL_new(c->ctx);
        SSL_set_fd(c->ssl, c->fd);
        if (alpn) {
                wire[0] = (unsigned char)strlen(alpn);
                memcpy(wire + 1, alpn, wire[0]);
                SSL_set_alpn_protos(c->ssl, wire, wire[0] + 1u);
        }
        c->in = malloc(ANSWER_SPACE);
        return SSL_connect(c->ssl) == 1 ? 0 : -1;
}

HELPER void client_close(struct client *c) {
        SSL_free(c->ssl);
        SSL_CTX_free(c->ctx);
        if (c->fd >= 0)
                close(c->fd);
        free(c->in);
        *c = (struct client){.fd = -1};
}

HELPER void client_send(struct client *c, const void *data, size_t n) {
        size_t done = 0;

        while (done < n) {
                int w = SSL_write(c->ssl, (const char *)data + done, (int)(n - done));

                if (w <= 0)
                        return; /* the server closed: the test sees it when it reads */
                done += (size_t)w;
        }
}

HELPER void client_puts(struct client *c, const char *text) { client_send(c, text, strlen(text)); }

/* Reads once more into in; false at the end. */
HELPER bool client_more(struct client *c) {
        int n;

        assert_true(c->n_in + 1 < ANSWER_SPACE);
        n = SSL_read(c->ssl, c->in + c->n_in, (int)(ANSWER_SPACE - c->n_in - 1));
        if (n <= 0)
                return false;
        c->n_in += (size_t)n;
        c->in[c->n_in] = '\0';
        return true;
}

/* True when the server closes without sending more than what is dropped here. */
HELPER bool client_closed(struct client *c) {
        do
                c->n_in = 0;
        while (client_more(c));
        return SSL_get_error(c->ssl, -1) != SSL_ERROR_WANT_READ; /* else our patience ended */
}

HELPER void client_use(struct client *c, size_t n) {
        memmove(c->in, c->in + n, c->n_in - n + 1);
        c->n_in -= n;
}

/* Waits for text in what is read; NULL when the connection ended without. */
HELPER char *client_await(struct client *c, const char *text) {
        char *at;

        if (c->n_in == 0)
                c->in[0] = '\0';
        while (!(at = memmem(c->in, c->n_in, text, strlen(text))))
                if (!client_more(c))
                        return NULL;
        return at;
}
