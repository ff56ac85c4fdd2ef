/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server object: the listener, the start and end of the workers, and the functions for other
 * threads.
 *
 * States, in this order: created (bound, but not accepting), started, draining (no new connections,
 * and the open ones end when they are idle), closing (the workers exit).
 *
 * Invariants. hfd_http_stop_accepting shuts down a listening socket that we created, so that
 * clients are refused instead of waiting in its backlog. An inherited one is never shut down: it
 * belongs to systemd, which keeps its backlog for our next start. It is only removed from our
 * epoll.
 */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/http/connection/http_private.h"
#include "server/http/connection/tls.h"
#include "server/http/connection/worker.h"
#include "server/http/protocol/h1.h"
#include "server/http/protocol/h2.h"
#include "server/http/worker_loop.h"

#define DEFAULT_WORKERS     2
#define MAX_WORKERS         64
#define DEFAULT_BODY        ((size_t)3 << 20)  /* bytes, as in kube-apiserver */
#define DEFAULT_HEADERS     ((size_t)64 << 10) /* bytes */
#define DEFAULT_CONNECTIONS 8000               /* 60 MB if all are idle (docs/http.md) */
#define MAX_HANDSHAKES      512                /* per worker; each takes up to 45 KiB */
#define BACKLOG             1024               /* Linux lowers it to net.core.somaxconn */

/* Makes a socket address. 0, or HF_E_INVALID: text is not an IP address. */
static int parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address,
                         socklen_t *ret_n) {
        struct sockaddr_in *in = (struct sockaddr_in *)ret_address;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_address;

        memset(ret_address, 0, sizeof *ret_address);
        if (text && inet_pton(AF_INET, text, &in->sin_addr) == 1) {
                in->sin_family = AF_INET;
                in->sin_port = htons(port);
                *ret_n = sizeof *in;
                return 0;
        }
        if (text && inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
                in6->sin6_family = AF_INET6;
                in6->sin6_port = htons(port);
                *ret_n = sizeof *in6;
                return 0;
        }
        return HF_E_INVALID;
}

static int bind_listener(struct hfd_http *http, const struct hfd_http_config *config,
                         struct hf_status *reterr_status) {
        const char *address_text = config->bind_address ? config->bind_address : "(none)";
        struct sockaddr_storage address;
        socklen_t n;
        int on = 1;

        if (parse_address(config->bind_address, config->port, &address, &n) != 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "bind address %s is not an IP address; give one like 127.0.0.1, "
                               "0.0.0.0 or ::1",
                               address_text);
        http->listen_fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (http->listen_fd < 0)
                return hf_fail(reterr_status, -errno, "cannot create a listening socket: %s",
                               strerror(errno));
        /* A restart must not fail because of old connections in TIME_WAIT. */
        (void)setsockopt(http->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(http->listen_fd, (struct sockaddr *)&address, n) != 0 ||
            listen(http->listen_fd, BACKLOG) != 0) {
                int error = errno;

                if (error == EADDRINUSE)
                        return hf_fail(reterr_status, HF_E_BUSY,
                                       "port %u on %s is taken by another process; stop that "
                                       "process or choose another port",
                                       config->port, address_text);
                return hf_fail(reterr_status, error == EADDRNOTAVAIL ? HF_E_INVALID : -error,
                               "cannot listen on %s port %u: %s", address_text, config->port,
                               strerror(error));
        }
        return 0;
}

/* Uses the socket that systemd passed. It may be blocking and may lack close-on-exec. */
static int inherit_listener(struct hfd_http *http, int fd, struct hf_status *reterr_status) {
        int listening = 0, flags = fcntl(fd, F_GETFL);
        socklen_t n = sizeof listening;

        if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) != 0 ||
            listening == 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "inherited descriptor %d is not a listening socket", fd);
        if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
                return hf_fail(reterr_status, -errno, "inherited descriptor %d: %s", fd,
                               strerror(errno));
        http->listen_fd = fd;
        http->inherited = true;
        return 0;
}

/* Reads the port from the kernel. The kernel has chosen it if the caller gave 0, and an inherited
 * socket already has one. */
static void read_port(struct hfd_http *http) {
        struct sockaddr_storage address = {0};
        socklen_t n = sizeof address;

        if (getsockname(http->listen_fd, (struct sockaddr *)&address, &n) != 0)
                return;
        if (address.ss_family == AF_INET)
                http->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
        else if (address.ss_family == AF_INET6)
                http->port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

/* Descriptors that the rest of the process needs: etcd's connections, files, the journal. */
#define RESERVED_DESCRIPTORS 128

/* Lowers the maximum of connections, so that it is reached before the descriptors run out. If the
 * limit is low, the reserve would leave few connections or none; then each side gets half. */
static void fit_descriptor_limit(struct hfd_http *http) {
        struct rlimit limit;
        size_t possible;

        if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
                return;
        possible = limit.rlim_cur > 2 * RESERVED_DESCRIPTORS
                           ? (size_t)limit.rlim_cur - RESERVED_DESCRIPTORS
                           : (size_t)limit.rlim_cur / 2;
        if (possible >= http->max_connections)
                return;
        hf_log(&http->host->log, HF_LOG_WARNING, "http",
               "serving at most %zu connections instead of %zu: the limit of open files is %llu; "
               "raise it (LimitNOFILE= in the unit, or ulimit -n)",
               possible, http->max_connections, (unsigned long long)limit.rlim_cur);
        http->max_connections = possible;
}

/* Half of all connections may be of senders that are not known. Each worker needs at least one. */
static size_t strangers_per_worker(size_t max_connections, unsigned n_workers) {
        size_t n = max_connections / 2 / n_workers;

        return n > 0 ? n : 1;
}

/* A quarter of all connections may be handshakes. Each worker needs at least one. */
static size_t handshakes_per_worker(size_t max_connections, unsigned n_workers) {
        size_t n = max_connections / 4 / n_workers;

        if (n > MAX_HANDSHAKES)
                return MAX_HANDSHAKES;
        return n > 0 ? n : 1;
}

/* n_workers counts initialised workers only, so that hfd_http_free frees exactly these after a
 * failure. */
static int make_workers(struct hfd_http *http, unsigned n, struct hf_status *reterr_status) {
        http->max_handshakes = handshakes_per_worker(http->max_connections, n);
        http->max_strangers = strangers_per_worker(http->max_connections, n);
        http->workers = calloc(n, sizeof *http->workers);
        if (!http->workers)
                return hf_fail(reterr_status, -ENOMEM, "http: %s", hf_strerror(-ENOMEM));
        for (http->n_workers = 0; http->n_workers < n; http->n_workers++) {
                int r = hfd_worker_init(&http->workers[http->n_workers], http, http->n_workers);

                if (r != 0)
                        return hf_fail(reterr_status, r, "cannot set up an HTTP worker: %s",
                                       hf_strerror(r));
        }
        return 0;
}

/* Copies the members that are still needed when hfd_http_new has returned. */
static void copy_config(struct hfd_http *http, const struct hfd_http_config *config) {
        http->max_body = config->max_body ? config->max_body : DEFAULT_BODY;
        http->max_header_bytes =
                config->max_header_bytes ? config->max_header_bytes : DEFAULT_HEADERS;
        http->max_connections =
                config->max_connections ? config->max_connections : DEFAULT_CONNECTIONS;
        http->handler = config->handler;
        http->on_head = config->on_head;
        http->ctx = config->ctx;
}

HF__CLEANUP_DEFINE(http_cleanup, struct hfd_http *, hfd_http_free)

int hfd_http_new(const struct hf_host *host, const struct hfd_http_config *config,
                 struct hfd_http **ret_http, struct hf_status *reterr_status) {
        if (!host || !config || !config->handler || config->n_workers > MAX_WORKERS)
                return hf_fail(reterr_status, -EINVAL, "http: no handler, or more than %d workers",
                               MAX_WORKERS);
        HF__CLEANUP(hf__free_cleanup) struct hfd_http *memory = calloc(1, sizeof *memory);
        int r = memory ? hf__mutex_cond_init(&memory->mu, &memory->all_closed) : -ENOMEM;
        if (r != 0)
                return hf_fail(reterr_status, r, "http: %s", hf_strerror(r));
        HF__CLEANUP(http_cleanup) struct hfd_http *http = HF__TAKE(memory);
        http->listen_fd = http->spare_fd = -1;
        http->host = host;
        http->clock = hf_host_clock(host);
        http->h1 = &hfd_h1;
        http->h2 = &hfd_h2;
        copy_config(http, config);
        fit_descriptor_limit(http);
        hfd_refusals_init(&http->refusals, host);
        if (getrandom(&http->seed, sizeof http->seed, 0) != (ssize_t)sizeof http->seed)
                http->seed = (uint64_t)hf_now(http->clock);       /* guessable, but it serves */
        http->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* refuse_socket retries */
        r = hfd_tls_new(config->cert_pem, config->key_pem, config->client_ca_pem, &http->tls,
                        reterr_status);
        if (r != 0)
                return r;
        r = make_workers(http, config->n_workers ? config->n_workers : DEFAULT_WORKERS,
                         reterr_status);
        if (r != 0)
                return r;
        /* Last, because after a failure the caller still owns an inherited listener. 0 means that
         * there is none: descriptor 0 is standard input. */
        r = config->listen_fd > 0 ? inherit_listener(http, config->listen_fd, reterr_status)
                                  : bind_listener(http, config, reterr_status);
        if (r != 0)
                return r;
        read_port(http);
        *ret_http = HF__TAKE(http);
        return 0;
}

uint16_t hfd_http_port(struct hfd_http *http) { return http->port; }

/* Worker 0 starts last, because it passes sockets to the others. */
int hfd_http_start(struct hfd_http *http) {
        assert(http->n_workers > 0 && !http->workers[0].running);
        for (unsigned i = http->n_workers; i-- > 0;) {
                int r = hfd_worker_loop_start(&http->workers[i]);

                if (r != 0)
                        return r; /* hfd_http_free joins the workers that run */
        }
        return 0;
}

static void wake_workers(struct hfd_http *http) {
        for (unsigned i = 0; i < http->n_workers; i++)
                hf__mailbox_wake(&http->workers[i].mailbox.shared);
}

/* Our own socket is shut down here and not by worker 0, so that clients are refused as soon as this
 * returns. The workers notice `draining` when they wake. */
void hfd_http_stop_accepting(struct hfd_http *http) {
        pthread_mutex_lock(&http->mu);
        if (!http->stopped && !http->inherited)
                (void)shutdown(http->listen_fd, SHUT_RDWR);
        http->stopped = true;
        pthread_mutex_unlock(&http->mu);
        atomic_store(&http->draining, true); /* before wait_closed reads n_connections */
        wake_workers(http);
}

struct hfd_http *hfd_http_free(struct hfd_http *http) {
        if (!http)
                return NULL;
        atomic_store_explicit(&http->draining, true, memory_order_release);
        atomic_store_explicit(&http->closing, true, memory_order_release);
        wake_workers(http);
        /* Worker 0 first: worker_loop.h says why. */
        for (unsigned i = 0; i < http->n_workers; i++) {
                hfd_worker_loop_stop(&http->workers[i]);
                hfd_worker_done(&http->workers[i]);
        }
        assert(hfd_http_n_connections(http) == 0);
        free(http->workers);
        if (http->listen_fd >= 0)
                close(http->listen_fd);
        if (http->spare_fd >= 0)
                close(http->spare_fd);
        SSL_CTX_free(http->tls);
        pthread_cond_destroy(&http->all_closed);
        pthread_mutex_destroy(&http->mu);
        free(http);
        return NULL;
}

int hfd_http_wait_closed(struct hfd_http *http, hf_nsec deadline) {
        int r = 0;

        assert(atomic_load_explicit(&http->draining, memory_order_relaxed));
        pthread_mutex_lock(&http->mu);
        /* Sequentially consistent, like the store of `draining`: hfd_connection_uncount changes
         * n_connections first, and then reads `draining`. If both sides read the old value, nobody
         * would wake this thread before the deadline. */
        while (atomic_load(&http->n_connections) > 0 && r == 0)
                r = http->clock->wait(http->clock->ctx, &http->all_closed, &http->mu, deadline);
        pthread_mutex_unlock(&http->mu);
        return hfd_http_n_connections(http) > 0 ? HF_E_TIMEOUT : 0;
}

/* Checks the certificates without the mutex, because that takes long, and workers need it to copy
 * the pointer. */
int hfd_http_reload(struct hfd_http *http, const char *cert_pem, const char *key_pem,
                    const char *client_ca_pem, struct hf_status *reterr_status) {
        SSL_CTX *fresh, *old;
        int r = hfd_tls_new(cert_pem, key_pem, client_ca_pem, &fresh, reterr_status);

        if (r != 0)
                return r;
        pthread_mutex_lock(&http->mu);
        old = http->tls;
        http->tls = fresh;
        atomic_fetch_add(&http->n_reloads, 1);
        pthread_mutex_unlock(&http->mu);
        SSL_CTX_free(old);
        return 0;
}

size_t hfd_http_n_connections(struct hfd_http *http) {
        return atomic_load_explicit(&http->n_connections, memory_order_relaxed);
}

/* Returns how often all workers have made progress. The smallest of their counts would not be
 * enough: if a worker with a large count hangs, the watchdog would not notice until the others have
 * reached that count. */
uint64_t hfd_http_iterations(struct hfd_http *http) {
        for (unsigned i = 0; i < http->n_workers; i++)
                if (atomic_load_explicit(&http->workers[i].iterations, memory_order_relaxed) ==
                    http->workers[i].iterations_seen)
                        return http->iterations;
        for (unsigned i = 0; i < http->n_workers; i++)
                http->workers[i].iterations_seen =
                        atomic_load_explicit(&http->workers[i].iterations, memory_order_relaxed);
        return ++http->iterations;
}
