/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch over HTTP. Each event is sent as a frame: one line of JSON, or a message in protobuf
 * after its length (protobuf_answer.h). Watches of plain objects that get an event at the same time
 * share its frame (hfd_object_share_frames).
 *
 *      wait (sendInitialEvents) -> open -> send the initial events -> live -> end
 *
 * Initial events. The watcher has a snapshot of the objects that exist. Their frames are made on
 * the pool of threads, in chunks that all watches of the same state share (rendering.h), and only
 * while fewer than WINDOW bytes wait to be sent. Meanwhile the changes wait in the watcher. So a
 * client that does not read costs a cursor and a few chunks.
 *
 * Objects that a webhook converts (registry/convert/watch_conversion.h) wait for it in a queue, in
 * their order. While the queue is not empty, the stream accepts no further events. Initial events
 * go through the same queue.
 *
 * Live events. If WINDOW or more bytes wait to be sent, the stream is not ready, and the changes
 * wait in the watcher, which ends the watch if there are too many. Once the worker has sent enough,
 * the task resumes the watcher. What waits in the response and in the watcher is charged to the
 * user's account (unsent.h), which may end the watch when it is full.
 *
 * Lifetime. The stream is the handler context of the HTTP request, so it is freed with the last
 * reference to that request. rest holds a reference, and is freed when its last user lets go of it:
 * the watcher after its last call, on_end, and the task after its last step. on_end submits that
 * step. So on_gone may cancel the watcher at any time.
 */
#include "server/handlers/rest/rest_watch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/watcher.h"
#include "server/filters/audited.h"
#include "server/filters/unsent.h"
#include "server/pool/work_pool.h"
#include "server/registry/convert/watch_conversion.h"
#include "server/registry/list/rendering.h"
#include "server/registry/list/table.h"
#include "server/registry/read.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/forms/protobuf_answer.h"
#include "server/service_accounts/account_watches.h"

/* Bytes. Two chunks of initial events: one is sent while the next one is made. */
#define WINDOW ((size_t)64 << 10)
/* Initial events that a webhook converts at a time. */
#define INITIAL_BATCH 100

/* How long a watch waits for a revision that its client names. Kubernetes waits as long. */
#define NOT_OLDER_WAIT (3 * HF_NSEC_PER_SEC)

/* The initial events that remain to be sent. Once the stream is open, only a step of the task uses
 * it. */
struct initial {
        struct hfd_rendering
                *rendering; /* owned reference; NULL = a webhook converts the objects */
        struct hfd_rendering_cursor cursor;
        uint64_t revision; /* of the snapshot */
        /* Of objects that a webhook converts. */
        struct hfd_snapshot snapshot; /* owned */
        struct hfd_scope scope;       /* of the watched objects */
        /* The last object that was queued, borrowed; NULL = none yet. */
        const struct hfd_object *at;
        bool all_queued;
};

struct stream {
        struct hfd_work_task task;             /* first member: step casts it back to the stream */
        struct hfd_work_pool *work;            /* borrowed */
        struct hfd_rest_request *rest;         /* owned by n_users; see above */
        struct hfd_http_request *http_request; /* borrowed: it owns the stream */
        _Atomic(struct hfd_watcher *) watcher; /* a reference; set once */
        /* A reference; NULL = the objects need no webhook. */
        struct hfd_watch_conversion *conversion;
        /* Of a Table: whether an event was sent, which has the columns. Events are sent one after
         * the other. */
        bool has_columns;
        struct initial *initial;          /* owned; NULL = all were sent, or there are none */
        struct hfd_unsent_watch unsent;   /* the bytes that are charged for the watch */
        struct hfd_watch_right right;     /* tracked while rest is in use */
        struct hfd_account_watch account; /* likewise; for a user by token */
        atomic_int n_users;               /* of rest */
        atomic_bool gone;                 /* the client has left */
        atomic_bool revoked;              /* the user has lost the right to watch */
        atomic_bool ended;                /* on_end was called */
        atomic_bool paused; /* the watcher has changes, and waits until bytes were sent */
};

/* The wait at the start of a watch with sendInitialEvents. */
struct wait {
        struct hfd_consistent_read read; /* first member: ready casts it back */
        struct stream *stream;           /* borrowed: rest keeps it alive */
};

static void initial_done(struct stream *stream) {
        if (!stream->initial)
                return;
        hfd_rendering_unref(stream->initial->rendering);
        hfd_snapshot_done(&stream->initial->snapshot);
        free(stream->initial);
        stream->initial = NULL;
}

static void stream_free(void *ctx) {
        struct stream *stream = ctx;

        initial_done(stream);
        hfd_unsent_watch_remove(&stream->unsent);
        hfd_watcher_unref(atomic_load(&stream->watcher));
        hfd_watch_conversion_unref(stream->conversion);
        free(stream);
}

/* This may drop the last reference of the HTTP request, and so free the stream. Until the right is
 * no longer tracked, rest keeps the request alive. */
static void drop_rest(struct stream *stream) {
        if (atomic_fetch_sub(&stream->n_users, 1) != 1)
                return;
        hfd_authorizer_untrack(&stream->right);
        hfd_account_watches_untrack(&stream->account);
        hfd_rest_free(stream->rest);
}

/* ---- frames ---- */

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

/*
 * Appends an object that has only a resourceVersion. initial_end: its annotation says that it
 * follows the last initial event.
 */
static void put_bookmark_object(struct hf__strbuf *s, const char *kind, const char *version,
                                uint64_t revision, bool initial_end) {
        hf__strbuf_printf(s,
                          "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
                          "\"resourceVersion\":\"%" PRIu64 "\"%s}}",
                          kind, version, revision,
                          initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                                      : "");
}

/* A bookmark in the format of the watch. */
static struct hf__buf *make_bookmark(const struct stream *stream, uint64_t revision,
                                     bool initial_end) {
        const struct hfd_request *request = &stream->rest->request;
        struct hf__strbuf s = {0};
        char version[HFD_API_VERSION_MAX];

        hf__strbuf_puts(&s, "{\"type\":\"BOOKMARK\",\"object\":");
        hfd_resource_api_version(request->resource, version);
        if (request->format == HFD_AS_TABLE)
                hfd_table_put_bookmark(&s, request, revision, initial_end,
                                       hfd_rendering_now(stream->rest->registry));
        else if (request->format == HFD_AS_PARTIAL)
                put_bookmark_object(&s, "PartialObjectMetadata", "meta.k8s.io/v1", revision,
                                    initial_end);
        else
                put_bookmark_object(&s, request->resource->kind, version, revision, initial_end);
        hf__strbuf_puts(&s, "}\n");
        struct hf__buf *frame = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return frame;
}

/* Converts a frame to the form that the client gets. Takes ownership of json, which may be NULL.
 * NULL = out of memory. */
static struct hf__buf *convert_frame(const struct hfd_request *request, struct hf__buf *json) {
        struct hf__buf *frame = NULL;

        if (!json || !request->protobuf)
                return json;
        (void)hfd_protobuf_convert_frame(request->resource, json, &frame);
        hf__buf_unref(json);
        return frame;
}

/* The Table of an event. NULL = out of memory. */
static struct hf__buf *make_table(const struct stream *stream, const struct hfd_watch_item *item) {
        int64_t now_s = hfd_rendering_now(stream->rest->registry);
        struct hf__strbuf s = {0};
        struct hf__buf *table = NULL;

        if (hfd_table_put_event(&s, &stream->rest->request, item->object, now_s))
                table = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return table;
}

/* The frame of one item, unless watches share it. */
static struct hf__buf *make_item_frame(struct stream *stream, struct hfd_watch_item *item) {
        const struct hfd_request *request = &stream->rest->request;

        if (!item->object)
                return make_bookmark(stream, item->revision, false);
        if (request->format == HFD_AS_PARTIAL)
                return make_frame(item->type, hfd_table_render_partial(item->object));
        assert(request->format == HFD_AS_TABLE);
        return make_frame(item->type, make_table(stream, item));
}

/* Returns the frame of one item, a new reference. NULL = out of memory. */
static struct hf__buf *get_item_frame(struct stream *stream, struct hfd_watch_item *item) {
        const struct hfd_request *request = &stream->rest->request;

        if (!item->object || request->format != HFD_AS_JSON)
                return convert_frame(request, make_item_frame(stream, item));
        struct hfd_object *object = hfd_conversion_object(request->resource, item->object);
        struct hf__buf *frame = NULL;
        if (object && request->protobuf)
                frame = hfd_object_protobuf_frame(object, item->type);
        else if (object)
                frame = hfd_object_frame(object, item->type);
        hfd_object_unref(object);
        return frame;
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

/*
 * The same for events. Of a Table only the first one says which columns there are, as in
 * Kubernetes. That costs a copy of the first piece, which other watches may share.
 */
static bool push_events(struct stream *stream, struct hf__buf *piece) {
        const struct hfd_request *request = &stream->rest->request;

        if (piece && request->format == HFD_AS_TABLE && !stream->has_columns) {
                struct hf__buf *first = hfd_table_with_columns(request, piece);
                hf__buf_unref(piece);
                piece = first;
                stream->has_columns = true;
        }
        return push_piece(stream, piece);
}

/* Sends `{"type":"ERROR","object":STATUS}`. In JSON a frame is one line, so the newline of status
 * moves to the end. */
static void push_error(struct stream *stream, const struct hf__buf *status) {
        struct hf__strbuf s = {0};
        size_t n = status->n;

        if (n > 0 && status->data[n - 1] == '\n')
                n--;
        hf__strbuf_puts(&s, "{\"type\":\"ERROR\",\"object\":");
        hf__strbuf_add(&s, status->data, n);
        hf__strbuf_puts(&s, "}\n");
        (void)push_piece(stream, convert_frame(&stream->rest->request, hf__strbuf_to_buf(&s)));
        hf__strbuf_done(&s);
}

/* ---- the watcher's calls ---- */

static bool has_room(struct stream *stream) {
        if (stream->conversion && !hfd_watch_conversion_is_idle(stream->conversion))
                return false;
        return hfd_http_request_unsent(stream->http_request) < WINDOW;
}

/* Looks again after it has set `paused`: on_drained may have come just before. */
static bool on_ready(void *ctx) {
        struct stream *stream = ctx;

        if (has_room(stream))
                return true;
        atomic_store(&stream->paused, true);
        if (!has_room(stream))
                return false;
        atomic_store(&stream->paused, false);
        return true;
}

/* Continues the watcher or the initial events, if they can go on. */
static void continue_paused(struct stream *stream) {
        if (atomic_load(&stream->paused) && atomic_exchange(&stream->paused, false))
                (void)hfd_work_submit(stream->work, &stream->task);
}

/*
 * Called by the watcher with new events. Frames are separate pieces, because watches share them.
 * False: the watcher must end the watch.
 */
static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct stream *stream = ctx;
        bool ok = true;

        assert(n > 0);
        if (stream->conversion)
                return hfd_watch_conversion_add(stream->conversion, items, n);
        for (size_t i = 0; i < n && ok; i++)
                ok = push_events(stream, get_item_frame(stream, &items[i]));
        if (hfd_http_request_unsent(stream->http_request) >= HFD_UNSENT_WATCH)
                hfd_unsent_watch_charge(&stream->unsent);
        return ok;
}

static void on_waiting(void *ctx) {
        struct stream *stream = ctx;

        hfd_unsent_watch_charge(&stream->unsent);
}

/* Ends the stream, after the watcher's last call. */
static void end_stream(void *ctx) {
        struct stream *stream = ctx;

        hfd_http_request_end(stream->http_request);
        hfd_unsent_watch_update(&stream->unsent);
        atomic_store(&stream->ended, true);
        if (!hfd_work_submit(stream->work, &stream->task))
                drop_rest(stream); /* the pool has stopped: no step drops the task's use */
        drop_rest(stream);
}

/* The watcher's last call. */
static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct stream *stream = ctx;

        /* What was not delivered is not lost: the client watches again from its last event. */
        if (stream->conversion && !hfd_watch_conversion_end(stream->conversion))
                return; /* end_stream follows, perhaps has already, and may free the stream */
        if (error != 0 && error != HF_E_CANCELED && response->body)
                push_error(stream, response->body);
        end_stream(stream);
}

static const struct hfd_watcher_sink sink = {.ready = on_ready,
                                             .waiting = on_waiting,
                                             .events = on_events,
                                             .end = on_end};

/* ---- objects that a webhook converts ---- */

static bool on_converted_event(void *ctx, struct hfd_watch_item *item) {
        struct stream *stream = ctx;
        bool pushed = push_events(stream, get_item_frame(stream, item));

        if (hfd_http_request_unsent(stream->http_request) >= HFD_UNSENT_WATCH)
                hfd_unsent_watch_charge(&stream->unsent);
        return pushed;
}

/* As in Kubernetes, the watch ends with an ERROR. */
static void on_conversion_failed(void *ctx, const struct hfd_response *failure) {
        struct stream *stream = ctx;

        if (failure && failure->body)
                push_error(stream, failure->body);
        hfd_watcher_cancel(atomic_load(&stream->watcher));
}

static void on_conversion_idle(void *ctx) { continue_paused(ctx); }

static const struct hfd_watch_conversion_sink conversion_sink = {.event = on_converted_event,
                                                                 .failed = on_conversion_failed,
                                                                 .idle = on_conversion_idle,
                                                                 .ended = end_stream};

/* Queues some initial events, if those before have been delivered. Returns whether all have. */
static bool convert_initial(struct stream *stream, bool *ret_good) {
        struct initial *initial = stream->initial;
        const struct hfd_selector *labels, *fields;
        struct hfd_watch_item items[INITIAL_BATCH];
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
        for (size_t i = 0; *ret_good && i < INITIAL_BATCH; i++) {
                object = hfd_object_iter_next(&iter);
                if (!object)
                        break;
                bool selected = !name || !*name || strcmp(name, hfd_object_name(object)) == 0;
                if (selected)
                        *ret_good = hfd_selector_matches(labels, object, &selected) == 0;
                if (selected)
                        *ret_good = hfd_selector_matches(fields, object, &selected) == 0;
                if (selected)
                        items[n++] = (struct hfd_watch_item){.type = HF_EVENT_ADDED,
                                                             .object = object,
                                                             .revision = object->revision};
                initial->at = object;
        }
        initial->all_queued = !object;
        *ret_good = *ret_good && (n == 0 || hfd_watch_conversion_add(stream->conversion, items, n));
        return false;
}

/* ---- the user's account ---- */

static size_t measure_unsent(void *ctx) {
        struct stream *stream = ctx;
        const struct hfd_watcher *watcher = atomic_load(&stream->watcher);

        if (atomic_load(&stream->gone))
                return 0;
        return hfd_http_request_unsent(stream->http_request) +
               (watcher ? hfd_watcher_waiting(watcher) : 0);
}

/* The account is full, and this watch has to end. The client watches again from the last event that
 * it got. Nothing is charged before there is a watcher. */
static void end_slow(void *ctx) {
        struct stream *stream = ctx;
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);

        if (watcher)
                hfd_watcher_cancel(watcher);
}

/* ---- the right to watch ---- */

/* The user has lost it, or the token is not valid any more. The watch ends cleanly; the client
 * watches again, and gets a 403 or 401. */
static void end_revoked(void *ctx) {
        struct stream *stream = ctx;

        atomic_store(&stream->revoked, true);
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);
        if (watcher) /* otherwise open_stream cancels it */
                hfd_watcher_cancel(watcher);
}

/* False: the user has lost the right since the request was authorized. An administrator cannot lose
 * it, so there is no requester. */
static bool track_right(struct stream *stream) {
        const struct hfd_rest_request *rest = stream->rest;

        if (!rest->request.requester)
                return true;
        stream->right = (struct hfd_watch_right){.subject = &rest->request.requester->subject,
                                                 .attributes = rest->attributes,
                                                 .request = stream->http_request,
                                                 .end = end_revoked,
                                                 .ctx = stream};
        return hfd_authorizer_track(rest->request.authorizer, &stream->right);
}

/* False: what the user's token depends on has gone since the request was authenticated. */
static bool track_account(struct stream *stream) {
        const struct hfd_rest_request *rest = stream->rest;

        if (!rest->credential)
                return true;
        stream->account = (struct hfd_account_watch){.credential = rest->credential,
                                                     .request = stream->http_request,
                                                     .end = end_revoked,
                                                     .ctx = stream};
        return hfd_account_watches_track(rest->account_watches, &stream->account);
}

/* ---- the task ---- */

/* The bookmark after the initial events, if the client wants it. */
static bool push_initial_end(struct stream *stream) {
        const struct hfd_request *request = &stream->rest->request;

        if (!request->options.has_send_initial || !request->options.bookmarks)
                return true;
        struct hf__buf *bookmark = make_bookmark(stream, stream->initial->revision, true);
        return push_events(stream, convert_frame(request, bookmark));
}

/* Sends one chunk. The watcher takes over after the last one. */
static enum hfd_work_result send_initial(struct stream *stream) {
        struct initial *initial = stream->initial;
        struct hf__buf *chunk = NULL;

        bool ok = true, all;
        if (!on_ready(stream))
                return HFD_WORK_IDLE;
        if (initial->rendering) {
                ok = hfd_rendering_next(initial->rendering, &initial->cursor, &chunk) == 0;
                if (ok && chunk)
                        ok = push_events(stream, hf__buf_ref(chunk));
                hf__buf_unref(chunk);
                all = initial->cursor.ended;
        } else {
                all = convert_initial(stream, &ok);
        }
        if (ok && !all)
                return HFD_WORK_MORE;
        ok = ok && push_initial_end(stream);
        initial_done(stream);
        if (ok)
                hfd_watcher_start(atomic_load(&stream->watcher));
        else
                hfd_watcher_cancel(atomic_load(&stream->watcher));
        return HFD_WORK_IDLE;
}

static enum hfd_work_result step(struct hfd_work_task *task) {
        struct stream *stream = (struct stream *)task;

        if (atomic_load(&stream->ended)) {
                initial_done(stream);
                drop_rest(stream);
                return HFD_WORK_DONE;
        }
        if (stream->initial)
                return send_initial(stream);
        hfd_watcher_resume(atomic_load(&stream->watcher));
        return HFD_WORK_IDLE;
}

/* ---- callbacks of the request; thread: worker ---- */

/* The peer has left. If there is a watcher, on_end follows, perhaps within this call. Otherwise
 * open_stream cancels the watcher as soon as there is one. */
static void on_gone(void *ctx) {
        struct stream *stream = ctx;

        atomic_store(&stream->gone, true);
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);
        /* on_end may drop the last reference of the others, and so free the stream. */
        struct hfd_http_request *request = hfd_http_request_ref(stream->http_request);
        if (watcher)
                hfd_watcher_cancel(watcher);
        hfd_unsent_watch_update(&stream->unsent);
        hfd_http_request_unref(request);
}

/* Usually the watch is not paused, nothing is charged, and this does nothing. */
static void on_drained(void *ctx) {
        struct stream *stream = ctx;

        hfd_unsent_watch_update(&stream->unsent);
        continue_paused(stream);
}

/* ---- start ---- */

/* Prepares the initial events, if there are any. False: out of memory. */
static bool take_initial(struct stream *stream, struct hfd_watcher *watcher) {
        struct hfd_rendering_spec spec = {.request = &stream->rest->request, .frames = true};
        struct hfd_snapshot snapshot;

        if (!hfd_watcher_take_snapshot(watcher, &snapshot))
                return true;
        hfd_watcher_filter(watcher, &spec.labels, &spec.fields, &spec.name);
        struct initial *initial = calloc(1, sizeof *initial);
        if (!initial) {
                hfd_snapshot_done(&snapshot);
                return false;
        }
        initial->revision = snapshot.revision;
        if (stream->conversion) {
                const struct hfd_request *request = &stream->rest->request;
                initial->snapshot = snapshot;
                hfd_object_scope(request->resource, request->ns, NULL, &initial->scope);
                stream->initial = initial;
                return true;
        }
        if (hfd_rendering_get(stream->rest->registry->renderings, &spec, &snapshot,
                              &initial->rendering) != 0) {
                free(initial);
                return false;
        }
        stream->initial = initial;
        return true;
}

static void refuse(struct stream *stream, struct hfd_response *response) {
        assert(response->code != 0);
        hfd_rest_respond(stream->http_request, NULL, response, NULL);
        hfd_response_done(response);
        drop_rest(stream);
}

/*
 * has_begin: the stream has the initial events, if there are any. False: the watch ends at once, so
 * that the client does not believe that there are no objects. Thread: any. From here on rest may be
 * freed at any time, so a reference keeps the stream.
 */
static void open_stream(struct stream *stream, struct hfd_watcher *watcher, bool has_begin) {
        struct hfd_header headers[2] = {{"cache-control", "no-cache, private"}};
        char warning[HFD_REST_WARNING_MAX];
        size_t n = 1 + hfd_rest_deprecation_header(&stream->rest->request, warning, headers + 1);
        struct hfd_http_request *http_request = hfd_http_request_ref(stream->http_request);
        bool has_initial = stream->initial != NULL,
             may = track_right(stream) && track_account(stream);

        atomic_store(&stream->n_users, 2); /* the watcher and the task */
        hfd_audited_watch(http_request);
        hfd_http_request_stream(http_request, 200, hfd_rest_content_type(&stream->rest->request),
                                headers, n);
        atomic_store(&stream->watcher, watcher);
        /* on_gone and end_revoked may have come before there was a watcher. */
        if (!has_begin || !may || atomic_load(&stream->gone) || atomic_load(&stream->revoked))
                hfd_watcher_cancel(watcher);
        else if (!has_initial)
                hfd_watcher_start(watcher);
        else
                hfd_watcher_open(watcher);
        if (has_initial && !hfd_work_submit(stream->work, &stream->task))
                hfd_watcher_cancel(watcher);
        hfd_http_request_unref(http_request);
}

static void begin(struct stream *stream) {
        struct hfd_rest_request *rest = stream->rest;
        struct hfd_response response = {0};
        struct hfd_watcher *watcher;

        if (hfd_read_needs_version(&rest->request)) {
                stream->conversion = hfd_watch_conversion_new(rest->registry, &rest->request,
                                                              &conversion_sink, stream);
                if (!stream->conversion) {
                        hfd_response_no_memory(&response);
                        refuse(stream, &response);
                        return;
                }
        }
        if (!hfd_registry_watch(rest->registry, &rest->request, &sink, stream, &response,
                                &watcher)) {
                refuse(stream, &response);
                return;
        }
        bool has_begin = take_initial(stream, watcher);
        open_stream(stream, watcher, has_begin);
}

/* The cacher has the state that the initial events must have, or the wait has failed. */
static void on_state_ready(struct hfd_consistent_read *read) {
        struct stream *stream = ((struct wait *)read)->stream;
        struct hfd_response response = {0};
        const struct hfd_details soon = {.cause_reason = "ResourceVersionTooLarge",
                                         .cause_text = "Too large resource version",
                                         .retry_after_s = 1};
        int outcome = read->outcome;

        if (outcome == HF_E_TIMEOUT)
                hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: the cache has not reached the resource version",
                                    &soon);
        else if (outcome != 0)
                hfd_response_store_error(&response, outcome, &read->status);
        free(read);
        if (outcome == 0)
                begin(stream);
        else
                refuse(stream, &response);
}

/* As in Kubernetes: without a resourceVersion the initial events are a consistent read; "0" accepts
 * any state; another resourceVersion accepts its own state and every later one. */
static void wait_for_state(struct stream *stream) {
        const struct hfd_request *request = &stream->rest->request;
        struct hfd_cacher *cacher = stream->rest->registry->cacher;
        struct wait *wait = calloc(1, sizeof *wait);
        struct hfd_response response = {0};

        if (!wait) {
                hfd_response_no_memory(&response);
                refuse(stream, &response);
                return;
        }
        wait->stream = stream;
        wait->read.ready = on_state_ready;
        wait->read.deadline = request->deadline;
        if (request->options.has_revision)
                hfd_consistent_read_after(cacher, &wait->read, request->options.revision,
                                          NOT_OLDER_WAIT);
        else
                hfd_consistent_read_start(cacher, &wait->read);
}

void hfd_rest_watch(struct hfd_rest_request *rest) {
        struct hfd_http_request *http_request = rest->http_request;
        struct stream *stream = calloc(1, sizeof *stream);
        struct hfd_response response = {0};

        assert(rest->request.verb == HFD_WATCH);
        if (!stream) {
                hfd_response_no_memory(&response);
                hfd_rest_respond(http_request, NULL, &response, NULL);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        stream->task = (struct hfd_work_task){.step = step, .owner = rest->request.owner};
        stream->work = rest->registry->work;
        stream->rest = rest;
        stream->http_request = http_request;
        stream->unsent = (struct hfd_unsent_watch){.unsent = rest->unsent,
                                                   .user = rest->user,
                                                   .request = http_request,
                                                   .measure = measure_unsent,
                                                   .end = end_slow,
                                                   .ctx = stream};
        atomic_store(&stream->n_users, 1);
        hfd_http_request_set_handler_context(http_request, stream, stream_free);
        hfd_http_request_on_gone(http_request, on_gone, stream);
        hfd_http_request_on_drained(http_request, WINDOW / 2, on_drained, stream);
        if (rest->request.options.has_send_initial)
                wait_for_state(stream);
        else
                begin(stream);
}
