/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch over HTTP that runs, shared by the files that handle its parts: rest_watch.c begins it,
 * watch_events.c delivers its events and ends it, watch_initial.c sends its initial events,
 * watch_frames.c makes the frames, and watch_guard.c ends it when its user loses the right to it.
 *
 * Memory. A server has many watches, and most of them only wait. So a stream keeps what its events
 * and its end need, and nothing else: the struct of the request is freed before the watch runs.
 *
 * Lifetime. The stream is the handler context of the HTTP request, so it is freed with the last
 * reference to that request. The stream holds a reference, and drops it when its last user lets go.
 * Until the watch is open, the code that begins it is the only user. Then there are two. The
 * watcher is one until its last call, on_end. After that call, when no converted event is being
 * delivered any more, end_stream submits the task's last step and drops the watcher's use. The task
 * is the other user until that step, which drops its use. So on_gone may cancel the watcher at any
 * time.
 *
 * Thread: any, unless a function says otherwise. No function blocks.
 */
#include <stdatomic.h>

#include "server/cacher/watch/watcher.h"
#include "server/filters/limits/unsent.h"
#include "server/handlers/rest/watch_frames.h"
#include "server/http/http.h"
#include "server/pool/work_pool.h"
#include "server/registry/registry.h"

struct hfd_rest_request;
struct hfd_watch_conversion;
struct hfd_watch_guard;
struct hfd_watch_initial;

/* The stream is not ready while this many bytes or more wait to be sent. Two chunks of initial
 * events (rendering.h): one is sent while the next one is made. */
#define HFD_WATCH_WINDOW ((size_t)64 << 10)

/* The members that an event needs come first, in few cache lines. */
struct hfd_watch_stream {
        struct hfd_work_task task; /* first member: its step casts it back */
        /* A reference; NULL = the objects need no webhook. */
        struct hfd_watch_conversion *conversion;
        struct hfd_registry *registry;         /* borrowed */
        struct hfd_http_request *http_request; /* a reference of all users together */
        atomic_int n_users;                    /* of http_request; see above */
        /* is_ready has returned false, and the task was not submitted since. */
        atomic_bool paused;
        atomic_bool gone;    /* the client has left, or the response was cut */
        atomic_bool revoked; /* a right was lost, or the token is invalid (watch_guard.h) */
        atomic_bool ended;   /* the response was ended: the task's next step is its last */
        /* Only for Tables: the first event, which has the columns, was sent. No lock: events are
         * sent one after the other. */
        bool has_columns;
        struct hfd_watch_form form;            /* with a reference to the resource */
        struct hfd_unsent_watch unsent;        /* the bytes that are charged for the watch */
        _Atomic(struct hfd_watcher *) watcher; /* a reference; set once */
        struct hfd_watch_initial *initial;     /* owned; NULL = all were sent, or there are none */
        struct hfd_watch_guard *guard;         /* owned; NULL = nothing can revoke the watch */
        struct hf__buf *failure; /* owned; the last frame; set by on_end, sent by end_stream */
};

/*
 * Whether the stream has room for more events: fewer than HFD_WATCH_WINDOW bytes wait to be sent,
 * and no object waits for a webhook. False: the task is submitted when fewer than half of
 * HFD_WATCH_WINDOW bytes wait, or when the webhook's objects were delivered, whichever is first.
 * Only one thread at a time may ask.
 */
bool hfd_watch_stream_is_ready(struct hfd_watch_stream *stream);
/* Queues a piece. Takes ownership of piece, which may be NULL. False: it was not queued, and the
 * watch must end. */
bool hfd_watch_stream_push(struct hfd_watch_stream *stream, struct hf__buf *piece);
/* The same for a piece of one or more events. If the events are Tables, only the first one of the
 * stream names the columns, as in Kubernetes. Its piece is copied for that, because other watches
 * may share it. */
bool hfd_watch_stream_push_events(struct hfd_watch_stream *stream, struct hf__buf *piece);
/* Submits the task, if the stream has said that it is not ready. */
void hfd_watch_stream_continue(struct hfd_watch_stream *stream);

/* Sets the accounts, borrowed, and the user who is charged for what waits. Call it once. */
void hfd_watch_stream_init_unsent(struct hfd_watch_stream *stream, struct hfd_unsent *unsent,
                                  const char *user);
/* Charges the account if at least HFD_UNSENT_WATCH bytes wait to be sent. May end a watch of
 * this or of another user, perhaps this watch. */
void hfd_watch_stream_charge(struct hfd_watch_stream *stream);
