/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One connection of a channel, and the calls on it. connect.c, io.c and session.c do its work.
 * Private to server/storage/grpc. Thread: the channel's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "server/storage/grpc/channel_private.h"
#include "server/storage/grpc/stream.h"

struct addrinfo;
struct ssl_st;

enum hfd_grpc_state {
        HFD_GRPC_RESOLVING,  /* the host's addresses are looked up */
        HFD_GRPC_CONNECTING, /* TCP */
        HFD_GRPC_HANDSHAKE,  /* TLS */
        HFD_GRPC_GREETING,   /* our preface is sent, and the peer's first frame has not come */
        HFD_GRPC_READY
};

struct hfd_grpc_connection {
        struct hfd_grpc_channel *channel;
        const struct hfd_grpc_endpoint *endpoint;
        struct hfd_grpc_connection **slot; /* its place in channel->current; NULL = retired */
        struct hfd_grpc_connection *next;  /* in channel->connections */
        enum hfd_grpc_state state;
        bool dead; /* freed at the end of the iteration; `end` says why */
        struct hf_status end;
        struct hf__timer timer; /* first for connecting, later for PINGs */

        struct hfd_grpc_resolver *resolver; /* while a thread looks up the host; NULL = none */
        struct addrinfo *addresses, *address_next; /* addresses is owned */
        int fd;                                    /* -1 = none */
        uint32_t events;                           /* registered with epoll; 0 = not registered */
        struct ssl_st *tls;                        /* owned; NULL = clear text */
        bool tls_wants_write, has_more_input;

        nghttp2_session *session; /* owned; from GREETING on */
        bool is_dirty;            /* the session may have output */
        char *out;                /* the channel's buffer while it is filled */
        size_t n_out;
        /* Output that the socket did not accept; owned, NULL = none. */
        char *unsent;
        size_t unsent_at, n_unsent;
        /* How many bytes the session has produced; how many the socket (or TLS) has accepted. */
        uint64_t n_filled, n_written;

        hf_nsec received_at;    /* when bytes were last received, or the connection was made */
        hf_nsec pinged_at;      /* 0 = no response to a PING is due */
        hf_nsec no_ping_before; /* HFD_GRPC_PING_EVERY after the last PING; 0 = none was sent */

        struct hfd_grpc_stream *streams, **streams_tail; /* oldest first */
        size_t n_streams;
};

/* A new connection, which begins to connect and is the current one of its slot. It may be dead
 * already, and then is in no slot. NULL = out of memory. */
struct hfd_grpc_connection *hfd_grpc_connection_new(struct hfd_grpc_channel *channel,
                                                    const struct hfd_grpc_endpoint *endpoint,
                                                    struct hfd_grpc_connection **slot);
/* Ends the connection's calls and frees it. */
void hfd_grpc_connection_free(struct hfd_grpc_connection *connection);

/* The connection gets no more calls, because its peer has sent GOAWAY or seems to be dead, or
 * because it cannot take any; the calls under way go on. */
void hfd_grpc_connection_retire(struct hfd_grpc_connection *connection);
/* The connection is over: its calls end, and it is freed, at the end of the iteration. Only the
 * first reason counts. */
__attribute__((format(printf, 3, 4))) void
hfd_grpc_connection_fail(struct hfd_grpc_connection *connection, int error, const char *format,
                         ...);

/* Handles events of its socket. */
void hfd_grpc_connection_event(struct hfd_grpc_connection *connection, uint32_t events);
/* Makes epoll watch for what the connection waits for. */
void hfd_grpc_connection_update_events(struct hfd_grpc_connection *connection);
/* Sets when hfd_grpc_connection_on_timer is called. */
void hfd_grpc_connection_set_timer(struct hfd_grpc_connection *connection, hf_nsec at);
void hfd_grpc_connection_on_timer(struct hfd_grpc_connection *connection);
/* Sends the session's output. Returns false if the connection is over: free it then. */
bool hfd_grpc_connection_flush(struct hfd_grpc_connection *connection);
/* The peer's first frame has come: calls can be sent. */
void hfd_grpc_connection_ready(struct hfd_grpc_connection *connection);

/* ---- calls ---- */

/* Adds a call. If the connection is dead, the call ends with it at the end of the iteration. */
void hfd_grpc_connection_add(struct hfd_grpc_connection *connection,
                             struct hfd_grpc_stream *stream);
/* Takes the stream out of the connection and ends it. nghttp2 must not call back for it again. */
void hfd_grpc_connection_end(struct hfd_grpc_stream *stream, int outcome, const char *error_text);
/* Resets the stream and ends it. */
void hfd_grpc_connection_abort(struct hfd_grpc_stream *stream, int outcome, const char *error_text);
/* HF_E_TIMEOUT if the peer may have got the whole request, HF_E_UNAVAILABLE if it has not. */
int hfd_grpc_connection_lost_outcome(const struct hfd_grpc_stream *stream);
