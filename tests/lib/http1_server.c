/* SPDX-License-Identifier: Apache-2.0 */
/* See http1_server.h. Each connection has a thread. The threads share only the atomic counter. */
#include "http1_server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE ((size_t)1 << 20)

/* These functions return false if the connection has to end. */

static bool respond(int fd, const char *head, const void *body, size_t n) {
        char text[512];
        int n_text =
                snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, n);

        return loopback_server_send(fd, text, (size_t)n_text) && loopback_server_send(fd, body, n);
}

static bool send_text(int fd, const char *text) {
        return loopback_server_send(fd, text, strlen(text));
}

static bool respond_big(int fd) {
        char *big = calloc(1, SPACE);

        assert(big);
        bool ok = respond(fd, "200 OK", big, SPACE);
        free(big);
        return ok;
}

static bool send_chunks(int fd) {
        return send_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") &&
               send_text(fd, "3\r\none\r\n") && send_text(fd, "3\r\ntwo\r\n");
}

static bool serve_request(struct http1_server *server, int fd, const char *head, const char *body,
                          size_t n_body) {
        char path[64] = "";

        (void)sscanf(head, "%*s %63s", path);
        if (strcmp(path, "/ok") == 0)
                return respond(fd, "200 OK", "hello", 5);
        if (strcmp(path, "/echo") == 0)
                return respond(fd, "200 OK", body, n_body);
        if (strcmp(path, "/head") == 0)
                return respond(fd, "200 OK", head, strlen(head));
        if (strcmp(path, "/busy") == 0)
                return respond(fd,
                               "429 Too Many\r\nRetry-After: 7\r\nHoldfast-Fence: ns/x;5;me\r\n"
                               "grpc-status: 14\r\ngrpc-message: a%20b",
                               "", 0);
        if (strcmp(path, "/early") == 0)
                return send_text(fd, "HTTP/1.1 103 Early\r\nRetry-After: 99\r\n\r\n") &&
                       respond(fd, "201 Made", "x", 1);
        if (strcmp(path, "/big") == 0)
                return respond_big(fd);
        if (strcmp(path, "/trailers") == 0)
                return send_chunks(fd) &&
                       send_text(fd, "0\r\ngrpc-status: 0\r\ngrpc-message: %C3%A4\r\n\r\n");
        if (strcmp(path, "/cut") == 0)
                return false;
        if (strcmp(path, "/cut-body") == 0) {
                (void)send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
                return false;
        }
        if (strcmp(path, "/cut-second") == 0) {
                atomic_fetch_add(&server->n_cut, 1);
                return false;
        }
        if (strcmp(path, "/stream") == 0)
                (void)send_chunks(fd);
        loopback_server_wait_for_close(fd); /* "/never" and "/stream" */
        return false;
}

static void serve(void *ctx, int fd) {
        char *text = malloc(SPACE), *body;
        size_t n_body;

        assert(text);
        while (loopback_server_read_request(fd, text, SPACE, &body, &n_body)) {
                body[-2] = '\0'; /* the end of the head */
                if (!serve_request(ctx, fd, text, body, n_body))
                        break;
        }
        free(text);
}

void http1_server_start(struct http1_server *server) {
        atomic_store(&server->n_cut, 0);
        loopback_server_start(&server->base, serve, server);
}

void http1_server_stop(struct http1_server *server) { loopback_server_stop(&server->base); }
