/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on a connection.
 *
 * A call is the user data of its stream in nghttp2. Its request is a HEADERS frame and DATA frames;
 * the last one ends our side if the call is unary. The output position after that frame is kept in
 * written_at: until the socket has accepted all bytes before it, the peer cannot have executed the
 * call.
 *
 * Windows. Received data is copied or passed to on_message at once, and nghttp2 opens the windows
 * again automatically. So windows only limit how much is in flight. They are large, because a list
 * can have tens of megabytes.
 *
 * Header compression. grpc-timeout is rounded up to one of a few values. So most header blocks
 * repeat values that the peer knows already, and are a few bytes long. The peer may work longer
 * than our deadline; we reset the stream at the deadline anyway.
 *
 * Invariant: in nghttp2 a stream, or at first a queued request, points to each call that has an id,
 * until on_stream_close or hfd_grpc_session_reset cuts the link, or the connection is freed.
 * Callbacks of nghttp2 never free the session.
 */
#include "server/storage/grpc/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"

#define STREAM_WINDOW     (16 << 20)
#define CONNECTION_WINDOW (64 << 20)
#define FRAME_HEAD        9 /* bytes */
#define N_HEADERS         8 /* of a request, at most */

static struct hfd_grpc_stream *stream_of(nghttp2_session *session, int32_t id) {
        return nghttp2_session_get_stream_user_data(session, id);
}

/* ---- input: callbacks of nghttp2 ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                     void *ctx) {
        struct hfd_grpc_stream *stream = stream_of(session, frame->hd.stream_id);

        if (stream)
                hfd_grpc_stream_add_header(stream, (const char *)name, n_name, (const char *)value,
                                           n_value);
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_grpc_connection *connection = ctx;
        struct hfd_grpc_stream *stream;

        switch (frame->hd.type) {
        case NGHTTP2_SETTINGS:
                if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
                        hfd_grpc_connection_ready(connection);
                break;
        case NGHTTP2_GOAWAY: hfd_grpc_connection_retire(connection); break;
        case NGHTTP2_HEADERS:
                stream = stream_of(session, frame->hd.stream_id);
                if (stream && stream->code >= 200 && !stream->head_done) {
                        stream->head_done = true;
                        stream->received_at = connection->channel->now;
                        if (stream->request.probe) /* its time counts from now on */
                                hfd_grpc_channel_set_timer(stream);
                }
                break;
        default: break;
        }
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t n, void *ctx) {
        struct hfd_grpc_connection *connection = ctx;
        struct hfd_grpc_stream *stream = stream_of(session, id);
        int end;

        if (!stream)
                return 0;
        stream->received_at = connection->channel->now;
        if (stream->probed_at != 0) {
                stream->probed_at = 0;
                hfd_grpc_channel_set_timer(stream); /* the next probe may be due earlier */
        }
        end = hfd_grpc_stream_add_data(stream, (const char *)data, n);
        if (end != 0)
                hfd_grpc_connection_abort(stream, end, "");
        return 0;
}

/* How a call ends whose stream was closed. A gRPC status is final, even if the peer has reset the
 * stream after it because it did not read all of the request. */
static int closed_outcome(const struct hfd_grpc_stream *stream, uint32_t error_code) {
        if (stream->status >= 0)
                return 0;
        if (error_code == NGHTTP2_REFUSED_STREAM)
                return HF_E_UNAVAILABLE;
        if (error_code == NGHTTP2_NO_ERROR && stream->head_done)
                return 0;
        return hfd_grpc_connection_lost_outcome(stream);
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error_code, void *ctx) {
        struct hfd_grpc_stream *stream = stream_of(session, id);
        const char *text = "";

        if (!stream)
                return 0;
        nghttp2_session_set_stream_user_data(session, id, NULL);
        if (error_code == NGHTTP2_REFUSED_STREAM)
                text = "the server has refused the stream";
        else if (error_code != NGHTTP2_NO_ERROR)
                text = "the server has reset the stream";
        hfd_grpc_connection_end(stream, closed_outcome(stream, error_code), text);
        return 0;
}

/* ---- output ---- */

/* Returns how many bytes of the message the next DATA frame gets, at most n. send_data copies
 * them. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx) {
        const struct hfd_grpc_stream *stream = stream_of(session, id);
        size_t left;

        if (!stream)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        left = stream->out->n - stream->n_sent;
        if (left == 0)
                return NGHTTP2_ERR_DEFERRED;
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        if (left <= n && !stream->request.on_message)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)(left < n ? left : n);
}

/* Writes one DATA frame into the channel's buffer. If the buffer was full, this is called again
 * later, without read_body. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                     size_t n, nghttp2_data_source *source, void *ctx) {
        struct hfd_grpc_connection *connection = ctx;
        struct hfd_grpc_stream *stream = stream_of(session, frame->hd.stream_id);
        char *at = connection->out + connection->n_out;

        assert(connection->out);
        if (!stream) /* it was reset after read_body */
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        assert(stream->n_sent + n <= stream->out->n);
        if (connection->n_out > 0 && connection->n_out + FRAME_HEAD + n > HFD_GRPC_OUT_SPACE)
                return NGHTTP2_ERR_WOULDBLOCK;
        memcpy(at, header, FRAME_HEAD); /* we never use padding */
        memcpy(at + FRAME_HEAD, stream->out->data + stream->n_sent, n);
        connection->n_out += FRAME_HEAD + n;
        stream->n_sent += n;
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
                stream->written_at = connection->n_filled + connection->n_out;
        return 0;
}

int hfd_grpc_session_fill(struct hfd_grpc_connection *connection, size_t *ret_n) {
        int r = 0;

        assert(connection->session && !connection->out);
        connection->out = connection->channel->out;
        connection->n_out = 0;
        while (connection->n_out < HFD_GRPC_OUT_SPACE) {
                const uint8_t *data;
                ssize_t n = nghttp2_session_mem_send(connection->session, &data);

                /* Nothing is left, or send_data has found the buffer full. */
                if (n == 0)
                        break;
                if (n < 0 || (size_t)n > sizeof connection->channel->out - connection->n_out) {
                        r = n < 0 ? (int)n : NGHTTP2_ERR_BUFFER_ERROR;
                        break;
                }
                memcpy(connection->out + connection->n_out, data, (size_t)n);
                connection->n_out += (size_t)n;
        }
        connection->out = NULL;
        connection->n_filled += connection->n_out;
        *ret_n = connection->n_out;
        return r;
}

/* ---- requests ---- */

/* grpc-timeout for the time that is left, rounded up; NULL = none, because it is too long. Static
 * text. */
static const char *timeout_text(hf_nsec left) {
        static const struct {
                int seconds;
                const char *text;
        } steps[] = {{1, "1S"},   {2, "2S"},   {4, "4S"},     {8, "8S"},    {15, "15S"},
                     {30, "30S"}, {60, "60S"}, {120, "120S"}, {600, "600S"}};

        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
                if (left <= steps[i].seconds * HF_NSEC_PER_SEC)
                        return steps[i].text;
        return NULL;
}

/* All names and values live as long as the connection, so nghttp2 need not copy them. */
static void add_header(nghttp2_nv *headers, size_t *n, const char *name, const char *value) {
        assert(*n < N_HEADERS);
        headers[(*n)++] =
                (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                             strlen(value),
                             NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

int hfd_grpc_session_submit(struct hfd_grpc_connection *connection,
                            struct hfd_grpc_stream *stream) {
        const struct hfd_grpc_request *request = &stream->request;
        const char *timeout = timeout_text(request->deadline - connection->channel->now);
        nghttp2_data_provider body = {.read_callback = read_body};
        nghttp2_nv headers[N_HEADERS];
        size_t n = 0;
        int32_t id;

        assert(connection->state == HFD_GRPC_READY && stream->id == 0);
        add_header(headers, &n, ":method", "POST");
        add_header(headers, &n, ":scheme", connection->endpoint->tls ? "https" : "http");
        add_header(headers, &n, ":path", request->path);
        add_header(headers, &n, ":authority", connection->endpoint->authority);
        add_header(headers, &n, "content-type", "application/grpc");
        add_header(headers, &n, "te", "trailers");
        if (timeout)
                add_header(headers, &n, "grpc-timeout", timeout);
        if (request->header_name)
                add_header(headers, &n, request->header_name, request->header_value);
        id = nghttp2_submit_request(connection->session, NULL, headers, n, &body, stream);
        if (id < 0)
                return id;
        stream->id = id;
        stream->submitted_at = connection->channel->now;
        connection->is_dirty = true;
        return 0;
}

void hfd_grpc_session_resume(struct hfd_grpc_connection *connection,
                             struct hfd_grpc_stream *stream) {
        hfd_grpc_assert_thread(connection->channel);
        /* An error means that the stream was not deferred, or that memory is short. Then the probe
         * may stay unsent, and the stream ends for lack of a response. */
        (void)nghttp2_session_resume_data(connection->session, stream->id);
        connection->is_dirty = true;
}

void hfd_grpc_session_reset(struct hfd_grpc_connection *connection,
                            struct hfd_grpc_stream *stream) {
        assert(stream->id > 0);
        nghttp2_session_set_stream_user_data(connection->session, stream->id, NULL);
        (void)nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, stream->id,
                                        NGHTTP2_CANCEL);
        connection->is_dirty = true;
}

int hfd_grpc_session_ping(struct hfd_grpc_connection *connection) {
        connection->is_dirty = true;
        return nghttp2_submit_ping(connection->session, NGHTTP2_FLAG_NONE, NULL);
}

int hfd_grpc_session_input(struct hfd_grpc_connection *connection, const char *data, size_t n) {
        ssize_t used = nghttp2_session_mem_recv(connection->session, (const uint8_t *)data, n);

        hfd_grpc_assert_thread(connection->channel);
        connection->is_dirty = true;
        if (used < 0)
                return (int)used;
        return (size_t)used == n ? 0 : NGHTTP2_ERR_PROTO;
}

bool hfd_grpc_session_is_over(const struct hfd_grpc_connection *connection) {
        return connection->session && !nghttp2_session_want_read(connection->session) &&
               !nghttp2_session_want_write(connection->session);
}

/* Memory for nghttp2. It allocates streams and frames for each call, on this thread, so the thread
 * keeps freed blocks for the next calls (base/blocks.h). */
static void *allocate_memory(size_t n, void *ctx) { return hf__blocks_get(n); }
static void release_memory(void *memory, void *ctx) { hf__blocks_put(memory); }
static void *allocate_zeroed(size_t n, size_t size, void *ctx) { return calloc(n, size); }
static void *reallocate_memory(void *memory, size_t n, void *ctx) { return realloc(memory, n); }

int hfd_grpc_session_new(struct hfd_grpc_connection *connection) {
        static nghttp2_mem memory = {.malloc = allocate_memory,
                                     .free = release_memory,
                                     .calloc = allocate_zeroed,
                                     .realloc = reallocate_memory};
        const nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        };
        nghttp2_session_callbacks *callbacks = NULL;
        int r = nghttp2_session_callbacks_new(&callbacks);

        assert(!connection->session);
        if (r != 0)
                return r;
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
        r = nghttp2_session_client_new3(&connection->session, callbacks, connection, NULL, &memory);
        nghttp2_session_callbacks_del(callbacks);
        if (r == 0)
                r = nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings,
                                            sizeof settings / sizeof settings[0]);
        if (r == 0)
                r = nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                          CONNECTION_WINDOW);
        connection->is_dirty = true;
        return r;
}
