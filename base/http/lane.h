/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lanes: pools of connections, their sockets in the engine's epoll set, and curl's timers. engine.h
 * describes what lanes are for. Each lane has one pool in use, and possibly older pools whose
 * requests have not all ended.
 *
 * Thread: the engine's, without a lock. Exceptions: hf__lanes_init runs before that thread starts,
 * and hf__lanes_done after it has ended, or if it could not start. hf__lanes_done makes curl close
 * its connections, so hf__lanes_close_socket then runs on the thread of hf__lanes_done.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/engine.h"

struct hf__exchange;

/*
 * A pool holds connections of a lane: one curl multi handle. A connection seems dead in two cases:
 * a request on it has timed out and no byte has arrived since the request was sent, or a request
 * has timed out while it waited for a connection. The lane then gets a new pool (if memory allows),
 * so that later requests do not use that connection. Requests in the old pool continue. The old
 * pool is freed when all of them have ended.
 */
struct hf__pool {
        struct hf__pool *next; /* the next older pool; only the newest pool gets new requests */
        struct hf__http_engine *engine;
        size_t index;         /* the lane: index into hf__lanes.pools */
        CURLM *multi;         /* owned */
        hf_nsec curl_due;     /* boot time when curl must be called; HF_NSEC_NEVER = none */
        hf_nsec reread_at;    /* boot time of reread_sockets (lane.c); HF_NSEC_NEVER = none */
        uint64_t n_received;  /* header lines and pieces of bodies that curl has passed on */
        size_t n_active;      /* requests in multi */
        long max_connections; /* to one origin, as set in multi; 0 = no limit */
        bool unlimited;       /* no limit any more: a request could not share a connection, or set
                                 no_connection_limit */
        /* the next hf__lanes_run restarts the requests that wait for a connection */
        bool must_restart_waiting;
};

struct hf__socket {
        struct hf__pool *pool; /* NULL = curl wants no events of this socket, or epoll_ctl failed */
        hf_nsec opened_at;     /* when curl created it, if is_connection */
        hf_nsec last_in;       /* when it was last readable; 0 = never */
        uint32_t watched;      /* events that epoll watches; 0 = the socket is not in the set */
        bool is_connection;    /* curl closes it through hf__lanes_close_socket */
        bool closed;           /* by hf__lanes_close_socket; curl has not opened the number again */
};

/* A connection whose small writes are collected until the end of a loop iteration. */
struct hf__corked {
        int fd;
        size_t index; /* the lane: index into hf__lanes.pools */
};

#define HF__HTTP_N_CORKED 16

struct hf__lanes {
        /* Owned. Each entry is a list, the newest pool first. */
        struct hf__pool *pools[HF__HTTP_N_LANES];
        struct hf__socket *sockets; /* by descriptor; owned */
        size_t n_sockets;
        struct hf__corked corked[HF__HTTP_N_CORKED];
        size_t n_corked;
        /* One bit per lane. Set: curl was called for a pool of the lane in this iteration, so the
         * lane's corked connections may hold unsent bytes. */
        unsigned dirty;
};

/* 0 or -ENOMEM; call hf__lanes_done after a failure as well. */
int hf__lanes_init(struct hf__http_engine *engine);
/* Frees all pools. All requests must have ended. */
void hf__lanes_done(struct hf__http_engine *engine);

/* ---- for the loop ---- */

/* Handles events of a descriptor that curl uses. */
void hf__lanes_socket_event(struct hf__http_engine *engine, int fd, uint32_t events);
/* Calls curl where it is due, ends requests that are done, frees empty old pools. */
void hf__lanes_run(struct hf__http_engine *engine);
/* Sends the bytes that corked connections have collected. Call it before the loop sleeps. */
void hf__lanes_flush(struct hf__http_engine *engine);
/* The boot time at which hf__lanes_run must be called next. */
hf_nsec hf__lanes_due(const struct hf__http_engine *engine);

/* ---- for exchanges ---- */

/* Call it before each call of curl that may write to the pool's connections. */
void hf__lanes_mark_dirty(struct hf__pool *pool);
/* Raises the limit of connections for one more request, or removes it. Call it before the request
 * is added. shares: the request may share a connection, and has not set no_connection_limit. If
 * false, the limit is removed for good. */
void hf__lanes_limit_connections(struct hf__pool *pool, bool shares);
/* Removes the limit of connections in the next hf__lanes_run. Call it when a request of the pool
 * turns out to be unable to share connections. */
void hf__lanes_lift_limit(struct hf__pool *pool);
/* Gives the lane a new pool. Call it when a connection of this pool seems dead (see hf__pool). */
void hf__lanes_replace_pool(struct hf__pool *pool);

/* ---- for curl ---- */

/* Notes that curl has opened the socket of a connection, which hf__lanes_close_socket will close.
 */
void hf__lanes_socket_opened(struct hf__http_engine *engine, curl_socket_t fd);
/* Corks the socket of a new connection that requests may share, unless HF__HTTP_N_CORKED sockets
 * are corked already. */
void hf__lanes_cork_socket(struct hf__pool *pool, curl_socket_t fd);
/* Closes the socket of a connection. For CURLOPT_CLOSESOCKETFUNCTION; ctx is the engine. */
int hf__lanes_close_socket(void *ctx, curl_socket_t fd);
