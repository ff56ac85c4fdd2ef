/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP request without a connection, for tests of filters and handlers. It replaces the
 * functions for handlers of server/http/request/ at link time, so it is a separate library
 * (fake_request in tests/meson.build) that only these tests link. The test decides when the
 * response has been sent.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/http/http.h"

struct hfd_http_request {
        int refs;
        hf_nsec received_at;
        /* the request: set by the test before it is handled, borrowed */
        const char *method, *path, *query, *authorization;
        struct hfd_header given[4]; /* other headers, names in lower case; ends with a NULL name */
        size_t n_given_body;        /* the length of its body; the bytes are not there */
        enum hfd_peer_cert peer;
        int64_t expires;               /* of the certificate; 0 = never */
        const char *common_name, *uid; /* uid NULL = none */
        const char *organisations[32];
        size_t n_organisations;
        /* what the handler has attached to the request */
        void *context;
        void (*context_free)(void *context);
        void *allocated;
        void *connection_context; /* the request is alone on its connection */
        void (*connection_context_free)(void *context);
        void (*finished)(void *ctx, int code, size_t n_bytes);
        void *finished_ctx;
        /* the test calls it for a slow reader */
        void (*unsent)(void *ctx, size_t n_bytes, bool waits);
        void *unsent_ctx;
        void (*continuation)(void *ctx); /* of hfd_http_request_continue; the test runs it */
        void *continuation_ctx;
        hf_nsec read_at; /* set by the test: boot time when the client last read; 0 = it reads */
        bool cut;        /* the response was cut, because the client has stalled */
        struct hfd_header own; /* of the response, set by on_head */
        /* the response */
        int code; /* 0 = none yet */
        char content_type[128];
        char headers[1024]; /* "name: value\n" each */
        char body[65536];
        size_t n_body;
};

/* Creates a request with two references: one for the handler, one for the test. */
struct hfd_http_request *fake_request_new(const char *method, const char *path, const char *query);
/* Creates one with the client certificate of a member of system:masters. */
struct hfd_http_request *fake_request_new_admin(const char *method, const char *path,
                                                const char *query);
/* Runs the function that hfd_http_request_continue has received, as the worker would. */
void fake_request_run_continuation(struct hfd_http_request *request);
/* The client leaves before it has a response. */
void fake_request_leave(struct hfd_http_request *request);
/* Reports that the response was sent completely. */
void fake_request_finish(struct hfd_http_request *request);
/*
 * Finishes the request, asserts that the handler has dropped its reference, and drops the test's.
 */
void fake_request_free(struct hfd_http_request *request);
