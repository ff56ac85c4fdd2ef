/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP server: TLS listener, HTTP/2 and HTTP/1.1 connections on a few epoll workers, and the
 * request as handlers see it. The only place that sees nghttp2, llhttp and OpenSSL. The shape and
 * its traps: docs/http.md.
 *
 * A request reaches the handler complete (head and body within limits), on its connection's worker
 * thread. The handler must not block. It answers now or later, from any thread, exactly once:
 * hfd_http_request_reply, or hfd_http_request_stream followed by pushes and an end. A request is
 * reference counted; the handler is given one reference, which it (or whoever answers later) drops
 * after answering. When the peer goes away first, answers are dropped silently and on_gone is
 * called.
 *
 * A connection belongs to one worker for life. Limits: header bytes, body bytes, streams per
 * connection, connections, handshakes under way, unsent bytes, time to shake hands, to send a head,
 * time idle; what exceeds them is answered (431, 413, 408) or closed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "base/buf.h"

struct hfd_http;
struct hfd_http_request;

typedef void (*hfd_http_handler)(void *ctx, struct hfd_http_request *request);
/* The head of a request is there and its body is still to come. May look, set the context and
 * on_finished; does not answer. */
typedef void (*hfd_http_on_head)(void *ctx, struct hfd_http_request *request);

struct hfd_http_config {
        const char *bind_address; /* "127.0.0.1", "::1", "0.0.0.0" */
        uint16_t port;            /* 0 = any free one (hfd_http_port tells) */
        int listen_fd;            /* > 0: an inherited listening socket (systemd), taken over; then
                                     bind_address and port unused */
        const char *cert_pem, *key_pem; /* the server's chain and key; PEM text */
        const char *client_ca_pem; /* client certificates are asked for, and verified against it;
                                      NULL = not asked for */
        unsigned n_workers;        /* 0 = 2 */
        size_t max_body;           /* 0 = 3 MiB */
        size_t max_header_bytes;   /* 0 = 64 KiB */
        size_t max_connections;    /* 0 = 8000; a quarter of them, at most 512 per worker, may be
                                      handshakes under way */
        hfd_http_handler handler;  /* required */
        hfd_http_on_head on_head;  /* may be NULL; before handler, on the same thread; not for
                                      requests without a body */
        void *ctx;
};

/* Binds and listens, does not accept yet. HF_E_BUSY: the port is taken; HF_E_INVALID: certificate
 * or address; message names it. */
int hfd_http_new(const struct hf_host *host, const struct hfd_http_config *config,
                 struct hfd_http **ret_http, struct hf_status *reterr_status);
uint16_t hfd_http_port(struct hfd_http *http);
int hfd_http_start(struct hfd_http *http); /* starts the workers and accepting */
/* New connections are refused from now on; existing ones are told to go (GOAWAY; Connection: close)
 * and end once idle. Thread: any. */
void hfd_http_stop_accepting(struct hfd_http *http);
/*
 * After stop_accepting: blocks until every connection has ended, so that the last bytes of answers
 * are out, or boot time deadline: HF_E_TIMEOUT. Thread: any but a worker.
 */
int hfd_http_wait_closed(struct hfd_http *http, hf_nsec deadline);
/* Closes what is left, joins the workers. Requests still referenced elsewhere stay valid but gone.
 * Accepts NULL. */
struct hfd_http *hfd_http_free(struct hfd_http *http);
/* Replaces certificate, key and client CA for new connections (SIGHUP). Thread: any. */
int hfd_http_reload(struct hfd_http *http, const char *cert_pem, const char *key_pem,
                    const char *client_ca_pem, struct hf_status *reterr_status);
size_t hfd_http_n_connections(struct hfd_http *http);
/* Rises when all workers have turned since it last rose: the watchdog's witness. Thread: one,
 * always the same. */
uint64_t hfd_http_iterations(struct hfd_http *http);

/* ---- the request; all that is returned is borrowed until the last unref ---- */

struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request);
struct hfd_http_request *
hfd_http_request_unref(struct hfd_http_request *request); /* returns NULL */

const char *hfd_http_request_method(struct hfd_http_request *request); /* "GET" */
const char *hfd_http_request_path(
        struct hfd_http_request *request); /* as sent, without the query; begins with '/' */
const char *hfd_http_request_query(struct hfd_http_request *request); /* without '?'; "" = none */
const char *hfd_http_request_header(
        struct hfd_http_request *request,
        const char *name); /* name in lower case; NULL = absent; repeats are joined by ", " */
const char *hfd_http_request_body(struct hfd_http_request *request, size_t *ret_n);
const char *
hfd_http_request_protocol(struct hfd_http_request *request);           /* "HTTP/2.0", "HTTP/1.1" */
const char *hfd_http_request_remote(struct hfd_http_request *request); /* "127.0.0.1:40112" */
hf_nsec
hfd_http_request_received_at(struct hfd_http_request *request); /* boot time when it was complete */

/* The client certificate: common name and organisations. */
enum hfd_peer_cert {
        HFD_PEER_NONE,
        HFD_PEER_VERIFIED,
        HFD_PEER_BAD /* sent, but not by the client CA, or expired: answer 401 */
};
enum hfd_peer_cert hfd_http_request_peer(struct hfd_http_request *request,
                                         const char **ret_common_name,
                                         const char *const **ret_organisations,
                                         size_t *ret_n_organisations);

/* A place for the filters and the handler to hang their own things on; free_fn is called with the
 * last unref. Worker thread, before answering. */
void hfd_http_request_set_context(struct hfd_http_request *request, void *context,
                                  void (*free_fn)(void *context));
void *hfd_http_request_context(struct hfd_http_request *request);
/* A second such place: the context is the filters', this one the routed handler's. Called before
 * answering, at most once. */
void hfd_http_request_set_handler_context(struct hfd_http_request *request, void *context,
                                          void (*free_fn)(void *context));
/* Called once on the worker when the peer went away before the answer was complete (never after a
 * complete one). Set within the handler. */
void hfd_http_request_on_gone(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx);
/* Called once when the answer is completely handed to the socket, or the request is gone: code and
 * bytes for log and metrics. */
void hfd_http_request_on_finished(struct hfd_http_request *request,
                                  void (*fn)(void *ctx, int code, size_t n_bytes), void *ctx);

struct hfd_header {
        const char *name, *value; /* name in lower case */
};
/* Thread: any. A header connection: close tells the connection to go after this answer. headers are
 * copied; body is referenced (may be NULL). Content-Length is added. HEAD sends no body. */
void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body);
/* Begins an answer of unknown length; the header block is flushed at once. Thread: any. */
void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers);
/*
 * Queues one more piece, referenced, not copied. Returns 0; -ENOBUFS when the peer reads too slowly
 * (the ring is full): the stream is then cut; -EPIPE when the request is gone. Thread: any; pieces
 * from one thread keep their order.
 */
int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece);
void hfd_http_request_end(struct hfd_http_request *request); /* the stream ends cleanly after what
                                                      was pushed. Thread: any */
