/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See h2_echo_server.h. Each connection is used by its own thread only. Output is collected in
 * `out` and flushed when all frames that were read are handled, or when it is full, so that
 * responses share TCP segments.
 */
#include "h2_echo_server.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

#include "h2_frames.h"

#define N_STREAMS 4096
#define MAX_BODY  256

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
        SSL *ssl;
        uint8_t in[1 << 17], out[1 << 18];
        size_t n_in, n_out;
        uint32_t last_id; /* later streams are ignored; 0 = no GOAWAY was sent */
        struct stream streams[N_STREAMS];
};

static const char STATUS_0_BLOCK[] = "\x00\x0bgrpc-status\x01"
                                     "0\x00\x0cgrpc-message\x05"
                                     "a%20b";
static const char STATUS_5_BLOCK[] = H2_STATUS_200 "\x00\x0bgrpc-status\x01"
                                                   "5";

static void flush(struct connection *c) {
        /* An error shows again at the next read. */
        if (c->n_out > 0)
                (void)SSL_write(c->ssl, c->out, (int)c->n_out);
        c->n_out = 0;
}

static void send_frame(struct connection *c, enum h2_frame_type type, int flags, uint32_t stream,
                       const void *payload, size_t n) {
        if (c->n_out + H2_HEAD_SIZE + n > sizeof c->out)
                flush(c);
        uint8_t *to = c->out + c->n_out;
        h2_put_head(to, n, type, flags, stream);
        if (n > 0)
                memcpy(to + H2_HEAD_SIZE, payload, n);
        c->n_out += H2_HEAD_SIZE + n;
}

/* The frame size is deliberately not a power of two, so that frames do not line up with a client's
 * buffers. */
static void send_zeros(struct connection *c, uint32_t stream, size_t n) {
        static const uint8_t zeros[12000];

        for (size_t now; n > 0; n -= now) {
                now = n < sizeof zeros ? n : sizeof zeros;
                send_frame(c, H2_DATA, 0, stream, zeros, now);
        }
}

static void send_200(struct connection *c, uint32_t stream) {
        send_frame(c, H2_HEADERS, H2_END_HEADERS, stream, H2_STATUS_200, sizeof H2_STATUS_200 - 1);
}

static void send_trailers(struct connection *c, uint32_t stream) {
        send_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, stream, STATUS_0_BLOCK,
                   sizeof STATUS_0_BLOCK - 1);
}

static void send_goaway(struct connection *c, uint32_t last_id) {
        uint8_t payload[8] = {0}; /* the error code is NO_ERROR */

        h2_put_u32(payload, last_id);
        send_frame(c, H2_GOAWAY, 0, 0, payload, sizeof payload);
        c->last_id = last_id;
}

/* Returns false if nothing may be sent on the connection any more. */
static bool respond(struct connection *c, const struct stream *stream) {
        uint32_t id = stream->id;

        switch (stream->n > 0 ? stream->body[0] : 'e') {
        case 'e':
                send_200(c, id);
                send_frame(c, H2_DATA, H2_END_STREAM, id, stream->body, stream->n);
                return true;
        case 'g':
                send_goaway(c, id);
                send_200(c, id);
                send_frame(c, H2_DATA, H2_END_STREAM, id, stream->body, stream->n);
                return true;
        case 's':
                send_200(c, id);
                send_frame(c, H2_DATA, 0, id, stream->body, stream->n);
                return true;
        case 't':
                send_200(c, id);
                send_frame(c, H2_DATA, 0, id, stream->body, stream->n);
                send_trailers(c, id);
                return true;
        case 'l':
                send_200(c, id);
                send_zeros(c, id, (size_t)strtoul((const char *)stream->body + 1, NULL, 10));
                send_trailers(c, id);
                return true;
        case 'o':
                send_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, id, STATUS_5_BLOCK,
                           sizeof STATUS_5_BLOCK - 1);
                return true;
        case 'r': send_frame(c, H2_RST_STREAM, 0, id, "\0\0\0\2", 4); return true;
        case 'd': loopback_server_wait_for_close(c->fd); return false;
        case 'c': return false;
        default: return true;
        }
}

/* Restores the connection's flow-control window at once, because no test is about flow control. */
static void add_body(struct connection *c, struct stream *stream, const struct frame *frame) {
        uint8_t window[4];

        h2_put_u32(window, (uint32_t)frame->n);
        send_frame(c, H2_WINDOW_UPDATE, 0, 0, window, sizeof window);
        assert(stream->id == frame->stream && stream->n + frame->n <= MAX_BODY);
        memcpy(stream->body + stream->n, frame->payload, frame->n);
        stream->n += frame->n;
        stream->body[stream->n] = 0;
}

static bool handle_frame(struct connection *c, const struct frame *frame) {
        /* Streams of a client have odd ids, so id / 2 is the index. */
        struct stream *stream = &c->streams[frame->stream / 2 % N_STREAMS];

        if (frame->type == H2_SETTINGS && !(frame->flags & H2_ACK))
                send_frame(c, H2_SETTINGS, H2_ACK, 0, NULL, 0);
        if (frame->type == H2_PING && !(frame->flags & H2_ACK))
                send_frame(c, H2_PING, H2_ACK, 0, frame->payload, frame->n);
        if (frame->type == H2_HEADERS)
                *stream = (struct stream){.id = frame->stream};
        if (frame->type == H2_DATA && frame->n > 0)
                add_body(c, stream, frame);
        if (frame->type != H2_DATA && frame->type != H2_HEADERS)
                return true;
        if (!(frame->flags & H2_END_STREAM) || (c->last_id && frame->stream > c->last_id))
                return true;
        return respond(c, stream);
}

/* Handles all complete frames that were read. */
static bool handle_input(struct connection *c) {
        size_t at = 0;

        while (c->n_in - at >= H2_HEAD_SIZE) {
                const uint8_t *from = c->in + at;
                const struct frame frame = {.n = h2_get_u32(from) >> 8,
                                            .type = from[3],
                                            .flags = from[4],
                                            .stream = h2_get_u32(from + 5),
                                            .payload = from + H2_HEAD_SIZE};
                if (c->n_in - at < H2_HEAD_SIZE + frame.n)
                        break;
                if (!handle_frame(c, &frame))
                        return false;
                at += H2_HEAD_SIZE + frame.n;
        }
        memmove(c->in, c->in + at, c->n_in - at);
        c->n_in -= at;
        flush(c);
        return true;
}

static void serve_frames(struct connection *c) {
        static const uint8_t settings[] = {0, 3, 0, 0, 0x10, 0}; /* MAX_CONCURRENT_STREAMS 4096 */
        bool has_preface = false;
        int n;

        send_frame(c, H2_SETTINGS, 0, 0, settings, sizeof settings);
        flush(c);
        while ((n = SSL_read(c->ssl, c->in + c->n_in, (int)(sizeof c->in - c->n_in))) > 0) {
                c->n_in += (size_t)n;
                if (!has_preface && c->n_in >= H2_N_PREFACE) {
                        has_preface = true;
                        assert(memcmp(c->in, H2_PREFACE, H2_N_PREFACE) == 0);
                        c->n_in -= H2_N_PREFACE;
                        memmove(c->in, c->in + H2_N_PREFACE, c->n_in);
                }
                if (has_preface && !handle_input(c))
                        break;
        }
}

static void serve(void *ctx, int fd) {
        struct h2_echo_server *server = ctx;
        struct connection *c = calloc(1, sizeof *c);

        assert(c);
        c->fd = fd;
        c->ssl = SSL_new(server->tls);
        assert(c->ssl);
        SSL_set_fd(c->ssl, fd);
        if (SSL_accept(c->ssl) == 1)
                serve_frames(c);
        SSL_free(c->ssl);
        free(c);
}

static int select_h2(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_n,
                     const unsigned char *in, unsigned n, void *ctx) {
        static const unsigned char h2[] = "\x02h2";

        return SSL_select_next_proto((unsigned char **)ret_name, ret_n, h2, 3, in, n) ==
                               OPENSSL_NPN_NEGOTIATED
                       ? SSL_TLSEXT_ERR_OK
                       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void h2_echo_server_start(struct h2_echo_server *server) {
        server->identity = x509_identity_make("localhost", NULL, NULL, true, 3600);
        server->tls = SSL_CTX_new(TLS_server_method());
        assert(server->tls);
        int r = SSL_CTX_use_certificate(server->tls, server->identity.cert);
        assert(r == 1);
        r = SSL_CTX_use_PrivateKey(server->tls, server->identity.key);
        assert(r == 1);
        SSL_CTX_set_alpn_select_cb(server->tls, select_h2, NULL);
        loopback_server_start(&server->base, serve, server);
}

void h2_echo_server_stop(struct h2_echo_server *server) {
        loopback_server_stop(&server->base);
        SSL_CTX_free(server->tls);
        x509_identity_deinit(&server->identity);
}
