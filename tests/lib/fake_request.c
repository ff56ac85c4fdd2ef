/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_request.h. It asserts that a request gets only one response. */
#include "fake_request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hfd_http_request *fake_request_new(const char *method, const char *path, const char *query) {
        struct hfd_http_request *request = calloc(1, sizeof *request);

        assert(request);
        request->received_at = hf_now(hf_clock_system());
        request->refs = 2;
        request->method = method;
        request->path = path;
        request->query = query;
        return request;
}

struct hfd_http_request *fake_request_new_admin(const char *method, const char *path,
                                                const char *query) {
        struct hfd_http_request *request = fake_request_new(method, path, query);

        request->peer = HFD_PEER_VERIFIED;
        request->common_name = "admin";
        request->organisations[0] = "system:masters";
        request->n_organisations = 1;
        return request;
}

void fake_request_run_continuation(struct hfd_http_request *request) {
        void (*continuation)(void *ctx) = request->continuation;

        assert(continuation);
        request->continuation = NULL;
        continuation(request->continuation_ctx);
}

void fake_request_leave(struct hfd_http_request *request) {
        assert(request->code == 0);
        request->finished(request->finished_ctx, 0, 0);
        request->finished = NULL;
        request->continuation = NULL;
}

void fake_request_finish(struct hfd_http_request *request) {
        assert(request->code != 0);
        if (request->finished)
                request->finished(request->finished_ctx, request->code, request->n_body);
        request->finished = NULL;
}

void fake_request_free(struct hfd_http_request *request) {
        fake_request_finish(request);
        assert(request->refs == 1);
        hfd_http_request_unref(request);
}

/* ---- the interface of server/http/request/http_request.c ---- */

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request) {
        request->refs++;
        return request;
}

struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request) {
        assert(request->refs > 0);
        if (--request->refs > 0)
                return NULL;
        if (request->context_free)
                request->context_free(request->context);
        if (request->connection_context)
                request->connection_context_free(request->connection_context);
        free(request->allocated);
        free(request);
        return NULL;
}

void hfd_http_request_continue(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        assert(request->code == 0 && !request->continuation);
        if (!request->finished)
                return; /* the client has left */
        request->continuation = fn;
        request->continuation_ctx = ctx;
}

const char *hfd_http_request_body(struct hfd_http_request *request, size_t *ret_n) {
        *ret_n = request->n_given_body;
        return "";
}

const char *hfd_http_request_method(struct hfd_http_request *request) { return request->method; }
const char *hfd_http_request_path(struct hfd_http_request *request) { return request->path; }
const char *hfd_http_request_query(struct hfd_http_request *request) { return request->query; }
const char *hfd_http_request_protocol(struct hfd_http_request *request) { return "HTTP/1.1"; }
const char *hfd_http_request_remote(struct hfd_http_request *request) { return "127.0.0.1:1"; }
hf_nsec hfd_http_request_received_at(struct hfd_http_request *request) {
        return request->received_at;
}
void *hfd_http_request_context(struct hfd_http_request *request) { return request->context; }

const char *hfd_http_request_header(struct hfd_http_request *request, const char *name) {
        for (size_t i = 0; request->given[i].name; i++)
                if (strcmp(request->given[i].name, name) == 0)
                        return request->given[i].value;
        return strcmp(name, "authorization") == 0 ? request->authorization : NULL;
}

const char *hfd_http_request_header_like(struct hfd_http_request *request, const char *prefix,
                                         size_t i, const char **ret_name) {
        for (size_t at = 0; request->given[at].name; at++)
                if (strncmp(request->given[at].name, prefix, strlen(prefix)) == 0 && i-- == 0) {
                        *ret_name = request->given[at].name;
                        return request->given[at].value;
                }
        return NULL;
}

struct hfd_client_cert hfd_http_request_peer(struct hfd_http_request *request) {
        return (struct hfd_client_cert){.kind = request->peer,
                                        .expires = request->expires ? request->expires : INT64_MAX,
                                        .common_name = request->common_name,
                                        .organisations = request->organisations,
                                        .n_organisations = request->n_organisations,
                                        .uid = request->uid ? request->uid : "",
                                        .fingerprint = "a1b2"};
}

void hfd_http_request_set_context(struct hfd_http_request *request, void *context,
                                  void (*free_fn)(void *context)) {
        request->context = context;
        request->context_free = free_fn;
}

void *hfd_http_request_connection_context(struct hfd_http_request *request) {
        return request->connection_context;
}

void hfd_http_request_set_connection_context(struct hfd_http_request *request, void *context,
                                             void (*free_fn)(void *context)) {
        if (request->connection_context)
                request->connection_context_free(request->connection_context);
        request->connection_context = context;
        request->connection_context_free = free_fn;
}

void *hfd_http_request_allocate(struct hfd_http_request *request, size_t n) {
        assert(!request->allocated);
        request->allocated = malloc(n);
        return request->allocated;
}

void hfd_http_request_free_allocated(struct hfd_http_request *request) {
        free(request->allocated);
        request->allocated = NULL;
}

bool hfd_http_request_call(struct hfd_http_request *request, struct hfd_http_call *call) {
        return false;
}

const void *hfd_http_request_worker(struct hfd_http_request *request) { return NULL; }

void hfd_http_request_set_response_header(struct hfd_http_request *request, const char *name,
                                          const char *value) {
        assert(!request->own.name && request->code == 0);
        request->own = (struct hfd_header){name, value};
}

void hfd_http_request_share_response_headers(struct hfd_http_request *request,
                                             const struct hfd_checked_header *headers, size_t n) {
        assert(request->code == 0 && headers && n > 0);
}

void hfd_http_request_on_finished(struct hfd_http_request *request,
                                  void (*fn)(void *ctx, int code, size_t n_bytes), void *ctx) {
        request->finished = fn;
        request->finished_ctx = ctx;
}

void hfd_http_request_on_unsent(struct hfd_http_request *request,
                                void (*fn)(void *ctx, size_t n_bytes, bool waits), void *ctx) {
        request->unsent = fn;
        request->unsent_ctx = ctx;
}

bool hfd_http_request_cut_stalled(struct hfd_http_request *request, hf_nsec since) {
        bool cut = !request->cut && request->read_at != 0 && request->read_at < since;

        request->cut |= cut;
        return cut;
}

void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body) {
        size_t n = 0;

        assert(request->code == 0);
        request->code = code;
        (void)snprintf(request->content_type, sizeof request->content_type, "%s", content_type);
        for (size_t i = 0; i < n_headers; i++) {
                n += (size_t)snprintf(request->headers + n, sizeof request->headers - n, "%s: %s\n",
                                      headers[i].name, headers[i].value);
                assert(n < sizeof request->headers);
        }
        if (!body)
                return;
        assert(body->n < sizeof request->body);
        memcpy(request->body, body->data, body->n);
        request->n_body = body->n;
}
