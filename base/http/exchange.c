/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request over one curl handle: its life from submit to answer, and what its outcome is.
 *
 * What may have happened to it at the peer is the point of the outcome. curl calls on_prereq when
 * it has a connection and is about to send: before that nothing was sent, and a failure is
 * HF_E_UNAVAILABLE; after that the peer may have acted, and whatever breaks is HF_E_TIMEOUT. curl
 * would by itself send a request a second time when a reused connection breaks before the answer:
 * the peer may have acted on the first, and the second answer ("conflict") would then be a lie. So
 * the second on_prereq ends a request that is not idempotent. Streams that crossed a goodbye on the
 * way fall under that too, though the peer has promised not to have looked at them: libcurl 7.88
 * calls them connections that died, with nothing that tells them from those. Rather unknown once
 * more than is needed.
 *
 * Its options are http_engine_options.c, its answer http_engine_answer.c, its wait for another's
 * connection http_engine_gate.c.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/http/engine_private.h"

#define DEFAULT_MAX_BODY ((size_t)8 << 20)
#define MAX_RESTARTS     8

/* Copies a string to *end and moves *end behind it. */
static char *place(char **end, const char *text) {
        char *at = *end;

        if (!text)
                return NULL;
        *end = stpcpy(at, text) + 1;
        return at;
}

static bool has_header(const struct hf__http_request *request, const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < request->n_headers; i++)
                if (strncasecmp(request->headers[i], name, n) == 0 && request->headers[i][n] == ':')
                        return true;
        return false;
}

/* "Host: " and what the URL says, when curl is asked for another name (http_engine_options.c): that
 * one is for TLS alone. */
static int host_header(const struct hf__http_request *request, char **ret_header) {
        const char *authority = strstr(request->url, "://");

        *ret_header = NULL;
        if (!request->tls || !request->tls->server_name || !authority ||
            has_header(request, "Host"))
                return 0;
        authority += strlen("://");
        return asprintf(ret_header, "Host: %.*s", (int)strcspn(authority, "/?#"), authority) < 0
                       ? -ENOMEM
                       : 0;
}

/* One block of memory holds the exchange, curl's list of headers, the strings and the body. */
struct hf__exchange *hf__exchange_new(struct hf__http_engine *engine,
                                      const struct hf__http_request *request) {
        const char *extra[3]; /* an empty value takes a header of curl's own away */
        size_t n_extra = 0;
        char *host;

        if (host_header(request, &host) < 0)
                return NULL;
        if (request->version != HF__HTTP_2_PRIOR_KNOWLEDGE) /* HTTP/2 has none */
                extra[n_extra++] = "Expect:";
        if (!has_header(request, "Content-Type"))
                extra[n_extra++] = "Content-Type:";
        if (host)
                extra[n_extra++] = host;
        size_t n_headers = request->n_headers + n_extra;
        size_t n_strings = strlen(request->method) + strlen(request->url) + 2;

        for (size_t i = 0; i < n_extra; i++)
                n_strings += strlen(extra[i]) + 1;
        for (size_t i = 0; i < request->n_headers; i++)
                n_strings += strlen(request->headers[i]) + 1;
        if (request->unix_socket)
                n_strings += strlen(request->unix_socket) + 1;
        struct hf__exchange *x = malloc(sizeof *x + n_headers * sizeof *x->headers + n_strings +
                                        request->n_body + 1);
        if (!x) {
                free(host);
                return NULL;
        }
        *x = (struct hf__exchange){.engine = engine, .request = *request, .grpc_status = -1};
        x->headers = (struct curl_slist *)(x + 1);
        char *end = (char *)(x->headers + n_headers);
        x->request.method = place(&end, request->method);
        x->request.url = place(&end, request->url);
        x->request.unix_socket = place(&end, request->unix_socket);
        for (size_t i = 0; i < n_headers; i++) {
                x->headers[i].data =
                        place(&end, i < request->n_headers ? request->headers[i]
                                                           : extra[i - request->n_headers]);
                x->headers[i].next = i + 1 < n_headers ? &x->headers[i + 1] : NULL;
        }
        free(host);
        x->request.headers = NULL;
        x->request.idempotent = request->idempotent || strcmp(request->method, "GET") == 0 ||
                                strcmp(request->method, "HEAD") == 0;
        if (request->n_body > 0)
                x->request.body = memcpy(end, request->body, request->n_body);
        x->tls = hf__http_tls_ref(request->tls);
        x->body.max = request->max_body ? request->max_body : DEFAULT_MAX_BODY;
        hf_nsec now = hf_now(engine->clock);
        x->head_deadline = request->head_timeout > 0 && request->head_timeout < HF_NSEC_NEVER - now
                                   ? now + request->head_timeout
                                   : HF_NSEC_NEVER;
        return x;
}

void hf__exchange_free(struct hf__exchange *x) {
        hf__strbuf_done(&x->body);
        free(x->grpc_message);
        free(x->fence_echo);
        curl_slist_free_all(x->connect_to);
        curl_free(x->url_override);
        hf__http_tls_unref(x->tls);
        free(x);
}

void hf__exchange_set_due(struct hf__exchange *x) {
        struct hf__timer_heap *queue = &x->engine->due_exchanges;
        hf_nsec at = x->request.deadline;

        if (!x->head_done && x->head_deadline < at)
                at = x->head_deadline;
        if (x->is_held && x->request.not_before < at)
                at = x->request.not_before;
        hf__timer_heap_remove(queue, &x->due);
        if (at != HF_NSEC_NEVER)
                hf__timer_heap_add(queue, &x->due, at);
}

int hf__exchange_on_prereq(void *ctx, char *peer, char *local, int peer_port, int local_port) {
        struct hf__exchange *x = ctx;

        if (hf__h2c_guard_guessed_wrong(x))
                return CURL_PREREQFUNC_ABORT;
        if (x->may_have_sent && !x->request.idempotent) {
                x->verdict = HF_E_TIMEOUT;
                (void)strcpy(x->error_text, "the connection broke after the request was sent");
                return CURL_PREREQFUNC_ABORT;
        }
        x->resent = x->may_have_sent;
        x->may_have_sent = true;
        x->sent_at = hf_now(x->engine->clock);
        x->local_port = local_port;
        return CURL_PREREQFUNC_OK;
}

/* ---- end ---- */

/* Gives the curl handle back; its connection stays with the pool. */
static void detach(struct hf__exchange *x) {
        hf__h2c_guard_leave(x);
        if (!x->easy)
                return;
        if (x->pool) {
                hf__lanes_stir(x->pool); /* curl may reset its stream */
                (void)curl_multi_remove_handle(x->pool->multi, x->easy);
                x->pool->n_active--;
                x->pool = NULL;
        }
        hf__exchange_give_handle(x);
}

/* The last act: answers, and forgets it. */
static void finish(struct hf__exchange *x, int outcome) {
        hf__timer_heap_remove(&x->engine->due_exchanges, &x->due);
        detach(x);
        bool whole = outcome == 0 && !x->request.on_data;
        struct hf__http_result result = {
                .id = x->id,
                .outcome = outcome,
                .code = x->code,
                .body = whole && x->body.data ? x->body.data : "",
                .n_body = whole ? x->body.n : 0,
                .grpc_status = x->grpc_status,
                .grpc_message = x->grpc_message ? x->grpc_message : "",
                .retry_after_s = x->retry_after_s,
                .fence_echo = x->fence_echo,
                .error_text = x->error_text,
        };
        x->request.on_done(x->request.ctx, &result);
        hf__engine_forget(x->engine, x);
}

static bool tls_refused(CURLcode result, const char *text) {
        switch ((int)result) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        case CURLE_SSL_CLIENTCERT: return true;
        /* With TLS 1.3 the peer judges our certificate after our side of the handshake is done: its
         * alert meets the first read. It has not looked at the request then. */
        case CURLE_RECV_ERROR:
        case CURLE_SSL_CONNECT_ERROR:
                return strstr(text, "alert certificate") || strstr(text, "alert bad certificate") ||
                       strstr(text, "alert unknown ca") || strstr(text, "certificate required");
        default: return false;
        }
}

static int outcome_of(const struct hf__exchange *x, CURLcode result) {
        if (x->verdict)
                return x->verdict == -ENOMEM && x->may_have_sent ? HF_E_TIMEOUT : x->verdict;
        if (result == CURLE_OK)
                return x->head_done ? 0 : HF_E_TIMEOUT;
        if (tls_refused(result, x->error_text))
                return HF_E_UNAUTHORIZED;
        if (x->may_have_sent)
                return HF_E_TIMEOUT;
        switch ((int)result) {
        case CURLE_OUT_OF_MEMORY: return -ENOMEM;
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_BAD_FUNCTION_ARGUMENT:
        case CURLE_UNKNOWN_OPTION: return HF_E_INVALID;
        default: return HF_E_UNAVAILABLE;
        }
}

void hf__exchange_restart(struct hf__exchange *x) {
        detach(x);
        x->must_restart = false;
        x->error_text[0] = '\0';
        hf__exchange_begin(x);
}

void hf__exchange_curl_done(struct hf__exchange *x, CURLcode result) {
        if (x->must_restart && x->n_restarts++ < MAX_RESTARTS) {
                hf__exchange_restart(x);
                return;
        }
        if (result != CURLE_OK && !x->error_text[0]) {
                strncpy(x->error_text, curl_easy_strerror(result), sizeof x->error_text - 1);
                x->error_text[sizeof x->error_text - 1] = '\0';
        }
        /* After anything else curl may remember what went wrong. */
        x->may_keep_options = result == CURLE_OK && !x->verdict && !x->resent;
        finish(x, outcome_of(x, result));
}

static bool has_local_port(int fd, int port) {
        struct sockaddr_storage address;
        socklen_t n = sizeof address;

        if (getsockname(fd, (struct sockaddr *)&address, &n) < 0)
                return false;
        if (address.ss_family == AF_INET6)
                return ntohs(((struct sockaddr_in6 *)&address)->sin6_port) == port;
        return address.ss_family == AF_INET &&
               ntohs(((struct sockaddr_in *)&address)->sin_port) == port;
}

/*
 * Whether its connection has been silent since the request was sent, or was not there to begin
 * with: a request over TLS waits for one that another is making, and when that one's handshake
 * hangs, those that follow must not wait for it as well.
 */
static bool is_silent(const struct hf__exchange *x) {
        const struct hf__http_engine *engine = x->engine;

        if (!x->may_have_sent)
                return !x->is_h2c; /* there it may be streams that it waits for, and the gate sees
                                      to hung connections */
        if (x->local_port <= 0)
                return false;
        for (size_t fd = 0; fd < engine->n_sockets; fd++)
                if (engine->sockets[fd].pool == x->pool &&
                    engine->sockets[fd].last_in < x->sent_at &&
                    has_local_port((int)fd, x->local_port))
                        return true;
        return false;
}

void hf__exchange_abort(struct hf__exchange *x, int outcome) {
        if (outcome == HF_E_TIMEOUT && x->pool && is_silent(x))
                hf__lanes_distrust(x->pool);
        if (!x->error_text[0])
                (void)strcpy(x->error_text,
                             outcome == HF_E_TIMEOUT ? "the deadline passed" : "canceled");
        finish(x, outcome);
}

static size_t lane_of(const struct hf__exchange *x) {
        return x->request.lane + (x->is_h2c ? (size_t)HF__HTTP_N_LANES : 0);
}

void hf__exchange_begin(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;
        struct hf__pool *pool = engine->lanes[lane_of(x)];

        if (x->is_h2c && !x->expects_reuse && hf__h2c_guard_holds(x, pool))
                return;
        CURLcode code = hf__exchange_take_handle(x);
        x->pool = pool; /* before the handle is added: callbacks look at it */
        hf__lanes_make_room(pool, hf__http_shares_connections(&x->request));
        if (!code && curl_multi_add_handle(pool->multi, x->easy) == CURLM_OK) {
                pool->n_active++;
        } else {
                x->pool = NULL;
                hf__exchange_curl_done(x, code ? code : CURLE_OUT_OF_MEMORY);
        }
}

void hf__exchange_start(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        if (engine->stopping) {
                hf__exchange_abort(x, HF_E_CANCELED);
                return;
        }
        x->is_held = x->request.not_before > engine->now;
        hf__exchange_set_due(x);
        if (x->due.queued && x->due.at <= engine->now) {
                hf__exchange_abort(x, HF_E_TIMEOUT);
                return;
        }
        if (x->is_held)
                return;
        x->is_h2c = hf__h2c_guard_concerns(engine, &x->request);
        x->expects_reuse = engine->lanes[lane_of(x)]->h2c_up;
        hf__exchange_begin(x);
}

void hf__exchange_due(struct hf__exchange *x) {
        if (x->is_held)
                hf__exchange_start(x); /* which ends it when the deadline has passed as well */
        else
                hf__exchange_abort(x, HF_E_TIMEOUT);
}
