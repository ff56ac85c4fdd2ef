/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The engine and a small HTTP/1.1 server in this process, for tests of the engine. The server has
 * one thread per connection; what it does is in the path. To be included after cmocka; everything
 * is static.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/http/engine.h"
#include "base/thread.h"

/* ---- the server ---- */

#define MAX_CONNECTIONS 512

struct server {
        int fd, port;
        pthread_t thread;
        pthread_t handlers[MAX_CONNECTIONS];
        int fds[MAX_CONNECTIONS];
        int n_handlers;
        int n_cut_posts; /* atomic: how often /cut-second was really received */
};

struct handler {
        struct server *server;
        int fd;
};

static inline bool send_all(int fd, const char *text, size_t n) {
        while (n > 0) {
                ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
                if (sent <= 0)
                        return false;
                text += sent;
                n -= (size_t)sent;
        }
        return true;
}

static inline void wait_for_close(int fd) {
        char c;
        while (recv(fd, &c, 1, 0) > 0)
                ;
}

static inline bool reply(int fd, const char *head, const char *body, size_t n) {
        char text[512];
        int n_text =
                snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, n);
        return send_all(fd, text, (size_t)n_text) && send_all(fd, body, n);
}

/* Reads one request; the head ends up NUL-terminated in text. False at the end of the connection.
 */
static inline bool read_request(int fd, char *text, size_t space, char **ret_body,
                                size_t *ret_n_body) {
        size_t n = 0;
        char *end = NULL;

        while (!end) {
                ssize_t r = recv(fd, text + n, space - 1 - n, 0);
                if (r <= 0)
                        return false;
                n += (size_t)r;
                text[n] = '\0';
                end = strstr(text, "\r\n\r\n");
        }
        const char *length = strcasestr(text, "content-length:");
        size_t n_body = length && length < end ? (size_t)atoi(length + 15) : 0;
        *ret_body = end + 4;
        *ret_n_body = n_body;
        while (n < (size_t)(end + 4 - text) + n_body) {
                ssize_t r = recv(fd, text + n, space - 1 - n, 0);
                if (r <= 0)
                        return false;
                n += (size_t)r;
        }
        text[n] = '\0';
        end[2] = '\0';
        return true;
}

static inline bool send_stream(int fd) {
        return send_all(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 47) &&
               send_all(fd, "3\r\none\r\n", 8) && send_all(fd, "3\r\ntwo\r\n", 8);
}

/* False: the connection ends. */
static inline bool handle(struct server *server, int fd, const char *head, const char *body,
                          size_t n_body) {
        char path[64] = "";
        sscanf(head, "%*s %63s", path);
        if (strcmp(path, "/ok") == 0)
                return reply(fd, "200 OK", "hello", 5);
        if (strcmp(path, "/echo") == 0)
                return reply(fd, "200 OK", body, n_body);
        if (strcmp(path, "/head") == 0) /* the request's head as the body */
                return reply(fd, "200 OK", head, strlen(head));
        if (strcmp(path, "/busy") == 0)
                return reply(fd,
                             "429 Too Many\r\nRetry-After: 7\r\nHoldfast-Fence: "
                             "ns/x;5;me\r\ngrpc-status: 14\r\ngrpc-message: a%20b",
                             "", 0);
        if (strcmp(path, "/early") == 0)
                return send_all(fd, "HTTP/1.1 103 Early\r\nRetry-After: 99\r\n\r\n", 39) &&
                       reply(fd, "201 Made", "x", 1);
        if (strcmp(path, "/big") == 0) {
                char *big = calloc(1, 1 << 20);
                assert(big);
                bool sent = reply(fd, "200 OK", big, 1 << 20);
                free(big);
                return sent;
        }
        if (strcmp(path, "/trailers") == 0)
                return send_stream(fd) &&
                       send_all(fd, "0\r\ngrpc-status: 0\r\ngrpc-message: %C3%A4\r\n\r\n", 43);
        if (strcmp(path, "/stream") == 0)
                (void)send_stream(fd); /* and no end */
        if (strcmp(path, "/cut") == 0)
                return false;
        if (strcmp(path, "/cut-body") == 0)
                return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 42) &&
                       false;
        if (strcmp(path, "/cut-second") == 0) {
                __atomic_add_fetch(&server->n_cut_posts, 1, __ATOMIC_SEQ_CST);
                return false;
        }
        wait_for_close(fd); /* "/never" and "/stream" */
        return false;
}

static inline void *run_handler(void *ctx) {
        struct handler *handler = ctx;
        size_t space = 1 << 20;
        char *text = malloc(space), *body;
        size_t n_body;

        assert(text);
        while (read_request(handler->fd, text, space, &body, &n_body) &&
               handle(handler->server, handler->fd, text, body, n_body))
                ;
        shutdown(handler->fd, SHUT_RDWR);
        free(text);
        free(handler);
        return NULL;
}

static inline void *run_server(void *ctx) {
        struct server *server = ctx;

        for (;;) {
                int fd = accept(server->fd, NULL, NULL);
                if (fd < 0)
                        return NULL;
                assert(server->n_handlers < MAX_CONNECTIONS);
                struct handler *handler = malloc(sizeof *handler);
                assert(handler);
                *handler = (struct handler){server, fd};
                server->fds[server->n_handlers] = fd;
                assert(pthread_create(&server->handlers[server->n_handlers++], NULL, run_handler,
                                      handler) == 0);
        }
}

static inline void server_start(struct server *server, const char *unix_path) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        socklen_t n = sizeof in;

        *server = (struct server){0};
        server->fd = socket(unix_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert(server->fd >= 0);
        if (unix_path) {
                snprintf(un.sun_path, sizeof un.sun_path, "%s", unix_path);
                assert(bind(server->fd, (struct sockaddr *)&un, sizeof un) == 0);
        } else {
                assert(bind(server->fd, (struct sockaddr *)&in, sizeof in) == 0);
                assert(getsockname(server->fd, (struct sockaddr *)&in, &n) == 0);
                server->port = ntohs(in.sin_port);
        }
        assert(listen(server->fd, 1024) == 0);
        assert(pthread_create(&server->thread, NULL, run_server, server) == 0);
}

static inline void server_stop(struct server *server) {
        shutdown(server->fd, SHUT_RDWR);
        pthread_join(server->thread, NULL);
        for (int i = 0; i < server->n_handlers; i++) {
                shutdown(server->fds[i], SHUT_RDWR);
                pthread_join(server->handlers[i], NULL);
                close(server->fds[i]);
        }
        close(server->fd);
}

/* ---- the client's side ---- */

struct response {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_done, outcome, code, head_code, grpc_status, stop_at_data;
        uint32_t retry_after_s;
        char body[512], data[64], grpc_message[64], fence[64], error_text[256];
        size_t n_body;
};

static struct fixture {
        struct server server;
        struct hf_host host;
        struct hf__http_engine *engine;
        char url[64];
} f;

static inline hf_nsec in_ms(int64_t ms) {
        return hf_now(hf_clock_system()) + ms * HF_NSEC_PER_MSEC;
}

static inline void answer_init(struct response *a) {
        *a = (struct response){0};
        assert_int_equal(hf__mutex_init(&a->mu), 0);
        assert_int_equal(hf_cond_init(&a->cond), 0);
}

static inline void answer_done(struct response *a) {
        pthread_mutex_destroy(&a->mu);
        pthread_cond_destroy(&a->cond);
}

static inline int on_head(void *ctx, int code) {
        struct response *a = ctx;
        pthread_mutex_lock(&a->mu);
        a->head_code = code;
        pthread_cond_broadcast(&a->cond);
        pthread_mutex_unlock(&a->mu);
        return 0;
}

static inline int on_data(void *ctx, const void *data, size_t n) {
        struct response *a = ctx;
        pthread_mutex_lock(&a->mu);
        assert(strlen(a->data) + n < sizeof a->data);
        strncat(a->data, data, n);
        pthread_cond_broadcast(&a->cond);
        int r = a->stop_at_data;
        pthread_mutex_unlock(&a->mu);
        return r;
}

static inline void on_done(void *ctx, const struct hf__http_result *result) {
        struct response *a = ctx;
        pthread_mutex_lock(&a->mu);
        a->n_done++;
        a->outcome = result->outcome;
        a->code = result->code;
        a->n_body = result->n_body;
        a->retry_after_s = result->retry_after_s;
        a->grpc_status = result->grpc_status;
        snprintf(a->body, sizeof a->body, "%.*s",
                 (int)(result->n_body < 511 ? result->n_body : 511), (const char *)result->body);
        snprintf(a->grpc_message, sizeof a->grpc_message, "%s", result->grpc_message);
        snprintf(a->fence, sizeof a->fence, "%s",
                 result->fence_echo ? result->fence_echo : "(none)");
        snprintf(a->error_text, sizeof a->error_text, "%s", result->error_text);
        pthread_cond_broadcast(&a->cond);
        pthread_mutex_unlock(&a->mu);
}

static inline void wait_done(struct response *a) {
        pthread_mutex_lock(&a->mu);
        while (!a->n_done)
                assert_int_equal(hf_clock_system()->wait(NULL, &a->cond, &a->mu, in_ms(60000)), 0);
        assert_int_equal(a->n_done, 1);
        pthread_mutex_unlock(&a->mu);
}

static inline void wait_data(struct response *a, const char *expected) {
        pthread_mutex_lock(&a->mu);
        while (strcmp(a->data, expected) != 0)
                assert_int_equal(hf_clock_system()->wait(NULL, &a->cond, &a->mu, in_ms(60000)), 0);
        pthread_mutex_unlock(&a->mu);
}

static inline struct hf__http_request request_for(struct response *a, const char *path, char *url,
                                                  size_t space) {
        snprintf(url, space, "%s%s", f.url, path);
        return (struct hf__http_request){.method = "GET",
                                         .url = url,
                                         .deadline = in_ms(30000),
                                         .on_done = on_done,
                                         .ctx = a};
}

static inline void get(struct response *a, const char *path) {
        char url[128];
        answer_init(a);
        struct hf__http_request request = request_for(a, path, url, sizeof url);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(a);
        answer_done(a);
}

static inline int setup(void **state) {
        server_start(&f.server, NULL);
        snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", f.server.port);
        f.host = (struct hf_host){.size = sizeof f.host};
        return hf__http_engine_new(&f.host, "test-http", &f.engine);
}

static inline int teardown(void **state) {
        f.engine = hf__http_engine_free(f.engine);
        server_stop(&f.server);
        return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
