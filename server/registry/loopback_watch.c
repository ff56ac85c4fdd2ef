/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of the in-process client. Those of a client for metadata leave out most changes that
 * keep the metadata as they are (kept_metadata.h).
 *
 * Invariant: an informer's version never falls behind the history for lack of events: in place of
 * changes that are left out, it gets a bookmark from time to time.
 */
#include "server/registry/loopback_watch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/cacher/watch/watcher.h"
#include "server/registry/kept_metadata.h"
#include "server/registry/loopback_operation.h"
#include "server/resources/forms/conversion.h"

#define BOOKMARK_EVERY (20 * HF_NSEC_PER_MSEC) /* in place of changes that are left out */

/* ---- events ---- */

static void send_bookmark(struct hfd_operation *op, struct hf_event *event) {
        const struct hfd_resource *resource = op->resource;
        /* Room for a kind, which has 63 bytes at most, and a resourceVersion. */
        char bookmark[320 + HFD_API_VERSION_MAX], version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        event->n_object = (size_t)snprintf(bookmark, sizeof bookmark,
                                           "{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                                           "\"metadata\":{\"resourceVersion\":\"%s\"}}",
                                           resource->kind, version, event->resource_version);
        event->object = bookmark;
        op->on_event(op->ctx, event);
}

/* Whether the watch leaves the change out. Only a MODIFIED event has `before`. */
static bool is_left_out(const struct hfd_operation *op, const struct hfd_watch_item *item) {
        return op->client->for_metadata && item->before &&
               hfd_kept_metadata(item->before, item->object);
}

/* Whether a bookmark is due in place of a change that is left out. */
static bool is_bookmark_due(struct hfd_operation *op) {
        hf_nsec now = hfd_registry_now(op->client->registry);

        if (now - op->told_at < BOOKMARK_EVERY)
                return false;
        op->told_at = now;
        return true;
}

static bool on_watch_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct hfd_operation *op = ctx;
        bool good = true;

        for (size_t i = 0; i < n && good; i++) {
                char revision[HF__U64_TEXT_MAX];
                struct hf_event event = {.type = items[i].type, .resource_version = revision};
                bool left_out = is_left_out(op, &items[i]);
                if (left_out && !is_bookmark_due(op))
                        continue;
                (void)hf__u64_text(items[i].revision, revision);
                if (!items[i].object || left_out) {
                        event.type = HF_EVENT_BOOKMARK;
                        send_bookmark(op, &event);
                        continue;
                }
                struct hfd_object *object = hfd_conversion_object(op->resource, items[i].object);
                good = object != NULL;
                if (good) {
                        event.object = object->bytes->data;
                        event.n_object = object->bytes->n;
                        op->on_event(op->ctx, &event);
                }
                hfd_object_unref(object);
        }
        return good;
}

/* ---- the end ---- */

/* Runs the last callback of a watch. Only one thread comes here: the watcher calls its sink's end
 * once, and a watch that could not begin has no watcher. */
static void finish_watch(struct hfd_operation *op, int error, const struct hf_status *status) {
        if (!hfd_operation_unlist(op))
                return;
        assert(op->on_end);
        op->on_end(op->ctx, error, error ? status : NULL);
        hfd_operation_unref(op);
}

/* The watcher makes no further calls, so the registry's reference is dropped. */
static void on_watch_end(void *ctx, int error, const struct hfd_response *response) {
        struct hfd_operation *op = ctx;
        struct hf_status status = response->status;

        if (error == HF_E_CANCELED)
                (void)hf_fail(&status, HF_E_CANCELED, "the watch was canceled");
        finish_watch(op, error, &status);
        hfd_operation_unref(op);
}

/* ---- the beginning ---- */

static const struct hfd_watch_sink watcher_sink = {.events = on_watch_events, .end = on_watch_end};

/*
 * Builds a query from spec and parses it, so that the options get the same checks as over HTTP.
 * False: response is filled.
 */
static bool parse_watch_options(struct hfd_request *request, const struct hf_watch_spec *spec,
                                struct hfd_response *response) {
        struct hf__strbuf query = {0};

        hf__strbuf_printf(&query, "allowWatchBookmarks=%s", spec->bookmarks ? "true" : "false");
        if (spec->resource_version && *spec->resource_version)
                hf__strbuf_printf(&query, "&resourceVersion=%s", spec->resource_version);
        if (spec->name && *spec->name)
                hf__strbuf_printf(&query, "&fieldSelector=metadata.name%%3D%s", spec->name);
        if (spec->query && *spec->query)
                hf__strbuf_printf(&query, "&%s", spec->query);
        bool good = !query.error && hfd_options_parse(request, query.data, response);
        if (query.error)
                hfd_response_no_memory(response);
        hf__strbuf_done(&query);
        return good;
}

/* Starts the watcher, or cancels it if hf_client_free has begun. */
static void start_watcher(struct hfd_operation *op, struct hfd_watcher *watcher) {
        struct hfd_loopback *client = op->client;

        /* Starting or canceling may call on_watch_end, which drops the registry's reference. */
        assert(atomic_load_explicit(&op->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&op->refs, 1);
        pthread_mutex_lock(&client->mu);
        assert(watcher && !op->watcher);
        op->watcher = watcher;
        bool closing = client->closing;
        pthread_mutex_unlock(&client->mu);
        if (closing)
                hfd_watcher_cancel(watcher);
        else
                hfd_watcher_start(watcher);
        hfd_operation_unref(op);
}

/* Begins the watch. NULL: response is filled. */
static struct hfd_watcher *begin_watch(struct hfd_operation *op, const struct hf_watch_spec *spec,
                                       struct hfd_response *response) {
        struct hfd_request request = {.verb = HFD_WATCH};
        struct hfd_watcher *watcher = NULL;

        if (!op->resource || op->resource->is_review) {
                hfd_response_no_such_resource(response);
                return NULL;
        }
        hfd_operation_request_init(&request, op, spec->ns, NULL);
        if (parse_watch_options(&request, spec, response) &&
            !hfd_registry_watch(op->client->registry, &request, &watcher_sink, op, response,
                                &watcher))
                watcher = NULL;
        hfd_operation_request_deinit(&request);
        return watcher;
}

int hfd_loopback_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct hfd_loopback *client = (struct hfd_loopback *)self;
        struct hfd_response response = {0};

        if (!hfd_operation_is_valid_target(&spec->resource, spec->ns, spec->name))
                return -EINVAL;
        struct hfd_operation *op = calloc(1, sizeof *op);
        if (!op)
                return -ENOMEM;
        hfd_operation_init(op, client, &spec->resource, ctx);
        op->on_event = on_event;
        op->on_end = on_end;
        int r = hfd_operation_list(op, ret_id);
        if (r != 0) {
                hfd_operation_free(op);
                return r;
        }
        struct hfd_watcher *watcher = begin_watch(op, spec, &response);
        if (watcher) {
                start_watcher(op, watcher);
                return 0;
        }
        /* There is no watcher, so both references are dropped here. */
        finish_watch(op, response.status.error, &response.status);
        hfd_operation_unref(op);
        hfd_response_done(&response);
        return 0;
}

void hfd_loopback_watch_cancel(struct hf_client *self, uint64_t id) {
        struct hfd_loopback *client = (struct hfd_loopback *)self;
        struct hfd_watcher *watcher = NULL;

        pthread_mutex_lock(&client->mu);
        struct hfd_operation *op = hfd_operation_find_locked(client, id);
        /* The caller gets the id from hf_client_watch, or uses it in a callback. At both times a
         * watch that has not ended has its watcher. */
        if (op)
                watcher = op->watcher;
        pthread_mutex_unlock(&client->mu);
        if (watcher)
                hfd_watcher_cancel(watcher); /* op, which is referenced, keeps the watcher alive */
        if (op)
                hfd_operation_unref(op);
}
