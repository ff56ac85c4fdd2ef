/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server object: the listener, the workers' life, and what may be asked from any thread.
 *
 * Stages, one way: made (bound, nobody accepts), started, draining (no new connections, the old
 * ones end by themselves), closing (the workers leave). The listening socket we made ourselves is
 * shut down at once when draining begins, so that callers are refused and not left in its backlog;
 * an inherited one only leaves our epoll, for its backlog belongs to whoever starts us again.
 */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/http/tls.h"
#include "server/http/worker.h"

#define DEFAULT_WORKERS     2
#define MAX_WORKERS         64
#define DEFAULT_BODY        ((size_t)3 << 20)
#define DEFAULT_HEADERS     ((size_t)64 << 10)
#define DEFAULT_CONNECTIONS 8000
#define MAX_HANDSHAKES      512
#define BACKLOG             1024

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

        if (parse_address(config->bind_address, config->port, &address, &n))
                return hf_fail(reterr_status, HF_E_INVALID, "bind address %s is not an IP address",
                               address_text);
        http->listen_fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (http->listen_fd < 0)
                return hf_fail(reterr_status, -errno, "no listening socket: %s", strerror(errno));
        (void)setsockopt(http->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(http->listen_fd, (struct sockaddr *)&address, n) ||
            listen(http->listen_fd, BACKLOG)) {
                int error = errno;

                if (error == EADDRINUSE)
                        return hf_fail(reterr_status, HF_E_BUSY,
                                       "port %u on %s is taken by another process", config->port,
                                       address_text);
                return hf_fail(reterr_status, error == EADDRNOTAVAIL ? HF_E_INVALID : -error,
                               "cannot listen on %s port %u: %s", address_text, config->port,
                               strerror(error));
        }
        return 0;
}

static int inherit_listener(struct hfd_http *http, int fd, struct hf_status *reterr_status) {
        int listening = 0, flags = fcntl(fd, F_GETFL);
        socklen_t n = sizeof listening;

        if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) || !listening)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "inherited descriptor %d is not a listening socket", fd);
        if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
                return hf_fail(reterr_status, -errno, "inherited descriptor %d: %s", fd,
                               strerror(errno));
        http->listen_fd = fd;
        http->inherited = true;
        return 0;
}

static void learn_port(struct hfd_http *http) {
        struct sockaddr_storage address = {0};
        socklen_t n = sizeof address;

        if (getsockname(http->listen_fd, (struct sockaddr *)&address, &n))
                return;
        if (address.ss_family == AF_INET)
                http->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
        else if (address.ss_family == AF_INET6)
                http->port = ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

/* Of one worker: all together a quarter of the connections, but each must be able to take one. */
static size_t handshakes_per_worker(size_t max_connections, unsigned n_workers) {
        size_t n = max_connections / 4 / n_workers;

        if (n > MAX_HANDSHAKES)
                return MAX_HANDSHAKES;
        return n > 0 ? n : 1;
}

static int make_workers(struct hfd_http *http, unsigned n, struct hf_status *reterr_status) {
        http->max_handshakes = handshakes_per_worker(http->max_connections, n);
        http->workers = calloc(n, sizeof *http->workers);
        if (!http->workers)
                return -ENOMEM;
        for (http->n_workers = 0; http->n_workers < n; http->n_workers++) {
                int r = hfd_worker_init(&http->workers[http->n_workers], http, http->n_workers);

                if (r != 0)
                        return hf_fail(reterr_status, r, "http worker: %s", hf_strerror(r));
        }
        return 0;
}

/* The configuration has a listener of our own unless listen_fd says otherwise; 0 is standard input
 * and never inherited. */
int hfd_http_new(const struct hf_host *host, const struct hfd_http_config *config,
                 struct hfd_http **ret_http, struct hf_status *reterr_status) {
        struct hfd_http *http;
        int r;

        if (!host || !config || !config->handler || config->n_workers > MAX_WORKERS)
                return hf_fail(reterr_status, -EINVAL, "http: no handler, or more than %d workers",
                               MAX_WORKERS);
        http = calloc(1, sizeof *http);
        if (!http)
                return -ENOMEM;
        r = hf__mutex_init(&http->mu);
        if (r != 0) {
                free(http);
                return r;
        }
        r = hf_cond_init(&http->emptied);
        if (r != 0) {
                pthread_mutex_destroy(&http->mu);
                free(http);
                return r;
        }
        http->listen_fd = -1;
        http->host = host;
        http->clock = hf_host_clock(host);
        http->max_body = config->max_body ? config->max_body : DEFAULT_BODY;
        http->max_header_bytes =
                config->max_header_bytes ? config->max_header_bytes : DEFAULT_HEADERS;
        http->max_connections =
                config->max_connections ? config->max_connections : DEFAULT_CONNECTIONS;
        http->handler = config->handler;
        http->on_head = config->on_head;
        http->ctx = config->ctx;
        r = hfd_tls_new(config->cert_pem, config->key_pem, config->client_ca_pem, &http->tls,
                        reterr_status);
        if (r == 0)
                r = config->listen_fd > 0 ? inherit_listener(http, config->listen_fd, reterr_status)
                                          : bind_listener(http, config, reterr_status);
        if (r == 0)
                r = make_workers(http, config->n_workers ? config->n_workers : DEFAULT_WORKERS,
                                 reterr_status);
        if (r != 0) {
                if (http->inherited)
                        http->listen_fd = -1; /* taken over on success only */
                hfd_http_free(http);
                return r;
        }
        learn_port(http);
        *ret_http = http;
        return 0;
}

uint16_t hfd_http_port(struct hfd_http *http) { return http->port; }

int hfd_http_start(struct hfd_http *http) {
        for (unsigned i = http->n_workers; i-- > 0;) {
                int r = hfd_worker_start(&http->workers[i]);

                if (r != 0)
                        return r; /* those that run are joined by free */
        }
        return 0;
}

void hfd_http_stop_accepting(struct hfd_http *http) {
        pthread_mutex_lock(&http->mu);
        if (!http->stopped && !http->inherited)
                (void)shutdown(http->listen_fd, SHUT_RDWR);
        http->stopped = true;
        pthread_mutex_unlock(&http->mu);
        atomic_store_explicit(&http->draining, true, memory_order_release);
        for (unsigned i = 0; i < http->n_workers; i++)
                hf__mailbox_wake(&http->workers[i].box);
}

struct hfd_http *hfd_http_free(struct hfd_http *http) {
        if (!http)
                return NULL;
        atomic_store_explicit(&http->draining, true, memory_order_release);
        atomic_store_explicit(&http->closing, true, memory_order_release);
        for (unsigned i = 0; i < http->n_workers; i++)
                hf__mailbox_wake(&http->workers[i].box);
        for (unsigned i = 0; i < http->n_workers; i++)
                hfd_worker_done(&http->workers[i]);
        free(http->workers);
        if (http->listen_fd >= 0)
                close(http->listen_fd);
        SSL_CTX_free(http->tls);
        pthread_cond_destroy(&http->emptied);
        pthread_mutex_destroy(&http->mu);
        free(http);
        return NULL;
}

void hfd_http_connection_gone(struct hfd_http *http) {
        if (atomic_fetch_sub_explicit(&http->n_connections, 1, memory_order_acq_rel) != 1 ||
            !atomic_load_explicit(&http->draining, memory_order_acquire))
                return;
        pthread_mutex_lock(&http->mu);
        pthread_cond_broadcast(&http->emptied);
        pthread_mutex_unlock(&http->mu);
}

int hfd_http_wait_closed(struct hfd_http *http, hf_nsec deadline) {
        int r = 0;

        pthread_mutex_lock(&http->mu);
        while (atomic_load_explicit(&http->n_connections, memory_order_acquire) > 0 && r == 0)
                r = http->clock->wait(http->clock->ctx, &http->emptied, &http->mu, deadline);
        pthread_mutex_unlock(&http->mu);
        return hfd_http_n_connections(http) > 0 ? HF_E_TIMEOUT : 0;
}

int hfd_http_reload(struct hfd_http *http, const char *cert_pem, const char *key_pem,
                    const char *client_ca_pem, struct hf_status *reterr_status) {
        SSL_CTX *fresh, *old;
        int r = hfd_tls_new(cert_pem, key_pem, client_ca_pem, &fresh, reterr_status);

        if (r != 0)
                return r;
        pthread_mutex_lock(&http->mu);
        old = http->tls;
        http->tls = fresh;
        pthread_mutex_unlock(&http->mu);
        SSL_CTX_free(old);
        return 0;
}

size_t hfd_http_n_connections(struct hfd_http *http) {
        return atomic_load_explicit(&http->n_connections, memory_order_relaxed);
}

/* Not the slowest one's count: a worker that hangs far ahead of it would not show until the slow
 * one has caught up. */
uint64_t hfd_http_iterations(struct hfd_http *http) {
        for (unsigned i = 0; i < http->n_workers; i++)
                if (atomic_load_explicit(&http->workers[i].iterations, memory_order_relaxed) ==
                    http->workers[i].iterations_seen)
                        return http->rounds;
        for (unsigned i = 0; i < http->n_workers; i++)
                http->workers[i].iterations_seen =
                        atomic_load_explicit(&http->workers[i].iterations, memory_order_relaxed);
        return ++http->rounds;
}
