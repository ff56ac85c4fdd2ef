/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The delivery of a watch: the queue of its changes, and how they get to its sink. Only watcher.c
 * and watchers.c call it: they know when a watch begins, what it gets and when it ends. The head of
 * delivery.c describes the model.
 *
 *      new --start--> delivers what is queued --end requested, queue delivered or dropped--> ended
 *      new --open, end requested; or cancel------------------------------------------------> ended
 *
 * Lock: the cacher's. Functions whose name ends in _locked are called with it.
 */
#include <stdatomic.h>

#include "server/cacher/history/event_history.h"
#include "server/cacher/watch/snapshot.h"
#include "server/cacher/watch/watch_sink.h"
#include "server/resources/selection/selector.h"

struct hfd_queued_change {
        struct hfd_change change; /* owns its references; object NULL = bookmark */
        uint64_t revision;
};

/* Begins with the immutable members set, the snapshot if the watch begins with the existing
 * objects, and all others zero. The members that queueing a change needs come first, in few cache
 * lines, because one change is queued for many watchers under the lock. */
struct hfd_delivery {
        /* immutable */
        struct hfd_cacher *cacher; /* borrowed */
        const char *ns;            /* borrowed; "" = all */
        size_t n_ns;
        const char *name; /* borrowed; the only one; NULL = any */

        /* guarded by the cacher's lock */
        bool started;       /* hfd_watcher_start or hfd_watcher_cancel was called */
        bool opened;        /* hfd_watcher_open was called */
        bool resumed;       /* hfd_watcher_resume was called since the sink was last asked */
        bool drops_queue;   /* the end does not wait until the queue is delivered */
        bool delivering;    /* a thread is in hfd_delivery_run_locked */
        bool ended;         /* hfd_delivery_run_locked has returned true */
        bool end_requested; /* no change is queued any more */
        int end_error;      /* for sink.end, if end_requested */
        struct hfd_queued_change *queue; /* owned; changes queue_at to n_queue wait */
        size_t queue_at, n_queue, queue_space;
        /* The bytes of the changes that wait in queue (queued_bytes). Read without the lock, too:
         * it is only a measure, so relaxed order is enough. sink.waiting_changed or sink.end tells
         * the owner of the watch when to read the number again. */
        atomic_size_t n_bytes;
        bool behind;       /* the sink was told that changes wait */
        bool catches_up;   /* changes are taken from the history; nothing is queued */
        bool bookmark_due; /* a bookmark was to be queued while it catches up */
        uint64_t past;     /* the number of the next change in the history, if catches_up */
        struct hfd_snapshot *snapshot; /* owned; not delivered yet; NULL = none */

        /* immutable */
        struct hfd_watch_sink sink;
        void *ctx;
        const struct hfd_resource *resource;
        struct hfd_selector labels, fields; /* owned */
};

/* Frees what the delivery owns. Requires that no thread delivers. */
void hfd_delivery_done(struct hfd_delivery *delivery);

/*
 * Before the start: the watch gets the changes of its resource's history from index `first` on, and
 * then those that are queued. They are read while they are delivered, so this takes constant time.
 */
void hfd_delivery_catch_up_locked(struct hfd_delivery *delivery,
                                  const struct hfd_event_history *history, size_t first);
/* Whether the namespace and the name match. Selectors are applied when a change is delivered. */
bool hfd_delivery_is_watched(const struct hfd_delivery *delivery, const struct hfd_object *object);
/*
 * Queues a copy of change, with additional references. If the queue is full or memory runs out, the
 * watch ends cleanly, and the client can watch again from the last event that it received. Does
 * nothing once the end was requested. While the watch catches up, a change is not queued, because
 * it is in the history; a bookmark is put off until the watch has caught up.
 */
void hfd_delivery_queue_locked(struct hfd_delivery *delivery, const struct hfd_change *change,
                               uint64_t revision);
/* Requests the end, normally after the changes that are queued. A watch that catches up ends
 * without the rest of the history. The first error is kept. */
void hfd_delivery_request_end_locked(struct hfd_delivery *delivery, int error);
/* Requests the end without the queued changes, unless the watch has ended. Replaces the error. */
void hfd_delivery_cancel_locked(struct hfd_delivery *delivery);

/*
 * Delivers the queue, if the watch was started and no other thread is delivering: that thread also
 * delivers what was added meanwhile. Releases the lock while it calls the sink. True: the watch has
 * ended, and the caller calls hfd_delivery_end after it has released the lock. The caller has a
 * reference to the watcher.
 */
bool hfd_delivery_run_locked(struct hfd_delivery *delivery);
/* Frees the changes that are left in the queue, and calls sink.end. Not under the lock; only after
 * hfd_delivery_run_locked has returned true. */
void hfd_delivery_end(struct hfd_delivery *delivery);
