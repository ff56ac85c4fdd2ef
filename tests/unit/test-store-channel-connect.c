/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the gRPC channel finds its server: names that have no address, several addresses, or that
 * nobody looks up in time. The test answers the look-ups; the server is that of
 * test-store-channel.c.
 */
#undef NDEBUG
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/thread.h"
#include "count_descriptors.h"
#include "failing_memory.h"
#include "grpc_server.h"
#include "patience.h"
#include "server/storage/grpc/channel.h"
#include "server/storage/grpc/prefix.h"

#define FASTER 16

static hf_nsec fast_boot(void *ctx) { return FASTER * hf_now(hf_clock_system()); }

static const struct hf_clock fast_clock = {.size = sizeof fast_clock, .boot = fast_boot};
static const struct hf_host host = {.size = sizeof(struct hf_host)};
static const struct hf_host fast_host = {.size = sizeof(struct hf_host), .clock = &fast_clock};

static struct {
        struct grpc_server server;
        struct hfd_grpc_endpoint endpoint;
        struct hfd_grpc_channel *channel;
        atomic_uint n_looked_up; /* names; without those that are addresses */
        atomic_bool holds, is_held, had_null, epoll_is_full;
        atomic_int n_watched; /* sockets in the epoll sets, and the channels' own descriptors */
        atomic_int n_lists;   /* of addresses, that are not freed */
} f;

/* ---- look-ups ---- */

int __real_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);

/* The addresses of "A-B.test" are A and B, in this order. Other names of test have none. */
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret) {
        char first[64];
        const char *second = node ? strchr(node, '-') : NULL;

        if (!node)
                atomic_store(&f.had_null, true);
        if (!node || (hints->ai_flags & AI_NUMERICHOST) || !strstr(node, ".test")) {
                int r = __real_getaddrinfo(node, port, hints, ret);
                atomic_fetch_add(&f.n_lists, r == 0);
                return r;
        }
        atomic_fetch_add(&f.n_looked_up, 1);
        atomic_store(&f.is_held, true);
        PATIENCE_AWAIT(!atomic_load(&f.holds));
        if (!second)
                return EAI_NONAME;
        (void)snprintf(first, sizeof first, "%.*s", (int)(second - node), node);
        int r = __real_getaddrinfo(first, port, hints, ret);
        if (r != 0)
                return r;
        atomic_fetch_add(&f.n_lists, 1);
        (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(second + 1, "t") - 1, second + 1);
        struct addrinfo *last = *ret;
        while (last->ai_next)
                last = last->ai_next;
        return __real_getaddrinfo(first, port, hints, &last->ai_next);
}

void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);

void __wrap_freeaddrinfo(struct addrinfo *list) {
        assert_non_null(list);
        atomic_fetch_sub(&f.n_lists, 1);
        __real_freeaddrinfo(list);
}

/* ---- epoll ---- */

int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event) {
        if (op == EPOLL_CTL_ADD && atomic_load(&f.epoll_is_full)) {
                errno = ENOSPC;
                return -1;
        }
        int r = __real_epoll_ctl(epoll_fd, op, fd, event);
        if (r == 0)
                atomic_fetch_add(&f.n_watched, (op == EPOLL_CTL_ADD) - (op == EPOLL_CTL_DEL));
        return r;
}

/* ---- options of sockets ---- */

static atomic_int keepalive_fd = -1; /* the last socket that got it: a client's */

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t n);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t n);

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t n) {
        int r = __real_setsockopt(fd, level, option, value, n);

        if (r == 0 && level == SOL_SOCKET && option == SO_KEEPALIVE)
                atomic_store(&keepalive_fd, fd);
        return r;
}

/* ---- calls ---- */

struct call {
        struct hfd_grpc_stream stream;
        struct hf__buf *body;
        atomic_bool done;
        int outcome;
        char error_text[128];
};

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx;

        call->outcome = result->outcome;
        (void)snprintf(call->error_text, sizeof call->error_text, "%.127s", result->error_text);
        atomic_store(&call->done, true);
}

static void start(struct call *call, const char *text, hf_nsec timeout, hf_nsec head_timeout) {
        size_t n = strlen(text);

        *call = (struct call){.body = hf__buf_new(HFD_GRPC_PREFIX + n)};
        hfd_grpc_prefix_write(call->body->data, (uint32_t)n);
        memcpy(call->body->data + HFD_GRPC_PREFIX, text, n);
        const struct hfd_grpc_request request = {.path = "/test.Test/Test",
                                                 .body = call->body,
                                                 .deadline = timeout == HF_NSEC_NEVER
                                                                     ? HF_NSEC_NEVER
                                                                     : in_msec(0) + timeout,
                                                 .head_timeout = head_timeout,
                                                 .max_message = 4096,
                                                 .on_done = on_done,
                                                 .ctx = call};
        assert_int_equal(hfd_grpc_channel_start(f.channel, &call->stream, &request), 0);
}

static void expect(struct call *call, int outcome, const char *error_text) {
        PATIENCE_AWAIT(atomic_load(&call->done));
        hf__buf_unref(call->body);
        assert_int_equal(call->outcome, outcome);
        assert_string_equal(call->error_text, error_text);
}

static void open_channel_of(const struct hf_host *its_host, const char *name) {
        struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                 .host = its_host,
                                                 .endpoints = &f.endpoint,
                                                 .n_endpoints = 1};
        struct hf_status status;
        char url[96];

        (void)snprintf(url, sizeof url, "http://%s:%d", name, f.server.base.port);
        assert_int_equal(hfd_grpc_endpoint_parse(url, &f.endpoint, &status), 0);
        assert_int_equal(hfd_grpc_channel_new(&config, &f.channel), 0);
}

static void open_channel(const char *name) { open_channel_of(&host, name); }

static void close_channel(void) {
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_join(f.channel);
        hfd_grpc_channel_free(f.channel);
}

static void call_host(const char *name, int outcome, const char *error_text) {
        struct call call;

        open_channel(name);
        start(&call, "echo", 60 * SEC, 0);
        expect(&call, outcome, error_text);
        close_channel();
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        grpc_server_start(&f.server);
        return 0;
}

static int tear_down(void **state) {
        grpc_server_stop(&f.server);
        return atomic_load(&f.n_lists) == 0 ? 0 : -1;
}

static void test_a_name_without_an_address_is_unavailable(void **state) {
        struct call call;

        open_channel("nowhere.test");
        for (unsigned i = 1; i <= 2;
             i++) { /* it is asked again, because the name may have an address later */
                start(&call, "echo", 60 * SEC, 0);
                expect(&call, HF_E_UNAVAILABLE,
                       "cannot resolve the host: Name or service not known");
                assert_true(atomic_load(&f.n_looked_up) >= i);
        }
        close_channel();
}

static void test_the_addresses_of_a_name_are_tried_in_order(void **state) {
        call_host("127.0.0.1-127.0.0.2.test", 0, "");
        call_host("127.0.0.2-127.0.0.1.test", 0, ""); /* nobody listens at the first one */
        assert_int_equal(atomic_load(&f.server.base.n_connections), 2);
        call_host("127.0.0.2-127.0.0.3.test", HF_E_UNAVAILABLE,
                  "cannot connect: Connection refused");
        call_host("127.0.0.2", HF_E_UNAVAILABLE, "cannot connect: Connection refused");
        assert_int_equal(atomic_load(&f.server.base.n_connections), 2);
        assert_true(atomic_load(&f.n_looked_up) >= 3);
        /* Each socket was taken out of its epoll set, because a child process may have a copy. */
        assert_int_equal(atomic_load(&f.n_watched), 4); /* those of the four channels */
}

/* This must work even on a machine without localhost in /etc/hosts. */
static void test_localhost_is_the_loopback_address(void **state) {
        call_host("LocalHost", 0, "");
        assert_true(atomic_load(&f.had_null));
        assert_int_equal(atomic_load(&f.n_looked_up), 0);
}

/* The call ends at its deadline, and the channel at its stop, once the look-up has returned. */
static void test_a_call_does_not_wait_for_a_look_up(void **state) {
        struct call call;

        atomic_store(&f.holds, true);
        open_channel("127.0.0.1-127.0.0.2.test");
        start(&call, "echo", 20 * MSEC, 0);
        PATIENCE_AWAIT(atomic_load(&call.done));
        hf__buf_unref(call.body);
        assert_int_equal(call.outcome, HF_E_UNAVAILABLE);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        atomic_store(&f.holds, false);
        start(&call, "echo", 60 * SEC, 0); /* the connection is made all the same */
        expect(&call, 0, "");
        atomic_store(&f.is_held, false);
        close_channel();
        atomic_store(&f.holds, true);
        open_channel("127.0.0.1-127.0.0.2.test");
        start(&call, "echo", 60 * SEC, 0);
        PATIENCE_AWAIT(atomic_load(&f.is_held));
        hfd_grpc_channel_stop(f.channel);
        PATIENCE_AWAIT(atomic_load(&call.done)); /* the loop has ended, and waits for the look-up */
        atomic_store(&f.holds, false);
        close_channel();
        hf__buf_unref(call.body);
        assert_int_equal(call.outcome, HF_E_CANCELED);
}

/* A small request does not wait for the acknowledgement of the last one, and a connection whose
 * peer is gone ends even if nothing is sent. */
static void test_a_socket_sends_at_once_and_probes_its_peer(void **state) {
        int idle = 0, interval = 0, count = 0;
        socklen_t n = sizeof idle;
        struct call call;

        open_channel("127.0.0.1");
        start(&call, "echo", 60 * SEC, 0);
        expect(&call, 0, "");
        int fd = atomic_load(&keepalive_fd);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &n), 0);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, &n), 0);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, &n), 0);
        assert_true(idle + interval * count <= 60);
        int nodelay = 0;
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &n), 0);
        assert_int_not_equal(nodelay, 0);
        close_channel();
}

/* The look-up returns when its connection does not exist any more. */
static void test_a_look_up_may_outlast_its_connection(void **state) {
        struct call call;

        atomic_store(&f.holds, true);
        open_channel_of(&fast_host, "127.0.0.1-127.0.0.2.test");
        start(&call, "echo", HF_NSEC_NEVER, 0);
        expect(&call, HF_E_UNAVAILABLE, "no connection within 3 seconds");
        atomic_store(&f.holds, false);
        do { /* another connection, whose look-up may be held, too */
                start(&call, "echo", HF_NSEC_NEVER, 0);
                PATIENCE_AWAIT(atomic_load(&call.done));
                hf__buf_unref(call.body);
        } while (call.outcome == HF_E_UNAVAILABLE);
        assert_int_equal(call.outcome, 0);
        close_channel();
}

static void test_a_socket_that_nobody_can_watch_ends_its_calls(void **state) {
        struct call call;

        open_channel("127.0.0.1");
        atomic_store(&f.epoll_is_full, true);
        start(&call, "echo", 60 * SEC, 0);
        expect(&call, HF_E_UNAVAILABLE, "epoll: No space left on device");
        atomic_store(&f.epoll_is_full, false);
        start(&call, "echo", 60 * SEC, 0);
        expect(&call, 0, "");
        close_channel();
}

/* A server that begins no response, although the call itself may take long. */
static void test_a_response_must_begin_in_time(void **state) {
        struct call call;
        int ms = 15;

        open_channel("127.0.0.1");
        do { /* until the request was written in time */
                ms *= 2;
                start(&call, "nothing", 3600 * SEC, ms * MSEC);
                PATIENCE_AWAIT(atomic_load(&call.done));
                hf__buf_unref(call.body);
        } while (call.outcome == HF_E_UNAVAILABLE && ms < PATIENCE_MSEC / 4);
        assert_int_equal(call.outcome, HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "no response has begun in time");
        start(&call, "1: an informational response is none", 3600 * SEC, ms * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.done));
        hf__buf_unref(call.body);
        assert_string_equal(call.error_text, "no response has begun in time");
        start(&call, "echo", 60 * SEC, 60 * SEC);
        expect(&call, 0, "");
        close_channel();
}

static void channel_life(int n) {
        const struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                       .host = &host,
                                                       .endpoints = &f.endpoint,
                                                       .n_endpoints = 1};
        struct hfd_grpc_channel *channel = NULL;

        failing_memory_arm(n);
        int r = hfd_grpc_channel_new(&config, &channel);
        failing_memory_disarm();
        assert_true(r == 0 || is_shortage(r));
        assert_true((r == 0) == (channel != NULL));
        hfd_grpc_channel_stop(channel);
        hfd_grpc_channel_join(channel);
        hfd_grpc_channel_free(channel);
}

static void test_a_channel_is_made_whole_or_not_at_all(void **state) {
        const struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                       .host = &host,
                                                       .endpoints = &f.endpoint,
                                                       .n_endpoints = 1};
        struct hfd_grpc_channel *channel = NULL;
        unsigned n_descriptors = count_descriptors();

        failing_memory_try_all(channel_life, 3);
        atomic_store(&f.epoll_is_full, true);
        assert_int_equal(hfd_grpc_channel_new(&config, &channel), -ENOSPC);
        assert_null(channel);
        assert_int_equal(count_descriptors(), n_descriptors);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_name_without_an_address_is_unavailable),
                TEST(test_the_addresses_of_a_name_are_tried_in_order),
                TEST(test_localhost_is_the_loopback_address),
                TEST(test_a_call_does_not_wait_for_a_look_up),
                TEST(test_a_socket_sends_at_once_and_probes_its_peer),
                TEST(test_a_look_up_may_outlast_its_connection),
                TEST(test_a_socket_that_nobody_can_watch_ends_its_calls),
                TEST(test_a_response_must_begin_in_time),
                TEST(test_a_channel_is_made_whole_or_not_at_all),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
