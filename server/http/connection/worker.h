/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A worker: a thread with its own epolls, mailbox and connections. This is what the connections
 * share; worker_loop.c of the folder above runs the thread.
 *
 * Threads: every thread may post to the mailbox, which has the only lock. The functions belong to
 * the threads that create and free the server. The struct says who may use the other members.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "server/http/limits/strangers.h"
#include "server/http/request/worker_mailbox.h"

struct hfd_connection;
struct hfd_http;

/* Sizes of the buffers, in bytes. */
#define HFD_IN_SPACE  16384
#define HFD_OUT_SPACE 65536
/* Extra space after HFD_OUT_SPACE: nghttp2 may return a whole frame for a nearly full buffer. */
#define HFD_OUT_SLACK 20480

/* Connections that are to be served without an event of their sockets, in the order in which they
 * were marked. Each knows its place (dirty_list and dirty_at of struct hfd_connection). */
struct hfd_dirty_list {
        struct hfd_connection *first, **tail;
};

struct hfd_worker {
        /* Immutable after init. */
        struct hfd_http *http; /* borrowed */
        unsigned index;
        /* Owned. The data of an event is its connection, or the worker (messages have arrived), or
         * http (worker 0: the listener). */
        int epoll;
        /* Owned; for the connections whose sender is not known. They have an epoll of their own, so
         * that one iteration serves one stranger at most, after all others: handshakes are dear,
         * and a flood of them must not delay known clients. This epoll is itself in the other one,
         * with the address of this member as data. */
        int stranger_epoll;

        struct hfd_worker_mailbox mailbox; /* every thread may post */
        _Atomic uint64_t iterations;

        /* For worker_loop.c, on the threads that start and free the server only. */
        pthread_t thread;
        bool running; /* the thread was started and must be joined */

        uint64_t iterations_seen; /* the caller of hfd_http_iterations only */

        /* The worker thread only. */
        struct hfd_connection *connections; /* list, owned */
        struct hfd_strangers handshakes;    /* connections in HFD_CONNECTION_HANDSHAKE */
        struct hfd_strangers strangers;     /* open ones whose sender is not known */
        /* Served in this iteration or a later one. The second list has the strangers that are still
         * to be served; one that is only to be freed is in the first. */
        struct hfd_dirty_list dirty, dirty_strangers;
        bool turn_of_dirty; /* the next stranger that is served is a dirty one, if there is one */
        /* List, with references: the requests with on_unsent whose response has begun in this
         * iteration. */
        struct hfd_http_request *responded;
        char *in, *out;         /* owned; HFD_IN_SPACE, HFD_OUT_SPACE + HFD_OUT_SLACK bytes */
        hf_nsec now, next_tick; /* boot time; now is read once per iteration */
        hf_nsec draining_since; /* boot time */
        bool draining;          /* http->draining was seen, and the connections are draining */
        bool accepting;         /* worker 0: the listener is in its epoll */
};

/* 0 or -errno; on an error there is nothing to free. */
int hfd_worker_init(struct hfd_worker *worker, struct hfd_http *http, unsigned index);
/* Frees what hfd_worker_init created. The thread has ended, and no connection or message is left.
 */
void hfd_worker_done(struct hfd_worker *worker);
