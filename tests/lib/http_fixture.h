/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP server on a free port, with its own certificates and a handler that depends on the
 * path:
 *
 *      /hello   200, "hello"                /peer   what the client's certificate says
 *      /echo    200, the body               /hold   held for http_fixture_take_held()
 *      /query   200, the query              else    404
 *      /header  200, the header x-test      /credential  the uid and the fingerprint
 *
 * A test can advance the host's clock. The server's threads update counters that a test waits for.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "server/http/http.h"
#include "tls_client.h"
#include "x509_identity.h"

#define HTTP_FIXTURE_MAX_HELD 300

struct http_fixture {
        struct hf_host host;
        struct hf_clock clock; /* the system clock plus `ahead` */
        _Atomic(hf_nsec) ahead;
        struct x509_identity ca, server;
        struct hfd_http *http;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        /* guarded by mu */
        struct hfd_http_request *held[HTTP_FIXTURE_MAX_HELD];
        unsigned n_held, n_taken; /* the test has taken the first n_taken of the held requests */
        unsigned n_handled, n_finished, n_gone; /* counts of requests */
        int last_code;                          /* status of the last finished request */
        size_t last_bytes;
};

/* The process ignores SIGPIPE from now on. */
void http_fixture_start(struct http_fixture *f);
/* Also drops the held requests that were not taken. f->http may be NULL. */
void http_fixture_stop(struct http_fixture *f);
/* Replaces start for a test with its own configuration: does all of it except for the server. */
void http_fixture_prepare(struct http_fixture *f);
struct hfd_http_config http_fixture_config(struct http_fixture *f);

/* Waits until *counter, a counter of the fixture, is at least n. The test fails after
 * TLS_CLIENT_WAIT_S. */
void http_fixture_await(struct http_fixture *f, const unsigned *counter, unsigned n);
/* A counter now. */
unsigned http_fixture_read(struct http_fixture *f, const unsigned *counter);
/* Waits likewise for the next request to /hold. The caller takes over the reference. Thread:
 * one. */
struct hfd_http_request *http_fixture_take_held(struct http_fixture *f);
void http_fixture_skip_time(struct http_fixture *f, hf_nsec by);

/* The default handler, and a plain-text response for handlers that a test defines. */
void http_fixture_handle(void *ctx, struct hfd_http_request *request);
void http_fixture_respond(struct hfd_http_request *request, int code, const char *text);
