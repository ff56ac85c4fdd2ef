/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets threads wait until an informer has seen a revision.
 *
 * A waiting thread adds a waiter to the informer's list, with the revision that the thread needs
 * and the number of consistent lists begun so far. The wait ends when the informer has seen that
 * revision. If the server does not use one revision counter for all collections (one_revision is
 * false), a consistent list that begins after the call is sufficient too: it contains everything
 * that was written before the call. If a thread still waits at probe_at, the reflector sends a list
 * request in parallel to the watch; reflector_list.c calls it a probe.
 *
 * At the beginning of a term the revision comes from the Lease. Without one_revision the informer's
 * collection may have another counter, which may be far ahead of the Lease's. Then its revisions
 * prove nothing, and only a consistent list ends the wait.
 *
 * Invariant: each waiter is removed from the list by its own thread before that thread's call of
 * the barrier returns, because the call owns the waiter's memory.
 */
#include "client/informer_barrier.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mailbox.h"
#include "base/thread.h"
#include "client/informer_private.h"

/*
 * Delays before the first probe, because the watch may deliver the revision in the meantime. The
 * cost of a probe grows with the size of the collection: LARGE_GRACE is for collections of more
 * than one page. TERM_GRACE is for smaller ones at the beginning of a term, if the server has one
 * revision. In all other cases a probe is sent at once.
 */
#define LARGE_GRACE (50 * HF_NSEC_PER_MSEC)
#define TERM_GRACE  (10 * HF_NSEC_PER_MSEC)

/* The condition that ends a wait. */
enum need {
        A_REVISION, /* or, without one_revision, a consistent list */
        A_TERM,     /* the Lease's revision; without one_revision, a consistent list instead */
};

static bool is_satisfied_locked(const struct hf_informer *informer,
                                const struct hf__informer_waiter *waiter) {
        hf__mutex_assert_held(&informer->mu);
        if (!informer->synced)
                return false;
        if (!waiter->needs_list && informer->seen_revision >= waiter->revision)
                return true;
        return !informer->one_revision &&
               informer->newest_consistent_list > waiter->n_consistent_lists;
}

/* ---- for the reflector ---- */

bool hf__informer_barrier_pending_locked(const struct hf_informer *informer) {
        hf__mutex_assert_held(&informer->mu);
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (!is_satisfied_locked(informer, w))
                        return true;
        return false;
}

bool hf__informer_barrier_missed_locked(const struct hf_informer *informer, uint64_t list_number) {
        hf__mutex_assert_held(&informer->mu);
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (!is_satisfied_locked(informer, w) && w->n_consistent_lists >= list_number &&
                    list_number > 0)
                        return true;
        return false;
}

uint64_t hf__informer_barrier_revision(struct hf_informer *informer) {
        uint64_t revision = 0;

        (void)pthread_mutex_lock(&informer->mu);
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (w->revision > revision)
                        revision = w->revision;
        (void)pthread_mutex_unlock(&informer->mu);
        return revision;
}

/* ---- waiting ---- */

static void wake_waiters(void *ctx) {
        struct hf_informer *informer = ctx;

        /* Broadcasts under the lock. Otherwise a thread could miss it between the check of its
         * token and its wait. */
        (void)pthread_mutex_lock(&informer->mu);
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Adds a waiter, and wakes the reflector if the waiter is not satisfied yet. */
static void add_waiter(struct hf_informer *informer, struct hf__informer_waiter *waiter,
                       uint64_t revision, enum need need) {
        (void)pthread_mutex_lock(&informer->mu);
        *waiter = (struct hf__informer_waiter){.next = informer->waiters,
                                               .revision = revision,
                                               .needs_list =
                                                       need == A_TERM && !informer->one_revision,
                                               .n_consistent_lists = informer->n_consistent_lists};
        if (!is_satisfied_locked(informer, waiter)) {
                hf_nsec grace = need == A_TERM && informer->one_revision ? TERM_GRACE : 0;
                if (informer->store.entries.n > HF__REFLECTOR_PAGE)
                        grace = LARGE_GRACE;
                hf_nsec probe_at = hf_now(informer->clock) + grace;
                /* A new waiter must not inherit the backoff of an earlier one, which may wait for a
                 * revision that the server does not have yet. */
                if (!informer->waiters || probe_at < informer->probe_at)
                        informer->probe_at = probe_at;
                informer->probe_failures = 0;
                hf__informer_thread_wake(informer);
        }
        informer->waiters = waiter;
        (void)pthread_mutex_unlock(&informer->mu);
}

static void remove_waiter(struct hf_informer *informer, const struct hf__informer_waiter *waiter) {
        struct hf__informer_waiter **place;

        (void)pthread_mutex_lock(&informer->mu);
        for (place = &informer->waiters; *place != waiter; place = &(*place)->next)
                assert(*place);
        *place = waiter->next;
        (void)pthread_mutex_unlock(&informer->mu);
}

static int await_waiter(struct hf_informer *informer, const struct hf__informer_waiter *waiter,
                        struct hf_cancel *token) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, wake_waiters, informer);
        /* Makes the wakes that this thread has delayed, perhaps the one of add_waiter: nobody else
         * makes them while this thread waits. They may take mu. */
        hf__mailbox_call_early();
        (void)pthread_mutex_lock(&informer->mu);
        while (!is_satisfied_locked(informer, waiter) && !hf_cancel_fired(token))
                (void)informer->clock->wait(informer->clock->ctx, &informer->changed, &informer->mu,
                                            hf_cancel_deadline(token));
        int r = is_satisfied_locked(informer, waiter) ? 0 : HF_E_CANCELED;
        (void)pthread_mutex_unlock(&informer->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

static int wait_for_informers(struct hf_informer *const *informers, size_t n_informers,
                              uint64_t revision, enum need need, struct hf_cancel *token) {
        /* A few waiters fit on the stack, so hf_informer_wait cannot fail for lack of memory. */
        struct hf__informer_waiter few[4] = {0}, *waiters = few;
        int r = 0;

        if (n_informers > sizeof few / sizeof few[0]) {
                waiters = calloc(n_informers, sizeof *waiters);
                if (!waiters)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n_informers; i++)
                add_waiter(informers[i], &waiters[i], revision, need);
        for (size_t i = 0; r == 0 && i < n_informers; i++)
                r = await_waiter(informers[i], &waiters[i], token);
        for (size_t i = 0; i < n_informers; i++)
                remove_waiter(informers[i], &waiters[i]);
        if (waiters != few)
                free(waiters);
        return r;
}

int hf_informer_wait_all(struct hf_informer *const *informers, size_t n_informers,
                         const char *resource_version, struct hf_cancel *token) {
        uint64_t revision = hf__resource_version_number(resource_version);

        if (!informers || !token || (resource_version && revision == 0))
                return -EINVAL;
        return wait_for_informers(informers, n_informers, revision, A_REVISION, token);
}

int hf_informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                          const char *acquired_at, struct hf_cancel *token) {
        uint64_t revision = hf__resource_version_number(acquired_at);

        if (!informers || !acquired_at || !token)
                return -EINVAL;
        if (!acquired_at[0])
                return wait_for_informers(informers, n_informers, 0, A_REVISION, token);
        for (size_t i = 0; i < n_informers && revision == 0; i++)
                if (informers[i]->one_revision)
                        return -EINVAL;
        return wait_for_informers(informers, n_informers, revision, A_TERM, token);
}

int hf_informer_wait(struct hf_informer *informer, const char *resource_version,
                     struct hf_cancel *token) {
        return informer ? hf_informer_wait_all(&informer, 1, resource_version, token) : -EINVAL;
}

bool hf_informer_synced(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->mu);
        bool synced = informer->synced;
        (void)pthread_mutex_unlock(&informer->mu);
        return synced;
}
