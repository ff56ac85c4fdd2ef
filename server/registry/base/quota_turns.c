/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of turns (quota_turns.h). The list of holders has one entry for each namespace in
 * which a write is being charged. These are few, so a linear search is fast enough.
 *
 * Invariants: the deadlines of a queue never decrease from its holder to its end, so no turn waits
 * much beyond its own deadline (quota_turns.h). Only the holder of a queue is in the list, and only
 * its `last` and `other` are valid; a holder that leaves hands both on to the next turn.
 */
#include "server/registry/base/quota_turns.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/thread.h"

int hfd_quota_turns_init(struct hfd_quota_turns *turns) {
        turns->holders = NULL;
        return hf__mutex_init(&turns->mu);
}

void hfd_quota_turns_done(struct hfd_quota_turns *turns) {
        assert(!turns->holders);
        pthread_mutex_destroy(&turns->mu);
}

enum hfd_quota_turn_state hfd_quota_turns_take(struct hfd_quota_turns *turns,
                                               struct hfd_quota_turn *turn) {
        enum hfd_quota_turn_state state = HFD_TURN_HELD;

        assert(turn->ns[0]);
        turn->next = NULL;
        pthread_mutex_lock(&turns->mu);
        struct hfd_quota_turn *holder = turns->holders;
        while (holder && strcmp(holder->ns, turn->ns) != 0)
                holder = holder->other;
        if (!holder) {
                turn->last = turn;
                turn->other = turns->holders;
                turns->holders = turn;
        } else if (holder->last->deadline <= turn->deadline) {
                holder->last->next = turn;
                holder->last = turn;
                state = HFD_TURN_WAITS;
        } else {
                state = HFD_TURN_PASSED;
        }
        pthread_mutex_unlock(&turns->mu);
        return state;
}

struct hfd_quota_turn *hfd_quota_turns_leave(struct hfd_quota_turns *turns,
                                             struct hfd_quota_turn *turn) {
        struct hfd_quota_turn **at = &turns->holders, *next;

        pthread_mutex_lock(&turns->mu);
        while (*at != turn) {
                assert(*at); /* the turn is held, so it is in the list */
                at = &(*at)->other;
        }
        assert(turn->last); /* only a holder has it */
        next = turn->next;
        if (next) {
                assert(strcmp(next->ns, turn->ns) == 0);
                next->last = turn->last;
                next->other = turn->other;
        }
        *at = next ? next : turn->other;
        pthread_mutex_unlock(&turns->mu);
        return next;
}
