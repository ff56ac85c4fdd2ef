/* SPDX-License-Identifier: Apache-2.0 */
/* See loopback_server.h. Only the accepting thread adds connections, so stop() joins it first. */
#include "loopback_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void *run_connection(void *ctx) {
        struct loopback_connection *connection = ctx;
        struct loopback_server *server = connection->server;

        server->serve(server->ctx, connection->fd);
        shutdown(connection->fd, SHUT_RDWR);
        return NULL;
}

static void *run(void *ctx) {
        struct loopback_server *server = ctx;

        for (;;) {
                int fd = accept(server->fd, NULL, NULL), one = 1;
                if (fd < 0)
                        return NULL;
                int i = atomic_load(&server->n_connections);
                assert(i < LOOPBACK_SERVER_MAX_CONNECTIONS);
                /* A response in several pieces must not wait for delayed acknowledgements. */
                (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct loopback_connection *connection = &server->connections[i];
                *connection = (struct loopback_connection){.server = server, .fd = fd};
                /*
                 * Must be set before the connection's thread can respond: see n_connections in the
                 * header.
                 */
                atomic_store(&server->n_connections, i + 1);
                int r = pthread_create(&connection->thread, NULL, run_connection, connection);
                assert(r == 0);
        }
}

static int listen_on_port(int *ret_port) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert(fd >= 0);
        int r = bind(fd, (struct sockaddr *)&address, n);
        assert(r == 0);
        r = getsockname(fd, (struct sockaddr *)&address, &n);
        assert(r == 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

void loopback_server_start(struct loopback_server *server, void (*serve)(void *ctx, int fd),
                           void *ctx) {
        memset(server, 0, sizeof *server);
        server->serve = serve;
        server->ctx = ctx;
        server->fd = listen_on_port(&server->port);
        int r = listen(server->fd, 1024);
        assert(r == 0);
        r = pthread_create(&server->thread, NULL, run, server);
        assert(r == 0);
}

void loopback_server_stop(struct loopback_server *server) {
        shutdown(server->fd, SHUT_RDWR);
        pthread_join(server->thread, NULL);
        for (int i = 0; i < atomic_load(&server->n_connections); i++) {
                shutdown(server->connections[i].fd, SHUT_RDWR);
                pthread_join(server->connections[i].thread, NULL);
                close(server->connections[i].fd);
        }
        close(server->fd);
}

/* ---- for serve functions ---- */

bool loopback_server_send(int fd, const void *data, size_t n) {
        const char *at = data;

        while (n > 0) {
                ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
                if (sent <= 0)
                        return false;
                at += sent;
                n -= (size_t)sent;
        }
        return true;
}

bool loopback_server_read_request(int fd, char *text, size_t space, char **ret_body,
                                  size_t *ret_n_body) {
        size_t n = 0, wanted = 0; /* 0 = the head is incomplete */

        while (wanted == 0 || n < wanted) {
                ssize_t got = recv(fd, text + n, space - 1 - n, 0);
                if (got <= 0)
                        return false;
                n += (size_t)got;
                text[n] = '\0';
                char *end = strstr(text, "\r\n\r\n"),
                     *length = strcasestr(text, "\r\ncontent-length:");
                if (!end || wanted > 0)
                        continue;
                *ret_body = end + 4;
                *ret_n_body = length && length < end ? (size_t)atoi(length + 17) : 0;
                wanted = (size_t)(*ret_body - text) + *ret_n_body;
        }
        return true;
}

void loopback_server_wait_for_close(int fd) {
        char c;

        while (recv(fd, &c, 1, 0) > 0)
                ;
}
