/* SPDX-License-Identifier: Apache-2.0 */
/* See grpc_server.h. A connection belongs to its thread. */
#include "grpc_server.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "h2_frames.h"
#include "patience.h"

#define N_STREAMS   1024
#define MAX_MESSAGE 1024
#define PREFIX      5 /* of a message */

/* Error codes of HTTP/2. */
#define NO_ERROR       0
#define INTERNAL_ERROR 2
#define REFUSED_STREAM 7

struct stream {
        uint32_t id;
        uint8_t kind; /* of the first message; 0 = none has come */
        size_t n;
        uint8_t data[MAX_MESSAGE]; /* of the message that is not complete */
};

struct connection {
        struct grpc_server *server;
        int fd;
        bool is_silent;
        uint32_t held_id; /* the stream of the last H */
        uint8_t in[1 << 17];
        size_t n_in;
        struct stream streams[N_STREAMS];
        size_t n_streams;
};

static const char TRAILERS[] = "\x00\x0bgrpc-status\x01"
                               "0";
static const char STATUS_103[] = "\x08\x03"
                                 "103";
static const char STATUS_502[] = "\x08\x03"
                                 "502";
static const char STATUS_5_BLOCK[] = H2_STATUS_200 "\x00\x0bgrpc-status\x01"
                                                   "5\x00\x0cgrpc-message\x05"
                                                   "a%20b";

static void send_frame(struct connection *c, enum h2_frame_type type, int flags, uint32_t stream,
                       const void *payload, size_t n) {
        uint8_t frame[H2_HEAD_SIZE + MAX_MESSAGE];

        assert(n <= MAX_MESSAGE);
        h2_put_head(frame, n, type, flags, stream);
        if (n > 0)
                memcpy(frame + H2_HEAD_SIZE, payload, n);
        (void)loopback_server_send(c->fd, frame,
                                   H2_HEAD_SIZE + n); /* recv sees a lost connection */
}

static void send_u32_frame(struct connection *c, enum h2_frame_type type, uint32_t value) {
        uint8_t payload[4];

        h2_put_u32(payload, value);
        send_frame(c, type, 0, 0, payload, sizeof payload);
}

static void send_head(struct connection *c, uint32_t id) {
        send_frame(c, H2_HEADERS, H2_END_HEADERS, id, H2_STATUS_200, sizeof H2_STATUS_200 - 1);
}

static void send_trailers(struct connection *c, uint32_t id) {
        send_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, id, TRAILERS,
                   sizeof TRAILERS - 1);
}

static void send_goaway(struct connection *c, uint32_t last_id) {
        uint8_t payload[8] = {0}; /* the error code is NO_ERROR */

        h2_put_u32(payload, last_id);
        send_frame(c, H2_GOAWAY, 0, 0, payload, sizeof payload);
}

static void send_response(struct connection *c, uint32_t id, const void *message, size_t n) {
        send_head(c, id);
        send_frame(c, H2_DATA, 0, id, message, n);
        send_trailers(c, id);
}

static void send_reset(struct connection *c, uint32_t id, uint32_t error_code) {
        uint8_t payload[4];

        h2_put_u32(payload, error_code);
        send_frame(c, H2_RST_STREAM, 0, id, payload, sizeof payload);
}

/* In one piece, so that the client reads both at once. */
static void send_twice(struct connection *c, uint32_t id, const void *message, size_t n) {
        uint8_t frames[2 * (H2_HEAD_SIZE + MAX_MESSAGE)], *at = frames;

        send_head(c, id);
        for (int i = 0; i < 2; i++) {
                h2_put_head(at, n, H2_DATA, 0, id);
                memcpy(at + H2_HEAD_SIZE, message, n);
                at += H2_HEAD_SIZE + n;
        }
        (void)loopback_server_send(c->fd, frames, (size_t)(at - frames));
}

/* Sends RST in place of FIN, and keeps the descriptor. */
static void reset(struct connection *c) {
        const struct sockaddr none = {.sa_family = AF_UNSPEC};

        int r = connect(c->fd, &none, sizeof none);
        assert(r == 0);
}

/* The first message of a call, prefix included. Returns false when the connection must be
 * closed. */
static bool respond(struct connection *c, uint32_t id, const uint8_t *message, size_t n) {
        switch (message[PREFIX]) {
        case 'e': send_response(c, id, message, n); return true;
        case 'p':
                send_head(c, id);
                for (size_t i = 0; i < n; i++)
                        send_frame(c, H2_DATA, 0, id, message + i, 1);
                send_trailers(c, id);
                return true;
        case 'o':
                send_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, id, STATUS_5_BLOCK,
                           sizeof STATUS_5_BLOCK - 1);
                return true;
        case 'b':
                send_head(c, id);
                send_frame(c, H2_DATA, H2_END_STREAM, id, message, n);
                return true;
        case '2':
                send_head(c, id);
                send_frame(c, H2_DATA, 0, id, message, n);
                send_frame(c, H2_DATA, 0, id, message, n);
                send_trailers(c, id);
                return true;
        case 'h': send_response(c, id, message, PREFIX + (n - PREFIX) / 2); return true;
        case 'z': send_response(c, id, "\0\0\0\0\0", PREFIX); return true;
        case 'x': send_response(c, id, "\1\0\0\0\1x", PREFIX + 1); return true;
        case '1':
                send_frame(c, H2_HEADERS, H2_END_HEADERS, id, STATUS_103, sizeof STATUS_103 - 1);
                return true;
        case 'w':
                send_frame(c, H2_HEADERS, H2_END_HEADERS, id, STATUS_502, sizeof STATUS_502 - 1);
                send_frame(c, H2_DATA, H2_END_STREAM, id, "<html>Bad Gateway</html>", 24);
                return true;
        case 'l':
                send_head(c, id);
                send_frame(c, H2_DATA, 0, id, "\0\xff\xff\xff\xff", PREFIX);
                return true;
        case 'r': send_reset(c, id, REFUSED_STREAM); return true;
        case 'i': send_reset(c, id, INTERNAL_ERROR); return true;
        case 'v': send_reset(c, id, NO_ERROR); return true;
        case 'j':
                send_head(c, id);
                send_reset(c, id, INTERNAL_ERROR);
                return true;
        case 't':
                send_head(c, id);
                send_trailers(c, id);
                send_reset(c, id, INTERNAL_ERROR);
                return true;
        case 'H': c->held_id = id; return true;
        case 'k':
                send_head(c, c->held_id);
                send_response(c, id, message, n);
                return true;
        case 'm':
                send_frame(c, H2_DATA, 0, c->held_id, message, n);
                send_response(c, id, message, n);
                return true;
        case 'P':
                send_response(c, id, message, n);
                send_frame(c, H2_PING, 0, 0, "holdfast", 8);
                return true;
        case '3': send_twice(c, id, message, n); return true;
        case 'g': send_goaway(c, 0); return true;
        case 'G':
                send_goaway(c, id);
                send_response(c, id, message, n);
                return true;
        case 'd': c->is_silent = true; return true;
        case 'c': return false;
        case 'C': reset(c); return false;
        case 's':
        case 'S':
                send_head(c, id);
                send_frame(c, H2_DATA, 0, id, message, n);
                return true;
        default: return true;
        }
}

static struct stream *stream_of(struct connection *c, uint32_t id) {
        for (size_t i = 0; i < c->n_streams; i++)
                if (c->streams[i].id == id)
                        return &c->streams[i];
        assert(c->n_streams < N_STREAMS);
        c->streams[c->n_streams] = (struct stream){.id = id};
        return &c->streams[c->n_streams++];
}

/* Returns false when the connection must be closed. */
static bool take_data(struct connection *c, uint32_t id, const uint8_t *data, size_t n) {
        struct stream *stream = stream_of(c, id);
        size_t n_message;

        if (stream->n + n > MAX_MESSAGE)
                return true; /* of a large request: it is never complete */
        memcpy(stream->data + stream->n, data, n);
        stream->n += n;
        if (stream->n < PREFIX + 1)
                return true;
        n_message = PREFIX + h2_get_u32(stream->data + 1);
        if (stream->n < n_message)
                return true;
        assert(stream->n == n_message);
        stream->n = 0;
        atomic_fetch_add(&c->server->n_messages, 1);
        if (stream->kind == 0) {
                stream->kind = stream->data[PREFIX];
                return respond(c, id, stream->data, n_message);
        }
        if (stream->kind == 's')
                send_frame(c, H2_DATA, 0, id, stream->data, n_message);
        return true;
}

/* Returns false when the connection must be closed. */
static bool take_frame(struct connection *c, const uint8_t *frame, size_t n) {
        uint32_t id = h2_get_u32(frame + 5) & 0x7fffffff;

        switch (frame[3]) {
        case H2_SETTINGS:
                if (!(frame[4] & H2_ACK))
                        send_frame(c, H2_SETTINGS, H2_ACK, 0, NULL, 0);
                return true;
        case H2_PING:
                if (!(frame[4] & H2_ACK)) {
                        atomic_fetch_add(&c->server->n_pings, 1);
                        send_frame(c, H2_PING, H2_ACK, 0, frame + H2_HEAD_SIZE, n);
                } else {
                        atomic_fetch_add(&c->server->n_acks, 1);
                }
                return true;
        case H2_RST_STREAM: atomic_fetch_add(&c->server->n_resets, 1); return true;
        case H2_DATA:
                atomic_fetch_add(&c->server->n_data, (int)n);
                if (n > MAX_MESSAGE && !c->server->opens_no_window)
                        send_u32_frame(c, H2_WINDOW_UPDATE, (uint32_t)n);
                return take_data(c, id, frame + H2_HEAD_SIZE, n);
        default: return true;
        }
}

static bool take_input(struct connection *c) {
        size_t used = 0;

        while (c->n_in - used >= H2_HEAD_SIZE) {
                const uint8_t *frame = c->in + used;
                size_t n = (size_t)(h2_get_u32(frame) >> 8);

                if (c->n_in - used < H2_HEAD_SIZE + n)
                        break;
                if (!c->is_silent && !take_frame(c, frame, n))
                        return false;
                used += H2_HEAD_SIZE + n;
        }
        c->n_in -= used;
        memmove(c->in, c->in + used, c->n_in);
        return true;
}

static bool receive(struct connection *c) {
        PATIENCE_AWAIT(!atomic_load(&c->server->holds));
        ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, 0);

        if (n > 0)
                c->n_in += (size_t)n;
        return n > 0;
}

static void serve(void *ctx, int fd) {
        struct connection *c = calloc(1, sizeof *c);
        bool open = true;

        assert(c);
        c->server = ctx;
        c->fd = fd;
        while (open && c->n_in < H2_N_PREFACE)
                open = receive(c);
        if (open) {
                c->n_in -= H2_N_PREFACE;
                memmove(c->in, c->in + H2_N_PREFACE, c->n_in);
                send_frame(c, H2_SETTINGS, 0, 0, NULL, 0);
                if (!c->server->opens_no_window)
                        send_frame(c, H2_WINDOW_UPDATE, 0, 0, "\1\0\0\0", 4);
        }
        while (open)
                open = take_input(c) && receive(c);
        atomic_fetch_add(&c->server->n_closed, 1);
        free(c);
}

void grpc_server_start(struct grpc_server *server) {
        atomic_init(&server->n_pings, 0);
        atomic_init(&server->n_messages, 0);
        atomic_init(&server->n_resets, 0);
        atomic_init(&server->n_data, 0);
        atomic_init(&server->n_acks, 0);
        atomic_init(&server->n_closed, 0);
        atomic_init(&server->holds, false);
        loopback_server_start(&server->base, serve, server);
}

void grpc_server_stop(struct grpc_server *server) { loopback_server_stop(&server->base); }
