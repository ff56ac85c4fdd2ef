/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one request from its submission to on_done, and determines its outcome.
 *
 * The outcome must never claim that nothing was done when the peer may have acted. curl calls
 * hf__exchange_on_prereq when it has a connection and is about to send. Before that nothing was
 * sent, and a failed connection is HF_E_UNAVAILABLE. After that the peer may have acted, and a
 * broken connection is HF_E_TIMEOUT. determine_outcome has the other cases.
 *
 * hf__exchange_on_prereq also refuses to send after the deadline, because the connection may have
 * taken long, and the machine may have been suspended meanwhile. Between this check and the write
 * to the socket there are only curl's own steps.
 *
 * When a reused connection breaks before the response, curl itself would send the request again. If
 * the peer acted on the first copy, its response to the second copy ("conflict") would mislead the
 * caller. So the second call of hf__exchange_on_prereq ends a request with HF_E_TIMEOUT unless it
 * is a read. A second connection whose certificate is refused ends it in the same way. The rule
 * also affects a stream that the peer has refused with GOAWAY and has therefore not processed,
 * because libcurl 7.88 reports it exactly like a broken connection. Reporting an unknown outcome
 * there is harmless.
 */
#include "base/http/exchange.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/http/avoided.h"
#include "base/http/engine_private.h"
#include "base/http/http_tls.h"
#include "base/text.h"

#define DEFAULT_MAX_BODY ((size_t)8 << 20)
/* The header whose copy is wiped before its memory is freed. */
#define AUTHORIZATION "Authorization:"

/* ---- memory ---- */

static bool has_header(const struct hf__http_request *request, const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < request->n_headers; i++)
                if (strncasecmp(request->headers[i], name, n) == 0 && request->headers[i][n] == ':')
                        return true;
        return false;
}

/* set_server_name in curl_options.c gives curl a name other than the URL's host. That name is for
 * TLS only, so a Host header with the URL's authority is made here. *ret_header is NULL if no such
 * header is needed, and after a failure; the caller frees it. 0 or -ENOMEM. */
static int make_host_header(const struct hf__http_request *request, char **ret_header) {
        const char *authority = strstr(request->url, "://");

        *ret_header = NULL;
        if (!request->tls || !request->tls->server_name || !authority ||
            has_header(request, "Host"))
                return 0;
        authority += strlen("://");
        if (asprintf(ret_header, "Host: %.*s", (int)strcspn(authority, "/?#"), authority) >= 0)
                return 0;
        *ret_header = NULL;
        return -ENOMEM;
}

/* Lists the headers that are set in addition to those of the request. Returns their number. A
 * header with an empty value removes one that curl would add: an Expect would delay the body, and
 * the Content-Type that curl assumes for a POST is that of a form. */
static size_t list_extra_headers(const struct hf__http_request *request, const char *host,
                                 const char *extra[3]) {
        size_t n = 0;

        extra[n++] = "Expect:";
        if (!has_header(request, "Content-Type"))
                extra[n++] = "Content-Type:";
        if (host)
                extra[n++] = host;
        return n;
}

/* Allocates an exchange, followed by space for n_headers headers, all strings, and the body unless
 * the caller keeps it (keeps_body). */
static struct hf__exchange *allocate_exchange(const struct hf__http_request *request,
                                              const char **extra, size_t n_extra,
                                              size_t n_headers) {
        size_t n_strings = strlen(request->method) + strlen(request->url) + 2; /* with their NULs */

        for (size_t i = 0; i < n_extra; i++)
                n_strings += strlen(extra[i]) + 1;
        for (size_t i = 0; i < request->n_headers; i++)
                n_strings += strlen(request->headers[i]) + 1;
        return malloc(sizeof(struct hf__exchange) + n_headers * sizeof(struct curl_slist) +
                      n_strings + (request->keeps_body ? 0 : request->n_body));
}

/* One block of memory holds the exchange and all that allocate_exchange makes space for. */
struct hf__exchange *hf__exchange_new(struct hf__http_engine *engine,
                                      const struct hf__http_request *request) {
        const char *extra[3];
        HF__CLEANUP(hf__free_cleanup) char *host = NULL;

        if (make_host_header(request, &host) < 0)
                return NULL;
        size_t n_extra = list_extra_headers(request, host, extra);
        size_t n_headers = request->n_headers + n_extra;
        struct hf__exchange *x = allocate_exchange(request, extra, n_extra, n_headers);
        if (!x)
                return NULL;
        *x = (struct hf__exchange){.engine = engine, .request = *request};
        x->headers = (struct curl_slist *)(x + 1);
        char *end = (char *)(x->headers + n_headers);
        x->request.method = hf__text_copy(&end, request->method);
        x->request.url = hf__text_copy(&end, request->url);
        for (size_t i = 0; i < n_headers; i++) {
                bool is_extra = i >= request->n_headers;
                x->headers[i].data = hf__text_copy(&end, is_extra ? extra[i - request->n_headers]
                                                                  : request->headers[i]);
                x->headers[i].next = i + 1 < n_headers ? &x->headers[i + 1] : NULL;
        }
        x->request.headers = NULL;
        x->is_read = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
        if (request->n_body > 0 && !request->keeps_body)
                x->request.body = memcpy(end, request->body, request->n_body);
        x->tls = hf__http_tls_ref(request->tls);
        x->body.max = request->max_body ? request->max_body : DEFAULT_MAX_BODY;
        hf_nsec now = hf_now(engine->clock);
        x->head_deadline = HF_NSEC_NEVER;
        x->connect_deadline = HF_NSEC_NEVER;
        if (request->head_timeout > 0 && request->head_timeout < HF_NSEC_NEVER - now)
                x->head_deadline = now + request->head_timeout;
        return x;
}

/* curl no longer uses the headers: its handle was given back. */
static void wipe_credentials(struct hf__exchange *x) {
        for (struct curl_slist *header = x->headers; header; header = header->next)
                if (strncasecmp(header->data, AUTHORIZATION, strlen(AUTHORIZATION)) == 0)
                        explicit_bzero(header->data, strlen(header->data));
}

void hf__exchange_free(struct hf__exchange *x) {
        assert(!x->pool && !x->easy && !x->timer.queued);
        wipe_credentials(x);
        hf__strbuf_done(&x->body);
        free(x->fence_echo);
        hf__avoided_free(x->avoided);
        curl_slist_free_all(x->connect_to);
        curl_free(x->url_override);
        hf__http_tls_unref(x->tls);
        free(x);
}

void hf__exchange_set_timer(struct hf__exchange *x) {
        struct hf__timer_heap *heap = &x->engine->exchange_timers;
        hf_nsec at = x->request.deadline;

        hf__engine_assert_thread(x->engine);
        if (!x->head_done && x->head_deadline < at)
                at = x->head_deadline;
        if (x->connect_deadline < at)
                at = x->connect_deadline;
        if (x->is_delayed && x->request.not_before < at)
                at = x->request.not_before;
        hf__timer_heap_remove(heap, &x->timer);
        if (at != HF_NSEC_NEVER)
                hf__timer_heap_add(heap, &x->timer, at);
}

int hf__exchange_on_prereq(void *ctx, char *peer, char *local, int peer_port, int local_port) {
        struct hf__exchange *x = ctx;

        hf__engine_assert_thread(x->engine);
        if (x->may_have_sent && !x->is_read) {
                x->forced_outcome = HF_E_TIMEOUT;
                (void)strcpy(x->error_text, "the connection broke after the request was sent");
                return CURL_PREREQFUNC_ABORT;
        }
        hf_nsec now = hf_now(x->engine->clock);
        if (now >= x->request.deadline) {
                x->forced_outcome = HF_E_TIMEOUT;
                (void)strcpy(x->error_text, "the deadline passed before the request was sent");
                return CURL_PREREQFUNC_ABORT;
        }
        x->may_have_sent = true;
        x->connect_deadline = HF_NSEC_NEVER; /* hf__exchange_on_timer sets the timer again */
        x->sent_at = now;
        x->local_port = local_port;
        return CURL_PREREQFUNC_OK;
}

/* ---- ending a request ---- */

/* Removes x from its pool, and releases its curl handle. */
static void detach_from_curl(struct hf__exchange *x) {
        if (!x->easy)
                return;
        if (x->pool) {
                /* because removing the handle may send a frame that resets the stream */
                hf__lanes_mark_dirty(x->pool);
                (void)curl_multi_remove_handle(x->pool->multi, x->easy);
                assert(x->pool->n_active > 0);
                x->pool->n_active--;
                x->pool = NULL;
        }
        hf__curl_options_release_handle(x);
}

/* Calls on_done. x must not be used afterwards. */
static void finish_exchange(struct hf__exchange *x, int outcome) {
        hf__timer_heap_remove(&x->engine->exchange_timers, &x->timer);
        detach_from_curl(x);
        bool has_body = outcome == 0 && !x->request.on_data;
        struct hf__http_result result = {
                .id = x->id,
                .outcome = outcome,
                .not_sent = !x->may_have_sent,
                .code = x->code,
                .body = has_body && x->body.data ? x->body.data : "",
                .n_body = has_body ? x->body.n : 0,
                .retry_after_s = x->retry_after_s,
                .fence_echo = x->fence_echo,
                .error_text = x->error_text,
                .other_ca = outcome == HF_E_UNAUTHORIZED && x->other_ca,
                .no_such_host = outcome == HF_E_UNAVAILABLE && x->no_such_host,
                .os_error = outcome == HF_E_UNAVAILABLE ? x->os_error : 0,
                .verify_error = outcome == HF_E_UNAUTHORIZED ? x->verify_error : 0,
                .no_memory = outcome == HF_E_TIMEOUT && x->forced_outcome == -ENOMEM,
        };
        x->request.on_done(x->request.ctx, &result);
        hf__engine_remove_exchange(x->engine, x);
}

/* Whether one side refused the other's certificate, or curl cannot use the client's certificate,
 * key or CAs. text is curl's description. */
static bool is_tls_refusal(CURLcode result, const char *text) {
        switch ((int)result) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        case CURLE_SSL_CLIENTCERT: return true;
        /* With TLS 1.3 the client finishes the handshake before the server checks the client's
         * certificate. So the server's alert arrives at the first read, and the server has not
         * read the request. */
        case CURLE_RECV_ERROR:
        case CURLE_SSL_CONNECT_ERROR:
                return strstr(text, "alert certificate") || strstr(text, "alert bad certificate") ||
                       strstr(text, "alert unknown ca") || strstr(text, "certificate required");
        default: return false;
        }
}

/* Whether the peer may have acted on a write although a certificate was refused: the request was
 * sent on a kept connection, which broke, and the refusal belongs to the handshake of the next one.
 * A refusal after the handshake (CURLE_RECV_ERROR, see above) belongs to the first one, because
 * hf__exchange_on_prereq ends a write before it is sent on a second. */
static bool may_have_acted(const struct hf__exchange *x, CURLcode result) {
        return x->may_have_sent && !x->is_read && result != CURLE_RECV_ERROR;
}

/* Maps the result of a transfer to an outcome. The order matters: once curl may have sent the
 * request, a failure must not be reported as one where nothing was sent. */
static int determine_outcome(const struct hf__exchange *x, CURLcode result) {
        if (x->forced_outcome == -ENOMEM && x->may_have_sent)
                return HF_E_TIMEOUT;
        if (x->forced_outcome != 0)
                return x->forced_outcome;
        if (result == CURLE_OK)
                return x->head_done ? 0 : HF_E_TIMEOUT;
        if (is_tls_refusal(result, x->error_text) && !may_have_acted(x, result))
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
        hf__engine_assert_thread(x->engine);
        detach_from_curl(x);
        x->error_text[0] = '\0';
        hf__exchange_activate(x);
}

/* Whether the certificate was refused because of its issuer, and not because of its name or its
 * time. The numbers are OpenSSL's X509_V_ERR_*, which curl reports. */
static bool is_other_ca(int reason) {
        switch (reason) {
        case 2:  /* UNABLE_TO_GET_ISSUER_CERT */
        case 7:  /* CERT_SIGNATURE_FAILURE: a CA of the same name, with another key */
        case 18: /* DEPTH_ZERO_SELF_SIGNED_CERT */
        case 19: /* SELF_SIGNED_CERT_IN_CHAIN */
        case 20: /* UNABLE_TO_GET_ISSUER_CERT_LOCALLY */
        case 21: /* UNABLE_TO_VERIFY_LEAF_SIGNATURE */ return true;
        default: return false;
        }
}

/* Keeps what curl knows of a failure beyond its result. */
static void note_details(struct hf__exchange *x, CURLcode result) {
        long number = 0;

        x->no_such_host = result == CURLE_COULDNT_RESOLVE_HOST;
        if (result == CURLE_OK || !x->easy)
                return;
        if (result == CURLE_PEER_FAILED_VERIFICATION &&
            curl_easy_getinfo(x->easy, CURLINFO_SSL_VERIFYRESULT, &number) == CURLE_OK)
                x->verify_error = (int)number;
        if (curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &number) == CURLE_OK)
                x->os_error = (int)number;
        x->other_ca = is_other_ca(x->verify_error);
}

void hf__exchange_on_curl_done(struct hf__exchange *x, CURLcode result) {
        if (!x->avoided)
                note_details(x, result);
        bool was_forgotten = hf__avoided_forget_silent(x, result);
        hf__avoided_add_late(x, result);
        if (hf__avoided_add(x, result) || was_forgotten) {
                hf__exchange_restart(x);
                return;
        }
        result = hf__avoided_first_result(x, result);
        if (result != CURLE_OK && x->error_text[0] == '\0') {
                strncpy(x->error_text, curl_easy_strerror(result), sizeof x->error_text - 1);
                x->error_text[sizeof x->error_text - 1] = '\0';
        }
        finish_exchange(x, determine_outcome(x, result));
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
 * Whether the socket may be that of x, and has received nothing since x was sent. A request that
 * was not sent may wait for any connection that has received nothing yet. But one that was opened
 * late, in the second half of the time that x has waited, says nothing about its peer: another
 * address may have used up the time.
 */
static bool is_silent_socket(const struct hf__exchange *x, size_t fd) {
        const struct hf__socket *sock = &x->engine->lanes.sockets[fd];

        if (sock->pool != x->pool)
                return false;
        if (!x->may_have_sent)
                return sock->is_connection && sock->last_in == 0 &&
                       sock->opened_at - x->activated_at <= (x->engine->now - x->activated_at) / 2;
        return sock->last_in < x->sent_at && has_local_port((int)fd, x->local_port);
}

/*
 * Whether x received no byte on its connection after it was sent, or never got a connection. Adds
 * the addresses that were silent. The case without a connection matters for TLS: x may wait for one
 * that another request is opening. If that handshake hangs, later requests must not wait for it.
 */
static bool note_silence(const struct hf__exchange *x) {
        bool is_silent = !x->may_have_sent;

        if (x->may_have_sent && x->local_port <= 0)
                return false;
        for (size_t fd = 0; fd < x->engine->lanes.n_sockets; fd++)
                if (is_silent_socket(x, fd)) {
                        hf__avoided_add_silent(x->engine, (int)fd);
                        is_silent = true;
                        if (x->may_have_sent)
                                break; /* other sockets rarely have this port */
                }
        return is_silent;
}

static const char *describe_abort(const struct hf__exchange *x, int outcome) {
        switch (outcome) {
        case HF_E_TIMEOUT:
                return x->request.deadline <= x->engine->now
                               ? "the deadline passed"
                               : "the response header did not arrive in time";
        case HF_E_UNAVAILABLE: return "no connection in time";
        default: return "canceled";
        }
}

void hf__exchange_abort(struct hf__exchange *x, int outcome) {
        hf__engine_assert_thread(x->engine);
        assert(!x->ended);
        if (outcome != HF_E_CANCELED)
                (void)hf__avoided_forget_silent(x, CURLE_OPERATION_TIMEDOUT);
        if (outcome != HF_E_CANCELED && x->pool && note_silence(x))
                hf__lanes_replace_pool(x->pool);
        if (x->error_text[0] == '\0')
                (void)strcpy(x->error_text, describe_abort(x, outcome));
        finish_exchange(x, outcome);
}

/* ---- starting a request ---- */

void hf__exchange_activate(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;
        struct hf__pool *pool = engine->lanes.pools[x->request.lane];

        hf__engine_assert_thread(engine);
        assert(!x->pool && !x->easy);
        CURLcode code = hf__curl_options_acquire_handle(x);
        x->activated_at = engine->now;
        x->pool = pool; /* set before the handle is added, because curl's callbacks use it */
        hf__lanes_limit_connections(pool, hf__curl_options_may_share(&x->request) &&
                                                  !x->request.no_connection_limit);
        if (code == CURLE_OK && curl_multi_add_handle(pool->multi, x->easy) == CURLM_OK) {
                pool->n_active++;
        } else {
                x->pool = NULL;
                hf__exchange_on_curl_done(x, code != CURLE_OK ? code : CURLE_OUT_OF_MEMORY);
        }
}

void hf__exchange_start(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        hf__engine_assert_thread(engine);
        if (engine->stopping) {
                hf__exchange_abort(x, HF_E_CANCELED);
                return;
        }
        x->is_delayed = x->request.not_before > engine->now;
        if (!x->is_delayed && x->request.connect_timeout > 0 &&
            x->request.connect_timeout < HF_NSEC_NEVER - engine->now)
                x->connect_deadline = engine->now + x->request.connect_timeout;
        hf__exchange_set_timer(x);
        if (x->timer.queued && x->timer.at <= engine->now) {
                hf__exchange_abort(x, HF_E_TIMEOUT);
                return;
        }
        if (x->is_delayed)
                return;
        hf__exchange_activate(x);
}

void hf__exchange_on_timer(struct hf__exchange *x) {
        hf_nsec now = x->engine->now;

        if (x->is_delayed) {
                hf__exchange_start(x); /* this ends x if its deadline has passed too */
        } else if (x->request.deadline <= now || (!x->head_done && x->head_deadline <= now)) {
                hf__exchange_abort(x, HF_E_TIMEOUT);
        } else if (x->connect_deadline <= now) {
                hf__exchange_abort(x, HF_E_UNAVAILABLE);
        } else { /* the timer was set for connect_deadline, and curl has got a connection since */
                hf__exchange_set_timer(x);
        }
}
