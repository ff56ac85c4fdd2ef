/* SPDX-License-Identifier: Apache-2.0 */
/* Until when a worker of a queue waits, on a clock that the test moves. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>
#include <holdfast/workqueue.h>

#include "hand_clock.h"
#include "patience.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof host, .clock = &hand_clock};

static struct {
        struct hf_workqueue *queue;
        struct hf_cancel *token;
        pthread_t worker;
        atomic_int n_taken, result;
        char keys[8][8];
} f;

static void *work(void *ctx) {
        const char *key;
        int r;

        while ((r = hf_workqueue_take(f.queue, f.token, &key)) == 0) {
                (void)strcpy(f.keys[atomic_load(&f.n_taken)], key);
                hf_workqueue_done(f.queue, key);
                atomic_fetch_add(&f.n_taken, 1);
        }
        atomic_store(&f.result, r);
        return NULL;
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        hand_clock_reset();
        assert_int_equal(hf_workqueue_new(&host, "q", &f.queue), 0);
        assert_int_equal(hf_cancel_new(NULL, &hand_clock, &f.token), 0);
        assert_int_equal(pthread_create(&f.worker, NULL, work, NULL), 0);
        hand_clock_await_waiter();
        return 0;
}

static int tear_down(void **state) {
        assert_int_equal(pthread_join(f.worker, NULL), 0);
        hf_workqueue_free(f.queue);
        hf_cancel_unref(f.token);
        return 0;
}

static void expect_taken(int n, const char *last) {
        PATIENCE_AWAIT(atomic_load(&f.n_taken) == n);
        assert_string_equal(f.keys[n - 1], last);
}

static void test_a_worker_waits_for_the_first_delayed_key(void **state) {
        assert_int_equal(hf_workqueue_add_after(f.queue, "late", 3 * SEC), 0);
        hand_clock_await_deadline(3 * SEC, 3 * SEC);
        assert_int_equal(hf_workqueue_add_after(f.queue, "early", SEC), 0);
        hand_clock_await_deadline(SEC, SEC);
        assert_int_equal(hf_workqueue_add_after(f.queue, "later", 4 * SEC), 0);
        assert_int_equal(hf_workqueue_add_after(f.queue, "early", 2 * SEC), 0); /* no effect */
        hand_clock_await_deadline(SEC, SEC);
        hand_clock_move(SEC);
        expect_taken(1, "early");
        hand_clock_await_deadline(2 * SEC, 2 * SEC);
        assert_int_equal(hf_workqueue_add_after(f.queue, "late", SEC), 0); /* earlier than before */
        hand_clock_await_deadline(SEC, SEC);
        hand_clock_move(SEC);
        expect_taken(2, "late");
        hand_clock_await_deadline(2 * SEC, 2 * SEC);
        assert_int_equal(hf_workqueue_add(f.queue, "now"), 0);
        expect_taken(3, "now");
        hf_workqueue_drain(f.queue); /* drops what is delayed, and wakes the worker */
        PATIENCE_AWAIT(atomic_load(&f.result) == HF_E_CLOSED);
}

static void test_a_token_ends_a_wait(void **state) {
        assert_int_equal(hf_workqueue_add_after(f.queue, "late", 3 * SEC), 0);
        hand_clock_await_deadline(3 * SEC, 3 * SEC);
        hf_cancel_fire(f.token, HF_CANCEL_STOPPING);
        PATIENCE_AWAIT(atomic_load(&f.result) == HF_E_CANCELED);
        assert_int_equal(atomic_load(&f.n_taken), 0);
}

static void test_a_drop_ends_a_wait(void **state) {
        assert_int_equal(hf_workqueue_add_after(f.queue, "late", 3 * SEC), 0);
        hand_clock_await_deadline(3 * SEC, 3 * SEC);
        hf_workqueue_drop(f.queue);
        PATIENCE_AWAIT(atomic_load(&f.result) == HF_E_CANCELED);
        assert_int_equal(atomic_load(&f.n_taken), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_worker_waits_for_the_first_delayed_key),
                TEST(test_a_token_ends_a_wait),
                TEST(test_a_drop_ends_a_wait),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
