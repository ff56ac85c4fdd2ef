/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The server object, for the connections, the protocols and the files of server/http/ itself. The
 * rest of holdfastd uses http.h only.
 *
 * Lock: mu guards the members below it and nothing else. It is held for a few instructions, and for
 * the listener's shutdown, which does not block. No mutex is taken and no callback runs under it,
 * except the clock's wait, which releases it while it waits.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include <holdfast/host.h>

#include "server/http/limits/account.h"
#include "server/http/limits/refusals.h"
#include "server/http/request/http_request.h"

struct hfd_protocol;
struct hfd_worker;

struct hfd_http {
        /* Immutable once the workers run; every thread may read them. */
        const struct hf_host *host;   /* borrowed */
        const struct hf_clock *clock; /* borrowed */
        size_t max_body, max_header_bytes, max_connections;
        size_t max_handshakes, max_strangers; /* per worker */
        const struct hfd_protocol *h1, *h2;   /* static; ALPN chooses one of them */
        hfd_http_handler handler;
        hfd_http_on_head on_head; /* may be NULL */
        void *ctx;
        int listen_fd;  /* owned; stays open until free */
        bool inherited; /* systemd created the listening socket and keeps it after we exit */
        uint16_t port;
        uint64_t seed; /* for hash tables whose keys clients choose; random, if getrandom works */
        struct hfd_worker *workers; /* owned */
        unsigned n_workers;

        /* Atomic; every thread may use them. */
        _Atomic size_t n_connections; /* accepted and not yet closed */
        struct hfd_account account;   /* the memory of all connections' requests and input */
        struct hfd_refusals refusals;
        /* Increases with each reload, after `tls` has changed. */
        atomic_uint n_reloads;
        atomic_bool draining, closing; /* each goes from false to true once, draining first */

        /* Worker 0 only. */
        unsigned next_worker; /* modulo n_workers: the worker that gets the next socket */
        /* Owned; -1 = none. When no other descriptor is left, it is closed for a moment, so that a
         * connection can be accepted and closed (refuse_socket in worker_loop.c). */
        int spare_fd;

        uint64_t iterations; /* the last result of hfd_http_iterations; its caller only */

        pthread_mutex_t mu;
        pthread_cond_t all_closed; /* n_connections became 0 while draining */
        /* Guarded by mu. */
        SSL_CTX *tls; /* owned reference; each connection takes another one */
        bool stopped; /* accepting was stopped */
};
