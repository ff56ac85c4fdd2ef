/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gRPC channel: how calls end, above all which of them were certainly not executed, and how a
 * dead peer is noticed. The server is a small one of the tests, because etcd does none of this on
 * request; test-store-etcd.c and test-store-pressure.c use a real etcd.
 *
 * Time-outs of seconds are tested with a clock that runs FASTER times as fast.
 */
#undef NDEBUG
#include <errno.h>
#include <poll.h>
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
#include <sys/socket.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/thread.h"
#include "count_descriptors.h"
#include "grpc_server.h"
#include "patience.h"
#include "scripted_server.h"
#include "server/storage/grpc/channel.h"
#include "server/storage/grpc/prefix.h"

#define FASTER 8

static hf_nsec fast_boot(void *ctx) {
        const struct hf_clock *clock = hf_clock_system();

        return FASTER * hf_now(clock);
}

static const struct hf_clock fast_clock = {.size = sizeof fast_clock, .boot = fast_boot};
static const struct hf_host host = {.size = sizeof(struct hf_host)};
static const struct hf_host fast_host = {.size = sizeof(struct hf_host), .clock = &fast_clock};

struct fixture {
        struct grpc_server server;
        struct hfd_grpc_endpoint endpoint;
        struct hfd_grpc_channel *channel;
};

static struct fixture f;
static atomic_bool ends_at_first_message, cancels_when_done;

static void open_channel_to(int port, const struct hf_host *its_host) {
        char url[64];
        struct hf_status status;
        struct hfd_grpc_channel_config config = {.thread_name = "test-grpc",
                                                 .host = its_host,
                                                 .endpoints = &f.endpoint,
                                                 .n_endpoints = 1};

        snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
        assert_int_equal(hfd_grpc_endpoint_parse(url, &f.endpoint, &status), 0);
        assert_int_equal(hfd_grpc_channel_new(&config, &f.channel), 0);
}

static void open_channel(const struct hf_host *its_host) {
        grpc_server_start(&f.server);
        open_channel_to(f.server.base.port, its_host);
}

static void free_channel(void) {
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_join(f.channel);
        hfd_grpc_channel_free(f.channel);
}

static void close_channel(void) {
        free_channel();
        grpc_server_stop(&f.server);
        f = (struct fixture){0};
}

static int n_connections(void) { return atomic_load(&f.server.base.n_connections); }

/* A call that a test waits for. */
struct call {
        struct hfd_grpc_stream stream;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct hf__buf *body, *probe;
        /* guarded by mu */
        bool done, released;
        unsigned n_messages;
        int outcome, code, status;
        char status_text[32], error_text[128], message[64];
        bool has_message;
};

static void on_done(void *ctx, const struct hfd_grpc_result *result) {
        struct call *call = ctx;

        pthread_mutex_lock(&call->mu);
        assert_false(call->done);
        call->done = true;
        call->outcome = result->outcome;
        call->code = result->code;
        call->status = result->status;
        snprintf(call->status_text, sizeof call->status_text, "%.31s", result->status_text);
        snprintf(call->error_text, sizeof call->error_text, "%.127s", result->error_text);
        call->has_message = result->message != NULL;
        if (result->message && result->n_message < sizeof call->message)
                memcpy(call->message, result->message, result->n_message);
        pthread_cond_broadcast(&call->cond);
        pthread_mutex_unlock(&call->mu);
        if (atomic_load(&cancels_when_done))
                hfd_grpc_channel_cancel(f.channel, &call->stream);
}

static int on_message(void *ctx, const char *data, size_t n) {
        struct call *call = ctx;

        pthread_mutex_lock(&call->mu);
        assert_false(call->done);
        call->n_messages++;
        memcpy(call->message, data, n < sizeof call->message ? n : sizeof call->message);
        pthread_cond_broadcast(&call->cond);
        pthread_mutex_unlock(&call->mu);
        return ends_at_first_message;
}

static void on_release(void *ctx) {
        struct call *call = ctx;

        pthread_mutex_lock(&call->mu);
        assert_true(call->done);
        call->released = true;
        pthread_cond_broadcast(&call->cond);
        pthread_mutex_unlock(&call->mu);
}

static struct hf__buf *message_of(const char *text, size_t n_filler) {
        size_t n = strlen(text) + n_filler;
        struct hf__buf *body = hf__buf_new(HFD_GRPC_PREFIX + n);

        hfd_grpc_prefix_write(body->data, (uint32_t)n);
        memset(body->data + HFD_GRPC_PREFIX, '.', n);
        memcpy(body->data + HFD_GRPC_PREFIX, text, strlen(text));
        return body;
}

static struct hfd_grpc_request start_request(struct call *call, struct hf__buf *body,
                                             hf_nsec deadline) {
        *call = (struct call){.body = body};
        assert_int_equal(hf__mutex_cond_init(&call->mu, &call->cond), 0);
        return (struct hfd_grpc_request){.path = "/test.Test/Test",
                                         .body = body,
                                         .deadline = deadline,
                                         .max_message = 4096,
                                         .on_done = on_done,
                                         .ctx = call};
}

static void start(struct call *call, struct hf__buf *body, hf_nsec deadline) {
        struct hfd_grpc_request request = start_request(call, body, deadline);

        assert_int_equal(hfd_grpc_channel_start(f.channel, &call->stream, &request), 0);
}

static void start_stream_with(struct call *call, struct hf__buf *body, hf_nsec probe_after,
                              hf_nsec probe_time) {
        struct hfd_grpc_request request = start_request(call, body, HF_NSEC_NEVER);

        call->probe = message_of("probe", 0);
        request.on_message = on_message;
        request.on_release = on_release;
        request.probe = probe_after != 0 ? call->probe : NULL;
        request.probe_after = probe_after;
        request.probe_time = probe_time;
        assert_int_equal(hfd_grpc_channel_start(f.channel, &call->stream, &request), 0);
}

static void start_stream(struct call *call, const char *text, hf_nsec probe_after,
                         hf_nsec probe_time) {
        start_stream_with(call, message_of(text, 0), probe_after, probe_time);
}

/* Waits until the call has ended or a stream has so many messages. */
static void await_messages(struct call *call, unsigned n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec patience = in_msec(PATIENCE_MSEC);

        pthread_mutex_lock(&call->mu);
        while (!call->done && call->n_messages < n)
                assert_int_equal(clock->wait(clock->ctx, &call->cond, &call->mu, patience), 0);
        pthread_mutex_unlock(&call->mu);
}

static int await(struct call *call) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec patience = in_msec(PATIENCE_MSEC);

        await_messages(call, UINT32_MAX);
        pthread_mutex_lock(&call->mu);
        while (call->probe && !call->released)
                assert_int_equal(clock->wait(clock->ctx, &call->cond, &call->mu, patience), 0);
        pthread_mutex_unlock(&call->mu);
        hf__buf_unref(call->body);
        hf__buf_unref(call->probe);
        return call->outcome;
}

static int call_with(struct call *call, const char *text) {
        start(call, message_of(text, 0), in_msec(60000));
        return await(call);
}

/* ---- how calls end ---- */

static void test_a_response_arrives_with_its_code_status_and_message(void **state) {
        struct call call;

        open_channel(&host);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(call.code, 200);
        assert_int_equal(call.status, 0);
        assert_string_equal(call.message, "echo");
        assert_int_equal(call_with(&call, "piece by piece"), 0);
        assert_string_equal(call.message, "piece by piece");
        assert_int_equal(call_with(&call, "zero"), 0);
        assert_true(call.has_message);
        assert_string_equal(call.message, "");
        assert_int_equal(n_connections(), 1);
        close_channel();
}

static void test_what_is_wrong_with_a_response_is_reported(void **state) {
        struct call call;

        open_channel(&host);
        assert_int_equal(call_with(&call, "only trailers"), 0);
        assert_int_equal(call.status, 5);
        assert_string_equal(call.status_text, "a b");
        assert_int_equal(call_with(&call, "broken off"), 0);
        assert_int_equal(call.status, -1);
        assert_string_equal(call.error_text, "");
        assert_int_equal(call_with(&call, "half"), 0);
        assert_int_equal(call.status, 0);
        assert_false(call.has_message);
        assert_int_equal(call_with(&call, "2 messages"), -EPROTO);
        assert_int_equal(call_with(&call, "x: compressed"), -EPROTO);
        assert_int_equal(call_with(&call, "web page"), 0);
        assert_int_equal(call.code, 502);
        assert_false(call.has_message);
        assert_int_equal(call_with(&call, "large"), HF_E_TOO_LARGE);
        assert_int_equal(call_with(&call, "internal error"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "the server has reset the stream");
        assert_int_equal(call_with(&call, "echo"), 0); /* the connection is still good */
        assert_int_equal(n_connections(), 1);
        close_channel();
}

/* A status is final: whatever ends the stream after it does not matter. Without one, the header
 * block says nothing. */
static void test_a_reset_does_not_change_a_status(void **state) {
        struct call call;

        open_channel(&host);
        start_stream(&call, "trailers before a reset", 0, 0);
        assert_int_equal(await(&call), 0);
        assert_int_equal(call.status, 0);
        assert_int_equal(call_with(&call, "just a head"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "the server has reset the stream");
        assert_int_equal(call_with(&call, "void"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "");
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 1);
        close_channel();
}

/* ---- what was certainly not executed ---- */

static void test_refused_is_not_executed(void **state) {
        struct call call, next;

        open_channel(&host);
        assert_int_equal(call_with(&call, "refused"), HF_E_UNAVAILABLE);
        assert_string_equal(call.error_text, "the server has refused the stream");
        assert_int_equal(call_with(&call, "go away"), HF_E_UNAVAILABLE);
        PATIENCE_AWAIT(atomic_load(&f.server.n_closed) == 1); /* nothing more would come of it */
        assert_int_equal(call_with(&call, "echo"), 0);        /* on a new connection */
        assert_int_equal(n_connections(), 2);
        start(&next, message_of("Go away after this", 0), in_msec(60000));
        assert_int_equal(await(&next), 0);
        assert_int_equal(next.status, 0);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 3);
        close_channel();
}

/* A stream stays on the connection, but no new call is begun there. */
static void test_new_calls_leave_a_connection_that_goes_away(void **state) {
        struct call alive, call;

        open_channel(&host);
        start_stream(&alive, "stream", 0, 0);
        await_messages(&alive, 1);
        assert_int_equal(call_with(&call, "Go away after this"), 0);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 2);
        assert_int_equal(atomic_load(&f.server.n_closed), 0);
        hfd_grpc_channel_cancel(f.channel, &alive.stream);
        assert_int_equal(await(&alive), HF_E_CANCELED);
        PATIENCE_AWAIT(atomic_load(&f.server.n_closed) == 1);
        close_channel();
}

static void test_lost_after_writing_is_unknown(void **state) {
        struct call call, other;

        open_channel(&host);
        start(&other, message_of("nothing", 0), in_msec(60000));
        assert_int_equal(call_with(&call, "close"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "the connection was closed");
        assert_int_equal(await(&other), HF_E_TIMEOUT);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(call_with(&call, "C: reset"), HF_E_TIMEOUT);
        assert_string_equal(call.error_text, "Connection reset by peer");
        close_channel();
}

static void test_incomplete_request_is_not_executed(void **state) {
        struct call call;

        f.server.opens_no_window = true;
        open_channel(&host);
        /* More than the initial window: the server never has the whole request. */
        start(&call, message_of("echo", 200000), in_msec(300));
        assert_int_equal(await(&call), HF_E_UNAVAILABLE);
        close_channel();
}

static void test_unreachable_is_not_executed(void **state) {
        struct call call;

        open_channel(&host);
        assert_int_equal(call_with(&call, "echo"), 0);
        grpc_server_stop(&f.server);
        assert_int_not_equal(call_with(&call, "echo"), 0); /* the kept connection, or a new one */
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAVAILABLE);
        free_channel();
        f = (struct fixture){0};
}

static void test_a_server_of_another_protocol_is_left(void **state) {
        static struct scripted_server server;
        struct call call;

        scripted_server_start(&server);
        scripted_server_set(&server, SCRIPT_HANGS, "HTTP/1.1 400 Bad Request\r\n\r\n");
        open_channel_to(server.base.port, &host);
        assert_int_equal(call_with(&call, "echo"), HF_E_UNAVAILABLE);
        assert_string_equal(call.error_text, "HTTP/2 has ended"); /* without a time-out */
        free_channel();
        scripted_server_stop(&server);
        f = (struct fixture){0};
}

/* More than fits into the channel's buffer, but not more than the windows: nothing that the server
 * sends makes the channel go on. */
static void test_a_large_request_is_written_at_once(void **state) {
        enum { LARGE = 65500 };
        struct call call, next;

        f.server.opens_no_window = true;
        open_channel(&host);
        assert_int_equal(call_with(&next, "echo"), 0);
        int before = atomic_load(&f.server.n_data);
        start(&call, message_of("nothing", LARGE), HF_NSEC_NEVER);
        PATIENCE_AWAIT(atomic_load(&f.server.n_data) - before > LARGE);
        assert_int_equal(atomic_load(&f.server.n_pings), 0); /* which would write the rest */
        hfd_grpc_channel_stop(f.channel);
        assert_int_equal(await(&call), HF_E_CANCELED);
        close_channel();
}

/* Until the channel's thread has nothing to do for some milliseconds. */
static void await_rest(void) {
        uint64_t before, now = hfd_grpc_channel_iterations(f.channel);

        do {
                before = now;
                (void)poll(NULL, 0, 5);
                now = hfd_grpc_channel_iterations(f.channel);
        } while (now != before);
}

/* The server reads nothing for a while. */
static void test_a_full_socket_takes_the_rest_later(void **state) {
        enum { N = 60, LARGE = 60000 };
        static struct call calls[N];
        const int small = 4096;
        struct call call;

        open_channel(&host);
        assert_int_equal(setsockopt(f.server.base.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small),
                         0);
        assert_int_equal(call_with(&call, "echo"), 0);
        int before = atomic_load(&f.server.n_data);
        atomic_store(&f.server.holds, true);
        for (int i = 0; i < N; i++)
                start(&calls[i], message_of("nothing", LARGE), HF_NSEC_NEVER);
        await_rest();
        atomic_store(&f.server.holds, false);
        PATIENCE_AWAIT(atomic_load(&f.server.n_data) - before > N * LARGE);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 1);
        hfd_grpc_channel_stop(f.channel);
        for (int i = 0; i < N; i++)
                assert_int_equal(await(&calls[i]), HF_E_CANCELED);
        close_channel();
}

/* ---- dead peers ---- */

static void test_calls_leave_a_silent_connection(void **state) {
        struct call call, waiting;

        open_channel(&host);
        assert_int_equal(call_with(&call, "echo"), 0);
        start(&waiting, message_of("dead", 0), in_msec(300));
        assert_int_equal(await(&waiting), HF_E_TIMEOUT);
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 2);
        close_channel();
}

/* A call that ends without a response says nothing about a peer that responds to others. */
static void test_calls_stay_on_a_connection_that_receives(void **state) {
        struct call alive, call;
        int ms = 25, before;

        open_channel(&host);
        do { /* until the peer has responded to a probe in time */
                ms *= 2;
                start_stream(&alive, "stream", 5 * MSEC, 60 * SEC);
                await_messages(&alive, 1);
                before = n_connections();
                start(&call, message_of("nothing", 0), in_msec(ms));
                (void)await(&call);
                assert_int_equal(call_with(&call, "echo"), 0);
                hfd_grpc_channel_cancel(f.channel, &alive.stream);
                assert_int_equal(await(&alive), HF_E_CANCELED);
        } while (n_connections() > before && ms < PATIENCE_MSEC / 8);
        assert_int_equal(n_connections(), before);
        close_channel();
}

/* The peer wants to know whether the channel lives, although no call is under way. */
static void test_a_ping_is_answered_without_a_call(void **state) {
        struct call call;

        open_channel(&host);
        for (int i = 1; i <= 3; i++) {
                assert_int_equal(call_with(&call, "Ping the client"), 0);
                PATIENCE_AWAIT(atomic_load(&f.server.n_acks) == i);
        }
        close_channel();
}

static void test_ping_finds_a_dead_peer(void **state) {
        struct call dead, alive;

        open_channel(&fast_host);
        /* Without a deadline: only the PING can end it. */
        start(&dead, message_of("dead", 0), HF_NSEC_NEVER);
        assert_int_equal(await(&dead), HF_E_TIMEOUT);
        assert_int_equal(atomic_load(&f.server.n_pings), 0);
        /* A live peer may take its time. */
        start(&alive, message_of("nothing", 0), HF_NSEC_NEVER);
        PATIENCE_AWAIT(atomic_load(&f.server.n_pings) >= 3);
        assert_false(alive.done);
        hfd_grpc_channel_stop(f.channel);
        assert_int_equal(await(&alive), HF_E_CANCELED);
        close_channel();
}

static void test_probe_finds_a_dead_stream(void **state) {
        struct call silent, alive;

        open_channel(&host);
        start_stream(&alive, "stream", 5 * MSEC, 60 * SEC);
        await_messages(&alive, 10); /* each response to a probe is a message */
        start_stream(&silent, "Silent stream", 5 * MSEC, 20 * MSEC);
        assert_int_equal(await(&silent), HF_E_TIMEOUT);
        assert_int_equal(silent.n_messages, 1);
        hfd_grpc_channel_cancel(f.channel, &alive.stream);
        assert_int_equal(await(&alive), HF_E_CANCELED);
        assert_true(alive.n_messages >= 10);
        close_channel();
}

/* ---- cancel and stop ---- */

static void test_cancel_at_any_moment(void **state) {
        enum { N = 200 };
        static struct call calls[N];
        struct call call;

        open_channel(&host);
        for (int i = 0; i < N; i++) {
                start_stream(&calls[i], "stream", 0, 0);
                if (i % 3 == 0)
                        await_messages(&calls[i], 1);
                if (i % 2 == 0) {
                        hfd_grpc_channel_cancel(f.channel, &calls[i].stream);
                        hfd_grpc_channel_cancel(f.channel, &calls[i].stream);
                }
        }
        for (int i = 0; i < N; i += 2)
                assert_int_equal(await(&calls[i]), HF_E_CANCELED);
        assert_int_equal(call_with(&call, "echo"), 0);
        hfd_grpc_channel_stop(f.channel);
        for (int i = 1; i < N; i += 2)
                assert_int_equal(await(&calls[i]), HF_E_CANCELED);
        close_channel();
}

/* The server learns of the cancel at once, although nothing else is sent. */
static void test_a_cancel_resets_the_stream(void **state) {
        struct call calls[3];

        open_channel(&host);
        for (int i = 0; i < 3; i++) {
                start_stream(&calls[i], "stream", 0, 0);
                await_messages(&calls[i], 1);
                assert_int_equal(atomic_load(&f.server.n_resets), i);
                hfd_grpc_channel_cancel(f.channel, &calls[i].stream);
                PATIENCE_AWAIT(atomic_load(&f.server.n_resets) == i + 1);
                assert_int_equal(await(&calls[i]), HF_E_CANCELED);
        }
        assert_int_equal(n_connections(), 1);
        close_channel();
}

/* The messages are more than the channel sends in one iteration, so some of their frames wait when
 * the cancel comes. Their memory is gone afterwards. */
static void test_cancel_while_frames_wait(void **state) {
        enum { N = 20, ROUNDS = 30, LARGE = 60000 };
        static struct call calls[N];
        struct call call;

        open_channel(&host);
        assert_int_equal(call_with(&call, "echo"), 0);
        for (int round = 0; round < ROUNDS; round++) {
                for (int i = 0; i < N; i++)
                        start_stream_with(&calls[i], message_of("large", LARGE), 0, 0);
                for (int i = 0; i < round; i++)
                        sched_yield();
                for (int i = 0; i < N; i++)
                        hfd_grpc_channel_cancel(f.channel, &calls[i].stream);
                for (int i = 0; i < N; i++)
                        assert_int_equal(await(&calls[i]), HF_E_CANCELED);
        }
        assert_int_equal(call_with(&call, "echo"), 0);
        close_channel();
}

static void test_a_message_can_end_its_stream(void **state) {
        struct call call;

        open_channel(&host);
        ends_at_first_message = true;
        start_stream(&call, "stream", 0, 0);
        assert_int_equal(await(&call), HF_E_CANCELED);
        assert_int_equal(call.n_messages, 1);
        ends_at_first_message = false;
        close_channel();
}

/* The second message is read together with the one that has ended the stream. */
static void test_messages_after_the_end_of_a_stream_are_dropped(void **state) {
        struct call call;

        open_channel(&host);
        ends_at_first_message = true;
        start_stream(&call, "3: two messages", 0, 0);
        assert_int_equal(await(&call), HF_E_CANCELED);
        assert_int_equal(call.n_messages, 1);
        ends_at_first_message = false;
        assert_int_equal(call_with(&call, "echo"), 0);
        assert_int_equal(n_connections(), 1);
        close_channel();
}

/* on_done may cancel the call that has just ended, and the channel may be stopped meanwhile. */
static void test_a_call_that_has_ended_can_be_canceled(void **state) {
        struct call call;

        open_channel(&host);
        cancels_when_done = true;
        start_stream(&call, "refused", 0, 0);
        assert_int_equal(await(&call), HF_E_UNAVAILABLE);
        assert_true(call.released);
        start_stream(&call, "stream", 0, 0);
        await_messages(&call, 1);
        hfd_grpc_channel_stop(f.channel);
        assert_int_equal(await(&call), HF_E_CANCELED);
        assert_true(call.released);
        cancels_when_done = false;
        close_channel();
}

static void test_no_descriptor_is_left(void **state) {
        unsigned n = count_descriptors();
        struct call call;

        open_channel(&host);
        assert_int_equal(call_with(&call, "close"), HF_E_TIMEOUT);
        assert_int_equal(call_with(&call, "C: reset"), HF_E_TIMEOUT);
        assert_int_equal(call_with(&call, "echo"), 0);
        close_channel();
        assert_int_equal(count_descriptors(), n);
}

static void test_stop_refuses_and_ends(void **state) {
        struct call waiting, late;
        struct hfd_grpc_request request;

        open_channel(&host);
        start(&waiting, message_of("nothing", 0), HF_NSEC_NEVER);
        hfd_grpc_channel_stop(f.channel);
        hfd_grpc_channel_stop(f.channel);
        assert_int_equal(await(&waiting), HF_E_CANCELED);
        request = start_request(&late, message_of("echo", 0), in_msec(1000));
        assert_int_equal(hfd_grpc_channel_start(f.channel, &late.stream, &request), HF_E_CLOSED);
        hf__buf_unref(late.body);
        close_channel();
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_a_response_arrives_with_its_code_status_and_message),
                cmocka_unit_test(test_what_is_wrong_with_a_response_is_reported),
                cmocka_unit_test(test_a_reset_does_not_change_a_status),
                cmocka_unit_test(test_refused_is_not_executed),
                cmocka_unit_test(test_new_calls_leave_a_connection_that_goes_away),
                cmocka_unit_test(test_lost_after_writing_is_unknown),
                cmocka_unit_test(test_incomplete_request_is_not_executed),
                cmocka_unit_test(test_unreachable_is_not_executed),
                cmocka_unit_test(test_a_server_of_another_protocol_is_left),
                cmocka_unit_test(test_a_large_request_is_written_at_once),
                cmocka_unit_test(test_a_full_socket_takes_the_rest_later),
                cmocka_unit_test(test_calls_leave_a_silent_connection),
                cmocka_unit_test(test_calls_stay_on_a_connection_that_receives),
                cmocka_unit_test(test_a_ping_is_answered_without_a_call),
                cmocka_unit_test(test_ping_finds_a_dead_peer),
                cmocka_unit_test(test_probe_finds_a_dead_stream),
                cmocka_unit_test(test_cancel_at_any_moment),
                cmocka_unit_test(test_a_cancel_resets_the_stream),
                cmocka_unit_test(test_cancel_while_frames_wait),
                cmocka_unit_test(test_a_message_can_end_its_stream),
                cmocka_unit_test(test_messages_after_the_end_of_a_stream_are_dropped),
                cmocka_unit_test(test_a_call_that_has_ended_can_be_canceled),
                cmocka_unit_test(test_no_descriptor_is_left),
                cmocka_unit_test(test_stop_refuses_and_ends),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(cases, NULL, NULL);
}
