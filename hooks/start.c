/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start coordinator and the supervised threads. The model is in registry.c.
 */
#include "hooks/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"

static void *start_main(void *ctx) {
        struct hf_hook_context *hook = ctx;
        struct hf_hooks *hooks = hook->hooks;
        struct hf_status status = {0};
        int r = hook->hook.start(hook, hook->hook.ctx, &status);
        if (r != 0 && !status.message[0])
                (void)hf_fail(&status, r, "%s", hf_strerror(r));
        status.error = r;

        pthread_mutex_lock(&hooks->mu);
        hook->start_status = status;
        hook->start_state = r == 0 ? HF__START_DONE : HF__START_FAILED;
        hook->start_returned = true;
        if (r == 0)
                atomic_store(&hook->finished, true);
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

static bool can_start_locked(const struct hf_hook_context *hook) {
        if (hook->start_state != HF__START_WAITING)
                return false;
        for (size_t i = 0; i < hook->n_after; i++)
                if (hook->needs[i]->start_state != HF__START_DONE)
                        return false;
        return true;
}

/* Begins one start. The lock is kept: making a thread does not wait, and a stop must see either
 * nothing or the thread. */
static void begin_locked(struct hf_hook_context *hook, hf_nsec now) {
        hook->start_until = now + hook->hook.start_deadline;
        hook->start_state = HF__START_RUNNING;
        int r = hf__thread_start(hook->hooks->host, "hf-hook", start_main, hook,
                                 &hook->start_thread);
        if (r == 0) {
                hook->start_begun = true;
        } else {
                hook->start_state = HF__START_FAILED;
                (void)hf_fail(&hook->start_status, r, "no thread: %s", hf_strerror(r));
        }
}

/* One look at all hooks. Returns true when the start is over: *ret_result. Else *ret_wake is the
 * nearest deadline. */
static bool turn_locked(struct hf_hooks *hooks, hf_nsec now, int *ret_result, hf_nsec *ret_wake,
                        struct hf_status *reterr_status) {
        size_t n_done = 0;
        *ret_wake = HF_NSEC_NEVER;
        if (hooks->shutdown) {
                *ret_result = hf_fail(reterr_status, HF_E_CANCELED, "shut down during the start");
                return true;
        }
        for (size_t i = 0; i < hooks->n; i++) {
                struct hf_hook_context *hook = hooks->list[i];
                if (can_start_locked(hook))
                        begin_locked(hook, now);
                if (hook->start_state == HF__START_FAILED) {
                        int error = hook->start_status.error;
                        *ret_result = hf_fail(reterr_status, error, "hook \"%s\" failed: %s",
                                              hook->name, hook->start_status.message);
                        return true;
                }
                if (hook->start_state == HF__START_RUNNING && now >= hook->start_until) {
                        *ret_result =
                                hf_fail(reterr_status, HF_E_TIMEOUT,
                                        "hook \"%s\" has not finished its start within %lld ms",
                                        hook->name,
                                        (long long)(hook->hook.start_deadline / HF_NSEC_PER_MSEC));
                        return true;
                }
                if (hook->start_state == HF__START_RUNNING && hook->start_until < *ret_wake)
                        *ret_wake = hook->start_until;
                n_done += hook->start_state == HF__START_DONE;
        }
        *ret_result = 0;
        return n_done == hooks->n;
}

int hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(hooks->host);
        int r = 0;
        pthread_mutex_lock(&hooks->mu);
        if (hooks->closed)
                r = hf_fail(reterr_status, HF_E_CLOSED,
                            "the hooks were started or stopped already");
        else if (hooks->shutdown)
                r = hf_fail(reterr_status, HF_E_CANCELED, "shut down before the start");
        hooks->closed = true;
        if (r == 0)
                hooks->starting = true;
        pthread_mutex_unlock(&hooks->mu);
        if (r != 0)
                return r;

        r = hf__hooks_resolve(hooks, reterr_status);

        pthread_mutex_lock(&hooks->mu);
        hf_nsec wake;
        while (r == 0 && !turn_locked(hooks, hf_now(clock), &r, &wake, reterr_status))
                (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, wake);
        hooks->starting = false;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

void hf_hooks_shut_down(struct hf_hooks *hooks) {
        pthread_mutex_lock(&hooks->mu);
        hooks->shutdown = true;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        hf_cancel_fire(hooks->shutting, HF_CANCEL_STOPPING);
}

static void *spawned_main(void *ctx) {
        struct hf__hook_thread *thread = ctx;
        struct hf_hooks *hooks = thread->hook->hooks;
        thread->fn(thread->ctx, thread->hook->token);
        pthread_mutex_lock(&hooks->mu);
        thread->done = true;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

/* Takes those that have returned off the hook's list. */
static struct hf__hook_thread *take_done_locked(struct hf_hook_context *hook) {
        struct hf__hook_thread *done = NULL;
        for (struct hf__hook_thread **at = &hook->threads; *at;) {
                struct hf__hook_thread *thread = *at;
                if (!thread->done) {
                        at = &thread->next;
                        continue;
                }
                *at = thread->next;
                thread->next = done;
                done = thread;
        }
        return done;
}

int hf_hook_spawn(struct hf_hook_context *context, const char *thread_name,
                  void (*fn)(void *ctx, struct hf_cancel *token), void *ctx) {
        struct hf__hook_thread *thread = calloc(1, sizeof *thread);
        if (!thread)
                return -ENOMEM;
        *thread = (struct hf__hook_thread){.hook = context, .fn = fn, .ctx = ctx};
        pthread_mutex_lock(&context->hooks->mu);
        struct hf__hook_thread *done =
                take_done_locked(context); /* unjoined, a thread keeps its stack */
        int r = context->stop_closed || context->hooks->shutdown ? HF_E_CLOSED : 0;
        if (r == 0)
                r = hf__thread_start(context->hooks->host, thread_name, spawned_main, thread,
                                     &thread->thread);
        if (r == 0) {
                thread->next = context->threads;
                context->threads = thread;
        }
        pthread_mutex_unlock(&context->hooks->mu);
        hf__hook_threads_join(done);
        if (r != 0)
                free(thread);
        return r;
}
