/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Applies the events of the store's watch to the cache: to the trees, the history and the watchers.
 *
 * Thread: that of the store's watch; not under the cacher's lock.
 */
#include <stdbool.h>

#include "server/storage/store.h"

struct hfd_cacher;
struct hfd_watcher;
struct hfd_prepared_event;

/* The work that a batch of events requires after its last event. */
struct hfd_event_batch {
        struct hfd_prepared_event *prepared; /* owned; n of them; NULL = out of memory */
        size_t n;
        struct hfd_watcher *dirty; /* watchers that have events to deliver */
        bool complete;             /* false: not all were applied; the cache must be filled again */
        bool epoch_written;        /* the epoch key (storage/keys.h) was written */
        bool term_begun;           /* this process holds a Lease from now on */
        unsigned observers;        /* bits (cacher.h): those of resources that may have changed */
        bool copy_begun;           /* `holdfastd store copy` has begun to write to this store */
};

/*
 * Applies the events, whose order is that of the store. The lock is not released between the events
 * of one revision, so no reader sees a part of them, unless one of them cannot be applied: memory
 * ran out, or an object is not valid in the form that its slot has just got. Then `complete` is
 * false. hfd_store_events_deliver must follow.
 */
void hfd_store_events_apply(struct hfd_cacher *cacher, const struct hfd_watch_event *events,
                            size_t n, struct hfd_event_batch *ret_batch);
/* Delivers to the dirty watchers, and frees the batch. */
void hfd_store_events_deliver(struct hfd_event_batch *batch);
