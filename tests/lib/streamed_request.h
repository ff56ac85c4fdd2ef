/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP request without a connection, whose response is streamed. It replaces the functions of
 * server/http/request/ that watches and large lists call, so it is a separate library
 * (streamed_request in tests/meson.build) that only their tests link. Its client reads everything
 * at once. Other than the requests of fake_request.h, several threads may use one.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/http/http.h"

struct hfd_http_request {
        pthread_mutex_t mu;
        pthread_cond_t cond; /* broadcast after each change */
        /* guarded by mu */
        int refs;
        char text[65536];        /* what was pushed: the end of it is missing if it does not fit */
        size_t n_text, n_pushed; /* the bytes in text, and all that were pushed */
        bool ended, freed;
        /* set before the request is served */
        bool may_be_refused; /* false: a reply that is not streamed ends the test */
        void *context;
        void (*context_free)(void *context);
        void *gone_ctx;
        void (*gone)(void *ctx); /* the test calls it: the client leaves */
        /* Called by hfd_http_request_free_allocated; set by the test. NULL = nothing to do. */
        void (*free_allocated)(void);
};

/* Begins with one reference, which the handler takes over. */
void streamed_request_init(struct hfd_http_request *request);
/* Waits until all references are dropped. */
void streamed_request_done(struct hfd_http_request *request);
