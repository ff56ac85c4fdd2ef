/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lanes: pools of connections, their sockets in the engine's epoll set, and curl's timers. Each
 * lane has two pools in use, one of them for clear-text HTTP/2, and perhaps older ones that are
 * being emptied.
 *
 * Thread: the engine's, for every function here but init and done, which run before its start and
 * after its end. There is no lock.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/engine.h"

struct hf__exchange;

/*
 * The connections of a lane: one curl multi handle. When a request has timed out on a connection
 * from which no byte came meanwhile, or while it waited for a connection, the lane gets a new pool,
 * so that no later request uses that connection. Requests in the old pool go on, and it is freed
 * after the last of them.
 */
struct hf__pool {
        struct hf__pool *next; /* the older one; the lane's first takes new requests */
        struct hf__http_engine *engine;
        size_t index;         /* in hf__lanes.pools */
        CURLM *multi;         /* owned */
        hf_nsec curl_due;     /* when curl wants to be called; HF_NSEC_NEVER = not */
        hf_nsec reread_at;    /* when curl is told to read from all sockets; HF_NSEC_NEVER = not */
        uint64_t n_received;  /* header lines and pieces of bodies that curl has passed on */
        size_t n_active;      /* requests in multi */
        long max_connections; /* to one origin, as set in multi; 0 = no limit */
        bool unlimited;       /* some request could not share a connection: no limit any more */
        bool must_restart_waiting; /* requests that wait for a connection must begin again */
        /* for clear-text HTTP/2: see h2c_guard.c */
        bool h2c_connected; /* there seems to be a connection that can be shared */
        bool h2c_changed;   /* held requests must be started again */
        struct hf__exchange *first_requests, *held;
};

struct hf__socket {
        struct hf__pool *pool; /* NULL = curl does not want it watched */
        hf_nsec last_in;       /* when bytes were received last; 0 = never */
        uint32_t watched;      /* its events in the epoll set; 0 = it is not in the set */
        bool is_connection;    /* curl closes it by hf__lanes_close_socket */
};

/* A connection that collects what one iteration of the loop writes. */
struct hf__corked {
        int fd;
        size_t index; /* of its pool */
};

#define HF__HTTP_N_CORKED 16
#define HF__N_POOLS       (2 * HF__HTTP_N_LANES)

struct hf__lanes {
        /* Owned. Each entry is a list, the newest pool first. The second half is for clear-text
         * HTTP/2. */
        struct hf__pool *pools[HF__N_POOLS];
        struct hf__socket *sockets; /* by descriptor; owned */
        size_t n_sockets;
        struct hf__corked corked[HF__HTTP_N_CORKED];
        size_t n_corked;
        /* A bit per index of a pool for which curl was called in this iteration: its corked
         * connections may have collected something. */
        unsigned dirty;
};

/* 0 or -ENOMEM; call hf__lanes_done after a failure as well. */
int hf__lanes_init(struct hf__http_engine *engine);
/* No request is left. */
void hf__lanes_done(struct hf__http_engine *engine);

/* ---- for the loop ---- */

/* Handles events of a descriptor that is not the engine's own. */
void hf__lanes_socket_event(struct hf__http_engine *engine, int fd, uint32_t events);
/* Calls curl where it is due, ends requests that are done, frees empty old pools. */
void hf__lanes_run(struct hf__http_engine *engine);
/* Sends what corked connections have collected. Before the loop sleeps. */
void hf__lanes_flush(struct hf__http_engine *engine);
/* When hf__lanes_run has to be called next, in boot time. */
hf_nsec hf__lanes_due(const struct hf__http_engine *engine);

/* ---- for exchanges ---- */

/* Before curl is called in a way that may write to the pool's connections. */
void hf__lanes_mark_dirty(struct hf__pool *pool);
/* Before a request is added: adapts the limit of connections. shares: hf__options_shares. */
void hf__lanes_limit_connections(struct hf__pool *pool, bool shares);
/* A request of the pool turned out unable to share connections: lifts the limit soon. */
void hf__lanes_lift_limit(struct hf__pool *pool);
/* Gives the lane a new pool: a connection of this one seems to be dead. */
void hf__lanes_replace_pool(struct hf__pool *pool);

/* ---- for curl ---- */

/* A connection's socket was opened. */
void hf__lanes_socket_opened(struct hf__http_engine *engine, curl_socket_t fd);
/* Corks the socket of a new connection that requests will share. */
void hf__lanes_cork_socket(struct hf__pool *pool, curl_socket_t fd);
/* CURLOPT_CLOSESOCKETFUNCTION; ctx is the engine. */
int hf__lanes_close_socket(void *ctx, curl_socket_t fd);
