/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns: of the creates of one instance that change the same quotas, one commits at a time. All of
 * them write the same keys, so without turns each commit would be a conflict for all others, and n
 * creates would need n * n transactions. Turns only save work: what keeps the limits are the
 * compares of the transaction.
 *
 * There is one queue for each namespace. A turn waits only behind turns whose deadline is not later
 * than its own; otherwise it is not queued, and its write competes with the others. A turn ends at
 * its deadline at the latest, so no turn waits beyond its own deadline.
 *
 * Thread: any; a turn belongs to its write. The lock is never held during a callback.
 */
#include <pthread.h>

#include <holdfast/clock.h>

struct hfd_quota_turn {
        const char *ns;              /* borrowed until the turn has left */
        hf_nsec deadline;            /* boot time */
        struct hfd_quota_turn *next; /* in the queue of the namespace, which the holder begins */
        /* Valid for a holder. */
        struct hfd_quota_turn *last;  /* the end of its queue; the holder itself if nobody waits */
        struct hfd_quota_turn *other; /* in the list of holders: that of another namespace */
};

struct hfd_quota_turns {
        pthread_mutex_t mu;
        struct hfd_quota_turn *holders; /* guarded by mu; borrowed */
};

enum hfd_quota_turn_state {
        HFD_TURN_HELD,   /* the caller goes on, and leaves at the end */
        HFD_TURN_WAITS,  /* the caller of a later hfd_quota_turns_leave resumes it */
        HFD_TURN_PASSED, /* not queued: the caller goes on without a turn */
};

void hfd_quota_turns_init(struct hfd_quota_turns *turns);
/* Requires that all turns have been left. */
void hfd_quota_turns_done(struct hfd_quota_turns *turns);
/* The caller has set ns and deadline. After WAITS, another thread may be using the turn already. */
enum hfd_quota_turn_state hfd_quota_turns_take(struct hfd_quota_turns *turns,
                                               struct hfd_quota_turn *turn);
/* Ends a turn that is held. Returns the turn that holds now, which the caller must resume; NULL =
 * nobody waits. */
struct hfd_quota_turn *hfd_quota_turns_leave(struct hfd_quota_turns *turns,
                                             struct hfd_quota_turn *turn);
