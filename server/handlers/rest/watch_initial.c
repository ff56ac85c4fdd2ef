/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initial events of a watch.
 *
 * The watcher has a snapshot of the objects that exist. Their frames are made on the pool of
 * threads, in chunks that all watches of the same state share (rendering.h), and only while fewer
 * than HFD_WATCH_WINDOW bytes wait to be sent. Meanwhile the changes wait in the watcher. So a
 * client that does not read costs a cursor and a few chunks.
 *
 * Objects that a webhook converts (registry/convert/watch_conversion.h) go through the queue of the
 * conversion in batches, in their order, as live events do later.
 *
 * Invariant: once the stream is open, only a step of its task uses the initial events. If no last
 * step runs, because the pool has stopped, they are freed with the stream.
 */
#include "server/handlers/rest/watch_initial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/registry/convert/watch_conversion.h"
#include "server/registry/list/rendering.h"

/* Initial events that a webhook converts at a time. */
#define BATCH 100

struct hfd_watch_initial {
        struct hfd_rendering
                *rendering; /* owned reference; NULL = a webhook converts the objects */
        struct hfd_rendering_cursor cursor;
        uint64_t revision; /* of the snapshot */
        /* The members below are only for objects that a webhook converts. */
        struct hfd_snapshot snapshot; /* owned */
        struct hfd_scope scope;       /* of the watched objects */
        /* The last object that was looked at, borrowed from the snapshot; NULL = none yet. */
        const struct hfd_object *at;
        bool all_queued;
};

void hfd_watch_initial_done(struct hfd_watch_stream *stream) {
        if (!stream->initial)
                return;
        hfd_rendering_unref(stream->initial->rendering);
        hfd_snapshot_done(&stream->initial->snapshot);
        free(stream->initial);
        stream->initial = NULL;
}

int hfd_watch_initial_take(struct hfd_watch_stream *stream, const struct hfd_request *request,
                           struct hfd_watcher *watcher) {
        struct hfd_rendering_spec spec = {.request = request, .frames = true};
        HF__CLEANUP(hfd_snapshot_done) struct hfd_snapshot snapshot = {0};

        if (!hfd_watcher_take_snapshot(watcher, &snapshot))
                return 0;
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_watch_initial *initial = calloc(1, sizeof *initial);
        if (!initial)
                return -ENOMEM;
        initial->revision = snapshot.revision;
        hfd_watcher_filter(watcher, &spec.labels, &spec.fields, &spec.name);
        if (stream->conversion) {
                initial->snapshot = snapshot;
                snapshot = (struct hfd_snapshot){0}; /* it is the initial events' now */
                hfd_object_scope(request->resource,
                                 hfd_selector_namespace(spec.fields, request->ns), spec.name,
                                 &initial->scope);
        } else {
                int r = hfd_rendering_get(stream->registry->renderings, &spec, &snapshot,
                                          &initial->rendering);
                if (r != 0)
                        return r;
        }
        stream->initial = HF__TAKE(initial);
        return 0;
}

/* ---- objects that a webhook converts ---- */

/* 0 or -ENOMEM. */
static int is_selected(struct hfd_object *object, const struct hfd_selector *labels,
                       const struct hfd_selector *fields, const char *name, bool *ret_selected) {
        int r = 0;

        *ret_selected = !name || !*name || strcmp(name, hfd_object_name(object)) == 0;
        if (*ret_selected)
                r = hfd_selector_matches(labels, object, ret_selected);
        if (r == 0 && *ret_selected)
                r = hfd_selector_matches(fields, object, ret_selected);
        return r;
}

/* The objects that were queued before have been delivered, because the stream is ready. Queues the
 * next ones. Returns true if all had been queued before this call. *ret_good false: memory is short
 * or an object could not be queued, and the watch must end. */
static bool convert_some(struct hfd_watch_stream *stream, bool *ret_good) {
        struct hfd_watch_initial *initial = stream->initial;
        const struct hfd_selector *labels, *fields;
        struct hfd_watch_item items[BATCH];
        struct hfd_object_iter iter;
        struct hfd_object *object = NULL;
        const char *name;
        size_t n = 0;

        *ret_good = true;
        if (initial->all_queued)
                return true;
        hfd_watcher_filter(atomic_load(&stream->watcher), &labels, &fields, &name);
        hfd_object_iter_init(&iter, &initial->snapshot.objects, &initial->scope,
                             initial->at ? initial->at->path : "");
        for (size_t i = 0; *ret_good && i < BATCH; i++) {
                bool selected;
                object = hfd_object_iter_next(&iter);
                if (!object)
                        break;
                *ret_good = is_selected(object, labels, fields, name, &selected) == 0;
                if (*ret_good && selected)
                        items[n++] = (struct hfd_watch_item){.type = HF_EVENT_ADDED,
                                                             .object = object,
                                                             .revision = object->revision};
                initial->at = object;
        }
        initial->all_queued = !object;
        *ret_good = *ret_good && (n == 0 || hfd_watch_conversion_add(stream->conversion, items, n));
        return false;
}

/* ---- sending ---- */

/* Sends one chunk. Returns whether it was the last one. *ret_good false: the watch must end. */
static bool send_chunk(struct hfd_watch_stream *stream, bool *ret_good) {
        struct hfd_watch_initial *initial = stream->initial;
        struct hf__buf *chunk = NULL;

        *ret_good = hfd_rendering_next(initial->rendering, &initial->cursor, &chunk) == 0;
        if (*ret_good && chunk)
                *ret_good = hfd_watch_stream_push_events(stream, chunk);
        return initial->cursor.ended;
}

/* The bookmark after the initial events, if the client wants it. */
static bool push_end(struct hfd_watch_stream *stream) {
        const struct hfd_watch_form *form = &stream->form;

        if (!form->marks_initial_end)
                return true;
        return hfd_watch_stream_push_events(stream,
                                            hfd_watch_frame_initial_end(stream->registry, form,
                                                                        stream->initial->revision));
}

enum hfd_work_result hfd_watch_initial_send(struct hfd_watch_stream *stream) {
        bool good, all;

        if (!hfd_watch_stream_is_ready(stream))
                return HFD_WORK_IDLE;
        if (stream->initial->rendering)
                all = send_chunk(stream, &good);
        else
                all = convert_some(stream, &good);
        if (good && !all)
                return HFD_WORK_MORE;
        good = good && push_end(stream);
        hfd_watch_initial_done(stream);
        if (good)
                hfd_watcher_start(atomic_load(&stream->watcher));
        else
                hfd_watcher_cancel(atomic_load(&stream->watcher));
        return HFD_WORK_IDLE;
}
