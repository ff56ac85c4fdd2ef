/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API watch: it delivers the changes to one resource, to one namespace of it, or to one object,
 * in order. The head of watcher.c describes the model.
 *
 * The caller supplies a sink (watch_sink.h). The objects that exist when a watch begins are not
 * queued: the watcher has a snapshot of them. The owner of the sink may take it and send the
 * objects in its own time, before it starts the watcher.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "server/cacher/watch/watch_sink.h"
#include "server/resources/selection/selector.h"

struct hfd_cacher;
struct hfd_change;
struct hfd_snapshot;
struct hfd_watcher;
struct hfd_watchers;

/*
 * The parameters of a watch. Strings are copied. hfd_watcher_new moves the contents of the
 * selectors to the watcher, and leaves the selectors empty, even if the watch cannot begin. If
 * memory runs out, they may keep their contents.
 */
struct hfd_watcher_spec {
        const struct hfd_resource *resource;
        const char *ns;   /* "" = all namespaces, or cluster scope */
        const char *name; /* "" = all objects */
        struct hfd_selector *labels, *fields;
        uint64_t revision; /* deliver only later changes; 0 = begin with all existing objects */
        bool from_now;     /* with revision 0: deliver only changes from now on */
        int64_t timeout_s; /* the watch ends cleanly after this time; 0 = the default */
        bool bookmarks;    /* the client wants bookmarks */
        bool in_process;   /* the client is the loopback client */
};

/* NULL: out of memory. */
struct hfd_watchers *hfd_watchers_new(void);
/* Every watch has ended. Accepts NULL; returns NULL. */
struct hfd_watchers *hfd_watchers_free(struct hfd_watchers *watchers);

/*
 * Begins a watch. False: response contains the failure, and the sink is never called. The caller
 * owns the reference *ret_watcher. No event is delivered before hfd_watcher_start, so that the
 * caller can send its response headers first. The caller must call start or cancel, because a watch
 * that was neither started, opened nor canceled does not end. ctx lives until sink.end returns.
 */
bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watcher_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watcher);
/* From now on the sink gets events, perhaps before this returns. Thread: any. */
void hfd_watcher_start(struct hfd_watcher *watcher);
/*
 * Before start, for an owner that first sends the snapshot: from now on sink.end may be called also
 * without a cancel. If the watch ends before start, its changes are not delivered.
 */
void hfd_watcher_open(struct hfd_watcher *watcher);
/*
 * Moves the snapshot of the objects that exist to the caller, who frees it. False: there is none,
 * because the watch begins at a revision or now. Call before start. The snapshot contains all
 * objects of the resource; hfd_watcher_filter and the namespace tell which ones are watched.
 */
bool hfd_watcher_take_snapshot(struct hfd_watcher *watcher, struct hfd_snapshot *ret_snapshot);
/* What the watch selects, borrowed. *ret_name NULL = any name. */
void hfd_watcher_filter(const struct hfd_watcher *watcher, const struct hfd_selector **ret_labels,
                        const struct hfd_selector **ret_fields, const char **ret_name);
/* The sink has room again: delivers what has waited. Thread: any. */
void hfd_watcher_resume(struct hfd_watcher *watcher);
/* Ends the watch: sink.end is called soon with HF_E_CANCELED, perhaps before this returns, unless
 * the watch has already ended. Idempotent. Thread: any. */
void hfd_watcher_cancel(struct hfd_watcher *watcher);
/* Returns the bytes of the changes that wait for the sink. Each counts its object before and after
 * the change, although other watches and the history may share them. Thread: any. */
size_t hfd_watcher_waiting(const struct hfd_watcher *watcher);
/* Drops the caller's reference, and does not end the watch: the cacher keeps it until sink.end.
 * Accepts NULL, returns NULL. */
struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watcher);

/*
 * The caller of the following functions holds the cacher's lock. They queue events for watchers, or
 * request their end, and link these watchers into *dirty. After the caller has released the lock,
 * it passes the list to hfd_watchers_deliver.
 */
/* Returns the number of watchers that get the change. */
size_t hfd_watchers_queue_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                        struct hfd_watcher **dirty);
/* Ends all watches with 410, because the cache cannot tell which changes they have missed. */
void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* The same for the watches of one resource. */
void hfd_watchers_expire_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                         struct hfd_watcher **dirty);
/* Ends the watches of one resource cleanly. */
void hfd_watchers_end_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                      struct hfd_watcher **dirty);
/* Ends all watches cleanly. From now on no watch begins. */
void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/*
 * Called when a Lease has a new holder. Queues a bookmark for the watches of the loopback client
 * that want bookmarks, because the new holder's controllers wait until their informers have reached
 * the write that acquired the Lease.
 */
void hfd_watchers_lease_acquired_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* The boot time before which no bookmark and no end of a watch is due. */
hf_nsec hfd_watchers_due_locked(const struct hfd_cacher *cacher);
/* Queues the bookmarks that are due at `now`, and ends the watches whose time is over. */
void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty);
/* Delivers to each watcher of the list. The caller must not hold the lock. */
void hfd_watchers_deliver(struct hfd_watcher *dirty);
