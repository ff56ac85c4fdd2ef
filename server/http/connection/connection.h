/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection: socket, TLS, unsent bytes, and the protocol on it. The head of connection.c
 * describes its states.
 *
 * Threads: its worker only, for the struct and all functions but hfd_connection_uncount. No lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

#include "server/http/connection/http_private.h"
#include "server/http/connection/protocol.h"
#include "server/http/connection/worker.h"
#include "server/http/limits/strangers.h"
#include "server/http/request/http_request_private.h"

/* Time limits. */
#define HFD_HANDSHAKE_TIME (10 * HF_NSEC_PER_SEC)
/* A younger handshake is not closed for another client of the same address. */
#define HFD_HANDSHAKE_GRACE (250 * HF_NSEC_PER_MSEC)
#define HFD_HEAD_TIME       (32 * HF_NSEC_PER_SEC) /* HTTP/1.1: to send a request's head */
#define HFD_BODY_TIME       (90 * HF_NSEC_PER_SEC) /* HTTP/1.1: to send a whole request */
/* The longest time without a request, or without progress while bytes are unsent. HTTP/2: also the
 * longest time that a peer may take to send a whole request, or read nothing of a response. */
#define HFD_IDLE_TIME   (90 * HF_NSEC_PER_SEC)
#define HFD_LINGER_TIME (2 * HF_NSEC_PER_SEC)
/* How long a drain waits for strangers. */
#define HFD_STRANGER_DRAIN_TIME HF_NSEC_PER_SEC

enum hfd_connection_state { HFD_CONNECTION_HANDSHAKE, HFD_CONNECTION_OPEN, HFD_CONNECTION_LINGER };

struct hfd_connection {
        struct hfd_worker *worker;          /* borrowed */
        struct hfd_connection *next, *prev; /* the worker's list */
        /* Its place in one of the worker's lists of dirty connections; NULL = in none. dirty_at
         * points to the pointer in the list that points to this connection. */
        struct hfd_dirty_list *dirty_list;
        struct hfd_connection *dirty_next, **dirty_at;
        int fd;   /* owned */
        SSL *ssl; /* owned */
        enum hfd_connection_state state;
        const struct hfd_protocol *protocol;   /* NULL until the handshake is done */
        void *protocol_state;                  /* owned by the protocol */
        struct hfd_origin *origin;             /* owned reference */
        struct hfd_connection_context context; /* what on_head keeps between requests */
        char *unsent; /* owned; output that TLS has not accepted yet; NULL = none */
        /* Bytes of unsent: those that TLS has accepted, and all. */
        size_t unsent_at, unsent_n;
        /* The memory of its requests and pending input; also whether the sender is known. */
        struct hfd_account_share share;
        struct hfd_stranger_key key;
        struct hfd_stranger stranger; /* in one of the worker's sets while the sender is unknown */
        size_t n_requests;            /* that are not detached yet */
        size_t n_accepted;            /* of them those that make their sender known */
        /* List, with references: requests with on_unsent whose response waits for the connection's
         * turn. Empty after each turn. */
        struct hfd_http_request *responded;
        /* HANDSHAKE and LINGER: when the state began. OPEN: when it began, or when the socket last
         * accepted any byte. */
        hf_nsec since;
        uint32_t events;      /* the events that epoll reports for it now */
        int epoll;            /* borrowed from the worker: the one that reports them */
        bool dead;            /* must be freed: by hfd_connection_serve, or at the worker's exit */
        bool ending;          /* no more input: lingers once all output is sent */
        bool tls_wants_write; /* the handshake waits until the socket is writable */
        bool bad_cert;        /* the client certificate did not verify in the handshake */
        unsigned n_reloads;   /* the reloads before the client certificate was last verified */
        hf_nsec verify_at;    /* without a reload, it is not verified again before this time */
};

/* For a socket that the server's n_connections includes already. Takes ownership of fd on success
 * only; otherwise the caller closes it and calls hfd_connection_uncount. 0, HF_E_TOO_LARGE (there
 * is no room for it) or -errno. */
int hfd_connection_new(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address);
/* A socket is closed: decrements n_connections and wakes hfd_http_wait_closed when none is left.
 * Thread: any. */
void hfd_connection_uncount(struct hfd_http *http);
/* Closes the socket and detaches all requests. Only for hfd_connection_serve and the worker's
 * exit. */
void hfd_connection_free(struct hfd_connection *connection);
/* Continues the handshake, reads and writes, as far as possible without blocking. May free the
 * connection. events: as epoll returned them; 0 = the connection was marked dirty. */
void hfd_connection_serve(struct hfd_connection *connection, uint32_t events);
/* Marks the connection dirty: the worker serves it in this iteration or soon after, without an
 * event of its socket. A dirty connection moves to the other list if it belongs there now. */
void hfd_connection_mark_dirty(struct hfd_connection *connection);
/* Takes the connection off its list of dirty ones. Idempotent. */
void hfd_connection_unmark_dirty(struct hfd_connection *connection);
/* Enforces the time limits; called about once a second. Frees nothing: a connection that must end
 * is only marked dirty, so the caller may walk the list of connections. */
void hfd_connection_tick(struct hfd_connection *connection, hf_nsec now);

/* Verifies the client certificate again if the server's certificates were reloaded since it was
 * last verified, or if time may have changed the result. Call it before a request is authenticated.
 * 0, also if the certificate is refused now (origin->refused); or -ENOMEM: the sender of the
 * request is not known, and the request must be refused. */
int hfd_connection_verify_again(struct hfd_connection *connection);
/* The newest request names nobody: the limits for strangers apply again, unless an accepted request
 * is under way or the client certificate verifies. */
void hfd_connection_forget_sender(struct hfd_connection *connection);

/* The sender has become known: the limits for strangers do not apply any more. Idempotent. */
void hfd_connection_make_known(struct hfd_connection *connection);

/* ---- for the protocols ---- */

/* Creates a request of this connection. The reference belongs to the connection, which drops it by
 * hfd_connection_detach. 0 or -errno. */
int hfd_connection_new_request(struct hfd_connection *connection,
                               struct hfd_http_request **ret_request);

/* Counts what the request holds now, and `extra` bytes that the protocol holds for it;
 * hfd_connection_detach uncounts them. HF_E_TOO_LARGE: a limit is exceeded. The bytes are counted
 * nevertheless. */
int hfd_connection_account(struct hfd_connection *connection, struct hfd_http_request *request,
                           size_t extra);
/* The connection has had its turn: reports the responses that waited for it and are not complete.
 */
void hfd_connection_report_unsent(struct hfd_connection *connection);
/* Detaches a request of this connection and uncounts it. Drops the connection's reference. */
void hfd_connection_detach(struct hfd_connection *connection, struct hfd_http_request *request);
/* Call once when the head of a request is complete. Calls on_head, if there is one, which decides
 * about the request. True: read the body, then dispatch. False: a response was sent, or the request
 * was dispatched without its body; the protocol must drop the rest of the request. */
bool hfd_connection_decide(struct hfd_connection *connection, struct hfd_http_request *request);
/* Frees headers and body of a request, and uncounts them and the `extra` bytes of
 * hfd_connection_account. Nobody may read headers and body any more. */
void hfd_connection_drop_content(struct hfd_connection *connection,
                                 struct hfd_http_request *request);
/* Passes the request to the handler: complete, or after its head if its body is ignored. */
void hfd_connection_dispatch(struct hfd_connection *connection, struct hfd_http_request *request);
/* Responds with an error without calling the handler. The body is the reason phrase, or a Status
 * object for 413. */
void hfd_connection_refuse(struct hfd_connection *connection, struct hfd_http_request *request,
                           int code);
