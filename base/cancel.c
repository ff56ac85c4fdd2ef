/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation tokens.
 *
 * Tokens form trees. The mutex of the root guards all links of its tree: children, wakers and the
 * `propagated` marks. A token holds a reference to its parent, so the root lives longer than the
 * others. `reason` and `deadline` are atomic. They are stored with release, and without the lock
 * they are loaded with acquire: a thread that finds the reason of a fire also sees what the firing
 * thread has written before.
 *
 * `reason` changes at most once, from NONE to its value: when a fire reaches the token, when the
 * token is created below a fired parent, or when a thread notices that a deadline has passed.
 * `propagated` is set by a fire, and by a creation below a fired parent, but not by a deadline. A
 * fire also calls the added wakers and wakes the waiting threads. A waker that is added after the
 * token has fired or its deadline has passed is called at once. Setting an earlier deadline wakes
 * waiting threads, too. A token whose deadline has passed can still be fired: that calls its added
 * wakers, but the reason remains DEADLINE.
 *
 * hf_cancel_fire marks the subtree under the lock and moves its wakers to a ring on the caller's
 * stack. Then it calls them one by one with the lock released. A waker is in one of three states:
 *
 *      IDLE    in no ring
 *      ADDED   in the ring of its token or of a fire
 *      RUNNING fn is being called, without the lock
 *
 * hf_cancel_remove_waker unlinks an ADDED waker from whichever ring it is in. For a RUNNING waker
 * it waits on the token's condition variable.
 */
#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/thread.h"

enum { WAKER_IDLE, WAKER_ADDED, WAKER_RUNNING };

struct hf_cancel {
        /* immutable */
        struct hf_cancel *parent;     /* owned reference; NULL in a root */
        struct hf_cancel *root;       /* borrowed through parent; a root points to itself */
        const struct hf_clock *clock; /* borrowed */
        /* atomic */
        atomic_int refs;
        atomic_int reason;        /* enum hf_cancel_reason; changes at most once */
        _Atomic hf_nsec deadline; /* only ever becomes earlier, under root->mu */
        /* Used with root->mu. Signalled when the token is fired, when its deadline or that of an
         * ancestor changes, and when a waker returns. */
        pthread_cond_t cond;
        pthread_mutex_t mu; /* initialised in a root only */
        /* guarded by root->mu */
        struct hf_cancel *first_child, *next_sibling, *prev_sibling;
        struct hf_cancel_waker wakers; /* the anchor of the ring */
        bool propagated;
};

/* The token that never fires. Its mutex, links and clock are not initialised, so every function
 * that uses them must treat this token separately. */
static struct hf_cancel never_token = {.deadline = HF_NSEC_NEVER};

static void ring_init(struct hf_cancel_waker *anchor) {
        anchor->next = anchor;
        anchor->prev = anchor;
}

static void ring_append(struct hf_cancel_waker *anchor, struct hf_cancel_waker *waker) {
        waker->next = anchor;
        waker->prev = anchor->prev;
        waker->prev->next = waker;
        anchor->prev = waker;
}

static void ring_remove(struct hf_cancel_waker *waker) {
        waker->next->prev = waker->prev;
        waker->prev->next = waker->next;
}

/* The next token in the subtree of top, in an order with parents before children; NULL at the
 * end. */
static struct hf_cancel *next_in_subtree_locked(struct hf_cancel *top, struct hf_cancel *token) {
        hf__mutex_assert_held(&top->root->mu);
        if (token->first_child)
                return token->first_child;
        while (token != top && !token->next_sibling)
                token = token->parent;
        return token == top ? NULL : token->next_sibling;
}

/* Only a root has an initialised mutex. */
static void free_token(struct hf_cancel *token) {
        pthread_cond_destroy(&token->cond);
        if (token->root == token)
                pthread_mutex_destroy(&token->mu);
        free(token);
}

int hf_cancel_new(struct hf_cancel *parent, const struct hf_clock *clock,
                  struct hf_cancel **ret_token) {
        int r = hf__clock_check(clock, NULL);

        if (r != 0)
                return r;
        struct hf_cancel *token = calloc(1, sizeof *token);
        if (!token)
                return -ENOMEM;
        if (parent == &never_token) /* it never fires, and has no lock for a list of children */
                parent = NULL;
        atomic_init(&token->refs, 1);
        atomic_init(&token->reason, HF_CANCEL_NONE);
        atomic_init(&token->deadline, HF_NSEC_NEVER);
        token->clock = clock ? clock : hf_clock_system();
        ring_init(&token->wakers);
        r = parent ? hf_cond_init(&token->cond) : hf__mutex_cond_init(&token->mu, &token->cond);
        if (r < 0) {
                free(token);
                return r;
        }
        if (!parent) {
                token->root = token;
                *ret_token = token;
                return 0;
        }
        /* The parent's deadline is not copied, because it may still become earlier.
         * hf_cancel_deadline reads it from the parent. */
        token->parent = hf_cancel_ref(parent);
        token->root = parent->root;
        pthread_mutex_lock(&token->root->mu);
        token->propagated = parent->propagated;
        if (parent->propagated)
                atomic_store(&token->reason, atomic_load(&parent->reason));
        token->next_sibling = parent->first_child;
        if (token->next_sibling)
                token->next_sibling->prev_sibling = token;
        parent->first_child = token;
        pthread_mutex_unlock(&token->root->mu);
        *ret_token = token;
        return 0;
}

struct hf_cancel *hf_cancel_ref(struct hf_cancel *token) {
        if (token != &never_token) {
                /* Relaxed: the caller has a reference already, which keeps the token alive. */
                int previous = atomic_fetch_add_explicit(&token->refs, 1, memory_order_relaxed);
                assert(previous > 0);
                (void)previous;
        }
        return token;
}

/* Until the token is unlinked, a fire of the parent may mark it, although the last reference to the
 * token is gone. So hf_cancel_unref unlinks the token before it frees the token, and drops the
 * token's reference to the parent last. */
static void unlink_from_parent(struct hf_cancel *token) {
        pthread_mutex_lock(&token->root->mu);
        if (token->prev_sibling)
                token->prev_sibling->next_sibling = token->next_sibling;
        else
                token->parent->first_child = token->next_sibling;
        if (token->next_sibling)
                token->next_sibling->prev_sibling = token->prev_sibling;
        pthread_mutex_unlock(&token->root->mu);
}

struct hf_cancel *hf_cancel_unref(struct hf_cancel *token) {
        while (token && token != &never_token) {
                /* Acquire and release: all uses on other threads happen before the free. */
                int previous = atomic_fetch_sub_explicit(&token->refs, 1, memory_order_acq_rel);
                assert(previous > 0);
                if (previous > 1)
                        break;
                assert(!token->first_child && token->wakers.next == &token->wakers);
                struct hf_cancel *parent = token->parent;
                if (parent)
                        unlink_from_parent(token);
                free_token(token);
                token = parent; /* now drop the reference that the child held */
        }
        return NULL;
}

struct hf_cancel *hf_cancel_never(void) {
        return &never_token;
}

hf_nsec hf_cancel_deadline(struct hf_cancel *token) {
        hf_nsec nearest = HF_NSEC_NEVER;

        for (; token; token = token->parent) {
                hf_nsec deadline = atomic_load_explicit(&token->deadline, memory_order_acquire);
                if (deadline < nearest)
                        nearest = deadline;
        }
        return nearest;
}

/* If the token has no reason yet, sets it: to DEADLINE if a deadline has passed, else to
 * `otherwise`. Returns the token's reason afterwards. */
static enum hf_cancel_reason settle_reason(struct hf_cancel *token,
                                           enum hf_cancel_reason otherwise) {
        int reason = atomic_load_explicit(&token->reason, memory_order_acquire);

        if (reason != HF_CANCEL_NONE)
                return (enum hf_cancel_reason)reason;
        hf_nsec deadline = hf_cancel_deadline(token);
        if (deadline != HF_NSEC_NEVER && hf_now(token->clock) >= deadline)
                otherwise = HF_CANCEL_DEADLINE;
        if (otherwise == HF_CANCEL_NONE)
                return HF_CANCEL_NONE;
        /* If two threads do this at the same time, one wins, and both return the winner's
         * reason. */
        if (atomic_compare_exchange_strong_explicit(&token->reason, &reason, (int)otherwise,
                                                    memory_order_acq_rel, memory_order_acquire))
                return otherwise;
        return (enum hf_cancel_reason)reason;
}

enum hf_cancel_reason hf_cancel_reason(struct hf_cancel *token) {
        return settle_reason(token, HF_CANCEL_NONE);
}

bool hf_cancel_fired(struct hf_cancel *token) { return hf_cancel_reason(token) != HF_CANCEL_NONE; }

/* Calls a waker in state RUNNING. Releases the lock during the call. */
static void run_waker_locked(pthread_mutex_t *mu, struct hf_cancel_waker *waker) {
        hf__mutex_assert_held(mu);
        assert(waker->state == WAKER_RUNNING);
        pthread_mutex_unlock(mu);
        waker->fn(waker->ctx);
        pthread_mutex_lock(mu);
        waker->state = WAKER_IDLE;
        pthread_cond_broadcast(&waker->token->cond);
}

/* Marks token and its descendants as fired, wakes their waiting threads and moves their wakers to
 * the ring `firing`. */
static void fire_subtree_locked(struct hf_cancel *token, enum hf_cancel_reason reason,
                                struct hf_cancel_waker *firing) {
        hf__mutex_assert_held(&token->root->mu);
        /* If the token was fired before, all its descendants were marked then, and children that
         * were added later were created as fired. */
        if (token->propagated)
                return;
        for (struct hf_cancel *t = token; t; t = next_in_subtree_locked(token, t)) {
                struct hf_cancel_waker *waker;
                if (t->propagated)
                        continue;
                (void)settle_reason(t, reason);
                t->propagated = true;
                while ((waker = t->wakers.next) != &t->wakers) {
                        ring_remove(waker);
                        ring_append(firing, waker);
                }
                pthread_cond_broadcast(&t->cond);
        }
}

void hf_cancel_fire(struct hf_cancel *token, enum hf_cancel_reason reason) {
        struct hf_cancel_waker firing, *waker;

        if (token == &never_token || reason == HF_CANCEL_NONE)
                return;
        pthread_mutex_t *mu = &token->root->mu;
        ring_init(&firing);
        pthread_mutex_lock(mu);
        fire_subtree_locked(token, reason, &firing);
        while ((waker = firing.next) != &firing) {
                assert(waker->state == WAKER_ADDED);
                ring_remove(waker);
                waker->state = WAKER_RUNNING;
                run_waker_locked(mu, waker);
        }
        pthread_mutex_unlock(mu);
}

void hf_cancel_set_deadline(struct hf_cancel *token, hf_nsec deadline) {
        if (token == &never_token)
                return;
        pthread_mutex_lock(&token->root->mu);
        if (deadline < atomic_load_explicit(&token->deadline, memory_order_relaxed)) {
                atomic_store_explicit(&token->deadline, deadline, memory_order_release);
                /* Wake each waiting thread, so that it recomputes its time limit. */
                for (struct hf_cancel *t = token; t; t = next_in_subtree_locked(token, t))
                        pthread_cond_broadcast(&t->cond);
        }
        pthread_mutex_unlock(&token->root->mu);
}

static int wait_for_token_locked(struct hf_cancel *token, const struct hf_clock *clock,
                                 pthread_cond_t *cond, pthread_mutex_t *mu, hf_nsec until) {
        hf__mutex_assert_held(mu);
        for (;;) {
                if (token != &never_token && hf_cancel_fired(token))
                        return HF_E_CANCELED;
                if (until != HF_NSEC_NEVER && hf_now(clock) >= until)
                        return HF_E_TIMEOUT;
                hf_nsec limit = hf_cancel_deadline(token);
                int r = clock->wait(clock->ctx, cond, mu, limit < until ? limit : until);
                if (r < 0)
                        return r;
        }
}

int hf_cancel_wait(struct hf_cancel *token, hf_nsec until) {
        if (token != &never_token) {
                pthread_mutex_lock(&token->root->mu);
                int r = wait_for_token_locked(token, token->clock, &token->cond, &token->root->mu,
                                              until);
                pthread_mutex_unlock(&token->root->mu);
                return r;
        }
        /* The never token has no mutex, so that unrelated threads that wait on it do not compete
         * for one. Each wait creates a mutex. */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int r = hf__mutex_cond_init(&mu, &cond);
        if (r < 0)
                return r;
        pthread_mutex_lock(&mu);
        r = wait_for_token_locked(token, hf_clock_system(), &cond, &mu, until);
        pthread_mutex_unlock(&mu);
        pthread_cond_destroy(&cond);
        pthread_mutex_destroy(&mu);
        return r;
}

void hf_cancel_add_waker(struct hf_cancel *token, struct hf_cancel_waker *waker,
                         void (*fn)(void *ctx), void *ctx) {
        assert(fn);
        *waker = (struct hf_cancel_waker){.fn = fn, .ctx = ctx, .token = token};
        if (token == &never_token)
                return;
        pthread_mutex_t *mu = &token->root->mu;
        pthread_mutex_lock(mu);
        if (hf_cancel_fired(token)) {
                waker->state = WAKER_RUNNING;
                run_waker_locked(mu, waker);
        } else {
                waker->state = WAKER_ADDED;
                ring_append(&token->wakers, waker);
        }
        pthread_mutex_unlock(mu);
}

void hf_cancel_remove_waker(struct hf_cancel_waker *waker) {
        struct hf_cancel *token = waker->token;

        if (!token)
                return; /* never added, or removed before */
        if (token != &never_token) {
                pthread_mutex_lock(&token->root->mu);
                if (waker->state == WAKER_ADDED)
                        ring_remove(waker);
                while (waker->state == WAKER_RUNNING) /* a short wait, because fn must not block */
                        pthread_cond_wait(&token->cond, &token->root->mu);
                waker->state = WAKER_IDLE;
                pthread_mutex_unlock(&token->root->mu);
        }
        waker->token = NULL; /* not earlier: run_waker_locked uses it after fn */
}
