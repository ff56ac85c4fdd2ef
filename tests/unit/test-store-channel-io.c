/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gRPC channel does when nghttp2 refuses a request or a session, when a call of the socket
 * is interrupted or fails, when there is much to read, and when the socket takes little. The
 * functions of nghttp2 and of the socket are replaced (tests/lib/paced_channel.h).
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>

#include "failing_memory.h"
#include "paced_channel.h"

/* ---- requests that nghttp2 refuses ---- */

/* The numbers of a connection's streams are used up, for example. Calls under way stay on it. */
static void test_a_connection_that_takes_no_request_is_left(void **state) {
        static struct paced_call call, alive;

        paced_channel_open();
        paced_call_start_stream(&alive, "stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&alive.n_messages) == 1);
        atomic_store(&paced.submit_error, NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE,
                              nghttp2_strerror(NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE));
        atomic_store(&paced.submit_error, 0);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
        paced_channel_move_to(1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&alive.n_messages) == 2);
        paced_call_stop(&alive);
}

static void test_a_new_connection_may_take_no_request(void **state) {
        static struct paced_call calls[3];

        atomic_store(&paced.server.holds, true);
        atomic_store(&paced.submit_error, NGHTTP2_ERR_NOMEM);
        paced_channel_open();
        for (int i = 0; i < 3; i++)
                paced_call_start(&calls[i], "echo", HF_NSEC_NEVER);
        paced_channel_await_iteration();
        atomic_store(&paced.server.holds, false);
        for (int i = 0; i < 3; i++)
                paced_call_expect_end(&calls[i], HF_E_UNAVAILABLE,
                                      nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        atomic_store(&paced.submit_error, 0);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2); /* the first one is left */
}

/* ---- the socket ---- */

static void test_a_call_that_is_interrupted_is_repeated(void **state) {
        static const int errors[] = {EINTR, EAGAIN};

        paced_channel_open();
        for (int i = 0; i < 2; i++) {
                paced_call_make("echo");
                atomic_store(&paced.recv_error, errors[i]);
                paced_call_make("echo");
                atomic_store(&paced.send_error, errors[i]);
                paced_call_make("echo");
        }
        atomic_store(&paced.sends_half, true);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 1);
}

static void test_a_call_that_fails_ends_the_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        atomic_store(&paced.getsockopt_error, ENOBUFS);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, "cannot connect: No buffer space available");
        paced_call_make("echo");
        atomic_store(&paced.send_error, EPIPE);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, "Broken pipe");
        paced_call_make("echo");
        atomic_store(&paced.recv_error, ECONNRESET);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "Connection reset by peer");
        paced_call_make("echo");
}

static void test_a_session_that_cannot_be_made_ends_the_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        atomic_store(&paced.callbacks_error, NGHTTP2_ERR_NOMEM);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        atomic_store(&paced.settings_error, NGHTTP2_ERR_NOMEM);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, nghttp2_strerror(NGHTTP2_ERR_NOMEM));
        paced_call_make("echo");
}

/* ---- much to read, and little room to write ---- */

/* The rest of the input needs no event of the socket, and no sleep is left out after it. */
static void test_a_full_buffer_is_read_again_at_once(void **state) {
        paced_channel_open();
        paced_call_make("echo");
        unsigned before = atomic_load(&paced.n_hurries);
        atomic_store(&paced.n_floods, 100);
        paced_call_make("echo");
        PATIENCE_AWAIT(atomic_load(&paced.n_floods) == 0);
        assert_true(atomic_load(&paced.n_hurries) > before);
        paced_channel_expect_sleep(1000);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 1);
}

/* One of them has no socket yet. */
static void test_a_connection_with_endless_input_does_not_hinder_others(void **state) {
        static struct paced_call call, other;

        paced_channel_open();
        paced_call_make("echo");
        paced_call_start_with(&other, "echo", HF_NSEC_NEVER,
                              (struct hfd_grpc_request){.endpoint = 1});
        atomic_store(&paced.n_floods, UINT32_MAX);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, 0, "");
        paced_channel_await_iteration();
        assert_false(other.done);
        paced_call_start_with(&call, "echo", HF_NSEC_NEVER, (struct hfd_grpc_request){.lane = 1});
        paced_call_expect_end(&call, 0, "");
        atomic_store(&paced.looks_up, true);
        paced_call_expect_end(&other, 0, "");
        atomic_store(&paced.n_floods, 0);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 3);
}

/* More than a connection writes before the others have their turn. */
static void test_a_large_output_is_written_without_a_sleep(void **state) {
        enum { N = 15, LARGE = 60000 };
        static struct paced_call calls[N];

        paced_channel_open();
        paced_call_make("echo");
        atomic_store(&paced.is_held, true);
        atomic_store(&paced.swallows, true);
        unsigned before = atomic_load(&paced.n_hurries);
        for (int i = 0; i < N; i++)
                paced_call_start_large(&calls[i], "nothing", LARGE, HF_NSEC_NEVER,
                                       (struct hfd_grpc_request){0});
        atomic_store(&paced.is_held, false);
        PATIENCE_AWAIT(atomic_load(&paced.n_swallowed) > N * LARGE);
        assert_true(atomic_load(&paced.n_hurries) > before);
        paced_channel_expect_sleep(1000);
        hfd_grpc_channel_stop(paced.channel);
        for (int i = 0; i < N; i++)
                paced_call_expect_end(&calls[i], HF_E_CANCELED, "canceled");
}

static void make_room(size_t n) {
        atomic_store(&paced.room, n);
        PATIENCE_AWAIT(atomic_load(&paced.room) == 0);
        paced_channel_await_iteration();
}

static void test_a_request_follows_the_rest_of_the_last_one(void **state) {
        static struct paced_call first, next;

        paced_channel_open();
        paced_call_make("echo");
        atomic_store(&paced.room, 10);
        atomic_store(&paced.has_little_room, true);
        paced_call_start(&first, "echo", HF_NSEC_NEVER);
        PATIENCE_AWAIT(atomic_load(&paced.room) == 0);
        paced_call_start(&next, "echo", HF_NSEC_NEVER);
        paced_channel_await_iteration();
        make_room(10);
        make_room(1);
        assert_false(first.done);
        atomic_store(&paced.has_little_room, false);
        paced_call_expect_end(&first, 0, "");
        paced_call_expect_end(&next, 0, "");
        assert_int_equal(paced_channel_n_connections(), 1);
}

/* The request has left in part, so nothing can follow it on this connection. */
static void test_output_that_cannot_be_kept_ends_the_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_make("echo");
        atomic_store(&paced.room, 10);
        atomic_store(&paced.is_out_of_memory, true);
        atomic_store(&paced.has_little_room, true);
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, "out of memory");
        failing_memory_disarm();
        atomic_store(&paced.has_little_room, false);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                PACED_TEST(test_a_connection_that_takes_no_request_is_left),
                PACED_TEST(test_a_new_connection_may_take_no_request),
                PACED_TEST(test_a_call_that_is_interrupted_is_repeated),
                PACED_TEST(test_a_call_that_fails_ends_the_connection),
                PACED_TEST(test_a_session_that_cannot_be_made_ends_the_connection),
                PACED_TEST(test_a_full_buffer_is_read_again_at_once),
                PACED_TEST(test_a_connection_with_endless_input_does_not_hinder_others),
                PACED_TEST(test_a_large_output_is_written_without_a_sleep),
                PACED_TEST(test_a_request_follows_the_rest_of_the_last_one),
                PACED_TEST(test_output_that_cannot_be_kept_ends_the_connection),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
