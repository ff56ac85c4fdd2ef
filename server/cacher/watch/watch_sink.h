/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sink of a watch receives its events. The owner of the watch implements it.
 *
 * The cacher calls events any number of times and then end once. These calls never overlap. They
 * run on any thread, with no lock held, and must not block. If events returns false, the watch
 * ends. events may call hfd_watcher_cancel.
 *
 * A sink that has no room says so in ready. Its changes then wait in the watcher, as references to
 * objects that all watchers share, until hfd_watcher_resume; if there are too many, the watch ends.
 * What a watch has missed before its begin waits in the cacher's history of changes instead, and no
 * memory is counted for it. If the history drops it, the watch ends with 410.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "server/resources/objects/object.h"
#include "server/resources/response.h"

struct hfd_watch_item {
        enum hf_event_type type;
        struct hfd_object *object; /* NULL for a bookmark */
        uint64_t revision;
        /* The version that a MODIFIED event has replaced; borrowed until `events` returns. NULL: it
         * is not known, or the event is not MODIFIED. */
        const struct hfd_object *before;
};

struct hfd_watch_sink {
        /* Whether the sink has room for some events. NULL = always. It is called before events, but
         * not for initial events from a snapshot (snapshot.h), which are delivered at once. */
        bool (*ready)(void *ctx);
        /*
         * Changes wait now, because the watch has not started or the sink has no room, or they no
         * longer wait: read hfd_watcher_waiting. Called without a lock and never concurrently with
         * the other calls. May end other watches. NULL = not called.
         */
        void (*waiting_changed)(void *ctx);
        bool (*events)(void *ctx, struct hfd_watch_item *items, size_t n); /* borrowed */
        /*
         * The last call. error 0: the watch ended cleanly. HF_E_CANCELED: it was canceled.
         * HF_E_GONE: the client gets response, a Status, as an ERROR event. response is borrowed
         * until the call returns.
         */
        void (*end)(void *ctx, int error, const struct hfd_response *response);
};
