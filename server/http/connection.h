/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection: socket, TLS, unsent bytes, and the protocol on it. Model: the head of
 * connection.c. Thread: its worker.
 */
#include <stdint.h>

#include "server/http/worker.h"

enum hfd_connection_state { HFD_CONNECTION_HANDSHAKE, HFD_CONNECTION_OPEN, HFD_CONNECTION_LINGER };

struct hfd_connection;

/* What HTTP/1.1 and HTTP/2 do differently. None of these may free the connection. */
struct hfd_protocol {
        int (*open)(struct hfd_connection *connection); /* 0 or -ENOMEM */
        /* Takes all n bytes. Not 0: the connection ends after what is pending was sent. */
        int (*input)(struct hfd_connection *connection, const char *data, size_t n);
        bool (*wants_input)(const struct hfd_connection *connection);
        /* Puts up to HFD_OUT_SPACE + HFD_OUT_SLACK bytes to send into out; 0 = nothing now. */
        size_t (*fill)(struct hfd_connection *connection, char *out);
        void (*response)(struct hfd_connection *connection,
                         struct hfd_http_request *request); /* the answer has news */
        bool (*finished)(
                const struct hfd_connection *connection); /* nothing more will be sent: close */
        void (*drain)(
                struct hfd_connection *connection); /* say that it ends, finish what is there */
        void (*tick)(struct hfd_connection *connection,
                     hf_nsec now); /* once a second: time limits */
        void (*close)(
                struct hfd_connection *connection); /* detaches the requests, frees its state */
};

extern const struct hfd_protocol hfd_h1, hfd_h2;

struct hfd_connection {
        struct hfd_worker *worker; /* borrowed */
        struct hfd_connection *next, *prev, *dirty_next;
        int fd;   /* owned */
        SSL *ssl; /* owned */
        enum hfd_connection_state state;
        const struct hfd_protocol *protocol; /* NULL until the handshake is done */
        void *protocol_state;                /* owned by the protocol */
        struct hfd_origin *origin;           /* owned reference */
        char *unsent; /* owned; what TLS would not take yet; NULL = nothing */
        size_t unsent_at, unsent_n;
        size_t body_bytes; /* of its requests */
        hf_nsec since;     /* handshake: begun; open: the last byte was taken by the socket; linger:
                              begun */
        uint32_t events;   /* asked of epoll */
        bool is_dirty;     /* in the worker's dirty list */
        bool dead;         /* freed at the end of this service */
        bool ending;       /* closes once nothing is unsent */
        bool tls_wants_write; /* the handshake does */
        bool bad_cert;        /* by the verify callback */
};

/* Takes fd on success only. 0, HF_E_TOO_LARGE (too many handshakes under way) or -errno. */
int hfd_connection_new(struct hfd_worker *worker, int fd, const struct sockaddr_storage *address);
void hfd_connection_free(struct hfd_connection *connection);
/* Handshake, reads, writes, as far as it goes without blocking; may free the connection. events:
 * what epoll said, 0 = marked. */
void hfd_connection_serve(struct hfd_connection *connection, uint32_t events);
void hfd_connection_mark(struct hfd_connection *connection); /* serve it this turn */
void hfd_connection_tick(struct hfd_connection *connection, hf_nsec now);

/* For the protocols. Accounts n more body bytes: 0 or HF_E_TOO_LARGE. */
int hfd_connection_account_body(struct hfd_connection *connection, size_t n);
/* Detaches a request of this connection and gives its body's account back. */
void hfd_connection_detach(struct hfd_connection *connection, struct hfd_http_request *request);
/* Shows the head of a request whose body is still to come. */
void hfd_connection_show_head(struct hfd_connection *connection, struct hfd_http_request *request);
/* Hands the complete request to the handler. */
void hfd_connection_dispatch(struct hfd_connection *connection, struct hfd_http_request *request);
/* Answers for the handler: a short text that says why. */
void hfd_connection_refuse(struct hfd_connection *connection, struct hfd_http_request *request,
                           int code);
const char *hfd_reason_phrase(int code);
