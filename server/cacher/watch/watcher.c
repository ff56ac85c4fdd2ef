/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a watch: what it gets at first, and when it ends. watchers.c queues changes for it,
 * and delivery.c has its queue, and passes the events to its sink.
 *
 * A watch that begins with the existing objects takes a snapshot of them, in constant time. They
 * are never queued. One that begins at a revision remembers its place in the history.
 *
 * Invariant: a watcher is in its lists of watchers.c until it ends. Then sink.end is called
 * exactly once. A watcher that was not started, opened or canceled does not end.
 *
 * References: one for the caller of hfd_watcher_new, one for the cacher's lists (dropped after
 * sink.end), one while it is in a list of dirty watchers (watchers.h), one for a store request.
 */
#include "server/cacher/watch/watcher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/state/stored_value.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/rows/resource_table.h"

#define REVISION_DEADLINE     (10 * HF_NSEC_PER_SEC) /* of the request for the store's revision */
#define DEFAULT_TIMEOUT_MIN_S 1800                   /* the maximum is twice as long */

struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watcher) {
        if (!watcher || atomic_fetch_sub_explicit(&watcher->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        assert(!watcher->dirty);
        hfd_delivery_done(&watcher->delivery);
        hfd_resource_unref(watcher->delivery.resource);
        free(watcher);
        return NULL;
}

/* ---- delivering, without cacher->mu ---- */

void hfd_watcher_deliver_unlock(struct hfd_watcher *watcher) {
        struct hfd_cacher *cacher = watcher->cacher;

        bool end = hfd_delivery_run_locked(&watcher->delivery);
        if (end)
                hfd_watchers_remove_locked(watcher);
        pthread_mutex_unlock(&cacher->mu);
        if (end) {
                hfd_delivery_end(&watcher->delivery);
                hfd_watcher_unref(watcher);
        }
}

void hfd_watcher_start(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->delivery.started = true; /* an earlier cancel may have set it */
        hfd_watcher_deliver_unlock(watcher);
}

void hfd_watcher_open(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->delivery.opened = true;
        hfd_watcher_deliver_unlock(watcher);
}

void hfd_watcher_resume(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->delivery.resumed = true;
        hfd_watcher_deliver_unlock(watcher);
}

size_t hfd_watcher_waiting(const struct hfd_watcher *watcher) {
        return atomic_load_explicit(&watcher->delivery.n_bytes, memory_order_relaxed);
}

bool hfd_watcher_take_snapshot(struct hfd_watcher *watcher, struct hfd_snapshot *ret_snapshot) {
        pthread_mutex_lock(&watcher->cacher->mu);
        struct hfd_snapshot *snapshot = watcher->delivery.snapshot;
        watcher->delivery.snapshot = NULL;
        pthread_mutex_unlock(&watcher->cacher->mu);
        if (!snapshot)
                return false;
        *ret_snapshot = *snapshot;
        free(snapshot);
        return true;
}

void hfd_watcher_filter(const struct hfd_watcher *watcher, const struct hfd_selector **ret_labels,
                        const struct hfd_selector **ret_fields, const char **ret_name) {
        *ret_labels = &watcher->delivery.labels;
        *ret_fields = &watcher->delivery.fields;
        *ret_name = watcher->delivery.name;
}

void hfd_watcher_cancel(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        hfd_delivery_cancel_locked(&watcher->delivery);
        hfd_watcher_deliver_unlock(watcher);
}

/* ---- creating a watcher ---- */

/*
 * Prepares what the watch begins with: a snapshot of all objects, nothing (from_now), or the
 * changes that hfd_event_history_resume finds for a revision. At most logarithmic time: the watch
 * reads them when it delivers them. False: the history may no longer contain all of these changes.
 */
static bool queue_initial_locked(struct hfd_watcher *watcher, uint64_t revision) {
        struct hfd_cacher *cacher = watcher->cacher;
        size_t index = hfd_resource_index(watcher->delivery.resource);

        hf__mutex_assert_held(&watcher->cacher->mu);
        if (!revision) {
                const struct hfd_object_tree *tree = &cacher->trees[index];
                if (watcher->delivery.snapshot)
                        *watcher->delivery.snapshot =
                                (struct hfd_snapshot){.objects = hfd_object_tree_snapshot(tree),
                                                      .revision = cacher->revision};
                return true;
        }
        const struct hfd_event_history *history = hfd_event_history_of(&cacher->histories, index);
        size_t first;
        if (revision < history->floor || !hfd_event_history_resume(history, revision, &first))
                return false;
        watcher->after = revision;
        hfd_delivery_catch_up_locked(&watcher->delivery, history, first);
        return true;
}

static struct hfd_watcher *watcher_alloc(struct hfd_cacher *cacher,
                                         const struct hfd_watcher_spec *spec,
                                         const struct hfd_watch_sink *sink, void *ctx) {
        /* A watch of one name needs no selector for it (hfd_delivery_is_watched). */
        const char *selected = *spec->name ? NULL : hfd_selector_name(spec->fields);
        const char *name = selected ? selected : spec->name,
                   *ns = hfd_selector_namespace(spec->fields, spec->ns);
        size_t n_ns = strlen(ns), n_name = strlen(name);
        /* `text` has both strings, each with its NUL. */
        struct hfd_watcher *watcher = calloc(1, sizeof *watcher + n_ns + n_name + 2);
        hf_nsec now = hfd_cacher_now(cacher);

        if (!watcher)
                return NULL;
        atomic_init(&watcher->refs, 2); /* the caller's and the list's */
        watcher->cacher = cacher;
        watcher->delivery.cacher = cacher;
        watcher->delivery.resource = hfd_resource_ref(spec->resource);
        memcpy(watcher->text, ns, n_ns + 1);
        memcpy(watcher->text + n_ns + 1, name, n_name + 1);
        if (n_name > 0 && selected && spec->fields->n == 1)
                hfd_selector_done(spec->fields);
        watcher->delivery.ns = watcher->text;
        watcher->delivery.n_ns = n_ns;
        watcher->delivery.labels = *spec->labels;
        watcher->delivery.fields = *spec->fields;
        *spec->labels = *spec->fields = (struct hfd_selector){0};
        /* The second case: "metadata.name=" selects the name "", which no object has. */
        watcher->delivery.name = n_name > 0 ? watcher->text + n_ns + 1
                                            : hfd_selector_name(&watcher->delivery.fields);
        watcher->told_of_terms = spec->bookmarks && spec->in_process;
        hfd_watcher_choose_lists(watcher);
        watcher->delivery.sink = *sink;
        watcher->delivery.ctx = ctx;
        if (!spec->revision && !spec->from_now) {
                watcher->delivery.snapshot = calloc(1, sizeof *watcher->delivery.snapshot);
                if (!watcher->delivery.snapshot) {
                        hfd_delivery_done(&watcher->delivery);
                        hfd_resource_unref(watcher->delivery.resource);
                        free(watcher);
                        return NULL;
                }
        }
        /*
         * If the client sets no timeout, the watch ends after 30 to 60 minutes. The watcher's
         * address spreads the ends, so that clients do not all reconnect at once. Its low bits are
         * left out, because malloc's alignment makes them alike.
         */
        int64_t seconds = spec->timeout_s;
        if (seconds == 0)
                seconds = DEFAULT_TIMEOUT_MIN_S +
                          (int64_t)(((uintptr_t)watcher >> 6) % DEFAULT_TIMEOUT_MIN_S);
        watcher->ends_at = now + seconds * HF_NSEC_PER_SEC;
        watcher->bookmark_at = HF_NSEC_NEVER;
        if (spec->bookmarks) {
                watcher->bookmark_at = now + HFD_BOOKMARK_INTERVAL;
                if (watcher->bookmark_at > watcher->ends_at - HFD_BOOKMARK_BEFORE_END)
                        watcher->bookmark_at = watcher->ends_at - HFD_BOOKMARK_BEFORE_END;
        }
        return watcher;
}

/*
 * If the store itself has not reached the client's revision, the revision most likely comes from a
 * history that a restored backup has replaced. The client would get no events until the new history
 * reaches that revision, and would miss all changes before it. So the watch ends with HF_E_GONE,
 * and the client lists again. If the request fails, the watch goes on.
 */
static void on_revision(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_watcher *watcher = ctx;

        if (!reply->error && reply->revision < watcher->after) {
                pthread_mutex_lock(&watcher->cacher->mu);
                hfd_delivery_request_end_locked(&watcher->delivery, HF_E_GONE);
                hfd_watcher_deliver_unlock(watcher);
        }
        hfd_watcher_unref(watcher);
}

/*
 * Called if the client's revision is newer than the cache's. The cache may only be late, so this
 * requests the store's revision. The watch may end meanwhile, but hfd_watcher_new, which calls
 * this, still has the caller's reference.
 */
static void check_revision(struct hfd_watcher *watcher) {
        struct hfd_cacher *cacher = watcher->cacher;

        assert(atomic_load_explicit(&watcher->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&watcher->refs, 1);
        if (hfd_store_request_revision(cacher, hfd_cacher_now(cacher) + REVISION_DEADLINE,
                                       on_revision, watcher))
                hfd_watcher_unref(watcher);
}

bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watch_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watcher) {
        const struct hfd_details soon = {.retry_after_s = 1};
        struct hfd_sealed_value value;
        struct hfd_scope scope;

        assert(sink->events && sink->end);
        struct hfd_watcher *watcher = watcher_alloc(cacher, spec, sink, ctx);
        if (!watcher) {
                hfd_response_no_memory(response);
                return false;
        }
        hfd_object_scope(spec->resource, watcher->delivery.ns, watcher->delivery.name, &scope);
        pthread_mutex_lock(&cacher->mu);
        bool ended = cacher->watchers->ended, synced = cacher->synced, added = false, ahead = false;
        bool sealed = synced && hfd_stored_value_find_sealed(&cacher->unreadable, cacher->prefix,
                                                             spec->resource, &scope, &value);
        const struct hfd_custom_version *custom = spec->resource->custom;
        /* hfd_slot_form_retire_kind sets kind->retired under the lock and ends the watches in the
         * lists, so no watch of a kind that is not served any more stays. */
        bool retired = custom && atomic_load(&custom->kind->retired);
        if (!ended && synced && !sealed && !retired &&
            queue_initial_locked(watcher, spec->revision)) {
                hfd_watchers_add_locked(watcher);
                added = true;
                ahead = watcher->after > cacher->revision;
        }
        pthread_mutex_unlock(&cacher->mu);
        if (ahead)
                check_revision(watcher);
        if (added) {
                *ret_watcher = watcher;
                return true;
        }
        /* The watcher was not added, so the reference of the list is dropped too. */
        hfd_watcher_unref(watcher);
        hfd_watcher_unref(watcher);
        if (ended)
                hfd_response_status(response, HF_E_UNAVAILABLE, 503, "ServiceUnavailable",
                                    "the server is shutting down", &soon);
        else if (!synced)
                hfd_response_status(response, HF_E_TOO_MANY, 429, "TooManyRequests",
                                    "storage is (re)initializing", &soon);
        else if (sealed)
                hfd_response_sealed(response, value.key, value.why);
        else /* also for a retired kind: the client lists again, and learns what is served now */
                hfd_response_status(response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided watch is too old.", NULL);
        return false;
}
