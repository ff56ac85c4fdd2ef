/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API watch: it delivers the changes to one resource, to one namespace of it, or to one object,
 * in order. The head of watcher.c describes the model.
 *
 * The caller supplies a sink (watch_sink.h). A watch may begin with the objects that exist. These
 * are not queued: the watcher has a snapshot of them. The owner of the sink may take the snapshot
 * and send its objects in its own time, before it starts the watcher.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/cacher/watch/watch_sink.h"
#include "server/resources/selection/selector.h"

struct hfd_cacher;
struct hfd_snapshot;
struct hfd_watcher;

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
        /* Deliver the changes after it, and perhaps its own again (hfd_event_history_resume). 0 =
         * begin with all existing objects. */
        uint64_t revision;
        bool from_now;     /* with revision 0: deliver only changes from now on */
        int64_t timeout_s; /* the watch ends cleanly after this time; 0 = the default */
        bool bookmarks;    /* the client wants bookmarks */
        bool in_process;   /* the client is the loopback client */
};

/*
 * Begins a watch. False: response contains the failure, and the sink is never called. The caller
 * owns the reference *ret_watcher. No event is delivered before hfd_watcher_start, so that the
 * caller can send its response headers first. The caller must call start or cancel, because a watch
 * that was neither started, opened nor canceled does not end. ctx lives until sink.end returns.
 */
bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watch_sink *sink, void *ctx, struct hfd_response *response,
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
 * objects of the resource; hfd_watcher_filter and the namespace tell which ones are watched. Only
 * its objects and revision are set, so it is not for hfd_snapshot_keep.
 */
bool hfd_watcher_take_snapshot(struct hfd_watcher *watcher, struct hfd_snapshot *ret_snapshot);
/* The selection of the watch, borrowed from watcher. *ret_name NULL = any name. */
void hfd_watcher_filter(const struct hfd_watcher *watcher, const struct hfd_selector **ret_labels,
                        const struct hfd_selector **ret_fields, const char **ret_name);
/* The sink has room again: delivers what has waited. Thread: any. */
void hfd_watcher_resume(struct hfd_watcher *watcher);
/* Ends the watch: sink.end is called soon with HF_E_CANCELED, perhaps before this returns, unless
 * the watch has already ended. Idempotent. Thread: any. */
void hfd_watcher_cancel(struct hfd_watcher *watcher);
/* Returns the bytes of the changes that are queued for the sink, without those that the watch will
 * take from the history. Each counts its object before and after the change, although other watches
 * and the history may share them. Thread: any. */
size_t hfd_watcher_waiting(const struct hfd_watcher *watcher);
/* Drops the caller's reference, and does not end the watch: the cacher keeps it until sink.end.
 * Accepts NULL, returns NULL. */
struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watcher);
