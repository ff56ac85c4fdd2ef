/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's clock as a struct hf_clock.
 *
 * Deadlines are in boot time, but a condition variable cannot wait on it. It waits on monotonic
 * time, which stands still while the machine is suspended. So no wait with a deadline is longer
 * than SLICE. After the machine resumes, a passed deadline is noticed within one slice.
 *
 * A slice is long, because the end of each slice wakes the processor. After a suspend, a wait in
 * system_wait may end up to one slice late: a retry, the next renewal of an identity Lease, the
 * time limit of a request. But no process acts as leader too long for that reason. Before each
 * write of a leader, the gate (leader/gate.h) compares boot time with the time until which this
 * process may act as leader. The elector loop waits with a timerfd on boot time. When that loop
 * ends a term of leadership, it fires tokens, and these wake the threads in system_wait.
 */
#include <holdfast/clock.h>
#include <holdfast/error.h>

#include <assert.h>
#include <errno.h>
#include <time.h>

#define SLICE (5 * HF_NSEC_PER_SEC)

static hf_nsec read_clock(clockid_t id) {
        struct timespec t = {0};
        int r = clock_gettime(id, &t);

        assert(r == 0); /* the kernel supports every clock that is used here */
        (void)r;
        return (hf_nsec)t.tv_sec * HF_NSEC_PER_SEC + t.tv_nsec;
}

static hf_nsec system_boot(void *ctx) { return read_clock(CLOCK_BOOTTIME); }
static hf_nsec system_monotonic(void *ctx) { return read_clock(CLOCK_MONOTONIC); }
static hf_nsec system_real(void *ctx) { return read_clock(CLOCK_REALTIME); }

static int system_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        if (deadline == HF_NSEC_NEVER)
                return -pthread_cond_wait(cond, mutex);
        hf_nsec now = read_clock(CLOCK_BOOTTIME);
        if (now >= deadline)
                return HF_E_TIMEOUT;
        hf_nsec slice = deadline - now < SLICE ? deadline - now : SLICE;
        hf_nsec until = read_clock(CLOCK_MONOTONIC) + slice;
        struct timespec t = {.tv_sec = (time_t)(until / HF_NSEC_PER_SEC),
                             .tv_nsec = (long)(until % HF_NSEC_PER_SEC)};
        int error = pthread_cond_timedwait(cond, mutex, &t);
        if (error != ETIMEDOUT)
                return -error;
        /* The end of a slice is returned as a spurious wake-up. Even on a timeout the condition may
         * have been signalled while this thread waited for the mutex, so the caller tests its
         * predicate. */
        return read_clock(CLOCK_BOOTTIME) >= deadline ? HF_E_TIMEOUT : 0;
}

const struct hf_clock *hf_clock_system(void) {
        static const struct hf_clock clock = {.size = sizeof clock,
                                              .boot = system_boot,
                                              .monotonic = system_monotonic,
                                              .real = system_real,
                                              .wait = system_wait};
        return &clock;
}

int hf_cond_init(pthread_cond_t *cond) {
        pthread_condattr_t attr;
        int error = pthread_condattr_init(&attr);
        if (error != 0)
                return -error;
        error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (error == 0)
                error = pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
        return -error;
}
