/* SPDX-License-Identifier: Apache-2.0 */
/* See scripted_server.h. A connection's thread copies its response before it unlocks. */
#include "scripted_server.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

#define PIECE 65536

struct response {
        char text[4096];
        size_t n_filler;
        enum scripted_server_end end;
};

static void choose_response_locked(struct scripted_server *server, const char *request,
                                   struct response *ret_response) {
        bool is_first = server->n_requests < server->n_first;
        const char *text = is_first ? server->first[server->n_requests] : server->script;

        if (!strstr(request, server->required))
                text = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        (void)snprintf(ret_response->text, sizeof ret_response->text, "%s", text);
        ret_response->n_filler = is_first ? 0 : server->n_filler;
        ret_response->end = is_first ? SCRIPT_KEEPS : server->end;
}

static bool send_filler(int fd, size_t n) {
        char piece[PIECE + 16];
        int head = snprintf(piece, sizeof piece, "%x\r\n", PIECE);

        memset(piece + head, 'x', PIECE);
        memcpy(piece + head + PIECE, "\r\n", 2);
        for (size_t sent = 0; sent < n; sent += PIECE)
                if (!loopback_server_send(fd, piece, (size_t)head + PIECE + 2))
                        return false;
        return true;
}

static void serve(void *ctx, int fd) {
        struct scripted_server *server = ctx;
        char request[sizeof server->request], *body;
        struct response response;
        size_t n_body;

        while (loopback_server_read_request(fd, request, sizeof request, &body, &n_body)) {
                pthread_mutex_lock(&server->mu);
                memcpy(server->request, request, sizeof request);
                choose_response_locked(server, request, &response);
                server->n_requests++;
                pthread_cond_broadcast(&server->cond);
                pthread_mutex_unlock(&server->mu);
                if (!loopback_server_send(fd, response.text, strlen(response.text)) ||
                    !send_filler(fd, response.n_filler))
                        break;
                if (response.end == SCRIPT_HANGS)
                        loopback_server_wait_for_close(fd);
                if (response.end != SCRIPT_KEEPS)
                        break;
        }
}

void scripted_server_start(struct scripted_server *server) {
        *server = (struct scripted_server){.mu = PTHREAD_MUTEX_INITIALIZER,
                                           .cond = PTHREAD_COND_INITIALIZER};
        loopback_server_start(&server->base, serve, server);
}

void scripted_server_stop(struct scripted_server *server) {
        loopback_server_stop(&server->base);
        pthread_cond_destroy(&server->cond);
        pthread_mutex_destroy(&server->mu);
}

void scripted_server_set(struct scripted_server *server, enum scripted_server_end end,
                         const char *format, ...) {
        va_list args;

        va_start(args, format);
        pthread_mutex_lock(&server->mu);
        int n = vsnprintf(server->script, sizeof server->script, format, args);
        assert(n >= 0 && n < (int)sizeof server->script);
        server->end = end;
        server->n_filler = 0;
        server->n_first = server->n_requests = 0;
        server->required[0] = '\0';
        server->request[0] = '\0';
        pthread_mutex_unlock(&server->mu);
        va_end(args);
}

void scripted_server_set_response(struct scripted_server *server, const char *status,
                                  const char *headers, const char *body) {
        scripted_server_set(server, SCRIPT_KEEPS, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                            status, headers, strlen(body), body);
}

void scripted_server_add_first(struct scripted_server *server, const char *status,
                               const char *headers, const char *body) {
        pthread_mutex_lock(&server->mu);
        assert(server->n_first < sizeof server->first / sizeof server->first[0]);
        int n = snprintf(server->first[server->n_first++], sizeof server->first[0],
                         "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
                         strlen(body), body);
        assert(n < (int)sizeof server->first[0]);
        pthread_mutex_unlock(&server->mu);
}

void scripted_server_require(struct scripted_server *server, const char *text) {
        pthread_mutex_lock(&server->mu);
        (void)snprintf(server->required, sizeof server->required, "%s", text);
        pthread_mutex_unlock(&server->mu);
}

void scripted_server_add_filler(struct scripted_server *server, size_t n) {
        pthread_mutex_lock(&server->mu);
        server->n_filler = n;
        pthread_mutex_unlock(&server->mu);
}

bool scripted_server_got(struct scripted_server *server, const char *text) {
        pthread_mutex_lock(&server->mu);
        bool found = strstr(server->request, text);
        pthread_mutex_unlock(&server->mu);
        return found;
}

unsigned scripted_server_n_requests(struct scripted_server *server) {
        pthread_mutex_lock(&server->mu);
        unsigned n = server->n_requests;
        pthread_mutex_unlock(&server->mu);
        return n;
}

void scripted_server_await_requests(struct scripted_server *server, unsigned n) {
        pthread_mutex_lock(&server->mu);
        PATIENCE_AWAIT_LOCKED(&server->cond, &server->mu, server->n_requests >= n);
        pthread_mutex_unlock(&server->mu);
}
