/* SPDX-License-Identifier: Apache-2.0 */
/* A REST client with several servers, and with a host name of several addresses. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
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
#include <unistd.h>

#include <holdfast/informer.h>

#include "base/http/engine.h"
#include "scripted_server.h"

/* The tries after the first. The engine's thread writes the last one; the test reads it when its
 * request has ended. */
static struct {
        bool refused;       /* set it before the request */
        bool refuses_waits; /* likewise, for tries after a Retry-After */
        int n;
        hf_nsec deadline, not_before, connect_timeout;
        char url[128];
} again;

int __real_hf__http_submit_again(struct hf__http_engine *engine,
                                 const struct hf__http_request *request, uint64_t id);
int __wrap_hf__http_submit_again(struct hf__http_engine *engine,
                                 const struct hf__http_request *request, uint64_t id);
int __wrap_hf__http_submit_again(struct hf__http_engine *engine,
                                 const struct hf__http_request *request, uint64_t id) {
        again.n++;
        again.deadline = request->deadline;
        again.not_before = request->not_before;
        again.connect_timeout = request->connect_timeout;
        (void)snprintf(again.url, sizeof again.url, "%s", request->url);
        if (again.refused || (again.refuses_waits && request->not_before > 0))
                return -ENOMEM;
        return __real_hf__http_submit_again(engine, request, id);
}

/* The times and the lane of the last first try, likewise. */
static hf_nsec first_connect_timeout, first_head_timeout;
static unsigned first_lane;

int __real_hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                           uint64_t *ret_id);
int __wrap_hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                           uint64_t *ret_id);
int __wrap_hf__http_submit(struct hf__http_engine *engine, const struct hf__http_request *request,
                           uint64_t *ret_id) {
        first_connect_timeout = request->connect_timeout;
        first_head_timeout = request->head_timeout;
        first_lane = request->lane;
        return __real_hf__http_submit(engine, request, ret_id);
}

static struct scripted_server a, b;

static int start_servers(void **state) {
        scripted_server_start(&a);
        scripted_server_start(&b);
        return 0;
}

static int stop_servers(void **state) {
        scripted_server_stop(&a);
        scripted_server_stop(&b);
        return 0;
}

static int reset_servers(void **state) {
        scripted_server_set_response(&a, "200 OK", "", "{\"at\":\"a\"}");
        scripted_server_set_response(&b, "200 OK", "", "{\"at\":\"b\"}");
        memset(&again, 0, sizeof again);
        return 0;
}

static const struct hf_host host = {.size = sizeof host};

static struct hf_client *client_of(const char *first, const char *second) {
        const char *const others[] = {second};
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = first,
                                              .insecure = first[4] == 's',
                                              .other_servers = others,
                                              .n_other_servers = second ? 1 : 0};
        struct hf_client *client = NULL;
        struct hf_status status = {0};

        if (hf_rest_client_new(&host, &config, &client, &status) != 0)
                fail_msg("%s", status.message);
        return client;
}

static const char *url_of(int port, const char *scheme, const char *name) {
        static char urls[2][64];
        static unsigned n;
        char *url = urls[n++ % 2];

        (void)snprintf(url, sizeof urls[0], "%s://%s:%d", scheme, name, port);
        return url;
}

static struct hf_client *client_of_both(void) {
        return client_of(url_of(a.base.port, "http", "127.0.0.1"),
                         url_of(b.base.port, "http", "127.0.0.1"));
}

/* A port on which nothing listens: it is bound until the caller closes *ret_fd. */
static int refusing_port(int *ret_fd) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;

        *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(*ret_fd >= 0);
        assert_int_equal(bind(*ret_fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&address, &n), 0);
        return ntohs(address.sin_port);
}

static const struct hf_request get = {.size = sizeof get,
                                      .verb = HF_VERB_GET,
                                      .resource = {"", "v1", "configmaps"},
                                      .ns = "x",
                                      .name = "y"};
static const struct hf_request put = {.size = sizeof put,
                                      .verb = HF_VERB_UPDATE,
                                      .resource = {"", "v1", "configmaps"},
                                      .ns = "x",
                                      .name = "y",
                                      .body = "{\"z\":1}",
                                      .n_body = 7};

/* Returns the server that answered, 'a' or 'b', or 0 after the error in *ret_error. */
static char ask(struct hf_client *client, const struct hf_request *request, int *ret_error) {
        char *body = NULL;
        struct hf_status status = {0};

        *ret_error = hf_client_do(client, request, hf_cancel_never(), &body, NULL, &status);
        char at = *ret_error == 0 ? body[7] : '\0';
        free(body);
        return at;
}

static void expect(struct hf_client *client, const struct hf_request *request, char at) {
        int error;
        char got = ask(client, request, &error);

        if (got != at)
                fail_msg("%c answered, error %d; expected %c", got ? got : '-', error, at);
}

static void expect_error(struct hf_client *client, const struct hf_request *request, int error) {
        int got;

        (void)ask(client, request, &got);
        assert_int_equal(got, error);
}

static void test_a_refused_connection_goes_to_the_next_server(void **state) {
        int fd, port = refusing_port(&fd);
        struct hf_client *client = client_of(url_of(port, "http", "127.0.0.1"),
                                             url_of(b.base.port, "http", "127.0.0.1"));

        expect(client, &put, 'b');
        expect(client, &get, 'b');
        assert_int_equal(scripted_server_n_requests(&b), 2);
        /* the next request begins at the server that answered: a listener at the first gets none */
        assert_int_equal(listen(fd, 8), 0);
        expect(client, &put, 'b');
        client = hf_client_free(client);
        (void)close(fd);
}

static void test_when_all_servers_refuse_the_error_is_unavailable(void **state) {
        int fd[2];
        int ports[2] = {refusing_port(&fd[0]), refusing_port(&fd[1])};
        struct hf_client *client = client_of(url_of(ports[0], "http", "127.0.0.1"),
                                             url_of(ports[1], "http", "127.0.0.1"));

        expect_error(client, &put, HF_E_UNAVAILABLE);
        expect_error(client, &get, HF_E_UNAVAILABLE);
        client = hf_client_free(client);
        (void)close(fd[0]);
        (void)close(fd[1]);
}

static void test_each_of_three_servers_is_tried(void **state) {
        int fd[2];
        int ports[2] = {refusing_port(&fd[0]), refusing_port(&fd[1])};
        char first[64], last[64];
        const char *const others[] = {url_of(b.base.port, "http", "127.0.0.1"), last};
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = first,
                                              .other_servers = others,
                                              .n_other_servers = 2};
        struct hf_client *client = NULL;

        (void)snprintf(first, sizeof first, "http://127.0.0.1:%d", ports[0]);
        (void)snprintf(last, sizeof last, "http://127.0.0.1:%d", ports[1]);
        assert_int_equal(hf_rest_client_new(&host, &config, &client, NULL), 0);
        expect(client, &put, 'b');
        client = hf_client_free(client);
        (void)close(fd[0]);
        (void)close(fd[1]);
}

/* The first server reads the request, and closes the connection without a response. */
static void test_only_reads_are_sent_again_after_a_broken_connection(void **state) {
        struct hf_client *client = client_of_both();

        scripted_server_set(&a, SCRIPT_CLOSES, "%s", "");
        expect_error(client, &put, HF_E_TIMEOUT);
        assert_int_equal(scripted_server_n_requests(&a), 1);
        assert_int_equal(scripted_server_n_requests(&b), 0);
        /* the client remembers that the first server failed */
        expect(client, &put, 'b');
        expect(client, &get, 'b');
        assert_int_equal(scripted_server_n_requests(&a), 1);
        client = hf_client_free(client);

        client = client_of_both();
        expect(client, &get, 'b');
        client = hf_client_free(client);
}

static void test_only_reads_are_sent_again_after_503(void **state) {
        struct hf_client *client = client_of_both();

        scripted_server_set_response(&a, "503 Service Unavailable", "", "");
        expect(client, &get, 'b');
        client = hf_client_free(client);
        client = client_of_both();
        int error;
        assert_int_equal(ask(client, &put, &error), 0);
        assert_int_not_equal(error, 0);
        assert_int_equal(scripted_server_n_requests(&b), 1); /* the get */
        expect(client, &put, 'b');
        client = hf_client_free(client);
}

static void test_a_lease_does_not_wait_for_retry_after(void **state) {
        struct hf_request lease = put;
        struct hf_client *client = client_of_both();

        expect(client, &put, 'a');
        assert_int_equal(first_lane, HF_LANE_DEFAULT);
        lease.lane = HF_LANE_LEASE;
        scripted_server_set_response(&a, "429 Too Many Requests", "Retry-After: 100\r\n", "");
        expect(client, &lease, 'b');
        assert_int_equal(first_lane, HF_LANE_LEASE);
        client = hf_client_free(client);
}

static void test_other_errors_stay_with_their_server(void **state) {
        static const char *const codes[] = {"400 Bad Request", "404 Not Found", "409 Conflict",
                                            "500 Internal Server Error"};

        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                struct hf_client *client = client_of_both();
                int error;
                scripted_server_set_response(&a, codes[i], "", "");
                assert_int_equal(ask(client, &get, &error), 0);
                assert_int_equal(ask(client, &get, &error), 0);
                assert_int_equal(scripted_server_n_requests(&a), 2);
                client = hf_client_free(client);
        }
        assert_int_equal(scripted_server_n_requests(&b), 0);
}

/* There is a second server, so a try may use half of the remaining time for its connection. */
static void test_a_request_that_waits_keeps_time_for_the_next_server(void **state) {
        struct hf_client *client = client_of_both();
        struct hf_request patient = put;

        patient.deadline = hf_now(hf_clock_system()) + 100 * HF_NSEC_PER_SEC;
        scripted_server_set_response(&a, "429 Too Many Requests", "Retry-After: 60\r\n", "");
        again.refused = true;
        expect_error(client, &patient, HF_E_TOO_MANY);
        assert_int_equal(again.n, 1);
        assert_int_equal(again.deadline, patient.deadline);
        assert_true(again.not_before > patient.deadline - 41 * HF_NSEC_PER_SEC);
        assert_int_equal(again.connect_timeout, (again.deadline - again.not_before) / 2);
        client = hf_client_free(client);
}

/* What failed before the wait says nothing about the servers after it. */
static void test_after_a_wait_every_server_may_be_tried_again(void **state) {
        struct hf_client *client = client_of_both();
        struct hf_request patient = get;

        patient.deadline = hf_now(hf_clock_system()) + 100 * HF_NSEC_PER_SEC;
        scripted_server_set_response(&a, "503 Service Unavailable", "", "");
        scripted_server_set_response(&b, "429 Too Many Requests", "Retry-After: 60\r\n", "");
        again.refuses_waits = true;
        expect_error(client, &patient, HF_E_TOO_MANY);
        assert_int_equal(again.n, 2);
        assert_true(again.not_before > 0);
        assert_non_null(strstr(again.url, url_of(a.base.port, "http", "127.0.0.1")));
        assert_int_equal(again.connect_timeout, (again.deadline - again.not_before) / 2);
        client = hf_client_free(client);
}

struct ended_watch {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool ended;
        struct hf_status status;
};

static void on_event(void *ctx, const struct hf_event *event) {}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct ended_watch *watch = ctx;

        pthread_mutex_lock(&watch->mu);
        watch->ended = true;
        watch->status = *status;
        pthread_cond_signal(&watch->cond);
        pthread_mutex_unlock(&watch->mu);
}

static void watch_until_end(struct hf_client *client, struct ended_watch *watch) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = {"", "v1", "configmaps"},
                                           .ns = "x"};

        assert_int_equal(hf_client_watch(client, &spec, on_event, on_end, watch, NULL), 0);
        pthread_mutex_lock(&watch->mu);
        while (!watch->ended)
                pthread_cond_wait(&watch->cond, &watch->mu);
        pthread_mutex_unlock(&watch->mu);
}

static void test_an_error_names_the_server_that_the_request_went_to(void **state) {
        struct ended_watch watch = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                    .cond = PTHREAD_COND_INITIALIZER};
        struct hf_client *client = client_of_both();
        struct hf_status status = {0};

        scripted_server_set(&a, SCRIPT_CLOSES, "%s", "");
        again.refused = true; /* no memory for the try at the second server */
        assert_int_equal(hf_client_do(client, &get, hf_cancel_never(), NULL, NULL, &status),
                         HF_E_TIMEOUT);
        assert_int_equal(again.n, 1);
        assert_non_null(strstr(status.message, url_of(a.base.port, "http", "127.0.0.1")));
        client = hf_client_free(client);

        client = client_of_both();
        watch_until_end(client, &watch);
        assert_true(first_head_timeout > 0);
        assert_int_equal(first_connect_timeout, first_head_timeout / 2); /* there are two servers */
        assert_int_equal(again.n, 2);
        assert_non_null(strstr(watch.status.message, url_of(a.base.port, "http", "127.0.0.1")));
        client = hf_client_free(client);
}

/* The second try cannot be made, so the watch ends with the message of the first server. */
static void test_a_watch_that_stays_with_its_server_ends_with_its_words(void **state) {
        struct ended_watch watch = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                    .cond = PTHREAD_COND_INITIALIZER};
        struct hf_client *client = client_of_both();

        scripted_server_set_response(&a, "503 Service Unavailable", "",
                                     "{\"kind\":\"Status\",\"code\":503,\"message\":\"not now\"}");
        again.refused = true;
        watch_until_end(client, &watch);
        assert_string_equal(watch.status.message, "not now");
        client = hf_client_free(client);
}

/* ---- TLS ---- */

/* A server that closes each connection, or keeps it without a handshake. */
static struct loopback_server cutting, cutting_too, silent;
static void cut(void *ctx, int fd) {}
static void stay_silent(void *ctx, int fd) { loopback_server_wait_for_close(fd); }

static void test_a_lost_handshake_goes_to_the_next_server(void **state) {
        loopback_server_start(&cutting, cut, NULL);
        loopback_server_start(&cutting_too, cut, NULL);
        struct hf_client *client = client_of(url_of(cutting.port, "https", "127.0.0.1"),
                                             url_of(cutting_too.port, "https", "127.0.0.1"));

        expect_error(client, &put, HF_E_UNAVAILABLE);
        assert_int_equal(atomic_load(&cutting.n_connections), 1);
        assert_int_equal(atomic_load(&cutting_too.n_connections), 1);
        client = hf_client_free(client);
        loopback_server_stop(&cutting);
        loopback_server_stop(&cutting_too);
}

static void test_a_handshake_that_hangs_leaves_time_for_the_next_server(void **state) {
        struct hf_request hurried = put;

        loopback_server_start(&silent, stay_silent, NULL);
        loopback_server_start(&cutting, cut, NULL);
        struct hf_client *client = client_of(url_of(silent.port, "https", "127.0.0.1"),
                                             url_of(cutting.port, "https", "127.0.0.1"));
        hurried.deadline = hf_now(hf_clock_system()) + 2 * HF_NSEC_PER_SEC;
        expect_error(client, &hurried, HF_E_UNAVAILABLE);
        assert_int_equal(atomic_load(&silent.n_connections), 1);
        assert_int_equal(atomic_load(&cutting.n_connections), 1);
        client = hf_client_free(client);
        loopback_server_stop(&silent);
        loopback_server_stop(&cutting);
}

/* The second address of a host name: ::1, at the port of a server on 127.0.0.1. */
struct second {
        int fd;
        pthread_t thread;
        atomic_int n_connections;
};

static void *cut_all(void *ctx) {
        struct second *second = ctx;
        int fd;

        while ((fd = accept(second->fd, NULL, NULL)) >= 0) {
                atomic_fetch_add(&second->n_connections, 1);
                (void)close(fd);
        }
        return NULL;
}

/* Like stay_silent, for connections that nobody closes before the end of the test. */
static void *keep_all(void *ctx) {
        struct second *second = ctx;
        int fds[64];
        size_t n = 0;

        while (n < 64 && (fds[n] = accept(second->fd, NULL, NULL)) >= 0) {
                atomic_fetch_add(&second->n_connections, 1);
                n++;
        }
        while (n > 0)
                (void)close(fds[--n]);
        return NULL;
}

static bool second_start(struct second *second, int port, void *(*serve)(void *ctx)) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                       .sin6_port = htons((uint16_t)port)};

        *second = (struct second){.fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        if (second->fd < 0 || bind(second->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
            listen(second->fd, 8) != 0) {
                if (second->fd >= 0)
                        (void)close(second->fd);
                return false;
        }
        assert_int_equal(pthread_create(&second->thread, NULL, serve, second), 0);
        return true;
}

static void second_stop(struct second *second) {
        (void)shutdown(second->fd, SHUT_RDWR);
        assert_int_equal(pthread_join(second->thread, NULL), 0);
        (void)close(second->fd);
}

/* localhost has two addresses: libcurl resolves it to both. */
static void test_a_lost_handshake_goes_to_the_next_address_of_a_name(void **state) {
        struct second second;

        loopback_server_start(&cutting, cut, NULL);
        if (!second_start(&second, cutting.port, cut_all)) {
                loopback_server_stop(&cutting);
                skip(); /* no IPv6 */
        }
        struct hf_client *client = client_of(url_of(cutting.port, "https", "localhost"), NULL);
        struct hf_status status = {0};
        assert_int_equal(hf_client_do(client, &put, hf_cancel_never(), NULL, NULL, &status),
                         HF_E_UNAVAILABLE);
        assert_int_equal(atomic_load(&cutting.n_connections), 1);
        assert_int_equal(atomic_load(&second.n_connections), 1);
        assert_null(strstr(status.message, "connect to")); /* the first error, not a refused one */
        client = hf_client_free(client);
        second_stop(&second);
        loopback_server_stop(&cutting);
}

/* An address whose server accepts connections and says nothing is left out, as long as there is
 * another one. Here both addresses of a name are silent, so each gets its connections in turn. */
static void expect_turns(const char *scheme) {
        struct hf_request hurried = put;
        struct hf_status status;
        struct second second;

        loopback_server_start(&silent, stay_silent, NULL);
        if (!second_start(&second, silent.port, keep_all)) {
                loopback_server_stop(&silent);
                skip(); /* no IPv6 */
        }
        struct hf_client *client = client_of(url_of(silent.port, scheme, "localhost"), NULL);
        hf_nsec until = hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC;
        while ((atomic_load(&silent.n_connections) < 2 || atomic_load(&second.n_connections) < 2) &&
               hf_now(hf_clock_system()) < until) {
                hurried.deadline = hf_now(hf_clock_system()) + 100 * HF_NSEC_PER_MSEC;
                assert_int_not_equal(hf_client_do(client, &hurried, hf_cancel_never(), NULL, NULL,
                                                  &status),
                                     0);
        }
        assert_true(atomic_load(&silent.n_connections) >= 2);
        assert_true(atomic_load(&second.n_connections) >= 2);
        client = hf_client_free(client);
        second_stop(&second);
        loopback_server_stop(&silent);
}

static void test_an_address_that_hangs_in_its_handshake_is_left_out(void **state) {
        expect_turns("https");
}

static void test_an_address_that_does_not_respond_is_left_out(void **state) {
        expect_turns("http");
}

/* Responds while `recovered` is true, and is silent otherwise. */
static atomic_bool recovered;
static void serve_recovered(void *ctx, int fd) {
        static const char response[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                       "Content-Length: 10\r\n\r\n{\"at\":\"r\"}";
        char in[4096];

        while (recv(fd, in, sizeof in, 0) > 0)
                if (atomic_load(&recovered))
                        (void)loopback_server_send(fd, response, sizeof response - 1);
}

/* Makes ::1 ignore further connections at the port: nobody accepts them, and the backlog is full.
 * Returns the number of descriptors in fds; 0 = there is no IPv6. */
static size_t fill_backlog(int port, int fds[8]) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT,
                                       .sin6_port = htons((uint16_t)port)};
        int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
            listen(listener, 0) != 0) {
                if (listener >= 0)
                        (void)close(listener);
                return 0;
        }
        fds[0] = listener;
        for (size_t i = 1; i < 8; i++) {
                fds[i] = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                assert_true(fds[i] >= 0);
                (void)connect(fds[i], (struct sockaddr *)&address, sizeof address);
        }
        return 8;
}

/* An address that was silent and has recovered is used again when no other one can be reached, also
 * if that one does not even refuse the connection. */
static void test_a_recovered_address_is_used_if_the_other_is_not_reached(void **state) {
        struct hf_request hurried = put;
        int fds[8], error = -1;

        atomic_store(&recovered, false);
        loopback_server_start(&silent, serve_recovered, NULL);
        size_t n = fill_backlog(silent.port, fds);
        if (n == 0) {
                loopback_server_stop(&silent);
                skip(); /* no IPv6 */
        }
        struct hf_client *client = client_of(url_of(silent.port, "http", "localhost"), NULL);
        hf_nsec until = hf_now(hf_clock_system()) + 40 * HF_NSEC_PER_SEC;
        for (int i = 0; i < 2; i++) {
                hurried.deadline = hf_now(hf_clock_system()) + HF_NSEC_PER_SEC;
                assert_int_equal(ask(client, &hurried, &error), '\0');
        }
        assert_true(atomic_load(&silent.n_connections) >= 1);
        atomic_store(&recovered, true);
        while (error != 0 && hf_now(hf_clock_system()) < until) {
                hurried.deadline = hf_now(hf_clock_system()) + HF_NSEC_PER_SEC;
                (void)ask(client, &hurried, &error);
        }
        assert_int_equal(error, 0);
        client = hf_client_free(client);
        while (n > 0)
                (void)close(fds[--n]);
        loopback_server_stop(&silent);
}

/* ---- watches and informers ---- */

/* Server a serves a list and then fails. Server b lags behind a at first, and its response says so.
 */
static void test_an_informer_goes_on_at_a_server_that_is_behind(void **state) {
        struct hf_client *client = client_of_both();
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .resource = {"", "v1", "configmaps"}};
        struct hf_informer *informer;
        char *object;

        /* the list; then a's watch fails, and so does everything else */
        scripted_server_set_response(&a, "503 Service Unavailable", "", "");
        scripted_server_add_first(&a, "200 OK", "",
                                  "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{"
                                  "\"metadata\":{\"name\":\"y\","
                                  "\"namespace\":\"x\",\"resourceVersion\":\"10\",\"uid\":\"u\"},"
                                  "\"data\":\"new\"}]}");
        /* b's response to the watch after 10, and then to the list: it has caught up */
        scripted_server_set_response(&b, "200 OK", "",
                                     "{\"metadata\":{\"resourceVersion\":\"12\"},\"items\":[{"
                                     "\"metadata\":{\"name\":\"y\","
                                     "\"namespace\":\"x\",\"resourceVersion\":\"12\",\"uid\":\"u\"}"
                                     ",\"data\":\"newer\"}]}");
        scripted_server_add_first(&b, "504 Gateway Timeout", "",
                                  "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\","
                                  "\"message\":\"Too large resource version: 10, current: 7\"}");
        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        scripted_server_await_requests(&b, 1);
        assert_true(scripted_server_got(&b, "watch=1") &&
                    scripted_server_got(&b, "resourceVersion=10"));
        assert_int_equal(hf_informer_wait(informer, "12", hf_cancel_never()), 0);
        assert_int_equal(hf_informer_get(informer, "x", "y", &object, NULL), 0);
        assert_non_null(strstr(object, "newer"));
        free(object);
        informer = hf_informer_free(informer);
        client = hf_client_free(client);
}

/* ---- configurations ---- */

static void test_bad_lists_of_servers_are_refused(void **state) {
        static const char *const mixed[] = {"http://b:1"}, *const bad[] = {"b:1"},
                                 *const none[] = {NULL};
        static const struct {
                const char *const *others;
                size_t n;
                const char *message;
        } cases[] = {{mixed, 1, "https for all servers"},
                     {bad, 1, "\"b:1\" must be http[s]://"},
                     {none, 1, "\"\" must be http[s]://"},
                     {mixed, HF_REST_SERVERS_MAX, "up to 16 servers, and 17 are given"}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct hf_rest_config config = {.size = sizeof config,
                                                      .server = "https://a:1",
                                                      .other_servers = cases[i].others,
                                                      .n_other_servers = cases[i].n};
                struct hf_client *client = NULL;
                struct hf_status status = {0};
                assert_int_equal(hf_rest_client_new(&host, &config, &client, &status),
                                 HF_E_INVALID);
                assert_non_null(strstr(status.message, cases[i].message));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_a_refused_connection_goes_to_the_next_server,
                                       reset_servers),
                cmocka_unit_test_setup(test_when_all_servers_refuse_the_error_is_unavailable,
                                       reset_servers),
                cmocka_unit_test_setup(test_each_of_three_servers_is_tried, reset_servers),
                cmocka_unit_test_setup(test_only_reads_are_sent_again_after_a_broken_connection,
                                       reset_servers),
                cmocka_unit_test_setup(test_only_reads_are_sent_again_after_503, reset_servers),
                cmocka_unit_test_setup(test_a_lease_does_not_wait_for_retry_after, reset_servers),
                cmocka_unit_test_setup(test_other_errors_stay_with_their_server, reset_servers),
                cmocka_unit_test_setup(test_a_request_that_waits_keeps_time_for_the_next_server,
                                       reset_servers),
                cmocka_unit_test_setup(test_after_a_wait_every_server_may_be_tried_again,
                                       reset_servers),
                cmocka_unit_test_setup(test_an_error_names_the_server_that_the_request_went_to,
                                       reset_servers),
                cmocka_unit_test_setup(test_a_watch_that_stays_with_its_server_ends_with_its_words,
                                       reset_servers),
                cmocka_unit_test_setup(test_a_lost_handshake_goes_to_the_next_server,
                                       reset_servers),
                cmocka_unit_test_setup(test_a_handshake_that_hangs_leaves_time_for_the_next_server,
                                       reset_servers),
                cmocka_unit_test(test_an_address_that_hangs_in_its_handshake_is_left_out),
                cmocka_unit_test(test_an_address_that_does_not_respond_is_left_out),
                cmocka_unit_test(test_a_recovered_address_is_used_if_the_other_is_not_reached),
                cmocka_unit_test_setup(test_a_lost_handshake_goes_to_the_next_address_of_a_name,
                                       reset_servers),
                cmocka_unit_test_setup(test_an_informer_goes_on_at_a_server_that_is_behind,
                                       reset_servers),
                cmocka_unit_test(test_bad_lists_of_servers_are_refused),
        };

        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int r = cmocka_run_group_tests(tests, start_servers, stop_servers);
        curl_global_cleanup();
        return r;
}
