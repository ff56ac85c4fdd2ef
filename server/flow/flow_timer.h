/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The timer of the priority levels: a thread that looks at the levels whenever something is due. It
 * sleeps until the time that the last look returned, or until somebody expects an earlier one.
 *
 * Thread: init, start, stop and done are for the owner only; expect may be called on any thread,
 * also with a level's mutex locked. Lock: one mutex, which is locked last. The thread does not hold
 * it during a look.
 */
#include <pthread.h>
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/host.h>

struct hfd_flow_timer {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        /* Does what is due now, and returns the boot time of the next look. */
        hf_nsec (*look)(void *ctx, hf_nsec now);
        void *ctx;

        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t wake;
        hf_nsec planned; /* the next look; HF_NSEC_NEVER = during a look, or not started */
        bool woken, stopping;

        /* start and stop only */
        bool running;
        pthread_t thread;
};

/* Starts nothing yet. 0 or -errno. */
int hfd_flow_timer_init(struct hfd_flow_timer *timer, const struct hf_host *host,
                        hf_nsec (*look)(void *ctx, hf_nsec now), void *ctx);
/* Stops, and frees what init has made. */
void hfd_flow_timer_done(struct hfd_flow_timer *timer);
/* Starts the thread, whose first look is at once. 0 or -errno. */
int hfd_flow_timer_start(struct hfd_flow_timer *timer);
/* Blocks until the thread has ended. Idempotent; also if it was not started. */
void hfd_flow_timer_stop(struct hfd_flow_timer *timer);
/* Something is due at this boot time: makes the thread look again unless it will look by then. */
void hfd_flow_timer_expect(struct hfd_flow_timer *timer, hf_nsec due);
