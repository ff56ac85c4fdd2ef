/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch over HTTP. Each event is sent as a frame, one line of JSON. All watches that receive
 * plain objects share one frame per event.
 *
 * Pieces. Frames are sent in pieces of the response. For each stream the connection has a ring, a
 * queue that is limited in bytes and pieces. If the ring is full, because the peer reads too
 * slowly, the stream is cut. A single event is one piece. A batch of events is joined into pieces
 * of PIECE_BYTES. The first batch contains all objects that exist, and is always one piece: an
 * empty ring accepts a piece of any size. Several pieces could overflow the ring before the peer
 * can read any, because the worker that fills the ring is also the one that empties it.
 *
 * Lifetime. The stream is the handler context of the HTTP request, so it is freed with the last
 * reference to that request. rest holds one reference until the watcher makes its last call,
 * on_end. So on_gone may cancel the watcher at any time.
 */
#include "server/handlers/rest_watch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/watcher.h"
#include "server/registry/table.h"

#define PIECE_BYTES (256u << 10)

struct stream {
        struct hfd_rest_request *rest;         /* owned; freed by on_end */
        struct hfd_http_request *http_request; /* borrowed: it owns the stream */
        struct hfd_watcher *watcher; /* a reference; set before the first event, then immutable */
        bool sent_first_batch;       /* used only by on_events, which never runs twice at a time */
};

static void stream_free(void *ctx) {
        struct stream *stream = ctx;

        hfd_watcher_unref(stream->watcher);
        free(stream);
}

/*
 * Makes a frame for an object that was converted for this watch. Takes ownership of object, which
 * may be NULL. NULL = out of memory.
 */
static struct hf__buf *make_frame(enum hf_event_type type, struct hf__buf *object) {
        struct hf__strbuf s = {0};

        if (!object)
                return NULL;
        hf__strbuf_printf(&s, "{\"type\":\"%s\",\"object\":", hfd_event_type_name(type));
        hf__strbuf_add(&s, object->data, object->n);
        hf__strbuf_puts(&s, "}\n");
        struct hf__buf *frame = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        hf__buf_unref(object);
        return frame;
}

/* A bookmark is an object of the watched kind with only a resourceVersion. */
static struct hf__buf *make_bookmark(const struct hfd_request *request, uint64_t revision) {
        struct hf__strbuf s = {0};
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(request->resource, version);
        if (request->format == HFD_AS_TABLE)
                hf__strbuf_printf(&s,
                                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Table\","
                                  "\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":"
                                  "{\"resourceVersion\":\"%" PRIu64
                                  "\"},\"columnDefinitions\":null,\"rows\":[]}}\n",
                                  *request->table_version ? request->table_version : "v1",
                                  revision);
        else
                hf__strbuf_printf(&s,
                                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\","
                                  "\"apiVersion\":\"%s\",\"metadata\":{"
                                  "\"resourceVersion\":"
                                  "\"%" PRIu64 "\"}}}\n",
                                  request->resource->kind, version, revision);
        struct hf__buf *frame = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return frame;
}

/* Returns the frame of one item, a new reference. NULL = out of memory. */
static struct hf__buf *make_item_frame(struct stream *stream, struct hfd_watch_item *item) {
        const struct hfd_request *request = &stream->rest->request;
        char meta[64];

        if (!item->object)
                return make_bookmark(request, item->revision);
        if (request->format == HFD_AS_JSON)
                return hfd_object_frame(item->object, item->type);
        if (request->format == HFD_AS_PARTIAL)
                return make_frame(item->type, hfd_table_render_partial(item->object));
        assert(request->format == HFD_AS_TABLE);
        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", item->revision);
        return make_frame(item->type, hfd_table_render(stream->rest->registry, request,
                                                       &item->object, 1, meta));
}

/*
 * Queues a piece. Takes ownership of piece, which may be NULL. False: it was not queued, and the
 * watch must end.
 */
static bool push_piece(struct stream *stream, struct hf__buf *piece) {
        bool pushed = piece && hfd_http_request_push(stream->http_request, piece) == 0;

        hf__buf_unref(piece);
        return pushed;
}

/* Sends the joined frames, and empties the buffer. */
static bool flush_joined(struct stream *stream, struct hf__strbuf *joined) {
        if (joined->n == 0)
                return joined->error == 0;
        bool pushed = push_piece(stream, hf__strbuf_to_buf(joined));
        hf__strbuf_reset(joined);
        return pushed;
}

/* Called by the watcher with new events. False: the watcher must end the watch. */
static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct stream *stream = ctx;
        struct hf__strbuf joined = {0};
        bool ok = true;

        assert(n > 0);
        if (n == 1) {
                stream->sent_first_batch = true;
                return push_piece(stream, make_item_frame(stream, items));
        }
        for (size_t i = 0; i < n && ok; i++) {
                struct hf__buf *frame = make_item_frame(stream, &items[i]);
                ok = frame != NULL;
                if (ok)
                        hf__strbuf_add(&joined, frame->data, frame->n);
                hf__buf_unref(frame);
                if (ok && joined.n >= PIECE_BYTES && stream->sent_first_batch)
                        ok = flush_joined(stream, &joined);
        }
        ok = ok && flush_joined(stream, &joined);
        stream->sent_first_batch = true;
        hf__strbuf_done(&joined);
        return ok;
}

/* Sends `{"type":"ERROR","object":STATUS}`. A frame is one line, so the newline of status moves to
 * the end. */
static void push_error(struct stream *stream, const struct hf__buf *status) {
        struct hf__strbuf s = {0};
        size_t n = status->n;

        if (n > 0 && status->data[n - 1] == '\n')
                n--;
        hf__strbuf_puts(&s, "{\"type\":\"ERROR\",\"object\":");
        hf__strbuf_add(&s, status->data, n);
        hf__strbuf_puts(&s, "}\n");
        (void)push_piece(stream, hf__strbuf_to_buf(&s));
        hf__strbuf_done(&s);
}

/* The watcher's last call. */
static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct stream *stream = ctx;

        if (error != 0 && error != HF_E_CANCELED && response->body)
                push_error(stream, response->body);
        hfd_http_request_end(stream->http_request);
        /* This may drop the last reference of the HTTP request, and so free the stream. */
        hfd_rest_free(stream->rest);
}

static const struct hfd_watcher_sink sink = {on_events, on_end};

/* The peer has left. on_end follows, perhaps within this call. */
static void on_gone(void *ctx) {
        struct stream *stream = ctx;

        hfd_watcher_cancel(stream->watcher);
}

void hfd_rest_watch(struct hfd_rest_request *rest) {
        static const struct hfd_header headers[] = {{"cache-control", "no-cache, private"}};
        struct hfd_http_request *http_request = rest->http_request;
        struct stream *stream = calloc(1, sizeof *stream);
        struct hfd_response response = {0};

        assert(rest->request.verb == HFD_WATCH);
        if (!stream) {
                hfd_response_no_memory(&response);
        } else {
                stream->rest = rest;
                stream->http_request = http_request;
                if (!hfd_registry_watch(rest->registry, &rest->request, &sink, stream, &response,
                                        &stream->watcher))
                        free(stream);
        }
        if (response.code != 0) {
                hfd_rest_respond(http_request, &response, NULL);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        /* hfd_watcher_start may call on_end, which drops the reference of rest. */
        hfd_http_request_ref(http_request);
        hfd_http_request_set_handler_context(http_request, stream, stream_free);
        hfd_http_request_on_gone(http_request, on_gone, stream);
        hfd_http_request_stream(http_request, 200, "application/json", headers, 1);
        hfd_watcher_start(stream->watcher);
        hfd_http_request_unref(http_request);
}
