/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A listening socket on 127.0.0.1, with one thread per connection: the common part of the fake
 * servers for HTTP clients (grpc_server.h, http1_server.h, h2_echo_server.h, scripted_server.h).
 * Asserts instead of handling errors.
 *
 * A connection's descriptor is shut down when its thread returns, but closed only when the server
 * stops, so that no descriptor number is reused while the server runs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define LOOPBACK_SERVER_MAX_CONNECTIONS 1024 /* in total, during the life of the server */

struct loopback_connection {
        struct loopback_server *server;
        int fd;
        pthread_t thread;
};

struct loopback_server {
        int fd;
        int port; /* on 127.0.0.1 */
        void (*serve)(void *ctx, int fd);
        void *ctx;
        pthread_t thread;
        struct loopback_connection connections[LOOPBACK_SERVER_MAX_CONNECTIONS];
        /*
         * Increased before the connection is served, so a client that has a response is already
         * counted.
         */
        atomic_int n_connections;
};

/*
 * Listens on a free port. serve() runs on the connection's thread; its return ends the connection.
 */
void loopback_server_start(struct loopback_server *server, void (*serve)(void *ctx, int fd),
                           void *ctx);
/* Ends all connections and joins their threads. */
void loopback_server_stop(struct loopback_server *server);

/* ---- for serve() functions; false = the connection has ended ---- */

bool loopback_server_send(int fd, const void *data, size_t n);
/*
 * Reads one HTTP/1.1 request. text gets head and body, NUL-terminated; *ret_body points to the body
 * in it. A request that does not fit into `space` bytes ends the connection.
 */
bool loopback_server_read_request(int fd, char *text, size_t space, char **ret_body,
                                  size_t *ret_n_body);
/* Discards input until the client closes the connection or the server stops. */
void loopback_server_wait_for_close(int fd);
