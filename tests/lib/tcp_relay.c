/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_relay.h. Two threads for each connection, one for each direction. */
#include "tcp_relay.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "patience.h"
#include "tls_client.h"

struct way {
        struct tcp_relay *relay;
        int from, to;
        bool from_server;
};

/* Returns whether it had to wait. */
static bool wait_while_holding(struct tcp_relay *relay) {
        pthread_mutex_lock(&relay->mu);
        bool waits = relay->holding;
        if (waits) {
                relay->n_held++;
                pthread_cond_broadcast(&relay->cond);
        }
        while (relay->holding)
                pthread_cond_wait(&relay->cond, &relay->mu);
        pthread_mutex_unlock(&relay->mu);
        return waits;
}

static void *pump(void *ctx) {
        struct way way = *(struct way *)ctx;
        char data[16384];
        ssize_t n, more;

        free(ctx);
        while ((n = recv(way.from, data, sizeof data, 0)) > 0) {
                if (!way.from_server)
                        atomic_fetch_add(&way.relay->n_to_server, (size_t)n);
                else if (wait_while_holding(way.relay) && /* what was held back arrives at once */
                         (more = recv(way.from, data + n, sizeof data - (size_t)n, MSG_DONTWAIT)) >
                                 0)
                        n += more;
                if (send(way.to, data, (size_t)n, MSG_NOSIGNAL) != n)
                        break;
        }
        shutdown(way.from, SHUT_RDWR);
        shutdown(way.to, SHUT_RDWR);
        return NULL;
}

static void pump_start(struct tcp_relay *relay, pthread_t *thread, int from, int to,
                       bool from_server) {
        struct way *way = malloc(sizeof *way);

        assert(way);
        *way = (struct way){relay, from, to, from_server};
        int r = pthread_create(thread, NULL, pump, way);
        assert(r == 0);
}

static void *accept_all(void *ctx) {
        struct tcp_relay *relay = ctx;
        int fd;

        while ((fd = accept(relay->fd, NULL, NULL)) >= 0) {
                unsigned i = atomic_fetch_add(&relay->n_accepted, 1);
                assert(i < TCP_RELAY_MAX);
                pthread_mutex_lock(&relay->mu);
                relay->pair[i].a = fd;
                pthread_mutex_unlock(&relay->mu);
                relay->pair[i].b = i < relay->n_hanging ? -1 : tls_client_dial(relay->to, 0);
                if (relay->pair[i].b < 0)
                        continue;
                pump_start(relay, &relay->pair[i].there, fd, relay->pair[i].b, false);
                pump_start(relay, &relay->pair[i].back, relay->pair[i].b, fd, true);
        }
        return NULL;
}

void tcp_relay_start(struct tcp_relay *relay, uint16_t to) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof in;

        memset(relay, 0, sizeof *relay);
        relay->to = to;
        pthread_mutex_init(&relay->mu, NULL);
        pthread_cond_init(&relay->cond, NULL);
        relay->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = bind(relay->fd, (struct sockaddr *)&in, sizeof in);
        assert(r == 0);
        r = getsockname(relay->fd, (struct sockaddr *)&in, &n);
        assert(r == 0);
        relay->port = ntohs(in.sin_port);
        r = listen(relay->fd, 64);
        assert(r == 0);
        r = pthread_create(&relay->thread, NULL, accept_all, relay);
        assert(r == 0);
}

void tcp_relay_stop(struct tcp_relay *relay) {
        shutdown(relay->fd, SHUT_RDWR);
        pthread_join(relay->thread, NULL);
        close(relay->fd);
        for (unsigned i = 0; i < relay->n_accepted; i++) {
                shutdown(relay->pair[i].a, SHUT_RDWR);
                if (relay->pair[i].b >= 0) {
                        pthread_join(relay->pair[i].there, NULL);
                        pthread_join(relay->pair[i].back, NULL);
                        close(relay->pair[i].b);
                }
                close(relay->pair[i].a);
        }
        pthread_cond_destroy(&relay->cond);
        pthread_mutex_destroy(&relay->mu);
}

void tcp_relay_hold(struct tcp_relay *relay, bool holding) {
        pthread_mutex_lock(&relay->mu);
        relay->holding = holding;
        relay->n_held = 0;
        pthread_cond_broadcast(&relay->cond);
        pthread_mutex_unlock(&relay->mu);
}

void tcp_relay_break(struct tcp_relay *relay, unsigned i) {
        pthread_mutex_lock(&relay->mu);
        shutdown(relay->pair[i].a, SHUT_RDWR);
        pthread_mutex_unlock(&relay->mu);
}

void tcp_relay_await_held(struct tcp_relay *relay) {
        pthread_mutex_lock(&relay->mu);
        PATIENCE_AWAIT_LOCKED(&relay->cond, &relay->mu, relay->n_held > 0);
        pthread_mutex_unlock(&relay->mu);
}
