/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request: written by any thread, read by the request's worker.
 *
 * States (all guarded by the request's mu): not started; started (code and headers are there and
 * immutable, pieces may follow); ended (no more pieces). Beside them: `cut`, the ring overflowed,
 * the worker will cut the stream; `gone`, the connection's part is over and everything is dropped.
 *
 * The ring holds references to pieces, grows from 2 to HFD_RING_MAX_PIECES, and is the only thing
 * between a fast producer and a slow reader. A plain reply is a ring of one piece, already ended.
 *
 * Waking. Each change posts the request's letter to the worker unless one is under way (`posted`):
 * many pushes cost one letter. Posting happens under mu, because `gone` decides whether the worker
 * still exists: request mu, then mailbox mutex, never the other way round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/http_request.h"
#include "server/http/worker.h"

static void post_locked(struct hfd_http_request *request) {
        if (request->posted || request->gone || !request->worker)
                return;
        request->posted = true;
        hfd_http_request_ref(request); /* the letter's */
        hfd_worker_post(request->worker, &request->message);
}

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

/*
 * Packs the headers into one block. A header that would break the framing (a line break in a value,
 * a length or connection header of the caller's own) is left out: what a client sent may be echoed
 * in it.
 */
static char *pack_headers(const char *content_type, const struct hfd_header *headers,
                          size_t n_headers, size_t *ret_n) {
        size_t n = content_type ? sizeof("content-type") + strlen(content_type) + 1 : 0;
        char *block, *out;

        for (size_t i = 0; i < n_headers; i++)
                n += strlen(headers[i].name) + strlen(headers[i].value) + 2;
        block = malloc(n + 1);
        if (!block)
                return NULL;
        out = block;
        if (content_type && is_value(content_type)) {
                out = stpcpy(out, "content-type") + 1;
                out = stpcpy(out, content_type) + 1;
        }
        for (size_t i = 0; i < n_headers; i++) {
                const char *name = headers[i].name;

                if (!is_token(name) || !is_value(headers[i].value) ||
                    strcmp(name, "content-length") == 0 || strcmp(name, "connection") == 0 ||
                    strcmp(name, "transfer-encoding") == 0)
                        continue;
                out = stpcpy(out, name) + 1;
                out = stpcpy(out, headers[i].value) + 1;
        }
        *ret_n = (size_t)(out - block);
        return block;
}

/* 0, -ENOMEM. */
static int append_locked(struct hfd_http_request *request, struct hf__buf *piece) {
        if (request->ring_n == request->ring_space) {
                unsigned space = request->ring_space ? request->ring_space * 2 : 2;
                struct hf__buf **ring = malloc(space * sizeof(struct hf__buf *));

                if (!ring)
                        return -ENOMEM;
                for (unsigned i = 0; i < request->ring_n; i++)
                        ring[i] =
                                request->ring[(request->ring_head + i) & (request->ring_space - 1)];
                free(request->ring);
                request->ring = ring;
                request->ring_space = space;
                request->ring_head = 0;
        }
        request->ring[(request->ring_head + request->ring_n) & (request->ring_space - 1)] =
                hf__buf_ref(piece);
        request->ring_n++;
        request->ring_bytes += piece->n;
        return 0;
}

/* "connection: close" is no header to be passed on (HTTP/2 has none) but a wish: the connection is
 * told to go. */
static bool wants_close(const struct hfd_header *headers, size_t n_headers) {
        for (size_t i = 0; i < n_headers; i++)
                if (strcmp(headers[i].name, "connection") == 0 &&
                    strcmp(headers[i].value, "close") == 0)
                        return true;
        return false;
}

static void start(struct hfd_http_request *request, int code, const char *content_type,
                  const struct hfd_header *headers, size_t n_headers, bool streaming,
                  struct hf__buf *body) {
        size_t n = 0;
        char *block = pack_headers(content_type, headers, n_headers, &n);

        pthread_mutex_lock(&request->mu);
        if (!request->started && !request->gone) {
                request->started = true;
                request->streaming = streaming;
                request->ended = !streaming;
                request->code = code;
                request->close_after = wants_close(headers, n_headers);
                request->response_headers = block;
                request->n_response_headers = n;
                request->content_length = body ? body->n : 0;
                if (!block || (body && body->n > 0 && append_locked(request, body)))
                        request->cut = true;
                block = NULL; /* consumed */
                post_locked(request);
        }
        pthread_mutex_unlock(&request->mu);
        free(block);
}

void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body) {
        start(request, code, content_type, headers, n_headers, false, body);
}

void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers) {
        start(request, code, content_type, headers, n_headers, true, NULL);
}

int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece) {
        int r = 0;

        pthread_mutex_lock(&request->mu);
        if (request->gone || request->cut) {
                r = -EPIPE;
        } else if (!request->streaming || request->ended) {
                r = -EINVAL;
        } else if (piece->n > 0) {
                /*
                 * A piece above the limit may pass when the ring is empty: else a large object
                 * could never be watched, nor much be begun with. While it is being read it does
                 * not count, or the next small event would cut the stream.
                 */
                if (request->ring_n == 0)
                        request->ring_uncounted = piece->n > HFD_RING_MAX_BYTES ? piece->n : 0;
                size_t counted =
                        request->ring_bytes - (request->ring_n > 0 ? request->ring_uncounted : 0);
                if (request->ring_n >= HFD_RING_MAX_PIECES ||
                    (request->ring_n > 0 && counted + piece->n > HFD_RING_MAX_BYTES))
                        r = -ENOBUFS;
                else
                        r = append_locked(request, piece);
                if (r != 0)
                        request->cut = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&request->mu);
        return r;
}

void hfd_http_request_end(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        if (request->streaming && !request->ended) {
                request->ended = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&request->mu);
}

/* ---- the worker's side ---- */

void hfd_http_response_taken(struct hfd_http_request *request) {
        pthread_mutex_lock(&request->mu);
        request->posted = false;
        pthread_mutex_unlock(&request->mu);
}

void hfd_http_response_look(struct hfd_http_request *request,
                            struct hfd_http_response_state *ret_state) {
        pthread_mutex_lock(&request->mu);
        *ret_state = (struct hfd_http_response_state){
                .started = request->started,
                .streaming = request->streaming,
                .ended = request->ended,
                .cut = request->cut,
                .n = request->ring_bytes - request->offset,
        };
        pthread_mutex_unlock(&request->mu);
}

size_t hfd_http_response_read(struct hfd_http_request *request, char *out, size_t n) {
        size_t done = 0;

        while (done < n) {
                struct hf__buf *piece = NULL, *used = NULL;
                size_t part;

                /* A piece in the ring stays alive while only this thread takes pieces out: it is
                 * copied without the lock. */
                pthread_mutex_lock(&request->mu);
                if (request->ring_n > 0)
                        piece = request->ring[request->ring_head];
                pthread_mutex_unlock(&request->mu);
                if (!piece)
                        break;
                part = piece->n - request->offset < n - done ? piece->n - request->offset
                                                             : n - done;
                memcpy(out + done, piece->data + request->offset, part);
                done += part;
                request->offset += part;
                if (request->offset < piece->n)
                        break;
                pthread_mutex_lock(&request->mu);
                used = piece;
                request->ring_bytes -= piece->n;
                request->ring_uncounted = 0; /* it was the first, if there was one */
                request->ring_head = (request->ring_head + 1) & (request->ring_space - 1);
                request->ring_n--;
                request->offset = 0;
                pthread_mutex_unlock(&request->mu);
                hf__buf_unref(used);
        }
        request->n_sent += done;
        return done;
}

void hfd_http_response_clear(struct hfd_http_request *request) {
        struct hf__buf **ring;
        unsigned space, head, n;

        pthread_mutex_lock(&request->mu);
        ring = request->ring;
        space = request->ring_space;
        head = request->ring_head;
        n = request->ring_n;
        request->ring = NULL;
        request->ring_space = request->ring_head = request->ring_n = 0;
        request->ring_bytes = request->ring_uncounted = request->offset = 0;
        pthread_mutex_unlock(&request->mu);
        for (unsigned i = 0; i < n; i++)
                hf__buf_unref(ring[(head + i) & (space - 1)]);
        free(ring);
}

bool hfd_http_response_has_body(struct hfd_http_request *request) {
        return request->code != 204 && request->code != 304 &&
               (!request->method || strcmp(request->method, "HEAD") != 0);
}

bool hfd_http_response_next_header(struct hfd_http_request *request, const char **cursor,
                                   const char **ret_name, const char **ret_value) {
        const char *at = *cursor ? *cursor : request->response_headers;

        if (!at || at >= request->response_headers + request->n_response_headers)
                return false;
        *ret_name = at;
        *ret_value = at + strlen(at) + 1;
        *cursor = *ret_value + strlen(*ret_value) + 1;
        return true;
}
