/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on a connection, with nghttp2.
 *
 * A request is the user data of its stream, and all requests of the connection are in one list. A
 * request is dispatched when the peer has ended its side of the stream, or after its head if the
 * body is to be ignored. The response is submitted when it has started. Its body is an nghttp2 data
 * source that reads the response's queue and is deferred while the queue is empty. When the stream
 * closes, the request is detached, and on_gone is called unless the response was complete.
 *
 * Output. Everything that nghttp2 sends goes into the worker's buffer. Body bytes are copied there
 * directly from the response's pieces (NO_COPY). send_data must return WOULDBLOCK when the buffer
 * is full, because otherwise nghttp2 would call it again and again.
 *
 * Protection against abuse:
 * - the limits in h2_open and make_session.
 * - a limit for header bytes after decompression, because a few compressed bytes (HPACK) can become
 *   very many.
 * - flow-control windows, which limit the body bytes under way, and the account (account.h). When
 *   it is full, a known sender gets 503. A stranger's connection ends: each stream that waited for
 *   its 503 to be read would cost more.
 * - a reset of streams whose request is not completed or whose response is not read in time.
 *
 * The end. Draining sends a shutdown notice and a PING. The notice is a GOAWAY with the highest
 * stream id, so that streams which the peer has opened in the meantime are still accepted. The
 * final GOAWAY follows when the PING is acknowledged, or at the next tick. The connection ends when
 * no stream is left.
 *
 * Invariant: until h2_close, a request is in the list exactly as long as its stream points to it.
 * on_stream_close removes both links together. h2_close removes all requests, then the session.
 */
#include "server/http/protocol/h2.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nghttp2/nghttp2.h>

#include "base/blocks.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "server/http/connection/connection.h"

#define MAX_STREAMS       250         /* per connection, at the same time */
#define STREAM_WINDOW     (256 << 10) /* bytes */
#define CONNECTION_WINDOW (1 << 20)   /* bytes */
#define RESET_BURST       1000        /* RST_STREAM frames of the peer: at once ... */
#define RESETS_PER_S      33          /* ... and per second */
#define MAX_ACKS          100         /* unsent acknowledgements of PING and SETTINGS */
#define MAX_SETTINGS      32          /* entries of one SETTINGS frame */
#define MAX_CONTINUATIONS 8           /* CONTINUATION frames after one HEADERS frame */
/* A request with more than this many times the allowed header bytes ends the whole connection. */
#define BOMB_FACTOR 4
#define MAX_NV      64 /* headers of a response; more are left out */
#define SCAN_TICKS  4  /* ticks between two checks of the streams' time limits */
#define FRAME_HEAD  9  /* bytes */

enum drain_stage {
        DRAIN_NONE,
        DRAIN_NOTICED, /* the shutdown notice and the PING were submitted */
        DRAIN_GOAWAY   /* the final GOAWAY was submitted */
};

struct h2 {
        nghttp2_session *session;          /* owned */
        struct hfd_http_request *requests; /* list; each an owned reference */
        size_t n_requests;
        /* The request whose head is being received, which saves a search for each of its headers;
         * NULL = none. */
        struct hfd_http_request *head;
        hf_nsec since; /* when the last request left, or the connection was opened */
        enum drain_stage stage;
        unsigned ticks;
        bool broken;  /* we ended the session: the connection ends after the queued output */
        char *out;    /* the worker's buffer, during h2_fill only; otherwise NULL */
        size_t out_n; /* bytes in it */
};

static const uint8_t drain_ping[8] = "hfdrain";

static struct h2 *h2_of(const struct hfd_connection *connection) {
        return connection->protocol_state;
}

static struct hfd_http_request *request_of(nghttp2_session *session, int32_t stream_id) {
        return nghttp2_session_get_stream_user_data(session, stream_id);
}

static void add_request(struct h2 *h2, struct hfd_http_request *request) {
        request->next = h2->requests;
        if (request->next)
                request->next->prev = request;
        h2->requests = request;
        h2->n_requests++;
}

/* Call when the request's stream has ended. Detaches the request, which may free it. */
static void remove_request(struct hfd_connection *connection, struct h2 *h2,
                           struct hfd_http_request *request) {
        assert(h2->n_requests > 0);
        if (request->next)
                request->next->prev = request->prev;
        if (request->prev)
                request->prev->next = request->next;
        else
                h2->requests = request->next;
        h2->n_requests--;
        if (h2->head == request)
                h2->head = NULL;
        h2->since = connection->worker->now;
        hfd_connection_detach(connection, request);
}

static int submit_goaway(struct h2 *h2) {
        int32_t last = nghttp2_session_get_last_proc_stream_id(h2->session);

        assert(h2->stage != DRAIN_GOAWAY);
        h2->stage = DRAIN_GOAWAY;
        return nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL,
                                     0);
}

/* ---- input: callbacks of nghttp2 ---- */

/* Ends the session with a GOAWAY. last: the id of the last stream that we may have acted on; the
 * GOAWAY tells it to the peer. */
static int end_session(struct h2 *h2, int32_t last, uint32_t error_code) {
        h2->broken = true;
        return nghttp2_session_terminate_session2(h2->session, last, error_code);
}

/* Counts what the request holds. A return value other than 0 is for nghttp2: the session ends. */
static int account_request(struct hfd_connection *connection, struct hfd_http_request *request) {
        if (hfd_connection_account(connection, request, 0) == 0)
                return 0;
        if (connection->share.known) {
                hfd_connection_refuse(connection, request, 503);
                return 0;
        }
        /* Frees the memory now: the connection ends only when the socket has accepted the output.
         */
        hfd_connection_drop_content(connection, request);
        /* A stranger's request is counted while its head arrives. So it is the newest one, nothing
         * was done about it, and the peer may send it again on another connection (RFC 9113 6.8).
         */
        assert(!request->dispatched && !request->head_done);
        end_session(h2_of(connection), request->stream_id > 2 ? request->stream_id - 2 : 0,
                    NGHTTP2_ENHANCE_YOUR_CALM);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct hfd_http_request *request;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        if (hfd_connection_new_request(connection, &request) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        request->protocol = "HTTP/2.0";
        request->stream_id = frame->hd.stream_id;
        request->progress_at = connection->worker->now;
        add_request(h2_of(connection), request);
        h2_of(connection)->head = request;
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, request);
        return 0;
}

/* Stores a header, or one of the pseudo-headers that replace the request line and Host of HTTP/1.1;
 * :scheme is ignored. 0, HF_E_INVALID, HF_E_TOO_LARGE or -ENOMEM. */
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
        /* A host header in addition to :authority must have the same value. */
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
        struct hfd_http_request *request = h2_of(connection)->head;
        size_t max = connection->worker->http->max_header_bytes;
        int r;

        if (!request || request->stream_id != frame->hd.stream_id)
                request = request_of(session, frame->hd.stream_id);
        if (!request)
                return 0;
        request->header_bytes += n_name + n_value + 32; /* as RFC 9113 6.5.2 counts */
        if (request->header_bytes > BOMB_FACTOR * max) {
                end_session(h2_of(connection), nghttp2_session_get_last_proc_stream_id(session),
                            NGHTTP2_ENHANCE_YOUR_CALM);
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        if (request->head_done || request->response.refused)
                return 0; /* a trailer, or the request was refused already */
        r = HF_E_TOO_LARGE;
        if (request->header_bytes <= max)
                r = store_header(request, (const char *)name, n_name, (const char *)value, n_value);
        if (r < 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (r != 0)
                hfd_connection_refuse(connection, request, r == HF_E_TOO_LARGE ? 431 : 400);
        else
                return account_request(connection, request);
        return 0;
}

/* The head is complete. more: a body follows. */
static void on_head(nghttp2_session *session, struct hfd_connection *connection,
                    struct hfd_http_request *request, bool more) {
        static const nghttp2_nv continue_headers = {(uint8_t *)":status", (uint8_t *)"100", 7, 3,
                                                    NGHTTP2_NV_FLAG_NONE};
        const char *text;

        assert(!request->head_done);
        request->head_done = true;
        if (request->response.refused)
                return;
        if (!request->method || !request->target || strcmp(request->method, "CONNECT") == 0) {
                hfd_connection_refuse(connection, request, 400);
                return;
        }
        if (hfd_http_request_join_headers(request) != 0) {
                hfd_connection_refuse(connection, request, 503);
                return;
        }
        if (!hfd_connection_decide(connection, request))
                return;
        text = hfd_http_request_header(request, "content-length");
        if (text && strtoull(text, NULL, 10) > connection->worker->http->max_body) {
                hfd_connection_refuse(connection, request, 413);
                return;
        }
        text = hfd_http_request_header(request, "expect");
        if (more && text && strcasecmp(text, "100-continue") == 0)
                (void)nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, request->stream_id, NULL,
                                             &continue_headers, 1, NULL);
}

static bool is_drain_ack(const struct h2 *h2, const nghttp2_frame *frame) {
        return frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK &&
               h2->stage == DRAIN_NOTICED &&
               memcmp(frame->ping.opaque_data, drain_ping, sizeof drain_ping) == 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_request *request;
        bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

        if (is_drain_ack(h2, frame))
                return submit_goaway(h2);
        if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
                return 0;
        request = request_of(session, frame->hd.stream_id);
        if (!request)
                return 0;
        h2->head = NULL;
        if (frame->hd.type == NGHTTP2_HEADERS && !request->head_done)
                on_head(session, connection, request, !end);
        if (!end)
                return 0;
        request->received = true;
        if (!request->response.refused && !request->dispatched)
                hfd_connection_dispatch(connection, request);
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t n, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct hfd_http_request *request = request_of(session, stream_id);
        size_t max = connection->worker->http->max_body;
        int r;

        /* The windows may open again: hfd_connection_account bounds the memory. */
        if (nghttp2_session_consume(session, stream_id, n) != 0)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        if (!request || request->response.refused || request->dispatched)
                return 0;
        r = hfd_http_request_add_body(request, data, n, max);
        if (r == HF_E_TOO_LARGE)
                hfd_connection_refuse(connection, request, 413);
        else if (r != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        else
                return account_request(connection, request);
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *ctx) {
        struct hfd_http_request *request = request_of(session, stream_id);

        if (!request)
                return 0;
        nghttp2_session_set_stream_user_data(session, stream_id, NULL);
        /* The peer may have reset the stream before it got the last frame. */
        if (error_code != NGHTTP2_NO_ERROR)
                request->response.complete = false;
        remove_request(ctx, h2_of(ctx), request);
        return 0;
}

/* ---- output ---- */

/* Returns the number of body bytes of the next DATA frame, at most n. send_data copies them. */
static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t n,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx) {
        struct hfd_http_request *request = source->ptr;
        struct hfd_http_response_state state;

        hfd_http_response_get_state(request, &state);
        if (state.cut)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
        if (state.n == 0 && !state.ended)
                return NGHTTP2_ERR_DEFERRED;
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        if (state.ended && state.n <= n)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)(state.n < n ? state.n : n);
}

/* Writes the DATA frame whose length read_body has returned into the worker's buffer. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                     size_t n, nghttp2_data_source *source, void *ctx) {
        struct hfd_connection *connection = ctx;
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_request *request = source->ptr;

        assert(h2->out);
        if (h2->out_n > 0 && h2->out_n + FRAME_HEAD + n > HFD_OUT_SPACE)
                return NGHTTP2_ERR_WOULDBLOCK;
        memcpy(h2->out + h2->out_n, header, FRAME_HEAD); /* frames have no padding */
        h2->out_n += FRAME_HEAD;
        if (hfd_http_response_read(request, h2->out + h2->out_n, n, connection->worker->now) != n) {
                /* The response was cut after read_body: the frame is not sent, and the stream is
                 * reset. */
                h2->out_n -= FRAME_HEAD;
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        h2->out_n += n;
        request->progress_at = connection->worker->now;
        return 0;
}

/* The response is complete when its last frame is in the buffer, and not before: a frame whose
 * length read_body has returned may have to wait, and the peer can reset the stream meanwhile. If
 * the response is complete before the request, resets the stream, so that the peer stops sending
 * (RFC 9113 8.1). */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
        struct hfd_http_request *request;

        if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
            !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                return 0;
        request = request_of(session, frame->hd.stream_id);
        if (!request)
                return 0;
        request->response.complete = true;
        if (!request->received)
                return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                 NGHTTP2_NO_ERROR);
        return 0;
}

/* nghttp2 copies the texts. */
static nghttp2_nv copied_header(const char *name, const char *value) {
        return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                            NGHTTP2_NV_FLAG_NONE};
}

/* nghttp2 reads the texts when it sends the head, and not if the stream has been closed before.
 * Until then the request keeps them. */
static nghttp2_nv borrowed_header(const struct hfd_checked_header *header) {
        return (nghttp2_nv){(uint8_t *)header->name, (uint8_t *)header->value, header->n_name,
                            header->n_value,
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static int submit_response(struct h2 *h2, struct hfd_http_request *request,
                           const struct hfd_http_response_state *state) {
        static const struct hfd_checked_header ok = {":status", "200", 7, 3};
        struct hfd_http_response *response = &request->response;
        nghttp2_data_provider body = {.source.ptr = request, .read_callback = read_body};
        nghttp2_nv nv[MAX_NV];
        struct hfd_checked_header header;
        char code[HF__U64_TEXT_MAX], length[HF__U64_TEXT_MAX];
        size_t n = 0, cursor = 0;
        bool has_body = hfd_http_response_has_body(request) &&
                        (state->streaming || response->content_length > 0);

        assert(state->started && !response->submitted);
        if (response->code == 200) {
                nv[n++] = borrowed_header(&ok);
        } else {
                (void)hf__u64_text((uint64_t)response->code, code);
                nv[n++] = copied_header(":status", code);
        }
        /* The last place is kept for the content length. */
        while (n < MAX_NV - 1 && hfd_http_response_next_header(request, &cursor, &header))
                nv[n++] = borrowed_header(&header);
        if (!state->streaming && response->code != 204 && response->code != 304) {
                (void)hf__u64_text(response->content_length, length);
                nv[n++] = copied_header("content-length", length);
        }
        response->submitted = true;
        return nghttp2_submit_response(h2->session, request->stream_id, nv, n,
                                       has_body ? &body : NULL);
}

static void h2_drain(struct hfd_connection *connection) {
        struct h2 *h2 = h2_of(connection);

        if (h2->stage != DRAIN_NONE)
                return;
        h2->stage = DRAIN_NOTICED;
        if (nghttp2_submit_shutdown_notice(h2->session) != 0 ||
            nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, drain_ping) != 0)
                connection->dead = true;
}

static void h2_response_changed(struct hfd_connection *connection,
                                struct hfd_http_request *request) {
        struct h2 *h2 = h2_of(connection);
        struct hfd_http_response_state state;
        int r = 0;

        hfd_http_response_get_state(request, &state);
        if (state.cut) {
                hfd_http_response_clear(request);
                r = nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, request->stream_id,
                                              NGHTTP2_INTERNAL_ERROR);
        } else if (state.started && !request->response.submitted) {
                r = submit_response(h2, request, &state);
                if (request->response.close_after)
                        h2_drain(connection);
        } else if (state.started) {
                /* If the data source was not deferred, that is an error, but not a fatal one. A
                 * lack of memory is fatal: nothing would send the rest of the response. */
                r = nghttp2_session_resume_data(h2->session, request->stream_id);
        }
        if (r != 0 && nghttp2_is_fatal(r))
                connection->dead = true;
}

static size_t h2_fill(struct hfd_connection *connection, char *out) {
        struct h2 *h2 = h2_of(connection);

        assert(!h2->out);
        h2->out = out;
        h2->out_n = 0;
        while (h2->out_n < HFD_OUT_SPACE) {
                const uint8_t *data;
                ssize_t n = nghttp2_session_mem_send(h2->session, &data);

                if (n < 0 || h2->out_n + (size_t)n > HFD_OUT_SPACE + HFD_OUT_SLACK) {
                        connection->dead = true;
                        break;
                }
                /* There is no more output, or send_data has found the buffer full. */
                if (n == 0)
                        break;
                memcpy(out + h2->out_n, data, (size_t)n);
                h2->out_n += (size_t)n;
        }
        h2->out = NULL;
        return h2->out_n;
}

/* ---- the protocol ---- */

/* Streams and frames are made and freed for each request, on this thread. nghttp2 may free with one
 * function what it got from another: blocks.h allows that. */
static void *allocate_memory(size_t n, void *ctx) { return hf__blocks_get(n); }
static void release_memory(void *memory, void *ctx) { hf__blocks_put(memory); }
static void *allocate_zeroed(size_t n, size_t size, void *ctx) { return calloc(n, size); }
static void *reallocate_memory(void *memory, size_t n, void *ctx) { return realloc(memory, n); }

HF__CLEANUP_DEFINE(callbacks_cleanup, nghttp2_session_callbacks *, nghttp2_session_callbacks_del)
HF__CLEANUP_DEFINE(option_cleanup, nghttp2_option *, nghttp2_option_del)

static int make_session(struct hfd_connection *connection, struct h2 *h2) {
        static nghttp2_mem memory = {.malloc = allocate_memory,
                                     .free = release_memory,
                                     .calloc = allocate_zeroed,
                                     .realloc = reallocate_memory};
        HF__CLEANUP(callbacks_cleanup) nghttp2_session_callbacks *callbacks = NULL;
        HF__CLEANUP(option_cleanup) nghttp2_option *option = NULL;

        if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
                return -ENOMEM;
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
        nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        /* As in Go, values keep white space at their ends. nghttp2 would reset the stream. */
        nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
        nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
        nghttp2_option_set_max_settings(option, MAX_SETTINGS);
        nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
        nghttp2_option_set_stream_reset_rate_limit(option, RESET_BURST, RESETS_PER_S);
        if (nghttp2_session_server_new3(&h2->session, callbacks, connection, option, &memory) != 0)
                return -ENOMEM;
        return 0;
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

        assert(!connection->protocol_state);
        if (!h2)
                return -ENOMEM;
        h2->since = connection->worker->now;
        if (make_session(connection, h2) != 0 ||
            nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                    sizeof settings / sizeof settings[0]) != 0 ||
            nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW) != 0) {
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

/* Always true: WINDOW_UPDATE and PING must be read even while responses wait. on_data limits the
 * request bodies. */
static bool h2_wants_input(const struct hfd_connection *connection) { return true; }

static bool h2_finished(const struct hfd_connection *connection) {
        const struct h2 *h2 = h2_of(connection);

        if (h2->stage == DRAIN_GOAWAY && h2->n_requests == 0)
                return true;
        return !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);
}

/* Resets streams whose peer does not complete its request or does not read its response in time.
 * The time of a request counts from its first header, not from its last byte: slow uploads must
 * end. */
static void reset_stalled_streams(struct hfd_connection *connection, struct h2 *h2, hf_nsec now) {
        for (struct hfd_http_request *request = h2->requests; request; request = request->next) {
                struct hfd_http_response_state state;

                hfd_http_response_get_state(request, &state);
                /* The peer is not late while it waits for the handler or for a watch's event. */
                if (request->received && state.n == 0)
                        request->progress_at = now;
                if (now - request->progress_at <= HFD_IDLE_TIME)
                        continue;
                /* The stream closes when the frame is sent, so the list does not change here. */
                (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, request->stream_id,
                                                NGHTTP2_CANCEL);
                hfd_connection_mark_dirty(connection);
        }
}

static void h2_tick(struct hfd_connection *connection, hf_nsec now) {
        struct h2 *h2 = h2_of(connection);

        if (h2->n_requests > 0 && ++h2->ticks % SCAN_TICKS == 0)
                reset_stalled_streams(connection, h2, now);
        if (h2->stage == DRAIN_NOTICED ||
            (h2->n_requests == 0 && h2->stage == DRAIN_NONE && now - h2->since > HFD_IDLE_TIME)) {
                (void)submit_goaway(h2);
                hfd_connection_mark_dirty(connection);
        }
}

static void h2_close(struct hfd_connection *connection) {
        struct h2 *h2 = h2_of(connection);

        while (h2->requests) {
                h2->requests->response.complete = false; /* unsent bytes are lost with the socket */
                remove_request(connection, h2, h2->requests);
        }
        assert(h2->n_requests == 0);
        nghttp2_session_del(h2->session);
        free(h2);
}

const struct hfd_protocol hfd_h2 = {
        .open = h2_open,
        .input = h2_input,
        .wants_input = h2_wants_input,
        .fill = h2_fill,
        .response_changed = h2_response_changed,
        .finished = h2_finished,
        .drain = h2_drain,
        .tick = h2_tick,
        .close = h2_close,
};
