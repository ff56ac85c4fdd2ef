/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, see convert_turns.h. Invariant: a turn waits only while its kind, or all kinds together,
 * have no free place. So each leave frees a place, and lets one waiting turn go on. */
#include "server/registry/convert/convert_turns.h"

#include <assert.h>

#include "base/thread.h"
#include "server/resources/custom/custom_kind.h"

int hfd_convert_turns_init(struct hfd_convert_turns *turns) {
        *turns = (struct hfd_convert_turns){0};
        return hf__mutex_init(&turns->mu);
}

void hfd_convert_turns_done(struct hfd_convert_turns *turns) {
        assert(!turns->first);
        pthread_mutex_destroy(&turns->mu);
}

static bool has_room_locked(const struct hfd_convert_turns *turns,
                            const struct hfd_custom_kind *kind) {
        return turns->n < HFD_CONVERT_TURNS &&
               kind->n_watch_conversions < HFD_CONVERT_TURNS_OF_KIND;
}

bool hfd_convert_turns_enter(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn) {
        struct hfd_convert_turn **end = &turns->first;

        pthread_mutex_lock(&turns->mu);
        bool enters = has_room_locked(turns, turn->kind);
        if (enters) {
                turns->n++;
                turn->kind->n_watch_conversions++;
        } else {
                while (*end)
                        end = &(*end)->next;
                turn->next = NULL;
                *end = turn;
        }
        pthread_mutex_unlock(&turns->mu);
        return enters;
}

struct hfd_convert_turn *hfd_convert_turns_leave(struct hfd_convert_turns *turns,
                                                 struct hfd_custom_kind *kind) {
        struct hfd_convert_turn **link = &turns->first;

        pthread_mutex_lock(&turns->mu);
        assert(turns->n > 0 && kind->n_watch_conversions > 0);
        turns->n--;
        kind->n_watch_conversions--;
        while (*link && !has_room_locked(turns, (*link)->kind))
                link = &(*link)->next;
        struct hfd_convert_turn *turn = *link;
        if (turn) {
                *link = turn->next;
                turns->n++;
                turn->kind->n_watch_conversions++;
        }
        pthread_mutex_unlock(&turns->mu);
        return turn;
}
