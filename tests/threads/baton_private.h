/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inner interface of the scheduler: what the functions that replace those of the system
 * (wrap_*.c) and the report (baton_report.c) use of it.
 *
 * Only the thread that has the baton runs, so the state of a schedule needs no lock: whoever runs
 * may change it. A thread gives the baton away in baton_point, baton_block and at its end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "baton.h"

enum { BATON_MAX_THREADS = 64, BATON_MAX_FRAMES = 24 };

enum baton_state { BATON_RUNNABLE, BATON_BLOCKED, BATON_ENDED };

struct baton_thread {
        unsigned number;
        char name[16];
        pthread_t id;
        bool is_joined;
        atomic_uint has_baton; /* a futex */
        enum baton_state state;
        /* If BLOCKED: the address of the thing that it waits for, the kind of thing, and the
         * deadline. */
        const void *on;
        const char *what;
        hf_nsec until;
        bool has_timed_out;
        int64_t priority;
        void *(*fn)(void *ctx);
        void *ctx;
        void *frames[BATON_MAX_FRAMES]; /* where it is, for a report */
        int n_frames;
};

/* The calling thread, or NULL if it belongs to no schedule: then the real function is called. */
extern _Thread_local struct baton_thread *baton_self;

hf_nsec baton_now(void);
/* Waits for `on` until one of the next two functions wakes the thread, or until the time `until`.
 * what: the kind of `on`, for reports. False: the time has passed. */
bool baton_block(const void *on, const char *what, hf_nsec until);
/* Wakes all threads that wait for `on`, or one of them. */
void baton_wake_all(const void *on);
void baton_wake_one(const void *on);
/* Whether a thread waits for `on`. */
bool baton_is_awaited(const void *on);
/* Lets all other threads that can run go first. */
void baton_yield_to_all(void);
/* Returns the random bits that the code under test gets in place of the system's. */
uint64_t baton_random_bits(void);

extern const char baton_in_cond[]; /* `what` of a wait that may end without a signal */

/* Creates and joins threads of the schedule. They return as pthread_create and pthread_join. */
int baton_create(pthread_t *ret_id, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);
int baton_join(pthread_t id, void **ret_result);
void baton_set_name(pthread_t id, const char *name);

/* The number of open virtual descriptors (wrap_system.c). The second function closes them all. */
unsigned baton_n_open(void);
void baton_forget_open(void);

/* ---- baton_report.c ---- */

/* The first prints why the schedule failed and how to repeat it; the second prints where the
 * threads are, and exits. Each is called once. */
void baton_report_begin(const char *reason, const char *command);
_Noreturn void baton_report_threads(struct baton_thread *const *threads, unsigned n_threads);
/* Prints a line about a switch. */
void baton_trace(uint64_t step, hf_nsec now, const struct baton_thread *from,
                 const struct baton_thread *to);
