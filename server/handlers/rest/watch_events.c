/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch that runs: its live events, and its end.
 *
 *      initial events -> live -> end
 *
 * Live events. If HFD_WATCH_WINDOW or more bytes wait to be sent, the stream is not ready, and the
 * changes wait in the watcher, which ends the watch if there are too many. Once the worker has sent
 * enough, the task resumes the watcher. What waits in the response and in the watcher is charged to
 * the user's account (unsent.h), which may end the watch when it is full.
 *
 * Objects that a webhook converts wait for it in a queue (registry/convert/watch_conversion.h), in
 * their order. While the queue is not empty, the stream accepts no further events.
 *
 * Invariant: after end_stream nothing is pushed, and the last user of the stream lets go of the
 * HTTP request, which may free the stream.
 */
#include "server/handlers/rest/watch_events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "server/handlers/rest/rest_request.h"
#include "server/handlers/rest/watch_guard.h"
#include "server/handlers/rest/watch_initial.h"
#include "server/registry/convert/watch_conversion.h"
#include "server/registry/list/read.h"
#include "server/resources/custom/custom_kind.h"

static void stream_free(void *ctx) {
        struct hfd_watch_stream *stream = ctx;

        hfd_watch_initial_done(stream);
        hfd_unsent_watch_remove(&stream->unsent);
        hfd_watcher_unref(atomic_load(&stream->watcher));
        hfd_watch_conversion_unref(stream->conversion);
        hfd_watch_guard_free(stream->guard);
        hfd_resource_unref(stream->form.resource);
        free(stream);
}

/* The last user first ends the tracking of the right, which uses the request, and drops the
 * reference to the request afterwards. */
void hfd_watch_stream_drop(struct hfd_watch_stream *stream) {
        int before = atomic_fetch_sub(&stream->n_users, 1);

        assert(before > 0);
        if (before != 1)
                return;
        hfd_watch_guard_untrack(stream);
        hfd_http_request_unref(stream->http_request);
}

/* ---- the watcher's calls ---- */

static bool on_ready(void *ctx) { return hfd_watch_stream_is_ready(ctx); }

static bool push_event(struct hfd_watch_stream *stream, const struct hfd_watch_item *item) {
        return hfd_watch_stream_push_events(stream,
                                            hfd_watch_frame(stream->registry, &stream->form, item));
}

/*
 * Called by the watcher with new events. Frames are separate pieces, because watches share them.
 * False: the watcher must end the watch.
 */
static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct hfd_watch_stream *stream = ctx;
        bool ok = true;

        assert(n > 0);
        if (stream->conversion)
                return hfd_watch_conversion_add(stream->conversion, items, n);
        for (size_t i = 0; i < n && ok; i++)
                ok = push_event(stream, &items[i]);
        hfd_watch_stream_charge(stream);
        return ok;
}

static void on_waiting_changed(void *ctx) {
        struct hfd_watch_stream *stream = ctx;

        hfd_unsent_watch_charge(&stream->unsent);
}

/* Ends the stream: after the watcher's last call, when no event is being delivered any more. */
static void end_stream(void *ctx) {
        struct hfd_watch_stream *stream = ctx;
        struct hf__buf *failure = stream->failure;

        stream->failure = NULL;
        if (failure)
                (void)hfd_watch_stream_push(stream, failure);
        hfd_http_request_end(stream->http_request);
        hfd_unsent_watch_update(&stream->unsent);
        atomic_store(&stream->ended, true);
        if (!hfd_work_submit(stream->registry->work, &stream->task))
                hfd_watch_stream_drop(stream); /* the pool has stopped: no step drops its use */
        hfd_watch_stream_drop(stream);
}

/* The watcher's last call. */
static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct hfd_watch_stream *stream = ctx;

        if (error != 0 && error != HF_E_CANCELED && response->body)
                stream->failure = hfd_watch_frame_error(&stream->form, response->body);
        /* An event that was not delivered is not lost: the client watches again from its last
         * event. */
        if (stream->conversion && !hfd_watch_conversion_end(stream->conversion))
                return; /* end_stream follows, perhaps has already, and may free the stream */
        end_stream(stream);
}

const struct hfd_watch_sink hfd_watch_stream_sink = {.ready = on_ready,
                                                     .waiting_changed = on_waiting_changed,
                                                     .events = on_events,
                                                     .end = on_end};

/* ---- objects that a webhook converts ---- */

static bool on_converted_event(void *ctx, struct hfd_watch_item *item) {
        struct hfd_watch_stream *stream = ctx;
        bool pushed = push_event(stream, item);

        hfd_watch_stream_charge(stream);
        return pushed;
}

/* As in Kubernetes, the watch ends with an ERROR. There is none if failure is NULL: an event could
 * not be pushed. */
static void on_conversion_failed(void *ctx, const struct hfd_response *failure) {
        struct hfd_watch_stream *stream = ctx;

        if (failure && failure->body)
                (void)hfd_watch_stream_push(stream,
                                            hfd_watch_frame_error(&stream->form, failure->body));
        hfd_watcher_cancel(atomic_load(&stream->watcher));
}

static void on_conversion_idle(void *ctx) { hfd_watch_stream_continue(ctx); }

int hfd_watch_stream_prepare_conversion(struct hfd_watch_stream *stream,
                                        const struct hfd_request *request) {
        static const struct hfd_watch_conversion_sink sink = {.event = on_converted_event,
                                                              .failed = on_conversion_failed,
                                                              .idle = on_conversion_idle,
                                                              .ended = end_stream};

        if (!hfd_read_needs_version(request))
                return 0;
        stream->conversion = hfd_watch_conversion_new(stream->registry, request, &sink, stream);
        return stream->conversion ? 0 : -ENOMEM;
}

/* ---- the task ---- */

static enum hfd_work_result step_events(struct hfd_work_task *task) {
        struct hfd_watch_stream *stream = (struct hfd_watch_stream *)task;

        if (atomic_load(&stream->ended)) {
                hfd_watch_initial_done(stream);
                hfd_watch_stream_drop(stream);
                return HFD_WORK_DONE;
        }
        if (stream->initial)
                return hfd_watch_initial_send(stream);
        hfd_watcher_resume(atomic_load(&stream->watcher));
        return HFD_WORK_IDLE;
}

/* ---- callbacks of the request; thread: worker ---- */

/* The request has ended before its response was complete (http_request.h). If there is a watcher,
 * on_end follows, perhaps within this call. Otherwise rest_watch.c cancels the watcher as soon as
 * there is one. */
static void on_gone(void *ctx) {
        struct hfd_watch_stream *stream = ctx;

        atomic_store(&stream->gone, true);
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);
        /* on_end may drop the stream's own reference, and the code below still uses the stream. The
         * connection has a reference during this call, but nothing here relies on it. */
        struct hfd_http_request *request = hfd_http_request_ref(stream->http_request);
        if (watcher)
                hfd_watcher_cancel(watcher);
        hfd_unsent_watch_update(&stream->unsent);
        hfd_http_request_unref(request);
}

/* Usually the watch is not paused, nothing is charged, and this does nothing. */
static void on_drained(void *ctx) {
        struct hfd_watch_stream *stream = ctx;

        hfd_unsent_watch_update(&stream->unsent);
        hfd_watch_stream_continue(stream);
}

/* ---- creating a stream ---- */

struct hfd_watch_stream *hfd_watch_stream_new(const struct hfd_rest_request *rest) {
        struct hfd_http_request *http_request = rest->http_request;
        struct hfd_watch_stream *stream = calloc(1, sizeof *stream);

        if (!stream)
                return NULL;
        stream->task = (struct hfd_work_task){.step = step_events, .owner = rest->request.owner};
        stream->registry = rest->registry;
        stream->http_request = hfd_http_request_ref(http_request);
        hfd_watch_form_of(&rest->request, &stream->form);
        stream->form.resource = hfd_resource_ref(stream->form.resource);
        hfd_watch_stream_init_unsent(stream, rest->unsent, rest->user);
        atomic_store(&stream->n_users, 1);
        hfd_http_request_set_handler_context(http_request, stream, stream_free);
        hfd_http_request_on_gone(http_request, on_gone, stream);
        /* Half of the limit: the worker has bytes to send while the next ones are made. */
        hfd_http_request_on_drained(http_request, HFD_WATCH_WINDOW / 2, on_drained, stream);
        return stream;
}
