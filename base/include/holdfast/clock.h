/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The clock port: every reading of time and every timed wait of the library goes through it.
 *
 * All instants and deadlines in Holdfast are CLOCK_BOOTTIME nanoseconds (hf_nsec): it counts while
 * the machine is suspended, so a process that slept through its lease knows. Real time is for the
 * wire only, and is never compared. Monotonic time is for measuring durations of work.
 */
#include <pthread.h>
#include <stdint.h>

typedef int64_t hf_nsec; /* nanoseconds; int64 holds 292 years */

#define HF_NSEC_PER_USEC INT64_C(1000)
#define HF_NSEC_PER_MSEC INT64_C(1000000)
#define HF_NSEC_PER_SEC  INT64_C(1000000000)
#define HF_NSEC_NEVER    INT64_MAX /* a deadline that does not come */

struct hf_clock {
        hf_nsec (*boot)(void *ctx);      /* CLOCK_BOOTTIME */
        hf_nsec (*monotonic)(void *ctx); /* CLOCK_MONOTONIC */
        hf_nsec (*real)(void *ctx);      /* CLOCK_REALTIME, nanoseconds since 1970 UTC */
        /*
         * Waits on cond (made by hf_cond_init, mutex held) until it is signalled or boot time
         * reaches deadline. Returns 0 or HF_E_TIMEOUT; may wake spuriously: test the predicate
         * before and after.
         */
        int (*wait)(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline);
        void *ctx;
};

/* The system's clock. Static, valid for ever. Thread: any. */
const struct hf_clock *hf_clock_system(void);

/* Initialises a condition variable that waits on CLOCK_MONOTONIC. 0 or -errno. */
int hf_cond_init(pthread_cond_t *cond);

static inline hf_nsec hf_now(const struct hf_clock *clock) { return clock->boot(clock->ctx); }
