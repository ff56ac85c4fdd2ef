/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See h2_echo_server.h. Each connection is used by its own thread only. Output is collected in
 * `out` and flushed when all frames that were read are handled, so that responses share TCP
 * segments.
 */
#include "h2_echo_server.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define N_STREAMS   4096
#define MAX_BODY    256
#define HEAD_SIZE   9 /* of a frame */
#define PREFACE     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define N_PREFACE   (sizeof PREFACE - 1)
#define END_STREAM  1
#define END_HEADERS 4
#define ACK         1

enum frame_type {
        DATA = 0,
        HEADERS = 1,
        RST_STREAM = 3,
        SETTINGS = 4,
        PING = 6,
        GOAWAY = 7,
        WINDOW_UPDATE = 8
};

struct frame {
        size_t n;
        uint8_t type, flags;
        uint32_t stream;
        const uint8_t *payload;
};

struct stream {
        uint32_t id;
        size_t n;
        uint8_t body[MAX_BODY + 1]; /* room for a NUL */
};

struct connection {
        int fd;
        uint8_t in[1 << 17], out[1 << 18];
        size_t n_in, n_out;
        uint32_t last_id; /* later streams are ignored; 0 = no GOAWAY was sent */
        struct stream streams[N_STREAMS];
};

/* 0x88 is ":status: 200" of the static table; 0 begins a literal that is not added to a table. */
static const char OK_BLOCK[] = "\x88";
static const char STATUS_0_BLOCK[] = "\x00\x0bgrpc-status\x01"
                                     "0\x00\x0cgrpc-message\x05"
                                     "a%20b";
static const char STATUS_5_BLOCK[] = "\x88\x00\x0bgrpc-status\x01"
                                     "5";

static void flush(struct connection *c) {
        /* An error shows again at the next recv. */
        (void)loopback_server_send(c->fd, c->out, c->n_out);
        c->n_out = 0;
}

static void put_u32(uint8_t *to, uint32_t value) {
        for (int i = 0; i < 4; i++)
                to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *from) {
        return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void send_frame(struct connection *c, enum frame_type type, int flags, uint32_t stream,
                       const void *payload, size_t n) {
        if (c->n_out + HEAD_SIZE + n > sizeof c->out)
                flush(c);
        uint8_t *to = c->out + c->n_out;
        put_u32(to, (uint32_t)(n << 8) | (uint32_t)type);
        to[4] = (uint8_t)flags;
        put_u32(to + 5, stream);
        if (n > 0)
                memcpy(to + HEAD_SIZE, payload, n);
        c->n_out += HEAD_SIZE + n;
}

/* The frame size is odd on purpose: frames do not line up with the buffers of a client. */
static void send_zeros(struct connection *c, uint32_t stream, size_t n) {
        static const uint8_t zeros[12000];

        for (size_t now; n > 0; n -= now) {
                now = n < sizeof zeros ? n : sizeof zeros;
                send_frame(c, DATA, 0, stream, zeros, now);
        }
}

static void send_200(struct connection *c, uint32_t stream) {
        send_frame(c, HEADERS, END_HEADERS, stream, OK_BLOCK, sizeof OK_BLOCK - 1);
}

static void send_trailers(struct connection *c, uint32_t stream) {
        send_frame(c, HEADERS, END_HEADERS | END_STREAM, stream, STATUS_0_BLOCK,
                   sizeof STATUS_0_BLOCK - 1);
}

static void send_goaway(struct connection *c, uint32_t last_id) {
        uint8_t payload[8] = {0}; /* the error code is NO_ERROR */

        put_u32(payload, last_id);
        send_frame(c, GOAWAY, 0, 0, payload, sizeof payload);
        c->last_id = last_id;
}

/* Returns false if nothing may be sent on the connection any more. */
static bool respond(struct connection *c, const struct stream *stream) {
        uint32_t id = stream->id;

        switch (stream->n > 0 ? stream->body[0] : 'e') {
        case 'e':
                send_200(c, id);
                send_frame(c, DATA, END_STREAM, id, stream->body, stream->n);
                return true;
        case 'g':
                send_goaway(c, id);
                send_200(c, id);
                send_frame(c, DATA, END_STREAM, id, stream->body, stream->n);
                return true;
        case 's':
                send_200(c, id);
                send_frame(c, DATA, 0, id, stream->body, stream->n);
                return true;
        case 't':
                send_200(c, id);
                send_frame(c, DATA, 0, id, stream->body, stream->n);
                send_trailers(c, id);
                return true;
        case 'l':
                send_200(c, id);
                send_zeros(c, id, (size_t)strtoul((const char *)stream->body + 1, NULL, 10));
                send_trailers(c, id);
                return true;
        case 'o':
                send_frame(c, HEADERS, END_HEADERS | END_STREAM, id, STATUS_5_BLOCK,
                           sizeof STATUS_5_BLOCK - 1);
                return true;
        case 'r': send_frame(c, RST_STREAM, 0, id, "\0\0\0\2", 4); return true;
        case 'd': loopback_server_wait_for_close(c->fd); return false;
        case 'c': return false;
        default: return true;
        }
}

/* Restores the flow-control window at once, because no test is about flow control. */
static void add_body(struct connection *c, struct stream *stream, const struct frame *frame) {
        uint8_t window[4];

        put_u32(window, (uint32_t)frame->n);
        send_frame(c, WINDOW_UPDATE, 0, 0, window, sizeof window);
        assert(stream->id == frame->stream && stream->n + frame->n <= MAX_BODY);
        memcpy(stream->body + stream->n, frame->payload, frame->n);
        stream->n += frame->n;
        stream->body[stream->n] = 0;
}

static bool handle_frame(struct connection *c, const struct frame *frame) {
        /* Streams of a client have odd ids, so id / 2 is the index. */
        struct stream *stream = &c->streams[frame->stream / 2 % N_STREAMS];

        if (frame->type == SETTINGS && !(frame->flags & ACK))
                send_frame(c, SETTINGS, ACK, 0, NULL, 0);
        if (frame->type == PING && !(frame->flags & ACK))
                send_frame(c, PING, ACK, 0, frame->payload, frame->n);
        if (frame->type == HEADERS)
                *stream = (struct stream){.id = frame->stream};
        if (frame->type == DATA && frame->n > 0)
                add_body(c, stream, frame);
        if (frame->type != DATA && frame->type != HEADERS)
                return true;
        if (!(frame->flags & END_STREAM) || (c->last_id && frame->stream > c->last_id))
                return true;
        return respond(c, stream);
}

/* Handles all complete frames that were read. */
static bool handle_input(struct connection *c) {
        size_t at = 0;

        while (c->n_in - at >= HEAD_SIZE) {
                const uint8_t *from = c->in + at;
                const struct frame frame = {.n = get_u32(from) >> 8,
                                            .type = from[3],
                                            .flags = from[4],
                                            .stream = get_u32(from + 5),
                                            .payload = from + HEAD_SIZE};
                if (c->n_in - at < HEAD_SIZE + frame.n)
                        break;
                if (!handle_frame(c, &frame))
                        return false;
                at += HEAD_SIZE + frame.n;
        }
        memmove(c->in, c->in + at, c->n_in - at);
        c->n_in -= at;
        flush(c);
        return true;
}

static void serve(void *ctx, int fd) {
        static const uint8_t settings[] = {0, 3, 0, 0, 0x10, 0}; /* MAX_CONCURRENT_STREAMS 4096 */
        struct connection *c = calloc(1, sizeof *c);
        bool has_preface = false;
        ssize_t n;

        assert(c);
        c->fd = fd;
        send_frame(c, SETTINGS, 0, 0, settings, sizeof settings);
        flush(c);
        while ((n = recv(fd, c->in + c->n_in, sizeof c->in - c->n_in, 0)) > 0) {
                c->n_in += (size_t)n;
                if (!has_preface && c->n_in >= N_PREFACE) {
                        has_preface = true;
                        assert(memcmp(c->in, PREFACE, N_PREFACE) == 0);
                        c->n_in -= N_PREFACE;
                        memmove(c->in, c->in + N_PREFACE, c->n_in);
                }
                if (has_preface && !handle_input(c))
                        break;
        }
        free(c);
}

void h2_echo_server_start(struct h2_echo_server *server) {
        loopback_server_start(&server->base, NULL, serve, server);
}

void h2_echo_server_stop(struct h2_echo_server *server) { loopback_server_stop(&server->base); }
