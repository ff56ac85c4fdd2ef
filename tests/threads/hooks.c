/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start of hooks, and two stops at any moment of it. Each hook does one of a few things; some
 * fail, some wait for the shutdown, some spawn threads.
 *
 * Promised: no hook begins after the stop has returned; a hook begins after those that it depends
 * on have succeeded; exactly those that have begun are stopped, each once, after those that depend
 * on it; no thread of a hook runs when the stop returns; both stops return the same.
 */
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/hooks.h>

#include "threads.h"

enum { MAX_HOOKS = 4 };
enum work { SUCCEEDS, FAILS, WAITS_FOR_SHUTDOWN, SPAWNS, SLEEPS, N_WORKS };

static struct {
        struct hf_hooks *hooks;
        unsigned n;
        struct one {
                enum work work;
                bool stop_fails;
                bool after[MAX_HOOKS];
                int n_started, n_succeeded, n_stopped; /* calls that have begun, or returned 0 */
                int n_running;                         /* functions and spawned threads */
                bool has_stopped;
                struct hf_hook_context *context;
                int n_to_spawn;
        } list[MAX_HOOKS];
        bool is_over; /* a stop has returned */
        bool start_is_called;
        int stop_results[2];
} h;

static const char *const names[MAX_HOOKS] = {"0", "1", "2", "3"};

static void spawn(struct one *one);

/* A spawned thread may spawn the next one, even after the stop has begun. */
static void spawned(void *ctx, struct hf_cancel *token) {
        struct one *one = ctx;

        BATON_CHECK(!h.is_over);
        one->n_running++;
        if (baton_random(2) == 0)
                (void)hf_cancel_wait(token, HF_NSEC_NEVER);
        if (one->n_to_spawn > 0)
                spawn(one);
        one->n_running--;
}

static void spawn(struct one *one) {
        bool is_stopping = one->n_stopped > 0;

        one->n_to_spawn--;
        int r = hf_hook_spawn(one->context, "spawned", spawned, one);
        BATON_CHECK(r == HF_E_CLOSED || (r == 0 && !is_stopping));
}

static int start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct one *one = ctx;
        int r = 0;

        BATON_CHECK(!h.is_over && one->n_started++ == 0);
        for (unsigned i = 0; i < h.n; i++)
                BATON_CHECK(!one->after[i] || h.list[i].n_succeeded == 1);
        one->n_running++;
        one->context = context;
        switch (one->work) {
        case SUCCEEDS:
        case N_WORKS: break;
        case FAILS: r = HF_E_INVALID; break;
        case WAITS_FOR_SHUTDOWN:
                (void)hf_cancel_wait(hf_hook_shutting_down(context), HF_NSEC_NEVER);
                break;
        case SPAWNS:
                one->n_to_spawn = 1 + (int)baton_random(3);
                spawn(one);
                break;
        case SLEEPS: scenario_sleep((hf_nsec)baton_random(3) * HF_NSEC_PER_SEC); break;
        }
        one->n_running--;
        one->n_succeeded += r == 0;
        return r;
}

static int stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        struct one *one = ctx;

        BATON_CHECK(!h.is_over && one->n_started == 1 && one->n_stopped++ == 0);
        for (unsigned i = 0; i < h.n; i++)
                BATON_CHECK(!h.list[i].after[one - h.list] || h.list[i].n_started == 0 ||
                            (h.list[i].has_stopped && h.list[i].n_running == 0));
        one->n_running++;
        baton_point();
        one->n_running--;
        one->has_stopped = true;
        return one->stop_fails ? HF_E_CONFLICT : 0;
}

/* A hook may come after any that were added before it. */
static void add_hook(unsigned i) {
        struct one *one = &h.list[i];
        const char *after[MAX_HOOKS];
        struct hf_hook hook = {.size = sizeof hook,
                               .name = names[i],
                               .after = after,
                               .start = start,
                               .stop = stop,
                               .start_deadline = HF_NSEC_NEVER,
                               .stop_deadline = HF_NSEC_NEVER,
                               .ctx = one};

        one->work = (enum work)baton_random(N_WORKS);
        one->stop_fails = baton_random(4) == 0;
        for (unsigned k = 0; k < i; k++)
                if (baton_random(2) == 0) {
                        after[hook.n_after++] = names[k];
                        one->after[k] = true;
                }
        BATON_CHECK(hf_hooks_add(h.hooks, &hook, NULL, NULL) == 0);
}

static void *start_all(void *ctx) {
        h.start_is_called = true;
        bool was_over = h.is_over;
        int r = hf_hooks_start(h.hooks, NULL);

        BATON_CHECK(r == 0 || r == HF_E_INVALID || r == HF_E_CANCELED || r == HF_E_CLOSED);
        BATON_CHECK(!was_over || r == HF_E_CLOSED);
        return NULL;
}

static void check_end(void) {
        for (unsigned i = 0; i < h.n; i++) {
                BATON_CHECK(h.list[i].n_running == 0);
                BATON_CHECK(h.list[i].n_started == h.list[i].n_stopped);
        }
}

/* The other stop may be at any moment, too: nothing may run when one of them has returned. */
static void *stop_all(void *ctx) {
        int *ret_result = ctx;

        if (baton_random(2) == 0)
                scenario_sleep((hf_nsec)baton_random(4) * HF_NSEC_PER_SEC);
        *ret_result = hf_hooks_stop(h.hooks, NULL);
        h.is_over = true;
        check_end();
        return NULL;
}

void hooks_stop(void) {
        memset(&h, 0, sizeof h);
        h.n = 1 + (unsigned)baton_random(MAX_HOOKS);
        BATON_CHECK(hf_hooks_new(&scenario_host, NULL, &h.hooks) == 0);
        for (unsigned i = 0; i < h.n; i++)
                add_hook(i);
        pthread_t starter = scenario_thread("starter", start_all, NULL);
        pthread_t second = scenario_thread("stops-too", stop_all, &h.stop_results[1]);
        (void)stop_all(&h.stop_results[0]);
        (void)hf__thread_join(second);
        (void)hf__thread_join(starter);
        BATON_CHECK(h.stop_results[0] == h.stop_results[1]);
        check_end();
        hf_hooks_free(h.hooks);
}
