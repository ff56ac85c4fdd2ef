/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection: socket, TLS, unsent bytes, and the protocol on it. The head of connection.c
 * describes its states.
 *
 * Threads: its worker only, for the struct and all functions. No lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

#include "server/http/http_private.h"
#include "server/http/http_request.h"
#include "server/http/protocol/protocol.h"
#include "server/http/worker.h"

/* Time limits. */
#define HFD_HANDSHAKE_TIME (10 * HF_NSEC_PER_SEC)
#define HFD_HEAD_TIME      (32 * HF_NSEC_PER_SEC) /* to send a head */
#define HFD_BODY_TIME      (90 * HF_NSEC_PER_SEC) /* to send a whole request */
/* Without a request, or with unsent bytes of which none is taken. */
#define HFD_IDLE_TIME   (90 * HF_NSEC_PER_SEC)
#define HFD_LINGER_TIME (2 * HF_NSEC_PER_SEC)
/* Request bodies that are held, of one connection and of all. */
#define HFD_CONNECTION_BODY ((size_t)32 << 20)
#define HFD_TOTAL_BODY      ((size_t)256 << 20)

enum hfd_connection_state { HFD_CONNECTION_HANDSHAKE, HFD_CONNECTION_OPEN, HFD_CONNECTION_LINGER };

struct hfd_connection {
        struct hfd_worker *worker;                       /* borrowed */
        struct hfd_connection *next, *prev, *dirty_next; /* the worker's lists */
        int fd;                                          /* owned */
        SSL *ssl;                                        /* owned */
        enum hfd_connection_state state;
        const struct hfd_protocol *protocol; /* NULL until the handshake is done */
        void *protocol_state;                /* owned by the protocol */
        struct hfd_origin *origin;           /* owned reference */
        char *unsent; /* owned; output that TLS has not taken yet; NULL = none */
        size_t unsent_at, unsent_n;
        size_t body_bytes; /* of the requests that are on it */
        /* HANDSHAKE and LINGER: when the state began. OPEN: when the socket last took a byte. */
        hf_nsec since;
        uint32_t events;      /* those that epoll watches for */
        bool is_dirty;        /* in the worker's dirty list */
        bool dead;            /* is freed at the end of hfd_connection_serve */
        bool ending;          /* closes once nothing is unsent */
        bool tls_wants_write; /* the handshake waits until the socket is writable */
        bool bad_cert;        /* the client certificate does not verify */
};

/* Takes ownership of fd on success only. 0, HF_E_TOO_LARGE (too many handshakes under way) or
 * -errno. */
int hfd_connection_new(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address);
void hfd_connection_free(struct hfd_connection *connection);
/* Handshakes, reads and writes as far as it goes without blocking. May free the connection. events:
 * as epoll returned them, 0 = the connection was marked. */
void hfd_connection_serve(struct hfd_connection *connection, uint32_t events);
/* Has the worker serve the connection in this iteration. Idempotent. */
void hfd_connection_mark(struct hfd_connection *connection);
/* Looks at the time limits; called once a second. */
void hfd_connection_tick(struct hfd_connection *connection, hf_nsec now);

/* ---- for the protocols ---- */

/* Counts n more body bytes. HF_E_TOO_LARGE: more than may be held; they are counted all the same,
 * until the request is detached. */
int hfd_connection_account_body(struct hfd_connection *connection, size_t n);
/* Detaches a request of this connection and uncounts its body. Drops the connection's reference. */
void hfd_connection_detach(struct hfd_connection *connection, struct hfd_http_request *request);
/* Passes the head to on_head; for a request whose body is still to come. */
void hfd_connection_announce_head(struct hfd_connection *connection,
                                  struct hfd_http_request *request);
/* Passes the complete request to the handler. */
void hfd_connection_dispatch(struct hfd_connection *connection, struct hfd_http_request *request);
/* Responds in place of the handler with a short text that gives the reason. */
void hfd_connection_refuse(struct hfd_connection *connection, struct hfd_http_request *request,
                           int code);
