/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terms over time, under a clock that the test moves: when a controller that fails is run again,
 * and what a term leaves for the next one.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clocked_elector.h"

#include <holdfast/error.h>

static const struct clocked_options plain = {0};

static unsigned n_runs(void) {
        pthread_mutex_lock(&clocked.mu);
        unsigned n = clocked.n_runs;
        pthread_mutex_unlock(&clocked.mu);
        return n;
}

static unsigned n_running(void) {
        pthread_mutex_lock(&clocked.mu);
        unsigned n = clocked.n_running;
        pthread_mutex_unlock(&clocked.mu);
        return n;
}

static bool is_told; /* guarded by clocked.mu */

static void set_told(bool value) {
        pthread_mutex_lock(&clocked.mu);
        is_told = value;
        pthread_cond_broadcast(&clocked.changed);
        pthread_mutex_unlock(&clocked.mu);
}

static void start(int (*run)(struct hf_term *term), const struct clocked_options *options) {
        clocked_elector_init();
        is_told = false;
        clocked.run = run;
        clocked_elector_start(options);
        PATIENCE_AWAIT(n_runs() == 1);
}

static void finish(void) {
        clocked_elector_stop();
        clocked_elector_free();
}

/* Moves the clock in steps in which the Lease is renewed. */
static void move(hf_nsec by) {
        for (; by > 5 * SEC; by -= 5 * SEC)
                clocked_move(5 * SEC);
        clocked_move(by);
}

/* ---- a controller that fails ---- */

/* Fails at once, or after set_told(true), at the next set_told(false). */
static int fail_soon(struct hf_term *term) {
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, !is_told);
        pthread_mutex_unlock(&clocked.mu);
        return HF_E_UNAVAILABLE;
}

static void expect_run_after(hf_nsec pause) {
        unsigned n = n_runs();

        PATIENCE_AWAIT(n_running() == 0);
        hand_clock_await_waiter(); /* the controller's thread: its pause has begun */
        move(pause - 1);
        hand_clock_await_waiter();
        assert_int_equal(n_runs(), n);
        clocked_move(1);
        PATIENCE_AWAIT(n_runs() == n + 1);
}

static void test_the_pause_before_a_restart_doubles_up_to_30_seconds(void **state) {
        hf_nsec pause = 100 * MSEC;

        start(fail_soon, &plain);
        for (int i = 0; i < 11; i++) {
                expect_run_after(pause);
                pause = 2 * pause < 30 * SEC ? 2 * pause : 30 * SEC;
        }
        assert_int_equal(clocked_info().n_terms, 1);
        assert_true(clocked_logged("4 kube-system/lead: controller worker failed ("));
        assert_true(clocked_logged("restarting in 100 ms\n"));
        assert_true(clocked_logged("restarting in 30000 ms\n"));
        finish();
}

/* After a run of 30 s a failure is the first one of a new row. */
static void test_a_controller_that_ran_for_30_seconds_is_run_again_soon(void **state) {
        for (int way = 0; way < 2; way++) {
                start(fail_soon, &plain);
                expect_run_after(100 * MSEC);
                PATIENCE_AWAIT(n_running() == 0);
                set_told(true);
                expect_run_after(200 * MSEC);
                move(way == 0 ? 30 * SEC : 30 * SEC - 1);
                assert_int_equal(n_running(), 1);
                set_told(false);
                expect_run_after(way == 0 ? 100 * MSEC : 400 * MSEC);
                finish();
        }
}

static int fail_at_drain(struct hf_term *term) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return HF_E_UNAVAILABLE;
}

/* A controller that was told to end may return any error. */
static void test_the_error_of_a_controller_that_is_drained_is_no_failure(void **state) {
        start(fail_at_drain, &plain);
        clocked_await_term();
        clocked_elector_stop();
        assert_false(clocked_logged("failed"));
        assert_int_equal(clocked.n_runs, 1);
        clocked_elector_free();
}

/* ---- what the next term knows ---- */

static int write_when_told(struct hf_term *term) {
        pthread_mutex_lock(&clocked.mu);
        PATIENCE_AWAIT_LOCKED(&clocked.changed, &clocked.mu, is_told);
        pthread_mutex_unlock(&clocked.mu);
        (void)clocked_begin_write(term, HF_VERB_UPDATE);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

/* The elector accepts a server without fences. A term has seen that this one compares them. */
static void test_a_server_that_confirmed_a_fence_is_not_waited_for_later(void **state) {
        start(write_when_told, &(struct clocked_options){.unfenced = true});
        clocked_await_term();
        pthread_mutex_lock(&clocked.api->mu);
        clocked.client->ignores_fences = false;
        pthread_mutex_unlock(&clocked.api->mu);
        fake_api_put(clocked.api, "things/default/x", "{\"metadata\":{\"name\":\"x\"}}");
        unsigned n = fake_api_n_requests(clocked.api);
        set_told(true);
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) == n + 1);
        clocked_settle();
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        set_told(false);
        clocked_move(20 * SEC);
        clocked_await_term();
        fake_api_client_hold_requests(clocked.client, true);
        n = fake_api_n_requests(clocked.api);
        set_told(true);
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) == n + 1);
        assert_int_equal(hf_elector_step_down(clocked.elector), 0);
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) == n + 2); /* the release */
        assert_true(clocked_is(HF_RELEASING));
        fake_api_client_hold_requests(clocked.client, false);
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        finish();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_pause_before_a_restart_doubles_up_to_30_seconds),
                cmocka_unit_test(test_a_controller_that_ran_for_30_seconds_is_run_again_soon),
                cmocka_unit_test(test_the_error_of_a_controller_that_is_drained_is_no_failure),
                cmocka_unit_test(test_a_server_that_confirmed_a_fence_is_not_waited_for_later),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
