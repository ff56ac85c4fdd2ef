/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP client engine: one thread with one epoll loop over libcurl's multi interface. No code of
 * the library or the server outside base/http includes curl's header.
 *
 * Any thread may submit a request. The engine's thread calls its callbacks: on_head when the header
 * block is complete, on_data for each piece of the body, and on_done exactly once, last. Callbacks
 * must not block. A request ends when its response is complete, when its transfer fails, when its
 * deadline, connect_timeout or head_timeout passes, when a callback or hf__http_cancel ends it, or
 * when the engine stops. Only a GET or a HEAD is sent again when a reused connection turns out to
 * be dead. No part of a request is passed to a connection after its deadline, even if the machine
 * was suspended meanwhile.
 *
 * Lanes: requests of different lanes never share a connection, so that Lease traffic does not queue
 * behind a large list. Within a lane connections are kept for further requests, and HTTP/2 requests
 * to one origin can share them.
 *
 * Outcomes:
 * - 0: a complete HTTP response, whatever its status code.
 * - HF_E_UNAVAILABLE: there was no connection. No byte of the request was sent.
 * - HF_E_TIMEOUT: the deadline or head_timeout passed, or the transfer failed after the request may
 *   have been sent.
 * - HF_E_CANCELED: the request was canceled, a callback ended it, or the engine was stopped.
 * - HF_E_TOO_LARGE: there is no on_data, and the body is longer than max_body.
 * - HF_E_UNAUTHORIZED: one side refused the other's TLS certificate, or libcurl cannot use the
 *   client's certificate, key or CAs.
 * - HF_E_INVALID: the URL is malformed, or libcurl does not support its protocol or an option.
 * - -errno: a local failure. Nothing was sent.
 *
 * After HF_E_TIMEOUT, HF_E_CANCELED and HF_E_TOO_LARGE the server may have processed the request,
 * unless not_sent is set.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#define HF__HTTP_N_LANES 4

struct hf__http_engine;
struct hf__http_tls; /* http_tls.h */

/* ANY: HTTP/2 if the server offers it over TLS, else HTTP/1.1. */
enum hf__http_version { HF__HTTP_ANY, HF__HTTP_1_1 };

/* How a request ended. All pointers are valid until on_done returns. */
struct hf__http_result {
        uint64_t id;            /* from hf__http_submit; a retry has the same id */
        int outcome;            /* see above */
        bool not_sent;          /* nothing of the request was passed to a connection, so that the
                                   server certainly has not processed it, whatever the outcome */
        int code;               /* HTTP status; 0 = none was received */
        const void *body;       /* the whole body; empty if on_data is set or outcome is not 0 */
        size_t n_body;          /* bytes in body */
        uint32_t retry_after_s; /* 0 = none, or unusable (a date, a huge number) */
        const char *fence_echo; /* the Holdfast-Fence header of the response; NULL = none */
        const char *error_text; /* why the request failed, from libcurl or Holdfast; "" = unknown */
        /* The outcome is HF_E_UNAUTHORIZED, because no CA that the request trusts has issued the
         * server's certificate. */
        bool other_ca;
        bool no_such_host; /* the look-up of the host's name failed, or found no address */
        int os_error;     /* errno of the connection that failed; 0 = unknown, or the outcome is not
                             HF_E_UNAVAILABLE */
        int verify_error; /* why the server's certificate was refused: OpenSSL's X509_V_ERR_*; 0 =
                             it was not, or only its name does not match */
        /* Memory ran out while the body was stored. The outcome is HF_E_TIMEOUT all the same,
         * because the request was sent. */
        bool no_memory;
};

/* All strings are copied before submit returns, and so is the body unless keeps_body is set. */
struct hf__http_request {
        const char *method;         /* "GET", "POST" */
        const char *url;            /* absolute, http or https */
        const char *const *headers; /* "Name: value" */
        size_t n_headers;
        const void *body;
        size_t n_body;
        bool keeps_body; /* the caller keeps the body until on_done has been called */
        enum hf__http_version version;
        /* Removes the limit of connections to an origin for this and all later requests of the same
         * pool (lane.h). By default a pool opens only a few connections to an https origin until
         * one of its requests cannot share a connection, because it uses HTTP/1.1. If these few
         * connections hang, further requests wait in vain. */
        bool no_connection_limit;
        struct hf__http_tls *tls; /* the engine takes a reference; NULL = the system's CAs */
        unsigned lane;            /* 0 .. HF__HTTP_N_LANES - 1 */
        hf_nsec deadline; /* boot time, of the whole request; HF_NSEC_NEVER for a stream only */
        /* Boot time before which the request is not sent. 0 = send at once. The request can reach
         * its deadline or be canceled while it waits for that time. */
        hf_nsec not_before;
        /* How long the request may wait for a connection, from its start, or from not_before if
         * it is delayed until then. When this time has passed, the outcome is HF_E_UNAVAILABLE. 0 =
         * no limit, but opening one connection takes 30 s at most. */
        hf_nsec connect_timeout;
        hf_nsec head_timeout; /* limit from submission to the complete header block; 0 = none */
        size_t max_body;      /* limit of the body if on_data is NULL; 0 = 8 MiB */
        /* Optional. A result other than 0 ends the request with HF_E_CANCELED. */
        int (*on_head)(void *ctx, int code);
        int (*on_data)(void *ctx, const void *data, size_t n);
        void (*on_done)(void *ctx, const struct hf__http_result *result); /* required */
        void *ctx;
};

/* Creates an engine and starts its thread. host is borrowed. 0 or -errno. */
int hf__http_engine_new(const struct hf_host *host, const char *thread_name,
                        struct hf__http_engine **ret_engine);
/* Stops the engine: submitting fails with HF_E_CLOSED, and requests that have not ended do so soon,
 * most with HF_E_CANCELED. Idempotent, never blocks. Thread: any. */
void hf__http_engine_stop(struct hf__http_engine *engine);
/* Stops the engine and joins its thread. When it returns, every on_done and every scheduled
 * function has returned. Accepts NULL, returns NULL. Must not be called from a callback. */
struct hf__http_engine *hf__http_engine_free(struct hf__http_engine *engine);

/*
 * Submits a request. 0, -ENOMEM, -EINVAL or HF_E_CLOSED; after a failure no callback is called.
 * *ret_id (ret_id may be NULL) is never 0 and is set before the first callback. Thread: any.
 */
int hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                    uint64_t *ret_id);
/*
 * Submits a retry under the id of a request that has just ended, so that hf__http_cancel with this
 * id cancels the retry. May be called only from the on_done of that request. Fails like
 * hf__http_submit, and with HF_E_CANCELED if hf__http_cancel was called for this id and has not
 * taken effect yet.
 */
int hf__http_submit_again(struct hf__http_engine *engine, const struct hf__http_request *request,
                          uint64_t id);
/* Causes the request to end soon: with HF_E_CANCELED, unless it ends for another reason first. Does
 * nothing if it has ended already. Never blocks, cannot fail. Thread: any. */
void hf__http_cancel(struct hf__http_engine *engine, uint64_t id);
/*
 * Calls fn once on the engine's thread: at boot time `when`, soon if that has passed, or when the
 * engine stops, even if fn is not due yet. 0; -ENOMEM or HF_E_CLOSED: fn is never called. Thread:
 * any.
 */
int hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                      void *ctx);
