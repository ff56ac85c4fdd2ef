/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller whose functions run in the host's event loop. The thread that a term has for such a
 * controller only waits: for the drain and the abort token of the term, each of which makes the
 * thread queue a task in the loop, and for the end of the run (hf_loop_run_done).
 *
 * Invariant: the thread returns only after the host has ended the run. So nothing of a term runs in
 * the loop when the next term begins. If the term ends before the loop has dispatched `begin`, the
 * loop still calls `begin`, and then `drain` unless `begin` has ended the run.
 */
#include <holdfast/loop_controller.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/loop.h"
#include "base/sized_struct.h"
#include "base/thread.h"

static const struct hf__sized sized_config = HF__SIZED(struct hf_loop_controller, ctx);

struct hf_loop_run {
        /* immutable */
        struct hf_loop_controller config;
        struct hf_term *term; /* borrowed */

        struct hf__loop_task begin, drain, abort;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        bool done;
        int result;
};

/* ---- in the loop ---- */

static void run_begin(void *ctx) {
        struct hf_loop_run *run = ctx;

        run->config.begin(run->config.ctx, run);
}

static void run_drain(void *ctx) {
        struct hf_loop_run *run = ctx;

        run->config.drain(run->config.ctx, run);
}

static void run_abort(void *ctx) {
        struct hf_loop_run *run = ctx;

        run->config.abort(run->config.ctx, run);
}

struct hf_term *hf_loop_run_term(struct hf_loop_run *run) {
        return run->term;
}

/* Removes the tasks that are queued. None of them can be running, except the one that calls this
 * function, because all of them run on the thread of the loop, and so does this function. `begin`
 * is not queued any more, because the host gets the run by the call of `begin`. Once `done` is set,
 * the controller's thread queues no task. */
void hf_loop_run_done(struct hf_loop_run *run, int result) {
        pthread_mutex_lock(&run->mu);
        run->done = true;
        run->result = result;
        hf__loop_remove(run->config.loop, &run->drain);
        hf__loop_remove(run->config.loop, &run->abort);
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->mu);
}

/* ---- on the controller's thread ---- */

static void wake_controller(void *ctx) {
        struct hf_loop_run *run = ctx;

        pthread_mutex_lock(&run->mu);
        pthread_cond_broadcast(&run->changed);
        pthread_mutex_unlock(&run->mu);
}

/* Waits until the run is done (true) or the token has fired (false). In the second case queues the
 * task, under the lock, so that hf_loop_run_done finds it. */
static bool await_run(struct hf_loop_run *run, struct hf_cancel *token,
                      struct hf__loop_task *task) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(run->term));
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, wake_controller, run);
        pthread_mutex_lock(&run->mu);
        while (!run->done && !hf_cancel_fired(token))
                (void)clock->wait(clock->ctx, &run->changed, &run->mu, hf_cancel_deadline(token));
        bool done = run->done;
        if (!done)
                hf__loop_queue(run->config.loop, task);
        pthread_mutex_unlock(&run->mu);
        hf_cancel_remove_waker(&waker);
        return done;
}

static int await_end(struct hf_loop_run *run) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(run->term));

        if (await_run(run, hf_term_drain(run->term), &run->drain) ||
            await_run(run, hf_term_abort(run->term), &run->abort))
                return run->result;
        pthread_mutex_lock(&run->mu);
        while (!run->done)
                (void)clock->wait(clock->ctx, &run->changed, &run->mu, HF_NSEC_NEVER);
        int result = run->result;
        pthread_mutex_unlock(&run->mu);
        return result;
}

static int run_init(struct hf_loop_run *run, struct hf_term *term, const void *config) {
        int r = hf__sized_copy(&sized_config, &run->config, config, NULL);
        if (r != 0)
                return r;
        if (!run->config.loop || !run->config.begin || !run->config.drain || !run->config.abort)
                return -EINVAL;
        run->term = term;
        run->begin = (struct hf__loop_task){.fn = run_begin, .ctx = run};
        run->drain = (struct hf__loop_task){.fn = run_drain, .ctx = run};
        run->abort = (struct hf__loop_task){.fn = run_abort, .ctx = run};
        return hf__mutex_cond_init(&run->mu, &run->changed);
}

int hf_loop_controller_run(struct hf_term *term, void *ctx) {
        struct hf_loop_run *run = calloc(1, sizeof *run);
        int r = run ? run_init(run, term, ctx) : -ENOMEM;

        if (r == 0) {
                hf__loop_queue(run->config.loop, &run->begin);
                r = await_end(run);
                pthread_cond_destroy(&run->changed);
                pthread_mutex_destroy(&run->mu);
        }
        free(run);
        return r;
}
