/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation tokens: firing, deadlines, waiting, wakers, and races of these. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "base/departure.h"

static void count(void *ctx) { atomic_fetch_add((atomic_int *)ctx, 1); }

static struct hf_cancel *make(struct hf_cancel *parent) {
        struct hf_cancel *token = NULL;
        assert_int_equal(hf_cancel_new(parent, hf_clock_system(), &token), 0);
        return token;
}

/* A clock that the test sets. Its wait() does not sleep, but sets the clock to the deadline. */
static hf_nsec fake_time;
static hf_nsec fake_now(void *ctx) { return fake_time; }
static int fake_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        assert_true(deadline != HF_NSEC_NEVER);
        fake_time = deadline;
        return HF_E_TIMEOUT;
}
static const struct hf_clock fake = {.size = sizeof fake,
                                     .boot = fake_now,
                                     .monotonic = fake_now,
                                     .real = fake_now,
                                     .wait = fake_wait};

static void test_fire_reaches_only_descendants(void **state) {
        struct hf_cancel *root = make(NULL), *a = make(root), *b = make(root), *aa = make(a);

        hf_cancel_fire(a, HF_CANCEL_LOST);
        assert_false(hf_cancel_fired(root));
        assert_false(hf_cancel_fired(b));
        assert_int_equal(hf_cancel_reason(a), HF_CANCEL_LOST);
        assert_int_equal(hf_cancel_reason(aa), HF_CANCEL_LOST);
        hf_cancel_fire(root, HF_CANCEL_STOPPING);
        assert_int_equal(hf_cancel_reason(a), HF_CANCEL_LOST); /* the first reason stays */
        assert_int_equal(hf_cancel_reason(b), HF_CANCEL_STOPPING);
        struct hf_cancel *late = make(aa);
        assert_int_equal(hf_cancel_reason(late), HF_CANCEL_LOST);
        hf_cancel_unref(root); /* the children still hold it */
        hf_cancel_unref(a);
        hf_cancel_unref(b);
        hf_cancel_unref(aa);
        hf_cancel_unref(late);
}

static void test_deadline_is_inherited_and_sticks(void **state) {
        struct hf_cancel *root, *child;
        atomic_int calls = 0;

        fake_time = 100;
        assert_int_equal(hf_cancel_new(NULL, &fake, &root), 0);
        assert_int_equal(hf_cancel_new(root, &fake, &child), 0);
        assert_int_equal(hf_cancel_deadline(child), HF_NSEC_NEVER);
        hf_cancel_set_deadline(root, 200);
        hf_cancel_set_deadline(child, 300); /* no effect: later than the parent's deadline */
        hf_cancel_set_deadline(root, 250);  /* the earlier deadline stays */
        assert_int_equal(hf_cancel_deadline(child), 200);
        fake_time = 199;
        assert_false(hf_cancel_fired(child));
        fake_time = 200;
        assert_int_equal(hf_cancel_reason(child), HF_CANCEL_DEADLINE);
        struct hf_cancel_waker waker;
        hf_cancel_add_waker(child, &waker, count,
                            &calls); /* called at once, because the token has fired already */
        assert_int_equal(calls, 1);
        hf_cancel_remove_waker(&waker);
        hf_cancel_fire(root, HF_CANCEL_LOST);
        assert_int_equal(hf_cancel_reason(child), HF_CANCEL_DEADLINE);
        assert_int_equal(hf_cancel_reason(root), HF_CANCEL_DEADLINE);
        hf_cancel_unref(child);
        hf_cancel_unref(root);
}

static void test_a_wait_reports_a_timeout_or_a_cancellation(void **state) {
        struct hf_cancel *token;

        fake_time = 0;
        assert_int_equal(hf_cancel_new(NULL, &fake, &token), 0);
        assert_int_equal(hf_cancel_wait(token, 50), HF_E_TIMEOUT);
        assert_int_equal(fake_time, 50);
        hf_cancel_set_deadline(token, 80);
        assert_int_equal(hf_cancel_wait(token, HF_NSEC_NEVER), HF_E_CANCELED);
        assert_int_equal(fake_time, 80);
        hf_cancel_unref(token);
        assert_int_equal(hf_cancel_wait(hf_cancel_never(),
                                        hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC),
                         HF_E_TIMEOUT);
}

static void test_the_never_token_does_not_fire(void **state) {
        atomic_int calls = 0;
        struct hf_cancel_waker waker;
        struct hf_cancel *child = make(hf_cancel_never());

        hf_cancel_add_waker(hf_cancel_never(), &waker, count, &calls);
        hf_cancel_set_deadline(hf_cancel_never(), 1);
        hf_cancel_fire(hf_cancel_never(), HF_CANCEL_LOST);
        assert_false(hf_cancel_fired(hf_cancel_never()));
        assert_int_equal(hf_cancel_deadline(hf_cancel_never()), HF_NSEC_NEVER);
        hf_cancel_remove_waker(&waker);
        assert_int_equal(calls, 0);
        hf_cancel_unref(hf_cancel_ref(hf_cancel_never()));
        assert_false(hf_cancel_fired(child));
        hf_cancel_fire(child, HF_CANCEL_FAILED);
        assert_int_equal(hf_cancel_reason(child), HF_CANCEL_FAILED);
        hf_cancel_unref(child);
}

static void test_wakers_are_called_once(void **state) {
        struct hf_cancel *root = make(NULL), *child = make(root);
        struct hf_cancel_waker a, b, gone, zero = {0};
        atomic_int n_a = 0, n_b = 0, n_gone = 0;

        hf_cancel_add_waker(root, &a, count, &n_a);
        hf_cancel_add_waker(child, &b, count, &n_b);
        hf_cancel_add_waker(child, &gone, count, &n_gone);
        hf_cancel_remove_waker(&gone);
        hf_cancel_fire(child, HF_CANCEL_STOPPING);
        assert_int_equal(n_a, 0);
        assert_int_equal(n_b, 1);
        hf_cancel_fire(root, HF_CANCEL_STOPPING);
        hf_cancel_fire(root, HF_CANCEL_STOPPING);
        assert_int_equal(n_a, 1);
        assert_int_equal(n_b, 1);
        assert_int_equal(n_gone, 0);
        hf_cancel_remove_waker(&a);
        hf_cancel_remove_waker(&a);
        hf_cancel_remove_waker(&b);
        hf_cancel_remove_waker(&zero);
        hf_cancel_unref(child);
        hf_cancel_unref(root);
}

static void *wait_for_ever(void *ctx) {
        return (void *)(intptr_t)hf_cancel_wait(ctx, HF_NSEC_NEVER);
}

static void test_fire_wakes_waiters_on_other_threads(void **state) {
        struct hf_cancel *root = make(NULL), *child = make(root), *timed = make(NULL);
        pthread_t waiter[3];
        void *result;

        assert_int_equal(pthread_create(&waiter[0], NULL, wait_for_ever, child), 0);
        assert_int_equal(pthread_create(&waiter[1], NULL, wait_for_ever, root), 0);
        assert_int_equal(pthread_create(&waiter[2], NULL, wait_for_ever, timed), 0);
        hf_cancel_fire(root, HF_CANCEL_STOPPING);
        hf_cancel_set_deadline(timed, hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(pthread_join(waiter[i], &result), 0);
                assert_int_equal((intptr_t)result, HF_E_CANCELED);
        }
        hf_cancel_unref(child);
        hf_cancel_unref(root);
        hf_cancel_unref(timed);
}

/*
 * The memory of a waker is freed directly after its removal, while another thread fires the token.
 * The token must not use it afterwards.
 */
struct guarded {
        struct hf_cancel_waker waker;
        int alive; /* written by the remover and read by fn, never at the same time */
};

static void check_alive(void *ctx) { assert_int_equal(((struct guarded *)ctx)->alive, 1); }

static void *remove_wakers(void *ctx) {
        struct guarded **guarded = ctx;
        for (int i = 0; i < 32; i++) {
                hf_cancel_remove_waker(&guarded[i]->waker);
                guarded[i]->alive = 0;
                free(guarded[i]);
        }
        return NULL;
}

static void *fire(void *ctx) {
        hf_cancel_fire(ctx, HF_CANCEL_STOPPING);
        return NULL;
}

static void test_removal_races_with_fire(void **state) {
        for (int round = 0; round < 200; round++) {
                struct hf_cancel *root = make(NULL), *child = make(root);
                struct guarded *guarded[32];
                pthread_t thread[3];

                for (int i = 0; i < 32; i++) {
                        guarded[i] = calloc(1, sizeof *guarded[i]);
                        assert_non_null(guarded[i]);
                        guarded[i]->alive = 1;
                        hf_cancel_add_waker(i % 2 ? root : child, &guarded[i]->waker, check_alive,
                                            guarded[i]);
                }
                assert_int_equal(pthread_create(&thread[0], NULL, fire, root), 0);
                assert_int_equal(pthread_create(&thread[1], NULL, remove_wakers, guarded), 0);
                assert_int_equal(pthread_create(&thread[2], NULL, fire, child), 0);
                for (int i = 0; i < 3; i++)
                        assert_int_equal(pthread_join(thread[i], NULL), 0);
                hf_cancel_unref(child);
                hf_cancel_unref(root);
        }
}

/* Two threads add and remove children while a third fires the parent. */
static void *breed(void *ctx) {
        for (int i = 0; i < 500; i++) {
                struct hf_cancel *child = make(ctx), *grandchild = make(child);
                atomic_int calls = 0;
                struct hf_cancel_waker waker;
                hf_cancel_unref(child);
                hf_cancel_add_waker(grandchild, &waker, count, &calls);
                hf_cancel_remove_waker(&waker);
                hf_cancel_unref(grandchild);
        }
        return NULL;
}

static void test_children_come_and_go_during_fire(void **state) {
        struct hf_cancel *root = make(NULL);
        pthread_t thread[3];

        assert_int_equal(pthread_create(&thread[0], NULL, breed, root), 0);
        assert_int_equal(pthread_create(&thread[1], NULL, breed, root), 0);
        assert_int_equal(pthread_create(&thread[2], NULL, fire, root), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        struct hf_cancel *late = make(root);
        assert_true(hf_cancel_fired(late));
        hf_cancel_unref(late);
        hf_cancel_unref(root);
}

/* ---- departures ---- */

static void count_departure(void *ctx) { ++*(int *)ctx; }

static void a_departure_fires_its_token_whoever_comes_first(void **state) {
        for (int early = 0; early < 2; early++) {
                struct hf__departure departure = {0};
                struct hf_cancel_waker waker = {0};
                int n = 0;

                if (!early)
                        hf__departure_leave(&departure);
                struct hf_cancel *token = hf__departure_token(&departure);
                assert_non_null(token);
                assert_ptr_equal(hf__departure_token(&departure), token);
                assert_int_equal(hf_cancel_fired(token), !early);
                hf_cancel_add_waker(token, &waker, count_departure, &n);
                hf__departure_leave(&departure);
                assert_true(atomic_load(&departure.gone));
                assert_true(hf_cancel_fired(token));
                assert_int_equal(n, 1);
                hf_cancel_remove_waker(&waker);
                hf__departure_done(&departure);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fire_reaches_only_descendants),
                cmocka_unit_test(test_deadline_is_inherited_and_sticks),
                cmocka_unit_test(test_a_wait_reports_a_timeout_or_a_cancellation),
                cmocka_unit_test(test_the_never_token_does_not_fire),
                cmocka_unit_test(test_wakers_are_called_once),
                cmocka_unit_test(test_fire_wakes_waiters_on_other_threads),
                cmocka_unit_test(test_removal_races_with_fire),
                cmocka_unit_test(test_children_come_and_go_during_fire),
                cmocka_unit_test(a_departure_fires_its_token_whoever_comes_first),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
