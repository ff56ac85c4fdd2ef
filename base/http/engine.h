/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP client engine: one thread, one epoll loop, libcurl's multi interface; the only place
 * that includes curl.
 *
 * A request is submitted from any thread and answered by callbacks on the engine's thread: on_head
 * once the header block is complete, on_data for each piece as it comes, on_done exactly once,
 * last. Callbacks must not block. A request ends by its answer, its deadline, its cancellation or
 * the engine's stop, and its outcome says which.
 *
 * Lanes: requests of different lanes never share a connection, so that lease traffic does not queue
 * behind a list. Connections are kept alive and reused within a lane; HTTP/2 requests to one origin
 * share one connection.
 *
 * Outcomes: 0 = a complete HTTP answer (whatever its status code); HF_E_UNAVAILABLE = nothing was
 * sent or the connection was refused; HF_E_TIMEOUT = deadline, or the connection broke after
 * sending: unknown whether it was done; HF_E_CANCELED; HF_E_TOO_LARGE = more than max_body came
 * without on_data; HF_E_UNAUTHORIZED = TLS refused the peer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#define HF__HTTP_N_LANES 4

struct hf__http_engine;
struct hf__http_tls; /* CA, certificate and key, prepared once, shared by requests */

enum hf__http_version {
        HF__HTTP_ANY,
        HF__HTTP_1_1,
        HF__HTTP_2,
        HF__HTTP_2_PRIOR_KNOWLEDGE
}; /* the last is gRPC over plain TCP */

struct hf__http_result {
        uint64_t id;      /* the request's */
        int outcome;      /* see above */
        int code;         /* HTTP status, 0 = none came */
        const void *body; /* the whole body when on_data is NULL; borrowed, gone after on_done
                             returns */
        size_t n_body;
        int grpc_status;          /* trailers' or headers' grpc-status, -1 = none */
        const char *grpc_message; /* borrowed; "" = none */
        uint32_t retry_after_s;   /* 0 = none */
        const char *fence_echo;   /* value of the header Holdfast-Fence in the answer; NULL = none;
                                     borrowed */
        const char *error_text;   /* libcurl's words for the failure; "" = none; borrowed */
};

struct hf__http_request {
        const char *method; /* "GET", "POST"; all strings are copied before submit returns */
        const char *url; /* absolute; https, http, or with unix_socket set http://localhost/... */
        bool url_recurs; /* one of a few: what libcurl makes of it is kept for as long as the engine
                            lives */
        const char *unix_socket;    /* path; NULL = TCP */
        const char *const *headers; /* "Name: value", n_headers of them */
        size_t n_headers;
        const void *body; /* copied */
        size_t n_body;
        enum hf__http_version version;
        bool idempotent; /* may be sent again when a kept connection turns out dead; GET and HEAD
                            always may */
        struct hf__http_tls *tls; /* borrowed until on_done (it is reference counted inside); NULL =
                                     system CAs */
        unsigned lane;            /* 0 .. HF__HTTP_N_LANES - 1 */
        hf_nsec deadline;   /* boot time, for the whole exchange; HF_NSEC_NEVER only for streams */
        hf_nsec not_before; /* boot time; held until then, while deadline and cancellation hold
                               already. 0 = at once */
        hf_nsec head_timeout; /* relative, until the header block is there; 0 = only the deadline
                                 counts */
        size_t max_body;      /* without on_data; 0 = 8 MiB */
        int (*on_head)(void *ctx, int code); /* optional; non-zero ends the request */
        int (*on_data)(void *ctx, const void *data,
                       size_t n); /* optional; non-zero ends the request */
        void (*on_done)(void *ctx, const struct hf__http_result *result); /* required */
        void *ctx;
};

/* curl_global_init, for programs of ours that are the host; once, before the first thread. 0 or
 * -ENOMEM. Not in libholdfast. */
int hf__http_global_init(void);

/* host is borrowed. Starts the thread. 0 or -errno. */
int hf__http_engine_new(const struct hf_host *host, const char *thread_name,
                        struct hf__http_engine **ret_engine);
/* From now on nothing starts (HF_E_CLOSED), and what is under way ends soon with HF_E_CANCELED.
 * Thread: any; idempotent. */
void hf__http_engine_stop(struct hf__http_engine *engine);
/* Ends every request with HF_E_CANCELED (their on_done have returned), joins the thread. Accepts
 * NULL. Not from a callback. */
struct hf__http_engine *hf__http_engine_free(struct hf__http_engine *engine);

/* Thread: any. ret_id (may be NULL) is never 0. -ENOMEM, -EINVAL, HF_E_CLOSED: then no callback
 * comes. */
int hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                    uint64_t *ret_id);
/*
 * Submits another try of request `id` under the same id, so that who cancels that id cancels this
 * one. From the on_done of request `id` only. As hf__http_submit, and HF_E_CANCELED when its
 * cancellation has been asked for meanwhile.
 */
int hf__http_submit_again(struct hf__http_engine *engine, const struct hf__http_request *request,
                          uint64_t id);
/* The request ends soon with HF_E_CANCELED, unless it has ended already. Thread: any. Never blocks.
 */
void hf__http_cancel(struct hf__http_engine *engine, uint64_t id);
/* Calls fn on the engine's thread, soon (or at boot time `when` if it is later). -ENOMEM,
 * HF_E_CLOSED: never called. At stop the timers not yet due are called at once. */
int hf__http_schedule(struct hf__http_engine *engine, hf_nsec when, void (*fn)(void *ctx),
                      void *ctx);
/* A counter that rises each time the loop turns (at least once a second): the watchdog's witness.
 */
uint64_t hf__http_engine_iterations(struct hf__http_engine *engine);

/* PEM text, copied; each may be NULL. insecure skips verification (never set by Holdfast's own
 * defaults). */
struct hf__http_tls_config {
        const char *ca_pem, *cert_pem, *key_pem;
        const char *server_name; /* NULL = the URL's host */
        bool insecure;
};
int hf__http_tls_new(const struct hf__http_tls_config *config, struct hf__http_tls **ret_tls);
struct hf__http_tls *hf__http_tls_unref(struct hf__http_tls *tls);
