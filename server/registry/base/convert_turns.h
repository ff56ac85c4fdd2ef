/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns: which watches may call conversion webhooks at the moment. One event of a kind may concern
 * hundreds of watches, so a watch beyond the limits waits instead of being refused. The limits
 * count the calls for each kind and for all kinds. The watches beyond them wait in the order in
 * which they came; a watch whose kind is at its limit is passed over.
 *
 * A watch that waits costs one entry in the list, and accepts no further events
 * (watch_conversion.h). When it ends, it leaves the list. Otherwise a client that begins and ends
 * watches would fill the list while a webhook hangs.
 *
 * Lock: a mutex guards the counts and the list. Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct hfd_custom_kind;

#define HFD_CONVERT_TURNS_OF_KIND 16
#define HFD_CONVERT_TURNS         64

/* A member of the caller's struct, zero at first, which must live while the turn waits. */
struct hfd_convert_turn {
        /* set by the caller, which keeps a reference to the kind while it uses the turn */
        struct hfd_custom_kind *kind;
        void *job; /* for the caller */
        /* guarded by mu */
        struct hfd_convert_turn *next,
                **link; /* link: the pointer to this turn; NULL = it does not wait */
        bool canceled;
};

enum hfd_convert_enter { HFD_CONVERT_BEGINS, HFD_CONVERT_WAITS, HFD_CONVERT_CANCELED };

struct hfd_convert_turns {
        pthread_mutex_t mu;
        /* calls under way; guarded by mu, as is n_watch_conversions of each kind (custom_kind.h) */
        size_t n;
        struct hfd_convert_turn *first, **end; /* the list of turns that wait */
};

int hfd_convert_turns_init(struct hfd_convert_turns *turns); /* 0 or -errno */
/* Requires that no turn waits. */
void hfd_convert_turns_done(struct hfd_convert_turns *turns);

/* BEGINS: the caller has the turn, and ends it with hfd_convert_turns_leave. WAITS: a later
 * hfd_convert_turns_leave returns the turn, unless it is canceled first. CANCELED: the turn was
 * canceled before. */
enum hfd_convert_enter hfd_convert_turns_enter(struct hfd_convert_turns *turns,
                                               struct hfd_convert_turn *turn);
/* From now on this turn does not begin. True: it was waiting, and the caller must end its job. */
bool hfd_convert_turns_cancel(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn);
/* Ends a turn of this kind. Returns a turn that waited and begins now; the caller must continue its
 * job. NULL = none. */
struct hfd_convert_turn *hfd_convert_turns_leave(struct hfd_convert_turns *turns,
                                                 struct hfd_custom_kind *kind);
