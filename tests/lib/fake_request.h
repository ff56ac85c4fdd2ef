/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request of the HTTP server without a connection, for tests of what stands behind the server. It
 * takes the place of server/http/http_request.c at link time, so it is a library of its own
 * (fake_request_dep) that only such tests link. The test decides when a response has gone out.
 */
#include <stddef.h>

#include "server/http/http.h"

struct hfd_http_request {
        int refs;
        hf_nsec received_at;
        /* the request; set by the test before it is handled, borrowed */
        const char *method, *path, *query, *authorization;
        enum hfd_peer_cert peer;
        const char *common_name;
        const char *organisations[32];
        size_t n_organisations;
        /* what the handler has attached */
        void *context;
        void (*context_free)(void *context);
        void (*finished)(void *ctx, int code, size_t n_bytes);
        void *finished_ctx;
        /* the response */
        int code; /* 0 = none yet */
        char content_type[128];
        char headers[1024]; /* "name: value\n" each */
        char body[65536];
        size_t n_body;
};

/* Made with two references: the handler's, and the test's. */
struct hfd_http_request *fake_request_new(const char *method, const char *path, const char *query);
/* The same with the certificate of a member of system:masters. */
struct hfd_http_request *fake_request_new_admin(const char *method, const char *path,
                                                const char *query);
/* The response has gone out to its last byte. */
void fake_request_finish(struct hfd_http_request *request);
/* Finishes it, asserts that the handler has dropped its reference, and drops the test's. */
void fake_request_free(struct hfd_http_request *request);
