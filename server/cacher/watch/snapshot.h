/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A snapshot: all objects of one resource at one revision. It never changes, so its owner walks
 * through it without the lock, with a hfd_object_iter (object_tree.h), and may keep it for any
 * time. Until it is freed, the versions of objects that have been replaced since stay in memory.
 *
 * Thread: any; not under the cacher's lock.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/cacher/history/object_tree.h"

struct hfd_cacher;

struct hfd_snapshot {
        struct hfd_object_tree objects; /* owned; must not be changed */
        /* owned; by key: the values that no object could be made from (state/stored_value.h), as
         * they were when the snapshot was taken. The sealed ones of this resource were the same at
         * `revision`, as the head of snapshot.c says; the invalid ones need not be. */
        struct hfd_object_tree unreadable;
        uint64_t revision; /* of the list */
        /* For hfd_snapshot_keep. */
        uint64_t changed; /* tells which state `objects` is (hfd_event_history_changed) */
        uint64_t fill;    /* the filling of the cache that it comes from */
};

/*
 * Takes a snapshot: the current state (at 0), or the state at revision `at`, while the history of
 * the resource reaches back to it. Takes a short time, except for the state at a revision that was
 * not kept: its time grows with the changes since, but the lock is held for a few of them at a
 * time. False: the cache is not filled, does not know that state, would have to undo too many
 * changes, or memory ran out. Then nothing must be freed.
 */
bool hfd_snapshot_take(struct hfd_cacher *cacher, const struct hfd_resource *resource, uint64_t at,
                       struct hfd_snapshot *ret_snapshot);
/*
 * Takes a snapshot of the current state. 0, -ENOMEM, or -EAGAIN: the cache was not filled when this
 * was called, or was emptied meanwhile. When it is filled, its observers are notified.
 */
int hfd_snapshot_take_now(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                          struct hfd_snapshot *ret_snapshot);
/*
 * Call it when a client gets a continue token with the snapshot's revision: the cacher keeps the
 * state as long as the history reaches back to it, unless too many states are kept later. The
 * caller still owns its snapshot.
 */
void hfd_snapshot_keep(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                       const struct hfd_snapshot *snapshot);
/* Accepts {0}. May free many objects. */
void hfd_snapshot_done(struct hfd_snapshot *snapshot);
