/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of curl for one request: a fresh handle's options. Nothing here has state; the exchange owns all memory that
 * the options point to, and outlives its use of the handle.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http_engine_private.h"

#define CONNECT_TIMEOUT_MS 30000L
/* Made anew for each request with a body: the default of 64 KiB costs the heap more than the sending does. */
#define UPLOAD_BUFFER      16384L
#define KEEPALIVE_IDLE_S   10L
#define KEEPALIVE_INTVL_S  5L
#define UNACKED_TIMEOUT_MS 20000u /* sent bytes that are not acknowledged for so long: the connection is dead */

#define SET(option, value)                                                                                                                 \
        if (!code)                                                                                                                         \
        code = curl_easy_setopt(easy, option, value)

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
        struct hf__exchange *x = ctx;
        unsigned timeout_ms = UNACKED_TIMEOUT_MS;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms); /* fails on unix sockets */
        if (hf__http_shares_connections(&x->request))
                hf__lanes_cork(x->engine, fd);
        return CURL_SOCKOPT_OK;
}

/* The certificate's name is another than the URL's host: ask curl for that name, at the URL's address. */
static CURLcode set_server_name(struct hf__exchange *x, CURL *easy) {
        char *host = NULL, *port = NULL;
        struct hf__strbuf text = {0};
        CURLcode code = CURLE_OUT_OF_MEMORY;
        CURLU *url = curl_url();

        if (!url || curl_url_set(url, CURLUPART_URL, x->request.url, 0) || curl_url_get(url, CURLUPART_HOST, &host, 0) ||
            curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) || curl_url_set(url, CURLUPART_HOST, x->tls->server_name, 0) ||
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
        case HF__HTTP_1_1: return curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        case HF__HTTP_2: version = CURL_HTTP_VERSION_2TLS; break;
        case HF__HTTP_2_PRIOR_KNOWLEDGE:
                version = x->is_h2c && x->expects_reuse ? CURL_HTTP_VERSION_2_0 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
                break;
        }
        SET(CURLOPT_HTTP_VERSION, version);
        /* Waits for a connection that is being made, and may then share it, instead of making one more. */
        if (hf__http_shares_connections(&x->request))
                SET(CURLOPT_PIPEWAIT, 1L);
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
        SET(CURLOPT_SOCKOPTDATA, x);
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

CURLcode hf__exchange_set_options(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_PRIVATE, x);
        SET(CURLOPT_ERRORBUFFER, x->error_text);
        SET(CURLOPT_URL, x->request.url);
        SET(CURLOPT_HTTPHEADER, x->headers);
        SET(CURLOPT_PREREQFUNCTION, hf__exchange_on_prereq);
        SET(CURLOPT_PREREQDATA, x);
        SET(CURLOPT_HEADERFUNCTION, hf__answer_on_header);
        SET(CURLOPT_HEADERDATA, x);
        SET(CURLOPT_WRITEFUNCTION, hf__answer_on_body);
        SET(CURLOPT_WRITEDATA, x);
        if (!code)
                code = set_method(x, easy);
        if (!code)
                code = set_version(x, easy);
        if (!code)
                code = set_transport(x, easy);
        return code;
}
