/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The barrier of an informer: threads wait here until the informer has seen a revision. In parallel
 * to the watch the reflector requests a list for them, at once or after a short delay, because an
 * idle collection has no event that would reach the revision. one_revision: see struct
 * hf_informer_config. A list is consistent if the server answers it with its newest state.
 *
 * Thread: the reflector's, for every function here; waiting threads call the functions in
 * <holdfast/informer.h>. The _locked functions need the informer's mu. Nothing here blocks.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/informer.h>

/* One waiting thread. Its call of the barrier owns the memory. Apart from `next`, immutable while
 * it is in the informer's list. */
struct hf__informer_waiter {
        struct hf__informer_waiter *next; /* guarded by the informer's mu */
        uint64_t revision;
        bool needs_list; /* no revision satisfies it */
        /* The number of consistent lists begun before the wait. Without one_revision, any
         * consistent list with a higher number satisfies the waiter. */
        uint64_t n_consistent_lists;
};

/* ---- for the reflector ---- */

/* Whether any waiter is not satisfied yet and may need a list. */
bool hf__informer_barrier_pending_locked(const struct hf_informer *informer);
/* Whether a waiter is not satisfied because it began to wait after the consistent list with this
 * number had begun. list_number 0: false. */
bool hf__informer_barrier_missed_locked(const struct hf_informer *informer, uint64_t list_number);
/* The highest revision that a thread waits for. 0: there is no waiter, or none has a revision. */
uint64_t hf__informer_barrier_revision(struct hf_informer *informer);
