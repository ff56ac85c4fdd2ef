/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The server and its workers: each worker is one thread with its own epoll, mailbox and
 * connections. Model: the head of worker.c.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <openssl/ssl.h>

#include "base/mailbox.h"
#include "server/http/http_request.h"

#define HFD_IN_SPACE  16384
#define HFD_OUT_SPACE 65536
#define HFD_OUT_SLACK                                                                              \
        20480 /* beyond HFD_OUT_SPACE: nghttp2 hands out one more frame than was asked for */
#define HFD_HEAD_TIME      (32 * HF_NSEC_PER_SEC) /* to send a head */
#define HFD_HANDSHAKE_TIME (10 * HF_NSEC_PER_SEC)
#define HFD_BODY_TIME      (90 * HF_NSEC_PER_SEC) /* to send a whole request */
#define HFD_IDLE_TIME                                                                              \
        (90 * HF_NSEC_PER_SEC) /* without a request; or unsent bytes without progress */
#define HFD_LINGER_TIME     (2 * HF_NSEC_PER_SEC)
#define HFD_CONNECTION_BODY ((size_t)32 << 20)  /* request bodies held for one connection */
#define HFD_TOTAL_BODY      ((size_t)256 << 20) /* and for all */

struct hfd_worker {
        struct hfd_http *http; /* borrowed */
        unsigned index;
        pthread_t thread;
        bool running; /* the creator's: the thread is to be joined */
        int epoll;
        struct hf__mailbox box;
        _Atomic uint64_t iterations; /* any thread */
        uint64_t iterations_seen;    /* the watchdog's (hfd_http_iterations), as rounds */

        /* The worker thread's. */
        struct hfd_connection *connections;         /* owned */
        size_t n_handshakes;                        /* of them in HFD_CONNECTION_HANDSHAKE */
        struct hfd_connection *dirty, **dirty_tail; /* to be served this turn */
        struct hf__message *local, **local_tail;    /* posted by this thread to itself */
        char *in, *out; /* owned; HFD_IN_SPACE, HFD_OUT_SPACE + HFD_OUT_SLACK */
        hf_nsec now, next_tick;
        bool draining;
        bool accepting; /* worker 0: the listener is in its epoll */
};

struct hfd_http {
        /* Immutable after start. */
        const struct hf_host *host; /* borrowed */
        const struct hf_clock *clock;
        size_t max_body, max_header_bytes, max_connections;
        size_t max_handshakes; /* of each worker */
        hfd_http_handler handler;
        hfd_http_on_head on_head; /* may be NULL */
        void *ctx;
        int listen_fd; /* owned; open until free, unless inherited and given back early */
        bool inherited;
        uint16_t port;
        struct hfd_worker *workers; /* owned */
        unsigned n_workers;

        /* Any thread. */
        _Atomic size_t n_connections, body_bytes;
        atomic_bool draining, closing;

        unsigned next_worker; /* worker 0's */

        uint64_t rounds;

        pthread_mutex_t mu;
        pthread_cond_t emptied; /* n_connections became 0 */
        /* Guarded by mu. */
        SSL_CTX *tls; /* owned reference */
        bool stopped;
};

void hfd_http_connection_gone(struct hfd_http *http); /* one connection less: http.c */

/* Lets the worker see the letter soon. Thread: any; on the worker's own thread it costs no lock. */
void hfd_worker_post(struct hfd_worker *worker, struct hfd_worker_message *message);

int hfd_worker_init(struct hfd_worker *worker, struct hfd_http *http,
                    unsigned index);             /* 0 or -errno */
int hfd_worker_start(struct hfd_worker *worker); /* 0 or -errno */
/* Joins the thread (http->closing is set) and frees what it had. Accepts a zeroed or half-made
 * worker. */
void hfd_worker_done(struct hfd_worker *worker);
