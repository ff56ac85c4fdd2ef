/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request, as handlers see it and as the protocols fill it in.
 *
 * States. The connection's worker creates a request, fills it in while its bytes arrive, and
 * dispatches it to the handler when it is complete, or after its head if its body is ignored. Then
 * any thread may respond. A request that is refused gets its response from the worker and is never
 * dispatched. At the end the worker detaches it from the connection; it is freed with the last
 * reference. References: one for the connection until the request is detached, one for the handler,
 * one for a message on its way to the worker. This last one may move to the worker's list
 * `responded`, and from there to the connection's.
 *
 * Invariants:
 * - What handlers read is immutable after the handler was called, so that it needs no lock. There
 *   are two exceptions. From the start of a stream on, handlers must not read headers and body, and
 *   the worker frees them. The client certificate's `refused` and `expires` (origin.h) may change;
 *   they are atomic.
 * - A request leaves its connection only through hfd_http_request_detach, complete or not. That
 *   sets response.gone, after which no thread posts to the worker. So a worker can be freed while
 *   other threads still hold its requests.
 */
#include "server/http/request/http_request_private.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "server/http/request/joined_headers.h"
#include "server/http/request/packed_header.h"

/* The most bytes of one name or value. So even a value that is joined from HFD_HEADERS_MAX headers
 * fits into the uint32_t of struct hfd_packed_header. */
#define MAX_HEADER_PART ((size_t)1 << 20)

bool hfd_http_request_is_on_worker(const struct hfd_http_request *request) {
        return !request->worker || hfd_worker_mailbox_is_current(request->worker);
}

int hfd_http_request_new(struct hfd_worker_mailbox *worker, struct hfd_origin *origin,
                         struct hfd_http_request **ret_request) {
        struct hfd_http_request *request = hf__blocks_get(sizeof *request);
        int r;

        if (!request)
                return -ENOMEM;
        /* own_space, the last member, is filled in before it is read. */
        memset(request, 0, offsetof(struct hfd_http_request, response.own_space));
        r = hfd_http_response_init(&request->response);
        if (r != 0) {
                hf__blocks_put(request);
                return r;
        }
        request->message.kind = HFD_WORKER_MESSAGE_REQUEST;
        atomic_init(&request->refs, 1);
        request->worker = worker;
        request->origin = hfd_origin_ref(origin);
        request->protocol = "HTTP/1.1";
        request->query = "";
        *ret_request = request;
        return 0;
}

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request) {
        assert(!request || atomic_load_explicit(&request->refs, memory_order_relaxed) > 0);
        if (request)
                atomic_fetch_add_explicit(&request->refs, 1, memory_order_relaxed);
        return request;
}

struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request) {
        int before;

        if (!request)
                return NULL;
        /* acq_rel: the thread that frees the request must see what the others wrote before their
         * unref. */
        before = atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel);
        assert(before > 0);
        if (before != 1)
                return NULL;
        assert(!request->connection); /* a connection holds a reference until it detaches */
        /* The handler's context first: it may borrow from that of the filters, as a watch borrows
         * its user. */
        if (request->handler_context_free)
                request->handler_context_free(request->handler_context);
        if (request->context_free)
                request->context_free(request->context);
        hfd_http_response_done(&request->response);
        hf__blocks_put(request->own_method);
        hf__blocks_put(request->target);
        hf__blocks_put(request->headers);
        hf__blocks_put(request->allocated);
        hfd_request_body_done(&request->body);
        hfd_origin_unref(request->origin);
        hf__blocks_put(request);
        return NULL;
}

/* ---- filling in: the worker ---- */

/* The text is freed with hf__blocks_put. NULL = out of memory. */
static char *copy_text(const char *text, size_t n) {
        char *copy = hf__blocks_get(n + 1);

        if (!copy)
                return NULL;
        memcpy(copy, text, n);
        copy[n] = '\0';
        return copy;
}

int hfd_http_request_set_method(struct hfd_http_request *request, const char *method, size_t n) {
        static const char *const usual[] = {"GET", "PUT", "POST", "PATCH", "DELETE"};

        assert(hfd_http_request_is_on_worker(request) && !request->dispatched);
        hf__blocks_put(request->own_method);
        request->method = request->own_method = NULL;
        request->n_own_method = 0;
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
                if (n == strlen(usual[i]) && memcmp(method, usual[i], n) == 0) {
                        request->method = usual[i];
                        return 0;
                }
        request->method = request->own_method = copy_text(method, n);
        if (!request->method)
                return -ENOMEM;
        request->n_own_method = n;
        return 0;
}

/* A fragment is not allowed in a request, and control characters could get into logs. Nearly every
 * target is good, so the loop has no exit; the compiler then checks many characters at once. */
static bool is_target(const char *target, size_t n) {
        unsigned bad = 0;

        for (size_t i = 0; i < n; i++)
                bad |= ((unsigned char)target[i] <= ' ') | (target[i] == 0x7f) | (target[i] == '#');
        return bad == 0;
}

/* The length of "http://HOST" or "https://HOST" at the beginning of a target in the absolute form.
 * That form is for proxies, but every server must accept it (RFC 9112 3.2.2). 0: the target has no
 * such beginning, or the host is missing. */
static size_t skip_origin(const char *target, size_t n) {
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < 2; i++) {
                size_t begin = strlen(schemes[i]), at = begin;
                if (n <= begin || memcmp(target, schemes[i], begin) != 0)
                        continue;
                while (at < n && target[at] != '/' && target[at] != '?')
                        at++;
                return at > begin ? at : 0;
        }
        return 0;
}

/* Copies a target that begins with "/" or, if slash, gets one. Freed with hf__blocks_put. NULL =
 * out of memory. */
static char *copy_target(const char *target, size_t n, bool slash) {
        char *copy = hf__blocks_get(n + slash + 1);

        if (!copy)
                return NULL;
        copy[0] = '/';
        memcpy(copy + slash, target, n);
        copy[n + slash] = '\0';
        return copy;
}

int hfd_http_request_set_target(struct hfd_http_request *request, const char *target, size_t n) {
        size_t origin = skip_origin(target, n);
        char *copy, *query;

        assert(hfd_http_request_is_on_worker(request) && !request->dispatched);
        if (!is_target(target, n))
                return HF_E_INVALID;
        target += origin;
        n -= origin;
        /* After a host, an empty path is equal to "/" (RFC 9110 4.2.3). */
        bool is_empty = origin > 0 && (n == 0 || target[0] == '?');
        if (!is_empty && (n == 0 || target[0] != '/'))
                return HF_E_INVALID;
        copy = copy_target(target, n, is_empty);
        if (!copy)
                return -ENOMEM;
        hf__blocks_put(request->target);
        request->target = copy;
        request->n_target = n + is_empty;
        request->query = "";
        query = memchr(copy, '?', request->n_target);
        if (query) {
                *query = '\0';
                request->query = query + 1;
        }
        return 0;
}

static char to_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

/* The offset of the first entry of name, which is in lower case, or SIZE_MAX. A linear search is
 * enough, because HFD_HEADERS_MAX limits the number of entries. Most searches are for headers that
 * the request does not have, and header_lengths answers many of these without reading an entry. */
static size_t find_header(const struct hfd_http_request *request, const char *name, size_t n_name,
                          struct hfd_packed_header *ret_entry) {
        if (!(request->header_lengths & (UINT64_C(1) << (n_name % 64))))
                return SIZE_MAX;
        for (size_t at = 0; at < request->n_headers_bytes;) {
                const char *entry = request->headers + at, *stored = hfd_packed_header_name(entry);
                struct hfd_packed_header e = hfd_packed_header_read(entry);

                if (e.n_name == n_name && memcmp(stored, name, n_name) == 0) {
                        *ret_entry = e;
                        return at;
                }
                at += hfd_packed_header_size(e);
        }
        return SIZE_MAX;
}

/* Makes room for n more bytes of headers. The space doubles, so that all copies together take time
 * in proportion to the headers. 0 or -ENOMEM. */
static int reserve_headers(struct hfd_http_request *request, size_t n) {
        size_t need = request->n_headers_bytes + n;
        size_t space = request->headers_space ? request->headers_space : 256;
        char *grown;

        if (need <= request->headers_space)
                return 0;
        while (space < need)
                space *= 2;
        grown = hf__blocks_get(space);
        if (!grown)
                return -ENOMEM;
        if (request->headers)
                memcpy(grown, request->headers, request->n_headers_bytes);
        hf__blocks_put(request->headers);
        request->headers = grown;
        request->headers_space = space;
        return 0;
}

int hfd_http_request_add_header(struct hfd_http_request *request, const char *name, size_t n_name,
                                const char *value, size_t n_value) {
        struct hfd_packed_header e, earlier;
        char *out;
        int r;

        assert(hfd_http_request_is_on_worker(request) && !request->dispatched);
        if (++request->n_headers > HFD_HEADERS_MAX || n_name > MAX_HEADER_PART ||
            n_value > MAX_HEADER_PART)
                return HF_E_TOO_LARGE;
        e = (struct hfd_packed_header){.n_name = (uint32_t)n_name, .n_value = (uint32_t)n_value};
        r = reserve_headers(request, hfd_packed_header_size(e));
        if (r != 0)
                return r;
        out = request->headers + request->n_headers_bytes;
        (void)hfd_packed_header_write(out, e, name, value);
        out += sizeof e; /* the name */
        for (size_t i = 0; i < n_name; i++)
                out[i] = to_lower(out[i]);
        if (!request->has_repeated)
                request->has_repeated = find_header(request, out, n_name, &earlier) != SIZE_MAX;
        request->n_headers_bytes += hfd_packed_header_size(e);
        request->header_lengths |= UINT64_C(1) << (n_name % 64);
        return 0;
}

int hfd_http_request_join_headers(struct hfd_http_request *request) {
        char *joined;

        assert(hfd_http_request_is_on_worker(request) && !request->dispatched);
        if (!request->has_repeated)
                return 0;
        joined = hf__blocks_get(request->n_headers_bytes);
        if (!joined)
                return -ENOMEM;
        request->headers_space = request->n_headers_bytes;
        request->n_headers_bytes =
                hfd_join_headers(request->headers, request->n_headers_bytes, joined);
        hf__blocks_put(request->headers);
        request->headers = joined;
        request->has_repeated = false;
        return 0;
}

int hfd_http_request_add_body(struct hfd_http_request *request, const void *data, size_t n,
                              size_t max) {
        assert(hfd_http_request_is_on_worker(request) && !request->dispatched);
        return hfd_request_body_add(&request->body, data, n, max);
}

/* Counts reserved memory, not only used memory: the limits protect the memory of the process. A
 * refusal is read without the lock: the worker has made it, and it does not change any more. */
size_t hfd_http_request_memory(const struct hfd_http_request *request) {
        const struct hfd_http_response *response = &request->response;
        size_t n = sizeof *request + request->n_own_method + request->n_target +
                   request->headers_space + request->body.space;

        if (response->refused)
                n += response->n_headers_bytes + response->content_length;
        return n;
}

void hfd_http_request_drop_content(struct hfd_http_request *request) {
        assert(hfd_http_request_is_on_worker(request));
        hf__blocks_put(request->headers);
        hfd_request_body_done(&request->body);
        request->headers = NULL;
        request->n_headers_bytes = request->headers_space = 0;
}

/* ---- as handlers see it: any thread, once the handler was called ---- */

const char *hfd_http_request_method(struct hfd_http_request *request) { return request->method; }
const char *hfd_http_request_path(struct hfd_http_request *request) { return request->target; }
const char *hfd_http_request_query(struct hfd_http_request *request) { return request->query; }
const char *hfd_http_request_protocol(struct hfd_http_request *request) {
        return request->protocol;
}
const char *hfd_http_request_remote(struct hfd_http_request *request) {
        return request->origin ? request->origin->remote : "";
}
hf_nsec hfd_http_request_received_at(struct hfd_http_request *request) {
        return request->received_at;
}

const char *hfd_http_request_header(struct hfd_http_request *request, const char *name) {
        struct hfd_packed_header e;
        size_t at = find_header(request, name, strlen(name), &e);

        return at == SIZE_MAX ? NULL : hfd_packed_header_value(request->headers + at, e);
}

const char *hfd_http_request_header_like(struct hfd_http_request *request, const char *prefix,
                                         size_t i, const char **ret_name) {
        for (size_t at = 0; at < request->n_headers_bytes;) {
                const char *entry = request->headers + at, *name = hfd_packed_header_name(entry);
                struct hfd_packed_header e = hfd_packed_header_read(entry);

                if (name[0] == prefix[0] && strncmp(name, prefix, strlen(prefix)) == 0 &&
                    i-- == 0) {
                        *ret_name = name;
                        return hfd_packed_header_value(entry, e);
                }
                at += hfd_packed_header_size(e);
        }
        return NULL;
}

const char *hfd_http_request_body(struct hfd_http_request *request, size_t *ret_n) {
        *ret_n = request->body.n;
        return request->body.data ? request->body.data : "";
}

struct hfd_client_cert hfd_http_request_peer(struct hfd_http_request *request) {
        const struct hfd_origin *origin = request->origin;

        if (!origin)
                return (struct hfd_client_cert){.common_name = "", .uid = "", .fingerprint = ""};
        bool refused = atomic_load(&origin->refused);
        return (struct hfd_client_cert){.kind = refused ? HFD_PEER_BAD : origin->kind,
                                        .expires = atomic_load(&origin->expires),
                                        .common_name =
                                                origin->common_name ? origin->common_name : "",
                                        .organisations = (const char *const *)origin->organisations,
                                        .n_organisations = origin->n_organisations,
                                        .uid = origin->uid ? origin->uid : "",
                                        .fingerprint =
                                                origin->fingerprint ? origin->fingerprint : ""};
}

/* ---- what users set, and the end; the .h files name the thread of each function ---- */

void hfd_http_request_set_response_header(struct hfd_http_request *request, const char *name,
                                          const char *value) {
        assert(hfd_http_request_is_on_worker(request) && !request->dispatched &&
               !request->response_header.name);
        request->response_header = (struct hfd_header){name, value};
}

void hfd_http_request_share_response_headers(struct hfd_http_request *request,
                                             const struct hfd_checked_header *headers, size_t n) {
        assert(hfd_http_request_is_on_worker(request) && !request->dispatched &&
               !request->shared_headers);
        request->shared_headers = headers;
        request->n_shared_headers = n;
}

void *hfd_http_request_connection_context(struct hfd_http_request *request) {
        assert(hfd_http_request_is_on_worker(request));
        return request->connection_context ? request->connection_context->pointer : NULL;
}

void hfd_http_request_set_connection_context(struct hfd_http_request *request, void *context,
                                             void (*free_fn)(void *context)) {
        struct hfd_connection_context *shared = request->connection_context;

        assert(hfd_http_request_is_on_worker(request));
        if (!shared) {
                free_fn(context);
                return;
        }
        if (shared->pointer)
                shared->free_fn(shared->pointer);
        *shared = (struct hfd_connection_context){.pointer = context, .free_fn = free_fn};
}

const void *hfd_http_request_worker(struct hfd_http_request *request) { return request->worker; }

void *hfd_http_request_allocate(struct hfd_http_request *request, size_t n) {
        assert(hfd_http_request_is_on_worker(request) && !request->allocated);
        request->allocated = hf__blocks_get(n);
        return request->allocated;
}

void hfd_http_request_free_allocated(struct hfd_http_request *request) {
        hf__blocks_put(request->allocated);
        request->allocated = NULL;
}

void hfd_http_request_set_context(struct hfd_http_request *request, void *context,
                                  void (*free_fn)(void *context)) {
        assert(!request->context);
        request->context = context;
        request->context_free = free_fn;
}

void hfd_http_request_set_handler_context(struct hfd_http_request *request, void *context,
                                          void (*free_fn)(void *context)) {
        assert(!request->handler_context);
        request->handler_context = context;
        request->handler_context_free = free_fn;
}

void *hfd_http_request_context(struct hfd_http_request *request) { return request->context; }

void hfd_http_request_on_gone(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        request->on_gone = fn;
        request->on_gone_ctx = ctx;
}

void hfd_http_request_on_finished(struct hfd_http_request *request,
                                  void (*fn)(void *ctx, int code, size_t n_bytes), void *ctx) {
        request->on_finished = fn;
        request->on_finished_ctx = ctx;
}

void hfd_http_request_on_unsent(struct hfd_http_request *request,
                                void (*fn)(void *ctx, size_t n_bytes, bool waits), void *ctx) {
        request->on_unsent = fn;
        request->on_unsent_ctx = ctx;
}

void hfd_http_request_on_drained(struct hfd_http_request *request, size_t low,
                                 void (*fn)(void *ctx), void *ctx) {
        assert(hfd_http_request_is_on_worker(request) && !request->response.on_drained);
        request->response.low = low;
        request->response.on_drained_ctx = ctx;
        request->response.on_drained = fn;
}

/* Sets `gone` first, so that a response from within on_gone or on_finished is dropped. */
void hfd_http_request_detach(struct hfd_http_request *request) {
        int code;

        assert(hfd_http_request_is_on_worker(request) && request->connection);
        code = hfd_http_response_set_gone(request);
        request->connection = NULL;
        request->connection_context = NULL;
        if (request->on_gone && !request->response.complete)
                request->on_gone(request->on_gone_ctx);
        if (request->on_finished)
                request->on_finished(request->on_finished_ctx, code, request->response.n_sent);
        hfd_http_request_unref(request);
}
