/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curl handle of one request, and its options.
 *
 * Invariants: curl does not copy all of the data that options point to. So this data must exist
 * until the exchange has released the handle: the exchange owns it, or holds a reference to it (TLS
 * settings), or the caller keeps it until on_done (a body with keeps_body). A handle is reset
 * before it is kept, so that no option of one request applies to the next.
 */
#include "base/http/curl_options.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/http/avoided.h"
#include "base/http/engine_private.h"
#include "base/http/exchange.h"
#include "base/http/http_response.h"
#include "base/http/http_tls.h"

#define CONNECT_TIMEOUT_MS 30000L
/* Shorter than the renew deadline of a Lease, because a server that moved has new addresses. */
#define DNS_CACHE_TIMEOUT_S 5L
/* curl allocates this buffer for each request with a body. With its default size of 64 KiB the
 * allocation takes longer than sending a small body. */
#define UPLOAD_BUFFER     16384L
#define KEEPALIVE_IDLE_S  10L
#define KEEPALIVE_INTVL_S 5L
/* A connection is dead when bytes that were sent on it are not acknowledged for this long. */
#define UNACKED_TIMEOUT_MS 20000u

/* Sets an option of the local variable `easy`, unless `code` is already an error. */
#define SET(option, value)                                                                         \
        do {                                                                                       \
                if (code == CURLE_OK)                                                              \
                        code = curl_easy_setopt(easy, option, value);                              \
        } while (false)

/* CURLOPT_SOCKOPTFUNCTION: a socket was created for a connection. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
        struct hf__exchange *x = ctx;
        unsigned timeout_ms = UNACKED_TIMEOUT_MS;

        hf__engine_assert_thread(x->engine);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
        hf__lanes_socket_opened(x->engine, fd);
        if (hf__curl_options_may_share(&x->request))
                hf__lanes_cork_socket(x->pool, fd);
        return CURL_SOCKOPT_OK;
}

HF__CLEANUP_DEFINE(url_cleanup, CURLU *, curl_url_cleanup)
HF__CLEANUP_DEFINE(part_cleanup, char *, curl_free)

static CURLcode url_result(CURLUcode code) {
        if (code == CURLUE_OK)
                return CURLE_OK;
        if (code == CURLUE_OUT_OF_MEMORY)
                return CURLE_OUT_OF_MEMORY;
        return code == CURLUE_UNSUPPORTED_SCHEME ? CURLE_UNSUPPORTED_PROTOCOL : CURLE_URL_MALFORMAT;
}

/* Handles a server whose certificate has a name other than the URL's host. curl gets a URL with
 * that name, but still connects to the host and port of the original URL. */
static CURLcode set_server_name(struct hf__exchange *x, CURL *easy) {
        HF__CLEANUP(part_cleanup) char *host = NULL;
        HF__CLEANUP(part_cleanup) char *port = NULL;
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf text = {0};
        HF__CLEANUP(url_cleanup) CURLU *url = curl_url();
        CURLUcode parsed = url ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;

        /* If the request begins again, its first attempt has set connect_to and url_override. */
        curl_slist_free_all(x->connect_to);
        curl_free(x->url_override);
        x->connect_to = NULL;
        x->url_override = NULL;
        if (parsed == CURLUE_OK)
                parsed = curl_url_set(url, CURLUPART_URL, x->request.url, CURLU_PATH_AS_IS);
        if (parsed == CURLUE_OK)
                parsed = curl_url_get(url, CURLUPART_HOST, &host, 0);
        if (parsed == CURLUE_OK)
                parsed = curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        if (parsed == CURLUE_OK)
                parsed = curl_url_set(url, CURLUPART_HOST, x->tls->server_name, 0);
        if (parsed == CURLUE_OK)
                parsed = curl_url_get(url, CURLUPART_URL, &x->url_override, 0);
        CURLcode code = url_result(parsed);
        if (code != CURLE_OK)
                return code;
        hf__strbuf_printf(&text, "::%s:%s", host, port);
        x->connect_to = text.error ? NULL : curl_slist_append(NULL, text.data);
        if (!x->connect_to)
                return CURLE_OUT_OF_MEMORY;
        SET(CURLOPT_URL, x->url_override);
        SET(CURLOPT_CONNECT_TO, x->connect_to);
        return code;
}

/* Sets an option to a PEM text without a copy. The exchange's reference keeps the text valid. */
static CURLcode set_blob(CURL *easy, CURLoption option, char *pem) {
        struct curl_blob blob = {.data = pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
        return curl_easy_setopt(easy, option, &blob);
}

static CURLcode set_tls(const struct hf__http_tls *tls, CURL *easy) {
        CURLcode code = CURLE_OK;

        if (tls->ca_pem) {
                code = set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca_pem);
                /* Otherwise curl trusts the system's directory of CAs as well. */
                SET(CURLOPT_CAPATH, NULL);
        }
        if (code == CURLE_OK && tls->cert_pem) {
                code = set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
                if (code == CURLE_OK)
                        code = set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key_pem);
        }
        if (tls->insecure) {
                SET(CURLOPT_SSL_VERIFYPEER, 0L);
                SET(CURLOPT_SSL_VERIFYHOST, 0L);
        }
        return code;
}

static CURLcode set_method(struct hf__exchange *x, CURL *easy) {
        const char *method = x->request.method;
        CURLcode code = CURLE_OK;

        if (strcmp(method, "GET") == 0 && x->request.n_body == 0)
                return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        if (strcmp(method, "HEAD") == 0)
                return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        /* Also sets an empty body, so that curl sends "Content-Length: 0", which a server may
         * require of a POST, a PUT or a PATCH. */
        if (x->request.n_body > 0 || strcmp(method, "DELETE") != 0) {
                SET(CURLOPT_POSTFIELDS, x->request.n_body > 0 ? (const char *)x->request.body : "");
                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->request.n_body);
        }
        if (strcmp(method, "POST") != 0)
                SET(CURLOPT_CUSTOMREQUEST, method);
        return code;
}

bool hf__curl_options_may_share(const struct hf__http_request *request) {
        return request->version != HF__HTTP_1_1 && strncmp(request->url, "https:", 6) == 0;
}

static CURLcode set_version(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;
        bool only_1_1 = x->request.version == HF__HTTP_1_1;

        SET(CURLOPT_HTTP_VERSION,
            (long)(only_1_1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
        /* Makes the request wait for a connection that is being opened and that it may be able to
         * share. Otherwise curl would open another one. */
        SET(CURLOPT_PIPEWAIT, (long)hf__curl_options_may_share(&x->request));
        return code;
}

/* The time limit for opening a connection. curl divides it between the addresses of the host, so it
 * must not exceed the time that the request has left. */
static long connect_timeout_ms(const struct hf__exchange *x) {
        hf_nsec until = x->request.deadline;

        if (x->connect_deadline < until)
                until = x->connect_deadline;
        if (x->head_deadline < until)
                until = x->head_deadline;
        hf_nsec left = until - x->engine->now;
        if (left >= CONNECT_TIMEOUT_MS * HF_NSEC_PER_MSEC)
                return CONNECT_TIMEOUT_MS;
        return left > HF_NSEC_PER_MSEC ? (long)(left / HF_NSEC_PER_MSEC) : 1;
}

static CURLcode set_transport(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_NOSIGNAL, 1L);
        /* so that removing a handle does not wait for the system's resolver */
        SET(CURLOPT_QUICK_EXIT, 1L);
        SET(CURLOPT_PROXY, ""); /* ignores proxies set in the host's environment */
        SET(CURLOPT_PROTOCOLS_STR, "http,https");
        SET(CURLOPT_TCP_NODELAY, 1L);
        SET(CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
        SET(CURLOPT_TCP_KEEPALIVE, 1L);
        SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTVL_S);
        SET(CURLOPT_DNS_CACHE_TIMEOUT, DNS_CACHE_TIMEOUT_S);
        SET(CURLOPT_OPENSOCKETFUNCTION, hf__avoided_open_socket);
        SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
        SET(CURLOPT_CLOSESOCKETFUNCTION, hf__lanes_close_socket);
        SET(CURLOPT_CLOSESOCKETDATA, x->engine);
        SET(CURLOPT_CONNECTTIMEOUT_MS, connect_timeout_ms(x));
        if (code == CURLE_OK && x->tls)
                code = set_tls(x->tls, easy);
        if (code == CURLE_OK && x->tls && x->tls->server_name)
                code = set_server_name(x, easy);
        return code;
}

/* Sets every option of a handle that is new or was reset. */
static CURLcode set_all_options(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        /* Otherwise libcurl would remove "." and "..", and the request would go elsewhere. */
        SET(CURLOPT_PATH_AS_IS, 1L);
        SET(CURLOPT_URL, x->request.url);
        SET(CURLOPT_PREREQFUNCTION, hf__exchange_on_prereq);
        SET(CURLOPT_HEADERFUNCTION, hf__http_response_on_header);
        SET(CURLOPT_WRITEFUNCTION, hf__http_response_on_body);
        SET(CURLOPT_PRIVATE, x);
        SET(CURLOPT_ERRORBUFFER, x->error_text);
        SET(CURLOPT_HTTPHEADER, x->headers);
        SET(CURLOPT_PREREQDATA, x);
        SET(CURLOPT_HEADERDATA, x);
        SET(CURLOPT_WRITEDATA, x);
        SET(CURLOPT_SOCKOPTDATA, x);
        SET(CURLOPT_OPENSOCKETDATA, x);
        if (code == CURLE_OK)
                code = set_method(x, easy);
        if (code == CURLE_OK)
                code = set_version(x, easy);
        if (code == CURLE_OK)
                code = set_transport(x, easy);
        return code;
}

/* ---- kept handles ---- */

CURLcode hf__curl_options_acquire_handle(struct hf__exchange *x) {
        struct hf__curl_options *options = &x->engine->options;

        hf__engine_assert_thread(x->engine);
        assert(!x->easy);
        x->easy = options->n_idle > 0 ? options->idle[--options->n_idle] : curl_easy_init();
        return x->easy ? set_all_options(x, x->easy) : CURLE_OUT_OF_MEMORY;
}

void hf__curl_options_release_handle(struct hf__exchange *x) {
        struct hf__curl_options *options = &x->engine->options;

        hf__engine_assert_thread(x->engine);
        assert(x->easy && !x->pool);
        if (options->n_idle == HF__HTTP_N_IDLE) {
                curl_easy_cleanup(x->easy);
        } else {
                curl_easy_reset(x->easy);
                /* Set again after the reset: without it, cleaning up the handle would change the
                 * process's action for SIGPIPE. */
                (void)curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL, 1L);
                assert(options->n_idle < HF__HTTP_N_IDLE);
                options->idle[options->n_idle++] = x->easy;
        }
        x->easy = NULL;
}

void hf__curl_options_done(struct hf__http_engine *engine) {
        struct hf__curl_options *options = &engine->options;

        while (options->n_idle > 0)
                curl_easy_cleanup(options->idle[--options->n_idle]);
}
