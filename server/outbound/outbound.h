/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The server's own HTTPS requests: to webhooks, and to the issuer of OpenID Connect.
 *
 * Nothing here blocks, except hfd_outbound_join and hfd_outbound_free. hfd_outbound_send returns at
 * once; the callback runs on another thread, perhaps before that return. The client is libcurl,
 * which costs 4 MB and some 30 libraries. So it is not part of holdfastd but of a module
 * (module.h), which the first call loads, on a thread of its own. A server that makes no calls
 * never loads it.
 *
 * Connections are kept and shared by calls to one origin: HTTP/2 if the server offers it, else
 * HTTP/1.1. TLS 1.2 or later, as OpenSSL has it by default; http:// is refused. Redirects are not
 * followed, and proxies from the environment are ignored. A server that hangs holds only the calls
 * to itself.
 *
 * The object may be used by any thread; its lock guards the list of calls, and is held neither in
 * callbacks nor while a call is handed over.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

/* How many calls may be under way at a time; more are refused (HF_E_TOO_MANY). */
#define HFD_OUTBOUND_MAX_CALLS   4096
#define HFD_OUTBOUND_MAX_HEADERS 32 /* of a request */
/* The longest response by default, bytes. */
#define HFD_OUTBOUND_MAX_RESPONSE ((size_t)4 << 20)

struct hfd_outbound;

enum hfd_outbound_end {
        HFD_OUTBOUND_ANSWERED,    /* a whole response came, whatever its status code */
        HFD_OUTBOUND_UNREACHABLE, /* no connection; nothing was sent */
        /* one side refused the other's certificate, or the CA bundle cannot be used; the server has
         * not acted */
        HFD_OUTBOUND_UNTRUSTED,
        HFD_OUTBOUND_TIMED_OUT, /* the deadline passed; the server may have acted */
        HFD_OUTBOUND_BROKEN,    /* the connection broke after sending; the server may have acted */
        HFD_OUTBOUND_TOO_LARGE, /* the response is longer than max_response */
        /* by hfd_outbound_cancel or hfd_outbound_stop; the server may have acted */
        HFD_OUTBOUND_CANCELED,
        HFD_OUTBOUND_INVALID,   /* the URL cannot be used */
        HFD_OUTBOUND_NO_MEMORY, /* of this process */
        HFD_OUTBOUND_LOCAL,     /* the module cannot be used, or did not accept the call */
};

/* All pointers are valid until the callback returns. */
struct hfd_outbound_result {
        enum hfd_outbound_end end;
        /* HTTP status; 0 = there is no response */
        int code;
        const void *body; /* the response's; empty if there is none */
        size_t n_body;
        /*
         * Why there is no response, in the words of Kubernetes' client, for messages of the API:
         * `Post "https://a:1/x?timeout=10s": dial tcp a:1: connect: connection refused`,
         * `Post "...": context deadline exceeded`,
         * `Post "...": tls: failed to verify certificate: x509: ...`. If the call never got to the
         * client, the text is only the cause. "" after a response.
         */
        const char *text;
};

/* Runs on the client's thread, or on the loader's if the call never got to the client: the module
 * could not be loaded or did not accept the call, or the call was canceled before. Must not block.
 * It may make further calls and cancel some, but not free the object. */
typedef void hfd_outbound_done(void *ctx, const struct hfd_outbound_result *result);

/* Strings and body are copied before hfd_outbound_send returns. */
struct hfd_outbound_request {
        const char *method; /* "GET", "POST" */
        const char *url;    /* absolute, https */
        /* "host:port" or "[v6]:port": where to connect instead of the URL's host and port, which
         * stay the name in the certificate, in the header Host and in texts. NULL = the URL's. */
        const char *connect_to;
        const char *ca_pem;         /* the only CAs to trust, PEM; NULL or "" = the system's */
        const char *const *headers; /* "Name: value" */
        size_t n_headers;           /* at most HFD_OUTBOUND_MAX_HEADERS */
        const void *body;
        size_t n_body;
        hf_nsec deadline;    /* boot time; required, not HF_NSEC_NEVER */
        size_t max_response; /* bytes of the response's body; 0 = HFD_OUTBOUND_MAX_RESPONSE */
        /* The call is sent once more if its connection breaks before any response arrives: a kept
         * connection may turn out to be dead. Set it for calls that may be executed twice: a GET, a
         * conversion, an admission review. */
        bool may_repeat;
        hfd_outbound_done *done; /* required; called exactly once, unless sending failed */
        void *ctx;
};

struct hfd_outbound_config {
        /* Path of the module, borrowed until hfd_outbound_join has returned. NULL = the module
         * beside the program, else the installed one. */
        const char *module;
};

/* Starts nothing. host is borrowed; config may be NULL. 0 or -errno. */
int hfd_outbound_new(const struct hf_host *host, const struct hfd_outbound_config *config,
                     struct hfd_outbound **ret_outbound);
/* Ends all calls soon, with HFD_OUTBOUND_CANCELED unless they end otherwise first. Later sends fail
 * with HF_E_CLOSED. Idempotent, never blocks. Thread: any. Accepts NULL. */
void hfd_outbound_stop(struct hfd_outbound *outbound);
/* Stops it and joins its threads. After its return every callback has returned, and sending still
 * fails with HF_E_CLOSED. Accepts NULL. Not from a callback, and not while another thread is in
 * hfd_outbound_send or hfd_outbound_cancel for a call that it began before the stop. */
void hfd_outbound_join(struct hfd_outbound *outbound);
/* Joins it, unless that was done, and frees it. Accepts NULL, returns NULL. */
struct hfd_outbound *hfd_outbound_free(struct hfd_outbound *outbound);

/*
 * Begins a call. On success *ret_id (ret_id may be NULL) is set, and never 0; the callback may come
 * before that. 0; HF_E_CLOSED: it was stopped; HF_E_TOO_MANY: HFD_OUTBOUND_MAX_CALLS are under way;
 * HF_E_INVALID: the URL is not https, is malformed or names a user; -EINVAL: misuse; -ENOMEM or
 * another -errno. After a failure there is no callback. Never blocks. Thread: any.
 */
int hfd_outbound_send(struct hfd_outbound *outbound, const struct hfd_outbound_request *request,
                      uint64_t *ret_id);
/* hfd_outbound_send with the method POST, and the headers Content-Type and Accept for JSON added.
 * -EINVAL also if there are more than 16 others. */
int hfd_outbound_post_json(struct hfd_outbound *outbound,
                           const struct hfd_outbound_request *request, uint64_t *ret_id);
/* Ends the call soon: with HFD_OUTBOUND_CANCELED, unless it ends otherwise first. Does nothing if
 * it has ended. Never blocks, cannot fail. Thread: any. */
void hfd_outbound_cancel(struct hfd_outbound *outbound, uint64_t id);
