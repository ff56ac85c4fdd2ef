/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what waits to be sent on a stream: whether there is room for more, and what the user's
 * account is charged for it (unsent.h).
 *
 * Invariant: a stream that has said that it is not ready submits its task later, unless it ends. So
 * is_ready looks again after it has set `paused`, because the worker may have sent bytes just
 * before. `paused` and the number of waiting bytes are sequentially consistent: is_ready writes the
 * first and reads the second, and the worker does the opposite, so one of them sees the other.
 */
#include "server/handlers/rest/watch_stream.h"

#include "server/registry/convert/watch_conversion.h"

bool hfd_watch_stream_push(struct hfd_watch_stream *stream, struct hf__buf *piece) {
        bool pushed = piece && hfd_http_request_push(stream->http_request, piece) == 0;

        hf__buf_unref(piece);
        return pushed;
}

bool hfd_watch_stream_push_events(struct hfd_watch_stream *stream, struct hf__buf *piece) {
        if (piece && stream->form.format == HFD_AS_TABLE && !stream->has_columns) {
                struct hf__buf *first = hfd_watch_frame_with_columns(&stream->form, piece);
                hf__buf_unref(piece);
                piece = first;
                stream->has_columns = true;
        }
        return hfd_watch_stream_push(stream, piece);
}

static bool has_room(struct hfd_watch_stream *stream) {
        if (stream->conversion && !hfd_watch_conversion_is_idle(stream->conversion))
                return false;
        return hfd_http_request_unsent(stream->http_request) < HFD_WATCH_WINDOW;
}

bool hfd_watch_stream_is_ready(struct hfd_watch_stream *stream) {
        if (has_room(stream))
                return true;
        atomic_store(&stream->paused, true);
        if (!has_room(stream))
                return false;
        atomic_store(&stream->paused, false);
        return true;
}

void hfd_watch_stream_continue(struct hfd_watch_stream *stream) {
        if (atomic_load(&stream->paused) && atomic_exchange(&stream->paused, false))
                (void)hfd_work_submit(stream->registry->work, &stream->task);
}

/* ---- the user's account ---- */

/* Once the client has left, nothing waits for it. Called under the lock of the accounts. */
static size_t measure_unsent(void *ctx) {
        struct hfd_watch_stream *stream = ctx;
        const struct hfd_watcher *watcher = atomic_load(&stream->watcher);

        if (atomic_load(&stream->gone))
                return 0;
        return hfd_http_request_unsent(stream->http_request) +
               (watcher ? hfd_watcher_waiting(watcher) : 0);
}

/* The account is full, and this watch has to end. The client watches again from the last event that
 * it got. Nothing is charged before there is a watcher. */
static void end_slow(void *ctx) {
        struct hfd_watch_stream *stream = ctx;
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);

        if (watcher)
                hfd_watcher_cancel(watcher);
}

void hfd_watch_stream_charge(struct hfd_watch_stream *stream) {
        if (hfd_http_request_unsent(stream->http_request) >= HFD_UNSENT_WATCH)
                hfd_unsent_watch_charge(&stream->unsent);
}

void hfd_watch_stream_init_unsent(struct hfd_watch_stream *stream, struct hfd_unsent *unsent,
                                  const char *user) {
        stream->unsent = (struct hfd_unsent_watch){.unsent = unsent,
                                                   .user = user,
                                                   .request = stream->http_request,
                                                   .measure = measure_unsent,
                                                   .end = end_slow,
                                                   .ctx = stream};
}
