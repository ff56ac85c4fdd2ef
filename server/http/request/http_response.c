/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response to a request: any thread writes it, the request's worker reads it.
 *
 * States, all guarded by the response's mu: not started; started (code and headers are set and
 * immutable, pieces may follow); ended (no more pieces follow). Two flags are independent of these
 * states. `cut`: the worker will cut the response, because the queue overflowed, memory ran out,
 * the code that responds wants it, or the client has stalled (hfd_http_request_cut_stalled).
 * `gone`: the request is detached from its connection, and everything is dropped.
 *
 * The queue holds references to pieces and grows from 2 to HFD_RESPONSE_MAX_PIECES. A response of
 * known length has at most one piece and is `ended` from the start.
 *
 * Waking. Each change posts the request's message to the worker, unless the previous one has not
 * been handled yet (`posted`). So one message is enough for many pushes.
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
#include "server/http/request/http_request_private.h"
#include "server/http/request/packed_header.h"

#define MAX_HEADERS 64 /* more are left out */

static void post_locked(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        hf__mutex_assert_held(&request->response.mu);
        if (response->posted || response->gone || !request->worker)
                return;
        response->posted = true;
        hfd_http_request_ref(request); /* for the message; the worker drops it */
        hfd_worker_mailbox_post(request->worker, &request->message);
}

int hfd_http_response_init(struct hfd_http_response *response) {
        return hf__mutex_init(&response->mu);
}

static void free_ring(const struct hfd_http_response *response, struct hf__buf **ring) {
        if (ring != response->first_ring)
                free(ring);
}

void hfd_http_response_done(struct hfd_http_response *response) {
        assert(!response->posted);
        for (unsigned i = 0; i < response->ring_n; i++)
                hf__buf_unref(
                        response->ring[(response->ring_head + i) & (response->ring_space - 1)]);
        free_ring(response, response->ring);
        if (response->headers != response->own_space)
                free(response->headers);
        pthread_mutex_destroy(&response->mu);
}

void hfd_http_request_continue(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        assert(!response->started && !response->continuation);
        if (!response->gone) {
                response->continuation = fn;
                response->continuation_ctx = ctx;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
}

/* ---- responding: any thread ---- */

static struct hfd_packed_header lengths_of(const struct hfd_checked_header *header) {
        return (struct hfd_packed_header){.n_name = (uint32_t)header->n_name,
                                          .n_value = (uint32_t)header->n_value};
}

/*
 * The headers that belong to this response alone: the content type, the header that the callback
 * on_head has set, and the headers of the caller. (hfd_http_response_next_header adds those that
 * requests share.) A header that would break the framing (a line break in a value, Content-Length)
 * is left out instead of failing the response, because a value may echo what a client sent.
 */
struct head {
        struct hfd_checked_header headers[MAX_HEADERS];
        size_t n, n_bytes;
};

static void add_header(struct head *head, const char *name, const char *value) {
        struct hfd_checked_header *header = &head->headers[head->n];

        if (head->n == MAX_HEADERS || !hfd_header_check(name, value, header))
                return;
        head->n++;
        head->n_bytes += hfd_packed_header_size(lengths_of(header));
}

static void fill_head(struct head *head, const struct hfd_http_request *request,
                      const char *content_type, const struct hfd_header *headers,
                      size_t n_headers) {
        const struct hfd_header *own = &request->response_header;

        head->n = head->n_bytes = 0;
        if (content_type)
                add_header(head, "content-type", content_type);
        if (own->name)
                add_header(head, own->name, own->value);
        for (size_t i = 0; i < n_headers; i++)
                add_header(head, headers[i].name, headers[i].value);
}

/* False: out of memory. */
static bool pack_head_locked(struct hfd_http_response *response, const struct head *head) {
        char *out = response->own_space;

        hf__mutex_assert_held(&response->mu);
        if (head->n_bytes > sizeof response->own_space) {
                out = malloc(head->n_bytes);
                if (!out)
                        return false;
        }
        response->headers = out;
        response->n_headers_bytes = head->n_bytes;
        for (size_t i = 0; i < head->n; i++) {
                const struct hfd_checked_header *header = &head->headers[i];
                out = hfd_packed_header_write(out, lengths_of(header), header->name, header->value);
        }
        return true;
}

/* Adds a piece to the queue. For a stream, the caller has checked the limits. 0 or -ENOMEM. */
static int append_locked(struct hfd_http_response *response, struct hf__buf *piece) {
        unsigned mask;

        hf__mutex_assert_held(&response->mu);
        if (response->ring_n == response->ring_space) {
                unsigned space = response->ring_space ? response->ring_space * 2 : 2;
                struct hf__buf **ring = response->first_ring;

                if (response->ring)
                        ring = malloc(space * sizeof(struct hf__buf *));
                if (!ring)
                        return -ENOMEM;
                mask = response->ring_space - 1;
                for (unsigned i = 0; i < response->ring_n; i++)
                        ring[i] = response->ring[(response->ring_head + i) & mask];
                free_ring(response, response->ring);
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

/* Whether the caller wants the connection to end after this response. fill_head leaves this
 * header out, because HTTP/2 does not have it. */
static bool has_connection_close(const struct hfd_header *headers, size_t n_headers) {
        for (size_t i = 0; i < n_headers; i++)
                if (strcmp(headers[i].name, "connection") == 0 &&
                    strcmp(headers[i].value, "close") == 0)
                        return true;
        return false;
}

/* Begins a response. Checks the headers before it locks the mutex, to hold the mutex only briefly.
 * A second response, or one to a detached request, is dropped. */
static void start_response(struct hfd_http_request *request, int code, const char *content_type,
                           const struct hfd_header *headers, size_t n_headers, bool streaming,
                           struct hf__buf *body) {
        struct hfd_http_response *response = &request->response;
        struct head head;

        assert(code >= 200 && code <= 599);
        fill_head(&head, request, content_type, headers, n_headers);
        pthread_mutex_lock(&response->mu);
        if (!response->started && !response->gone) {
                response->started = true;
                response->streaming = streaming;
                response->ended = !streaming;
                response->code = code;
                response->close_after = has_connection_close(headers, n_headers);
                response->sent_at = 0; /* the worker has not tried to send it yet */
                response->content_length = body ? body->n : 0;
                if (!pack_head_locked(response, &head) ||
                    (body && body->n > 0 && append_locked(response, body) != 0))
                        response->cut = true;
                post_locked(request);
        }
        pthread_mutex_unlock(&response->mu);
}

bool hfd_http_request_call(struct hfd_http_request *request, struct hfd_http_call *call) {
        struct hfd_http_response *response = &request->response;

        if (!request->worker || hfd_worker_mailbox_is_current(request->worker))
                return false;
        call->message.kind = HFD_WORKER_MESSAGE_CALL;
        pthread_mutex_lock(&response->mu);
        bool gone = response->gone;
        if (!gone)
                hfd_worker_mailbox_post(request->worker, &call->message);
        pthread_mutex_unlock(&response->mu);
        return !gone;
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

        hf__mutex_assert_held(&response->mu);
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
        return atomic_load(&request->response.ring_bytes);
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

void (*hfd_http_response_clear_posted(struct hfd_http_request *request, hf_nsec now,
                                      void **ret_ctx))(void *ctx) {
        struct hfd_http_response *response = &request->response;

        pthread_mutex_lock(&response->mu);
        assert(response->posted);
        response->posted = false;
        void (*continuation)(void *ctx) = response->continuation;
        *ret_ctx = response->continuation_ctx;
        response->continuation = NULL;
        if (!continuation && response->sent_at == 0)
                response->sent_at = now;
        /* A change of the response while the message was under way has posted no message of its
         * own. The caller takes this message for the continuation only. */
        if (continuation && (response->started || response->cut))
                post_locked(request);
        pthread_mutex_unlock(&response->mu);
        return continuation;
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

/*
 * Takes up to n bytes of the first piece, which begin at *ret_offset. NULL: the queue is empty.
 * If these are the piece's last bytes, it leaves the queue: *ret_left is what remains in the queue,
 * and the caller unrefs the piece. Otherwise *ret_left is not set, and the piece stays valid after
 * the unlock, because only this thread removes pieces.
 */
static struct hf__buf *take_part(struct hfd_http_response *response, size_t n, hf_nsec now,
                                 size_t *ret_n, size_t *ret_offset, size_t *ret_left) {
        struct hf__buf *piece = NULL;

        pthread_mutex_lock(&response->mu);
        if (response->ring_n > 0) {
                piece = response->ring[response->ring_head];
                *ret_offset = response->offset;
                *ret_n = piece->n - response->offset;
                if (*ret_n <= n) {
                        assert(response->ring_n > 0 && response->ring_bytes >= piece->n);
                        response->ring_bytes -= piece->n;
                        response->ring_uncounted = 0; /* only the first piece can be uncounted */
                        response->ring_head =
                                (response->ring_head + 1) & (response->ring_space - 1);
                        response->ring_n--;
                        response->offset = 0;
                        *ret_left = response->ring_bytes;
                } else {
                        *ret_n = n;
                        response->offset += n;
                }
                response->sent_at = now;
        }
        pthread_mutex_unlock(&response->mu);
        return piece;
}

size_t hfd_http_response_read(struct hfd_http_request *request, char *out, size_t n, hf_nsec now) {
        struct hfd_http_response *response = &request->response;
        size_t done = 0, left = SIZE_MAX;

        assert(hfd_http_request_is_on_worker(request));
        while (done < n) {
                size_t part = 0, offset = 0, now_left = SIZE_MAX;
                struct hf__buf *piece =
                        take_part(response, n - done, now, &part, &offset, &now_left);

                if (!piece)
                        break;
                memcpy(out + done, piece->data + offset, part);
                done += part;
                if (now_left == SIZE_MAX)
                        break;
                left = now_left;
                hf__buf_unref(piece);
        }
        response->n_sent += done;
        if (response->on_drained && left < response->low)
                response->on_drained(response->on_drained_ctx);
        return done;
}

/* The queue as it was before it was emptied, so that its pieces can be dropped without the lock. */
struct queue {
        struct hf__buf **ring, *first[2];
        unsigned space, head, n;
};

static struct queue empty_queue_locked(struct hfd_http_response *response) {
        struct queue queue = {.ring = response->ring,
                              .first = {response->first_ring[0], response->first_ring[1]},
                              .space = response->ring_space,
                              .head = response->ring_head,
                              .n = response->ring_n};

        hf__mutex_assert_held(&response->mu);
        response->ring = NULL;
        response->ring_space = response->ring_head = response->ring_n = 0;
        response->ring_bytes = response->ring_uncounted = response->offset = 0;
        return queue;
}

static void drop_queue(const struct hfd_http_response *response, const struct queue *queue) {
        struct hf__buf *const *ring =
                queue->ring == response->first_ring ? queue->first : queue->ring;

        for (unsigned i = 0; i < queue->n; i++)
                hf__buf_unref(ring[(queue->head + i) & (queue->space - 1)]);
        free_ring(response, queue->ring);
}

void hfd_http_response_clear(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;

        assert(hfd_http_request_is_on_worker(request));
        pthread_mutex_lock(&response->mu);
        assert(response->cut);
        const struct queue queue = empty_queue_locked(response);
        pthread_mutex_unlock(&response->mu);
        drop_queue(response, &queue);
}

int hfd_http_response_set_gone(struct hfd_http_request *request) {
        struct hfd_http_response *response = &request->response;
        int code;

        assert(hfd_http_request_is_on_worker(request));
        pthread_mutex_lock(&response->mu);
        assert(!response->gone);
        response->gone = true;
        code = response->code;
        const struct queue queue = empty_queue_locked(response);
        pthread_mutex_unlock(&response->mu);
        drop_queue(response, &queue);
        return code;
}

bool hfd_http_response_has_body(const struct hfd_http_request *request) {
        int code = request->response.code;

        /* The method is NULL when the request was refused before it was known. */
        return code != 204 && code != 304 &&
               (!request->method || strcmp(request->method, "HEAD") != 0);
}

bool hfd_http_response_next_header(const struct hfd_http_request *request, size_t *cursor,
                                   struct hfd_checked_header *ret_header) {
        const struct hfd_http_response *response = &request->response;
        size_t at = *cursor, n = response->n_headers_bytes;

        /* First the response's own headers, then those that requests share. */
        if (at >= n) {
                if (at - n >= request->n_shared_headers)
                        return false;
                *ret_header = request->shared_headers[at - n];
                *cursor = at + 1;
                return true;
        }
        const char *entry = response->headers + at;
        struct hfd_packed_header lengths = hfd_packed_header_read(entry);

        *ret_header = (struct hfd_checked_header){.name = hfd_packed_header_name(entry),
                                                  .value = hfd_packed_header_value(entry, lengths),
                                                  .n_name = lengths.n_name,
                                                  .n_value = lengths.n_value};
        *cursor = at + hfd_packed_header_size(lengths);
        return true;
}
