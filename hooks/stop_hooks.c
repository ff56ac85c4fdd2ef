/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stop coordinator, which hf_hooks_stop runs. hook_registry.c describes the model.
 *
 * The stop of a hook begins once every hook that depends on it has stopped (or is stuck), and its
 * own start function has returned (or has missed its deadline). Its token fires, its stop function
 * runs, and its threads are joined. If that is not done by its stop deadline, the hook is stuck.
 *
 * Invariant: a thread is joined only after its last access to the registry, so that a join never
 * waits for a hook's own code.
 */
#include <assert.h>
#include <stdio.h>

#include "base/thread.h"
#include "hooks/hook_registry.h"
#include "hooks/threads.h"

static void set_stop_state_locked(struct hf_hook_context *hook, enum hf__hook_stop_state state) {
        hf__mutex_assert_held(&hook->hooks->mu);
        switch (state) {
        case HF__STOP_WAITING: assert(false); break;
        case HF__STOP_RUNNING: assert(hook->stop_state == HF__STOP_WAITING); break;
        case HF__STOP_JOINING:
                assert(hook->stop_state == HF__STOP_WAITING ||
                       hook->stop_state == HF__STOP_RUNNING);
                break;
        case HF__STOP_DONE:
                assert(hook->start_begun ? hook->stop_state == HF__STOP_JOINING
                                         : hook->stop_state == HF__STOP_WAITING);
                assert(!hook->threads);
                break;
        case HF__STOP_STUCK:
                assert(hook->stop_state == HF__STOP_RUNNING ||
                       hook->stop_state == HF__STOP_JOINING);
                break;
        }
        hook->stop_state = state;
}

static void *stop_main(void *ctx) {
        struct hf_hook_context *hook = ctx;
        struct hf_hooks *hooks = hook->hooks;
        struct hf_status status = {0};
        int r = hook->hook.stop(hook, hook->hook.ctx, &status);

        hf__hook_complete_status(&status, r);
        pthread_mutex_lock(&hooks->mu);
        hook->stop_status = status;
        hook->stop_error = r;
        hook->stop_returned = true;
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

static bool has_ended(const struct hf_hook_context *hook) {
        return hook->stop_state == HF__STOP_DONE || hook->stop_state == HF__STOP_STUCK;
}

/* Whether every hook that depends on this one has stopped or is stuck. */
static bool can_stop_locked(const struct hf_hooks *hooks, const struct hf_hook_context *hook) {
        hf__mutex_assert_held(&hook->hooks->mu);
        for (size_t i = 0; i < hooks->n; i++) {
                const struct hf_hook_context *other = hooks->list[i];
                for (size_t k = 0; k < other->n_after; k++)
                        if (other->dependencies[k] == hook && !has_ended(other))
                                return false;
        }
        return true;
}

/* Fires the token and starts the thread of the stop function. Releases the lock while it does so,
 * because wakers of the token and the stop function may call back into the registry. */
static void begin_hook_stop_locked(struct hf_hooks *hooks, struct hf_hook_context *hook,
                                   hf_nsec now) {
        int r = 0;

        hf__mutex_assert_held(&hooks->mu);
        hook->stop_begun = true;
        hook->stop_until = hf__deadline_after(now, hook->hook.stop_deadline);
        set_stop_state_locked(hook, hook->hook.stop ? HF__STOP_RUNNING : HF__STOP_JOINING);
        pthread_mutex_unlock(&hooks->mu);
        hf_cancel_fire(hook->token, HF_CANCEL_STOPPING);
        if (hook->hook.stop) {
                r = hf__thread_start(hooks->host, "hf-hook", stop_main, hook, &hook->stop_thread);
                /* Without a thread, run the stop function on this one. Its deadline cannot be
                 * enforced then, but without a stop the hook would never end. */
                if (r != 0)
                        (void)stop_main(hook);
        }
        pthread_mutex_lock(&hooks->mu);
        hook->stop_thread_made = hook->hook.stop && r == 0;
}

/* Whether all threads of hook have made their last access to the registry. */
static bool can_join_locked(const struct hf_hook_context *hook) {
        hf__mutex_assert_held(&hook->hooks->mu);
        return hook->start_returned && (!hook->stop_thread_made || hook->stop_returned) &&
               hf__hook_threads_are_done_locked(hook);
}

/* Joins all threads of hook. Releases the lock during the joins. */
static void join_hook_threads_locked(struct hf_hooks *hooks, struct hf_hook_context *hook) {
        struct hf__hook_thread *threads = hook->threads;

        hf__mutex_assert_held(&hooks->mu);
        assert(hook->stop_begun); /* so no thread is spawned while the lock is released */
        hook->threads = NULL;
        pthread_mutex_unlock(&hooks->mu);
        hf__hook_threads_join(threads);
        if (!hook->start_joined)
                (void)hf__thread_join(hook->start_thread);
        if (hook->stop_thread_made)
                (void)hf__thread_join(hook->stop_thread);
        pthread_mutex_lock(&hooks->mu);
        set_stop_state_locked(hook, HF__STOP_DONE);
}

/* Whether the start function has missed its deadline. In the first call the deadline does not begin
 * anew (base/deadline.h), because perhaps nobody has waited for it: hf_hooks_start may have
 * returned long ago. */
static bool is_start_late_locked(struct hf_hook_context *hook, hf_nsec now) {
        bool awaited = hook->start_awaited;

        hf__mutex_assert_held(&hook->hooks->mu);
        hook->start_awaited = true;
        if (!awaited)
                return now >= hook->start_until.at;
        return hf__deadline_is_over(&hook->start_until, hook->hook.start_deadline, now);
}

/* Advances a hook in state WAITING. true: its state has changed. false: the hook waits for its own
 * start function, and *ret_until is the deadline of that; or the hook waits for hooks that depend
 * on it, and *ret_until is unchanged. */
static bool advance_waiting_locked(struct hf_hooks *hooks, struct hf_hook_context *hook,
                                   hf_nsec now, hf_nsec *ret_until) {
        hf__mutex_assert_held(&hooks->mu);
        if (!hook->start_begun) {
                set_stop_state_locked(hook, HF__STOP_DONE);
                return true;
        }
        if (!can_stop_locked(hooks, hook))
                return false;
        if (hook->start_returned || is_start_late_locked(hook, now)) {
                begin_hook_stop_locked(hooks, hook, now);
                return true;
        }
        *ret_until = hook->start_until.at;
        return false;
}

/* Advances a hook in state RUNNING or JOINING. true: its state has changed. false: the hook waits
 * for its threads, and *ret_until is its stop deadline. */
static bool advance_begun_locked(struct hf_hooks *hooks, struct hf_hook_context *hook, hf_nsec now,
                                 hf_nsec *ret_until) {
        hf__mutex_assert_held(&hooks->mu);
        if (hook->stop_state == HF__STOP_RUNNING && hook->stop_returned) {
                set_stop_state_locked(hook, HF__STOP_JOINING);
                return true;
        }
        if (can_join_locked(hook)) {
                join_hook_threads_locked(hooks, hook);
                return true;
        }
        if (hf__deadline_is_over(&hook->stop_until, hook->hook.stop_deadline, now)) {
                set_stop_state_locked(hook, HF__STOP_STUCK);
                return true;
        }
        *ret_until = hook->stop_until.at;
        return false;
}

static bool advance_hook_locked(struct hf_hooks *hooks, struct hf_hook_context *hook, hf_nsec now,
                                hf_nsec *ret_until) {
        hf__mutex_assert_held(&hooks->mu);
        *ret_until = HF_NSEC_NEVER;
        if (has_ended(hook))
                return false;
        if (hook->stop_state == HF__STOP_WAITING)
                return advance_waiting_locked(hooks, hook, now, ret_until);
        return advance_begun_locked(hooks, hook, now, ret_until);
}

/* Advances all hooks once. true: all have stopped or are stuck. false: call again when a hook
 * changes, and at *ret_wake at the latest. */
static bool advance_all_locked(struct hf_hooks *hooks, hf_nsec now, hf_nsec *ret_wake) {
        bool advanced = false, all_ended = true;

        hf__mutex_assert_held(&hooks->mu);
        *ret_wake = HF_NSEC_NEVER;
        /* Go through the hooks in reverse order, because a hook is usually registered after the
         * hooks that it depends on, and must stop before them. */
        for (size_t i = hooks->n; i-- > 0;) {
                hf_nsec until;
                if (advance_hook_locked(hooks, hooks->list[i], now, &until))
                        advanced = true;
                if (until < *ret_wake)
                        *ret_wake = until;
                if (!has_ended(hooks->list[i]))
                        all_ended = false;
        }
        /* A hook that waited for an advanced one may be able to advance now, so the caller must
         * call again at once. */
        if (advanced)
                *ret_wake = now;
        return all_ended;
}

/* ---- the result ---- */

/* The message for all failures together. It is cut if it becomes too long. */
struct report {
        char text[sizeof((struct hf_status *)0)->message];
        size_t n;
};

static void add_to_report(struct report *report, const char *name, const char *problem,
                          const char *detail) {
        size_t space = sizeof report->text - report->n;
        int n = snprintf(report->text + report->n, space, "%shook \"%s\" %s: %s",
                         report->n > 0 ? "; " : "", name, problem, detail);

        if (n > 0)
                report->n += (size_t)n < space ? (size_t)n : space - 1;
}

static void add_stuck_to_report_locked(struct report *report, const struct hf_hook_context *hook) {
        const char *what = "one of its threads has not returned";
        hf_nsec deadline = hook->hook.stop_deadline;
        char detail[120];

        hf__mutex_assert_held(&hook->hooks->mu);
        if (!hook->start_returned) {
                what = "its start function has not returned";
                deadline = hook->hook.start_deadline;
        } else if (hook->stop_thread_made && !hook->stop_returned) {
                what = "its stop function has not returned";
        }
        (void)snprintf(detail, sizeof detail, "%s by its deadline (%lld ms)", what,
                       (long long)(deadline / HF_NSEC_PER_MSEC));
        add_to_report(report, hook->name, "is stuck", detail);
}

/* Lists all failures in reterr_status. Returns HF_E_STUCK if any hook is stuck or a stop function
 * returned that, because then the caller must not free anything; otherwise the first error found,
 * or 0. */
static int collect_result_locked(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        struct report report = {0};
        int error = 0;

        hf__mutex_assert_held(&hooks->mu);
        for (size_t i = hooks->n; i-- > 0;) {
                const struct hf_hook_context *hook = hooks->list[i];
                if (hook->stop_state == HF__STOP_STUCK) {
                        add_stuck_to_report_locked(&report, hook);
                        hooks->stuck = true;
                } else if (hook->stop_error != 0) {
                        add_to_report(&report, hook->name, "failed to stop",
                                      hook->stop_status.message);
                        if (error == 0)
                                error = hook->stop_error;
                        if (hook->stop_error == HF_E_STUCK)
                                hooks->stuck = true;
                }
        }
        if (hooks->stuck)
                error = HF_E_STUCK;
        return error != 0 ? hf_fail(reterr_status, error, "%s", report.text) : 0;
}

/* Stops all hooks that were begun. Returns when each has stopped or is stuck. */
static void stop_all_locked(struct hf_hooks *hooks) {
        const struct hf_clock *clock = hf_host_clock(hooks->host);

        hf__mutex_assert_held(&hooks->mu);
        /* This wait is short, because hf_hooks_shut_down makes the start coordinator return. */
        while (hooks->starting)
                (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, HF_NSEC_NEVER);
        hf_nsec wake, now = hf_now(clock);
        while (!advance_all_locked(hooks, now, &wake)) {
                if (wake > now)
                        (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, wake);
                now = hf_now(clock);
        }
        hooks->stop_result = collect_result_locked(hooks, &hooks->stop_status);
        hooks->stop_done = true;
        pthread_cond_broadcast(&hooks->changed);
}

/* The first caller stops the hooks. Other callers wait for the result; the deadlines of the hooks
 * bound their wait too. */
int hf_hooks_stop(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(hooks->host);

        hf_hooks_shut_down(hooks);
        pthread_mutex_lock(&hooks->mu);
        hooks->closed = true;
        if (!hooks->stop_begun) {
                hooks->stop_begun = true;
                stop_all_locked(hooks);
        }
        while (!hooks->stop_done)
                (void)clock->wait(clock->ctx, &hooks->changed, &hooks->mu, HF_NSEC_NEVER);
        int r = hooks->stop_result;
        if (r != 0 && reterr_status)
                *reterr_status = hooks->stop_status;
        pthread_mutex_unlock(&hooks->mu);
        return r;
}

void hf_hooks_fire_stopped(struct hf_hooks *hooks) {
        hf_cancel_fire(hooks->stopped, HF_CANCEL_STOPPING);
}
