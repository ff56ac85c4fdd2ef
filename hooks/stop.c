/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stop coordinator. The model is in registry.c.
 *
 * A hook's turn to stop comes when every hook that is after it has stopped (or is stuck), and its
 * own start has returned (or its start deadline has passed). Then its token fires, its stop
 * function runs, its threads are joined; all of it within its stop deadline. A thread is joined
 * only once it has said that it is done, so that joining does not wait.
 */
#include "hooks/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

static void *stop_main(void *ctx) {
        struct hf_hook_context *hook = ctx;
        struct hf_hooks *hooks = hook->hooks;
        struct hf_status status = {0};
        int r = hook->hook.stop(hook, hook->hook.ctx, &status);
        if (r != 0 && !status.message[0])
                (void)hf_fail(&status, r, "%s", hf_strerror(r));
        status.error = r;

        pthread_mutex_lock(&hooks->mu);
        hook->stop_status = status;
        hook->stop_error = r;
        hook->stop_returned = true;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

static bool is_over(const struct hf_hook_context *hook) {
        return hook->stop_state == HF__STOP_DONE || hook->stop_state == HF__STOP_STUCK;
}

/* Has everything that is after hook stopped? */
static bool may_stop_locked(const struct hf_hooks *hooks, const struct hf_hook_context *hook) {
        for (size_t i = 0; i < hooks->n; i++) {
                const struct hf_hook_context *other = hooks->list[i];
                for (size_t k = 0; k < other->n_after; k++)
                        if (other->needs[k] == hook && !is_over(other))
                                return false;
        }
        return true;
}

/* Fires the token and runs the stop function. The lock is let go for what may call out. */
static void begin_locked(struct hf_hooks *hooks, struct hf_hook_context *hook, hf_nsec now) {
        hook->stop_closed = true;
        hook->stop_until = now + hook->hook.stop_deadline;
        hook->stop_state = hook->hook.stop ? HF__STOP_RUNNING : HF__STOP_JOINING;
        pthread_mutex_unlock(&hooks->mu);
        hf_cancel_fire(hook->token, HF_CANCEL_STOPPING);
        int r = 0;
        if (hook->hook.stop) {
                r = hf__thread_start(hooks->host, "hf-hook", stop_main, hook, &hook->stop_thread);
                if (r != 0) /* Without a thread to be had the deadline is given up, not the stop. */
                        (void)stop_main(hook);
        }
        pthread_mutex_lock(&hooks->mu);
        hook->stop_thread_made = hook->hook.stop && r == 0;
}

static bool all_quiet_locked(const struct hf_hook_context *hook) {
        for (const struct hf__hook_thread *thread = hook->threads; thread; thread = thread->next)
                if (!thread->done)
                        return false;
        return hook->start_returned && (!hook->stop_thread_made || hook->stop_returned);
}

void hf__hook_threads_join(struct hf__hook_thread *threads) {
        while (threads) {
                struct hf__hook_thread *thread = threads;
                threads = thread->next;
                pthread_join(thread->thread, NULL);
                free(thread);
        }
}

/* Every thread of hook has made its last touch of the registry: each join is a matter of its exit.
 */
static void join_locked(struct hf_hooks *hooks, struct hf_hook_context *hook) {
        struct hf__hook_thread *threads = hook->threads;
        hook->threads = NULL;
        pthread_mutex_unlock(&hooks->mu);
        hf__hook_threads_join(threads);
        pthread_join(hook->start_thread, NULL);
        if (hook->stop_thread_made)
                pthread_join(hook->stop_thread, NULL);
        pthread_mutex_lock(&hooks->mu);
        hook->stop_state = HF__STOP_DONE;
}

/* Moves one hook as far as it goes. Returns true when it moved; else lowers *wake to its deadline.
 */
static bool move_locked(struct hf_hooks *hooks, struct hf_hook_context *hook, hf_nsec now,
                        hf_nsec *wake) {
        hf_nsec until = HF_NSEC_NEVER;
        switch (hook->stop_state) {
        case HF__STOP_WAITING:
                if (!hook->start_begun) {
                        hook->stop_state = HF__STOP_DONE;
                        return true;
                }
                if (!may_stop_locked(hooks, hook))
                        return false;
                if (hook->start_returned || now >= hook->start_until) {
                        begin_locked(hooks, hook, now);
                        return true;
                }
                until = hook->start_until;
                break;
        case HF__STOP_RUNNING:
        case HF__STOP_JOINING:
                if (hook->stop_state == HF__STOP_RUNNING && hook->stop_returned) {
                        hook->stop_state = HF__STOP_JOINING;
                        return true;
                }
                if (all_quiet_locked(hook)) {
                        join_locked(hooks, hook);
                        return true;
                }
                if (now >= hook->stop_until) {
                        hook->stop_state = HF__STOP_STUCK;
                        return true;
                }
                until = hook->stop_until;
                break;
        case HF__STOP_DONE:
        case HF__STOP_STUCK: return false;
        }
        if (until < *wake)
                *wake = until;
        return false;
}

static bool turn_locked(struct hf_hooks *hooks, hf_nsec now, hf_nsec *ret_wake) {
        bool moved = false, over = true;
        *ret_wake = HF_NSEC_NEVER;
        for (size_t i = hooks->n; i-- > 0;) {
                moved |= move_locked(hooks, hooks->list[i], now, ret_wake);
                over &= is_over(hooks->list[i]);
        }
        if (moved)
                *ret_wake = now;
        return over;
}

/* Collects what went wrong. The first error counts, but being stuck counts most: it forbids
 * freeing. */
static int collect_locked(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        char text[sizeof reterr_status->message] = "";
        size_t used = 0;
        int error = 0;
        for (size_t i = hooks->n; i-- > 0;) {
                struct hf_hook_context *hook = hooks->list[i];
                int w = 0;
                if (hook->stop_state == HF__STOP_STUCK) {
                        const char *what = !hook->start_returned ? "its start has not returned"
                                           : hook->stop_thread_made && !hook->stop_returned
                                                   ? "its stop has not returned"
                                                   : "a thread of it has not returned";
                        w = snprintf(text + used, sizeof text - used,
                                     "%shook \"%s\" is stuck: %s within %lld ms", used ? "; " : "",
                                     hook->name, what,
                                     (long long)(hook->hook.stop_deadline / HF_NSEC_PER_MSEC));
                        hooks->stuck = true;
                } else if (hook->stop_error != 0) {
                        w = snprintf(text + used, sizeof text - used,
                                     "%shook \"%s\" failed to stop: %s", used ? "; " : "",
                                     hook->name, hook->stop_status.message);
                        if (!error)
                                error = hook->stop_error;
                        if (hook->stop_error == HF_E_STUCK)
                                hooks->stuck = true;
                }
                used = w > 0 && used + (size_t)w < sizeof text ? used + (size_t)w
                       : w > 0                                 ? sizeof text - 1
                                                               : used;
        }
        if (hooks->stuck)
                error = HF_E_STUCK;
        return error ? hf_fail(reterr_status, error, "%s", text) : 0;
}

int hf_hooks_stop(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(hooks->host);
        hf_hooks_shut_down(hooks);
        pthread_mutex_lock(&hooks->mu);
        hooks->closed = true;
        if (hooks->stop_begun) {
                pthread_mutex_unlock(&hooks->mu);
                return hf_fail(reterr_status, HF_E_CLOSED, "the hooks were stopped already");
        }
        hooks->stop_begun = true;
        /* The start coordinator leaves as soon as it sees `shutdown`: it waits for nothing else. */
        while (hooks->starting)
                (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, HF_NSEC_NEVER);
        hf_nsec wake, now = hf_now(clock);
        while (!turn_locked(hooks, now, &wake)) {
                if (wake > now)
                        (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, wake);
                now = hf_now(clock);
        }
        int r = collect_locked(hooks, reterr_status);
        hooks->stop_done = true;
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

void hf_hooks_stopped(struct hf_hooks *hooks) {
        hf_cancel_fire(hooks->stopped, HF_CANCEL_STOPPING);
}
