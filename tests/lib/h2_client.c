/* SPDX-License-Identifier: Apache-2.0 */
/* See h2_client.h. */
#include "h2_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct h2_client_stream *h2_client_stream_of(struct h2_client *client, int32_t id) {
        return &client->streams[(id - 1) / 2];
}

static int on_header(nghttp2_session *s, const nghttp2_frame *frame, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t n_value, uint8_t flags, void *ctx) {
        if (n == 7 && memcmp(name, ":status", 7) == 0)
                h2_client_stream_of(ctx, frame->hd.stream_id)->code = atoi((const char *)value);
        return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                   void *ctx) {
        struct h2_client_stream *st = h2_client_stream_of(ctx, id);

        st->body = realloc(st->body, st->n + n + 1);
        assert_non_null(st->body);
        memcpy(st->body + st->n, data, n);
        st->n += n;
        st->body[st->n] = '\0';
        return 0;
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t error_code, void *ctx) {
        h2_client_stream_of(ctx, id)->closed = true;
        h2_client_stream_of(ctx, id)->error_code = error_code;
        return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *frame, void *ctx) {
        struct h2_client *client = ctx;

        if (frame->hd.type != NGHTTP2_GOAWAY)
                return 0;
        client->goaway_last = frame->goaway.last_stream_id;
        if (client->goaway_first < 0)
                client->goaway_first = client->goaway_last;
        return 0;
}

static ssize_t read_upload(nghttp2_session *s, int32_t id, uint8_t *buf, size_t n, uint32_t *flags,
                           nghttp2_data_source *src, void *ctx) {
        struct h2_client_stream *st = h2_client_stream_of(ctx, id);

        if (st->upload_stalls)
                return NGHTTP2_ERR_DEFERRED;
        n = n < st->n_upload ? n : st->n_upload;
        memcpy(buf, st->upload, n);
        st->upload += n;
        st->n_upload -= n;
        if (st->n_upload == 0)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)n;
}

void h2_client_flush(struct h2_client *client) {
        const uint8_t *data;
        ssize_t n;

        while ((n = nghttp2_session_mem_send(client->session, &data)) > 0)
                tls_client_send(&client->tls, data, (size_t)n);
}

struct h2_client *h2_client_open(uint16_t port, uint32_t window, int rcvbuf) {
        nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window ? window : 1 << 20}};
        struct h2_client *client = calloc(1, sizeof *client);
        nghttp2_session_callbacks *cb;
        nghttp2_option *option;

        assert_non_null(client);
        client->goaway_first = client->goaway_last = -1;
        assert_int_equal(tls_client_open(&client->tls, port, "h2", NULL, rcvbuf), 0);
        nghttp2_session_callbacks_new(&cb);
        nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
        nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
        nghttp2_option_new(&option);
        nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
        assert_int_equal(nghttp2_session_client_new2(&client->session, cb, client, option), 0);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(cb);
        nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, 1);
        if (!window)
                nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0,
                                                      1 << 24);
        h2_client_flush(client);
        return client;
}

void h2_client_close(struct h2_client *client) {
        for (int i = 0; i < H2_CLIENT_MAX_STREAMS; i++)
                free(client->streams[i].body);
        nghttp2_session_del(client->session);
        tls_client_close(&client->tls);
        free(client);
}

bool h2_client_iteration(struct h2_client *client) {
        ssize_t used;

        h2_client_flush(client);
        if (!tls_client_read(&client->tls))
                return false;
        used = nghttp2_session_mem_recv(client->session, (uint8_t *)client->tls.in,
                                        client->tls.n_in);
        assert_int_equal(used, client->tls.n_in);
        client->tls.n_in = 0;
        h2_client_flush(client);
        return true;
}

nghttp2_nv h2_client_header(const char *name, const char *value) {
        return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                            NGHTTP2_NV_FLAG_NONE};
}

int32_t h2_client_ask_with(struct h2_client *client, const char *method, const char *path,
                           const nghttp2_nv *headers, size_t n_headers, const char *body,
                           size_t n) {
        static nghttp2_nv nvs[400];
        nghttp2_data_provider source = {.read_callback = read_upload};
        int32_t id = (int32_t)nghttp2_session_get_next_stream_id(client->session);

        nvs[0] = h2_client_header(":method", method);
        nvs[1] = h2_client_header(":scheme", "https");
        nvs[2] = h2_client_header(":authority", "a");
        nvs[3] = h2_client_header(":path", path);
        assert_true(n_headers <= sizeof nvs / sizeof nvs[0] - 4);
        for (size_t i = 0; i < n_headers; i++)
                nvs[4 + i] = headers[i];
        h2_client_stream_of(client, id)->upload = body;
        h2_client_stream_of(client, id)->n_upload = n;
        assert_int_equal(nghttp2_submit_request(client->session, NULL, nvs, 4 + n_headers,
                                                body ? &source : NULL, NULL),
                         id);
        h2_client_flush(client);
        return id;
}

int32_t h2_client_ask(struct h2_client *client, const char *method, const char *path,
                      const char *body) {
        return h2_client_ask_with(client, method, path, NULL, 0, body, body ? strlen(body) : 0);
}

struct h2_client_stream *h2_client_await(struct h2_client *client, int32_t id) {
        while (!h2_client_stream_of(client, id)->closed)
                if (!h2_client_iteration(client))
                        fail_msg("the connection ended before stream %d", id);
        return h2_client_stream_of(client, id);
}
