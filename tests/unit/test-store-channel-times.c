/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the gRPC channel does what: PINGs, probes, deadlines, the next address of a host, and how
 * long its loop sleeps. The clock stands still until the test moves it, so each time is exact
 * (tests/lib/paced_channel.h).
 */
#undef NDEBUG
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "paced_channel.h"

/* ---- the loop ---- */

static void test_the_loop_sleeps_until_the_next_time(void **state) {
        static struct paced_call call;

        atomic_store(&paced.is_held, true);
        paced_channel_open();
        assert_true(hfd_grpc_channel_alive_at(paced.channel) ==
                    PACED_T0); /* before any iteration */
        atomic_store(&paced.is_held, false);
        paced_channel_expect_sleep(1000); /* the longest, although nothing is due */
        paced_call_make("echo");
        paced_call_start_and_arrive(&call, "nothing", 1500 * MSEC);
        paced_channel_expect_sleep(1000);
        paced_channel_move_to(1200 * MSEC);
        assert_true(hfd_grpc_channel_alive_at(paced.channel) == PACED_T0 + 1200 * MSEC);
        paced_channel_expect_sleep(300);
        paced_channel_move_to(1300 * MSEC + 1);
        paced_channel_expect_sleep(200); /* rounded up */
        paced_channel_move_to(1500 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_false(call.done);
        paced_channel_move_to(1500 * MSEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        paced_channel_expect_sleep(500); /* until the look at the silent connection */
}

/* The deadline passes between the loop's timers and its sleep. */
static void test_the_loop_does_not_sleep_past_a_deadline(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_make("echo");
        for (hf_nsec at = 0; at < 12 * SEC; at += SEC) {
                paced_call_start_and_arrive(&call, "nothing", at + 450 * MSEC);
                atomic_store(&paced.step, 100 * MSEC);
                PATIENCE_AWAIT(atomic_load(&call.done));
                atomic_store(&paced.step, 0);
                paced_channel_move_to(at + SEC);
                hf__buf_unref(call.body);
        }
}

static void test_a_call_of_a_callback_is_sent_before_the_loop_sleeps(void **state) {
        static struct paced_call first, next;

        paced_channel_open();
        paced_call_make("echo");
        paced.next = &next;
        paced_call_start(&first, "echo", HF_NSEC_NEVER);
        paced_call_expect_end(&first, 0, "");
        paced_call_expect_end(&next, 0, "");
        hfd_grpc_channel_stop(paced.channel);
        hfd_grpc_channel_join(paced.channel);
        assert_false(paced.sleeps_unsent);
        hfd_grpc_channel_free(paced.channel);
        paced.channel = NULL;
}

/* ---- PINGs ---- */

static void test_a_silent_server_gets_a_ping_after_two_seconds(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_make("echo");
        paced_call_start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        paced_channel_expect_sleep(1000);
        paced_channel_move_to(2 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_pings(), 0);
        paced_channel_move_to(2 * SEC);
        PATIENCE_AWAIT(paced_channel_n_pings() == 1);
        paced_call_make("echo");
        /* The response makes up for the PING, and the next one is six seconds after the first. */
        paced_channel_move_to(5 * SEC);
        paced_call_make("echo");
        paced_channel_move_to(8 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_pings(), 1);
        paced_channel_move_to(8 * SEC);
        PATIENCE_AWAIT(paced_channel_n_pings() == 2);
        assert_false(call.done);
        assert_int_equal(paced_channel_n_connections(), 1);
        paced_call_stop(&call);
}

static void test_a_ping_without_a_response_ends_the_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_start_and_arrive(&call, "dead", HF_NSEC_NEVER);
        paced_channel_move_to(2 * SEC);
        paced_channel_move_to(5 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_false(call.done);
        paced_channel_move_to(5 * SEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "the server does not respond to a PING");
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
}

static void test_an_idle_connection_gets_no_ping(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_make("echo");
        paced_channel_move_to(2 * SEC);
        paced_channel_move_to(20 * SEC);
        paced_channel_expect_sleep(1000);
        paced_call_start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        paced_channel_move_to(22 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_pings(), 0);
        paced_channel_move_to(22 * SEC);
        PATIENCE_AWAIT(paced_channel_n_pings() == 1);
        assert_int_equal(paced_channel_n_connections(), 1);
        paced_call_stop(&call);
}

static void test_a_ping_that_cannot_be_made_ends_the_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_start_and_arrive(&call, "nothing", HF_NSEC_NEVER);
        atomic_store(&paced.ping_error, NGHTTP2_ERR_NOMEM);
        paced_channel_move_to(2 * SEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "out of memory");
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
}

/* ---- deadlines ---- */

/* What was received when the call was sent is enough: no time has passed since. */
static void test_a_deadline_leaves_only_a_silent_connection(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_make("echo");
        paced_call_start_and_arrive(&call, "nothing", 1 * SEC);
        paced_channel_move_to(1 * SEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 1);
        paced_channel_move_to(1 * SEC + 1);
        paced_call_start_and_arrive(&call, "nothing", 2 * SEC);
        paced_channel_move_to(2 * SEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "the deadline has passed");
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
}

static void test_a_response_must_begin_in_time(void **state) {
        const struct hfd_grpc_request request = {.head_timeout = 500 * MSEC};
        static struct paced_call call, late;

        paced_channel_open();
        paced_call_start_with(&call, "Held back", HF_NSEC_NEVER, request);
        paced_call_make("kept: the head");
        paced_channel_move_to(500 * MSEC);
        paced_channel_move_to(1000 * MSEC);
        assert_false(call.done);
        paced_call_start_with(&late, "Held back", HF_NSEC_NEVER, request);
        paced_call_make("echo");
        paced_channel_move_to(1500 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_false(late.done);
        paced_channel_move_to(1500 * MSEC);
        paced_call_expect_end(&late, HF_E_TIMEOUT, "no response has begun in time");
        paced_call_stop(&call);
}

/* The host has another address, but this one has accepted the connection. */
static void test_a_connection_must_be_made_in_time(void **state) {
        static struct paced_call call;

        atomic_store(&paced.server.holds, true);
        paced_channel_open_of("first.test");
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        PATIENCE_AWAIT(paced_channel_n_connections() == 1);
        paced_channel_await_iteration(); /* the loop has seen it too, so the other address gets no
                                            turn */
        paced_channel_move_to(3 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_false(call.done);
        paced_channel_move_to(3 * SEC);
        paced_call_expect_end(&call, HF_E_UNAVAILABLE, "no connection within 3 seconds");
        atomic_store(&paced.server.holds, false);
}

/* Takes connections to 127.0.0.2 until the kernel ignores further ones. */
static void listen_without_room(int fds[4]) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)paced.server.base.port),
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
        static struct paced_call call;
        int fds[4];

        listen_without_room(fds);
        paced_channel_open_of("two.test");
        paced_call_start(&call, "echo", HF_NSEC_NEVER);
        paced_channel_await_iteration();
        paced_channel_move_to(2500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&paced.sleep) ==
                       500); /* until the look-up would take too long */
        atomic_store(&paced.looks_up, true);
        PATIENCE_AWAIT(atomic_load(&paced.sleep) == 1000);
        paced_channel_move_to(3500 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_connections(), 0);
        paced_channel_move_to(3500 * MSEC);
        paced_call_expect_end(&call, 0, "");
        assert_int_equal(paced_channel_n_connections(), 1);
        for (int i = 0; i < 4; i++)
                close(fds[i]);
}

/* Both begin in one iteration, and the older one returns first. */
static void test_look_ups_end_in_any_order(void **state) {
        static struct paced_call first, second;

        atomic_store(&paced.is_held, true);
        paced_channel_open_of("first.test");
        paced_call_start(&first, "echo", HF_NSEC_NEVER);
        paced_call_start_with(&second, "echo", HF_NSEC_NEVER,
                              (struct hfd_grpc_request){.endpoint = 1});
        atomic_store(&paced.is_held, false);
        paced_call_expect_end(&first, 0, "");
        assert_false(second.done);
        atomic_store(&paced.looks_up, true);
        paced_call_expect_end(&second, 0, "");
}

/* ---- probes ---- */

static void test_a_stream_is_probed_when_it_is_silent(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_start_stream(&call, "stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 1);
        paced_channel_move_to(1500 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_received(), 1);
        paced_channel_move_to(1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 2);
        paced_channel_move_to(3 * SEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_received(), 2);
        paced_channel_move_to(3 * SEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 3);
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_received(), 4);
        paced_call_stop(&call);
}

static void test_a_probe_without_a_response_ends_the_stream(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_start_stream(&call, "Silent stream", 1500 * MSEC);
        PATIENCE_AWAIT(atomic_load(&call.n_messages) == 1);
        paced_channel_move_to(1500 * MSEC);
        PATIENCE_AWAIT(paced_channel_n_received() == 2);
        paced_channel_move_to(4500 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_false(call.done);
        paced_channel_move_to(4500 * MSEC);
        paced_call_expect_end(&call, HF_E_TIMEOUT, "the server is silent");
        paced_call_make("echo");
        assert_int_equal(paced_channel_n_connections(), 2);
}

/* Whatever comes puts the probe off, the head of the response as well as a message. */
static void test_a_probe_is_put_off_by_what_arrives(void **state) {
        static struct paced_call call;

        paced_channel_open();
        paced_call_start_stream(&call, "Held back", 500 * MSEC);
        paced_channel_move_to(100 * MSEC);
        paced_call_make("kept: the head");
        paced_channel_expect_sleep(500);
        paced_channel_move_to(400 * MSEC);
        paced_call_make("message for it");
        assert_int_equal(atomic_load(&call.n_messages), 1);
        paced_channel_expect_sleep(200); /* the timer itself is not put off */
        paced_channel_move_to(600 * MSEC);
        paced_channel_expect_sleep(300);
        paced_channel_move_to(900 * MSEC - 1);
        paced_channel_expect_sleep(1);
        assert_int_equal(paced_channel_n_received(), 3);
        paced_channel_move_to(900 * MSEC);
        PATIENCE_AWAIT(paced_channel_n_received() == 4);
        paced_call_stop(&call);
}

/* ---- requests ---- */

static void expect_timeout(hf_nsec left, const char *expected) {
        static struct paced_call call;

        paced_call_start(&call, "echo", left);
        paced_call_expect_end(&call, 0, "");
        assert_string_equal(paced.timeout, expected);
        assert_string_equal(paced.added, "");
}

static void test_the_server_is_told_the_time_that_is_left(void **state) {
        static struct paced_call call;

        paced_channel_open();
        expect_timeout(1, "1S");
        expect_timeout(1 * SEC, "1S");
        expect_timeout(1 * SEC + 1, "2S");
        expect_timeout(2 * SEC, "2S");
        expect_timeout(2 * SEC + 1, "4S");
        expect_timeout(600 * SEC, "600S");
        expect_timeout(600 * SEC + 1, "");
        expect_timeout(HF_NSEC_NEVER, "");
        paced_call_start_with(&call, "echo", 3 * SEC,
                              (struct hfd_grpc_request){.header_name = "added",
                                                        .header_value = "yes"});
        paced_call_expect_end(&call, 0, "");
        assert_string_equal(paced.timeout, "4S");
        assert_string_equal(paced.added, "yes");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                PACED_TEST(test_the_loop_sleeps_until_the_next_time),
                PACED_TEST(test_the_loop_does_not_sleep_past_a_deadline),
                PACED_TEST(test_a_call_of_a_callback_is_sent_before_the_loop_sleeps),
                PACED_TEST(test_a_silent_server_gets_a_ping_after_two_seconds),
                PACED_TEST(test_a_ping_without_a_response_ends_the_connection),
                PACED_TEST(test_an_idle_connection_gets_no_ping),
                PACED_TEST(test_a_ping_that_cannot_be_made_ends_the_connection),
                PACED_TEST(test_a_deadline_leaves_only_a_silent_connection),
                PACED_TEST(test_a_response_must_begin_in_time),
                PACED_TEST(test_a_connection_must_be_made_in_time),
                PACED_TEST(test_the_next_address_has_its_turn_after_a_second),
                PACED_TEST(test_look_ups_end_in_any_order),
                PACED_TEST(test_a_stream_is_probed_when_it_is_silent),
                PACED_TEST(test_a_probe_without_a_response_ends_the_stream),
                PACED_TEST(test_a_probe_is_put_off_by_what_arrives),
                PACED_TEST(test_the_server_is_told_the_time_that_is_left),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
