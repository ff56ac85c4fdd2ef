/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch of the API: the changes of one resource (or of a namespace, or of one object), in order.
 * The model is at the head of watcher.c.
 *
 * The caller gives a sink. The cacher calls its events, and at last its end, one call at a time, on
 * any thread, under no lock. A sink must not block. When events returns false, the watch ends.
 * hfd_watcher_cancel may be called from within events.
 */
#include <holdfast/client.h>

#include "server/resources/object.h"
#include "server/resources/response.h"
#include "server/resources/selector.h"

struct hfd_cacher;
struct hfd_change;
struct hfd_watcher;

struct hfd_watch_item {
        enum hf_event_type type;
        struct hfd_object *object; /* NULL for a bookmark */
        uint64_t revision;
};
struct hfd_watcher_sink {
        bool (*events)(void *ctx, struct hfd_watch_item *items, size_t n); /* borrowed */
        /*
         * The last call. error 0: the watch ended cleanly; HF_E_CANCELED: it was cancelled;
         * otherwise response is the Status that the client gets as an ERROR event.
         */
        void (*end)(void *ctx, int error, const struct hfd_response *response);
};

/* What to watch. Strings are copied; the selectors are taken over, and left empty. */
struct hfd_watcher_spec {
        const struct hfd_resource *resource;
        const char *ns;   /* "" = all namespaces, or cluster scope */
        const char *name; /* "" = all objects */
        struct hfd_selector *labels, *fields;
        uint64_t revision; /* changes after it; 0 = begin with all that is there */
        int64_t timeout_s; /* the watch ends cleanly after it; 0 = the default */
        bool bookmarks;    /* wanted */
        bool in_process;   /* of holdfastd's own client */
};

/* The state, a part of the cacher. Guarded by its lock. */
struct hfd_watchers {
        struct hfd_watcher *list[HFD_RESOURCES_MAX]; /* by resource */
        size_t n;
        hf_nsec due; /* boot time when the next bookmark or end may be due */
        bool ended;  /* no further watch begins: the server shuts down */
};

/*
 * Begins a watch. False: response says why not, and the sink is never called. *ret_watcher is a
 * reference for the caller. The first events come with hfd_watcher_go, so that the caller can send
 * the head of its response first.
 */
bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watcher_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watcher);
void hfd_watcher_go(struct hfd_watcher *watcher);
/* end comes with HF_E_CANCELED, perhaps before this returns. Idempotent. Thread: any. */
void hfd_watcher_cancel(struct hfd_watcher *watcher);
struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watcher);

/*
 * The following queue something for watchers, under the cacher's lock, and link the watchers that
 * have something to deliver into *dirty. The caller delivers with hfd_watchers_deliver, after it
 * has released the lock.
 */
void hfd_watchers_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                struct hfd_watcher **dirty);
/* 410 for all: the history of the store was lost. */
void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* A clean end for all. */
void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/*
 * A bookmark for the watches of holdfastd's own client: a Lease has changed hands, and the new
 * holder's controllers wait until their informers have reached its acquiring write.
 */
void hfd_watchers_taken_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty);
/* The bookmarks and ends that are due at `now`. */
void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty);
void hfd_watchers_deliver(struct hfd_watcher *dirty);
