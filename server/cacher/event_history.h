/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The last changes of all objects, oldest first, in a ring: a watch that begins at an earlier
 * resourceVersion is served from it. Pure. Guarded by the cacher's lock.
 *
 * Invariant: every change after `floor` is in the ring. A watch from an older resourceVersion
 * cannot be served without a gap, and gets 410.
 */
#include <holdfast/client.h>

#include "server/resources/object.h"

#define HFD_EVENT_HISTORY_EVENTS 4096
#define HFD_EVENT_HISTORY_BYTES  (16u << 20) /* the objects' own bytes */

/* What happened to one object. */
struct hfd_change {
        enum hf_event_type type;
        /* owned; of a deletion: the last state of the object, at the deletion's revision */
        struct hfd_object *object;
        struct hfd_object *before; /* owned; the state before the change; NULL when added */
};

struct hfd_event_history {
        struct hfd_change ring[HFD_EVENT_HISTORY_EVENTS];
        size_t first, n; /* the oldest change, and how many there are */
        size_t n_bytes;
        uint64_t floor;
};

/* Takes the references of change. The oldest changes make room for it. */
void hfd_event_history_add(struct hfd_event_history *history, struct hfd_change change);
/* Drops all changes. The caller sets floor to the revision from which changes are added again. */
void hfd_event_history_clear(struct hfd_event_history *history);
/* The change number i, 0 the oldest, i < n. Borrowed until the next add or clear. */
const struct hfd_change *hfd_event_history_at(const struct hfd_event_history *history, size_t i);
