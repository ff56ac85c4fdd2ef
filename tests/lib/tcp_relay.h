/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A relay in front of a port of 127.0.0.1. It counts connections, can accept without forwarding,
 * and can hold back what the server sends. Asserts instead of handling errors. Thread: any for the
 * counters, for tcp_relay_hold and for tcp_relay_break.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_RELAY_MAX 16 /* connections in total */

struct tcp_relay {
        int fd;
        uint16_t port, to;
        pthread_t thread;
        /* the first n_hanging connections are accepted, but nothing is forwarded on them */
        atomic_uint n_accepted, n_hanging;
        atomic_size_t n_to_server; /* bytes that were forwarded to the server */
        struct {
                int a, b;
                pthread_t there, back;
        } pair[TCP_RELAY_MAX];

        pthread_mutex_t mu; /* guards also pair[i].a, while the relay runs */
        pthread_cond_t cond;
        /* guarded by mu */
        bool holding;
        unsigned n_held; /* pieces from the server that were held back since the last hold */
};

/* Listens on a free port, and forwards its connections to the port `to`. */
void tcp_relay_start(struct tcp_relay *relay, uint16_t to);
/* Ends all connections and joins the threads. Nothing may be held back. */
void tcp_relay_stop(struct tcp_relay *relay);
/* While true, nothing that the server sends from now on reaches the client. */
void tcp_relay_hold(struct tcp_relay *relay, bool holding);
/* Ends the connection i, which has carried something already, for both sides. */
void tcp_relay_break(struct tcp_relay *relay, unsigned i);
/* Waits until something is held back (patience.h). */
void tcp_relay_await_held(struct tcp_relay *relay);
