/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request over one curl handle.
 *
 * What may have happened to it at the peer is the point of the outcome. curl calls on_prereq when it has a connection and
 * is about to send: before that nothing was sent, and a failure is HF_E_UNAVAILABLE; after that the peer may have acted,
 * and whatever breaks is HF_E_TIMEOUT. curl would by itself send a request a second time when a reused connection breaks
 * before the answer: the peer may have acted on the first, and the second answer ("conflict") would then be a lie. So the
 * second on_prereq ends a request that is not idempotent. (Pings and refused streams fall under that too: rather unknown
 * once more than is needed.)
 *
 * Clear-text HTTP/2 with libcurl before 8.0: a request with "prior knowledge" can only make a new connection (on a kept one it
 * fails, curl issue 10634), one with "HTTP/2" can only share one (with none it would begin in HTTP/1.1). So the version is
 * chosen by what is expected, on_prereq sees which it has become, and a request that guessed wrong starts again, before
 * anything of it was sent. While one, the pioneer, makes the first connection to an origin, the others to it are held.
 *
 * The answer may be cut into header blocks: 1xx answers, the answer's own, and trailers, which have no status line. gRPC's
 * status is in the trailers, or in the answer's own block when there is no body.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/http_engine_private.h"

#define DEFAULT_MAX_BODY   ((size_t)8 << 20)
#define CONNECT_TIMEOUT_MS 30000L
/* Made anew for each request with a body: the default of 64 KiB costs the heap more than the sending does. */
#define UPLOAD_BUFFER      16384L
#define KEEPALIVE_IDLE_S   10L
#define KEEPALIVE_INTVL_S  5L
#define MAX_RESTARTS       8
#define LARGE_PIECE        ((size_t)CURL_MAX_WRITE_SIZE / 2) /* curl's buffer was full: the rest of it may have been headers */
#define UNACKED_TIMEOUT_MS 20000u                            /* sent bytes that are not acknowledged for so long: the connection is dead */

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

/* "Host: " and what the URL says, when curl is asked for another name (see set_server_name): that one is for TLS alone. */
static int host_header(const struct hf__http_request *request, char **ret_header) {
        const char *authority = strstr(request->url, "://");

        *ret_header = NULL;
        if (!request->tls || !request->tls->server_name || !authority || has_header(request, "Host"))
                return 0;
        authority += strlen("://");
        return asprintf(ret_header, "Host: %.*s", (int)strcspn(authority, "/?#"), authority) < 0 ? -ENOMEM : 0;
}

/* One block of memory holds the exchange, curl's list of headers, the strings and the body. */
struct hf__exchange *hf__exchange_new(struct hf__http_engine *engine, const struct hf__http_request *request) {
        const char *extra[3] = {"Expect:"}; /* an empty value takes a header of curl's own away */
        size_t n_extra = 1;
        char *host;

        if (host_header(request, &host) < 0)
                return NULL;
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
        struct hf__exchange *x = malloc(sizeof *x + n_headers * sizeof *x->headers + n_strings + request->n_body + 1);
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
                x->headers[i].data = place(&end, i < request->n_headers ? request->headers[i] : extra[i - request->n_headers]);
                x->headers[i].next = i + 1 < n_headers ? &x->headers[i + 1] : NULL;
        }
        free(host);
        x->request.headers = NULL;
        x->request.idempotent = request->idempotent || strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
        if (request->n_body > 0)
                x->request.body = memcpy(end, request->body, request->n_body);
        x->tls = hf__http_tls_ref(request->tls);
        x->body.max = request->max_body ? request->max_body : DEFAULT_MAX_BODY;
        hf_nsec now = hf_now(engine->clock);
        x->head_deadline =
                request->head_timeout > 0 && request->head_timeout < HF_NSEC_NEVER - now ? now + request->head_timeout : HF_NSEC_NEVER;
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

/* ---- what curl calls ---- */

static void enter_gate(struct hf__pool *pool, struct hf__exchange **list, struct hf__exchange *x) {
        x->gate = pool;
        x->next_gate = *list;
        if (x->next_gate)
                x->next_gate->link_gate = &x->next_gate;
        x->link_gate = list;
        *list = x;
}

/* The loop then looks at those that are held. */
static void leave_gate(struct hf__exchange *x) {
        if (!x->gate)
                return;
        *x->link_gate = x->next_gate;
        if (x->next_gate)
                x->next_gate->link_gate = x->link_gate;
        x->gate->gate_moved = true;
        x->gate->curl_due = 0;
        x->gate = NULL;
}

/* A pioneer's connection can be shared once the peer has spoken: its first words say how many streams it takes. */
void hf__exchange_pioneers_heard(struct hf__pool *pool) {
        for (struct hf__exchange *x = pool->pioneers, *next; x; x = next) {
                next = x->next_gate;
                if (x->may_have_sent) {
                        pool->h2c_up = true;
                        leave_gate(x);
                }
        }
}

static bool guessed_wrong(struct hf__exchange *x) {
        long n_connects = 0;

        if (!x->is_h2c || curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &n_connects))
                return false;
        bool reuses = n_connects == 0;
        if (reuses == x->expects_reuse) {
                x->pool->h2c_up = x->pool->h2c_up || reuses;
                return false;
        }
        x->pool->h2c_up = reuses;
        x->expects_reuse = reuses;
        x->must_restart = true;
        return true;
}

static int on_prereq(void *ctx, char *peer, char *local, int peer_port, int local_port) {
        struct hf__exchange *x = ctx;

        if (guessed_wrong(x))
                return CURL_PREREQFUNC_ABORT;
        if (x->may_have_sent && !x->request.idempotent) {
                x->verdict = HF_E_TIMEOUT;
                (void)strcpy(x->error_text, "the connection broke after the request was sent");
                return CURL_PREREQFUNC_ABORT;
        }
        x->may_have_sent = true;
        x->sent_at = hf_now(x->engine->clock);
        x->local_port = local_port;
        return CURL_PREREQFUNC_OK;
}

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose) {
        unsigned timeout_ms = UNACKED_TIMEOUT_MS;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms); /* fails on unix sockets */
        return CURL_SOCKOPT_OK;
}

static void keep(struct hf__exchange *x, int outcome) {
        if (!x->verdict)
                x->verdict = outcome;
}

/* If the line is "name: value", its value without the space around it. */
static bool header_is(const char *line, size_t n, const char *name, const char **ret_value, size_t *ret_n) {
        size_t n_name = strlen(name);

        if (n <= n_name || line[n_name] != ':' || strncasecmp(line, name, n_name) != 0)
                return false;
        for (line += n_name + 1, n -= n_name + 1; n > 0 && (*line == ' ' || *line == '\t'); line++)
                n--;
        while (n > 0 && strchr("\r\n \t", line[n - 1]))
                n--;
        *ret_value = line;
        *ret_n = n;
        return true;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* gRPC's messages are percent-encoded. */
static void percent_decode(char *text) {
        char *to = text;

        for (; *text; text++)
                if (*text == '%' && hex_digit(text[1]) >= 0 && hex_digit(text[2]) >= 0) {
                        *to++ = (char)(hex_digit(text[1]) << 4 | hex_digit(text[2]));
                        text += 2;
                } else {
                        *to++ = *text;
                }
        *to = '\0';
}

/* Digits only; 0 for anything else (a date). */
static uint32_t parse_seconds(const char *value, size_t n) {
        uint32_t seconds = 0;

        for (size_t i = 0; i < n; i++) {
                if (value[i] < '0' || value[i] > '9' || seconds > 100000000)
                        return 0;
                seconds = seconds * 10 + (uint32_t)(value[i] - '0');
        }
        return seconds;
}

static bool keep_text(char **text, const char *value, size_t n) {
        free(*text);
        *text = strndup(value, n);
        return *text != NULL;
}

static bool note_header(struct hf__exchange *x, const char *line, size_t n) {
        const char *value;
        size_t n_value;

        switch (line[0] | 32) {
        case 'g':
                if (header_is(line, n, "grpc-status", &value, &n_value)) {
                        x->grpc_status = n_value ? (int)parse_seconds(value, n_value) : -1;
                } else if (header_is(line, n, "grpc-message", &value, &n_value)) {
                        if (!keep_text(&x->grpc_message, value, n_value))
                                return false;
                        percent_decode(x->grpc_message);
                }
                return true;
        case 'r':
                if (header_is(line, n, "retry-after", &value, &n_value))
                        x->retry_after_s = parse_seconds(value, n_value);
                return true;
        case 'h': return !header_is(line, n, "holdfast-fence", &value, &n_value) || keep_text(&x->fence_echo, value, n_value);
        default: return true;
        }
}

static void set_due(struct hf__exchange *x) {
        struct hf__duequeue *queue = &x->engine->due_exchanges;
        hf_nsec at = x->request.deadline;

        if (!x->head_done && x->head_deadline < at)
                at = x->head_deadline;
        hf__duequeue_remove(queue, &x->due);
        if (at != HF_NSEC_NEVER)
                hf__duequeue_add(queue, &x->due, at);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200" */
static int status_code(const char *line, size_t n) {
        const char *space = memchr(line, ' ', n);
        int code = 0;

        if (space)
                for (const char *p = space + 1; p < line + n && p < space + 4 && *p >= '0' && *p <= '9'; p++)
                        code = code * 10 + (*p - '0');
        return code;
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        x->pool->n_moved++;
        if (!x->head_done && n > 5 && memcmp(line, "HTTP/", 5) == 0) {
                x->block_code = status_code(line, n);
                return n;
        }
        if (n > 0 && (line[0] == '\r' || line[0] == '\n')) {
                if (x->head_done || x->block_code < 200)
                        return n; /* the end of a 1xx answer, or of the trailers */
                x->head_done = true;
                x->code = x->block_code;
                if (x->head_deadline != HF_NSEC_NEVER)
                        set_due(x);
                if (x->request.on_head && x->request.on_head(x->request.ctx, x->code) != 0) {
                        keep(x, HF_E_CANCELED);
                        return 0;
                }
                return n;
        }
        if (n > 0 && x->block_code >= 200 && !note_header(x, line, n))
                return 0; /* no memory: the answer is lost, so its outcome is unknown */
        return n;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        x->pool->n_moved++;
        if (n >= LARGE_PIECE)
                x->pool->kick_at = x->engine->now; /* see http_engine_lane.c */
        if (x->request.on_data) {
                if (x->request.on_data(x->request.ctx, data, n) == 0)
                        return n;
                keep(x, HF_E_CANCELED);
                return CURL_WRITEFUNC_ERROR;
        }
        hf__strbuf_add(&x->body, data, n);
        if (!x->body.error)
                return n;
        keep(x, x->body.error);
        return CURL_WRITEFUNC_ERROR;
}

/* ---- start ---- */

#define SET(option, value)                                                                                                                 \
        if (!code)                                                                                                                         \
        code = curl_easy_setopt(easy, option, value)

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
        if (x->request.version == HF__HTTP_2_PRIOR_KNOWLEDGE || strncmp(x->request.url, "https:", 6) == 0)
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

static CURLcode set_options(struct hf__exchange *x, CURL *easy) {
        CURLcode code = CURLE_OK;

        SET(CURLOPT_PRIVATE, x);
        SET(CURLOPT_ERRORBUFFER, x->error_text);
        SET(CURLOPT_URL, x->request.url);
        SET(CURLOPT_HTTPHEADER, x->headers);
        SET(CURLOPT_PREREQFUNCTION, on_prereq);
        SET(CURLOPT_PREREQDATA, x);
        SET(CURLOPT_HEADERFUNCTION, on_header);
        SET(CURLOPT_HEADERDATA, x);
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, x);
        if (!code)
                code = set_method(x, easy);
        if (!code)
                code = set_version(x, easy);
        if (!code)
                code = set_transport(x, easy);
        return code;
}

/* ---- end ---- */

/* Gives the curl handle back; its connection stays with the pool. */
static void detach(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        leave_gate(x);
        if (!x->easy)
                return;
        if (x->pool) {
                (void)curl_multi_remove_handle(x->pool->multi, x->easy);
                x->pool->n_active--;
                x->pool = NULL;
        }
        if (engine->n_idle < HF__HTTP_N_IDLE) {
                curl_easy_reset(x->easy);
                engine->idle[engine->n_idle++] = x->easy;
        } else {
                curl_easy_cleanup(x->easy);
        }
        x->easy = NULL;
}

/* The last act: answers, and forgets it. */
static void finish(struct hf__exchange *x, int outcome) {
        hf__duequeue_remove(&x->engine->due_exchanges, &x->due);
        detach(x);
        bool whole = outcome == 0 && !x->request.on_data;
        struct hf__http_result result = {
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
        /* With TLS 1.3 the peer judges our certificate after our side of the handshake is done: its alert meets the first
         * read. It has not looked at the request then. */
        case CURLE_RECV_ERROR:
        case CURLE_SSL_CONNECT_ERROR:
                return strstr(text, "alert certificate") || strstr(text, "alert bad certificate") || strstr(text, "alert unknown ca") ||
                       strstr(text, "certificate required");
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

static void begin(struct hf__exchange *x);

void hf__exchange_curl_done(struct hf__exchange *x, CURLcode result) {
        if (x->must_restart && x->n_restarts++ < MAX_RESTARTS) {
                detach(x);
                x->must_restart = false;
                x->error_text[0] = '\0';
                begin(x);
                return;
        }
        if (result != CURLE_OK && !x->error_text[0]) {
                strncpy(x->error_text, curl_easy_strerror(result), sizeof x->error_text - 1);
                x->error_text[sizeof x->error_text - 1] = '\0';
        }
        finish(x, outcome_of(x, result));
}

static bool has_local_port(int fd, int port) {
        struct sockaddr_storage address;
        socklen_t n = sizeof address;

        if (getsockname(fd, (struct sockaddr *)&address, &n) < 0)
                return false;
        if (address.ss_family == AF_INET6)
                return ntohs(((struct sockaddr_in6 *)&address)->sin6_port) == port;
        return address.ss_family == AF_INET && ntohs(((struct sockaddr_in *)&address)->sin_port) == port;
}

/*
 * Whether its connection has been silent since the request was sent, or was not there to begin with: a request over TLS waits
 * for one that another is making, and when that one's handshake hangs, those that follow must not wait for it as well.
 */
static bool is_silent(const struct hf__exchange *x) {
        const struct hf__http_engine *engine = x->engine;

        if (!x->may_have_sent)
                return !x->is_h2c; /* there it may be streams that it waits for, and the gate sees to hung connections */
        if (x->local_port <= 0)
                return false;
        for (size_t fd = 0; fd < engine->n_sockets; fd++)
                if (engine->sockets[fd].pool == x->pool && engine->sockets[fd].last_in < x->sent_at &&
                    has_local_port((int)fd, x->local_port))
                        return true;
        return false;
}

void hf__exchange_abort(struct hf__exchange *x, int outcome) {
        if (outcome == HF_E_TIMEOUT && x->pool && is_silent(x))
                hf__lanes_distrust(x->pool);
        if (!x->error_text[0])
                (void)strcpy(x->error_text, outcome == HF_E_TIMEOUT ? "the deadline passed" : "canceled");
        finish(x, outcome);
}

static bool same_origin(const struct hf__exchange *a, const struct hf__exchange *b) {
        const char *unix_a = a->request.unix_socket ? a->request.unix_socket : "",
                   *unix_b = b->request.unix_socket ? b->request.unix_socket : "";
        size_t n = 7 + strcspn(a->request.url + 7, "/?#"); /* behind "http://" */

        return strncmp(a->request.url, b->request.url, n) == 0 && strchr("/?#", b->request.url[n]) && strcmp(unix_a, unix_b) == 0;
}

/* True when it must wait for another's connection; else it is a pioneer itself. */
static bool held_at_gate(struct hf__exchange *x, struct hf__pool *pool) {
        struct hf__exchange *pioneer = pool->pioneers;

        while (pioneer && !same_origin(pioneer, x))
                pioneer = pioneer->next_gate;
        enter_gate(pool, pioneer ? &pool->held : &pool->pioneers, x);
        return pioneer != NULL;
}

static size_t lane_of(const struct hf__exchange *x) { return x->request.lane + (x->is_h2c ? (size_t)HF__HTTP_N_LANES : 0); }

/* Adds it to its lane. */
static void begin(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;
        struct hf__pool *pool = engine->lanes[lane_of(x)];

        if (x->is_h2c && !x->expects_reuse && held_at_gate(x, pool))
                return;
        x->easy = engine->n_idle > 0 ? engine->idle[--engine->n_idle] : curl_easy_init();
        CURLcode code = x->easy ? set_options(x, x->easy) : CURLE_OUT_OF_MEMORY;
        x->pool = pool; /* before the handle is added: callbacks look at it */
        if (!code && curl_multi_add_handle(pool->multi, x->easy) == CURLM_OK) {
                pool->n_active++;
        } else {
                x->pool = NULL;
                hf__exchange_curl_done(x, code ? code : CURLE_OUT_OF_MEMORY);
        }
}

/* Each starts as things stand now, or is held once more. One that ends here and now calls back, which may change the lists
 * only by way of the mailbox. */
void hf__exchange_release_held(struct hf__pool *pool) {
        struct hf__exchange *held = pool->held, *next;

        for (struct hf__exchange *x = held; x; x = x->next_gate)
                x->gate = NULL;
        pool->held = NULL;
        pool->gate_moved = false;
        for (struct hf__exchange *x = held; x; x = next) {
                next = x->next_gate;
                x->expects_reuse = pool->h2c_up;
                begin(x);
        }
}

void hf__exchange_start(struct hf__exchange *x) {
        struct hf__http_engine *engine = x->engine;

        if (engine->stopping) {
                hf__exchange_abort(x, HF_E_CANCELED);
                return;
        }
        set_due(x);
        if (x->due.queued && x->due.at <= engine->now) {
                hf__exchange_abort(x, HF_E_TIMEOUT);
                return;
        }
        x->is_h2c = x->request.version == HF__HTTP_2_PRIOR_KNOWLEDGE && strncmp(x->request.url, "http:", 5) == 0 &&
                    curl_version_info(CURLVERSION_NOW)->version_num < 0x080000;
        x->expects_reuse = engine->lanes[lane_of(x)]->h2c_up;
        begin(x);
}
