/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation tokens: a fire, a deadline and waiting threads; a fire, an added waker and its
 * removal.
 */
#include <stdlib.h>
#include <string.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "threads.h"

static struct {
        struct hf_cancel *root, *child;
        hf_nsec deadline;     /* of the root; HF_NSEC_NEVER = none */
        hf_nsec fired_at;     /* when the first fire began; HF_NSEC_NEVER = not yet */
        int n_fires, n_fired; /* calls of hf_cancel_fire, and those that have returned */
} t;

static void make_tokens(void) {
        memset(&t, 0, sizeof t);
        BATON_CHECK(hf_cancel_new(NULL, NULL, &t.root) == 0);
        BATON_CHECK(hf_cancel_new(t.root, NULL, &t.child) == 0);
        t.deadline = t.fired_at = HF_NSEC_NEVER;
}

static void drop_tokens(void) {
        hf_cancel_unref(t.child);
        hf_cancel_unref(t.root);
}

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

static void *fire(void *ctx) {
        if (t.n_fires++ == 0)
                t.fired_at = now();
        hf_cancel_fire(ctx, HF_CANCEL_STOPPING);
        t.n_fired++;
        return NULL;
}

/* ---- waiting ---- */

/* The clock divides a timed wait into slices of this length. So with this unit, events also happen
 * at the end of a slice. */
#define UNIT (5 * HF_NSEC_PER_SEC)

static void *fire_late(void *ctx) {
        scenario_sleep((hf_nsec)baton_random(3) * UNIT);
        return fire(ctx);
}

static void *set_deadline(void *ctx) {
        scenario_sleep((hf_nsec)baton_random(2) * UNIT);
        t.deadline = now() + (hf_nsec)baton_random(3) * UNIT;
        hf_cancel_set_deadline(t.root, t.deadline);
        return NULL;
}

/* Checks that a token's reason never changes, and that a fire or a deadline has given it. */
static void check_reason(struct hf_cancel *token) {
        enum hf_cancel_reason first = HF_CANCEL_NONE;

        for (int i = 0; i < 8; i++) {
                enum hf_cancel_reason reason = hf_cancel_reason(token);
                BATON_CHECK(reason != HF_CANCEL_STOPPING || t.n_fires > 0);
                BATON_CHECK(reason != HF_CANCEL_DEADLINE || now() >= t.deadline);
                BATON_CHECK(first == HF_CANCEL_NONE || reason == first);
                first = reason;
        }
}

static void *read_reason(void *ctx) {
        check_reason(ctx);
        return NULL;
}

static hf_nsec earlier(hf_nsec a, hf_nsec b) { return a < b ? a : b; }

/* Waits for two units or for ever, and checks that a token that fires ends the wait at once. */
static void *await_token(void *ctx) {
        struct hf_cancel *token = ctx;
        hf_nsec began = now();
        hf_nsec limit = baton_random(2) == 0 ? began + 2 * UNIT : HF_NSEC_NEVER;
        int r = hf_cancel_wait(token, limit);

        BATON_CHECK(r == HF_E_CANCELED || (r == HF_E_TIMEOUT && now() >= limit));
        BATON_CHECK(r != HF_E_CANCELED || hf_cancel_fired(token));
        hf_nsec due = earlier(earlier(limit, t.deadline), t.fired_at);
        BATON_CHECK(baton_is_slow() || now() <= (due > began ? due : began));
        check_reason(token);
        return NULL;
}

void cancel_wait(void) {
        pthread_t threads[5];
        unsigned n = 0;

        make_tokens();
        threads[n++] = scenario_thread("waits-child", await_token, t.child);
        threads[n++] = scenario_thread("waits-root", await_token, t.root);
        threads[n++] = scenario_thread("reads", read_reason, t.root);
        bool has_deadline = baton_random(2) == 0;
        if (has_deadline)
                threads[n++] = scenario_thread("deadline", set_deadline, NULL);
        /* Every waiting thread must return: by the fire of the root, or by its deadline. */
        if (!has_deadline || baton_random(2) == 0)
                threads[n++] = scenario_thread("fires", fire_late, t.root);
        while (n > 0)
                (void)hf__thread_join(threads[--n]);
        check_reason(t.child);
        drop_tokens();
}

/* ---- wakers ---- */

/* Its own memory, so that the address sanitizer sees a call after the removal. */
struct woken {
        struct hf_cancel_waker waker;
        bool is_removed;
        int n_calls, n_running;
};

static void wake(void *ctx) {
        struct woken *woken = ctx;

        BATON_CHECK(!woken->is_removed);
        woken->n_running++;
        baton_point();
        woken->n_calls++;
        woken->n_running--;
}

/* Checks that a waker is called at most once: by the fire, or by the function that adds it. When
 * the function that removes it has returned, the waker does not run and is not called any more. */
static void *use_waker(void *ctx) {
        struct woken *woken = calloc(1, sizeof *woken);

        BATON_CHECK(woken != NULL);
        bool was_fired = t.n_fired > 0;
        hf_cancel_add_waker(t.child, &woken->waker, wake, woken);
        BATON_CHECK(!was_fired || woken->n_calls == 1);
        for (uint64_t n = baton_random(4); n > 0; n--)
                baton_point();
        /* One fire may return while the other one still has to call the waker. */
        bool must_be_called = t.n_fired == 2;
        hf_cancel_remove_waker(&woken->waker);
        BATON_CHECK(woken->n_running == 0 && woken->n_calls <= 1);
        BATON_CHECK(woken->n_calls == 1 || !must_be_called);
        woken->is_removed = true;
        baton_point();
        free(woken);
        return NULL;
}

void cancel_waker(void) {
        pthread_t threads[4];

        make_tokens();
        threads[0] = scenario_thread("waker-1", use_waker, NULL);
        threads[1] = scenario_thread("waker-2", use_waker, NULL);
        threads[2] = scenario_thread("fires-child", fire, t.child);
        threads[3] = scenario_thread("fires-root", fire, t.root);
        for (unsigned i = 0; i < 4; i++)
                (void)hf__thread_join(threads[i]);
        drop_tokens();
}
