/* SPDX-License-Identifier: Apache-2.0 */
/* How the system's clock waits on a condition variable. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool signalled; /* guarded by mu */
} f;

static int setup(void **state) {
        f.signalled = false;
        return hf__mutex_init(&f.mu) != 0 || hf_cond_init(&f.cond) != 0 ? -1 : 0;
}

static int teardown(void **state) {
        return pthread_cond_destroy(&f.cond) != 0 || pthread_mutex_destroy(&f.mu) != 0 ? -1 : 0;
}

static int wait_until(hf_nsec deadline) {
        const struct hf_clock *clock = hf_clock_system();

        return clock->wait(clock->ctx, &f.cond, &f.mu, deadline);
}

static void test_a_deadline_that_has_passed_ends_the_wait(void **state) {
        pthread_mutex_lock(&f.mu);
        assert_int_equal(wait_until(hf_now(hf_clock_system())), HF_E_TIMEOUT);
        pthread_mutex_unlock(&f.mu);
}

/* A thread that waits for a near deadline sleeps until then. */
static void test_a_wait_of_seconds_sleeps_until_its_deadline(void **state) {
        hf_nsec deadline = in_msec(2500);
        int n_woken = 0;

        pthread_mutex_lock(&f.mu);
        while (wait_until(deadline) == 0)
                n_woken++;
        pthread_mutex_unlock(&f.mu);
        assert_true(hf_now(hf_clock_system()) >= deadline);
        /* POSIX permits a spurious wake-up. */
        assert_in_range(n_woken, 0, 1);
}

static void *signal_main(void *ctx) {
        pthread_mutex_lock(&f.mu);
        f.signalled = true;
        pthread_cond_signal(&f.cond);
        pthread_mutex_unlock(&f.mu);
        return NULL;
}

static void wait_for_signal(hf_nsec deadline) {
        pthread_t thread;

        f.signalled = false;
        pthread_mutex_lock(&f.mu);
        assert_int_equal(hf__thread_start(&host, "signal", signal_main, NULL, &thread), 0);
        while (!f.signalled)
                assert_int_equal(wait_until(deadline), 0);
        pthread_mutex_unlock(&f.mu);
        (void)hf__thread_join(thread);
}

static void test_a_signal_ends_the_wait(void **state) {
        wait_for_signal(in_msec(PATIENCE_MSEC));
        wait_for_signal(HF_NSEC_NEVER);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_deadline_that_has_passed_ends_the_wait,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_wait_of_seconds_sleeps_until_its_deadline,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_signal_ends_the_wait, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
