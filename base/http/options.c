/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of curl for one request: its handle and the handle's options. The exchange owns all
 * memory that the options point to, and outlives its use of the handle.
 *
 * The engine keeps handles for further requests, with no option set, or, after a request to a URL
 * that recurs and that ended well, with all of them: the next to that URL sets those that are its
 * own (set_own). What the others of a kept handle point to is stale, and is not looked at before
 * they are set again.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http/engine_private.h"

#define CONNECT_TIMEOUT_MS 30000L
/* Made anew for each request with a body: the default of 64 KiB costs the heap more than the
 * sending does. */
#define UPLOAD_BUFFER     16384L
#define KEEPALIVE_IDLE_S  10L
#define KEEPALIVE_INTVL_S 5L
#define UNACKED_TIMEOUT_MS                                                                         \
        20000u /* sent bytes that are not acknowledged for so long: the connection is dead */

#define SET(option, value)                                                                         \
        if (!code)                                                                                 \
        code = curl_easy_setopt(easy, option, value)

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
        struct hf__exchange *x = ctx;
        unsigned timeout_ms = UNACKED_TIMEOUT_MS;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
                         sizeof timeout_ms); /* fails on unix sockets */
        hf__lanes_opened(x->engine, fd);
        if (hf__http_shares_connections(&x->request))
                hf__lanes_cork(x->pool, fd);
        return CURL_SOCKOPT_OK;
}

/* The certificate's name is another than the URL's host: ask curl for that name, at the URL's
 * address. */
static CURLcode set_server_name(struct hf__exchange *x, CURL *easy) {
        char *host = NULL, *port = NULL;
        struct hf__strbuf text = {0};
        CURLcode code = CURLE_OUT_OF_MEMORY;
        CURLU *url = curl_url();

        if (!url || curl_url_set(url, CURLUPART_URL, x->request.url, 0) ||
            curl_url_get(url, CURLUPART_HOST, &host, 0) ||
            curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
            curl_url_set(url, CURLUPART_HOST, x->tls->server_name, 0) ||
            curl_url_get(url, CURLUPART_URL, &x->url_override, 0))
                goto end;
        hf__strbuf_printf(&text, "::%s:%s", host, port);
        if (text.error || !(x->connect_to = curl_slist_append(NULL, text.data)))
                goto end;
        code = CURLE_OK;
        SET(CURLOPT_URL, x->url_override);
        SET(CURLOPT_CONNECT_TO, x->connect_to);
end:
        hf__strbuf_done(&text);
        curl_free(host);
        curl_free(port);
        curl_url_cleanup(url);
        return code;
}

static CURLcode set_method(struct hf__exchange *x, CURL *easy) {
        const char *method = x->request.method;
        CURLcode code = CURLE_OK;

        if (strcmp(method, "GET") == 0 && x->request.n_body == 0)
                return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        if (strcmp(method, "HEAD") == 0)
                return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        if (x->request.n_body > 0 || strcmp(method, "DELETE") != 0) {
                SET(CURLOPT_POSTFIELDS, x->request.n_body > 0 ? (const char *)x->request.body : "");
                SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->request.n_body);
        }
        if (strcmp(method, "POST") != 0)
                SET(CURLOPT_CUSTOMREQUEST, method);
        return code;
}

bool hf__http_shares_connections(const struct hf__http_request *request) {
        return request->version == HF__HTTP_2_PRIOR_KNOWLEDGE ||
               (request->version != HF__HTTP_1_1 && strncmp(request->url, "https:", 6) == 0);
}

static CURLcode set_version(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;
        long version = CURL_HTTP_VERSION_2TLS;

        switch (x->request.version) {
        case HF__HTTP_ANY: break;
        case HF__HTTP_1_1: version = CURL_HTTP_VERSION_1_1; break;
        case HF__HTTP_2: version = CURL_HTTP_VERSION_2TLS; break;
        case HF__HTTP_2_PRIOR_KNOWLEDGE:
                version = x->is_h2c && x->expects_reuse ? CURL_HTTP_VERSION_2_0
                                                        : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
                break;
        }
        SET(CURLOPT_HTTP_VERSION, version);
        /* Waits for a connection that is being made, and may then share it, instead of making one
         * more. */
        SET(CURLOPT_PIPEWAIT, (long)hf__http_shares_connections(&x->request));
        return code;
}

static CURLcode set_transport(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_NOSIGNAL, 1L);
        SET(CURLOPT_QUICK_EXIT, 1L); /* removing a handle must not wait for the system's resolver */
        SET(CURLOPT_PROXY, "");      /* whatever the host's environment says */
        SET(CURLOPT_PROTOCOLS_STR, "http,https");
        SET(CURLOPT_TCP_NODELAY, 1L);
        SET(CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
        SET(CURLOPT_TCP_KEEPALIVE, 1L);
        SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTVL_S);
        SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
        SET(CURLOPT_CLOSESOCKETFUNCTION, hf__lanes_close_socket);
        SET(CURLOPT_CLOSESOCKETDATA, x->engine);
        SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
        if (x->request.unix_socket)
                SET(CURLOPT_UNIX_SOCKET_PATH, x->request.unix_socket);
        if (!code && x->tls)
                code = hf__http_tls_apply(x->tls, easy);
        if (!code && x->tls && x->tls->server_name)
                code = set_server_name(x, easy);
        return code;
}

/* What differs between requests of one URL. */
static CURLcode set_own(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_PRIVATE, x);
        SET(CURLOPT_ERRORBUFFER, x->error_text);
        SET(CURLOPT_HTTPHEADER, x->headers);
        SET(CURLOPT_PREREQDATA, x);
        SET(CURLOPT_HEADERDATA, x);
        SET(CURLOPT_WRITEDATA, x);
        SET(CURLOPT_SOCKOPTDATA, x);
        if (!code)
                code = set_method(x, easy);
        if (!code)
                code = set_version(x, easy);
        return code;
}

static CURLcode set_all(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_URL, x->request.url);
        if (x->url)
                SET(CURLOPT_CURLU, x->url->parsed);
        SET(CURLOPT_PREREQFUNCTION, hf__exchange_on_prereq);
        SET(CURLOPT_HEADERFUNCTION, hf__response_on_header);
        SET(CURLOPT_WRITEFUNCTION, hf__response_on_body);
        if (!code)
                code = set_own(x, easy);
        if (!code)
                code = set_transport(x, easy);
        return code;
}

/* ---- what is kept ---- */

/*
 * Its like are alike in all but what set_own says: a POST always has a body there. A handle
 * outlives its request's hold on its certificates, and a server name of their own makes another URL
 * (set_server_name), so those are not among them.
 */
static bool is_plain(const struct hf__http_request *request) {
        return !request->tls && !request->unix_socket && strcmp(request->method, "POST") == 0;
}

/* NULL = it is not one that recurs, or there is no room or no memory, or libcurl will say itself
 * what is wrong with it. */
static const struct hf__http_url *find_url(struct hf__http_engine *engine,
                                           const struct hf__http_request *request) {
        if (!request->url_recurs || !is_plain(request))
                return NULL;
        for (size_t i = 0; i < engine->n_urls; i++)
                if (strcmp(engine->urls[i].text, request->url) == 0)
                        return &engine->urls[i];
        if (engine->n_urls == HF__HTTP_N_URLS)
                return NULL;
        struct hf__http_url url = {.text = strdup(request->url), .parsed = curl_url()};
        if (!url.text || !url.parsed || curl_url_set(url.parsed, CURLUPART_URL, url.text, 0)) {
                free(url.text);
                curl_url_cleanup(url.parsed);
                return NULL;
        }
        engine->urls[engine->n_urls] = url;
        return &engine->urls[engine->n_urls++];
}

/* The last that has the URL's options, or the last. */
static struct hf__http_idle take_idle(struct hf__http_engine *engine,
                                      const struct hf__http_url *url) {
        size_t i = engine->n_idle;

        if (i == 0)
                return (struct hf__http_idle){.easy = curl_easy_init()};
        while (url && i > 0 && engine->idle[i - 1].url != url)
                i--;
        if (i == 0)
                i = engine->n_idle;
        struct hf__http_idle idle = engine->idle[i - 1];
        engine->idle[i - 1] = engine->idle[--engine->n_idle];
        return idle;
}

CURLcode hf__exchange_take_handle(struct hf__exchange *x) {
        x->url = find_url(x->engine, &x->request);
        struct hf__http_idle idle = take_idle(x->engine, x->url);
        x->easy = idle.easy;
        if (!x->easy)
                return CURLE_OUT_OF_MEMORY;
        if (idle.url && idle.url == x->url)
                return set_own(x, x->easy);
        if (idle.url)
                curl_easy_reset(x->easy);
        return set_all(x, x->easy);
}

void hf__exchange_give_handle(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;
        const struct hf__http_url *url = x->may_keep_options ? x->url : NULL;

        if (engine->n_idle == HF__HTTP_N_IDLE) {
                curl_easy_cleanup(x->easy);
        } else {
                if (url)
                        (void)curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, NULL);
                else
                        curl_easy_reset(x->easy);
                (void)curl_easy_setopt(x->easy, CURLOPT_NOSIGNAL,
                                       1L); /* for its cleanup, which would touch SIGPIPE */
                engine->idle[engine->n_idle++] = (struct hf__http_idle){x->easy, url};
        }
        x->easy = NULL;
}

void hf__options_done(struct hf__http_engine *engine) {
        while (engine->n_idle > 0)
                curl_easy_cleanup(engine->idle[--engine->n_idle].easy);
        while (engine->n_urls > 0) {
                struct hf__http_url *url = &engine->urls[--engine->n_urls];
                free(url->text);
                curl_url_cleanup(url->parsed);
        }
}
