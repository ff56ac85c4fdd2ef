/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers whether the store has room.
 *
 * Invariant: only the reply to a put shows that there is room. A transaction that only deletes
 * succeeds in a full etcd, too. The elector and the renewal of the identity Lease
 * (controllers/instances/) put all the time, so the state becomes right again even if no client
 * writes.
 */
#include "server/cacher/requests/store_room.h"

#include <assert.h>
#include <errno.h>

void hfd_store_room_replied(struct hfd_store_room *room, bool puts,
                            const struct hfd_store_reply *reply, hf_nsec now) {
        assert(now > 0);
        if (reply->error == -ENOSPC)
                atomic_store(&room->refused_at, now);
        else if (puts && !reply->error)
                atomic_store(&room->refused_at, 0);
}
