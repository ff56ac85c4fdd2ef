/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The internals of a request, for the connection and the protocols that fill it in. Handlers use
 * http_request.h only. The head of http_request.c describes the states of a request.
 *
 * Threads: three groups of members, see below. All functions here belong to the worker thread of
 * the request's connection. Only the response has a lock (http_response.h).
 */
#include <stdatomic.h>
#include <stdint.h>

#include <holdfast/error.h>

#include "server/http/request/http_request.h"
#include "server/http/request/http_response.h"
#include "server/http/request/joined_headers.h"
#include "server/http/request/origin.h"
#include "server/http/request/request_body.h"
#include "server/http/request/worker_mailbox.h"

struct hfd_connection;

/* A pointer of the user of on_head that belongs to a connection; its requests share it. The worker
 * only. */
struct hfd_connection_context {
        void *pointer; /* owned; NULL = none */
        void (*free_fn)(void *pointer);
};

struct hfd_http_request {
        struct hfd_worker_message message; /* belongs to the worker while response.posted */
        atomic_int refs;

        /* The worker sets these before the handler is called; immutable afterwards, except that it
         * frees headers and body once a stream has begun. */
        /* Of the connection's worker, borrowed. The mailbox exists while not response.gone: use it
         * on the worker or under response.mu. The address may always be compared. */
        struct hfd_worker_mailbox *worker;
        struct hfd_origin *origin; /* owned reference */
        const char *protocol;      /* static text */
        const char *method;        /* static text, or own_method */
        /* own_method, target and headers are owned blocks (base/blocks.h). */
        char *own_method;  /* NULL = one of the usual methods */
        char *target;      /* its '?' is replaced by a NUL */
        const char *query; /* within target, or the static text "" */
        char *headers;     /* packed (packed_header.h); names in lower case */
        size_t n_headers_bytes, headers_space, n_headers;
        uint64_t
                header_lengths; /* bit n % 64: there is a name of n bytes; most searches end here */
        bool has_repeated;      /* a name occurs more than once, and they are not joined yet */
        struct hfd_request_body body;
        size_t n_target, n_own_method; /* bytes of target and own_method */
        hf_nsec received_at;

        /* The worker only; the two contexts and `allocated` as http_request.h says. */
        /* Borrowed; set by the connection, NULL once the request is detached. The files of request/
         * never look into the connection. */
        struct hfd_connection *connection;
        struct hfd_connection_context *connection_context; /* of that connection */
        struct hfd_http_request *next, *prev;              /* HTTP/2: the connection's list */
        int32_t stream_id;                                 /* HTTP/2 */
        size_t header_bytes;                               /* HTTP/2: seen so far, stored or not */
        size_t accounted;    /* bytes of the request that the connection's account includes */
        hf_nsec progress_at; /* HTTP/2: start of its time limit (reset_stalled_streams) */
        bool head_done;      /* the head is complete; HTTP/1.1: and a body follows */
        bool received;       /* HTTP/2: the whole request is complete */
        bool accepted;       /* on_head has chosen HFD_HTTP_READ_BODY */
        bool dispatched;     /* the handler was called */
        void (*on_gone)(void *ctx);
        void *on_gone_ctx;
        void (*on_finished)(void *ctx, int code, size_t n_bytes);
        void *on_finished_ctx;
        void (*on_unsent)(void *ctx, size_t n_bytes, bool waits);
        void *on_unsent_ctx;
        /* In the list `responded` of the worker, and then perhaps in that of the connection. */
        struct hfd_http_request *responded_next;
        bool responded; /* it is in such a list, or was */
        void *context;
        void (*context_free)(void *context);
        void *handler_context;
        void (*handler_context_free)(void *context);
        void *allocated; /* owned; of hfd_http_request_allocate; NULL = none */

        /* Set by on_head, immutable afterwards; a NULL name = none. */
        struct hfd_header response_header;
        const struct hfd_checked_header *shared_headers; /* borrowed; n_shared_headers */
        size_t n_shared_headers;

        struct hfd_http_response response; /* with its own lock */
};

/* The caller owns the reference. worker (the mailbox of a worker) and origin may be NULL: in
 * tests and fuzzing. 0 or -errno. */
int hfd_http_request_new(struct hfd_worker_mailbox *worker, struct hfd_origin *origin,
                         struct hfd_http_request **ret_request);
/* 0 or -ENOMEM. */
int hfd_http_request_set_method(struct hfd_http_request *request, const char *method, size_t n);
/* 0, -ENOMEM, or HF_E_INVALID: the target is neither a path nor an absolute http or https URL, or
 * it has a forbidden byte. */
int hfd_http_request_set_target(struct hfd_http_request *request, const char *target, size_t n);
/* Converts the name to lower case. 0, -ENOMEM, or HF_E_TOO_LARGE: there are too many headers, or
 * this one is too long. */
int hfd_http_request_add_header(struct hfd_http_request *request, const char *name, size_t n_name,
                                const char *value, size_t n_value);
/* Joins repeated headers. Call it when the head is complete; until then only the first header of a
 * name is found. 0 or -ENOMEM. */
int hfd_http_request_join_headers(struct hfd_http_request *request);
/* 0, -ENOMEM, or HF_E_TOO_LARGE: the body would exceed max. */
int hfd_http_request_add_body(struct hfd_http_request *request, const void *data, size_t n,
                              size_t max);

/* Roughly the bytes of memory that the sender has made the request hold; of the response only if
 * the worker has refused the request, because other responses have limits of their own. */
size_t hfd_http_request_memory(const struct hfd_http_request *request);
/* Frees headers and body; nobody may read them any more. Method and target stay. */
void hfd_http_request_drop_content(struct hfd_http_request *request);

/*
 * Detaches the request from its connection. Responses are dropped afterwards. Calls on_gone unless
 * the response was complete, then on_finished, and drops the connection's reference.
 */
void hfd_http_request_detach(struct hfd_http_request *request);

/*
 * Whether this thread is the request's worker; for asserts. Only tests create requests without a
 * worker; these belong to the test's thread.
 */
bool hfd_http_request_is_on_worker(const struct hfd_http_request *request);
