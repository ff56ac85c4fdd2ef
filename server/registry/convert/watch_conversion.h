/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A queue of the events of one watch whose objects a webhook converts. Events are converted in
 * batches and delivered when the webhook has responded. Until then the watch accepts no further
 * events: they wait in the watcher, which limits their number.
 *
 * Lock: a mutex guards the queue and the state. It is not held while the sink is called. Thread:
 * any, but the caller never calls add and end at the same time, just as a watcher never calls its
 * sink twice at the same time. The sink is called by one thread at a time: the one that calls add,
 * or the one on which the conversion ends.
 */
#include "server/cacher/watch/watcher.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

struct hfd_watch_conversion;

struct hfd_watch_conversion_sink {
        /* One event, whose object has the version of the request; a bookmark has no object.
         * item->before is NULL. False: the watch must end. */
        bool (*event)(void *ctx, struct hfd_watch_item *item);
        /* The watch must end. failure: for the client, borrowed; NULL = event has returned false.
         * No event follows, but idle may. */
        void (*failed)(void *ctx, const struct hfd_response *failure);
        /* All events were delivered (or dropped, after failed), so the watch accepts events again.
         * Called only if hfd_watch_conversion_is_idle has returned false since the last call. */
        void (*idle)(void *ctx);
        /* The last call. It follows only if hfd_watch_conversion_end has returned false. */
        void (*ended)(void *ctx);
};

/* Of request only resource and owner are used, during the call. sink and ctx are borrowed until the
 * last call of the sink. The caller owns one reference. NULL = out of memory, or no mutex. */
struct hfd_watch_conversion *hfd_watch_conversion_new(struct hfd_registry *registry,
                                                      const struct hfd_request *request,
                                                      const struct hfd_watch_conversion_sink *sink,
                                                      void *ctx);
/* Accepts NULL; returns NULL. */
struct hfd_watch_conversion *hfd_watch_conversion_unref(struct hfd_watch_conversion *c);

/* Queues n events, and takes references to their objects; after `failed` or the end it ignores
 * them. May deliver them before it returns. False: out of memory; nothing was queued. */
bool hfd_watch_conversion_add(struct hfd_watch_conversion *c, const struct hfd_watch_item *items,
                              size_t n);
/* Whether nothing is queued, being converted or being delivered. False: sink.idle follows, unless
 * the watch ends. */
bool hfd_watch_conversion_is_idle(struct hfd_watch_conversion *c);
/* Drops what is queued, and the webhook's response. True: the sink is not called any more. False:
 * the sink is being called, by another thread or further up in this call stack; it may still get
 * the rest of the current batch, and sink.ended follows. Call it once. */
bool hfd_watch_conversion_end(struct hfd_watch_conversion *c);
