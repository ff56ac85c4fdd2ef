/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, makes and sends OpenAPI documents.
 *
 * Invariant: a document is cached under a fingerprint of everything in it that can change while the
 * process runs, which is the definitions of custom resources. So a document from the cache is never
 * older than the rows that the request has found.
 */
#include "server/handlers/openapi/openapi_handler.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/filters/media_type.h"
#include "server/filters/request_context.h"
#include "server/handlers/gzip.h"
#include "server/handlers/openapi/document_cache.h"
#include "server/handlers/openapi/openapi.h"
#include "server/handlers/rest/rest_request.h"
#include "server/pool/work_pool.h"
#include "server/registry/large_work.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/served_rows.h"

#define CACHE_BYTES ((size_t)4 << 20)
#define ETAG_DIGITS 64

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
        char name[HFD_DOCUMENT_NAME_MAX];
        uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT];
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

static void free_request(struct request *request) {
        hfd_served_rows_free(request->rows);
        hfd_http_request_unref(request->http_request);
        free(request);
}

/* ---- the response ---- */

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

/* plain: the document without compression; NULL = it was cached. */
static void send_document(struct request *request, const struct hfd_document *document,
                          struct hf__buf *plain) {
        static const char no_cache[] = "no-cache, private";
        struct hfd_http_request *http_request = request->http_request;
        const char *seen = hfd_http_request_header(http_request, "if-none-match");
        const struct hfd_header headers[] = {{"etag", document->etag},
                                             {"cache-control", no_cache},
                                             {"vary", "Accept, Accept-Encoding"},
                                             {"content-encoding", "gzip"}};
        const char *type = request->document.protobuf ? HFD_OPENAPI_V2_TYPE : "application/json";

        if (seen && strcmp(seen, document->etag) == 0) {
                hfd_http_request_reply(http_request, 304, NULL, headers, 3, NULL);
        } else if (document->packed && hfd_gzip_is_accepted(http_request)) {
                hfd_http_request_reply(http_request, 200, type, headers, 4, document->packed);
        } else {
                struct hf__buf *body =
                        plain ? hf__buf_ref(plain) : hfd_gzip_unpack(document->packed, document->n);
                if (body)
                        hfd_http_request_reply(http_request, 200, type, headers, 3, body);
                else
                        send_no_memory(request);
                hf__buf_unref(body);
        }
}

/* Makes the document, sends it, and keeps it. Frees request. */
static void make_document(struct request *request) {
        struct hf__buf *plain = hfd_openapi_render(request->rows, &request->document);
        struct hfd_document document = {0};

        if (!plain) {
                send_no_memory(request);
                free_request(request);
                return;
        }
        document.packed = hfd_gzip_pack(plain);
        document.n = plain->n;
        document.etag[0] = '"';
        hf__sha256_text(plain->data, plain->n, ETAG_DIGITS, document.etag + 1);
        memcpy(document.etag + 1 + ETAG_DIGITS, "\"", 2);
        if (document.packed)
                hfd_document_cache_add(request->handler->cache, request->name, request->fingerprint,
                                       &document);
        send_document(request, &document, plain);
        hf__buf_unref(document.packed);
        hf__buf_unref(plain);
        free_request(request);
}

/* ---- on the pool ---- */

static void refuse(struct request *request, int r) {
        struct hfd_response response = {0};

        hfd_large_work_refuse(r, &response);
        send_status(request, &response);
        free_request(request);
}

static enum hfd_work_result make_step(struct hfd_work_task *task) {
        struct request *request = (struct request *)((char *)task - offsetof(struct request, task));
        const struct hfd_request_context *context = hfd_request_context(request->http_request);

        if (hfd_work_is_cancelled(request->handler->registry->work, task) ||
            atomic_load_explicit(&context->finished, memory_order_relaxed))
                refuse(request, HF_E_CANCELED);
        else
                make_document(request);
        return HFD_WORK_DONE;
}

static void make_on_pool(struct request *request) {
        const struct hfd_request_context *context = hfd_request_context(request->http_request);

        request->task =
                (struct hfd_work_task){.step = make_step, .owner = hfd_work_owner(context->user)};
        int r = hfd_large_work_submit(request->handler->registry, &request->task, true);
        if (r != 0)
                refuse(request, r);
}

/* ---- the request ---- */

/* Chooses the form of the document by the header Accept. False: the client accepts none. */
static bool negotiate(struct request *request) {
        const char *accept = hfd_http_request_header(request->http_request, "accept");
        struct hfd_media_type media;
        char copy[HFD_ACCEPT_MAX], *save = NULL;

        if (!accept || !*accept || strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save)) {
                if (!hfd_media_type_parse(e, &media))
                        continue;
                request->document.protobuf = request->document.kind == HFD_OPENAPI_V2 &&
                                             hfd_openapi_v2_is_protobuf(media.type);
                if (request->document.protobuf || (hfd_media_type_is_json(&media) && !*media.as))
                        return true;
        }
        return false;
}

/* Sets the name and the fingerprint of the document. *ret_has_custom: it contains custom resources.
 * 0 or -ENOMEM. */
static int identify(struct request *request, bool *ret_has_custom) {
        static const char *const names[] = {[HFD_OPENAPI_INDEX] = "index", [HFD_OPENAPI_V2] = "v2"};
        const struct hfd_openapi_document *document = &request->document;
        const struct hfd_resource *first = request->rows->of[document->first];
        struct hf__strbuf hashes = {0};

        if (document->kind == HFD_OPENAPI_V3)
                (void)snprintf(request->name, sizeof request->name, "v3/%s/%s", first->group,
                               first->version);
        else
                (void)snprintf(request->name, sizeof request->name, "%s%s", names[document->kind],
                               document->protobuf ? " protobuf" : "");
        for (size_t i = document->first; i < document->end; i++) {
                const struct hfd_custom_version *custom = request->rows->of[i]->custom;
                if (custom)
                        hf__strbuf_add(&hashes, custom->kind->hash, sizeof custom->kind->hash);
        }
        int r = hashes.error;
        *ret_has_custom = hashes.n > 0;
        if (r == 0)
                hf__sha256(hashes.data ? hashes.data : "", hashes.n, request->fingerprint);
        hf__strbuf_done(&hashes);
        return r;
}

/* Whether there is such a document, in a form that the client accepts. False: the response was
 * sent. */
static bool find_document(struct request *request) {
        const char *method = hfd_http_request_method(request->http_request);
        struct hfd_response response = {0};

        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
                hfd_response_not_allowed(&response);
        else if (!hfd_openapi_find(request->rows, hfd_http_request_path(request->http_request),
                                   &request->document))
                hfd_response_no_such_resource(&response);
        else if (!negotiate(request))
                hfd_response_status(&response, HF_E_INVALID, 406, "NotAcceptable",
                                    "only the following media types are accepted: application/json",
                                    NULL);
        else
                return true;
        send_status(request, &response);
        return false;
}

/* Frees request. */
static void serve(struct request *request) {
        struct hfd_document document;
        bool has_custom;

        if (!find_document(request)) {
                free_request(request);
        } else if (identify(request, &has_custom) != 0) {
                send_no_memory(request);
                free_request(request);
        } else if (hfd_document_cache_find(request->handler->cache, request->name,
                                           request->fingerprint, &document)) {
                send_document(request, &document, NULL);
                hf__buf_unref(document.packed);
                free_request(request);
        } else if (has_custom) {
                make_on_pool(request);
        } else {
                make_document(request);
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
        serve(request);
}
