/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Remembers whether the store has room, as far as the replies to writes show it.
 *
 * Thread: any.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/clock.h>

#include "server/storage/store.h"

/* What the cacher remembers. Zeroed: the store has room. */
struct hfd_store_room {
        /* The boot time at which a write was last refused for lack of room; 0 = none was refused
         * since the last put that succeeded. */
        atomic_llong refused_at;
};

/* Called for every reply. puts: the request was a transaction with a put. */
void hfd_store_room_replied(struct hfd_store_room *room, bool puts,
                            const struct hfd_store_reply *reply, hf_nsec now);
