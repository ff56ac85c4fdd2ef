/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with planted mistakes, one of each kind that the scheduler must find. check_threads.py
 * has the texts that the report of each must contain. */
#include <stdatomic.h>

#include "base/thread.h"
#include "threads.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_set, n_counted;

/* ---- a signal between the test of the predicate and the wait ---- */

static void *set_without_lock(void *ctx) {
        baton_point();
        is_set = 1;
        pthread_cond_signal(&changed);
        return NULL;
}

void planted_lost_wake(void) {
        is_set = 0;
        pthread_t thread = scenario_thread("setter", set_without_lock, NULL);
        pthread_mutex_lock(&first);
        while (!is_set)
                pthread_cond_wait(&changed, &first);
        pthread_mutex_unlock(&first);
        (void)hf__thread_join(thread);
}

/* ---- a signal when the thread that waited may have destroyed the condition variable ---- */

static pthread_cond_t short_lived;

static void *set_and_signal_late(void *ctx) {
        pthread_mutex_lock(&first);
        is_set = 1;
        pthread_mutex_unlock(&first);
        pthread_cond_signal(&short_lived);
        return NULL;
}

void planted_late_signal(void) {
        is_set = 0;
        (void)pthread_cond_init(&short_lived, NULL);
        pthread_t thread = scenario_thread("setter", set_and_signal_late, NULL);
        pthread_mutex_lock(&first);
        while (!is_set)
                pthread_cond_wait(&short_lived, &first);
        pthread_mutex_unlock(&first);
        (void)pthread_cond_destroy(&short_lived);
        (void)hf__thread_join(thread);
}

/* ---- two mutexes in two orders ---- */

static void lock_both(pthread_mutex_t *a, pthread_mutex_t *b) {
        pthread_mutex_lock(a);
        pthread_mutex_lock(b);
        pthread_mutex_unlock(b);
        pthread_mutex_unlock(a);
}

static void *lock_backwards(void *ctx) {
        lock_both(&second, &first);
        return NULL;
}

void planted_lock_order(void) {
        pthread_t thread = scenario_thread("backwards", lock_backwards, NULL);
        lock_both(&first, &second);
        (void)hf__thread_join(thread);
}

/* ---- a read and a write that should be one atomic operation ---- */

static void *count(void *ctx) {
        int n = n_counted;
        baton_point();
        n_counted = n + 1;
        return NULL;
}

void planted_flag(void) {
        n_counted = 0;
        pthread_t thread = scenario_thread("counter", count, NULL);
        (void)count(NULL);
        (void)hf__thread_join(thread);
        BATON_CHECK(n_counted == 2);
}

/* ---- a thread that is not joined, a thread that never ends ---- */

static void *do_nothing(void *ctx) { return NULL; }

void planted_thread_left(void) { (void)scenario_thread("left", do_nothing, NULL); }

static void *never_set(void *ctx) {
        while (!is_set)
                baton_point();
        return NULL;
}

void planted_spin(void) {
        is_set = 0;
        pthread_t thread = scenario_thread("spinning", never_set, NULL);
        (void)hf__thread_join(thread);
}
