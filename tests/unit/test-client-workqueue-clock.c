/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a work queue hands out which key, on a clock that jumps to each deadline that a worker waits
 * for. So delays are exact, and a worker that waits for the wrong thing never returns.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>
#include <holdfast/workqueue.h>

#include "failing_memory.h"
#include "text_asserts.h"

#define BEGIN  (1000 * HF_NSEC_PER_SEC)
#define SECOND HF_NSEC_PER_SEC
#define MSEC   HF_NSEC_PER_MSEC

static hf_nsec now;
static unsigned n_waits;

static hf_nsec clock_now(void *ctx) { return now; }
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        assert(deadline != HF_NSEC_NEVER);
        assert(deadline > now);
        n_waits++;
        now = deadline;
        return HF_E_TIMEOUT;
}
static const struct hf_clock clock_of_test = {sizeof clock_of_test, clock_now, clock_now, clock_now,
                                              clock_wait,           NULL};
static struct hf_host host = {.size = sizeof host, .clock = &clock_of_test};
static struct hf_workqueue *queue;

static int setup(void **state) {
        now = BEGIN;
        n_waits = 0;
        assert_int_equal(hf_metrics_new(&host.metrics), 0);
        assert_int_equal(hf_workqueue_new(&host, "q", &queue), 0);
        return 0;
}
static int teardown(void **state) {
        hf_workqueue_free(queue);
        hf_metrics_free(host.metrics);
        return 0;
}

/* Asserts that a worker gets this key after that time. The worker does not give it back. */
static void assert_taken(const char *key, hf_nsec after) {
        const char *taken;

        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), 0);
        assert_string_equal(taken, key);
        assert_int_equal((now - BEGIN) / MSEC, after / MSEC);
}
static void assert_done(const char *key, hf_nsec after) {
        assert_taken(key, after);
        hf_workqueue_done(queue, key);
}

static void test_keys_come_when_they_are_due(void **state) {
        assert_int_equal(hf_workqueue_add_after(queue, "c", 3 * SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "a", SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "b", 2 * SECOND), 0);
        assert_int_equal(hf_workqueue_add(queue, "now"), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "past", -SECOND), 0);
        assert_int_equal(hf_workqueue_depth(queue), 2);
        assert_done("now", 0);
        assert_done("past", 0);
        assert_done("a", SECOND);
        assert_done("b", 2 * SECOND);
        assert_done("c", 3 * SECOND);
        assert_int_equal(n_waits, 3);
}

static void test_the_earlier_of_two_delays_counts(void **state) {
        assert_int_equal(hf_workqueue_add_after(queue, "a", 3 * SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "a", SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "a", 2 * SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "end", 10 * SECOND), 0);
        assert_done("a", SECOND);
        assert_done("end", 10 * SECOND); /* a was handed out once */
}

static void test_a_delay_longer_than_time_itself_does_not_overflow(void **state) {
        assert_int_equal(hf_workqueue_add_after(queue, "a", HF_NSEC_NEVER), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "b", HF_NSEC_NEVER - 1), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "c", SECOND), 0);
        assert_done("c", SECOND);
        assert_int_equal(hf_workqueue_depth(queue), 0);
}

/* 5 ms, doubling up to 1000 s. */
static void test_the_delay_of_a_key_doubles_until_it_is_forgotten(void **state) {
        hf_nsec at = 0, delay = 5 * MSEC;

        for (int i = 0; i < 25; i++) {
                assert_int_equal(hf_workqueue_retry(queue, "a"), 0);
                at += delay < 1000 * SECOND ? delay : 1000 * SECOND;
                delay = delay < 1000 * SECOND ? delay * 2 : delay;
                assert_done("a", at);
        }
        hf_workqueue_forget(queue, "a");
        hf_workqueue_forget(queue, "unknown");
        assert_int_equal(hf_workqueue_retry(queue, "a"), 0);
        assert_done("a", at + 5 * MSEC);
        assert_metric(host.metrics, "workqueue_retries_total{name=\"q\"} 26");
        assert_metric(host.metrics, "workqueue_adds_total{name=\"q\"} 26");
}

/* Ten per second after a burst of three; the keys' own delays are shorter. */
static void test_the_retries_of_all_keys_share_a_limit(void **state) {
        static const hf_nsec times[] = {5, 5, 5, 100, 200, 300};
        char key[] = "a";

        hf_workqueue_limit_retries(queue, 10, 3);
        for (size_t i = 0; i < 6; i++, key[0]++)
                assert_int_equal(hf_workqueue_retry(queue, key), 0);
        for (size_t i = 0; i < 6; i++) {
                const char *taken;
                assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), 0);
                assert_int_equal((now - BEGIN) / MSEC, times[i]);
                hf_workqueue_done(queue, taken);
        }
        /* An hour later there are three again, not 36,000. */
        now = BEGIN + 3600 * SECOND;
        for (key[0] = 'k'; key[0] < 'k' + 5; key[0]++)
                assert_int_equal(hf_workqueue_retry(queue, key), 0);
        static const hf_nsec later[] = {5, 5, 5, 100, 200};
        for (size_t i = 0; i < 5; i++) {
                const char *taken;
                assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), 0);
                assert_int_equal((now - BEGIN - 3600 * SECOND) / MSEC, later[i]);
                hf_workqueue_done(queue, taken);
        }
}

static void test_without_a_rate_or_a_burst_a_limit_is_still_one(void **state) {
        hf_workqueue_limit_retries(queue, 1, 0);
        assert_int_equal(hf_workqueue_retry(queue, "a"), 0);
        assert_int_equal(hf_workqueue_retry(queue, "b"), 0);
        assert_done("a", 5 * MSEC);
        assert_done("b", SECOND);
        hf_workqueue_limit_retries(queue, 0, 0); /* removes the limit */
        assert_int_equal(hf_workqueue_retry(queue, "c"), 0);
        assert_int_equal(hf_workqueue_retry(queue, "d"), 0);
        assert_done("c", SECOND + 5 * MSEC);
        assert_done("d", SECOND + 5 * MSEC);
}

/* Retries that used up the previous limit do not count against the new one. */
static void test_a_new_limit_begins_anew(void **state) {
        hf_workqueue_limit_retries(queue, 1, 1);
        assert_int_equal(hf_workqueue_retry(queue, "a"), 0);
        assert_int_equal(hf_workqueue_retry(queue, "b"), 0);
        assert_done("a", 5 * MSEC);
        hf_workqueue_limit_retries(queue, 1, 1);
        assert_int_equal(hf_workqueue_retry(queue, "c"), 0);
        assert_done("c", 10 * MSEC);
        assert_done("b", SECOND);
}

static void test_a_worker_waits_no_longer_than_its_token(void **state) {
        struct hf_cancel *token;
        const char *taken;

        assert_int_equal(hf_cancel_new(NULL, &clock_of_test, &token), 0);
        hf_cancel_set_deadline(token, BEGIN + 2 * SECOND);
        assert_int_equal(hf_workqueue_add_after(queue, "a", SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "b", 3 * SECOND), 0);
        assert_int_equal(hf_workqueue_take(queue, token, &taken), 0);
        assert_int_equal(now, BEGIN + SECOND);
        assert_int_equal(hf_workqueue_take(queue, token, &taken), HF_E_CANCELED);
        assert_int_equal(now, BEGIN + 2 * SECOND);
        hf_cancel_unref(token);
}

static void test_a_drain_hands_out_what_is_due_and_nothing_later(void **state) {
        const char *taken;

        assert_int_equal(hf_workqueue_add_after(queue, "due", SECOND), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "later", SECOND + 1), 0);
        assert_int_equal(hf_workqueue_add(queue, "ready"), 0);
        now += SECOND;
        hf_workqueue_drain(queue);
        assert_int_equal(hf_workqueue_add(queue, "refused"), 0);
        assert_int_equal(hf_workqueue_retry(queue, "refused"), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "refused", SECOND), 0);
        assert_done("ready", SECOND);
        assert_done("due", SECOND);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), HF_E_CLOSED);
}

static void test_a_drop_hands_out_nothing_more(void **state) {
        const char *taken;

        assert_int_equal(hf_workqueue_add(queue, "working"), 0);
        assert_taken("working", 0);
        assert_int_equal(hf_workqueue_add(queue, "working"), 0); /* again, while it is worked on */
        assert_int_equal(hf_workqueue_add(queue, "ready"), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "later", SECOND), 0);
        hf_workqueue_drop(queue);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        assert_metric(host.metrics, "workqueue_depth{name=\"q\"} 0");
        hf_workqueue_done(queue, "working");
        assert_int_equal(hf_workqueue_depth(queue), 0);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), HF_E_CANCELED);
}

static void test_the_metrics_show_waiting_and_working_times(void **state) {
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_int_equal(hf_workqueue_add(queue, "b"), 0);
        assert_metric(host.metrics, "workqueue_depth{name=\"q\"} 2");
        now += 2 * SECOND;
        assert_taken("a", 2 * SECOND);
        now += 3 * SECOND;
        assert_taken("b", 5 * SECOND);
        now += SECOND;
        assert_metric(host.metrics, "workqueue_queue_duration_seconds_sum{name=\"q\"} 7");
        assert_metric(host.metrics, "workqueue_unfinished_work_seconds{name=\"q\"} 5");
        assert_metric(host.metrics, "workqueue_longest_running_processor_seconds{name=\"q\"} 4");
        hf_workqueue_done(queue, "a");
        hf_workqueue_done(queue, "a"); /* ignored: no worker has it */
        hf_workqueue_done(queue, "unknown");
        assert_metric(host.metrics, "workqueue_work_duration_seconds_sum{name=\"q\"} 4");
        assert_metric(host.metrics, "workqueue_unfinished_work_seconds{name=\"q\"} 1");
        assert_metric(host.metrics, "workqueue_depth{name=\"q\"} 0");
        /* A new queue of the same name does not begin with the values of this one. */
        assert_int_equal(hf_workqueue_add(queue, "c"), 0);
        hf_workqueue_free(queue);
        assert_metric(host.metrics, "workqueue_depth{name=\"q\"} 0");
        assert_metric(host.metrics, "workqueue_unfinished_work_seconds{name=\"q\"} 0");
        assert_metric(host.metrics, "workqueue_longest_running_processor_seconds{name=\"q\"} 0");
        assert_int_equal(hf_workqueue_new(&host, "q", &queue), 0);
}

/* A key that was added while a worker had it is handed out again, once, after the keys before it.
 */
static void test_a_key_that_is_added_while_it_is_worked_on_comes_again(void **state) {
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_taken("a", 0);
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_int_equal(hf_workqueue_add(queue, "b"), 0);
        assert_int_equal(hf_workqueue_depth(queue), 1);
        hf_workqueue_done(queue, "a");
        assert_int_equal(hf_workqueue_depth(queue), 2);
        assert_done("b", 0);
        assert_done("a", 0);
        assert_int_equal(hf_workqueue_depth(queue), 0);
}

/* The queue keeps no memory for a key without state. */
static void test_a_key_that_is_done_needs_no_memory(void **state) {
        char key[32];
        size_t before = 0;

        for (int i = 0; i < 300; i++) {
                (void)snprintf(key, sizeof key, "key-%d", i);
                int r = hf_workqueue_add_after(queue, key, i % 3 * SECOND);
                assert_int_equal(r, 0);
                if (i % 3 == 1)
                        assert_int_equal(hf_workqueue_retry(queue, key), 0);
                const char *taken;
                assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &taken), 0);
                assert_string_equal(taken, key);
                if (i % 2)
                        hf_workqueue_forget(queue, key); /* before or after it is done */
                hf_workqueue_done(queue, key);
                hf_workqueue_forget(queue, key);
                if (i == 10)
                        before = failing_memory_n_live();
        }
        assert_int_equal(failing_memory_n_live(), before);
        /* The same for keys that a drain or a drop discards. */
        assert_int_equal(hf_workqueue_add_after(queue, "later", SECOND), 0);
        hf_workqueue_drain(queue);
        assert_int_equal(failing_memory_n_live(), before);
}

static void test_a_dropped_key_needs_no_memory(void **state) {
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_done("a", 0);
        size_t before = failing_memory_n_live();
        assert_int_equal(hf_workqueue_add(queue, "a"), 0);
        assert_int_equal(hf_workqueue_add_after(queue, "b", SECOND), 0);
        hf_workqueue_drop(queue);
        assert_int_equal(failing_memory_n_live(), before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_keys_come_when_they_are_due, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_earlier_of_two_delays_counts, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_delay_longer_than_time_itself_does_not_overflow, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_the_delay_of_a_key_doubles_until_it_is_forgotten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_retries_of_all_keys_share_a_limit, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_without_a_rate_or_a_burst_a_limit_is_still_one,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_new_limit_begins_anew, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_worker_waits_no_longer_than_its_token, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_drain_hands_out_what_is_due_and_nothing_later, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_drop_hands_out_nothing_more, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_metrics_show_waiting_and_working_times,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_key_that_is_added_while_it_is_worked_on_comes_again, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_a_key_that_is_done_needs_no_memory, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_dropped_key_needs_no_memory, setup,
                                                teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
