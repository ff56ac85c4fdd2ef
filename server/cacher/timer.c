/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer thread. It ends reads that have waited too long, sends bookmarks, ends watches whose
 * time is over, restarts the reflector after a backoff, notices and reopens a watch of the store
 * that hangs, starts audits, drops old history, and builds the trees of a listing, in small steps
 * between the other work. It sleeps until the next work is due. A thread that makes work due
 * earlier must wake the timer (hfd_cacher_wake_timer_locked).
 *
 * Invariant: the timer collects the due work under the lock and does it after releasing the lock.
 */
#include "server/cacher/timer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/cache_audit.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/sync/listing.h"
#include "server/cacher/sync/reflector.h"
#include "server/cacher/watch/watchers.h"

/* Used by the thread that calls start and free. */
struct hfd_cacher_timer {
        pthread_t thread;
        bool running;
};

/* The work that is due, which the timer collects under the lock. */
struct due_work {
        struct hfd_consistent_read *late;        /* reads whose wait has timed out */
        struct hfd_watcher *dirty;               /* watchers that have events to deliver */
        bool reflector, audit, listing, history; /* history: more changes must be dropped */
        struct hfd_history_garbage garbage;
        struct hfd_store_lag_action lag;
};

static bool is_work_due(const struct due_work *due) {
        return due->late || due->dirty || due->reflector || due->audit || due->listing ||
               due->history || due->garbage.n || due->garbage.n_states ||
               due->lag.kind != HFD_WATCH_LAG_WAIT;
}

/*
 * Collects the due work. Lowers *next to the boot time at which the next waiting read times out or
 * the lag of the store's watch must be checked.
 */
static void collect_due_work_locked(struct hfd_cacher *cacher, hf_nsec now,
                                    struct due_work *ret_due, hf_nsec *next) {
        struct due_work due = {0};

        hf__mutex_assert_held(&cacher->mu);
        due.late = hfd_consistent_reads_remove_late_locked(cacher, now, next);
        if (hfd_watchers_due_locked(cacher) <= now)
                hfd_watchers_tick_locked(cacher, now, &due.dirty);
        due.reflector = hfd_reflector_due_locked(cacher) <= now;
        due.listing = hfd_listing_step_due_locked(cacher);
        due.audit = hfd_cache_audit_due_locked(cacher) <= now;
        due.lag = hfd_store_lag_decide_locked(cacher, now, next);
        due.history = !hfd_event_histories_trim(&cacher->histories, now, &due.garbage);
        *ret_due = due;
}

/* Called without the lock, because this runs callbacks, sends requests, builds objects and frees
 * some. */
static void run_due_work(struct hfd_cacher *cacher, struct due_work *due) {
        hfd_history_garbage_free(&due->garbage);
        hfd_consistent_reads_call_ready(due->late);
        hfd_watchers_deliver(due->dirty);
        if (due->reflector)
                hfd_reflector_run(cacher);
        if (due->listing)
                hfd_listing_step(cacher);
        if (due->audit)
                hfd_cache_audit_start(cacher);
        hfd_store_lag_act(cacher, &due->lag);
}

static hf_nsec earlier_time(hf_nsec a, hf_nsec b) { return a < b ? a : b; }

/*
 * The timer thread. After work that was due, it checks again before it sleeps, because the lock was
 * released and more work may be due. When the cacher stops, it goes on until a running listing has
 * ended, because only this thread can end it.
 */
static void *timer_main(void *ctx) {
        struct hfd_cacher *cacher = ctx;
        const struct hf_clock *clock = hf_host_clock(cacher->host);

        pthread_mutex_lock(&cacher->mu);
        while (!cacher->stopping || hfd_listings_running_locked(cacher)) {
                hf_nsec next = HF_NSEC_NEVER;
                struct due_work due;
                collect_due_work_locked(cacher, hf_now(clock), &due, &next);
                if (is_work_due(&due)) {
                        pthread_mutex_unlock(&cacher->mu);
                        run_due_work(cacher, &due);
                        pthread_mutex_lock(&cacher->mu);
                        continue;
                }
                next = earlier_time(next, hfd_watchers_due_locked(cacher));
                next = earlier_time(next, cacher->histories.due);
                next = earlier_time(next, hfd_cache_audit_due_locked(cacher));
                next = earlier_time(next, hfd_reflector_due_locked(cacher));
                cacher->timer_due = next;
                (void)clock->wait(clock->ctx, &cacher->cond, &cacher->mu, next);
        }
        pthread_mutex_unlock(&cacher->mu);
        return NULL;
}

/* ---- create, start, free ---- */

struct hfd_cacher_timer *hfd_cacher_timer_new(void) {
        return calloc(1, sizeof(struct hfd_cacher_timer));
}

struct hfd_cacher_timer *hfd_cacher_timer_free(struct hfd_cacher_timer *timer) {
        assert(!timer || !timer->running);
        free(timer);
        return NULL;
}

int hfd_cacher_timer_start(struct hfd_cacher *cacher) {
        struct hfd_cacher_timer *timer = cacher->timer;

        assert(!timer->running);
        int r = hf__thread_start(cacher->host, "hf-api-time", timer_main, cacher, &timer->thread);
        timer->running = r == 0;
        return r;
}

void hfd_cacher_timer_join(struct hfd_cacher *cacher) {
        struct hfd_cacher_timer *timer = cacher->timer;

        if (timer->running)
                (void)hf__thread_join(timer->thread);
        timer->running = false;
}
