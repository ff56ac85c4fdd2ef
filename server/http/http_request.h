/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inside of a request: what the protocols fill in, and the answer's way from any thread to the
 * worker. Model and rules: the head of request.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/mailbox.h"
#include "server/http/http.h"

struct hfd_connection;
struct hfd_worker;

#define HFD_RING_MAX_PIECES 1024
#define HFD_RING_MAX_BYTES  ((size_t)4 << 20)
#define HFD_HEADERS_MAX     256 /* headers of one request */

/* Who is at the other end: one per connection, shared by its requests. Immutable once the handshake
 * is done. */
struct hfd_origin {
        atomic_int refs;
        enum hfd_peer_cert kind;
        char remote[64];
        char *common_name;    /* owned; NULL = none */
        char **organisations; /* owned, and each */
        size_t n_organisations;
};

/* 0 or -ENOMEM. */
int hfd_origin_new(const struct sockaddr_storage *address, struct hfd_origin **ret_origin);
struct hfd_origin *hfd_origin_ref(struct hfd_origin *origin);
struct hfd_origin *hfd_origin_unref(struct hfd_origin *origin); /* accepts NULL, returns NULL */

enum hfd_worker_message_kind { HFD_MESSAGE_REQUEST, HFD_MESSAGE_SOCKET };

/* What a worker's mailbox carries; the first member of what is posted. */
struct hfd_worker_message {
        struct hf__message message;
        enum hfd_worker_message_kind kind;
};

struct hfd_http_request {
        struct hfd_worker_message message; /* the mailbox's while `posted` */
        atomic_int refs;

        /* Set by the worker before the handler sees it, immutable afterwards. */
        struct hfd_worker *worker; /* borrowed; valid while not `gone`: use it under mu only, or on
                                      the worker */
        struct hfd_origin *origin; /* owned reference */
        const char *protocol;      /* static text */
        char *method, *target;     /* owned; target's '?' became a NUL */
        const char *query;         /* within target */
        char *headers; /* owned: entries of two uint32_t (lengths), name, NUL, value, NUL */
        size_t n_headers_bytes, headers_space, n_headers;
        char *body; /* owned; NUL-terminated; NULL = none */
        size_t n_body, body_space;
        hf_nsec received_at;

        /* The worker's. */
        struct hfd_connection *connection; /* borrowed; NULL once the request is gone or finished */
        struct hfd_http_request *next, *prev; /* the connection's list */
        int32_t stream_id;                    /* h2 */
        size_t header_bytes;                  /* seen so far, stored or not */
        hf_nsec progress_at;                  /* when a byte of it last moved in either direction */
        bool head_done, received, answered_early, dispatched, submitted, complete;
        size_t offset, n_sent; /* in the ring's first piece; body bytes given to the connection */
        void (*on_gone)(void *ctx);
        void *on_gone_ctx;
        void (*on_finished)(void *ctx, int code, size_t n_bytes);
        void *on_finished_ctx;
        void *context;
        void (*context_free)(void *context);
        void *handler_context;
        void (*handler_context_free)(void *context);

        pthread_mutex_t mu; /* taken before the mailbox's mutex; no other order exists */
        /* Guarded by mu. The answer's head is immutable once `started`. */
        bool started, streaming, ended, cut, gone, posted;
        int code;
        bool close_after;       /* the connection takes no further request */
        size_t content_length;  /* of an answer that does not stream */
        char *response_headers; /* owned; name, NUL, value, NUL, ... */
        size_t n_response_headers;
        struct hf__buf **ring; /* owned; ring_space is a power of two */
        unsigned ring_space, ring_head, ring_n;
        size_t ring_bytes;     /* unread, offset not counted */
        size_t ring_uncounted; /* of these the first piece's, when it alone is above the limit */
};

/* ---- filling one in. Thread: the worker ---- */

/* The caller owns the reference. 0 or -ENOMEM. origin, worker and connection may be NULL (tests,
 * fuzzing). */
int hfd_http_request_new(struct hfd_worker *worker, struct hfd_connection *connection,
                         struct hfd_origin *origin, struct hfd_http_request **ret_request);
int hfd_http_request_set_method(struct hfd_http_request *request, const char *method,
                                size_t n); /* 0 or -ENOMEM */
/* 0, -ENOMEM, or HF_E_INVALID: neither a path nor an absolute http URL, or it has a forbidden byte.
 */
int hfd_http_request_set_target(struct hfd_http_request *request, const char *target, size_t n);
/* The name is lowered, repeats are joined. 0, -ENOMEM, or HF_E_TOO_LARGE: too many of them. */
int hfd_http_request_add_header(struct hfd_http_request *request, const char *name, size_t n_name,
                                const char *value, size_t n_value);
/* 0, -ENOMEM, or HF_E_TOO_LARGE: the body would exceed max. */
int hfd_http_request_add_body(struct hfd_http_request *request, const void *data, size_t n,
                              size_t max);

/* ---- the answer as the worker reads it. Thread: the worker ---- */

struct hfd_http_response_state {
        bool started, streaming, ended, cut;
        size_t n; /* bytes waiting */
};
void hfd_http_response_look(struct hfd_http_request *request,
                            struct hfd_http_response_state *ret_state);
/* The letter has arrived: the next change posts it again. */
void hfd_http_response_taken(struct hfd_http_request *request);
/* Copies up to n waiting bytes and drops them from the ring; returns how many. */
size_t hfd_http_response_read(struct hfd_http_request *request, char *out, size_t n);
/* Drops what waits: the answer was cut. */
void hfd_http_response_clear(struct hfd_http_request *request);
bool hfd_http_response_has_body(
        struct hfd_http_request *request); /* false: HEAD, 204, 304. After started */
/* Iterates the answer's headers, after started: cursor starts as NULL; false at the end. */
bool hfd_http_response_next_header(struct hfd_http_request *request, const char **cursor,
                                   const char **ret_name, const char **ret_value);

/*
 * Ends the connection's part: from here on answers are dropped. Calls on_gone unless the answer was
 * complete, and on_finished; drops the connection's reference.
 */
void hfd_http_request_detach(struct hfd_http_request *request);
