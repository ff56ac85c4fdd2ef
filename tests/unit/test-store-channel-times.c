/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the gRPC channel does what: PINGs, probes, deadlines, the next address of a host, and how
 * long its loop sleeps. The clock stands still until the test moves it, so each time is exact. The
 * loop itself never sleeps for more than a millisecond here, but the test sees how long it wants
 * to. Also requests that nghttp2 refuses, and calls of the socket that are interrupted or fail,
 * because the test replaces those functions, too.
 */
#undef NDEBUG
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
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
#include <unistd.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "grpc_server.h"
#include "h2_frames.h"
#include "patience.h"
#include "server/storage/grpc/channel.h"
#include "server/storage/grpc/prefix.h"

#define T0 (1000 * SEC) /* when each test begins */

static struct {
        struct grpc_server server;
        struct hfd_grpc_endpoint endpoints[2]; /* the one that the test names, and two.test */
        struct hfd_grpc_channel *channel;
        _Atomic hf_nsec now, step; /* step: how far each look at the clock moves it */
        atomic_int sleep;          /* ms: what the loop asked for last */
        atomic_uint n_hurries;     /* how often it asked for no sleep */
        atomic_bool sleeps_for_ever, is_held, looks_up;
        struct call *next;              /* started when the first call is done; NULL = none */
        bool has_unsent, sleeps_unsent; /* of `next`; the channel's thread, until it is joined */
        /* What nghttp2 returns; 0 = it works. The next session fails in its first or in its last
         * step. */
        atomic_int submit_error, ping_error, callbacks_error, settings_error;
        /* errno of the channel's next call of each of these; 0 = it works */
        atomic_int recv_error, send_error, getsockopt_error;
        atomic_bool sends_half;
        /* Bytes that the socket takes: all, so many, or all, but the server gets none of them. */
        atomic_bool has_little_room, swallows;
        atomic_size_t room, n_swallowed;
        atomic_bool is_out_of_memory; /* as soon as the room is used up */
        /* How often the loop still finds its input buffer full; in the socket that it reads next
         * (-1 = none yet). */
        atomic_uint n_floods;
        atomic_int flooded_fd;
        char timeout[16]; /* grpc-timeout of the last request; "" = none */
        char added[16];   /* the header of the request itself */
} f;

static _Thread_local bool is_loop; /* the channel's thread */

static hf_nsec read_boot(void *ctx) { return atomic_fetch_add(&f.now, atomic_load(&f.step)); }

static const struct hf_clock clock_of_test = {.size = sizeof clock_of_test, .boot = read_boot};
static const struct hf_host host = {.size = sizeof(struct hf_host), .clock = &clock_of_test};

/* ---- replaced functions ---- */

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout) {
        is_loop = true;
        if (timeout < 0)
                atomic_store(&f.sleeps_for_ever, true);
        if (f.has_unsent)
                f.sleeps_unsent = true;
        atomic_store(&f.sleep, timeout);
        atomic_fetch_add(&f.n_hurries, timeout == 0);
        PATIENCE_AWAIT(!atomic_load(&f.is_held));
        return __real_epoll_wait(fd, events, n, timeout == 0 ? 0 : 1);
}

/* Whether the call fails, with this errno. */
static bool fails_with(atomic_int *error) {
        int number = is_loop ? atomic_exchange(error, 0) : 0;

        if (number != 0)
                errno = number;
        return number != 0;
}

ssize_t __real_recv(int fd, void *data, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t n, int flags);

/* Frames of a type that nobody knows, which HTTP/2 ignores. */
static void put_unknown_frames(uint8_t *to, size_t n) {
        while (n > 0) {
                size_t n_frame = n < H2_HEAD_SIZE + 16384 ? n : 16384;

                h2_put_head(to, n_frame - H2_HEAD_SIZE, 0xfe, 0, 0);
                memset(to + H2_HEAD_SIZE, 0, n_frame - H2_HEAD_SIZE);
                to += n_frame;
                n -= n_frame;
        }
}

ssize_t __wrap_recv(int fd, void *data, size_t n, int flags) {
        if (fails_with(&f.recv_error))
                return -1;
        ssize_t n_read = __real_recv(fd, data, n, flags);
        if (!is_loop || atomic_load(&f.n_floods) == 0)
                return n_read;
        if (n_read > 0 && atomic_load(&f.flooded_fd) < 0)
                atomic_store(&f.flooded_fd, fd);
        if (fd != atomic_load(&f.flooded_fd))
                return n_read;
        size_t n_kept = n_read > 0 ? (size_t)n_read : 0;
        put_unknown_frames((uint8_t *)data + n_kept, n - n_kept);
        atomic_fetch_sub(&f.n_floods, 1);
        return (ssize_t)n;
}

ssize_t __real_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *data, size_t n, int flags) {
        if (fails_with(&f.send_error))
                return -1;
        if (is_loop && atomic_load(&f.swallows)) {
                atomic_fetch_add(&f.n_swallowed, n);
                return (ssize_t)n;
        }
        if (is_loop && atomic_load(&f.has_little_room)) {
                size_t room = atomic_load(&f.room);
                if (room == 0) {
                        if (atomic_load(&f.is_out_of_memory))
                                failing_memory_arm(0);
                        errno = EAGAIN;
                        return -1;
                }
                n = n < room ? n : room;
                atomic_fetch_sub(&f.room, n);
        }
        return __real_send(fd, data, is_loop && f.sends_half ? (n + 1) / 2 : n, flags);
}

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n) {
        return fails_with(&f.getsockopt_error) ? -1
                                               : __real_getsockopt(fd, level, option, value, n);
}

static void copy_header(char *to, size_t space, const nghttp2_nv *header) {
        (void)snprintf(to, space, "%.*s", (int)header->valuelen, (const char *)header->value);
}

int32_t __real_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *spec,
                                      const nghttp2_nv *headers, size_t n,
                                      const nghttp2_data_provider *body, void *ctx);
int32_t __wrap_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *spec,
                                      const nghttp2_nv *headers, size_t n,
                                      const nghttp2_data_provider *body, void *ctx);

int32_t __wrap_nghttp2_submit_request(nghttp2_session *session, const nghttp2_priority_spec *spec,
                                      const nghttp2_nv *headers, size_t n,
                                      const nghttp2_data_provider *body, void *ctx) {
        f.has_unsent = false;
        f.timeout[0] = f.added[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                if (headers[i].namelen == 12 && memcmp(headers[i].name, "grpc-timeout", 12) == 0)
                        copy_header(f.timeout, sizeof f.timeout, &headers[i]);
                if (headers[i].namelen == 5 && memcmp(headers[i].name, "added", 5) == 0)
                        copy_header(f.added, sizeof f.added, &headers[i]);
        }
        if (atomic_load(&f.submit_error) != 0)
                return atomic_load(&f.submit_error);
        return __real_nghttp2_submit_request(session, spec, headers, n, body, ctx);
}

int __real_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data);
int __wrap_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data);

int __wrap_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data) {
        if (atomic_load(&f.ping_error) != 0)
                return atomic_load(&f.ping_error);
        return __real_nghttp2_submit_ping(session, flags, data);
}

int __real_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret);
int __wrap_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret);

int __wrap_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret) {
        int error = atomic_exchange(&f.callbacks_error, 0);

        return error != 0 ? error : __real_nghttp2_session_callbacks_new(ret);
}

int __real_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n);
int __wrap_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n);

int __wrap_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n) {
        int error = atomic_exchange(&f.settings_error, 0);

        return error != 0 ? error : __real_nghttp2_submit_settings(session, flags, settings, n);
}

int __real_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret);

/* "two.test" has the addresses 127.0.0.2 and 127.0.0.1, in this order, once the test says so, and
 * "first.test" has them in the other order. */
int __wrap_getaddrinfo(const char *node, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret) {
        bool is_first = node && strcmp(node, "first.test") == 0;
        const char *one = is_first ? "127.0.0.1" : "127.0.0.2";
        const char *two = is_first ? "127.0.0.2" : "127.0.0.1";

        if ((hints->ai_flags & AI_NUMERICHOST) ||
            (!is_first && (!node || strcmp(node, "two.test") != 0)))
                return __real_getaddrinfo(node, port, hints, ret);
        if (!is_first)
                PATIENCE_AWAIT(atomic_load(&f.looks_up));
        int r = __real_getaddrinfo(one, port, hints, ret);
        if (r == 0)
                r = __real_getaddrinfo(two, port, hints, &(*ret)->ai_next);
        return r;
}

/* ---- the channel ---- */

static void open_channel_of(const char *name) {
        struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                 .host = &host,
                                                 .endpoints = f.endpoints,
                                                 .n_endpoints = 2};
        const char *const names[] = {name, "two.test"};
        struct hf_status status;
        char url[64];

        for (int i = 0; i < 2; i++) {
                (void)snprintf(url, sizeof url, "http://%s:%d", names[i], f.server.base.port);
                assert_int_equal(hfd_grpc_endpoint_parse(url, &f.endpoints[i], &status), 0);
        }
        assert_int_equal(hfd_grpc_channel_new(&config, &f.channel), 0);
}

static void open_channel(void) { open_channel_of("127.0.0.1"); }

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        atomic_store(&f.now, T0);
        atomic_store(&f.flooded_fd, -1);
        grpc_server_start(&f.server);
        return 0;
}

static int tear_down(void **state) {
        atomic_store(&f.server.holds, false); /* a test that has failed may have left it so */
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_join(f.channel);
        hfd_grpc_channel_free(f.channel);
        grpc_server_stop(&f.server);
        return atomic_load(&f.sleeps_for_ever) ? 1 : 0;
}

/* Until an iteration of the loop has passed that began after the call. */
static void await_iteration(void) {
        uint64_t before = hfd_grpc_channel_iterations(f.channel);

        PATIENCE_AWAIT(hfd_grpc_channel_iterations(f.channel) >= before + 3);
}

static void move_to(hf_nsec since_begin) {
        atomic_store(&f.now, T0 + since_begin);
        await_iteration();
}

/* The loop wants to sleep for so long. */
static void expect_sleep(int ms) {
        await_iteration();
        assert_int_equal(atomic_load(&f.sleep), ms);
}

static int n_connections(void) { return atomic_load(&f.server.base.n_connections); }
static int n_pings(void) { return atomic_load(&f.server.n_pings); }
static int n_received(void) { return atomic_load(&f.server.n_messages); }

/* ---- calls ---- */

struct call {
        struct hfd_grpc_stream stream;
        struct hf__buf *body, *probe;
        atomic_bool done;
        atomic_int n_messages;
        int outcome;
        char error_text[128];
};

static void start(struct call *call, const char *text, hf_nsec deadline);

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx, *next = f.next;

        f.next = NULL;
        if (next) {
                start(next, "echo", HF_NSEC_NEVER);
                f.has_unsent = true;
        }
        call->outcome = result->outcome;
        (void)snprintf(call->error_text, sizeof call->error_text, "%.127s", result->error_text);
        atomic_store(&call->done, true);
}

static int on_message(void *ctx, const char *data, size_t n) {
        struct call *call = ctx;

        atomic_fetch_add(&call->n_messages, 1);
        return 0;
}

static struct hf__buf *message_of(const char *text, size_t n_filler) {
        size_t n_text = strlen(text), n = n_text + n_filler;
        struct hf__buf *body = hf__buf_new(HFD_GRPC_PREFIX + n);

        hfd_grpc_prefix_write(body->data, (uint32_t)n);
        memcpy(body->data + HFD_GRPC_PREFIX, text, n_text);
        memset(body->data + HFD_GRPC_PREFIX + n_text, '.', n_filler);
        return body;
}

/* deadline: since the begin of the test */
static void start_large(struct call *call, const char *text, size_t n_filler, hf_nsec deadline,
                        struct hfd_grpc_request request) {
        *call = (struct call){.body = message_of(text, n_filler)};
        request.path = "/test.Test/Test";
        request.body = call->body;
        request.deadline = deadline == HF_NSEC_NEVER ? HF_NSEC_NEVER : T0 + deadline;
        request.max_message = 4096;
        request.on_done = on_done;
        request.ctx = call;
        if (request.probe_after != 0) {
                request.on_message = on_message;
                request.probe = call->probe = message_of("probe", 0);
        }
        assert_int_equal(hfd_grpc_channel_start(f.channel, &call->stream, &request), 0);
}

static void start_with(struct call *call, const char *text, hf_nsec deadline,
                       struct hfd_grpc_request request) {
        start_large(call, text, 0, deadline, request);
}

static void start(struct call *call, const char *text, hf_nsec deadline) {
        start_with(call, text, deadline, (struct hfd_grpc_request){0});
}

static void start_stream(struct call *call, const char *text, hf_nsec probe_after) {
        start_with(call, text, HF_NSEC_NEVER,
                   (struct hfd_grpc_request){.probe_after = probe_after, .probe_time = 3 * SEC});
}

/* The same, once the server has the message. */
static void start_and_arrive(struct call *call, const char *text, hf_nsec deadline) {
        int before = n_received();

        start(call, text, deadline);
        PATIENCE_AWAIT(n_received() > before);
        await_iteration();
}

static void expect_end(struct call *call, int outcome, const char *error_text) {
        PATIENCE_AWAIT(atomic_load(&call->done));
        hf__buf_unref(call->body);
        hf__buf_unref(call->probe);
        assert_int_equal(call->outcome, outcome);
        assert_string_equal(call->error_text, error_text);
}

/* A call whose response comes: all that the server has sent before has come, too. */
static void call_with(const char *text) {
        static struct call call;

        start(&call, text, HF_NSEC_NEVER);
        expect_end(&call, 0, "");
        await_iteration();
}

static void stop_with(struct call *call) {
        hfd_grpc_channel_stop(f.channel);
        expect_end(call, HF_E_CANCELED, "canceled");
}

/* ---- the loop ---- */

static void test_the_loop_sleeps_until_the_next_time(void **state) {
        static struct call call;

        atomic_store(&f.is_held, true);
        open_channel();
        assert_true(hfd_grpc_channel_alive_at(f.channel) == T0); /* before any iteration */
        atomic_store(&f.is_held, false);
        expect_sleep(1000); /* the longest, although nothing is due */
        call_with("echo");
        start_and_arrive(&call, "nothing", 1500 * MSEC);
        expect_sleep(1000);
        move_to(1200 * MSEC);
        assert_true(hfd_grpc_channel_alive_at(f.channel) == T0 + 1200 * MSEC);
        expect_sleep(300);
        move_to(1300 * MSEC + 1);
        expect_sleep(200); /* rounded up */
        move_to(1500 * MSEC - 1);
        expect_sleep(1);
        assert_false(call.done);
        move_to(1500 * MSEC);
        expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        expect_sleep(500); /* until the look at the silent connection */
}

/* The deadline passes between the loop's timers and its sleep. */
static void test_the_loop_does_not_sleep_past_a_deadline(void **state) {
        static struct call call;

        open_channel();
        call_with("echo");
        for (hf_nsec at = 0; at < 12 * SEC; at += SEC) {
                start_and_arrive(&call, "nothing", at + 450 * MSEC);
                atomic_store(&f.step, 100 * MSEC);
                PATIENCE_AWAIT(atomic_load(&call.done));
                atomic_store(&f.step, 0);
                move_to(at + SEC);
                hf__buf_unref(call.body);
        }
}

static void test_a_call_of_a_callback_is_sent_before_the_loop_sleeps(void **state) {
        static struct call first, next;

        open_channel();
        call_with("echo");
        f.next = &next;
        start(&first, "echo", HF_NSEC_NEVER);
        expect_end(&first, 0, "");
        expect_end(&next, 0, "");
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_join(f.channel);
        assert_false(f.sleeps_unsent);
        hfd_grpc_channel_free(f.channel);
        f.channel = NULL;
}

/* ---- PINGs ---- */

static void test_a_silent_server_gets_a_ping_after_two_seconds(void **state) {
        static struct call call;

        open_channel();
        call_with("echo");
        start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        expect_sleep(1000);
        move_to(2 * SEC - 1);
        expect_sleep(1);
        assert_int_equal(n_pings(), 0);
        move_to(2 * SEC);
        PATIENCE_AWAIT(n_pings() == 1);
        call_with("echo");
        /* The response makes up for the PING, and the next one is six seconds after the first. */
        move_to(5 * SEC);
        call_with("echo");
        move_to(8 * SEC - 1);
        expect_sleep(1);
        assert_int_equal(n_pings(), 1);
        move_to(8 * SEC);
        PATIENCE_AWAIT(n_pings() == 2);
        assert_false(call.done);
        assert_int_equal(n_connections(), 1);
        stop_with(&call);
}

static void test_a_ping_without_a_response_ends_the_connection(void **state) {
        static struct call call;

        open_channel();
        start_and_arrive(&call, "dead", HF_NSEC_NEVER);
        move_to(2 * SEC);
        move_to(5 * SEC - 1);
        expect_sleep(1);
        assert_false(call.done);
        move_to(5 * SEC);
        expect_end(&call, HF_E_TIMEOUT, "the server does not respond to a PING");
        call_with("echo");
        assert_int_equal(n_connections(), 2);
}

static void test_an_idle_connection_gets_no_ping(void **state) {
        static struct call call;

        open_channel();
        call_with("echo");
        move_to(2 * SEC);
        move_to(20 * SEC);
        expect_sleep(1000);
        start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        move_to(22 * SEC - 1);
        expect_sleep(1);
        assert_int_equal(n_pings(), 0);
        move_to(22 * SEC);
        PATIENCE_AWAIT(n_pings() == 1);
        assert_int_equal(n_connections(), 1);
        stop_with(&call);
}

static void test_a_ping_that_cannot_be_made_ends_the_connection(void **state) {
        static struct call call;

        open_channel();
        start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        atomic_store(&f.ping_error, NGHTTP2_ERR_NOMEM);
        move_to(2 * SEC);
        expect_end(&call, HF_E_TIMEOUT, "out of memory");
        call_with("echo");
        assert_int_equal(n_connections(), 2);
}

/* ---- deadlines ---- */

/* What was received when the call was sent is enough: no time has passed since. */
static void test_a_deadline_leaves_only_a_silent_connection(void **state) {
        static struct call call;

        open_channel();
        call_with("echo");
        start_and_arrive(&call, "nothing", 1 * SEC);
        move_to(1 * SEC);
        expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        call_with("echo");
        assert_int_equal(n_connections(), 1);
        move_to(1 * SEC + 1);
        start_and_arrive(&call, "nothing", 2 * SEC);
        move_to(2 * SEC);
        expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        call_with("echo");
        assert_int_equal(n_connections(), 2);
}

static void test_a_response_must_begin_in_time(void **state) {
        const struct hfd_grpc_request request = {.head_timeout = 500 * MSEC};
        static struct call call, late;

        open_channel();
        start_with(&call, "Held back", HF_NSEC_NEVER, request);
        call_with("kept: the head");
        move_to(500 * MSEC);
        move_to(1000 * MSEC);
        assert_false(call.done);
        start_with(&late, "Held back", HF_NSEC_NEVER, request);
        call_with("echo");
        move_to(1500 * MSEC - 1);
        expect_sleep(1);
        assert_false(late.done);
        move_to(1500 * MSEC);
        expect_end(&late, HF_E_TIMEOUT, "no response has begun in time");
        stop_with(&call);
}

/* The host has another address, but this one has accepted the connection. */
static void test_a_connection_must_be_made_in_time(void **state) {
        static struct call call;

        atomic_store(&f.server.holds, true);
        open_channel_of("first.test");
        start(&call, "echo", HF_NSEC_NEVER);
        PATIENCE_AWAIT(n_connections() == 1);
        await_iteration(); /* the loop has seen it too, so the other address gets no turn */
        move_to(3 * SEC - 1);
        expect_sleep(1);
        assert_false(call.done);
        move_to(3 * SEC);
        expect_end(&call, HF_E_UNAVAILABLE, "no connection within 3 seconds");
        atomic_store(&f.server.holds, false);
}

/* Takes connections to 127.0.0.2 until the kernel ignores further ones. */
static void listen_without_room(int fds[4]) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)f.server.base.port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};

        fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fds[0], (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(listen(fds[0], 0), 0);
        for (int i = 1; i < 4; i++) {
                fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                (void)connect(fds[i], (struct sockaddr *)&address, sizeof address);
        }
}

static void test_the_next_address_has_its_turn_after_a_second(void **state) {
        static struct call call;
        int fds[4];

        listen_without_room(fds);
        open_channel_of("two.test");
        start(&call, "echo", HF_NSEC_NEVER);
        await_iteration();
        move_to(2500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&f.sleep) == 500); /* until the look-up would take too long */
        atomic_store(&f.looks_up, true);
        PATIENCE_AWAIT(atomic_load(&f.sleep) == 1000);
        move_to(3500 * MSEC - 1);
        expect_sleep(1);
        assert_int_equal(n_connections(), 0);
        move_to(3500 * MSEC);
        expect_end(&call, 0, "");
        assert_int_equal(n_connections(), 1);
        for (int i = 0; i < 4; i++)
                close(fds[i]);
}

/* Both begin in one iteration, and the older one returns first. */
static void test_look_ups_end_in_any_order(void **state) {
        static struct call first, second;

        atomic_store(&f.is_held, true);
        open_channel_of("first.test");
        start(&first, "echo", HF_NSEC_NEVER);
        start_with(&second, "echo", HF_NSEC_NEVER, (struct hfd_grpc_request){.endpoint = 1});
        atomic_store(&f.is_held, false);
        expect_end(&first, 0, "");
        assert_false(second.done);
        atomic_store(&f.looks_up, true);
        expect_end(&second, 0, "");
}

/* ---- probes ---- */

static void test_a_stream_is_probed_when_it_is_silent(void **state) {
        static struct call call;

        open_channel();
        start_stream(&call, "stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 1);
        move_to(1500 * MSEC - 1);
        expect_sleep(1);
        assert_int_equal(n_received(), 1);
        move_to(1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 2);
        move_to(3 * SEC - 1);
        expect_sleep(1);
        assert_int_equal(n_received(), 2);
        move_to(3 * SEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 3);
        call_with("echo");
        assert_int_equal(n_received(), 4);
        stop_with(&call);
}

static void test_a_probe_without_a_response_ends_the_stream(void **state) {
        static struct call call;

        open_channel();
        start_stream(&call, "Silent stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 1);
        move_to(1500 * MSEC);
        PATIENCE_AWAIT(n_received() == 2);
        move_to(4500 * MSEC - 1);
        expect_sleep(1);
        assert_false(call.done);
        move_to(4500 * MSEC);
        expect_end(&call, HF_E_TIMEOUT, "the server is silent");
        call_with("echo");
        assert_int_equal(n_connections(), 2);
}

/* Whatever comes puts the probe off, the head of the response as well as a message. */
static void test_a_probe_is_put_off_by_what_arrives(void **state) {
        static struct call call;

        open_channel();
        start_stream(&call, "Held back", 500 * MSEC);
        move_to(100 * MSEC);
        call_with("kept: the head");
        expect_sleep(500);
        move_to(400 * MSEC);
        call_with("message for it");
        assert_int_equal(atomic_load(&call.n_messages), 1);
        expect_sleep(200); /* the timer itself is not put off */
        move_to(600 * MSEC);
        expect_sleep(300);
        move_to(900 * MSEC - 1);
        expect_sleep(1);
        assert_int_equal(n_received(), 3);
        move_to(900 * MSEC);
        PATIENCE_AWAIT(n_received() == 4);
        stop_with(&call);
}

/* ---- requests ---- */

static void expect_timeout(hf_nsec left, const char *expected) {
        static struct call call;

        start(&call, "echo", left);
        expect_end(&call, 0, "");
        assert_string_equal(f.timeout, expected);
        assert_string_equal(f.added, "");
}

static void test_the_server_is_told_the_time_that_is_left(void **state) {
        static struct call call;

        open_channel();
        expect_timeout(1, "1S");
        expect_timeout(1 * SEC, "1S");
        expect_timeout(1 * SEC + 1, "2S");
        expect_timeout(2 * SEC, "2S");
        expect_timeout(2 * SEC + 1, "4S");
        expect_timeout(600 * SEC, "600S");
        expect_timeout(600 * SEC + 1, "");
        expect_timeout(HF_NSEC_NEVER, "");
        start_with(&call, "echo", 3 * SEC,
                   (struct hfd_grpc_request){.header_name = "added", .header_value = "yes"});
        expect_end(&call, 0, "");
        assert_string_equal(f.timeout, "4S");
        assert_string_equal(f.added, "yes");
}

/* The numbers of a connection's streams are used up, for example. Calls under way stay on it. */
static void test_a_connection_that_takes_no_request_is_left(void **state) {
        static struct call call, alive;

        open_channel();
        start_stream(&alive, "stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&alive.n_messages) == 1);
        atomic_store(&f.submit_error, NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE));
        atomic_store(&f.submit_error, 0);
        call_with("echo");
        assert_int_equal(n_connections(), 2);
        move_to(1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&alive.n_messages) == 2);
        stop_with(&alive);
}

static void test_a_new_connection_may_take_no_request(void **state) {
        static struct call calls[3];

        atomic_store(&f.server.holds, true);
        atomic_store(&f.submit_error, NGHTTP2_ERR_NOMEM);
        open_channel();
        for (int i = 0; i < 3; i++)
                start(&calls[i], "echo", HF_NSEC_NEVER);
        await_iteration();
        atomic_store(&f.server.holds, false);
        for (int i = 0; i < 3; i++)
                expect_end(&calls[i], HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        atomic_store(&f.submit_error, 0);
        call_with("echo");
        assert_int_equal(n_connections(), 2); /* the first one is left */
}

/* ---- the socket ---- */

static void test_a_call_that_is_interrupted_is_repeated(void **state) {
        static const int errors[] = {EINTR, EAGAIN};

        open_channel();
        for (int i = 0; i < 2; i++) {
                call_with("echo");
                atomic_store(&f.recv_error, errors[i]);
                call_with("echo");
                atomic_store(&f.send_error, errors[i]);
                call_with("echo");
        }
        atomic_store(&f.sends_half, true);
        call_with("echo");
        assert_int_equal(n_connections(), 1);
}

static void test_a_call_that_fails_ends_the_connection(void **state) {
        static struct call call;

        open_channel();
        atomic_store(&f.getsockopt_error, ENOBUFS);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, "cannot connect: No buffer space available");
        call_with("echo");
        atomic_store(&f.send_error, EPIPE);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, "Broken pipe");
        call_with("echo");
        atomic_store(&f.recv_error, ECONNRESET);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_TIMEOUT, "Connection reset by peer");
        call_with("echo");
}

static void test_a_session_that_cannot_be_made_ends_the_connection(void **state) {
        static struct call call;

        open_channel();
        atomic_store(&f.callbacks_error, NGHTTP2_ERR_NOMEM);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        atomic_store(&f.settings_error, NGHTTP2_ERR_NOMEM);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        call_with("echo");
}

/* ---- much to read, and little room to write ---- */

/* The rest of the input needs no event of the socket, and no sleep is left out after it. */
static void test_a_full_buffer_is_read_again_at_once(void **state) {
        open_channel();
        call_with("echo");
        unsigned before = atomic_load(&f.n_hurries);
        atomic_store(&f.n_floods, 100);
        call_with("echo");
        PATIENCE_AWAIT(atomic_load(&f.n_floods) == 0);
        assert_true(atomic_load(&f.n_hurries) > before);
        expect_sleep(1000);
        call_with("echo");
        assert_int_equal(n_connections(), 1);
}

/* One of them has no socket yet. */
static void test_a_connection_with_endless_input_does_not_hinder_others(void **state) {
        static struct call call, other;

        open_channel();
        call_with("echo");
        start_with(&other, "echo", HF_NSEC_NEVER, (struct hfd_grpc_request){.endpoint = 1});
        atomic_store(&f.n_floods, UINT32_MAX);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, 0, "");
        await_iteration();
        assert_false(other.done);
        start_with(&call, "echo", HF_NSEC_NEVER, (struct hfd_grpc_request){.lane = 1});
        expect_end(&call, 0, "");
        atomic_store(&f.looks_up, true);
        expect_end(&other, 0, "");
        atomic_store(&f.n_floods, 0);
        call_with("echo");
        assert_int_equal(n_connections(), 3);
}

/* More than a connection writes before the others have their turn. */
static void test_a_large_output_is_written_without_a_sleep(void **state) {
        enum { N = 15, LARGE = 60000 };
        static struct call calls[N];

        open_channel();
        call_with("echo");
        atomic_store(&f.is_held, true);
        atomic_store(&f.swallows, true);
        unsigned before = atomic_load(&f.n_hurries);
        for (int i = 0; i < N; i++)
                start_large(&calls[i], "nothing", LARGE, HF_NSEC_NEVER,
                            (struct hfd_grpc_request){0});
        atomic_store(&f.is_held, false);
        PATIENCE_AWAIT(atomic_load(&f.n_swallowed) > N * LARGE);
        assert_true(atomic_load(&f.n_hurries) > before);
        expect_sleep(1000);
        hfd_grpc_channel_stop(f.channel);
        for (int i = 0; i < N; i++)
                expect_end(&calls[i], HF_E_CANCELED, "canceled");
}

static void make_room(size_t n) {
        atomic_store(&f.room, n);
        PATIENCE_AWAIT(atomic_load(&f.room) == 0);
        await_iteration();
}

static void test_a_request_follows_the_rest_of_the_last_one(void **state) {
        static struct call first, next;

        open_channel();
        call_with("echo");
        atomic_store(&f.room, 10);
        atomic_store(&f.has_little_room, true);
        start(&first, "echo", HF_NSEC_NEVER);
        PATIENCE_AWAIT(atomic_load(&f.room) == 0);
        start(&next, "echo", HF_NSEC_NEVER);
        await_iteration();
        make_room(10);
        make_room(1);
        assert_false(first.done);
        atomic_store(&f.has_little_room, false);
        expect_end(&first, 0, "");
        expect_end(&next, 0, "");
        assert_int_equal(n_connections(), 1);
}

/* The request has left in part, so nothing can follow it on this connection. */
static void test_output_that_cannot_be_kept_ends_the_connection(void **state) {
        static struct call call;

        open_channel();
        call_with("echo");
        atomic_store(&f.room, 10);
        atomic_store(&f.is_out_of_memory, true);
        atomic_store(&f.has_little_room, true);
        start(&call, "echo", HF_NSEC_NEVER);
        expect_end(&call, HF_E_UNAVAILABLE, "out of memory");
        failing_memory_disarm();
        atomic_store(&f.has_little_room, false);
        call_with("echo");
        assert_int_equal(n_connections(), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_the_loop_sleeps_until_the_next_time),
                TEST(test_the_loop_does_not_sleep_past_a_deadline),
                TEST(test_a_call_of_a_callback_is_sent_before_the_loop_sleeps),
                TEST(test_a_silent_server_gets_a_ping_after_two_seconds),
                TEST(test_a_ping_without_a_response_ends_the_connection),
                TEST(test_an_idle_connection_gets_no_ping),
                TEST(test_a_ping_that_cannot_be_made_ends_the_connection),
                TEST(test_a_deadline_leaves_only_a_silent_connection),
                TEST(test_a_response_must_begin_in_time),
                TEST(test_a_connection_must_be_made_in_time),
                TEST(test_the_next_address_has_its_turn_after_a_second),
                TEST(test_look_ups_end_in_any_order),
                TEST(test_a_stream_is_probed_when_it_is_silent),
                TEST(test_a_probe_without_a_response_ends_the_stream),
                TEST(test_a_probe_is_put_off_by_what_arrives),
                TEST(test_the_server_is_told_the_time_that_is_left),
                TEST(test_a_connection_that_takes_no_request_is_left),
                TEST(test_a_new_connection_may_take_no_request),
                TEST(test_a_call_that_is_interrupted_is_repeated),
                TEST(test_a_call_that_fails_ends_the_connection),
                TEST(test_a_session_that_cannot_be_made_ends_the_connection),
                TEST(test_a_full_buffer_is_read_again_at_once),
                TEST(test_a_connection_with_endless_input_does_not_hinder_others),
                TEST(test_a_large_output_is_written_without_a_sleep),
                TEST(test_a_request_follows_the_rest_of_the_last_one),
                TEST(test_output_that_cannot_be_kept_ends_the_connection),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
