/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine against a small HTTP/1.1 server in this process. The server has one thread per connection; what it does is
 * in the path.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/http_engine.h"
#include "base/thread.h"

/* ---- the server ---- */

#define MAX_CONNECTIONS 512

struct server {
        int fd, port;
        pthread_t thread;
        pthread_t handlers[MAX_CONNECTIONS];
        int fds[MAX_CONNECTIONS];
        int n_handlers;
        int n_cut_posts; /* atomic: how often /cut-second was really received */
};

struct handler {
        struct server *server;
        int fd;
};

static bool send_all(int fd, const char *text, size_t n) {
        while (n > 0) {
                ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
                if (sent <= 0)
                        return false;
                text += sent;
                n -= (size_t)sent;
        }
        return true;
}

static void wait_for_close(int fd) {
        char c;
        while (recv(fd, &c, 1, 0) > 0)
                ;
}

static bool reply(int fd, const char *head, const char *body, size_t n) {
        char text[512];
        int n_text = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, n);
        return send_all(fd, text, (size_t)n_text) && send_all(fd, body, n);
}

/* Reads one request; the head ends up NUL-terminated in text. False at the end of the connection. */
static bool read_request(int fd, char *text, size_t space, char **ret_body, size_t *ret_n_body) {
        size_t n = 0;
        char *end = NULL;

        while (!end) {
                ssize_t r = recv(fd, text + n, space - 1 - n, 0);
                if (r <= 0)
                        return false;
                n += (size_t)r;
                text[n] = '\0';
                end = strstr(text, "\r\n\r\n");
        }
        const char *length = strcasestr(text, "content-length:");
        size_t n_body = length && length < end ? (size_t)atoi(length + 15) : 0;
        *ret_body = end + 4;
        *ret_n_body = n_body;
        while (n < (size_t)(end + 4 - text) + n_body) {
                ssize_t r = recv(fd, text + n, space - 1 - n, 0);
                if (r <= 0)
                        return false;
                n += (size_t)r;
        }
        text[n] = '\0';
        end[2] = '\0';
        return true;
}

static bool send_stream(int fd) {
        return send_all(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 47) && send_all(fd, "3\r\none\r\n", 8) &&
               send_all(fd, "3\r\ntwo\r\n", 8);
}

/* False: the connection ends. */
static bool handle(struct server *server, int fd, const char *head, const char *body, size_t n_body) {
        char path[64] = "";
        sscanf(head, "%*s %63s", path);
        if (strcmp(path, "/ok") == 0)
                return reply(fd, "200 OK", "hello", 5);
        if (strcmp(path, "/echo") == 0)
                return reply(fd, "200 OK", body, n_body);
        if (strcmp(path, "/head") == 0) /* the request's head as the body */
                return reply(fd, "200 OK", head, strlen(head));
        if (strcmp(path, "/busy") == 0)
                return reply(fd, "429 Too Many\r\nRetry-After: 7\r\nHoldfast-Fence: ns/x;5;me\r\ngrpc-status: 14\r\ngrpc-message: a%20b",
                             "", 0);
        if (strcmp(path, "/early") == 0)
                return send_all(fd, "HTTP/1.1 103 Early\r\nRetry-After: 99\r\n\r\n", 39) && reply(fd, "201 Made", "x", 1);
        if (strcmp(path, "/big") == 0) {
                char *big = calloc(1, 1 << 20);
                assert(big);
                bool sent = reply(fd, "200 OK", big, 1 << 20);
                free(big);
                return sent;
        }
        if (strcmp(path, "/trailers") == 0)
                return send_stream(fd) && send_all(fd, "0\r\ngrpc-status: 0\r\ngrpc-message: %C3%A4\r\n\r\n", 43);
        if (strcmp(path, "/stream") == 0)
                (void)send_stream(fd); /* and no end */
        if (strcmp(path, "/cut") == 0)
                return false;
        if (strcmp(path, "/cut-body") == 0)
                return send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 42) && false;
        if (strcmp(path, "/cut-second") == 0) {
                __atomic_add_fetch(&server->n_cut_posts, 1, __ATOMIC_SEQ_CST);
                return false;
        }
        wait_for_close(fd); /* "/never" and "/stream" */
        return false;
}

static void *run_handler(void *ctx) {
        struct handler *handler = ctx;
        size_t space = 1 << 20;
        char *text = malloc(space), *body;
        size_t n_body;

        assert(text);
        while (read_request(handler->fd, text, space, &body, &n_body) && handle(handler->server, handler->fd, text, body, n_body))
                ;
        shutdown(handler->fd, SHUT_RDWR);
        free(text);
        free(handler);
        return NULL;
}

static void *run_server(void *ctx) {
        struct server *server = ctx;

        for (;;) {
                int fd = accept(server->fd, NULL, NULL);
                if (fd < 0)
                        return NULL;
                assert(server->n_handlers < MAX_CONNECTIONS);
                struct handler *handler = malloc(sizeof *handler);
                assert(handler);
                *handler = (struct handler){server, fd};
                server->fds[server->n_handlers] = fd;
                assert(pthread_create(&server->handlers[server->n_handlers++], NULL, run_handler, handler) == 0);
        }
}

static void server_start(struct server *server, const char *unix_path) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        socklen_t n = sizeof in;

        *server = (struct server){0};
        server->fd = socket(unix_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert(server->fd >= 0);
        if (unix_path) {
                snprintf(un.sun_path, sizeof un.sun_path, "%s", unix_path);
                assert(bind(server->fd, (struct sockaddr *)&un, sizeof un) == 0);
        } else {
                assert(bind(server->fd, (struct sockaddr *)&in, sizeof in) == 0);
                assert(getsockname(server->fd, (struct sockaddr *)&in, &n) == 0);
                server->port = ntohs(in.sin_port);
        }
        assert(listen(server->fd, 1024) == 0);
        assert(pthread_create(&server->thread, NULL, run_server, server) == 0);
}

static void server_stop(struct server *server) {
        shutdown(server->fd, SHUT_RDWR);
        pthread_join(server->thread, NULL);
        for (int i = 0; i < server->n_handlers; i++) {
                shutdown(server->fds[i], SHUT_RDWR);
                pthread_join(server->handlers[i], NULL);
                close(server->fds[i]);
        }
        close(server->fd);
}

/* ---- the client's side ---- */

struct answer {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_done, outcome, code, head_code, grpc_status, stop_at_data;
        uint32_t retry_after_s;
        char body[512], data[64], grpc_message[64], fence[64], error_text[256];
        size_t n_body;
};

static struct fixture {
        struct server server;
        struct hf_host host;
        struct hf__http_engine *engine;
        char url[64];
} f;

static hf_nsec in_ms(int64_t ms) { return hf_now(hf_clock_system()) + ms * HF_NSEC_PER_MSEC; }

static void answer_init(struct answer *a) {
        *a = (struct answer){0};
        assert_int_equal(hf__mutex_init(&a->mu), 0);
        assert_int_equal(hf_cond_init(&a->cond), 0);
}

static void answer_done(struct answer *a) {
        pthread_mutex_destroy(&a->mu);
        pthread_cond_destroy(&a->cond);
}

static int on_head(void *ctx, int code) {
        struct answer *a = ctx;
        pthread_mutex_lock(&a->mu);
        a->head_code = code;
        pthread_cond_broadcast(&a->cond);
        pthread_mutex_unlock(&a->mu);
        return 0;
}

static int on_data(void *ctx, const void *data, size_t n) {
        struct answer *a = ctx;
        pthread_mutex_lock(&a->mu);
        assert(strlen(a->data) + n < sizeof a->data);
        strncat(a->data, data, n);
        pthread_cond_broadcast(&a->cond);
        int r = a->stop_at_data;
        pthread_mutex_unlock(&a->mu);
        return r;
}

static void on_done(void *ctx, const struct hf__http_result *result) {
        struct answer *a = ctx;
        pthread_mutex_lock(&a->mu);
        a->n_done++;
        a->outcome = result->outcome;
        a->code = result->code;
        a->n_body = result->n_body;
        a->retry_after_s = result->retry_after_s;
        a->grpc_status = result->grpc_status;
        snprintf(a->body, sizeof a->body, "%.*s", (int)(result->n_body < 511 ? result->n_body : 511), (const char *)result->body);
        snprintf(a->grpc_message, sizeof a->grpc_message, "%s", result->grpc_message);
        snprintf(a->fence, sizeof a->fence, "%s", result->fence_echo ? result->fence_echo : "(none)");
        snprintf(a->error_text, sizeof a->error_text, "%s", result->error_text);
        pthread_cond_broadcast(&a->cond);
        pthread_mutex_unlock(&a->mu);
}

static void wait_done(struct answer *a) {
        pthread_mutex_lock(&a->mu);
        while (!a->n_done)
                assert_int_equal(hf_clock_system()->wait(NULL, &a->cond, &a->mu, in_ms(60000)), 0);
        assert_int_equal(a->n_done, 1);
        pthread_mutex_unlock(&a->mu);
}

static void wait_data(struct answer *a, const char *expected) {
        pthread_mutex_lock(&a->mu);
        while (strcmp(a->data, expected) != 0)
                assert_int_equal(hf_clock_system()->wait(NULL, &a->cond, &a->mu, in_ms(60000)), 0);
        pthread_mutex_unlock(&a->mu);
}

static struct hf__http_request request_for(struct answer *a, const char *path, char *url, size_t space) {
        snprintf(url, space, "%s%s", f.url, path);
        return (struct hf__http_request){.method = "GET", .url = url, .deadline = in_ms(30000), .on_done = on_done, .ctx = a};
}

static void get(struct answer *a, const char *path) {
        char url[128];
        answer_init(a);
        struct hf__http_request request = request_for(a, path, url, sizeof url);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(a);
        answer_done(a);
}

static int setup(void **state) {
        server_start(&f.server, NULL);
        snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", f.server.port);
        f.host = (struct hf_host){.size = sizeof f.host};
        return hf__http_engine_new(&f.host, "test-http", &f.engine);
}

static int teardown(void **state) {
        f.engine = hf__http_engine_free(f.engine);
        server_stop(&f.server);
        return 0;
}

/* ---- tests ---- */

static void test_get_and_connection_is_kept(void **state) {
        struct answer a;
        for (int i = 0; i < 20; i++) {
                get(&a, "/ok");
                assert_int_equal(a.outcome, 0);
                assert_int_equal(a.code, 200);
                assert_string_equal(a.body, "hello");
                assert_int_equal(a.grpc_status, -1);
                assert_string_equal(a.fence, "(none)");
        }
        assert_int_equal(f.server.n_handlers, 1);
}

static void test_post_echo_and_headers(void **state) {
        struct answer a;
        char url[128], big[100000];
        const char *headers[] = {"X-One: 1", "Content-Type: application/json"};

        memset(big, 'x', sizeof big);
        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/echo", url, sizeof url);
        request.method = "PUT";
        request.body = big;
        request.n_body = sizeof big;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        memset(big, 'y', sizeof big); /* it was copied */
        wait_done(&a);
        answer_done(&a);
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.n_body, sizeof big);
        assert_int_equal(a.body[0], 'x');

        answer_init(&a);
        request = request_for(&a, "/head", url, sizeof url);
        request.method = "PATCH";
        request.headers = headers;
        request.n_headers = 2;
        request.body = "{}";
        request.n_body = 2;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        answer_done(&a);
        assert_memory_equal(a.body, "PATCH /head HTTP/1.1", 20);
        assert_non_null(strstr(a.body, "X-One: 1"));
        assert_non_null(strstr(a.body, "Content-Type: application/json"));
        assert_null(strcasestr(a.body, "expect"));
        assert_null(strcasestr(a.body, "urlencoded"));
}

static void test_special_headers(void **state) {
        struct answer a;
        get(&a, "/busy");
        assert_int_equal(a.outcome, 0);
        assert_int_equal(a.code, 429);
        assert_int_equal(a.retry_after_s, 7);
        assert_string_equal(a.fence, "ns/x;5;me");
        assert_int_equal(a.grpc_status, 14);
        assert_string_equal(a.grpc_message, "a b");
        get(&a, "/early");
        assert_int_equal(a.code, 201);
        assert_int_equal(a.retry_after_s, 0); /* of the 103: not the answer's */
        get(&a, "/trailers");
        assert_string_equal(a.body, "onetwo");
        assert_int_equal(a.grpc_status, 0);
        assert_string_equal(a.grpc_message, "\xc3\xa4");
}

static void test_outcomes(void **state) {
        struct answer a;
        char url[128], good[64];

        get(&a, "/cut");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(a.error_text[0]);
        get(&a, "/cut-body");
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(a.n_body, 0);

        struct server closed; /* a port where nobody listens any more */
        server_start(&closed, NULL);
        server_stop(&closed);
        memcpy(good, f.url, sizeof good);
        snprintf(f.url, sizeof f.url, "http://127.0.0.1:%d", closed.port);
        get(&a, "/ok");
        memcpy(f.url, good, sizeof good);
        assert_int_equal(a.outcome, HF_E_UNAVAILABLE);
        assert_int_equal(a.code, 0);

        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/big", url, sizeof url);
        request.max_body = 1000;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TOO_LARGE);
        answer_done(&a);

        answer_init(&a);
        request = request_for(&a, "", url, sizeof url);
        request.url = "gopher://127.0.0.1/";
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_INVALID);
        answer_done(&a);
        request.on_done = NULL;
        assert_true(hf__http_submit(f.engine, &request, NULL) < 0);
}

static void test_deadlines(void **state) {
        struct answer a;
        char url[128];

        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/never", url, sizeof url);
        request.deadline = in_ms(20);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_true(in_ms(0) >= request.deadline);
        answer_done(&a);

        answer_init(&a);
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 20 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        answer_done(&a);

        answer_init(&a);
        request.deadline = in_ms(0) - 1; /* gone by before it is submitted */
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        answer_done(&a);
        get(&a, "/ok");
        assert_int_equal(a.outcome, 0);
}

static void test_stream_outlives_its_head_timeout_and_is_canceled(void **state) {
        struct answer a, timer;
        char url[128];
        uint64_t id = 0;

        answer_init(&a);
        answer_init(&timer);
        struct hf__http_request request = request_for(&a, "/stream", url, sizeof url);
        request.on_head = on_head;
        request.on_data = on_data;
        request.deadline = HF_NSEC_NEVER;
        request.head_timeout = 2000 * HF_NSEC_PER_MSEC;
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        assert_true(id != 0);
        wait_data(&a, "onetwo");
        assert_int_equal(a.head_code, 200);
        assert_int_equal(a.n_done, 0);
        hf__http_cancel(f.engine, id);
        hf__http_cancel(f.engine, id);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        assert_int_equal(a.code, 200);
        hf__http_cancel(f.engine, id); /* long ended */
        hf__http_cancel(f.engine, 999999);

        answer_done(&a);
        answer_init(&a);
        a.stop_at_data = 1; /* the callback ends it */
        assert_int_equal(hf__http_submit(f.engine, &request, &id), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_CANCELED);
        answer_done(&a);
        answer_done(&timer);
}

/* The peer has taken the request on a kept connection and broken it: curl must not send it once more by itself. */
static void test_post_is_never_sent_twice(void **state) {
        struct answer a;
        char url[128];

        get(&a, "/ok");
        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/cut-second", url, sizeof url);
        request.method = "POST";
        request.body = "x";
        request.n_body = 1;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        answer_done(&a);
        assert_int_equal(a.outcome, HF_E_TIMEOUT);
        assert_int_equal(__atomic_load_n(&f.server.n_cut_posts, __ATOMIC_SEQ_CST), 1);
}

static void test_lanes_do_not_share_connections(void **state) {
        struct answer a;
        char url[128];

        for (int round = 0; round < 2; round++)
                for (unsigned lane = 0; lane < HF__HTTP_N_LANES; lane++) {
                        answer_init(&a);
                        struct hf__http_request request = request_for(&a, "/ok", url, sizeof url);
                        request.lane = lane;
                        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                        wait_done(&a);
                        assert_int_equal(a.outcome, 0);
                        answer_done(&a);
                }
        assert_int_equal(f.server.n_handlers, HF__HTTP_N_LANES);
}

static void post_recurring(struct answer *a, const char *path, const char *header, const char *body) {
        char url[128];

        answer_init(a);
        struct hf__http_request request = request_for(a, path, url, sizeof url);
        request.method = "POST";
        request.url_recurs = true;
        request.headers = &header;
        request.n_headers = header ? 1 : 0;
        request.body = body;
        request.n_body = strlen(body);
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(a);
        answer_done(a);
}

/* What libcurl has learnt of a URL serves the next request, but nothing else of the one before does. */
static void test_recurring_url(void **state) {
        struct answer a;

        for (int i = 0; i < 3; i++) {
                post_recurring(&a, "/head", "X-First: 1", "abc");
                assert_int_equal(a.outcome, 0);
                assert_memory_equal(a.body, "POST /head HTTP/1.1", 19);
                assert_non_null(strstr(a.body, "X-First: 1"));
                assert_non_null(strstr(a.body, "Content-Length: 3"));
                post_recurring(&a, "/echo", NULL, "one");
                assert_string_equal(a.body, "one");
                post_recurring(&a, "/head", NULL, "");
                assert_null(strstr(a.body, "X-First"));
                assert_non_null(strstr(a.body, "Content-Length: 0"));
                post_recurring(&a, "/cut", NULL, "x");
                assert_int_equal(a.outcome, HF_E_TIMEOUT);
                post_recurring(&a, "/echo", NULL, "");
                assert_int_equal(a.outcome, 0);
                assert_string_equal(a.body, "");
                get(&a, "/head");
                assert_memory_equal(a.body, "GET /head HTTP/1.1", 18);
        }
}

/* There is room for some only; the others are served as if they did not recur, and so is what is no URL. */
static void test_more_recurring_urls_than_are_kept(void **state) {
        struct answer a;
        char path[32];

        for (int i = 0; i < 100; i++) {
                snprintf(path, sizeof path, "/echo#%d", i);
                post_recurring(&a, path, NULL, path);
                assert_int_equal(a.outcome, 0);
                assert_string_equal(a.body, path);
        }
        answer_init(&a);
        struct hf__http_request request =
                {.method = "POST", .url = "nonsense://x y", .url_recurs = true, .deadline = in_ms(30000), .on_done = on_done, .ctx = &a};
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, HF_E_INVALID);
        answer_done(&a);
}

static void test_unix_socket(void **state) {
        char dir[] = "/tmp/hf-http-XXXXXX", path[64];
        struct server server;
        struct answer a;

        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/s", dir);
        server_start(&server, path);
        answer_init(&a);
        struct hf__http_request request = {.method = "GET",
                                           .url = "http://localhost/ok",
                                           .unix_socket = path,
                                           .deadline = in_ms(30000),
                                           .on_done = on_done,
                                           .ctx = &a};
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        wait_done(&a);
        assert_int_equal(a.outcome, 0);
        assert_string_equal(a.body, "hello");
        answer_done(&a);
        server_stop(&server);
        unlink(path);
        rmdir(dir);
}

struct tally {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int left, n[_HF_E_MAX];
};

static void on_tally(void *ctx, const struct hf__http_result *result) {
        struct tally *t = ctx;
        pthread_mutex_lock(&t->mu);
        assert(result->outcome >= 0);
        t->n[result->outcome]++;
        if (--t->left == 0)
                pthread_cond_broadcast(&t->cond);
        pthread_mutex_unlock(&t->mu);
}

static void tally_init(struct tally *t, int n) {
        *t = (struct tally){.left = n};
        assert_int_equal(hf__mutex_init(&t->mu), 0);
        assert_int_equal(hf_cond_init(&t->cond), 0);
}

static void tally_wait(struct tally *t) {
        pthread_mutex_lock(&t->mu);
        while (t->left)
                assert_int_equal(hf_clock_system()->wait(NULL, &t->cond, &t->mu, in_ms(60000)), 0);
        pthread_mutex_unlock(&t->mu);
}

/* Requests from several threads, each canceled at once by its submitter: each ends exactly once, one way or the other. */
static void *submit_and_cancel(void *ctx) {
        for (int i = 0; i < 50; i++) {
                char url[128];
                uint64_t id;
                snprintf(url, sizeof url, "%s/ok", f.url);
                struct hf__http_request request = {.method = "GET", .url = url, .deadline = in_ms(30000), .on_done = on_tally, .ctx = ctx};
                assert(hf__http_submit(f.engine, &request, &id) == 0);
                hf__http_cancel(f.engine, id - (uint64_t)(i % 3));
                hf__http_cancel(f.engine, id);
        }
        return NULL;
}

static void test_cancel_races(void **state) {
        pthread_t thread[3];
        struct tally t;

        tally_init(&t, 150);
        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, submit_and_cancel, &t), 0);
        for (int i = 0; i < 3; i++)
                pthread_join(thread[i], NULL);
        tally_wait(&t);
        assert_int_equal(t.n[0] + t.n[HF_E_CANCELED], 150);
        assert_true(t.n[HF_E_CANCELED] > 0);
}

static void test_free_with_requests_under_way(void **state) {
        struct tally t;
        static const char *const paths[] = {"/never", "/stream", "/ok"};

        for (int round = 0; round < 10; round++) {
                tally_init(&t, 30);
                for (int i = 0; i < 30; i++) {
                        char url[128];
                        snprintf(url, sizeof url, "%s%s", f.url, paths[i % 3]);
                        struct hf__http_request request = {.method = "GET",
                                                           .url = url,
                                                           .lane = (unsigned)i % 4,
                                                           .deadline = in_ms(30000),
                                                           .on_done = on_tally,
                                                           .ctx = &t};
                        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                }
                f.engine = hf__http_engine_free(f.engine);
                assert_int_equal(t.left, 0);
                assert_int_equal(t.n[0] + t.n[HF_E_CANCELED], 30);
                assert_true(t.n[HF_E_CANCELED] >= 20);
                assert_int_equal(hf__http_engine_new(&f.host, "test-http", &f.engine), 0);
        }
}

static void test_burst_of_1000(void **state) {
        struct tally t;

        tally_init(&t, 1000);
        for (int i = 0; i < 1000; i++) {
                char url[128];
                snprintf(url, sizeof url, "%s/ok", f.url);
                /* In waves, for the server has a thread per connection. */
                struct hf__http_request request = {.method = "GET", .url = url, .deadline = in_ms(60000), .on_done = on_tally, .ctx = &t};
                assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
                if (i % 100 == 99) {
                        pthread_mutex_lock(&t.mu);
                        while (t.left > 999 - i)
                                assert_int_equal(hf_clock_system()->wait(NULL, &t.cond, &t.mu, in_ms(1)) & ~HF_E_TIMEOUT, 0);
                        pthread_mutex_unlock(&t.mu);
                }
        }
        tally_wait(&t);
        assert_int_equal(t.n[0], 1000);
}

struct ring {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int order[4], n;
        struct ring_call {
                struct ring *ring;
                int number;
        } calls[4];
};

static void on_ring(void *ctx) {
        struct ring_call *call = ctx;
        pthread_mutex_lock(&call->ring->mu);
        call->ring->order[call->ring->n++] = call->number;
        pthread_cond_broadcast(&call->ring->cond);
        pthread_mutex_unlock(&call->ring->mu);
}

static void test_calls_at_their_time(void **state) {
        static const int64_t ms[] = {20, 0, 10, 3600000};
        struct ring ring = {0};
        hf_nsec start = in_ms(0);

        assert_int_equal(hf__mutex_init(&ring.mu), 0);
        assert_int_equal(hf_cond_init(&ring.cond), 0);
        for (int i = 0; i < 4; i++) {
                ring.calls[i] = (struct ring_call){&ring, i};
                assert_int_equal(hf__http_call_at(f.engine, start + ms[i] * HF_NSEC_PER_MSEC, on_ring, &ring.calls[i]), 0);
        }
        pthread_mutex_lock(&ring.mu);
        while (ring.n < 3)
                assert_int_equal(hf_clock_system()->wait(NULL, &ring.cond, &ring.mu, in_ms(60000)), 0);
        assert_true(in_ms(0) >= start + 20 * HF_NSEC_PER_MSEC);
        pthread_mutex_unlock(&ring.mu);
        assert_int_equal(ring.order[0], 1);
        assert_int_equal(ring.order[1], 2);
        assert_int_equal(ring.order[2], 0);
        f.engine = hf__http_engine_free(f.engine); /* calls the one that is an hour off */
        assert_int_equal(ring.n, 4);
        assert_int_equal(ring.order[3], 3);
}

static struct hf__http_engine *submit_engine;
static int submit_again_result, call_again_result;
static void on_done_submit_again(void *ctx, const struct hf__http_result *result) {
        struct hf__http_request request = {.method = "GET",
                                           .url = "http://127.0.0.1:1/",
                                           .deadline = in_ms(1000),
                                           .on_done = on_done_submit_again};
        submit_again_result = hf__http_submit(submit_engine, &request, NULL);
        call_again_result = hf__http_call_at(submit_engine, 0, NULL, NULL);
}

static void test_submission_during_the_stop_is_refused(void **state) {
        char url[128];
        struct answer a;

        answer_init(&a);
        struct hf__http_request request = request_for(&a, "/never", url, sizeof url);
        request.on_done = on_done_submit_again;
        submit_engine = f.engine;
        assert_int_equal(hf__http_submit(f.engine, &request, NULL), 0);
        f.engine = hf__http_engine_free(f.engine);
        assert_int_equal(submit_again_result, HF_E_CLOSED);
        assert_int_equal(call_again_result, HF_E_CLOSED);
        answer_done(&a);
}

static void test_turns_rise(void **state) {
        uint64_t before = hf__http_engine_turns(f.engine);
        struct answer a;
        get(&a, "/ok");
        assert_true(hf__http_engine_turns(f.engine) > before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_get_and_connection_is_kept),
                TEST(test_post_echo_and_headers),
                TEST(test_special_headers),
                TEST(test_outcomes),
                TEST(test_deadlines),
                TEST(test_stream_outlives_its_head_timeout_and_is_canceled),
                TEST(test_post_is_never_sent_twice),
                TEST(test_lanes_do_not_share_connections),
                TEST(test_recurring_url),
                TEST(test_more_recurring_urls_than_are_kept),
                TEST(test_unix_socket),
                TEST(test_cancel_races),
                TEST(test_free_with_requests_under_way),
                TEST(test_burst_of_1000),
                TEST(test_calls_at_their_time),
                TEST(test_submission_during_the_stop_is_refused),
                TEST(test_turns_rise),
        };
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
