/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of keys: order, delays, retries, the end. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>
#include <holdfast/workqueue.h>

#include "patience.h"

/*
 * A clock that the test sets; tests that really wait use the system's clock. With this clock no
 * function may wait: a take that would have to wait fails the test.
 */
static hf_nsec fake_now;
static hf_nsec fake_time(void *ctx) { return fake_now; }
static int fake_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        fail_msg("a take waits until %lld, at %lld", (long long)deadline, (long long)fake_now);
        return HF_E_TIMEOUT;
}
static const struct hf_clock fake_clock = {.size = sizeof fake_clock,
                                           .boot = fake_time,
                                           .monotonic = fake_time,
                                           .real = fake_time,
                                           .wait = fake_wait};
static const struct hf_host fake_host = {.size = sizeof fake_host, .clock = &fake_clock};
static const struct hf_host real_host = {.size = sizeof real_host};

static struct hf_workqueue *make(const struct hf_host *host) {
        struct hf_workqueue *queue = NULL;
        fake_now = HF_NSEC_PER_SEC;
        assert_int_equal(hf_workqueue_new(host, "test", &queue), 0);
        return queue;
}

static const char *take(struct hf_workqueue *queue) {
        const char *key = NULL;
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &key), 0);
        return key;
}

static void test_keys_are_taken_once_and_in_order(void **state) {
        struct hf_workqueue *queue = make(&fake_host);

        assert_int_equal(hf_workqueue_add(queue, "a/1"), 0);
        assert_int_equal(hf_workqueue_add(queue, "b/2"), 0);
        assert_int_equal(hf_workqueue_add(queue, "a/1"), 0);
        assert_int_equal(hf_workqueue_depth(queue), 2);
        const char *first = take(queue);
        assert_string_equal(first, "a/1");
        const char *second = take(queue);
        assert_string_equal(second, "b/2");
        hf_workqueue_done(queue, first);
        hf_workqueue_done(queue, second);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        hf_workqueue_free(queue);
}

static void test_keys_may_have_any_length(void **state) {
        enum { N = 256 };
        struct hf_workqueue *queue = make(&fake_host);
        char key[N + 1];

        memset(key, 'k', N);
        key[N] = '\0';
        for (size_t n = 0; n <= N; n++)
                assert_int_equal(hf_workqueue_add(queue, key + N - n), 0);
        for (size_t n = 0; n <= N; n++) {
                const char *taken = take(queue);
                assert_string_equal(taken, key + N - n);
                hf_workqueue_done(queue, taken);
        }
        hf_workqueue_free(queue);
}

static void test_a_key_added_while_worked_on_comes_back_after_done(void **state) {
        struct hf_workqueue *queue = make(&fake_host);

        (void)hf_workqueue_add(queue, "k");
        const char *key = take(queue);
        (void)hf_workqueue_add(queue, "k");
        (void)hf_workqueue_add(queue, "k");
        assert_int_equal(hf_workqueue_depth(queue), 0);
        hf_workqueue_done(queue, key);
        assert_int_equal(hf_workqueue_depth(queue), 1);
        key = take(queue);
        hf_workqueue_done(queue, key);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        hf_workqueue_free(queue);
}

static void test_delayed_keys_come_in_order_of_time(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        static const char *const names[] = {"e", "c", "a", "d", "b"};
        static const int delays[] = {50, 30, 10, 40, 20};

        for (size_t i = 0; i < 5; i++)
                (void)hf_workqueue_add_after(queue, names[i], delays[i] * HF_NSEC_PER_MSEC);
        (void)hf_workqueue_add_after(queue, "e",
                                     5 * HF_NSEC_PER_MSEC); /* the earlier time counts */
        (void)hf_workqueue_add_after(queue, "a",
                                     500 * HF_NSEC_PER_MSEC); /* and the later one does not */
        assert_int_equal(hf_workqueue_depth(queue), 0);
        fake_now += 5 * HF_NSEC_PER_MSEC;
        hf_workqueue_done(queue, take(queue));
        assert_int_equal(hf_workqueue_depth(queue), 0);
        fake_now += HF_NSEC_PER_SEC;
        const char *expected[] = {"a", "b", "c", "d"};
        for (size_t i = 0; i < 4; i++) {
                const char *key = take(queue);
                assert_string_equal(key, expected[i]);
                hf_workqueue_done(queue, key);
        }
        assert_int_equal(hf_workqueue_depth(queue), 0);
        hf_workqueue_free(queue);
}

/* The key is not due one nanosecond before its time, and is due at its time. */
static void expect_due_after(struct hf_workqueue *queue, hf_nsec delay) {
        fake_now += delay - 1;
        const char *key = NULL;
        assert_int_equal(hf_workqueue_add(queue, "other"), 0);
        key = take(queue);
        assert_string_equal(key, "other"); /* take moves the due keys first */
        hf_workqueue_done(queue, key);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        fake_now += 1;
        key = take(queue);
        assert_string_equal(key, "k");
        hf_workqueue_done(queue, key);
}

static void test_retries_wait_ever_longer_until_forgotten(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        hf_nsec delay = 5 * HF_NSEC_PER_MSEC;

        for (int i = 0; i < 25; i++) {
                assert_int_equal(hf_workqueue_retry(queue, "k"), 0);
                expect_due_after(queue, delay);
                delay = delay * 2 < 1000 * HF_NSEC_PER_SEC ? delay * 2 : 1000 * HF_NSEC_PER_SEC;
        }
        assert_int_equal(delay, 1000 * HF_NSEC_PER_SEC);
        hf_workqueue_forget(queue, "k");
        (void)hf_workqueue_retry(queue, "k");
        expect_due_after(queue, 5 * HF_NSEC_PER_MSEC);
        hf_workqueue_free(queue);
}

/* A key that is added again and again goes behind the others each time. */
static void test_a_busy_key_does_not_starve_others(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        const char *expected[] = {"busy", "b", "c", "busy", "busy"};

        (void)hf_workqueue_add(queue, "busy");
        (void)hf_workqueue_add(queue, "b");
        (void)hf_workqueue_add(queue, "c");
        for (size_t i = 0; i < 5; i++) {
                const char *key = take(queue);
                assert_string_equal(key, expected[i]);
                (void)hf_workqueue_add(queue, "busy");
                hf_workqueue_done(queue, key);
        }
        hf_workqueue_free(queue);
}

/*
 * Three retries at once, then one every 100 ms. Ten seconds later three are allowed at once again,
 * and no more.
 */
static void test_retries_share_a_rate_limit(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        char name[8];

        hf_workqueue_limit_retries(queue, 10, 3);
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < 6; i++) {
                        snprintf(name, sizeof name, "k%d", i);
                        assert_int_equal(hf_workqueue_retry(queue, name), 0);
                        hf_workqueue_forget(queue, name);
                }
                hf_nsec began = fake_now;
                for (int i = 0; i < 6; i++) {
                        fake_now = began + (i < 3 ? 5 * HF_NSEC_PER_MSEC
                                                  : (i - 2) * 100 * HF_NSEC_PER_MSEC);
                        snprintf(name, sizeof name, "k%d", i);
                        const char *key = take(queue);
                        if (i >= 3)
                                assert_string_equal(key, name);
                        hf_workqueue_done(queue, key);
                        if (i >= 2) { /* nothing else is due yet */
                                assert_int_equal(hf_workqueue_add(queue, "probe"), 0);
                                key = take(queue);
                                assert_string_equal(key, "probe");
                                hf_workqueue_done(queue, key);
                                assert_int_equal(hf_workqueue_depth(queue), 0);
                        }
                }
                fake_now += 10 * HF_NSEC_PER_SEC;
        }
        hf_workqueue_limit_retries(queue, 0, 0);
        for (int i = 0; i < 50; i++) {
                snprintf(name, sizeof name, "k%d", i);
                (void)hf_workqueue_retry(queue, name);
        }
        fake_now += 5 * HF_NSEC_PER_MSEC;
        for (int i = 0; i < 50; i++)
                hf_workqueue_done(queue, take(queue));
        hf_workqueue_free(queue);
}

static void test_drain_finishes_waiting_keys(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        const char *key, *none;

        (void)hf_workqueue_add(queue, "a");
        (void)hf_workqueue_add(queue, "b");
        (void)hf_workqueue_add_after(queue, "later", HF_NSEC_PER_SEC);
        key = take(queue);
        (void)hf_workqueue_add(queue,
                               "a"); /* added before the drain, so it must still be handled */
        hf_workqueue_drain(queue);
        (void)hf_workqueue_add(queue, "c");
        (void)hf_workqueue_retry(queue, "d");
        hf_workqueue_done(queue, key);
        fake_now += 10 * HF_NSEC_PER_SEC;
        key = take(queue);
        assert_string_equal(key, "b");
        hf_workqueue_done(queue, key);
        key = take(queue);
        assert_string_equal(key, "a");
        hf_workqueue_done(queue, key);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &none), HF_E_CLOSED);
        hf_workqueue_free(queue);
}

static void test_a_drop_discards_keys_and_a_token_ends_waits(void **state) {
        struct hf_workqueue *queue = make(&fake_host);
        struct hf_cancel *token = NULL;
        const char *key, *none;

        assert_int_equal(hf_cancel_new(NULL, &fake_clock, &token), 0);
        (void)hf_workqueue_add(queue, "a");
        (void)hf_workqueue_add(queue, "b");
        (void)hf_workqueue_add_after(queue, "later", HF_NSEC_PER_SEC);
        hf_cancel_fire(token, HF_CANCEL_LOST);
        assert_int_equal(hf_workqueue_take(queue, token, &none), HF_E_CANCELED);
        key = take(queue);
        (void)hf_workqueue_add(queue, key);
        hf_workqueue_drop(queue);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        hf_workqueue_done(queue, key);
        assert_int_equal(hf_workqueue_depth(queue), 0);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &none), HF_E_CANCELED);
        hf_cancel_unref(token);
        hf_workqueue_free(queue);
}

struct text {
        char data[16384];
        size_t n;
};
static void collect(void *ctx, const char *data, size_t n) {
        struct text *text = ctx;
        assert_true(text->n + n < sizeof text->data);
        memcpy(text->data + text->n, data, n);
        text->n += n;
        text->data[text->n] = '\0';
}

static void test_metrics_count_keys(void **state) {
        struct hf_metrics *metrics = NULL;
        static struct text text;
        assert_int_equal(hf_metrics_new(&metrics), 0);
        const struct hf_host host = {.size = sizeof host, .clock = &fake_clock, .metrics = metrics};
        struct hf_workqueue *queue = NULL;
        assert_int_equal(hf_workqueue_new(&host, "q\"1", &queue), 0);

        (void)hf_workqueue_add(queue, "a");
        (void)hf_workqueue_add(queue, "a");
        (void)hf_workqueue_add(queue, "b");
        hf_workqueue_done(queue, take(queue));
        (void)hf_workqueue_retry(queue, "c");
        fake_now += 5 * HF_NSEC_PER_MSEC;
        const char *first = take(queue);
        fake_now += 2 * HF_NSEC_PER_SEC;
        const char *second = take(queue);
        fake_now += HF_NSEC_PER_SEC;
        (void)hf_workqueue_add(queue, "d");
        hf_metrics_write(metrics, collect, &text);
        assert_non_null(strstr(text.data, "workqueue_depth{name=\"q\\\"1\"} 1\n"));
        assert_non_null(strstr(text.data, "workqueue_adds_total{name=\"q\\\"1\"} 4\n"));
        assert_non_null(strstr(text.data, "workqueue_retries_total{name=\"q\\\"1\"} 1\n"));
        assert_non_null(
                strstr(text.data, "workqueue_work_duration_seconds_count{name=\"q\\\"1\"} 1\n"));
        assert_non_null(
                strstr(text.data, "workqueue_queue_duration_seconds_count{name=\"q\\\"1\"} 3\n"));
        assert_non_null(
                strstr(text.data, "workqueue_unfinished_work_seconds{name=\"q\\\"1\"} 4\n"));
        assert_non_null(strstr(text.data,
                               "workqueue_longest_running_processor_seconds{name=\"q\\\"1\"} 3\n"));
        hf_workqueue_done(queue, first);
        text.n = 0;
        hf_metrics_write(metrics, collect, &text);
        assert_non_null(
                strstr(text.data, "workqueue_unfinished_work_seconds{name=\"q\\\"1\"} 1\n"));
        hf_workqueue_done(queue, second);
        hf_workqueue_free(queue);
        text.n = 0;
        hf_metrics_write(metrics, collect,
                         &text); /* the metrics contain no keys of a freed queue */
        assert_non_null(
                strstr(text.data, "workqueue_unfinished_work_seconds{name=\"q\\\"1\"} 0\n"));
        assert_non_null(strstr(text.data, "workqueue_depth{name=\"q\\\"1\"} 0\n"));
        hf_metrics_free(metrics);
}

static void test_object_keys_are_made_and_split(void **state) {
        char key[HF_KEY_MAX], ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], longest[HF_NAME_MAX + 2];

        memset(longest, 'x', sizeof longest - 1);
        longest[HF_NAME_MAX + 1] = '\0';
        assert_int_equal(hf_key_make(key, longest, "n"), -EINVAL);
        assert_int_equal(hf_key_make(key, "n", longest), -EINVAL);
        char split[2 * sizeof longest];
        (void)snprintf(split, sizeof split, "%s/n", longest);
        assert_int_equal(hf_key_split(split, ns, name), -EINVAL);
        (void)snprintf(split, sizeof split, "n/%s", longest);
        assert_int_equal(hf_key_split(split, ns, name), -EINVAL);
        longest[HF_NAME_MAX] = '\0';
        assert_int_equal(hf_key_make(key, longest, longest), 0);
        assert_int_equal(strlen(key), HF_KEY_MAX - 1);
        assert_int_equal(hf_key_split(key, ns, name), 0);
        assert_string_equal(ns, longest);
        assert_string_equal(name, longest);
        assert_int_equal(hf_key_make(key, NULL, "n"), 0);
        assert_string_equal(key, "n");
        assert_int_equal(hf_key_split(key, ns, name), 0);
        assert_string_equal(ns, "");
        assert_string_equal(name, "n");
        assert_int_equal(hf_key_split("ns/", ns, name), -EINVAL);
        assert_int_equal(hf_key_split("", ns, name), -EINVAL);
}

/* ---- with threads ---- */

#define N_KEYS    16
#define N_ADDS    2000
#define N_WORKERS 3

static struct {
        struct hf_workqueue *queue;
        struct hf_cancel *abort;
        atomic_int in_hand[N_KEYS]; /* never above one: one worker handles a key at a time */
        atomic_int seen[N_KEYS];
        atomic_int latest[N_KEYS]; /* what the producer wrote before it added the key */
        int end[N_WORKERS];
} crowd;

static void *work(void *ctx) {
        int *ret_end = ctx;
        const char *key;

        while ((*ret_end = hf_workqueue_take(crowd.queue, crowd.abort, &key)) == 0) {
                int i = atoi(key);
                assert(atomic_fetch_add(&crowd.in_hand[i], 1) == 0);
                atomic_store(&crowd.seen[i], atomic_load(&crowd.latest[i]));
                atomic_fetch_sub(&crowd.in_hand[i], 1);
                hf_workqueue_forget(crowd.queue, key);
                hf_workqueue_done(crowd.queue, key);
        }
        return NULL;
}

static void run_crowd(void (*end)(void), int expected) {
        pthread_t threads[N_WORKERS];

        memset(&crowd, 0, sizeof crowd);
        crowd.queue = make(&real_host);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &crowd.abort), 0);
        for (int i = 0; i < N_WORKERS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd.end[i]), 0);
        for (int i = 1; i <= N_ADDS; i++) {
                char key[8];
                snprintf(key, sizeof key, "%d", i % N_KEYS);
                atomic_store(&crowd.latest[i % N_KEYS], i);
                assert_int_equal(i % 7 == 0 ? hf_workqueue_add_after(crowd.queue, key, 1)
                                            : hf_workqueue_add(crowd.queue, key),
                                 0);
        }
        end();
        for (int i = 0; i < N_WORKERS; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(crowd.end[i], expected);
        }
        hf_workqueue_free(crowd.queue);
        hf_cancel_unref(crowd.abort);
}

static void end_by_drain(void) { hf_workqueue_drain(crowd.queue); }
static void end_by_abort(void) { hf_cancel_fire(crowd.abort, HF_CANCEL_LOST); }
static void end_by_drop(void) { hf_workqueue_drop(crowd.queue); }

static void test_every_add_is_seen_by_a_later_take(void **state) {
        run_crowd(end_by_drain, HF_E_CLOSED);
        for (int i = 0; i < N_KEYS; i++)
                assert_int_equal(crowd.seen[i], crowd.latest[i]);
}

static void test_busy_workers_return_at_the_end(void **state) {
        run_crowd(end_by_abort, HF_E_CANCELED);
        run_crowd(end_by_drop, HF_E_CANCELED);
}

/* The system's clock. It counts the threads that wait, and a wait that nothing ends fails the test
 * after a while. */
static atomic_int n_waiting;
static hf_nsec real_boot(void *ctx) { return hf_now(hf_clock_system()); }
static int wait_counted(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        struct timespec until = {0};

        assert(deadline == HF_NSEC_NEVER);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 20;
        atomic_fetch_add(&n_waiting, 1); /* the mutex stays locked until the wait has begun */
        assert(pthread_cond_timedwait(cond, mutex, &until) == 0);
        atomic_fetch_sub(&n_waiting, 1);
        return 0;
}
static const struct hf_clock counting_clock = {.size = sizeof counting_clock,
                                               .boot = real_boot,
                                               .monotonic = real_boot,
                                               .real = real_boot,
                                               .wait = wait_counted};
static const struct hf_host counting_host = {.size = sizeof counting_host,
                                             .clock = &counting_clock};

/* Ends the waits of workers that have nothing to do. */
static void end_waits(void (*end)(void), int expected) {
        pthread_t threads[N_WORKERS];

        memset(&crowd, 0, sizeof crowd);
        crowd.queue = make(&counting_host);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &crowd.abort), 0);
        for (int i = 0; i < N_WORKERS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd.end[i]), 0);
        PATIENCE_AWAIT(atomic_load(&n_waiting) >= N_WORKERS);
        end();
        for (int i = 0; i < N_WORKERS; i++) {
                pthread_join(threads[i], NULL);
                assert_int_equal(crowd.end[i], expected);
        }
        hf_workqueue_free(crowd.queue);
        hf_cancel_unref(crowd.abort);
}

static void test_waiting_workers_return_at_once(void **state) {
        end_waits(end_by_abort, HF_E_CANCELED);
        end_waits(end_by_drop, HF_E_CANCELED);
        end_waits(end_by_drain, HF_E_CLOSED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys_are_taken_once_and_in_order),
                cmocka_unit_test(test_keys_may_have_any_length),
                cmocka_unit_test(test_a_key_added_while_worked_on_comes_back_after_done),
                cmocka_unit_test(test_delayed_keys_come_in_order_of_time),
                cmocka_unit_test(test_retries_wait_ever_longer_until_forgotten),
                cmocka_unit_test(test_a_busy_key_does_not_starve_others),
                cmocka_unit_test(test_retries_share_a_rate_limit),
                cmocka_unit_test(test_object_keys_are_made_and_split),
                cmocka_unit_test(test_drain_finishes_waiting_keys),
                cmocka_unit_test(test_a_drop_discards_keys_and_a_token_ends_waits),
                cmocka_unit_test(test_metrics_count_keys),
                cmocka_unit_test(test_every_add_is_seen_by_a_later_take),
                cmocka_unit_test(test_busy_workers_return_at_the_end),
                cmocka_unit_test(test_waiting_workers_return_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
