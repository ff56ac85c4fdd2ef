/* SPDX-License-Identifier: Apache-2.0 */
/* See streamed_request.h. What a client must never see ends the test. */
#include "streamed_request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/thread.h"
#include "patience.h"

void streamed_request_init(struct hfd_http_request *request) {
        memset(request, 0, sizeof *request);
        int r = hf__mutex_cond_init(&request->mu, &request->cond);
        assert(r == 0);
        request->refs = 1;
}

void streamed_request_done(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        PATIENCE_AWAIT_LOCKED(&request->cond, &request->mu, request->freed);
        pthread_mutex_unlock(&request->mu);
        pthread_cond_destroy(&request->cond);
        pthread_mutex_destroy(&request->mu);
}

/* ---- the interface of server/http/request/ ---- */

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        request->refs++;
        pthread_mutex_unlock(&request->mu);
        return request;
}

struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        bool last = --request->refs == 0;
        pthread_mutex_unlock(&request->mu);
        if (last)
                request->context_free(request->context);
        pthread_mutex_lock(&request->mu);
        request->freed = request->freed || last;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
        return NULL;
}

void hfd_http_request_set_handler_context(struct hfd_http_request *request, void *context,
                                          void (*free_fn)(void *context)) {
        request->context = context;
        request->context_free = free_fn;
}

/* NULL: the request is not audited. */
void *hfd_http_request_context(struct hfd_http_request *request) { return NULL; }

void hfd_http_request_on_gone(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        request->gone = fn;
        request->gone_ctx = ctx;
}

void hfd_http_request_on_drained(struct hfd_http_request *request, size_t low,
                                 void (*fn)(void *ctx), void *ctx) {}

void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers) {
        assert(code == 200);
}

int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece) {
        pthread_mutex_lock(&request->mu);
        if (request->n_text == request->n_pushed &&
            piece->n <= sizeof request->text - request->n_text) {
                memcpy(request->text + request->n_text, piece->data, piece->n);
                request->n_text += piece->n;
        }
        request->n_pushed += piece->n;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
        return 0;
}

void hfd_http_request_end(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        request->ended = true;
        pthread_cond_broadcast(&request->cond);
        pthread_mutex_unlock(&request->mu);
}

void hfd_http_request_cut(struct hfd_http_request *request) {
        (void)fprintf(stderr, "the response was cut\n");
        abort();
}

bool hfd_http_request_cut_stalled(struct hfd_http_request *request, hf_nsec since) { return false; }
size_t hfd_http_request_unsent(struct hfd_http_request *request) { return 0; }
const char *hfd_http_request_method(struct hfd_http_request *request) { return "GET"; }
const char *hfd_http_request_query(struct hfd_http_request *request) { return ""; }
const char *hfd_http_request_header(struct hfd_http_request *request, const char *name) {
        return NULL;
}
void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body) {
        if (request->may_be_refused)
                return;
        (void)fprintf(stderr, "the request was refused with %d\n", code);
        abort();
}

void hfd_http_request_free_allocated(struct hfd_http_request *request) {
        if (request->free_allocated)
                request->free_allocated();
}
