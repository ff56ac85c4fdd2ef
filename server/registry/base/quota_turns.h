/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns: of the writes of one instance that are charged to the quotas of a namespace, one commits
 * at a time. They write the same keys, so without turns each commit would be a conflict for all
 * others, and n writes would need about n * n / 2 transactions. Turns only save work: the limits
 * themselves are kept by the transaction, which compares the versions of the quotas.
 *
 * There is one queue for each namespace. A turn waits only behind turns whose deadline is not later
 * than its own; otherwise it is not queued, and its write competes with the others. Each wait of
 * the write that holds a turn ends at the write's deadline, so no turn waits much beyond its own.
 *
 * Thread: any; a turn belongs to its write. Nothing blocks, except shortly for `mu`, which is held
 * for a search of the list only, never in a callback or together with another lock.
 */
#include <pthread.h>

#include <holdfast/clock.h>

struct hfd_quota_turn {
        const char *ns;   /* borrowed until the turn has left */
        hf_nsec deadline; /* boot time */
        /* Guarded by hfd_quota_turns.mu from take to leave: */
        struct hfd_quota_turn *next; /* in the queue of the namespace, which the holder begins */
        struct hfd_quota_turn
                *last; /* of a holder: the end of its queue, or itself if none waits */
        struct hfd_quota_turn *other; /* of a holder: the next one in the list of holders */
};

struct hfd_quota_turns {
        pthread_mutex_t mu;
        struct hfd_quota_turn *holders; /* guarded by mu; borrowed */
};

enum hfd_quota_turn_state {
        HFD_TURN_HELD,   /* the caller goes on, and calls hfd_quota_turns_leave at the end */
        HFD_TURN_WAITS,  /* the turn is queued; a thread that calls leave later resumes its write */
        HFD_TURN_PASSED, /* the turn is not queued: the caller goes on without one */
};

/* 0, or -errno: there is nothing to free. */
int hfd_quota_turns_init(struct hfd_quota_turns *turns);
/* Requires that all turns have been left. */
void hfd_quota_turns_done(struct hfd_quota_turns *turns);
/* The caller has set ns and deadline. After HFD_TURN_WAITS another thread may use the turn already,
 * so the caller must not touch it. */
enum hfd_quota_turn_state hfd_quota_turns_take(struct hfd_quota_turns *turns,
                                               struct hfd_quota_turn *turn);
/* Ends a turn that is held. Returns the turn that holds the queue now, whose write the caller must
 * resume; NULL = no turn waits. */
struct hfd_quota_turn *hfd_quota_turns_leave(struct hfd_quota_turns *turns,
                                             struct hfd_quota_turn *turn);
