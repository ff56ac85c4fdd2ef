/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module that sends calls with the HTTP engine (libcurl), and translates the engine's outcomes
 * into results. It is loaded only when a call needs it, so that libcurl costs no memory before.
 *
 * Invariants: a call has an exchange from its start until its callback has returned. What the
 * request points to belongs to the caller, and lives as long as the exchange. `done` is called
 * exactly once, unless send_call fails.
 *
 * A kept connection may turn out to be dead: it breaks before a byte of the response arrives. Then
 * a call that may be repeated is sent a second time. Otherwise each restart of a webhook would fail
 * one call for each idle connection.
 */
#include "server/outbound/module.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/http/engine.h"
#include "base/http/global.h"
#include "base/http/http_tls.h"
#include "server/outbound/failure_text.h"
#include "server/outbound/https_url.h"

struct hfd_outbound_engine {
        struct hf__http_engine *http;
        const struct hf_clock *clock;
};

struct exchange {
        struct hfd_outbound_engine *engine;
        struct hfd_outbound_request request; /* its strings are borrowed */
        struct hf__http_tls *tls;            /* owned */
        char *url;  /* owned: the one to connect to; NULL = the request's */
        char *host; /* owned: the header Host; NULL = that of the URL */
        bool repeated;
};

static void free_exchange(struct exchange *x) {
        hf__http_tls_unref(x->tls);
        free(x->url);
        free(x->host);
        free(x);
}

/* ---- the end ---- */

static void end_exchange(struct exchange *x, enum hfd_outbound_end end,
                         const struct hf__http_result *http) {
        const struct hfd_outbound_failure failure = {.end = end,
                                                     .method = x->request.method,
                                                     .url = x->request.url,
                                                     .connect_to = x->request.connect_to,
                                                     .os_error = http->os_error,
                                                     .verify_error = http->verify_error,
                                                     .no_such_host = http->no_such_host,
                                                     .detail = http->error_text};
        struct hf__strbuf text = {0};
        struct hfd_outbound_result result = {.end = end, .body = "", .text = ""};

        if (end == HFD_OUTBOUND_ANSWERED) {
                result.code = http->code;
                result.body = http->body;
                result.n_body = http->n_body;
        } else {
                hfd_outbound_failure_text(&failure, &text);
                result.text = text.error ? "out of memory" : text.data;
        }
        x->request.done(x->request.ctx, &result);
        hf__strbuf_done(&text);
        free_exchange(x);
}

static enum hfd_outbound_end end_of(const struct exchange *x, const struct hf__http_result *http) {
        switch (http->outcome) {
        case 0: return HFD_OUTBOUND_ANSWERED;
        case HF_E_UNAVAILABLE:
                /* If the deadline ends an attempt to connect, curl reports that it has failed. It
                 * does so up to a millisecond early, because it counts milliseconds. */
                if (http->os_error == 0 && !http->no_such_host &&
                    hf_now(x->engine->clock) >= x->request.deadline - HF_NSEC_PER_MSEC)
                        return HFD_OUTBOUND_TIMED_OUT;
                return HFD_OUTBOUND_UNREACHABLE;
        case HF_E_UNAUTHORIZED: return HFD_OUTBOUND_UNTRUSTED;
        case HF_E_TIMEOUT: /* the engine's code also for a connection that broke after sending */
                if (http->no_memory)
                        return HFD_OUTBOUND_NO_MEMORY;
                return hf_now(x->engine->clock) >= x->request.deadline ? HFD_OUTBOUND_TIMED_OUT
                                                                       : HFD_OUTBOUND_BROKEN;
        case HF_E_CANCELED: return HFD_OUTBOUND_CANCELED;
        case HF_E_TOO_LARGE: return HFD_OUTBOUND_TOO_LARGE;
        case HF_E_INVALID: return HFD_OUTBOUND_INVALID;
        case -ENOMEM: return HFD_OUTBOUND_NO_MEMORY;
        default: return HFD_OUTBOUND_LOCAL;
        }
}

static int submit_exchange(struct exchange *x, uint64_t id, uint64_t *ret_id);

static void on_done(void *ctx, const struct hf__http_result *http) {
        struct exchange *x = ctx;
        assert(x->engine && x->request.done);
        enum hfd_outbound_end end = end_of(x, http);

        if (end == HFD_OUTBOUND_BROKEN && http->code == 0 && x->request.may_repeat &&
            !x->repeated) {
                x->repeated = true;
                int r = submit_exchange(x, http->id, NULL);
                if (r == 0)
                        return;
                if (r == -ENOMEM)
                        end = HFD_OUTBOUND_NO_MEMORY;
        }
        end_exchange(x, end, http);
}

/* ---- the start ---- */

/* id: the number of the request that this one repeats; 0 = it is the first. */
static int submit_exchange(struct exchange *x, uint64_t id, uint64_t *ret_id) {
        const struct hfd_outbound_request *request = &x->request;
        const char *headers[HFD_OUTBOUND_MAX_HEADERS + 1]; /* one more for Host */
        size_t n = 0;

        for (; n < request->n_headers; n++)
                headers[n] = request->headers[n];
        if (x->host)
                headers[n++] = x->host;
        const struct hf__http_request http = {.method = request->method,
                                              .url = x->url ? x->url : request->url,
                                              .headers = headers,
                                              .n_headers = n,
                                              .body = request->body,
                                              .n_body = request->n_body,
                                              .no_connection_limit = true,
                                              .tls = x->tls,
                                              .deadline = request->deadline,
                                              .max_body = request->max_response
                                                                  ? request->max_response
                                                                  : HFD_OUTBOUND_MAX_RESPONSE,
                                              .on_done = on_done,
                                              .ctx = x};

        if (id)
                return hf__http_submit_again(x->engine->http, &http, id);
        return hf__http_submit(x->engine->http, &http, ret_id);
}

/* Sets what differs from the URL if the call goes to another address. */
static int set_address(struct exchange *x, const struct hfd_https_url *url) {
        const char *to = x->request.connect_to;

        if (!to)
                return 0;
        if (asprintf(&x->url, "https://%s%s%s", to, url->rest[0] == '/' ? "" : "/", url->rest) <
            0) {
                x->url = NULL;
                return -ENOMEM;
        }
        if (asprintf(&x->host, "Host: %.*s", (int)url->n_authority, url->authority) < 0) {
                x->host = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* A call that has neither a CA nor another address needs no TLS settings: the engine verifies the
 * host of the URL by the system's CAs. */
static int set_tls(struct exchange *x, const struct hfd_https_url *url) {
        const char *ca = x->request.ca_pem;
        const struct hf__http_tls_config tls = {.ca_pem = ca && ca[0] ? ca : NULL,
                                                .server_name = x->url ? url->host : NULL};

        return tls.ca_pem || tls.server_name ? hf__http_tls_new(&tls, &x->tls) : 0;
}

static int send_call(struct hfd_outbound_engine *engine, const struct hfd_outbound_request *request,
                     uint64_t *ret_id) {
        struct hfd_https_url url;
        struct exchange *x = NULL;

        if (!hfd_https_url_parse(request->url, &url) ||
            request->n_headers > HFD_OUTBOUND_MAX_HEADERS)
                return -EINVAL;
        x = calloc(1, sizeof *x);
        if (!x)
                return -ENOMEM;
        x->engine = engine;
        x->request = *request;
        int r = set_address(x, &url);
        if (r == 0)
                r = set_tls(x, &url);
        if (r == 0)
                r = submit_exchange(x, 0, ret_id);
        if (r != 0)
                free_exchange(x);
        return r;
}

static void cancel_call(struct hfd_outbound_engine *engine, uint64_t id) {
        hf__http_cancel(engine->http, id);
}

/* ---- the engine ---- */

static int start_engine(const struct hf_host *host, struct hfd_outbound_engine **ret_engine) {
        struct hfd_outbound_engine *engine = calloc(1, sizeof *engine);

        if (!engine)
                return -ENOMEM;
        engine->clock = hf_host_clock(host);
        int r = hf__http_global_init();
        if (r == 0)
                r = hf__http_engine_new(host, "hf-outbound", &engine->http);
        if (r != 0) {
                free(engine);
                return r;
        }
        *ret_engine = engine;
        return 0;
}

static void stop_engine(struct hfd_outbound_engine *engine) { hf__http_engine_stop(engine->http); }

static struct hfd_outbound_engine *free_engine(struct hfd_outbound_engine *engine) {
        engine->http = hf__http_engine_free(engine->http);
        free(engine);
        return NULL;
}

const struct hfd_outbound_module hfd_outbound_module = {.version = HFD_VERSION,
                                                        .start = start_engine,
                                                        .send = send_call,
                                                        .cancel = cancel_call,
                                                        .stop = stop_engine,
                                                        .free = free_engine};
