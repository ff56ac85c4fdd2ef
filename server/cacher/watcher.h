/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch of the API: what a client sees of one resource (or namespace, or object), in order.
 *
 * The adapter gives a sink; the core calls events and at last end, one at a time, on any thread,
 * under no lock. A sink must not block; events returning false ends the watch. hfd_watcher_cancel
 * may be called from within them.
 */
#include "server/registry/request.h"

struct hfd_watcher;

struct hfd_watch_item {
        enum hf_event_type type;
        struct hfd_object *object; /* NULL for a bookmark */
        uint64_t revision;
};
struct hfd_watcher_sink {
        bool (*events)(void *ctx, struct hfd_watch_item *items, size_t n); /* borrowed */
        /* error 0: ended cleanly; HF_E_CANCELED: hfd_watcher_cancel; else answer is the Status of
         * an ERROR event. The last call. */
        void (*end)(void *ctx, int error, const struct hfd_response *response);
};

/*
 * call: verb HFD_WATCH with its options; its selectors are taken over, the rest is copied. On
 * refusal answer says why, nothing is called, and false is returned. The caller gets a reference,
 * for cancel. The first events come with hfd_watcher_go, so that the adapter can send its head
 * first.
 */
bool hfd_watcher_new(struct hfd_api *api, struct hfd_request *request,
                     const struct hfd_watcher_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watch);
void hfd_watcher_go(struct hfd_watcher *watch);
void hfd_watcher_cancel(struct hfd_watcher *watch); /* end comes with HF_E_CANCELED, perhaps before
                                                   it returns. Idempotent */
struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watch);
