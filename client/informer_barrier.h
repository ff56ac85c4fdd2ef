/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The barrier of an informer: threads wait until it has seen a revision, and the reflector lists
 * for them when no watch event brings that revision.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/informer.h>

/* One waiting thread; lives on its stack. Immutable while it is in the informer's list. */
struct hf__informer_waiter {
        struct hf__informer_waiter *next; /* guarded by the informer's mu */
        uint64_t revision;
        uint64_t
                n_lists; /* lists begun before it: a consistent list with a higher number will do */
};

/*
 * hf_informer_wait_all for the beginning of a leader's term: resource_version is that of the write
 * that acquired the Lease. Thread: any but the reflector's. Blocks and returns as
 * hf_informer_wait_all does, with two differences:
 *
 * With one_revision it gives the watches a moment before it asks for a list: holdfastd's own client
 * gets a bookmark on each watch when a Lease changes hands, and a list would only delay the term.
 *
 * A resource_version that is no number is allowed, except with one_revision (-EINVAL): only a
 * consistent list that begins after the call satisfies it.
 */
int hf__informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                           const char *resource_version, struct hf_cancel *token);

/* ---- for the reflector ---- */

/* Whether a waiter is still not satisfied: it needs a list, unless the watch is faster. */
bool hf__informer_barrier_pending_locked(const struct hf_informer *informer);
/* Whether a waiter is not satisfied because it came after the consistent list of this number had
 * begun. */
bool hf__informer_barrier_missed_locked(const struct hf_informer *informer, uint64_t list_number);
/* The highest revision that is waited for. 0: nobody waits, or only for the first list. */
uint64_t hf__informer_barrier_revision(struct hf_informer *informer);
