/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a limited number of watches call conversion webhooks at a time; the others wait for their
 * turn.
 *
 * Invariant: a turn waits only while its kind, or all kinds together, have reached their limit. If
 * a turn waited although no call is under way, no leave would ever begin it. Each leave frees one
 * place, so it is enough that a leave begins one waiting turn.
 */
#include "server/registry/base/convert_turns.h"

#include <assert.h>

#include "base/thread.h"
#include "server/resources/custom/custom_kind.h"

int hfd_convert_turns_init(struct hfd_convert_turns *turns) {
        *turns = (struct hfd_convert_turns){.end = &turns->first};
        return hf__mutex_init(&turns->mu);
}

void hfd_convert_turns_done(struct hfd_convert_turns *turns) {
        assert(!turns->first);
        pthread_mutex_destroy(&turns->mu);
}

static bool has_room_locked(const struct hfd_convert_turns *turns,
                            const struct hfd_custom_kind *kind) {
        hf__mutex_assert_held(&turns->mu);
        return turns->n < HFD_CONVERT_TURNS &&
               kind->n_watch_conversions < HFD_CONVERT_TURNS_OF_KIND;
}

static void append_locked(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn) {
        hf__mutex_assert_held(&turns->mu);
        assert(!turn->link);
        turn->next = NULL;
        turn->link = turns->end;
        *turns->end = turn;
        turns->end = &turn->next;
}

static void remove_locked(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn) {
        hf__mutex_assert_held(&turns->mu);
        assert(turn->link && *turn->link == turn);
        *turn->link = turn->next;
        if (turn->next)
                turn->next->link = turn->link;
        else
                turns->end = turn->link;
        turn->link = NULL;
}

enum hfd_convert_enter hfd_convert_turns_enter(struct hfd_convert_turns *turns,
                                               struct hfd_convert_turn *turn) {
        enum hfd_convert_enter result = HFD_CONVERT_WAITS;

        pthread_mutex_lock(&turns->mu);
        if (turn->canceled) {
                result = HFD_CONVERT_CANCELED;
        } else if (has_room_locked(turns, turn->kind)) {
                turns->n++;
                turn->kind->n_watch_conversions++;
                result = HFD_CONVERT_BEGINS;
        } else {
                append_locked(turns, turn);
        }
        pthread_mutex_unlock(&turns->mu);
        return result;
}

/* The flag stays, so that a thread that is about to enter with this turn gets CANCELED. */
bool hfd_convert_turns_cancel(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn) {
        pthread_mutex_lock(&turns->mu);
        bool waited = turn->link != NULL;
        if (waited)
                remove_locked(turns, turn);
        turn->canceled = true;
        pthread_mutex_unlock(&turns->mu);
        return waited;
}

struct hfd_convert_turn *hfd_convert_turns_leave(struct hfd_convert_turns *turns,
                                                 struct hfd_custom_kind *kind) {
        pthread_mutex_lock(&turns->mu);
        assert(turns->n > 0 && kind->n_watch_conversions > 0);
        turns->n--;
        kind->n_watch_conversions--;
        /* A kind at its limit, whose webhook may hang, must not stop the kinds behind it. */
        struct hfd_convert_turn *turn = turns->first;
        while (turn && !has_room_locked(turns, turn->kind))
                turn = turn->next;
        if (turn) {
                remove_locked(turns, turn);
                turns->n++;
                turn->kind->n_watch_conversions++;
        }
        pthread_mutex_unlock(&turns->mu);
        return turn;
}
