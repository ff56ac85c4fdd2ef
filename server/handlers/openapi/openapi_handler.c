/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, makes and sends OpenAPI documents.
 *
 * Invariant: a document is cached under a fingerprint of everything in it that can change while the
 * process runs, which is the definitions of custom resources. So a document from the cache always
 * fits the rows that the request has found.
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
#include "server/registry/base/large_work.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/served_rows.h"

#define CACHE_BYTES ((size_t)4 << 20)
#define ETAG_DIGITS 64
/* For a URL with the hash of the document: a year, as in Kubernetes. */
#define FOR_EVER "public, immutable, max-age=31536000"

_Static_assert(ETAG_DIGITS < HFD_OPENAPI_HASH_MAX, "a hash fits");

struct hfd_openapi_handler {
        struct hfd_registry *registry;    /* borrowed */
        struct hfd_document_cache *cache; /* owned */
};

/* The key of a document in the cache. */
struct key {
        char name[HFD_DOCUMENT_NAME_MAX];
        uint8_t fingerprint[HFD_DOCUMENT_FINGERPRINT];
        bool has_custom; /* the document contains custom resources */
};

/* A request for a document. */
struct request {
        struct hfd_work_task task;
        struct hfd_openapi_handler *handler;   /* borrowed */
        struct hfd_http_request *http_request; /* owned reference */
        struct hfd_served_rows *rows;          /* owned */
        struct hfd_openapi_document document;
        struct key key;
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

/* ---- documents ---- */

/* 0 or -ENOMEM. */
static int make_key(const struct hfd_served_rows *rows, const struct hfd_openapi_document *document,
                    struct key *ret_key) {
        static const char *const names[] = {[HFD_OPENAPI_INDEX] = "index", [HFD_OPENAPI_V2] = "v2"};
        const struct hfd_resource *first = rows->of[document->first];
        struct hf__strbuf hashes = {0};

        if (document->kind == HFD_OPENAPI_V3)
                (void)snprintf(ret_key->name, sizeof ret_key->name, "v3/%s/%s", first->group,
                               first->version);
        else
                (void)snprintf(ret_key->name, sizeof ret_key->name, "%s%s", names[document->kind],
                               document->protobuf ? " protobuf" : "");
        for (size_t i = document->first; i < document->end; i++) {
                const struct hfd_custom_version *custom = rows->of[i]->custom;
                if (custom)
                        hf__strbuf_add(&hashes, custom->kind->hash, sizeof custom->kind->hash);
        }
        int r = hashes.error;
        ret_key->has_custom = hashes.n > 0;
        if (r == 0)
                hf__sha256(hashes.data ? hashes.data : "", hashes.n, ret_key->fingerprint);
        hf__strbuf_done(&hashes);
        return r;
}

static int hash_of(void *ctx, const struct hfd_served_rows *rows,
                   const struct hfd_openapi_document *document,
                   char ret_hash[HFD_OPENAPI_HASH_MAX]);

/* Makes a document, and keeps it. Returns it without compression. The caller has a reference to it
 * and to ret_document->packed. NULL: out of memory. */
static struct hf__buf *make_document(struct hfd_openapi_handler *handler,
                                     const struct hfd_served_rows *rows,
                                     const struct hfd_openapi_document *document,
                                     const struct key *key, struct hfd_document *ret_document) {
        struct hf__buf *plain = hfd_openapi_render(rows, document, hash_of, handler);

        if (!plain)
                return NULL;
        *ret_document = (struct hfd_document){.packed = hfd_gzip_pack(plain), .n = plain->n};
        ret_document->etag[0] = '"';
        hf__sha256_text(plain->data, plain->n, ETAG_DIGITS, ret_document->etag + 1);
        memcpy(ret_document->etag + 1 + ETAG_DIGITS, "\"", 2);
        if (ret_document->packed)
                hfd_document_cache_add(handler->cache, key->name, key->fingerprint, ret_document);
        return plain;
}

/* An hfd_openapi_hash_fn. The hash is the ETag without its quotes, so the document is made if it is
 * not cached. The index is cached itself, so this happens only after a change. */
static int hash_of(void *ctx, const struct hfd_served_rows *rows,
                   const struct hfd_openapi_document *document,
                   char ret_hash[HFD_OPENAPI_HASH_MAX]) {
        struct hfd_openapi_handler *handler = ctx;
        struct hfd_document found;
        struct key key;
        int r = make_key(rows, document, &key);

        if (r != 0)
                return r;
        if (!hfd_document_cache_find(handler->cache, key.name, key.fingerprint, &found)) {
                struct hf__buf *plain = make_document(handler, rows, document, &key, &found);
                if (!plain)
                        return -ENOMEM;
                hf__buf_unref(plain);
        }
        memcpy(ret_hash, found.etag + 1, ETAG_DIGITS);
        ret_hash[ETAG_DIGITS] = '\0';
        hf__buf_unref(found.packed);
        return 0;
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

/* Redirects the client to the URL with the document's current hash. */
static void redirect(struct request *request, const struct hfd_document *document) {
        struct hf__strbuf url = {0};

        hfd_openapi_put_document_path(&url, request->rows, &request->document);
        hf__strbuf_printf(&url, "?hash=%.*s", ETAG_DIGITS, document->etag + 1);
        const struct hfd_header headers[] = {{"location", url.data ? url.data : ""}};
        if (url.error == 0)
                hfd_http_request_reply(request->http_request, 301, NULL, headers, 1, NULL);
        else
                send_no_memory(request);
        hf__strbuf_done(&url);
}

/* plain: the document without compression; NULL = it was cached. */
static void send_document(struct request *request, const struct hfd_document *document,
                          struct hf__buf *plain) {
        struct hfd_http_request *http_request = request->http_request;
        const char *seen = hfd_http_request_header(http_request, "if-none-match"), *hash;
        size_t n_hash;
        bool with_hash = request->document.kind == HFD_OPENAPI_V3 &&
                         names_hash(hfd_http_request_query(http_request), &hash, &n_hash);
        const struct hfd_header headers[] = {{"etag", document->etag},
                                             {"cache-control",
                                              with_hash ? FOR_EVER : "no-cache, private"},
                                             {"vary", "Accept, Accept-Encoding"},
                                             {"content-encoding", "gzip"}};
        const char *type = request->document.protobuf ? HFD_OPENAPI_V2_TYPE : "application/json";

        if (with_hash &&
            (n_hash != ETAG_DIGITS || strncmp(hash, document->etag + 1, n_hash) != 0)) {
                redirect(request, document);
        } else if (seen && strcmp(seen, document->etag) == 0) {
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
static void serve_new(struct request *request) {
        struct hfd_document document;
        struct hf__buf *plain = make_document(request->handler, request->rows, &request->document,
                                              &request->key, &document);

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
            atomic_load_explicit(&context->departure.gone, memory_order_relaxed))
                refuse(request, HF_E_CANCELED);
        else
                serve_new(request);
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

        if (!find_document(request)) {
                free_request(request);
        } else if (make_key(request->rows, &request->document, &request->key) != 0) {
                send_no_memory(request);
                free_request(request);
        } else if (hfd_document_cache_find(request->handler->cache, request->key.name,
                                           request->key.fingerprint, &document)) {
                send_document(request, &document, NULL);
                hf__buf_unref(document.packed);
                free_request(request);
        } else if (request->key.has_custom) {
                make_on_pool(request);
        } else {
                serve_new(request);
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
