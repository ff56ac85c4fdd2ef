/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small HTTP/1.1 server in the test's process, which says what the test has scripted: one thread
 * per connection, one server per program. Asserts instead of handling errors.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 64

static struct {
        int fd, port;
        pthread_t thread, handlers[MAX_CONNECTIONS];
        int n;
        pthread_mutex_t mu;
        pthread_cond_t cond; /* a request came */
        /* guarded by mu */
        char script[4096]; /* what is sent for each request, raw */
        char first[16]
                  [512]; /* what the first n_first requests get instead, keeping the connection */
        unsigned n_first, n_requests;
        char needed[64];    /* who does not say this gets 401; "" = nothing */
        char then;          /* 'k' keep the connection, 'c' close it, 'h' hold it open in silence */
        size_t n_long;      /* this many 'x' in chunks after the script */
        char request[8192]; /* the last one, head and body */
} server = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

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

static inline bool read_request(int fd, char *text, size_t space) {
        size_t n = 0, wanted = 0;

        while (wanted == 0 || n < wanted) {
                ssize_t got = recv(fd, text + n, space - 1 - n, 0);
                if (got <= 0)
                        return false;
                n += (size_t)got;
                text[n] = '\0';
                char *end = strstr(text, "\r\n\r\n"),
                     *length = strcasestr(text, "\r\ncontent-length:");
                if (end)
                        wanted = (size_t)(end + 4 - text) +
                                 (length && length < end ? (size_t)atoi(length + 17) : 0);
        }
        return true;
}

static inline void hold(int fd) {
        char c;
        while (recv(fd, &c, 1, 0) > 0)
                ;
}

static inline bool send_long(int fd, size_t n) {
        char piece[65536 + 16];
        int head = snprintf(piece, sizeof piece, "%x\r\n", 65536);
        memset(piece + head, 'x', 65536);
        memcpy(piece + head + 65536, "\r\n", 2);
        for (size_t sent = 0; sent < n; sent += 65536)
                if (!send_all(fd, piece, (size_t)head + 65538))
                        return false;
        return true;
}

static inline void *serve(void *ctx) {
        int fd = (int)(intptr_t)ctx;
        char request[8192], script[4096];

        while (read_request(fd, request, sizeof request)) {
                pthread_mutex_lock(&server.mu);
                memcpy(server.request, request, sizeof request);
                bool is_first = server.n_requests < server.n_first;
                (void)snprintf(script, sizeof script, "%s",
                               is_first ? server.first[server.n_requests] : server.script);
                if (!strstr(request, server.needed))
                        (void)snprintf(script, sizeof script,
                                       "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
                char then = is_first ? 'k' : server.then;
                size_t n_long = is_first ? 0 : server.n_long;
                server.n_requests++;
                pthread_cond_broadcast(&server.cond);
                pthread_mutex_unlock(&server.mu);
                if (!send_all(fd, script, strlen(script)) || !send_long(fd, n_long))
                        break;
                if (then == 'h')
                        hold(fd);
                if (then != 'k')
                        break;
        }
        close(fd);
        return NULL;
}

static inline void *accept_all(void *ctx) {
        for (;;) {
                int fd = accept(server.fd, NULL, NULL);
                if (fd < 0)
                        return NULL;
                assert(server.n < MAX_CONNECTIONS);
                assert(pthread_create(&server.handlers[server.n++], NULL, serve,
                                      (void *)(intptr_t)fd) == 0);
        }
}

static inline int start_server(void **state) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;

        server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert(server.fd >= 0 && bind(server.fd, (struct sockaddr *)&address, n) == 0 &&
               listen(server.fd, 16) == 0);
        assert(getsockname(server.fd, (struct sockaddr *)&address, &n) == 0);
        server.port = ntohs(address.sin_port);
        return pthread_create(&server.thread, NULL, accept_all, NULL);
}

static inline int stop_server(void **state) {
        shutdown(server.fd, SHUT_RDWR);
        pthread_join(server.thread, NULL);
        for (int i = 0; i < server.n; i++)
                pthread_join(server.handlers[i], NULL);
        close(server.fd);
        return 0;
}

__attribute__((format(printf, 2, 3))) static inline void script(char then, const char *format,
                                                                ...) {
        va_list args;
        va_start(args, format);
        pthread_mutex_lock(&server.mu);
        vsnprintf(server.script, sizeof server.script, format, args);
        server.then = then;
        server.n_long = 0;
        server.n_first = server.n_requests = 0;
        server.needed[0] = '\0';
        server.request[0] = '\0';
        pthread_mutex_unlock(&server.mu);
        va_end(args);
}

static inline void script_reply(const char *status, const char *headers, const char *body) {
        script('k', "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body),
               body);
}

static inline bool requested(const char *words) {
        pthread_mutex_lock(&server.mu);
        bool found = strstr(server.request, words);
        pthread_mutex_unlock(&server.mu);
        return found;
}

/* The next request gets this, the one after it the next such, and then script's again. After
 * script. */
static inline void script_first(const char *status, const char *headers, const char *body) {
        pthread_mutex_lock(&server.mu);
        assert(server.n_first < 16);
        int n = snprintf(server.first[server.n_first++], sizeof server.first[0],
                         "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
                         strlen(body), body);
        assert(n < (int)sizeof server.first[0]);
        pthread_mutex_unlock(&server.mu);
}

/* After script. */
static inline void script_needs(const char *words) {
        pthread_mutex_lock(&server.mu);
        (void)snprintf(server.needed, sizeof server.needed, "%s", words);
        pthread_mutex_unlock(&server.mu);
}

/* Since script. */
static inline unsigned n_requests(void) {
        pthread_mutex_lock(&server.mu);
        unsigned n = server.n_requests;
        pthread_mutex_unlock(&server.mu);
        return n;
}

static inline void await_requests(unsigned n) {
        pthread_mutex_lock(&server.mu);
        while (server.n_requests < n)
                pthread_cond_wait(&server.cond, &server.mu);
        pthread_mutex_unlock(&server.mu);
}
