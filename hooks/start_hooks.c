/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start coordinator, which hf_hooks_start runs. hook_registry.c describes the model.
 *
 * Invariants: the start function of a hook does not run before those of all its dependencies have
 * returned 0. The coordinator returns at the first failure. It does not wait for start functions
 * that are still running, because hf_hooks_stop does.
 */
#include <assert.h>

#include "base/thread.h"
#include "hooks/dependencies.h"
#include "hooks/hook_registry.h"

static void set_start_state_locked(struct hf_hook_context *hook, enum hf__hook_start_state state) {
        hf__mutex_assert_held(&hook->hooks->mu);
        assert(state == HF__START_RUNNING ? hook->start_state == HF__START_WAITING
                                          : hook->start_state == HF__START_RUNNING);
        assert(state != HF__START_WAITING);
        hook->start_state = state;
}

/* The thread of one start function. It stores all results under one lock, so that the coordinators
 * see either none or all of them. */
static void *start_main(void *ctx) {
        struct hf_hook_context *hook = ctx;
        struct hf_hooks *hooks = hook->hooks;
        struct hf_status status = {0};
        int r = hook->hook.start(hook, hook->hook.ctx, &status);

        hf__hook_complete_status(&status, r);
        /* This is the last access to the registry: after the unlock the hook may be joined. */
        pthread_mutex_lock(&hooks->mu);
        hook->start_status = status;
        set_start_state_locked(hook, r == 0 ? HF__START_DONE : HF__START_FAILED);
        hook->start_returned = true;
        if (r == 0)
                atomic_store(&hook->finished, true);
        pthread_cond_broadcast(&hooks->changed);
        pthread_mutex_unlock(&hooks->mu);
        return NULL;
}

static bool can_start_locked(const struct hf_hook_context *hook) {
        hf__mutex_assert_held(&hook->hooks->mu);
        if (hook->start_state != HF__START_WAITING)
                return false;
        for (size_t i = 0; i < hook->n_after; i++)
                if (hook->dependencies[i]->start_state != HF__START_DONE)
                        return false;
        return true;
}

/* Begins the start of one hook. Keeps the lock, so that a stop sees either no start or one whose
 * thread exists. Creating a thread does not block for long. */
static void begin_hook_start_locked(struct hf_hook_context *hook, hf_nsec now) {
        hf__mutex_assert_held(&hook->hooks->mu);
        hook->start_until = hf__deadline_after(now, hook->hook.start_deadline);
        set_start_state_locked(hook, HF__START_RUNNING);
        int r = hf__thread_start(hook->hooks->host, "hf-hook", start_main, hook,
                                 &hook->start_thread);
        if (r == 0) {
                hook->start_begun = true;
        } else {
                set_start_state_locked(hook, HF__START_FAILED);
                (void)hf_fail(&hook->start_status, r, "cannot start a thread: %s", hf_strerror(r));
        }
}

/* Joins the thread of a start function that has returned, so the join is short. Without the join
 * the thread would keep its stack until the stop. */
static void join_start_locked(struct hf_hook_context *hook) {
        hf__mutex_assert_held(&hook->hooks->mu);
        if (!hook->start_returned || hook->start_joined)
                return;
        (void)hf__thread_join(hook->start_thread);
        hook->start_joined = true;
}

/* Begins the start of a hook that can start, and checks one that has begun. An error ends the start
 * of all hooks. */
static int advance_hook_locked(struct hf_hook_context *hook, hf_nsec now,
                               struct hf_status *reterr_status) {
        hf__mutex_assert_held(&hook->hooks->mu);
        if (can_start_locked(hook))
                begin_hook_start_locked(hook, now);
        join_start_locked(hook);
        if (hook->start_state == HF__START_FAILED)
                return hf_fail(reterr_status, hook->start_status.error, "hook \"%s\" failed: %s",
                               hook->name, hook->start_status.message);
        if (hook->start_state == HF__START_RUNNING &&
            hf__deadline_is_over(&hook->start_until, hook->hook.start_deadline, now))
                return hf_fail(reterr_status, HF_E_TIMEOUT,
                               "hook \"%s\" has not finished its start by its deadline (%lld ms)",
                               hook->name,
                               (long long)(hook->hook.start_deadline / HF_NSEC_PER_MSEC));
        return 0;
}

/* Advances all hooks once. true: hf_hooks_start must return *ret_result. false: call again when a
 * hook changes, and at *ret_wake, the nearest deadline, at the latest. */
static bool advance_all_locked(struct hf_hooks *hooks, hf_nsec now, int *ret_result,
                               hf_nsec *ret_wake, struct hf_status *reterr_status) {
        size_t n_done = 0;

        hf__mutex_assert_held(&hooks->mu);
        *ret_result = 0;
        *ret_wake = HF_NSEC_NEVER;
        if (hooks->shutdown) {
                *ret_result = hf_fail(reterr_status, HF_E_CANCELED, "shut down during the start");
                return true;
        }
        for (size_t i = 0; i < hooks->n; i++) {
                struct hf_hook_context *hook = hooks->list[i];
                *ret_result = advance_hook_locked(hook, now, reterr_status);
                if (*ret_result != 0)
                        return true;
                if (hook->start_state == HF__START_DONE)
                        n_done++;
                else if (hook->start_state == HF__START_RUNNING && hook->start_until.at < *ret_wake)
                        *ret_wake = hook->start_until.at;
        }
        return n_done == hooks->n;
}

/* Closes the registration. After a failure, hf_hooks_start must start nothing. */
static int begin_start(struct hf_hooks *hooks, struct hf_status *reterr_status) {
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
        return r;
}

int hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(hooks->host);
        hf_nsec wake;
        int r = begin_start(hooks, reterr_status);

        if (r != 0)
                return r;
        r = hf__hook_dependencies_resolve(hooks, reterr_status);
        pthread_mutex_lock(&hooks->mu);
        while (r == 0 && !advance_all_locked(hooks, hf_now(clock), &r, &wake, reterr_status))
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
        hf_cancel_fire(hooks->shutting_down, HF_CANCEL_STOPPING);
}
