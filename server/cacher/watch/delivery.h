/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The delivery of a watch: the queue of its changes, and how they get to its sink. Only watcher.c
 * and watchers.c use it: they know when a watch begins, what it gets and when it ends. The head of
 * delivery.c describes the model.
 *
 *      new --start--> delivers what is queued --end requested, queue delivered or dropped--> ended
 *      new --open, end requested; or cancel------------------------------------------------> ended
 *
 * Lock: mu, the cacher's lock. Functions whose name ends in _locked are called with it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "server/cacher/history/event_history.h"
#include "server/cacher/watch/snapshot.h"
#include "server/cacher/watch/watch_sink.h"
#include "server/resources/selection/selector.h"

struct hfd_queued_change {
        struct hfd_change change; /* owns its references; object NULL = bookmark */
        uint64_t revision;
};

/* Begins with the immutable members set and all others zero. What queueing a change needs comes
 * first, in few cache lines: it is done for all watchers under the lock. */
struct hfd_delivery {
        /* immutable */
        pthread_mutex_t *mu; /* borrowed */
        const char *ns;      /* borrowed; "" = all */
        size_t n_ns;
        const char *name; /* borrowed; the only one; NULL = any */

        /* guarded by mu */
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
        /* Of the changes that wait in queue. Read also without mu, as a measure only, so relaxed:
         * sink.waiting_changed or sink.end tells the owner when to read it again. */
        atomic_size_t n_bytes;
        bool behind; /* the sink was told that changes wait */
        /* Changes in the history since the watch's revision, also of other objects: the queue may
         * be longer than the limit by this number. 0 once delivered. */
        size_t n_initial;
        struct hfd_snapshot *snapshot; /* owned; not delivered yet; NULL = none */

        /* immutable */
        struct hfd_watch_sink sink;
        void *ctx;
        const struct hfd_resource *resource;
        struct hfd_selector labels, fields; /* owned */
};

/* Frees what the delivery owns. Requires that no thread delivers. */
void hfd_delivery_done(struct hfd_delivery *delivery);

/* Whether the namespace and the name match. Selectors are applied when a change is delivered. */
bool hfd_delivery_is_watched(const struct hfd_delivery *delivery, const struct hfd_object *object);
/*
 * Queues a copy of change, with additional references. If the queue is full or memory runs out, the
 * watch ends cleanly, and the client can watch again from the last event that it received. Does
 * nothing once the end was requested.
 */
void hfd_delivery_queue_locked(struct hfd_delivery *delivery, const struct hfd_change *change,
                               uint64_t revision);
/* Requests the end, normally after the changes that are queued. The first error is kept. */
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
