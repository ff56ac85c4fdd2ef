/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The turns in which watches call conversion webhooks. One event may concern hundreds of watches of
 * its kind. They are not refused, but take turns: the number of calls at a time is limited, for
 * each kind and in total, and the other watches wait in the order in which they came. A watch that
 * waits accepts no further events (watch_conversion.h), and costs one entry here.
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
        struct hfd_custom_kind *kind; /* set by the caller, who has a reference */
        struct hfd_convert_turn *next;
};

struct hfd_convert_turns {
        pthread_mutex_t mu;
        /* calls under way; guarded by mu, like the number of each kind */
        size_t n;
        struct hfd_convert_turn *first; /* the turns that wait, the oldest first */
};

int hfd_convert_turns_init(struct hfd_convert_turns *turns); /* 0 or -errno */
void hfd_convert_turns_done(struct hfd_convert_turns *turns);

/* True: it is this one's turn. False: it waits, and a later leave returns it. */
bool hfd_convert_turns_enter(struct hfd_convert_turns *turns, struct hfd_convert_turn *turn);
/* A turn of this kind has ended. Returns one whose turn has come, which the caller lets go on; NULL
 * = none. */
struct hfd_convert_turn *hfd_convert_turns_leave(struct hfd_convert_turns *turns,
                                                 struct hfd_custom_kind *kind);
