/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 on a connection: one request at a time, in order.
 *
 * States: READ (the parser gets the input) and RESPOND (`responding`: the handler has the request,
 * or the connection is refusing it). Input that arrives in RESPOND belongs to the next request: it
 * is kept in `pending` and parsed after the response. If the connection ends with the response, the
 * input is dropped. In RESPOND the connection goes on reading, because a read shows that the peer
 * has left, until PENDING_MAX bytes are kept; the last read may add up to HFD_IN_SPACE.
 *
 * A response of known length has Content-Length (204 and 304 have none), and a stream is chunked
 * (for HTTP/1.0: the connection closes at its end). After an invalid request, or while the server
 * drains, the connection ends with the response, which says "connection: close" if its head was not
 * written before.
 *
 * Invariants. A request is parsed only after the previous response was passed on completely,
 * because otherwise pipelined responses could overtake each other. And a response that was cut
 * never looks complete: the connection is closed in the middle of it, without TLS's close
 * notification.
 */
#include "server/http/protocol/h1.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "server/http/connection/connection.h"
#include "server/http/protocol/h1_parser.h"
#include "server/http/request/reason_phrase.h"

#define PENDING_MAX    16384 /* reading stops at this many bytes of later requests */
#define CHUNK_OVERHEAD 24    /* bytes at most: a size in hex and two line ends */

struct h1 {
        struct hfd_h1_parser *parser;     /* owned */
        struct hfd_http_request *request; /* owned reference; NULL between requests */
        struct hf__strbuf head;           /* owned; unsent "100 Continue" and response head */
        size_t head_at;                   /* bytes of it that were sent */
        char *pending;                    /* owned; input that waits for the end of the response */
        size_t n_pending;
        hf_nsec since;   /* when the connection or this request began, or a response was complete */
        bool responding; /* state RESPOND */
        bool head_made;  /* the response's head was written to `head` */
        bool chunked;
        bool closing; /* the connection ends after the current response */
        bool closed;  /* no response is due, and no request is read: the connection may end now */
};

static struct h1 *h1_of(const struct hfd_connection *connection) {
        return connection->protocol_state;
}

static int h1_open(struct hfd_connection *connection) {
        struct hfd_http *http = connection->worker->http;
        struct h1 *h1 = calloc(1, sizeof *h1);

        assert(!connection->protocol_state);
        if (!h1)
                return -ENOMEM;
        if (hfd_h1_parser_new(http->max_header_bytes, http->max_body, &h1->parser) != 0) {
                free(h1);
                return -ENOMEM;
        }
        h1->since = connection->worker->now;
        connection->protocol_state = h1;
        return 0;
}

/* Changes how many bytes of pending input are counted in the account. Returns what
 * hfd_account_change does. */
static int account_pending(struct hfd_connection *connection, size_t before, size_t after) {
        return hfd_account_change(&connection->worker->http->account, &connection->share, before,
                                  after);
}

static void h1_close(struct hfd_connection *connection) {
        struct h1 *h1 = h1_of(connection);

        if (h1->request)
                hfd_connection_detach(connection, h1->request);
        hfd_h1_parser_free(h1->parser);
        hf__strbuf_done(&h1->head);
        free(h1->pending);
        (void)account_pending(connection, h1->n_pending, 0);
        free(h1);
}

/* ---- input ---- */

/* READ -> RESPOND with an error. The rest of the input cannot be interpreted safely, so the
 * connection ends after the response. */
static void refuse_request(struct hfd_connection *connection, struct h1 *h1, int code) {
        assert(h1->request && !h1->responding);
        h1->closing = h1->responding = true;
        hfd_connection_refuse(connection, h1->request, code);
}

/* The head is complete and a body follows. waiting: no byte of the body has arrived with the head,
 * so the peer may be waiting for "100 Continue"; curl waits for it for one second. */
static void on_head(struct hfd_connection *connection, struct h1 *h1, bool waiting) {
        const char *expect;

        h1->request->head_done = true;
        if (!hfd_connection_decide(connection, h1->request)) {
                /* The response does not wait for the body. A next request could begin only after
                 * the body, so the connection ends with this response. */
                h1->closing = h1->responding = true;
                return;
        }
        expect = hfd_http_request_header(h1->request, "expect");
        if (!expect || hfd_h1_parser_http10(h1->parser))
                return;
        if (strcasecmp(expect, "100-continue") != 0)
                refuse_request(connection, h1, 417);
        else if (waiting)
                hf__strbuf_puts(&h1->head, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* READ -> RESPOND: the request is complete. */
static void on_request(struct hfd_connection *connection, struct h1 *h1) {
        assert(!h1->responding);
        h1->responding = true;
        h1->closing |= !hfd_h1_parser_keep_alive(h1->parser) || connection->worker->draining;
        if (h1->request->head_done || hfd_connection_decide(connection, h1->request))
                hfd_connection_dispatch(connection, h1->request);
}

/* Stores input for the next request. The connection stops reading at PENDING_MAX. If the account is
 * full, the input is dropped and the connection ends after the response. 0 or -ENOMEM. */
static int keep_pending(struct hfd_connection *connection, const char *data, size_t n) {
        struct h1 *h1 = h1_of(connection);
        char *grown;

        if (n == 0 || h1->closing)
                return 0;
        if (account_pending(connection, h1->n_pending, h1->n_pending + n) != 0) {
                (void)account_pending(connection, h1->n_pending + n, h1->n_pending);
                h1->closing = true;
                return 0;
        }
        grown = realloc(h1->pending, h1->n_pending + n);
        if (!grown) {
                (void)account_pending(connection, h1->n_pending + n, h1->n_pending);
                return -ENOMEM;
        }
        memcpy(grown + h1->n_pending, data, n);
        h1->pending = grown;
        h1->n_pending += n;
        return 0;
}

static int h1_input(struct hfd_connection *connection, const char *data, size_t n) {
        struct h1 *h1 = h1_of(connection);

        while (n > 0 && !h1->responding && !h1->closed) {
                size_t used;
                enum hfd_h1_event event;
                int code = 400;

                if (!h1->request) {
                        if (hfd_connection_new_request(connection, &h1->request) != 0)
                                return -ENOMEM;
                        h1->since = connection->worker->now;
                }
                event = hfd_h1_parser_feed(h1->parser, h1->request, data, n, &used, &code);
                data += used;
                n -= used;
                if (hfd_connection_account(connection, h1->request,
                                           hfd_h1_parser_memory(h1->parser)) != 0) {
                        event = HFD_H1_BAD;
                        code = 503;
                }
                switch (event) {
                case HFD_H1_MORE: break;
                case HFD_H1_HEAD: on_head(connection, h1, n == 0); break;
                case HFD_H1_DONE: on_request(connection, h1); break;
                case HFD_H1_BAD: refuse_request(connection, h1, code); break;
                }
        }
        return keep_pending(connection, data, n);
}

static bool h1_wants_input(const struct hfd_connection *connection) {
        const struct h1 *h1 = h1_of(connection);

        return !h1->responding || h1->n_pending < PENDING_MAX;
}

/* ---- output ---- */

/* A response that was posted after hfd_http_stop_accepting says that its connection closes. The
 * worker may get here before it notices the stop, so this reads the server's flag. */
static void make_head(struct hfd_connection *connection, struct h1 *h1,
                      const struct hfd_http_response_state *state) {
        struct hfd_http_request *request = h1->request;
        const struct hfd_http_response *response = &request->response;
        struct hfd_checked_header header;
        size_t cursor = 0;
        bool http10 = hfd_h1_parser_http10(h1->parser);

        assert(h1->responding && state->started && !h1->head_made);
        h1->head_made = true;
        h1->closing |=
                response->close_after ||
                atomic_load_explicit(&connection->worker->http->draining, memory_order_acquire);
        hf__strbuf_printf(&h1->head, "HTTP/1.1 %d %s\r\n", response->code,
                          hfd_reason_phrase(response->code));
        while (hfd_http_response_next_header(request, &cursor, &header))
                hf__strbuf_printf(&h1->head, "%s: %s\r\n", header.name, header.value);
        h1->chunked = state->streaming && !http10;
        if (state->streaming && http10)
                h1->closing = true;
        /* HEAD gets the length that GET would get; 204 and 304 get none (RFC 9110 8.6). */
        if (response->code != 204 && response->code != 304) {
                if (!state->streaming)
                        hf__strbuf_printf(&h1->head, "content-length: %zu\r\n",
                                          response->content_length);
                else if (h1->chunked)
                        hf__strbuf_puts(&h1->head, "transfer-encoding: chunked\r\n");
        }
        if (h1->closing)
                hf__strbuf_puts(&h1->head, "connection: close\r\n");
        else if (http10)
                hf__strbuf_puts(&h1->head, "connection: keep-alive\r\n");
        hf__strbuf_puts(&h1->head, "\r\n");
}

/* Writes as much of the head to out as fits. Returns the number of bytes. */
static size_t fill_head(struct h1 *h1, char *out) {
        size_t n = h1->head.n - h1->head_at;

        if (n > HFD_OUT_SPACE)
                n = HFD_OUT_SPACE;
        memcpy(out, h1->head.data + h1->head_at, n);
        h1->head_at += n;
        if (h1->head_at == h1->head.n) {
                hf__strbuf_done(&h1->head);
                h1->head_at = 0;
        }
        return n;
}

/* RESPOND -> READ: the response is complete. Parses the input of the next request that has already
 * arrived. */
static void begin_next_request(struct hfd_connection *connection, struct h1 *h1) {
        char *pending = h1->pending;
        size_t n = h1->n_pending;

        assert(h1->responding && h1->request);
        h1->request->response.complete = true;
        hfd_connection_detach(connection, h1->request);
        h1->request = NULL;
        h1->responding = h1->head_made = h1->chunked = false;
        h1->since = connection->worker->now;
        h1->pending = NULL;
        h1->n_pending = 0;
        if (h1->closing || connection->worker->draining) {
                h1->closed = true;
        } else {
                if (n > 0 && h1_input(connection, pending, n) != 0)
                        connection->ending = true;
                /* OpenSSL may have more input in its buffer, which epoll does not report. */
                hfd_connection_mark_dirty(connection);
        }
        free(pending);
        (void)account_pending(connection, n, 0);
}

/* Writes as much of the body to out as fits. *ret_done becomes true with the last byte. out has
 * room for space + HFD_OUT_SLACK bytes. */
static size_t fill_body(struct h1 *h1, const struct hfd_http_response_state *state, hf_nsec now,
                        char *out, size_t space, bool *ret_done) {
        struct hfd_http_request *request = h1->request;
        size_t n = 0;

        if (!hfd_http_response_has_body(request)) {
                *ret_done = true;
                return 0;
        }
        if (!h1->chunked) {
                n = hfd_http_response_read(request, out, state->n < space ? state->n : space, now);
                *ret_done = state->ended && n == state->n;
                return n;
        }
        if (state->n > 0 && space > CHUNK_OVERHEAD) {
                size_t part = state->n < space - CHUNK_OVERHEAD ? state->n : space - CHUNK_OVERHEAD;

                n = (size_t)sprintf(out, "%zx\r\n", part);
                n += hfd_http_response_read(request, out + n, part, now);
                memcpy(out + n, "\r\n", 2);
                n += 2;
                if (part < state->n)
                        return n;
        }
        if (state->ended && (state->n == 0 || n > 0)) {
                memcpy(out + n, "0\r\n\r\n", 5); /* fits into HFD_OUT_SLACK */
                n += 5;
                *ret_done = true;
        }
        return n;
}

static size_t h1_fill(struct hfd_connection *connection, char *out) {
        struct h1 *h1 = h1_of(connection);
        struct hfd_http_response_state state = {0};
        size_t n = 0;
        bool done = false;

        if (h1->responding && h1->request)
                hfd_http_response_get_state(h1->request, &state);
        if (state.started && !h1->head_made)
                make_head(connection, h1, &state);
        if (state.cut || h1->head.error) {
                connection->dead = true;
                return 0;
        }
        if (h1->head.n > 0)
                n = fill_head(h1, out);
        if (!state.started || h1->head.n > 0)
                return n;
        n += fill_body(h1, &state, connection->worker->now, out + n, HFD_OUT_SPACE - n, &done);
        if (done)
                begin_next_request(connection, h1);
        return n;
}

static void h1_response_changed(struct hfd_connection *connection,
                                struct hfd_http_request *request) {
        struct hfd_http_response_state state;

        hfd_http_response_get_state(request, &state);
        connection->dead |= state.cut; /* a truncated body must not look complete */
}

static bool h1_finished(const struct hfd_connection *connection) {
        return h1_of(connection)->closed;
}

/* If the head is already written, "connection: close" cannot be added any more. The connection ends
 * after that response all the same, because begin_next_request checks `draining`. */
static void h1_drain(struct hfd_connection *connection) {
        struct h1 *h1 = h1_of(connection);

        if (!h1->request)
                h1->closed = true;
        else if (!h1->head_made)
                h1->closing = true;
}

/* There is no time limit in RESPOND, because a watch lasts for minutes; hfd_connection_tick limits
 * how long output may stay unsent. */
static void h1_tick(struct hfd_connection *connection, hf_nsec now) {
        struct h1 *h1 = h1_of(connection);
        bool in_head = hfd_h1_parser_in_head(h1->parser);

        if (h1->responding || h1->closed)
                return;
        if (!h1->request) {
                h1->closed |= now - h1->since > HFD_IDLE_TIME || connection->worker->draining;
                if (h1->closed)
                        hfd_connection_mark_dirty(connection);
        } else if (now - h1->since > (in_head ? HFD_HEAD_TIME : HFD_BODY_TIME)) {
                refuse_request(connection, h1, 408);
        }
}

const struct hfd_protocol hfd_h1 = {
        .open = h1_open,
        .input = h1_input,
        .wants_input = h1_wants_input,
        .fill = h1_fill,
        .response_changed = h1_response_changed,
        .finished = h1_finished,
        .drain = h1_drain,
        .tick = h1_tick,
        .close = h1_close,
};
