/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch over HTTP: frames, one JSON object per line. An event's frame is made once and shared by
 * all who watch; what has queued up (a burst) is joined into larger pieces, so that the
 * connection's ring is not overrun. The first batch is one piece, as a list is: it may be larger
 * than the ring's bytes, which only a single piece may pass, and no reader however fast could empty
 * the ring while the worker that it is read by still fills it.
 *
 * The stream belongs to the request (it is freed with its last reference) and itself holds a
 * reference until the core calls end; so the peer's going away may cancel it at any time.
 */
#include "server/handlers/rest_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/watcher.h"
#include "server/registry/table.h"

#define PIECE_BYTES (256u << 10)

struct stream {
        struct hfd_rest_request *rest; /* owned; its request reference is dropped at the end */
        struct hfd_http_request *http_request; /* the same request; alive as long as this is */
        struct hfd_watcher *watch; /* a reference; set before the first event, immutable then */
        bool begun;                /* the first batch is out; only whoever delivers looks */
};

static void stream_free(void *ctx) {
        struct stream *stream = ctx;

        hfd_watcher_unref(stream->watch);
        free(stream);
}

static struct hf__buf *wrap(enum hf_event_type type, struct hf__buf *object) {
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

static struct hf__buf *bookmark(const struct hfd_request *request, uint64_t revision) {
        struct hf__strbuf s = {0};
        char version[128];

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

static struct hf__buf *frame_of(struct stream *stream, struct hfd_watch_item *item) {
        const struct hfd_request *request = &stream->rest->request;
        char meta[64];

        if (!item->object)
                return bookmark(request, item->revision);
        if (request->format == HFD_AS_JSON)
                return hfd_object_frame(item->object, item->type);
        if (request->format == HFD_AS_PARTIAL)
                return wrap(item->type, hfd_table_render_partial(item->object));
        (void)snprintf(meta, sizeof meta, "\"resourceVersion\":\"%" PRIu64 "\"", item->revision);
        return wrap(item->type,
                    hfd_table_render(stream->rest->registry, request, &item->object, 1, meta));
}

static bool push_and_drop(struct stream *stream, struct hf__buf *piece) {
        bool good = piece && !hfd_http_request_push(stream->http_request, piece);

        hf__buf_unref(piece);
        return good;
}

static bool flush(struct stream *stream, struct hf__strbuf *joined) {
        if (!joined->n)
                return !joined->error;
        bool good = push_and_drop(stream, hf__strbuf_to_buf(joined));
        hf__strbuf_reset(joined);
        return good;
}

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct stream *stream = ctx;
        struct hf__strbuf joined = {0};
        bool good = true;

        if (n == 1) {
                stream->begun = true;
                return push_and_drop(stream, frame_of(stream, items));
        }
        for (size_t i = 0; i < n && good; i++) {
                struct hf__buf *frame = frame_of(stream, &items[i]);
                good = frame != NULL;
                if (good)
                        hf__strbuf_add(&joined, frame->data, frame->n);
                hf__buf_unref(frame);
                if (good && joined.n >= PIECE_BYTES && stream->begun)
                        good = flush(stream, &joined);
        }
        good = good && flush(stream, &joined);
        stream->begun = true;
        hf__strbuf_done(&joined);
        return good;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct stream *stream = ctx;

        if (error && error != HF_E_CANCELED && response->body) {
                struct hf__strbuf s = {0};
                hf__strbuf_puts(&s, "{\"type\":\"ERROR\",\"object\":");
                size_t n = response->body->n;
                hf__strbuf_add(&s, response->body->data,
                               n && response->body->data[n - 1] == '\n' ? n - 1 : n);
                hf__strbuf_puts(&s, "}\n");
                (void)push_and_drop(stream, hf__strbuf_to_buf(&s));
                hf__strbuf_done(&s);
        }
        hfd_http_request_end(stream->http_request);
        hfd_rest_free(
                stream->rest); /* perhaps the request's last reference, and so the stream's end */
}

static const struct hfd_watcher_sink sink = {on_events, on_end};

static void on_gone(void *ctx) {
        struct stream *stream = ctx;

        hfd_watcher_cancel(stream->watch);
}

void hfd_rest_watch(struct hfd_rest_request *rest) {
        struct stream *stream = calloc(1, sizeof *stream);
        struct hfd_response response = {0};
        static const struct hfd_header headers[] = {{"cache-control", "no-cache, private"}};
        struct hfd_http_request *http_request = rest->http_request;

        if (!stream) {
                hfd_response_no_memory(&response);
        } else {
                stream->rest = rest;
                stream->http_request = http_request;
                if (!hfd_registry_watch(rest->registry, &rest->request, &sink, stream, &response,
                                        &stream->watch))
                        free(stream);
        }
        if (response.code) {
                hfd_rest_respond(http_request, &response);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        hfd_http_request_ref(http_request); /* the stream's end may come within go */
        hfd_http_request_set_handler_context(http_request, stream, stream_free);
        hfd_http_request_on_gone(http_request, on_gone, stream);
        hfd_http_request_stream(http_request, 200, "application/json", headers, 1);
        hfd_watcher_go(stream->watch);
        hfd_http_request_unref(http_request);
}
