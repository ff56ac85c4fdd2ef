/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP server on a free port, with certificates of its own and a handler that does as the path
 * says:
 *
 *      /hello   200, "hello"                /peer   what the client's certificate says
 *      /echo    200, the body               /hold   kept for http_fixture_take_held()
 *      /query   200, the query              else    404
 *      /header  200, the header x-test
 *
 * The host's clock can be set ahead. The server's threads count what they see; a test waits for it.
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
        struct hf_clock clock; /* the system's, ahead by `ahead` */
        _Atomic(hf_nsec) ahead;
        struct x509_identity ca, server;
        struct hfd_http *http;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        /* guarded by mu */
        struct hfd_http_request *held[HTTP_FIXTURE_MAX_HELD];
        unsigned n_held, n_taken;               /* of them, the test has taken the first n_taken */
        unsigned n_handled, n_finished, n_gone; /* requests */
        int last_code;                          /* of the last finished one */
        size_t last_bytes;
};

void http_fixture_start(struct http_fixture *f);
void http_fixture_stop(struct http_fixture *f);
/* Instead of start: everything but the server itself, for a test with a configuration of its own.
 */
void http_fixture_prepare(struct http_fixture *f);
struct hfd_http_config http_fixture_config(struct http_fixture *f);

/* Waits until *counter, one of the fixture's, is at least n. */
void http_fixture_await(struct http_fixture *f, const unsigned *counter, unsigned n);
/* Waits for the next request for /hold. The reference is the caller's. */
struct hfd_http_request *http_fixture_take_held(struct http_fixture *f);
void http_fixture_skip_time(struct http_fixture *f, hf_nsec by);

/* The handler, and a response of plain text, for handlers of the test's own. */
void http_fixture_handle(void *ctx, struct hfd_http_request *request);
void http_fixture_respond(struct hfd_http_request *request, int code, const char *text);
