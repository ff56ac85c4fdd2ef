/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a watch over HTTP. watch_stream.h says which files handle the rest of it.
 *
 *      wait (sendInitialEvents) -> begin -> open -> initial events (watch_initial.c)
 *                                                -> live, end (watch_events.c)
 *
 * Invariant: the struct of the request is freed when the watch opens, or when it is refused. What
 * the watch needs later is in its stream.
 */
#include "server/handlers/rest/rest_watch.h"

#include <assert.h>
#include <stdlib.h>

#include "server/cacher/sync/consistent_read.h"
#include "server/filters/audited.h"
#include "server/handlers/rest/watch_events.h"
#include "server/handlers/rest/watch_guard.h"
#include "server/handlers/rest/watch_initial.h"

/* How long a watch waits for a revision that its client names. The same as in Kubernetes. */
#define NOT_OLDER_WAIT (3 * HF_NSEC_PER_SEC)

/* The wait at the start of a watch with sendInitialEvents. */
struct wait {
        struct hfd_consistent_read read; /* first member: ready casts it back */
        struct hfd_watch_stream *stream; /* its one use (n_users) */
        struct hfd_rest_request *rest;   /* owned */
};

/* Takes ownership of rest, of the stream's one use and of the contents of response. */
static void refuse_watch(struct hfd_watch_stream *stream, struct hfd_rest_request *rest,
                         struct hfd_response *response) {
        assert(response->code != 0);
        hfd_rest_respond(rest->http_request, NULL, response, NULL);
        hfd_response_done(response);
        hfd_watch_stream_drop(stream);
        hfd_rest_free(rest);
}

/* The response begins. Takes ownership of rest, whose memory is freed at once: the watch may run
 * for hours. */
static void respond_to_watch(struct hfd_watch_stream *stream, struct hfd_rest_request *rest) {
        struct hfd_header headers[2] = {{"cache-control", "no-cache, private"}};
        char warning[HFD_REST_WARNING_MAX];
        size_t n = 1 + hfd_rest_deprecation_header(&rest->request, warning, headers + 1);
        const char *type = hfd_rest_content_type(&rest->request);

        hfd_audited_watch(stream->http_request);
        hfd_rest_free(rest);
        hfd_http_request_free_allocated(stream->http_request);
        hfd_http_request_stream(stream->http_request, 200, type, headers, n);
}

/*
 * has_begin: the stream has the initial events, if there are any. False: the watch ends at once, so
 * that the client does not believe that there are no objects. With initial events the watcher is
 * only opened here: the task starts it after the last one (watch_initial.c).
 *
 * Thread: any. Once there are two users, the stream may drop its reference to the HTTP request. So
 * this function holds one of its own.
 */
static void open_stream(struct hfd_watch_stream *stream, struct hfd_rest_request *rest,
                        struct hfd_watcher *watcher, bool has_begin) {
        struct hfd_http_request *http_request = hfd_http_request_ref(stream->http_request);
        bool has_initial = stream->initial != NULL,
             is_allowed = hfd_watch_guard_track(stream, rest);

        atomic_store(&stream->n_users, 2); /* the watcher and the task */
        respond_to_watch(stream, rest);
        atomic_store(&stream->watcher, watcher);
        /* The client may have left, or the user have lost the right, before there was a watcher.
         * These atomics are sequentially consistent: either this sees the flag, or the code that
         * sets the flag sees the watcher. */
        if (!has_begin || !is_allowed || atomic_load(&stream->gone) ||
            atomic_load(&stream->revoked))
                hfd_watcher_cancel(watcher);
        else if (!has_initial)
                hfd_watcher_start(watcher);
        else
                hfd_watcher_open(watcher);
        if (has_initial && !hfd_work_submit(stream->registry->work, &stream->task))
                hfd_watcher_cancel(watcher);
        hfd_http_request_unref(http_request);
}

/* Takes ownership of rest and of the stream's one use. */
static void begin_watch(struct hfd_watch_stream *stream, struct hfd_rest_request *rest) {
        struct hfd_response response = {0};
        struct hfd_watcher *watcher;

        if (hfd_watch_stream_prepare_conversion(stream, &rest->request) != 0) {
                hfd_response_no_memory(&response);
                refuse_watch(stream, rest, &response);
                return;
        }
        if (!hfd_registry_watch(rest->registry, &rest->request, &hfd_watch_stream_sink, stream,
                                &response, &watcher)) {
                refuse_watch(stream, rest, &response);
                return;
        }
        bool has_begin = hfd_watch_initial_take(stream, &rest->request, watcher) == 0;
        open_stream(stream, rest, watcher, has_begin);
}

/* The cacher has the state that the initial events must have, or the wait has failed. */
static void on_state_ready(struct hfd_consistent_read *read) {
        struct wait *wait = (struct wait *)read;
        struct hfd_watch_stream *stream = wait->stream;
        struct hfd_rest_request *rest = wait->rest;
        struct hfd_response response = {0};
        /* By this cause client-go recognises that the cache is behind. */
        const struct hfd_details too_large = {.cause_reason = "ResourceVersionTooLarge",
                                              .cause_text = "Too large resource version",
                                              .retry_after_s = 1};
        int outcome = read->outcome;

        if (outcome == HF_E_TIMEOUT)
                hfd_response_status(&response, HF_E_TIMEOUT, 504, "Timeout",
                                    "Timeout: the cache has not reached the state with which the "
                                    "watch begins",
                                    &too_large);
        else if (outcome != 0)
                hfd_response_store_error(&response, outcome, &read->status);
        free(wait);
        if (outcome == 0)
                begin_watch(stream, rest);
        else
                refuse_watch(stream, rest, &response);
}

/* As in Kubernetes: without a resourceVersion the initial events are a consistent read; "0" accepts
 * any state; another resourceVersion accepts its own state and every later one. */
static void wait_for_state(struct hfd_watch_stream *stream, struct hfd_rest_request *rest) {
        const struct hfd_request *request = &rest->request;
        struct hfd_cacher *cacher = rest->registry->cacher;
        struct wait *wait = calloc(1, sizeof *wait);
        struct hfd_response response = {0};

        if (!wait) {
                hfd_response_no_memory(&response);
                refuse_watch(stream, rest, &response);
                return;
        }
        wait->stream = stream;
        wait->rest = rest;
        wait->read.ready = on_state_ready;
        wait->read.deadline = request->deadline;
        if (request->options.has_revision)
                hfd_consistent_read_after(cacher, &wait->read, request->options.revision,
                                          NOT_OLDER_WAIT);
        else
                hfd_consistent_read_start(cacher, &wait->read);
}

void hfd_rest_watch(struct hfd_rest_request *rest) {
        struct hfd_response response = {0};

        assert(rest->request.verb == HFD_WATCH);
        struct hfd_watch_stream *stream = hfd_watch_stream_new(rest);
        if (!stream) {
                hfd_response_no_memory(&response);
                hfd_rest_respond(rest->http_request, NULL, &response, NULL);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        if (rest->request.options.has_send_initial)
                wait_for_state(stream, rest);
        else
                begin_watch(stream, rest);
}
