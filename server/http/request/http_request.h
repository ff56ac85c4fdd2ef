/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request and its response, as handlers see them. http.h, the server, includes this header for
 * its users. http_request_private.h has what the connections and protocols need.
 *
 * The handler gets a complete request: head and body have arrived and are within the limits. (With
 * HFD_HTTP_IGNORE_BODY it gets the head only.) It runs on the worker thread of the request's
 * connection and must not block. The handler's code must give each request exactly one response,
 * now or later and from any thread: either hfd_http_request_reply, or hfd_http_request_stream
 * followed by pushes and an end or a cut.
 *
 * A request is reference counted. The handler is given one reference; the code that responds drops
 * it afterwards. If the peer leaves first, on_gone is called and the response is dropped silently.
 *
 * In the comments, "Thread: any" means that every thread may call the function at any time.
 * "Thread: worker" means that it may be called only within the callbacks that run on the request's
 * worker thread: handler, on_head, on_gone, on_finished, on_unsent, on_drained, the fn of
 * hfd_http_request_continue (in which a filter calls a handler) and that of hfd_http_request_call.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>

#include "base/buf.h"
#include "server/http/request/response_header.h"
#include "server/http/request/worker_message.h"

struct hfd_http_request;

/* Takes over one reference to the request. Thread: worker. Must not block. */
typedef void (*hfd_http_handler)(void *ctx, struct hfd_http_request *request);
/* The server's decision about a request after its head, see hfd_http_on_head. */
enum hfd_http_verdict {
        HFD_HTTP_READ_BODY,   /* read the body, then call the handler; makes the sender known */
        HFD_HTTP_IGNORE_BODY, /* call the handler now, and never read the body. The sender is not
                               * known. */
        HFD_HTTP_REFUSED,     /* on_head has responded: the handler is not called */
        HFD_HTTP_REFUSED_STRANGER /* the same, and the sender is not known */
};
/*
 * Called when the head of a request has arrived, before its body is read. It may read the head, set
 * the context, headers of the response, on_finished and on_unsent, and respond. It must not keep
 * the request without a reference of its own. Thread: worker. Must not block.
 *
 * HFD_HTTP_READ_BODY also makes the sender of the connection known, even if nobody knows its name:
 * a body may be long, so its reading has the limits of known senders. A client certificate that
 * verifies makes the sender known, too. Until then the connection is a stranger's: it has small
 * limits of its own, and it is closed for others when places run out, and soon after the server
 * begins to drain. A request whose sender is not known makes the connection a stranger's again,
 * unless a request with HFD_HTTP_READ_BODY is under way or the client certificate verifies.
 */
typedef enum hfd_http_verdict (*hfd_http_on_head)(void *ctx, struct hfd_http_request *request);

/* A header of a response. */
struct hfd_header {
        const char *name, *value; /* name in lower case */
};

/* ---- the request; what the accessors return is borrowed until the last unref. Only the headers
 * and the body are freed earlier: those of a refused request, when on_head has returned or when the
 * server itself refuses it (413, for example), and those of a request whose response is a stream
 * (see hfd_http_request_stream). From then on they count as absent. ---- */

/* Thread: any. ref returns request, unref returns NULL; both accept NULL. */
struct hfd_http_request *hfd_http_request_ref(struct hfd_http_request *request);
struct hfd_http_request *hfd_http_request_unref(struct hfd_http_request *request);

/* The accessors below may be called from any thread that holds a reference, once the handler has
 * been called. on_head may use all but body and received_at. */

/* As sent: "GET", for example. */
const char *hfd_http_request_method(struct hfd_http_request *request);
/* As sent, without the query; of an absolute URL, also without the scheme and the authority. Begins
 * with '/'. */
const char *hfd_http_request_path(struct hfd_http_request *request);
/* Without the '?'; "" = none. */
const char *hfd_http_request_query(struct hfd_http_request *request);
/* Separates the values of a repeated header whose name begins with "impersonate-". No value
 * contains this text, because no value contains a line feed. */
#define HFD_HTTP_VALUE_SEPARATOR "\n\n"
/* name in lower case; NULL = absent. Repeated headers are joined by ", " (cookies by "; ", and
 * those of an impersonation by the separator above). */
const char *hfd_http_request_header(struct hfd_http_request *request, const char *name);
/* The value of the i-th header (from 0) whose name begins with prefix, and in *ret_name its name.
 * prefix is in lower case. NULL: there are not so many; then *ret_name is not set. */
const char *hfd_http_request_header_like(struct hfd_http_request *request, const char *prefix,
                                         size_t i, const char **ret_name);
/* NUL-terminated, "" when there is none; *ret_n is its length without the NUL. */
const char *hfd_http_request_body(struct hfd_http_request *request, size_t *ret_n);
/* "HTTP/2.0", "HTTP/1.1" or "HTTP/1.0". */
const char *hfd_http_request_protocol(struct hfd_http_request *request);
/* "127.0.0.1:40112", "[::1]:40112", or "local" for the peer of a unix socket. */
const char *hfd_http_request_remote(struct hfd_http_request *request);
/* The boot time at which the handler was called; 0 = it was not called. */
hf_nsec hfd_http_request_received_at(struct hfd_http_request *request);

enum hfd_peer_cert {
        HFD_PEER_NONE,     /* the client sent no certificate */
        HFD_PEER_VERIFIED, /* the last verification, in the handshake or for a later request, has
                            * found it valid under a client CA (see expires) */
        HFD_PEER_BAD       /* not valid, for example expired, or of another CA: it names no user */
};
/* The client certificate. All texts are borrowed from the request, and "" if there are none. */
struct hfd_client_cert {
        enum hfd_peer_cert kind;
        const char *common_name;
        const char *const *organisations; /* the first 64 */
        size_t n_organisations;
        /* The earliest expiry in its chain (its own if no chain was verified), in seconds since
         * 1970: the connection may live for longer. */
        int64_t expires;
        const char *uid;         /* of the user, in the attribute that Kubernetes reads */
        const char *fingerprint; /* the SHA-256 of the certificate, in hexadecimal */
};
struct hfd_client_cert hfd_http_request_peer(struct hfd_http_request *request);

/* A header that is added to the response to this request, no matter which code responds. name (in
 * lower case) and value are borrowed until the last unref. Set it once at most, in on_head before
 * responding. */
void hfd_http_request_set_response_header(struct hfd_http_request *request, const char *name,
                                          const char *value);
/* The same for headers that many requests share: the array is borrowed until the last unref, too.
 */
void hfd_http_request_share_response_headers(struct hfd_http_request *request,
                                             const struct hfd_checked_header *headers, size_t n);
/*
 * A pointer that belongs to the connection and is shared by its requests, for the user of on_head;
 * NULL until it is set. free_fn is called when it is replaced, or when the connection ends. Get and
 * set it in on_head only. Thread: worker.
 */
void *hfd_http_request_connection_context(struct hfd_http_request *request);
void hfd_http_request_set_connection_context(struct hfd_http_request *request, void *context,
                                             void (*free_fn)(void *context));
/*
 * Memory of n bytes, not cleared, which is freed with the request. NULL: out of memory. Call it
 * once at most, in the handler. Thread: worker.
 */
void *hfd_http_request_allocate(struct hfd_http_request *request, size_t n);
/* Frees the memory of hfd_http_request_allocate now, for a request that is served for a long time.
 * Thread: any, but the code that responds must not use the memory any more. */
void hfd_http_request_free_allocated(struct hfd_http_request *request);
/* Two pointers for the users of this header: the filters own the context, the handler that the
 * router has chosen owns the handler context. free_fn is called on the thread that drops the last
 * reference, first for the handler context, which may borrow from the context. Set each at most
 * once, before responding. Thread: worker, but any that holds a reference may read the context. */
void hfd_http_request_set_context(struct hfd_http_request *request, void *context,
                                  void (*free_fn)(void *context));
void *hfd_http_request_context(struct hfd_http_request *request);
void hfd_http_request_set_handler_context(struct hfd_http_request *request, void *context,
                                          void (*free_fn)(void *context));
/* fn is called once on the worker if the request ends before its response is complete: the peer has
 * left, the response was cut or timed out, or the server ends. It is not called otherwise. Set it
 * within the handler. Thread: worker. */
void hfd_http_request_on_gone(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx);
/* fn is called once on the worker when the request ends: the last byte of the response has been
 * passed to the connection, or one of the reasons for on_gone applies. code is the status, or 0 if
 * there was no response. n_bytes counts body bytes. Thread: worker. */
void hfd_http_request_on_finished(struct hfd_http_request *request,
                                  void (*fn)(void *ctx, int code, size_t n_bytes), void *ctx);
/*
 * fn is called on the worker if the response is not complete at the end of the worker's iteration
 * in which the worker has learned of the response. n_bytes: the length of the body; 0 for a stream.
 * waits true: the connection's turn is still to come, so the peer could not read the whole response
 * yet; if the response is not complete after that turn, fn is called once more, with waits false.
 * waits false: the connection had its turn, and the peer has not read the whole response. Set fn
 * before responding. Thread: worker.
 */
void hfd_http_request_on_unsent(struct hfd_http_request *request,
                                void (*fn)(void *ctx, size_t n_bytes, bool waits), void *ctx);
/*
 * For a stream whose pieces are made while the peer reads: fn is called on the worker whenever the
 * worker has read bytes up to the end of a piece, and fewer than `low` bytes remain in the queue.
 * (After a read that reaches no end of a piece, fn is not called; a later read reaches one.)
 * Set it once, before the stream begins. fn must not block. Thread: worker.
 */
void hfd_http_request_on_drained(struct hfd_http_request *request, size_t low,
                                 void (*fn)(void *ctx), void *ctx);

/*
 * For a request whose handler has to wait for something before it does its work: fn is called soon
 * on the worker, not within this call, unless the request has ended by then. The request has no
 * response yet; one may begin meanwhile. At most one call may be outstanding. The caller owns a
 * reference. Thread: any.
 */
void hfd_http_request_continue(struct hfd_http_request *request, void (*fn)(void *ctx), void *ctx);

/* ---- the worker ---- */

/* A call on a worker. The caller keeps it until fn is called, and sets fn. */
struct hfd_http_call {
        struct hfd_worker_message message;
        void (*fn)(struct hfd_http_call *call);
};
/*
 * Makes the worker of the request call fn soon. After the end of the worker's thread, the thread
 * that frees the server calls it. False: fn is not called, because the request has left its
 * connection, or because this is the worker's thread. The caller owns a reference until fn is
 * called. Thread: any.
 */
bool hfd_http_request_call(struct hfd_http_request *request, struct hfd_http_call *call);
/* An address that requests of the same worker have in common. Thread: worker. */
const void *hfd_http_request_worker(struct hfd_http_request *request);

/* ---- the response ---- */

/*
 * Responds with a body of known length. code is 200 to 599. headers are copied, body is referenced
 * and may be NULL. Content-Length is added, except for 204 and 304; a response to HEAD sends no
 * body. The header "connection: close" closes the connection after this response. A header that
 * would break the framing is left out. A second response to one request is dropped. If memory runs
 * out, the response is cut. Thread: any.
 */
void hfd_http_request_reply(struct hfd_http_request *request, int code, const char *content_type,
                            const struct hfd_header *headers, size_t n_headers,
                            struct hf__buf *body);
/*
 * Begins a response of unknown length; its head does not wait for a piece. From here on nobody may
 * read the headers and the body of the request: a stream may take hours, and the worker frees them.
 * Otherwise like hfd_http_request_reply. Thread: any.
 */
void hfd_http_request_stream(struct hfd_http_request *request, int code, const char *content_type,
                             const struct hfd_header *headers, size_t n_headers);
/*
 * Queues one more piece of a stream. It is referenced, not copied; an empty one is ignored. 0;
 * -ENOBUFS: the peer reads too slowly, and the stream has been cut; -ENOMEM: it has been cut for
 * lack of memory; -EPIPE: the request has left its connection, or the stream was cut before;
 * -EINVAL: the response is not a stream, or has ended. Pieces from one thread keep their order.
 * Thread: any.
 */
int hfd_http_request_push(struct hfd_http_request *request, struct hf__buf *piece);
/* The bytes of the pieces in the queue. The first piece counts in full, even if a part of it was
 * read. For code that makes pieces while the peer reads. Thread: any. */
size_t hfd_http_request_unsent(struct hfd_http_request *request);
/*
 * Cuts the response if bytes of the body wait in the queue, the worker learned of the response
 * before the boot time `since`, and it has read no bytes from `since` on. True: this call has cut
 * the response. The caller owns a reference. Thread: any.
 */
bool hfd_http_request_cut_stalled(struct hfd_http_request *request, hf_nsec since);
/* Ends the stream at once, so that the peer sees that it is incomplete. Does nothing before
 * hfd_http_request_stream and after hfd_http_request_end. Thread: any. */
void hfd_http_request_cut(struct hfd_http_request *request);
/* Ends the stream, if there is one, cleanly after the pieces that were pushed. Thread: any. */
void hfd_http_request_end(struct hfd_http_request *request);
