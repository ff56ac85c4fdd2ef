/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the electors without blocking the caller. hf_electors_stop has a deadline, so the thread
 * ends.
 *
 * Invariants: `done` is called at most once, and not after hf_electors_free has returned. If `done`
 * runs in a loop, this needs an owner who frees the electors on the loop's thread. `over` is set
 * before `done` is called or queued, so a caller that polls within `done` sees the result.
 */
#include "leader/stop_thread.h"

#include <assert.h>
#include <errno.h>

#include "base/thread.h"
#include "leader/electors.h"

static void run_done(void *ctx) {
        const struct hf__stop_thread *stop = ctx;

        stop->done(stop->ctx, stop->result, &stop->status);
}

static void *run_thread(void *ctx) {
        struct hf_electors *electors = ctx;
        struct hf__stop_thread *stop = &electors->stop_thread;

        stop->result = hf_electors_stop(electors, &stop->status);
        pthread_mutex_lock(&electors->mu);
        assert(stop->begun && !stop->over);
        stop->over = true;
        pthread_mutex_unlock(&electors->mu);
        if (!stop->done)
                return NULL;
        if (stop->loop)
                hf__loop_queue(stop->loop, &stop->task);
        else
                run_done(stop);
        return NULL;
}

int hf_electors_stop_begin(struct hf_electors *electors, struct hf_loop *loop,
                           void (*done)(void *ctx, int result, const struct hf_status *status),
                           void *ctx) {
        struct hf__stop_thread *stop = &electors->stop_thread;

        pthread_mutex_lock(&electors->mu);
        bool is_first = !stop->begun;
        stop->begun = true;
        pthread_mutex_unlock(&electors->mu);
        if (!is_first)
                return HF_E_CLOSED;
        assert(!stop->over);
        stop->loop = loop;
        stop->done = done;
        stop->ctx = ctx;
        stop->task = (struct hf__loop_task){.fn = run_done, .ctx = stop};
        /* A thread that could not be started leaves no trace: the caller may try again. */
        int r = hf__thread_start(electors->host, "hf-stop", run_thread, electors, &stop->thread);
        if (r != 0) {
                pthread_mutex_lock(&electors->mu);
                stop->begun = false;
                pthread_mutex_unlock(&electors->mu);
        }
        return r;
}

int hf_electors_stop_poll(struct hf_electors *electors, struct hf_status *reterr_status) {
        struct hf__stop_thread *stop = &electors->stop_thread;

        pthread_mutex_lock(&electors->mu);
        bool begun = stop->begun, over = stop->over;
        pthread_mutex_unlock(&electors->mu);
        if (!begun)
                return hf_fail(reterr_status, -EINVAL, "no stop of the electors was begun");
        if (!over)
                return hf_fail(reterr_status, HF_E_BUSY, "the electors are stopping");
        if (stop->result != 0 && reterr_status)
                *reterr_status = stop->status;
        return stop->result;
}

void hf__stop_thread_join(struct hf_electors *electors) {
        struct hf__stop_thread *stop = &electors->stop_thread;

        if (!stop->begun)
                return;
        (void)hf__thread_join(stop->thread);
        assert(stop->over); /* set by the thread, which is joined */
        if (stop->loop)
                hf__loop_remove(stop->loop, &stop->task);
}
