/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response to a request: any thread writes it, the request's worker reads it.
 *
 * States, all guarded by the response's mu: not started; started (code and headers are set and
 * immutable, pieces may follow); ended (no more pieces follow). Two flags are independent of these
 * states. `cut`: the worker will cut the response, because the queue overflowed, memory ran out, or
 * the code that responds wants it. `gone`: the request is detached from its connection, and
 * everything is dropped.
 *
 * The queue holds references to pieces and grows from 2 to HFD_RESPONSE_MAX_PIECES. A response of
 * known length has at most one piece and is `ended` from the start.
 *
 * Waking. Each change posts the request's message to the worker, unless the previous one has not
 * been handled yet (`posted`). So many pushes need one message only.
 *
 * Invariants. Every piece of a stream is checked against the limits of the queue, because only they
 * bound the memory between a fast producer and a slow reader; push_locked names the one exception.
 * A message is posted under mu, because the worker may be freed once `gone` is set. Lock order: the
 * response's mu, then the mailbox's mutex.
 */
#include "server/http/request/http_response.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/http/request/http_request.h"

static void post_locked(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        if (response->posted || response->gone || !request->worker)
                return;
        response->posted = true;
        hfd_http_request_ref(request); /* for the message; handle_message drops it */
        hfd_worker_post(request->worker, &request->message);
}

int hfd_http_response_init(struct hfd_http_response *response) {
        *response = (struct hfd_http_response){0};
        return hf__mutex_init(&response->mu);
}

void hfd_http_response_done(struct hfd_http_response *response) {
        assert(!response->posted);
        for (unsigned i = 0; i < response->ring_n; i++)
                hf__buf_unref(
                        response->ring[(response->ring_head + i) & (response->ring_space - 1)]);
        free(response->ring);
        free(response->headers);
        pthread_mutex_destroy(&response->mu);
}

void hfd_http_request_call(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        assert(!response->started && !response->call);
        if (!response->gone) {
                response->call = fn;
                response->call_ctx = ctx;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
}

/* ---- responding: any thread ---- */

static bool is_token(const char *text) {
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c <= ' ' || *c == ':' || (unsigned char)*c >= 0x7f)
                        return false;
        return *text != '\0';
}

static bool is_value(const char *text) {
        for (const char *c = text; *c; c++)
                if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
                        return false;
        return true;
}

static size_t size_of_headers(const struct hfd_header *headers, size_t n_headers) {
        size_t n = 0;

        for (size_t i = 0; i < n_headers; i++)
                n += strlen(headers[i].name) + strlen(headers[i].value) + 2;
        return n;
}

/* Appends headers, without those that would break the framing. Returns the end. */
static char *put_headers(char *out, const struct hfd_header *headers, size_t n_headers) {
        for (size_t i = 0; i < n_headers; i++) {
                const char *name = headers[i].name;

                if (!is_token(name) || !is_value(headers[i].value) ||
                    strcmp(name, "content-length") == 0 || strcmp(name, "connection") == 0 ||
                    strcmp(name, "transfer-encoding") == 0)
                        continue;
                out = stpcpy(out, name) + 1;
                out = stpcpy(out, headers[i].value) + 1;
        }
        return out;
}

/*
 * Packs the headers into one block: those that on_head has set, and those of the caller. A header
 * that would break the framing (a line break in a value, a length or connection header of the
 * caller) is left out instead of failing the response, because a value may echo what a client sent.
 * NULL = out of memory.
 */
static char *pack_headers(const struct hfd_http_request *request, const char *content_type,
                          const struct hfd_header *headers, size_t n_headers, size_t *ret_n) {
        const struct hfd_header *own = &request->response_header;
        size_t n_own = own->name ? 1 : 0,
               n = content_type ? sizeof "content-type" + strlen(content_type) + 1 : 0;
        char *block, *out;

        n += size_of_headers(own, n_own) +
             size_of_headers(request->shared_headers, request->n_shared_headers) +
             size_of_headers(headers, n_headers);
        block = malloc(n + 1);
        if (!block)
                return NULL;
        out = block;
        if (content_type && is_value(content_type)) {
                out = stpcpy(out, "content-type") + 1;
                out = stpcpy(out, content_type) + 1;
        }
        out = put_headers(out, own, n_own);
        out = put_headers(out, request->shared_headers, request->n_shared_headers);
        out = put_headers(out, headers, n_headers);
        *ret_n = (size_t)(out - block);
        return block;
}

/* Adds a piece to the queue, whose limits the caller has checked. 0 or -ENOMEM. */
static int append_locked(struct hfd_http_response *response, struct hf__buf *piece) {
        unsigned mask;

        if (response->ring_n == response->ring_space) {
                unsigned space = response->ring_space ? response->ring_space * 2 : 2;
                struct hf__buf **ring = malloc(space * sizeof(struct hf__buf *));

                if (!ring)
                        return -ENOMEM;
                mask = response->ring_space - 1;
                for (unsigned i = 0; i < response->ring_n; i++)
                        ring[i] = response->ring[(response->ring_head + i) & mask];
                free(response->ring);
                response->ring = ring;
                response->ring_space = space;
                response->ring_head = 0;
        }
        mask = response->ring_space - 1;
        response->ring[(response->ring_head + response->ring_n) & mask] = hf__buf_ref(piece);
        response->ring_n++;
        response->ring_bytes += piece->n;
        return 0;
}

/* Whether the caller wants the connection to end after this response. pack_headers leaves this
 * header out, because HTTP/2 does not have it. */
static bool has_connection_close(const struct hfd_header *headers, size_t n_headers) {
        for (size_t i = 0; i < n_headers; i++)
                if (strcmp(headers[i].name, "connection") == 0 &&
                    strcmp(headers[i].value, "close") == 0)
                        return true;
        return false;
}

/* Begins a response. Packs the headers before it locks the mutex, to hold that for a short time. A
 * second response, or one to a detached request, is dropped. */
static void start_response(struct hfd_http_request *request, int code, const char *content_type,
                           const struct hfd_header *headers, size_t n_headers, bool streaming,
                           struct hf__buf *body) {
        struct hfd_http_response *response = &request->response;
        size_t n = 0;
        char *block;

        assert(code >= 200 && code <= 599);
        block = pack_headers(request, content_type, headers, n_headers, &n);
        pthread_mutex_lock(&response->mu);
        if (!response->started && !response->gone) {
                response->started = true;
                response->streaming = streaming;
                response->ended = !streaming;
                response->code = code;
                response->close_after = has_connection_close(headers, n_headers);
                response->headers = block;
                response->n_headers_bytes = n;
                response->sent_at = 0; /* the worker has not tried to send it yet */
                response->content_length = body ? body->n : 0;
                if (!block || (body && body->n > 0 && append_locked(response, body) != 0))
                        response->cut = true;
                block = NULL; /* the response owns it now */
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
        free(block);
}

void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body) {
        start_response(request, code, content_type, headers, n_headers, false, body);
}

void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers) {
        start_response(request, code, content_type, headers, n_headers, true, NULL);
}

/*
 * Checks the limits and appends the piece. A piece larger than the limit is accepted if the queue
 * is empty; otherwise a large object could never be watched. Such a piece does not count while it
 * is in the queue; otherwise the next small event would cut the stream. 0, -ENOBUFS or -ENOMEM.
 */
static int push_locked(struct hfd_http_response *response, struct hf__buf *piece) {
        size_t counted = 0;

        if (response->ring_n == 0)
                response->ring_uncounted = piece->n > HFD_RESPONSE_MAX_BYTES ? piece->n : 0;
        else
                counted = response->ring_bytes - response->ring_uncounted;
        if (response->ring_n >= HFD_RESPONSE_MAX_PIECES ||
            (response->ring_n > 0 && counted + piece->n > HFD_RESPONSE_MAX_BYTES))
                return -ENOBUFS;
        return append_locked(response, piece);
}

int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece) {
        struct hfd_http_response *response = &request->response;
        int r = 0;

        pthread_mutex_lock(&response->mu);
        if (response->gone || response->cut) {
                r = -EPIPE;
        } else if (!response->streaming || response->ended) {
                r = -EINVAL;
        } else if (piece->n > 0) {
                r = push_locked(response, piece);
                if (r != 0)
                        response->cut = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
        return r;
}

void hfd_http_request_end(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        if (response->streaming && !response->ended) {
                response->ended = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
}

size_t hfd_http_request_unsent(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        size_t n = response->ring_bytes;
        pthread_mutex_unlock(&response->mu);
        return n;
}

bool hfd_http_request_cut_stalled(struct hfd_http_request *request, hf_nsec since) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        bool stalled = !response->gone && !response->cut && response->ring_n > 0 &&
                       response->sent_at > 0 && response->sent_at < since;
        if (stalled) {
                response->cut = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
        return stalled;
}

void hfd_http_request_cut(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        if (response->streaming && !response->ended && !response->cut) {
                response->cut = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
}

/* ---- sending: the worker ---- */

static void note_sent_locked(struct hfd_http_request *request) {
        if (request->worker)
                request->response.sent_at = request->worker->now;
}

void (*hfd_http_response_clear_posted(struct hfd_http_request *request,
                                      void **ret_ctx))(void *ctx) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        assert(response->posted);
        response->posted = false;
        void (*call)(void *ctx) = response->call;
        *ret_ctx = response->call_ctx;
        response->call = NULL;
        if (!call && response->sent_at == 0)
                note_sent_locked(request);
        pthread_mutex_unlock(&response->mu);
        return call;
}

void hfd_http_response_get_state(struct hfd_http_request *request,
                                 struct hfd_http_response_state *ret_state) {
        struct hfd_http_response *response = &request->response;

        assert(hfd_http_request_is_on_worker(request));
        pthread_mutex_lock(&response->mu);
        *ret_state = (struct hfd_http_response_state){
                .started = response->started,
                .streaming = response->streaming,
                .ended = response->ended,
                .cut = response->cut,
                .n = response->ring_bytes - response->offset,
        };
        pthread_mutex_unlock(&response->mu);
}

/* Returns the first piece, or NULL. It stays valid without the lock, because only this thread
 * removes pieces from the queue. */
static struct hf__buf *first_piece(struct hfd_http_response *response) {
        struct hf__buf *piece = NULL;

        pthread_mutex_lock(&response->mu);
        if (response->ring_n > 0)
                piece = response->ring[response->ring_head];
        pthread_mutex_unlock(&response->mu);
        return piece;
}

/* The first piece was sent. Returns the bytes that remain in the queue. */
static size_t drop_first_piece(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;
        struct hf__buf *piece;

        pthread_mutex_lock(&response->mu);
        assert(response->ring_n > 0);
        piece = response->ring[response->ring_head];
        response->ring_bytes -= piece->n;
        response->ring_uncounted = 0; /* only the first piece can be uncounted */
        response->ring_head = (response->ring_head + 1) & (response->ring_space - 1);
        response->ring_n--;
        response->offset = 0;
        size_t left = response->ring_bytes;
        note_sent_locked(request);
        pthread_mutex_unlock(&response->mu);
        hf__buf_unref(piece);
        return left;
}

size_t hfd_http_response_read(struct hfd_http_request *request, char *out, size_t n) {
        struct hfd_http_response *response = &request->response;
        size_t done = 0, left = SIZE_MAX;

        assert(hfd_http_request_is_on_worker(request));
        while (done < n) {
                struct hf__buf *piece = first_piece(response);
                size_t part;

                if (!piece)
                        break;
                part = piece->n - response->offset;
                if (part > n - done)
                        part = n - done;
                memcpy(out + done, piece->data + response->offset, part);
                done += part;
                response->offset += part;
                if (response->offset < piece->n) {
                        pthread_mutex_lock(&response->mu);
                        note_sent_locked(request);
                        pthread_mutex_unlock(&response->mu);
                        break;
                }
                left = drop_first_piece(request);
        }
        response->n_sent += done;
        if (response->on_drained && left < response->low)
                response->on_drained(response->on_drained_ctx);
        return done;
}

void hfd_http_response_clear(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;
        struct hf__buf **ring;
        unsigned space, head, n;

        assert(hfd_http_request_is_on_worker(request));
        pthread_mutex_lock(&response->mu);
        assert(response->cut || response->gone);
        ring = response->ring;
        space = response->ring_space;
        head = response->ring_head;
        n = response->ring_n;
        response->ring = NULL;
        response->ring_space = response->ring_head = response->ring_n = 0;
        response->ring_bytes = response->ring_uncounted = response->offset = 0;
        pthread_mutex_unlock(&response->mu);
        for (unsigned i = 0; i < n; i++)
                hf__buf_unref(ring[(head + i) & (space - 1)]);
        free(ring);
}

int hfd_http_response_set_gone(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;
        int code;

        assert(hfd_http_request_is_on_worker(request));
        pthread_mutex_lock(&response->mu);
        assert(!response->gone);
        response->gone = true;
        code = response->code;
        pthread_mutex_unlock(&response->mu);
        return code;
}

bool hfd_http_response_has_body(const struct hfd_http_request *request) {
        int code = request->response.code;

        /* The method is NULL when the request was refused before it was known. */
        return code != 204 && code != 304 &&
               (!request->method || strcmp(request->method, "HEAD") != 0);
}

bool hfd_http_response_next_header(const struct hfd_http_request *request, const char **cursor,
                                   const char **ret_name, const char **ret_value) {
        const struct hfd_http_response *response = &request->response;
        const char *at = *cursor ? *cursor : response->headers;

        if (!at || at >= response->headers + response->n_headers_bytes)
                return false;
        *ret_name = at;
        *ret_value = at + strlen(at) + 1;
        *cursor = *ret_value + strlen(*ret_value) + 1;
        return true;
}
