/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The clock: the library reads the time, and waits with a deadline on condition variables, through
 * this interface, so that tests can replace it. Three things do not use it: the event loops, which
 * wait with timerfds on CLOCK_BOOTTIME; waits with hf_cancel_never, which use the system's clock;
 * and libcurl.
 *
 * All instants and deadlines of Holdfast are CLOCK_BOOTTIME in nanoseconds (hf_nsec). Boot time
 * goes on while the machine is suspended, so a process that was suspended past the end of its Lease
 * notices. Real time is for the times in objects, certificates and tokens; no hf_nsec deadline
 * depends on it. Monotonic time measures how long work took.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t hf_nsec; /* nanoseconds; int64 holds 292 years */

#define HF_NSEC_PER_USEC INT64_C(1000)
#define HF_NSEC_PER_MSEC INT64_C(1000000)
#define HF_NSEC_PER_SEC  INT64_C(1000000000)
#define HF_NSEC_NEVER    INT64_MAX /* a deadline that never comes */

/* A clock. Thread: any, for each function; none of the first three blocks. */
struct hf_clock {
        size_t size;                     /* sizeof(struct hf_clock) */
        hf_nsec (*boot)(void *ctx);      /* CLOCK_BOOTTIME */
        hf_nsec (*monotonic)(void *ctx); /* CLOCK_MONOTONIC */
        hf_nsec (*real)(void *ctx);      /* CLOCK_REALTIME, nanoseconds since 1970 UTC */
        /*
         * Waits on cond until it is signalled or boot time reaches deadline. cond was initialised
         * by hf_cond_init, and the caller holds mutex. Returns 0, HF_E_TIMEOUT or -errno. Wake-ups
         * may be spurious: test the predicate before and after each wait.
         */
        int (*wait)(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline);
        void *ctx; /* passed to each function */
};

/* The system's clock. Static storage. Thread: any. */
const struct hf_clock *hf_clock_system(void);

/*
 * Initialises a condition variable that waits on CLOCK_MONOTONIC, because hf_clock_system()
 * requires that for its `wait`. 0 or -errno. The caller destroys it with pthread_cond_destroy.
 */
HF_MUST_CHECK int hf_cond_init(pthread_cond_t *cond);

/* The current boot time, as clock reports it. */
static inline hf_nsec hf_now(const struct hf_clock *clock) { return clock->boot(clock->ctx); }

#ifdef __cplusplus
}
#endif
