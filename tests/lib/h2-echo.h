/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server that speaks just enough HTTP/2 in clear text (prior knowledge) to test a client: it
 * reads frames, never the header blocks, and does what the first byte of a request's body says:
 *
 *      e  answers 200 with the body          t  the same, and trailers: grpc-status 0, grpc-message
 * "a%20b" o  trailers only: grpc-status 5       n  never answers s  answers 200 with the body and
 * leaves the stream open d  falls silent on the whole connection, which stays open c  closes the
 * connection              r  resets the stream l  a number follows: answers 200, so many bytes, and
 * trailers, all in one go as far as it fits g  answers 200 with the body and says goodbye: streams
 * under way go on, later ones are not looked at
 *
 * One thread per connection. For tests and benchmarks only; asserts instead of handling errors.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define H2_ECHO_MAX_CONNECTIONS 1024 /* in all, one after another */
#define H2_ECHO_N_STREAMS       4096
#define H2_ECHO_MAX_BODY        256

struct h2_echo {
        int fd, port;
        pthread_t thread, handlers[H2_ECHO_MAX_CONNECTIONS];
        int fds[H2_ECHO_MAX_CONNECTIONS];
        int n_connections; /* atomic */
};

struct h2_echo_connection {
        int fd;
        uint8_t in[1 << 17], out[1 << 18];
        size_t n_in, n_out;
        uint32_t last_id; /* 0 = no goodbye was said */
        struct {
                uint32_t id;
                size_t n;
                uint8_t body[H2_ECHO_MAX_BODY + 1]; /* and a zero */
        } streams[H2_ECHO_N_STREAMS];
};

static inline void h2_echo_flush(struct h2_echo_connection *c) {
        for (size_t at = 0; at < c->n_out;) {
                ssize_t n = send(c->fd, c->out + at, c->n_out - at, MSG_NOSIGNAL);
                if (n <= 0)
                        break;
                at += (size_t)n;
        }
        c->n_out = 0;
}

static inline void h2_echo_frame(struct h2_echo_connection *c, int type, int flags, uint32_t stream,
                                 const void *data, size_t n) {
        if (c->n_out + 9 + n > sizeof c->out)
                h2_echo_flush(c);
        uint8_t *p = c->out + c->n_out;
        uint8_t head[9] = {(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
                           (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                           (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
        memcpy(p, head, 9);
        if (n > 0)
                memcpy(p + 9, data, n);
        c->n_out += 9 + n;
}

/* n bytes in frames that do not divide a client's buffer. */
static inline void h2_echo_bytes(struct h2_echo_connection *c, uint32_t id, size_t n) {
        static const uint8_t bytes[12000];

        for (size_t now; n > 0; n -= now) {
                now = n < sizeof bytes ? n : sizeof bytes;
                h2_echo_frame(c, 0, 0, id, bytes, now);
        }
}

/* False: no word more on this connection. */
static inline bool h2_echo_answer(struct h2_echo_connection *c, uint32_t id, const uint8_t *body,
                                  size_t n) {
        /* 0x88 is ":status: 200" of the static table; 0 is a literal that enters no table. */
        static const char ok[] = "\x88",
                          status0[] = "\x00\x0bgrpc-status\x01"
                                      "0\x00\x0cgrpc-message\x05"
                                      "a%20b",
                          status5[] = "\x88\x00\x0bgrpc-status\x01"
                                      "5";
        switch (n > 0 ? body[0] : 'e') {
        case 'e':
                h2_echo_frame(c, 1, 4, id, ok, 1);
                h2_echo_frame(c, 0, 1, id, body, n);
                return true;
        case 'g': {
                uint8_t goodbye[8] = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                                      (uint8_t)id}; /* NO_ERROR */
                h2_echo_frame(c, 7, 0, 0, goodbye, 8);
                h2_echo_frame(c, 1, 4, id, ok, 1);
                h2_echo_frame(c, 0, 1, id, body, n);
                c->last_id = id;
                return true;
        }
        case 's':
                h2_echo_frame(c, 1, 4, id, ok, 1);
                h2_echo_frame(c, 0, 0, id, body, n);
                return true;
        case 't':
                h2_echo_frame(c, 1, 4, id, ok, 1);
                h2_echo_frame(c, 0, 0, id, body, n);
                h2_echo_frame(c, 1, 5, id, status0, sizeof status0 - 1);
                return true;
        case 'l':
                h2_echo_frame(c, 1, 4, id, ok, 1);
                h2_echo_bytes(c, id, (size_t)strtoul((const char *)body + 1, NULL, 10));
                h2_echo_frame(c, 1, 5, id, status0, sizeof status0 - 1);
                return true;
        case 'o': h2_echo_frame(c, 1, 5, id, status5, sizeof status5 - 1); return true;
        case 'r': h2_echo_frame(c, 3, 0, id, "\0\0\0\2", 4); return true;
        case 'd': {
                char waste[512];
                while (recv(c->fd, waste, sizeof waste, 0) > 0)
                        ;
                return false;
        }
        case 'c': return false;
        default: return true;
        }
}

/* Takes the whole frames from the input. */
static inline bool h2_echo_take(struct h2_echo_connection *c) {
        size_t at = 0;

        while (c->n_in - at >= 9) {
                const uint8_t *f = c->in + at;
                size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
                uint32_t id =
                        (uint32_t)f[5] << 24 | (uint32_t)f[6] << 16 | (uint32_t)f[7] << 8 | f[8];
                if (c->n_in - at < 9 + n)
                        break;
                uint32_t slot = id / 2 % H2_ECHO_N_STREAMS;
                if (f[3] == 4 && !(f[4] & 1))
                        h2_echo_frame(c, 4, 1, 0, NULL, 0); /* settings: acknowledged */
                else if (f[3] == 6 && !(f[4] & 1))
                        h2_echo_frame(c, 6, 1, 0, f + 9, n); /* ping */
                else if (f[3] == 1) {
                        c->streams[slot].id = id;
                        c->streams[slot].n = 0;
                } else if (f[3] == 0 && n > 0) {
                        uint8_t window[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16),
                                             (uint8_t)(n >> 8), (uint8_t)n};
                        h2_echo_frame(c, 8, 0, 0, window, 4);
                        assert(c->streams[slot].id == id &&
                               c->streams[slot].n + n <= H2_ECHO_MAX_BODY);
                        memcpy(c->streams[slot].body + c->streams[slot].n, f + 9, n);
                        c->streams[slot].n += n;
                        c->streams[slot].body[c->streams[slot].n] = 0;
                }
                if (c->last_id && id > c->last_id) {
                        at += 9 + n;
                        continue;
                }
                if ((f[3] == 0 || f[3] == 1) && (f[4] & 1) &&
                    !h2_echo_answer(c, id, c->streams[slot].body, c->streams[slot].n))
                        return false;
                at += 9 + n;
        }
        memmove(c->in, c->in + at, c->n_in - at);
        c->n_in -= at;
        h2_echo_flush(c);
        return true;
}

static inline void *h2_echo_connection_run(void *ctx) {
        struct h2_echo_connection *c = ctx;
        static const uint8_t settings[] = {0, 3, 0, 0, 0x10, 0}; /* MAX_CONCURRENT_STREAMS 4096 */
        bool preface = false;

        h2_echo_frame(c, 4, 0, 0, settings, sizeof settings);
        h2_echo_flush(c);
        for (;;) {
                ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, 0);
                if (n <= 0)
                        break;
                c->n_in += (size_t)n;
                if (!preface && c->n_in >= 24) {
                        preface = true;
                        assert(memcmp(c->in, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) == 0);
                        c->n_in -= 24;
                        memmove(c->in, c->in + 24, c->n_in);
                }
                if (preface && !h2_echo_take(c))
                        break;
        }
        shutdown(c->fd, SHUT_RDWR);
        free(c);
        return NULL;
}

static inline void *h2_echo_run(void *ctx) {
        struct h2_echo *server = ctx;

        for (;;) {
                int fd = accept(server->fd, NULL, NULL), one = 1;
                if (fd < 0)
                        return NULL;
                int i = server->n_connections;
                assert(i < H2_ECHO_MAX_CONNECTIONS);
                (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct h2_echo_connection *c = calloc(1, sizeof *c);
                assert(c);
                c->fd = server->fds[i] = fd;
                /* Counted before it can say a word: who has an answer finds its connection in the
                 * count. */
                __atomic_add_fetch(&server->n_connections, 1, __ATOMIC_SEQ_CST);
                int r = pthread_create(&server->handlers[i], NULL, h2_echo_connection_run, c);
                assert(r == 0);
        }
}

static inline void h2_echo_start(struct h2_echo *server) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof in;

        memset(server, 0, sizeof *server);
        server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = bind(server->fd, (struct sockaddr *)&in, sizeof in);
        assert(r == 0);
        r = getsockname(server->fd, (struct sockaddr *)&in, &n);
        assert(r == 0);
        server->port = ntohs(in.sin_port);
        r = listen(server->fd, 128);
        assert(r == 0);
        r = pthread_create(&server->thread, NULL, h2_echo_run, server);
        assert(r == 0);
}

static inline void h2_echo_stop(struct h2_echo *server) {
        shutdown(server->fd, SHUT_RDWR);
        pthread_join(server->thread, NULL);
        for (int i = 0; i < server->n_connections; i++) {
                shutdown(server->fds[i], SHUT_RDWR);
                pthread_join(server->handlers[i], NULL);
                close(server->fds[i]);
        }
        close(server->fd);
}
