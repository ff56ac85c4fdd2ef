/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Waits of tests and fixtures, with a time limit: after PATIENCE_MSEC they say on standard error
 * what they wait for, and end the program. Thread: any.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "time_units.h"

static inline void patience_check(hf_nsec until, const char *file, int line,
                                  const char *condition) {
        if (hf_now(hf_clock_system()) < until)
                return;
        (void)fprintf(stderr, "%s:%d: waited %d s in vain for: %s\n", file, line,
                      PATIENCE_MSEC / 1000, condition);
        abort();
}

/* Returns after a signal, or after a second. */
static inline void patience_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
        const hf_nsec until = hf_clock_system()->monotonic(NULL) + SEC;
        const struct timespec time = {.tv_sec = (time_t)(until / SEC),
                                      .tv_nsec = (long)(until % SEC)};

        (void)pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &time);
}

/* Waits until the condition is true. It is read again after each signal of `cond`, with the mutex
 * locked. */
#define PATIENCE_AWAIT_LOCKED(cond, mutex, condition)                                              \
        do {                                                                                       \
                const hf_nsec patience_until = in_msec(PATIENCE_MSEC);                             \
                while (!(condition)) {                                                             \
                        patience_check(patience_until, __FILE__, __LINE__, #condition);            \
                        patience_wait(cond, mutex);                                                \
                }                                                                                  \
        } while (0)

/* Lets other threads run. At first it only yields. Later it sleeps for a while, because valgrind
 * runs one thread at a time and may let the yielding thread go on. */
static inline void patience_yield(unsigned *n_looks) {
        if (++*n_looks < 20)
                (void)sched_yield();
        else
                (void)nanosleep(&(struct timespec){.tv_nsec = MSEC / 5}, NULL);
}

/* The same where nothing is signalled: other threads run between two looks at the condition. */
#define PATIENCE_AWAIT(condition)                                                                  \
        do {                                                                                       \
                const hf_nsec patience_until = in_msec(PATIENCE_MSEC);                             \
                unsigned patience_looks = 0;                                                       \
                while (!(condition)) {                                                             \
                        patience_check(patience_until, __FILE__, __LINE__, #condition);            \
                        patience_yield(&patience_looks);                                           \
                }                                                                                  \
        } while (0)
