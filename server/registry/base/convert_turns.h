/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns of watches in calling conversion webhooks. One event of a kind may concern hundreds of
 * watches, so they take turns instead of being refused: of each kind, and of all, only so many call
 * at a time, and the others wait in the order in which they came. A watch that waits has no room
 * (watch_conversion.h), and costs one entry here. When it ends, it leaves the list: otherwise a
 * client that begins and ends watches would fill it while a webhook hangs.
 *
 * Lock: a mutex guards the counts and the list. Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct hfd_custom_kind;

#define HFD_CONVERT_TURNS_OF_KIND 16
#define HFD_CONVERT_TURNS         64

/* A member of the caller's struct, which must live while the turn waits. */
struct hfd_convert_turn {
        /* set by the caller, who has a reference */
        struct hfd_custom_kind *kind;
        void *job; /* for the caller */
        /* guarded by mu */
        struct hfd_convert_turn *next,
                **link; /* link: what points to it; NULL = it does not wait */
        bool canceled;
};

enum hfd_convert_enter { HFD_CONVERT_BEGINS, HFD_CONVERT_WAITS, HFD_CONVERT_CANCELED };

struct hfd_convert_turns {
        pthread_mutex_t mu;
        /* calls under way; guarded by mu, like the number of each kind */
        size_t n;
        struct hfd_convert_turn *first, **end; /* those that wait */
};

int hfd_convert_turns_init(struct hfd_convert_turns *turns); /* 0 or -errno */
void hfd_convert_turns_done(struct hfd_convert_turns *turns);

/* WAITS: a later leave returns it, unless it is canceled. CANCELED: it was, and gets no turn. */
enum hfd_convert_enter hfd_convert_turns_enter(struct hfd_convert_turns *turns,
                                               struct hfd_convert_turn *turn);
/* It gets no turn any more. True: it waited, and the caller ends its job. */
bool hfd_convert_turns_cancel(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn);
/* A turn of this kind has ended. Returns one whose turn has come, which the caller lets go on; NULL
 * = none. */
struct hfd_convert_turn *hfd_convert_turns_leave(struct hfd_convert_turns *turns,
                                                 struct hfd_custom_kind *kind);
