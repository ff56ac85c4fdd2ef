/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The response to a request: a queue of pieces between the threads that respond and the worker that
 * sends. It is a member of its request and lives as long as that. http_request.h declares the
 * functions for code that responds (hfd_http_request_reply, _stream, _push, _end); this header is
 * for the worker.
 *
 * Lock: mu guards the members that say so. Lock order: mu before the mailbox's mutex. mu is not
 * held while a body is copied. Threads: the worker only, for every function here, with two
 * exceptions: the thread with the last reference calls hfd_http_response_done; and after the end of
 * the worker's thread hfd_worker_loop_stop calls hfd_http_response_clear_posted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>

#include "base/buf.h"
#include "server/http/request/response_header.h"

struct hfd_http_request;

/* The limits of the queue of a stream. A watch whose client is further behind is cut. The client
 * watches again, which costs less than to keep its events. */
#define HFD_RESPONSE_MAX_PIECES 1024
#define HFD_RESPONSE_MAX_BYTES  ((size_t)4 << 20)
/* Enough for the headers of most responses. Bytes. */
#define HFD_RESPONSE_OWN_SPACE 128

/* The members that change with an event of a watch come first, in few cache lines: thousands of
 * watches get the same event at once. */
struct hfd_http_response {
        pthread_mutex_t mu;
        /* Guarded by mu. */
        bool started;   /* code and headers are set */
        bool streaming; /* the length is unknown: pieces follow */
        bool ended;     /* no more pieces follow */
        bool cut;       /* the worker cuts the response; http_response.c says why */
        bool gone;      /* the request is detached from its connection: everything is dropped */
        bool posted;    /* a message to the worker is not handled yet; it holds a reference */
        /* The queue, guarded by mu: a ring of owned references. space is a power of two. */
        unsigned ring_space, ring_head, ring_n;
        /* The worker only. They are kept apart from the bools above: compilers read several
         * neighbouring bools as one word, and the worker writes these without mu. */
        bool refused;     /* the connection or on_head has responded: the handler is not called */
        bool submitted;   /* HTTP/2: the head was given to nghttp2 */
        bool complete;    /* its last byte was given to the connection */
        bool close_after; /* the connection ends after this response; guarded as the head below */
        /* Guarded by mu. */
        struct hf__buf **ring; /* first_ring, or else owned; NULL = no piece was queued yet, or the
                                * queue was dropped */
        struct hf__buf *first_ring[2];
        /* Of all pieces, including bytes already read of the first one. Changed under mu, read also
         * without it. Sequentially consistent, because code that makes pieces sets a flag, then
         * reads this, while the worker changes this, then reads the flag in on_drained. So one of
         * the two sees what the other has done. */
        atomic_size_t ring_bytes;
        /* Boot time when the worker last read bytes or, before it has read any, when it learned of
         * the response; 0 = it has not learned of it yet. Guarded by mu. */
        hf_nsec sent_at;
        size_t offset;         /* worker only: bytes already read of the first piece */
        size_t n_sent;         /* worker only: body bytes given to the connection */
        size_t ring_uncounted; /* guarded by mu: size of a stream's first piece if it alone exceeds
                                  the limit, else 0 */
        void (*continuation)(void *ctx); /* guarded by mu: fn of hfd_http_request_continue; NULL =
                                            none */
        void *continuation_ctx;

        /* The worker only. */
        void (*on_drained)(void *ctx); /* http_request.h; NULL = none */
        void *on_drained_ctx;
        size_t low; /* for on_drained */

        /* The head, also close_after: guarded by mu until `started`, immutable afterwards. */
        size_t content_length; /* 0 for a stream */
        /* All headers but those that requests share, packed (packed_header.h). In own_space, or
         * else owned. */
        char *headers;
        size_t n_headers_bytes;
        int code;

        char own_space[HFD_RESPONSE_OWN_SPACE]; /* for headers; must be last */
};

/* A consistent copy of the members that the worker needs for its decisions. */
struct hfd_http_response_state {
        bool started, streaming, ended, cut;
        size_t n; /* bytes in the queue that are not read yet */
};

int hfd_http_response_init(struct hfd_http_response *response); /* 0 or -errno */
/* Frees the pieces and the head. `posted` must be false. */
void hfd_http_response_done(struct hfd_http_response *response);

/* Copies the response's state under the lock. The response may change as soon as this returns. */
void hfd_http_response_get_state(struct hfd_http_request *request,
                                 struct hfd_http_response_state *ret_state);
/*
 * Call when the worker has received the request's message: the next change posts it again. Returns
 * the continuation that is due, if there is one, with its argument; NULL = the response has
 * changed. now: boot time.
 */
void (*hfd_http_response_clear_posted(struct hfd_http_request *request, hf_nsec now,
                                      void **ret_ctx))(void *ctx);
/* Copies up to n bytes and removes them from the queue. Returns the number of bytes. now: boot
 * time. May call on_drained, if it reaches the end of a piece. */
size_t hfd_http_response_read(struct hfd_http_request *request, char *out, size_t n, hf_nsec now);
/* Drops the pieces in the queue of a response that was cut. */
void hfd_http_response_clear(struct hfd_http_request *request);
/* Call when the request is detached: nothing is posted to the worker from now on. Drops the pieces
 * in the queue. Returns the status code; 0 = there was no response. */
int hfd_http_response_set_gone(struct hfd_http_request *request);
/* Whether the response may have a body: not for HEAD, and not with status 204 or 304. Call after
 * `started`. */
bool hfd_http_response_has_body(const struct hfd_http_request *request);
/* Iterates over the headers, after `started`: *cursor begins as 0; false at the end. The texts stay
 * as long as the request. */
bool hfd_http_response_next_header(const struct hfd_http_request *request, size_t *cursor,
                                   struct hfd_checked_header *ret_header);
