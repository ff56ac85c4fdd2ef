/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of the priority levels' timer, which calls `look` whenever something is due.
 *
 * Invariant: no time that was passed to hfd_flow_timer_expect is missed. While `look` runs,
 * `planned` is HF_NSEC_NEVER, so every such call makes the thread call `look` again: the level to
 * which the time belongs may be one that the running call has passed already.
 */
#include "server/flow/flow_timer.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/thread.h"

int hfd_flow_timer_init(struct hfd_flow_timer *timer, const struct hf_host *host,
                        hf_nsec (*look)(void *ctx, hf_nsec now), void *ctx) {
        assert(look);
        *timer = (struct hfd_flow_timer){.host = host,
                                         .look = look,
                                         .ctx = ctx,
                                         .planned = HF_NSEC_NEVER};
        return hf__mutex_cond_init(&timer->mu, &timer->wake);
}

void hfd_flow_timer_done(struct hfd_flow_timer *timer) {
        hfd_flow_timer_stop(timer);
        assert(!timer->running); /* its thread is joined */
        pthread_cond_destroy(&timer->wake);
        pthread_mutex_destroy(&timer->mu);
}

static void *run_timer(void *ctx) {
        struct hfd_flow_timer *timer = ctx;
        const struct hf_clock *clock = hf_host_clock(timer->host);

        pthread_mutex_lock(&timer->mu);
        while (!timer->stopping) {
                timer->planned = HF_NSEC_NEVER;
                timer->woken = false;
                pthread_mutex_unlock(&timer->mu);
                hf_nsec next = timer->look(timer->ctx, hf_now(clock));
                pthread_mutex_lock(&timer->mu);
                /* If hfd_flow_timer_expect was called meanwhile, `woken` is set, and the thread
                 * does not wait. */
                timer->planned = next;
                int r = 0;
                while (!timer->stopping && !timer->woken && r != HF_E_TIMEOUT)
                        r = clock->wait(clock->ctx, &timer->wake, &timer->mu, next);
        }
        pthread_mutex_unlock(&timer->mu);
        return NULL;
}

int hfd_flow_timer_start(struct hfd_flow_timer *timer) {
        assert(!timer->running && !timer->stopping);
        int r = hf__thread_start(timer->host, "hf-flow-timer", run_timer, timer, &timer->thread);

        timer->running = r == 0;
        return r;
}

void hfd_flow_timer_stop(struct hfd_flow_timer *timer) {
        if (!timer->running)
                return;
        pthread_mutex_lock(&timer->mu);
        timer->stopping = true;
        pthread_cond_signal(&timer->wake);
        pthread_mutex_unlock(&timer->mu);
        hf__thread_join(timer->thread);
        timer->running = false;
}

void hfd_flow_timer_expect(struct hfd_flow_timer *timer, hf_nsec due) {
        pthread_mutex_lock(&timer->mu);
        if (due < timer->planned) {
                timer->woken = true;
                pthread_cond_signal(&timer->wake);
        }
        pthread_mutex_unlock(&timer->mu);
}
