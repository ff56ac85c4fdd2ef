/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A socket of the loopback that is listened on, with a thread per connection: the part that the
 * fake servers for HTTP clients have in common (http1_server.h, h2_echo_server.h,
 * scripted_server.h). Asserts instead of handling errors.
 *
 * A connection's descriptor is shut down when its thread returns, and closed when the server stops,
 * so that no number is used twice while the server runs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define LOOPBACK_SERVER_MAX_CONNECTIONS 1024 /* in all, one after another */

struct loopback_connection {
        struct loopback_server *server;
        int fd;
        pthread_t thread;
};

struct loopback_server {
        int fd;
        int port; /* of 127.0.0.1; 0 with a path */
        void (*serve)(void *ctx, int fd);
        void *ctx;
        pthread_t thread;
        struct loopback_connection connections[LOOPBACK_SERVER_MAX_CONNECTIONS];
        /* Raised before the connection is served: a client with a response finds itself counted. */
        atomic_int n_connections;
};

/* unix_path NULL = a free port. serve runs on the connection's thread until it returns. */
void loopback_server_start(struct loopback_server *server, const char *unix_path,
                           void (*serve)(void *ctx, int fd), void *ctx);
/* Ends all connections and joins their threads. */
void loopback_server_stop(struct loopback_server *server);

/* ---- for serve functions ---- */

/* False: the connection is over. */
bool loopback_server_send(int fd, const void *data, size_t n);
/*
 * Reads one HTTP/1.1 request. text gets its head and its body, NUL-terminated; *ret_body points to
 * the body in it. False: the connection is over. A request that does not fit ends it too.
 */
bool loopback_server_read_request(int fd, char *text, size_t space, char **ret_body,
                                  size_t *ret_n_body);
/* Drops what the client sends, until it closes the connection or the server stops. */
void loopback_server_wait_for_close(int fd);
