/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on a connection, by nghttp2.
 *
 * Requests are the streams' user data and stand in one list. A request is dispatched when its
 * stream's input has ended; an answer is submitted when it has started; its body is a data source
 * that reads the ring and is deferred while the ring is empty. A stream's close detaches its
 * request: complete when our END_STREAM went out before, else gone.
 *
 * Output. Everything nghttp2 has to send goes into the worker's buffer; DATA is copied there once,
 * straight from the shared pieces (NO_COPY), and the send callback answers WOULDBLOCK at the
 * buffer's bound, because nghttp2 would call it on and on.
 *
 * Against abuse: the limits in `open`, header bytes counted here (an HPACK bomb is cheap to
 * nghttp2), windows opened only as bodies are taken in, requests that are never completed and
 * answers that are never read reset after a while.
 *
 * The end. drain: a shutdown notice (GOAWAY with the highest id), so that streams under way in the
 * network still count, and a PING; when it is answered, or a tick later, the real GOAWAY. With no
 * streams left the connection ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nghttp2/nghttp2.h>

#include "base/strbuf.h"
#include "server/http/connection.h"

#define MAX_STREAMS       250
#define STREAM_WINDOW     (256 << 10)
#define CONNECTION_WINDOW (1 << 20)
#define RESET_BURST       1000
#define RESETS_PER_S      33
#define MAX_ACKS          100
#define MAX_SETTINGS      32
#define MAX_CONTINUATIONS 8
#define BOMB_FACTOR                                                                                \
        4 /* header bytes beyond the limit times this end the connection, not the stream alone */
#define MAX_ANSWER_NV 64
#define SCAN_EVERY    4 /* ticks between two looks at the streams' time limits */

enum drain_stage { RUNNING, NOTICED, SAID };

struct h2 {
        nghttp2_session *session;          /* owned */
        struct hfd_http_request *requests; /* list; each an owned reference */
        size_t n_requests;
        hf_nsec since; /* the last request left, or the connection opened */
        enum drain_stage stage;
        unsigned ticks;
        bool broken; /* terminated by us: what is queued goes out, then the end */
        char *out;   /* the worker's buffer, while filled */
        size_t out_n;
};

static const uint8_t drain_ping[8] = "hfdrain";

static struct h2 *h2_of(const struct hfd_connection *connection) {
        return connection->protocol_state;
}

static struct hfd_http_request *request_of(nghttp2_session *session, int32_t stream_id) {
        return nghttp2_session_get_stream_user_data(session, stream_id);
}

static void add(struct h2 *h2, struct hfd_http_request *request) {
        request->next = h2->requests;
        if (request->next)
                request->next->prev = request;
        h2->requests = request;
        h2->n_requests++;
}

static void drop(struct hfd_connection *connection, struct h2 *h2,
                 struct hfd_http_request *request) {
        if (request->next)
                request->next->prev = request->prev;
        if (request->prev)
                request->prev->next = request->next;
        else
                h2->requests = request->next;
        h2->n_requests--;
        h2->since = connection->worker->now;
        hfd_connection_detach(connection, request);
}

/* ---- input ---- */

static int terminate(struct h2 *h2, uint32_t error_code) {
        h2->broken = true;
        return nghttp2_session_terminate_session(h2->session, error_code);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct hfd_http_request *request;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        if (hfd_http_request_new(connection->worker, connection, connection->origin, &request))
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        request->protocol = "HTTP/2.0";
        request->stream_id = frame->hd.stream_id;
        request->progress_at = connection->worker->now;
        add(h2_of(connection), request);
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, request);
        return 0;
}

static int store_header(struct hfd_http_request *request, const char *name, size_t n_name,
                        const char *value, size_t n_value) {
        size_t n;

        if (n_name == 7 && memcmp(name, ":method", 7) == 0)
                return hfd_http_request_set_method(request, value, n_value);
        if (n_name == 5 && memcmp(name, ":path", 5) == 0)
                return hfd_http_request_set_target(request, value, n_value);
        if (n_name == 10 && memcmp(name, ":authority", 10) == 0)
                return hfd_http_request_add_header(request, "host", 4, value, n_value);
        if (n_name > 0 && name[0] == ':')
                return 0;
        /* A host beside :authority says nothing new, or lies. */
        if (n_name == 4 && memcmp(name, "host", 4) == 0 &&
            hfd_http_request_header(request, "host")) {
                const char *authority = hfd_http_request_header(request, "host");

                n = strlen(authority);
                return n == n_value && strncasecmp(authority, value, n) == 0 ? 0 : HF_E_INVALID;
        }
        return hfd_http_request_add_header(request, name, n_name, value, n_value);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                     void *ctx) {
        struct hfd_connection *connection = ctx;
        struct hfd_http_request *request = request_of(session, frame->hd.stream_id);
        size_t max = connection->worker->http->max_header_bytes;
        int r;

        if (!request)
                return 0;
        request->header_bytes += n_name + n_value + 32; /* as RFC 9113 6.5.2 counts */
        if (request->header_bytes > BOMB_FACTOR * max) {
                terminate(h2_of(connection), NGHTTP2_ENHANCE_YOUR_CALM);
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        if (request->head_done || request->answered_early)
                return 0; /* a trailer, or lost anyway */
        r = request->header_bytes > max ? HF_E_TOO_LARGE
                                        : store_header(request, (const char *)name, n_name,
                                                       (const char *)value, n_value);
        if (r < 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (r != 0)
                hfd_connection_refuse(connection, request, r == HF_E_TOO_LARGE ? 431 : 400);
        return 0;
}

/* The head is complete. */
static void on_head(nghttp2_session *session, struct hfd_connection *connection,
                    struct hfd_http_request *request, bool more) {
        static const nghttp2_nv go_on = {(uint8_t *)":status", (uint8_t *)"100", 7, 3,
                                         NGHTTP2_NV_FLAG_NONE};
        const char *text;

        request->head_done = true;
        if (request->answered_early)
                return;
        if (!request->method || !request->target || strcmp(request->method, "CONNECT") == 0) {
                hfd_connection_refuse(connection, request, 400);
                return;
        }
        text = hfd_http_request_header(request, "content-length");
        if (text && strtoull(text, NULL, 10) > connection->worker->http->max_body) {
                hfd_connection_refuse(connection, request, 413);
                return;
        }
        if (more)
                hfd_connection_show_head(connection, request);
        text = hfd_http_request_header(request, "expect");
        if (more && text && strcasecmp(text, "100-continue") == 0)
                (void)nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, request->stream_id, NULL,
                                             &go_on, 1, NULL);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_request *request;
        bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

        if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK &&
            h2->stage == NOTICED &&
            memcmp(frame->ping.opaque_data, drain_ping, sizeof drain_ping) == 0) {
                h2->stage = SAID;
                return nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                                             nghttp2_session_get_last_proc_stream_id(session),
                                             NGHTTP2_NO_ERROR, NULL, 0);
        }
        if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
                return 0;
        request = request_of(session, frame->hd.stream_id);
        if (!request)
                return 0;
        if (frame->hd.type == NGHTTP2_HEADERS && !request->head_done)
                on_head(session, connection, request, !end);
        if (!end)
                return 0;
        request->received = true;
        if (!request->answered_early)
                hfd_connection_dispatch(connection, request);
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t n, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct hfd_http_request *request = request_of(session, stream_id);
        size_t max = connection->worker->http->max_body;
        int r;

        /* The bytes are ours now, so the windows may open; what bounds the memory is the account.
         */
        if (nghttp2_session_consume(session, stream_id, n))
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        if (!request || request->answered_early || request->dispatched)
                return 0;
        r = hfd_http_request_add_body(request, data, n, max);
        if (r == HF_E_TOO_LARGE)
                hfd_connection_refuse(connection, request, 413);
        else if (r != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        else if (hfd_connection_account_body(connection, n))
                hfd_connection_refuse(connection, request, 503);
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *ctx) {
        struct hfd_http_request *request = request_of(session, stream_id);

        if (!request)
                return 0;
        nghttp2_session_set_stream_user_data(session, stream_id, NULL);
        if (error_code != NGHTTP2_NO_ERROR)
                request->complete = false;
        drop(ctx, h2_of(ctx), request);
        return 0;
}

/* ---- output ---- */

static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t n,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx) {
        struct hfd_http_request *request = source->ptr;
        struct hfd_http_response_state state;

        hfd_http_response_look(request, &state);
        if (state.cut)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
        if (state.n == 0 && !state.ended)
                return NGHTTP2_ERR_DEFERRED;
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        if (state.ended && state.n <= n) {
                *flags |= NGHTTP2_DATA_FLAG_EOF;
                request->complete = true;
        }
        return (ssize_t)(state.n < n ? state.n : n);
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                     size_t n, nghttp2_data_source *source, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_request *request = source->ptr;

        if (h2->out_n > 0 && h2->out_n + 9 + n > HFD_OUT_SPACE)
                return NGHTTP2_ERR_WOULDBLOCK;
        memcpy(h2->out + h2->out_n, header, 9); /* padding is never asked for */
        h2->out_n += 9;
        if (hfd_http_response_read(request, h2->out + h2->out_n, n) != n) {
                h2->out_n -= 9;
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it was cut meanwhile: the frame is
                                                                 not sent, the stream is reset */
        }
        h2->out_n += n;
        request->progress_at = connection->worker->now;
        return 0;
}

/* An answer that went out before the request was all there: the rest is not wanted. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_http_request *request;

        if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
            !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                return 0;
        request = request_of(session, frame->hd.stream_id);
        if (request && !request->received)
                return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                 NGHTTP2_NO_ERROR);
        return 0;
}

static void add_nv(nghttp2_nv *nv, const char *name, const char *value) {
        *nv = (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                           NGHTTP2_NV_FLAG_NONE};
}

static int submit(struct h2 *h2, struct hfd_http_request *request,
                  const struct hfd_http_response_state *state) {
        nghttp2_data_provider body = {.source.ptr = request, .read_callback = read_body};
        nghttp2_nv nv[MAX_ANSWER_NV];
        const char *cursor = NULL, *name, *value;
        char code[HF__U64_TEXT_MAX], length[HF__U64_TEXT_MAX];
        size_t n = 0;
        bool has_body = hfd_http_response_has_body(request) &&
                        (state->streaming || request->content_length > 0);

        (void)hf__u64_text((uint64_t)request->code, code);
        add_nv(&nv[n++], ":status", code);
        while (n < MAX_ANSWER_NV - 1 &&
               hfd_http_response_next_header(request, &cursor, &name, &value))
                add_nv(&nv[n++], name, value);
        if (!state->streaming && request->code != 204 && request->code != 304) {
                (void)hf__u64_text(request->content_length, length);
                add_nv(&nv[n++], "content-length", length);
        }
        request->submitted = true;
        if (!has_body)
                request->complete = true;
        return nghttp2_submit_response(h2->session, request->stream_id, nv, n,
                                       has_body ? &body : NULL);
}

static void h2_drain(struct hfd_connection *connection) {
        struct h2 *h2 = h2_of(connection);

        if (h2->stage != RUNNING)
                return;
        h2->stage = NOTICED;
        if (nghttp2_submit_shutdown_notice(h2->session) ||
            nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, drain_ping))
                connection->dead = true;
}

static void h2_answer(struct hfd_connection *connection, struct hfd_http_request *request) {
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_response_state state;
        int r = 0;

        hfd_http_response_look(request, &state);
        if (state.cut) {
                hfd_http_response_clear(request);
                r = nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, request->stream_id,
                                              NGHTTP2_INTERNAL_ERROR);
        } else if (state.started && !request->submitted) {
                r = submit(h2, request, &state);
                if (request->close_after)
                        h2_drain(connection);
        } else if (state.started)
                (void)nghttp2_session_resume_data(h2->session,
                                                  request->stream_id); /* an error: it was not
                                                                          deferred */
        if (r != 0 && nghttp2_is_fatal(r))
                connection->dead = true;
}

static size_t h2_fill(struct hfd_connection *connection, char *out) {
        struct h2 *h2 = h2_of(connection);

        h2->out = out;
        h2->out_n = 0;
        while (h2->out_n < HFD_OUT_SPACE) {
                const uint8_t *data;
                ssize_t n = nghttp2_session_mem_send(h2->session, &data);

                if (n < 0 || h2->out_n + (size_t)n > HFD_OUT_SPACE + HFD_OUT_SLACK) {
                        connection->dead = true;
                        break;
                }
                if (n == 0)
                        break;
                memcpy(out + h2->out_n, data, (size_t)n);
                h2->out_n += (size_t)n;
        }
        h2->out = NULL;
        return h2->out_n;
}

/* ---- the protocol ---- */

static int make_session(struct hfd_connection *connection, struct h2 *h2) {
        nghttp2_session_callbacks *callbacks = NULL;
        nghttp2_option *option = NULL;
        int r = -ENOMEM;

        if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
                goto out;
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
        nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
        nghttp2_option_set_max_settings(option, MAX_SETTINGS);
        nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
        nghttp2_option_set_stream_reset_rate_limit(option, RESET_BURST, RESETS_PER_S);
        r = nghttp2_session_server_new2(&h2->session, callbacks, connection, option) ? -ENOMEM : 0;
out:
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        return r;
}

static int h2_open(struct hfd_connection *connection) {
        const nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                 (uint32_t)connection->worker->http->max_header_bytes},
                {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        };
        struct h2 *h2 = calloc(1, sizeof *h2);

        if (!h2)
                return -ENOMEM;
        h2->since = connection->worker->now;
        if (make_session(connection, h2) ||
            nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                    sizeof settings / sizeof settings[0]) ||
            nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW)) {
                nghttp2_session_del(h2->session);
                free(h2);
                return -ENOMEM;
        }
        connection->protocol_state = h2;
        return 0;
}

static int h2_input(struct hfd_connection *connection, const char *data, size_t n) {
        struct h2 *h2 = h2_of(connection);
        ssize_t used = nghttp2_session_mem_recv(h2->session, (const uint8_t *)data, n);

        return used == (ssize_t)n && !h2->broken ? 0 : -EPROTO;
}

static bool h2_wants_input(const struct hfd_connection *connection) { return true; }

static bool h2_finished(const struct hfd_connection *connection) {
        const struct h2 *h2 = h2_of(connection);

        if (h2->stage == SAID && h2->n_requests == 0)
                return true;
        return !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);
}

static void scan_streams(struct hfd_connection *connection, struct h2 *h2, hf_nsec now) {
        for (struct hfd_http_request *request = h2->requests; request; request = request->next) {
                struct hfd_http_response_state state;

                hfd_http_response_look(request, &state);
                /* Waiting for the handler is no fault of the peer's; nor is a watch without events.
                 */
                if (request->received && state.n == 0)
                        request->progress_at = now;
                if (now - request->progress_at <= HFD_IDLE_TIME)
                        continue;
                (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, request->stream_id,
                                                NGHTTP2_CANCEL);
                hfd_connection_mark(connection);
        }
}

static void h2_tick(struct hfd_connection *connection, hf_nsec now) {
        struct h2 *h2 = h2_of(connection);

        if (h2->n_requests > 0 && ++h2->ticks % SCAN_EVERY == 0)
                scan_streams(connection, h2, now);
        if (h2->stage == NOTICED ||
            (h2->n_requests == 0 && h2->stage == RUNNING && now - h2->since > HFD_IDLE_TIME)) {
                h2->stage = SAID;
                (void)nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                                            nghttp2_session_get_last_proc_stream_id(h2->session),
                                            NGHTTP2_NO_ERROR, NULL, 0);
                hfd_connection_mark(connection);
        }
}

static void h2_close(struct hfd_connection *connection) {
        struct h2 *h2 = h2_of(connection);

        while (h2->requests) {
                h2->requests->complete = false;
                drop(connection, h2, h2->requests);
        }
        nghttp2_session_del(h2->session);
        free(h2);
}

const struct hfd_protocol hfd_h2 = {
        .open = h2_open,
        .input = h2_input,
        .wants_input = h2_wants_input,
        .fill = h2_fill,
        .response = h2_answer,
        .finished = h2_finished,
        .drain = h2_drain,
        .tick = h2_tick,
        .close = h2_close,
};
