/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See paced_channel.h. The linker replaces the functions that begin with __wrap_. Those of the
 * socket act only on the channel's thread: the server is in the same process.
 */
#include "paced_channel.h"

#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "failing_memory.h"
#include "h2_frames.h"
#include "server/storage/grpc/prefix.h"

struct paced_channel paced;

static _Thread_local bool is_loop; /* the channel's thread */

static hf_nsec read_boot(void *ctx) {
        return atomic_fetch_add(&paced.now, atomic_load(&paced.step));
}

static const struct hf_clock clock_of_test = {.size = sizeof clock_of_test, .boot = read_boot};
static const struct hf_host host = {.size = sizeof(struct hf_host), .clock = &clock_of_test};

/* ---- replaced functions ---- */

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout) {
        is_loop = true;
        if (timeout < 0)
                atomic_store(&paced.sleeps_for_ever, true);
        if (paced.has_unsent)
                paced.sleeps_unsent = true;
        atomic_store(&paced.sleep, timeout);
        atomic_fetch_add(&paced.n_hurries, timeout == 0);
        PATIENCE_AWAIT(!atomic_load(&paced.is_held));
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
        if (fails_with(&paced.recv_error))
                return -1;
        ssize_t n_read = __real_recv(fd, data, n, flags);
        if (!is_loop || atomic_load(&paced.n_floods) == 0)
                return n_read;
        if (n_read > 0 && atomic_load(&paced.flooded_fd) < 0)
                atomic_store(&paced.flooded_fd, fd);
        if (fd != atomic_load(&paced.flooded_fd))
                return n_read;
        size_t n_kept = n_read > 0 ? (size_t)n_read : 0;
        put_unknown_frames((uint8_t *)data + n_kept, n - n_kept);
        atomic_fetch_sub(&paced.n_floods, 1);
        return (ssize_t)n;
}

ssize_t __real_send(int fd, const void *data, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *data, size_t n, int flags) {
        if (fails_with(&paced.send_error))
                return -1;
        if (is_loop && atomic_load(&paced.swallows)) {
                atomic_fetch_add(&paced.n_swallowed, n);
                return (ssize_t)n;
        }
        if (is_loop && atomic_load(&paced.has_little_room)) {
                size_t room = atomic_load(&paced.room);
                if (room == 0) {
                        if (atomic_load(&paced.is_out_of_memory))
                                failing_memory_arm(0);
                        errno = EAGAIN;
                        return -1;
                }
                n = n < room ? n : room;
                atomic_fetch_sub(&paced.room, n);
        }
        return __real_send(fd, data, is_loop && paced.sends_half ? (n + 1) / 2 : n, flags);
}

int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *n);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n);

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *n) {
        return fails_with(&paced.getsockopt_error) ? -1
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
        paced.has_unsent = false;
        paced.timeout[0] = paced.added[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                if (headers[i].namelen == 12 && memcmp(headers[i].name, "grpc-timeout", 12) == 0)
                        copy_header(paced.timeout, sizeof paced.timeout, &headers[i]);
                if (headers[i].namelen == 5 && memcmp(headers[i].name, "added", 5) == 0)
                        copy_header(paced.added, sizeof paced.added, &headers[i]);
        }
        if (atomic_load(&paced.submit_error) != 0)
                return atomic_load(&paced.submit_error);
        return __real_nghttp2_submit_request(session, spec, headers, n, body, ctx);
}

int __real_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data);
int __wrap_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data);

int __wrap_nghttp2_submit_ping(nghttp2_session *session, uint8_t flags, const uint8_t *data) {
        if (atomic_load(&paced.ping_error) != 0)
                return atomic_load(&paced.ping_error);
        return __real_nghttp2_submit_ping(session, flags, data);
}

int __real_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret);
int __wrap_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret);

int __wrap_nghttp2_session_callbacks_new(nghttp2_session_callbacks **ret) {
        int error = atomic_exchange(&paced.callbacks_error, 0);

        return error != 0 ? error : __real_nghttp2_session_callbacks_new(ret);
}

int __real_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n);
int __wrap_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n);

int __wrap_nghttp2_submit_settings(nghttp2_session *session, uint8_t flags,
                                   const nghttp2_settings_entry *settings, size_t n) {
        int error = atomic_exchange(&paced.settings_error, 0);

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
                PATIENCE_AWAIT(atomic_load(&paced.looks_up));
        int r = __real_getaddrinfo(one, port, hints, ret);
        if (r == 0)
                r = __real_getaddrinfo(two, port, hints, &(*ret)->ai_next);
        return r;
}

/* ---- the channel ---- */

void paced_channel_open_of(const char *name) {
        struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                 .host = &host,
                                                 .endpoints = paced.endpoints,
                                                 .n_endpoints = 2};
        const char *const names[] = {name, "two.test"};
        struct hf_status status;
        char url[64];

        for (int i = 0; i < 2; i++) {
                (void)snprintf(url, sizeof url, "http://%s:%d", names[i], paced.server.base.port);
                assert_int_equal(hfd_grpc_endpoint_parse(url, &paced.endpoints[i], &status), 0);
        }
        assert_int_equal(hfd_grpc_channel_new(&config, &paced.channel), 0);
}

void paced_channel_open(void) { paced_channel_open_of("127.0.0.1"); }

int paced_channel_set_up(void **state) {
        memset(&paced, 0, sizeof paced);
        atomic_store(&paced.now, PACED_T0);
        atomic_store(&paced.flooded_fd, -1);
        grpc_server_start(&paced.server);
        return 0;
}

int paced_channel_tear_down(void **state) {
        atomic_store(&paced.server.holds, false); /* a test that has failed may have left it so */
        hfd_grpc_channel_stop(paced.channel);
        hfd_grpc_channel_join(paced.channel);
        hfd_grpc_channel_free(paced.channel);
        grpc_server_stop(&paced.server);
        return atomic_load(&paced.sleeps_for_ever) ? 1 : 0;
}

void paced_channel_await_iteration(void) {
        uint64_t before = hfd_grpc_channel_iterations(paced.channel);

        PATIENCE_AWAIT(hfd_grpc_channel_iterations(paced.channel) >= before + 3);
}

void paced_channel_move_to(hf_nsec since_begin) {
        atomic_store(&paced.now, PACED_T0 + since_begin);
        paced_channel_await_iteration();
}

void paced_channel_expect_sleep(int ms) {
        paced_channel_await_iteration();
        assert_int_equal(atomic_load(&paced.sleep), ms);
}

int paced_channel_n_connections(void) { return atomic_load(&paced.server.base.n_connections); }
int paced_channel_n_pings(void) { return atomic_load(&paced.server.n_pings); }
int paced_channel_n_received(void) { return atomic_load(&paced.server.n_messages); }

/* ---- calls ---- */

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct paced_call *call = ctx, *next = paced.next;

        paced.next = NULL;
        if (next) {
                paced_call_start(next, "echo", HF_NSEC_NEVER);
                paced.has_unsent = true;
        }
        call->outcome = result->outcome;
        (void)snprintf(call->error_text, sizeof call->error_text, "%.127s", result->error_text);
        atomic_store(&call->done, true);
}

static int on_message(void *ctx, const char *data, size_t n) {
        struct paced_call *call = ctx;

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

void paced_call_start_large(struct paced_call *call, const char *text, size_t n_filler,
                            hf_nsec deadline, struct hfd_grpc_request request) {
        *call = (struct paced_call){.body = message_of(text, n_filler)};
        request.path = "/test.Test/Test";
        request.body = call->body;
        request.deadline = deadline == HF_NSEC_NEVER ? HF_NSEC_NEVER : PACED_T0 + deadline;
        request.max_message = 4096;
        request.on_done = on_done;
        request.ctx = call;
        if (request.probe_after != 0) {
                request.on_message = on_message;
                request.probe = call->probe = message_of("probe", 0);
        }
        assert_int_equal(hfd_grpc_channel_start(paced.channel, &call->stream, &request), 0);
}

void paced_call_start_with(struct paced_call *call, const char *text, hf_nsec deadline,
                           struct hfd_grpc_request request) {
        paced_call_start_large(call, text, 0, deadline, request);
}

void paced_call_start(struct paced_call *call, const char *text, hf_nsec deadline) {
        paced_call_start_with(call, text, deadline, (struct hfd_grpc_request){0});
}

void paced_call_start_stream(struct paced_call *call, const char *text, hf_nsec probe_after) {
        paced_call_start_with(call, text, HF_NSEC_NEVER,
                              (struct hfd_grpc_request){.probe_after = probe_after,
                                                        .probe_time = 3 * SEC});
}

void paced_call_start_and_arrive(struct paced_call *call, const char *text, hf_nsec deadline) {
        int before = paced_channel_n_received();

        paced_call_start(call, text, deadline);
        PATIENCE_AWAIT(paced_channel_n_received() > before);
        paced_channel_await_iteration();
}

void paced_call_expect_end(struct paced_call *call, int outcome, const char *error_text) {
        PATIENCE_AWAIT(atomic_load(&call->done));
        hf__buf_unref(call->body);
        hf__buf_unref(call->probe);
        assert_int_equal(call->outcome, outcome);
        assert_string_equal(call->error_text, error_text);
}

void paced_call_make(const char *text) {
        static struct paced_call call;

        paced_call_start(&call, text, HF_NSEC_NEVER);
        paced_call_expect_end(&call, 0, "");
        paced_channel_await_iteration();
}

void paced_call_stop(struct paced_call *call) {
        hfd_grpc_channel_stop(paced.channel);
        paced_call_expect_end(call, HF_E_CANCELED, "canceled");
}
