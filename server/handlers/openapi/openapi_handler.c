/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and sends OpenAPI documents.
 *
 * Invariant: a document that is not cached is made on the pool of threads, because that takes
 * milliseconds. The index has the hashes of all documents of v3, so it may have to make each of
 * them first.
 */
#include "server/handlers/openapi/openapi_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/filters/media_type.h"
#include "server/filters/request_context.h"
#include "server/handlers/gzip.h"
#include "server/handlers/openapi/document_cache.h"
#include "server/handlers/openapi/document_maker.h"
#include "server/handlers/openapi/openapi.h"
#include "server/handlers/rest/rest_request.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/resources/custom/served_rows.h"

#define CACHE_BYTES ((size_t)4 << 20) /* of compressed documents */
/* For a URL with the hash of the document, which always leads to the same text: a year, as in
 * Kubernetes. */
#define FOREVER "public, immutable, max-age=31536000"

struct hfd_openapi_handler {
        struct hfd_registry *registry;    /* borrowed */
        struct hfd_document_cache *cache; /* owned */
};

/* A request for a document. */
struct request {
        struct hfd_work_task task;
        struct hfd_openapi_handler *handler;   /* borrowed */
        struct hfd_http_request *http_request; /* owned reference */
        struct hfd_served_rows *rows;          /* owned */
        struct hfd_openapi_document document;
        struct hfd_document_key key;
};

int hfd_openapi_handler_new(struct hfd_registry *registry,
                            struct hfd_openapi_handler **ret_handler) {
        struct hfd_openapi_handler *handler = calloc(1, sizeof *handler);

        if (!handler)
                return -ENOMEM;
        handler->registry = registry;
        int r = hfd_document_cache_new(CACHE_BYTES, &handler->cache);
        if (r != 0) {
                free(handler);
                return r;
        }
        *ret_handler = handler;
        return 0;
}

struct hfd_openapi_handler *hfd_openapi_handler_free(struct hfd_openapi_handler *handler) {
        if (handler)
                hfd_document_cache_free(handler->cache);
        free(handler);
        return NULL;
}

/* ---- the response ---- */

static void free_request(struct request *request) {
        hfd_served_rows_free(request->rows);
        hfd_http_request_unref(request->http_request);
        free(request);
}

/* Sends a Status, and empties response. */
static void send_status(struct request *request, struct hfd_response *response) {
        hfd_rest_respond(request->http_request, NULL, response, NULL);
        hfd_response_done(response);
}

static void send_no_memory(struct request *request) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        send_status(request, &response);
}

/* Whether the query names a hash, which says for which state of the document the URL was made. */
static bool names_hash(const char *query, const char **ret_hash, size_t *ret_n) {
        while (query && strncmp(query, "hash=", 5) != 0) {
                query = strchr(query, '&');
                query += query != NULL;
        }
        if (!query)
                return false;
        *ret_hash = query + 5;
        *ret_n = strcspn(query + 5, "&");
        return *ret_n > 0;
}

/* Redirects the client to the URL with the document's current hash, which is its ETag without the
 * quotes. The client has an index from before a change. With a 200 it would keep the new document
 * under the old hash for a year. */
static void redirect_request(struct request *request, const struct hfd_document *document) {
        struct hf__strbuf url = {0};

        hfd_openapi_put_document_path(&url, request->rows, &request->document);
        hf__strbuf_printf(&url, "?hash=%.*s", HFD_DOCUMENT_HASH_DIGITS, document->etag + 1);
        const struct hfd_header headers[] = {{"location", url.data ? url.data : ""}};
        if (url.error == 0)
                hfd_http_request_reply(request->http_request, 301, NULL, headers, 1, NULL);
        else
                send_no_memory(request);
        hf__strbuf_done(&url);
}

/* plain: the document without compression; NULL = it was cached. The last header is only for the
 * compressed form. */
static void send_document(struct request *request, const struct hfd_document *document,
                          struct hf__buf *plain) {
        struct hfd_http_request *http_request = request->http_request;
        const char *seen = hfd_http_request_header(http_request, "if-none-match"), *hash;
        size_t n_hash;
        bool with_hash = request->document.kind == HFD_OPENAPI_V3 &&
                         names_hash(hfd_http_request_query(http_request), &hash, &n_hash);
        const struct hfd_header headers[] = {{"etag", document->etag},
                                             {"cache-control",
                                              with_hash ? FOREVER : "no-cache, private"},
                                             {"vary", "Accept, Accept-Encoding"},
                                             {"content-encoding", "gzip"}};
        const char *type = hfd_openapi_type_of(&request->document);

        if (with_hash && (n_hash != HFD_DOCUMENT_HASH_DIGITS ||
                          strncmp(hash, document->etag + 1, n_hash) != 0)) {
                redirect_request(request, document);
        } else if (seen && strcmp(seen, document->etag) == 0) {
                hfd_http_request_reply(http_request, 304, NULL, headers, 3, NULL);
        } else if (document->packed && hfd_gzip_is_accepted(http_request)) {
                hfd_http_request_reply(http_request, 200, type, headers, 4, document->packed);
        } else {
                struct hf__buf *body =
                        plain ? hf__buf_ref(plain)
                              : hfd_document_cache_unpack(request->handler->cache,
                                                          request->key.name, document);
                if (body)
                        hfd_http_request_reply(http_request, 200, type, headers, 3, body);
                else
                        send_no_memory(request);
                hf__buf_unref(body);
        }
}

/* If the document is in the cache, sends it, frees request and returns true. */
static bool serve_cached(struct request *request) {
        struct hfd_document document;

        if (!hfd_document_cache_find(request->handler->cache, request->key.name,
                                     request->key.fingerprint, &document))
                return false;
        send_document(request, &document, NULL);
        hf__buf_unref(document.packed);
        free_request(request);
        return true;
}

/* Makes the document, sends it, and caches it. Frees request. */
static void serve_new(struct request *request) {
        struct hfd_document document;
        struct hf__buf *plain = hfd_document_make(request->handler->cache, request->rows,
                                                  &request->document, &request->key, &document);

        if (plain) {
                send_document(request, &document, plain);
                hf__buf_unref(document.packed);
                hf__buf_unref(plain);
        } else {
                send_no_memory(request);
        }
        free_request(request);
}

/* ---- on the pool ---- */

static void refuse_request(struct request *request, int r) {
        struct hfd_response response = {0};

        hfd_large_work_refuse(r, &response);
        send_status(request, &response);
        free_request(request);
}

/* A document whose client has left is not made: many such requests would keep the pool busy. `gone`
 * is read relaxed, because a document that is made in vain does no harm. */
static enum hfd_work_result make_step(struct hfd_work_task *task) {
        struct request *request = (struct request *)((char *)task - offsetof(struct request, task));
        const struct hfd_request_context *context = hfd_request_context(request->http_request);

        if (hfd_work_is_cancelled(request->handler->registry->work, task) ||
            atomic_load_explicit(&context->departure.gone, memory_order_relaxed))
                refuse_request(request, HF_E_CANCELED);
        else if (!serve_cached(request)) /* another request may have made it meanwhile */
                serve_new(request);
        return HFD_WORK_DONE;
}

static void make_on_pool(struct request *request) {
        const struct hfd_request_context *context = hfd_request_context(request->http_request);

        request->task =
                (struct hfd_work_task){.step = make_step, .owner = hfd_work_owner(context->user)};
        int r = hfd_large_work_submit(request->handler->registry, &request->task, true);
        if (r != 0)
                refuse_request(request, r);
}

/* ---- the request ---- */

/* Chooses the form of the document by the header Accept, which the index ignores, as in
 * kube-apiserver. False: the client accepts none. */
static bool negotiate_type(struct request *request) {
        const char *accept = hfd_http_request_header(request->http_request, "accept");
        struct hfd_openapi_document *document = &request->document;
        struct hfd_media_type types[HFD_ACCEPT_TYPES];
        char copy[HFD_ACCEPT_MAX];

        if (document->kind == HFD_OPENAPI_INDEX || !accept || !*accept ||
            strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        size_t n = hfd_media_types_parse(copy, types);
        for (size_t i = 0; i < n; i++) {
                document->protobuf = hfd_openapi_is_protobuf(document, types[i].type);
                if (document->protobuf || hfd_media_type_is_json(&types[i]))
                        return true;
        }
        return false;
}

/* Finds the document that a GET or HEAD asks for, in a form that the client accepts. False: there
 * is none, or the method is another one, and the response was sent. */
static bool find_document(struct request *request) {
        static const struct hfd_header vary = {"vary", "Accept"};
        const char *method = hfd_http_request_method(request->http_request);
        struct hfd_response response = {0};

        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
                hfd_response_not_allowed(&response);
        } else if (!hfd_openapi_find(request->rows, hfd_http_request_path(request->http_request),
                                     &request->document)) {
                hfd_response_no_such_resource(&response);
        } else if (!negotiate_type(request)) { /* without a Status, as in kube-apiserver */
                hfd_http_request_reply(request->http_request, 406, NULL, &vary, 1, NULL);
                return false;
        } else {
                return true;
        }
        send_status(request, &response);
        return false;
}

/* Takes ownership of request. */
static void serve_document(struct request *request) {
        if (!find_document(request)) {
                free_request(request);
        } else if (hfd_document_key(request->rows, &request->document, &request->key) != 0) {
                send_no_memory(request);
                free_request(request);
        } else if (!serve_cached(request)) {
                make_on_pool(request);
        }
}

void hfd_openapi_handle(void *ctx, struct hfd_http_request *http_request) {
        struct hfd_openapi_handler *handler = ctx;
        struct request on_stack = {.http_request = http_request},
                       *request = malloc(sizeof *request);
        struct hfd_served_rows *rows =
                hfd_served_rows_new(hfd_cacher_table(handler->registry->cacher));

        if (!request || !rows) {
                send_no_memory(&on_stack);
                hfd_served_rows_free(rows);
                free(request);
                hfd_http_request_unref(http_request);
                return;
        }
        *request = (struct request){.handler = handler, .http_request = http_request, .rows = rows};
        serve_document(request);
}
