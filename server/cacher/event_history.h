/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ring of the most recent changes to all objects, oldest first. If a watch begins at an earlier
 * resourceVersion, its first events come from the ring. Pure. Guarded by the cacher's lock.
 *
 * Invariant: every change after `floor` is in the ring. A watch from an older resourceVersion
 * cannot be served without a gap, so the client gets 410.
 */
#include <holdfast/client.h>

#include "server/resources/object.h"

#define HFD_EVENT_HISTORY_EVENTS 4096
#define HFD_EVENT_HISTORY_BYTES  (16u << 20) /* size of the objects; `before` is not counted */

/* What happened to one object. */
struct hfd_change {
        enum hf_event_type type;
        /* owned; after a deletion, the object's last state with the revision of the deletion */
        struct hfd_object *object;
        struct hfd_object *before; /* owned; the state before the change; NULL = did not exist */
};

struct hfd_event_history {
        struct hfd_change ring[HFD_EVENT_HISTORY_EVENTS];
        size_t first, n; /* index of the oldest change, and the number of changes */
        size_t n_bytes;
        uint64_t floor; /* the ring contains every change after this revision */
};

/* Consumes the references in change. If the ring is full, drops the oldest changes. */
void hfd_event_history_add(struct hfd_event_history *history, struct hfd_change change);
/*
 * Drops all changes. The caller then sets floor to the cache's revision; only later changes may be
 * added.
 */
void hfd_event_history_clear(struct hfd_event_history *history);
/* Returns change number i < n; 0 is the oldest. Borrowed until the next add or clear. */
const struct hfd_change *hfd_event_history_at(const struct hfd_event_history *history, size_t i);
