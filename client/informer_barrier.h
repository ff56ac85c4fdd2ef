/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The barrier of an informer: threads wait here until the informer has seen a revision. If no watch
 * event reaches that revision, the reflector lists for them. */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/informer.h>

/* One waiting thread. Its call of the barrier owns the memory. Apart from `next`, immutable while
 * it is in the informer's list. */
struct hf__informer_waiter {
        struct hf__informer_waiter *next; /* guarded by the informer's mu */
        uint64_t revision;
        /* The number of consistent lists begun before the wait. Without one_revision, any
         * consistent list with a higher number satisfies the waiter. */
        uint64_t n_consistent_lists;
};

/*
 * The variant of hf_informer_wait_all for the beginning of a leader's term. resource_version is
 * that of the write that acquired the Lease. Thread: any except the reflector's. Blocks and returns
 * as hf_informer_wait_all does, with two differences:
 *
 * With one_revision it waits a moment before it sends a list request. The loopback client of
 * holdfastd gets a bookmark on each watch when the holder of a Lease changes, so a list would only
 * delay the term.
 *
 * Without one_revision a resource_version may be something other than a number. Then only a
 * consistent list that begins after the call ends the wait. With one_revision that is -EINVAL.
 */
int hf__informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                           const char *resource_version, struct hf_cancel *token);

/* ---- for the reflector ---- */

/* Whether any waiter is not satisfied yet and may need a list. */
bool hf__informer_barrier_pending_locked(const struct hf_informer *informer);
/* Whether a waiter is not satisfied because it began to wait after the consistent list with this
 * number had begun. list_number 0: false. */
bool hf__informer_barrier_missed_locked(const struct hf_informer *informer, uint64_t list_number);
/* The highest revision that a thread waits for. 0: there is no waiter, or all wait only for the
 * first list. */
uint64_t hf__informer_barrier_revision(struct hf_informer *informer);
