/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of the API.
 *
 * Under the lock, a reference to each change is queued for every watcher with a matching resource,
 * namespace and name. Selectors are applied later, by the delivering thread, because they may have
 * to parse the object. Only one thread at a time delivers to a watcher: it takes a batch from the
 * queue, calls the sink without the lock, and repeats until the queue is empty or the sink has no
 * room. Other threads only add to the queue. So events are delivered in the order of the queue, and
 * never concurrently.
 *
 *      new --start--> delivers when its queue is not empty --end requested, queue empty--> sink.end
 *
 * A watch that begins with the existing objects takes a snapshot of them, in constant time. They
 * are never queued.
 *
 * Invariant: sink.end is called exactly once, after the last call of sink.events. Only the
 * delivering thread calls it. A canceled watcher ends without delivering the rest of its queue.
 *
 * References: one for the caller of hfd_watcher_new, one for the cacher's list (dropped after
 * sink.end), one while the watcher is in a list of dirty watchers (those with something to
 * deliver), one for a request to the store.
 */
#include "server/cacher/watcher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"
#include "server/cacher/snapshot.h"

#define REVISION_DEADLINE     (10 * HF_NSEC_PER_SEC)
#define QUEUE_MAX             8192 /* besides initial changes; checked only when the queue grows */
#define BATCH_MAX             64   /* changes in one call of the sink */
#define BOOKMARK_INTERVAL     (60 * HF_NSEC_PER_SEC)
#define BOOKMARK_BEFORE_END   (2 * HF_NSEC_PER_SEC)
#define DEFAULT_TIMEOUT_MIN_S 1800 /* the maximum is twice as long */

struct queued_change {
        struct hfd_change change; /* owns its references; object NULL = bookmark */
        uint64_t revision;
};

struct hfd_watcher {
        atomic_int refs;

        /* immutable */
        struct hfd_cacher *cacher;
        const struct hfd_resource *resource;
        const char *ns; /* in text; "" = all */
        size_t n_ns;
        struct hfd_selector labels, fields; /* owned */
        const char *name; /* required by the path or the field selector; NULL = any */
        bool bookmarks, in_process;
        uint64_t after; /* only later revisions are delivered */
        struct hfd_watcher_sink sink;
        void *ctx;

        /* guarded by cacher->mu */
        struct hfd_watcher *next, **link; /* in the list of its resource */
        struct hfd_watcher *dirty_next;   /* in a list of watchers that have queued events */
        bool dirty;                       /* it is in a list of dirty watchers */
        bool started;                     /* hfd_watcher_start or hfd_watcher_cancel was called */
        bool opened;                      /* hfd_watcher_open was called */
        bool resumed;                     /* hfd_watcher_resume was called while delivering */
        bool ended_early;                 /* the end was requested before the start */
        bool delivering;                  /* a thread is in deliver_queue */
        bool ended; /* removed from the list; sink.end was called or is about to be */
        bool end_requested;
        int end_error;               /* for sink.end, if end_requested */
        struct queued_change *queue; /* owned; changes queue_at to n_queue wait */
        size_t queue_at, n_queue, queue_space, n_initial;
        struct hfd_snapshot *snapshot; /* owned; not delivered yet; NULL = none */
        hf_nsec ends_at, bookmark_at;  /* boot times */

        char text[]; /* namespace and name; immutable; short, because a server has many watchers */
};

static void free_queued(struct queued_change *queued) {
        hfd_object_unref(queued->change.object);
        hfd_object_unref(queued->change.before);
}

struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watcher) {
        if (!watcher || atomic_fetch_sub_explicit(&watcher->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        assert(!watcher->dirty && !watcher->delivering);
        for (size_t i = watcher->queue_at; i < watcher->n_queue; i++)
                free_queued(&watcher->queue[i]);
        free(watcher->queue);
        if (watcher->snapshot)
                hfd_snapshot_done(watcher->snapshot);
        free(watcher->snapshot);
        hfd_selector_done(&watcher->labels);
        hfd_selector_done(&watcher->fields);
        free(watcher);
        return NULL;
}

/* ---- queueing, under cacher->mu ---- */

static void mark_dirty_locked(struct hfd_watcher *watcher, struct hfd_watcher **dirty) {
        if (watcher->dirty || watcher->ended)
                return;
        watcher->dirty = true;
        atomic_fetch_add(&watcher->refs, 1);
        watcher->dirty_next = *dirty;
        *dirty = watcher;
}

/* The first reason for the end is kept. Only hfd_watcher_cancel replaces it. */
static void request_end_locked(struct hfd_watcher *watcher, int error) {
        if (watcher->end_requested)
                return;
        watcher->end_requested = true;
        watcher->end_error = error;
        watcher->ended_early = !watcher->started;
}

/* Moves the waiting changes to the start of the array, if at least half of it is free. */
static void compact_queue_locked(struct hfd_watcher *watcher) {
        size_t n = watcher->n_queue - watcher->queue_at;

        if (watcher->queue_at < watcher->queue_space / 2)
                return;
        memmove(watcher->queue, watcher->queue + watcher->queue_at, n * sizeof *watcher->queue);
        watcher->queue_at = 0;
        watcher->n_queue = n;
}

/*
 * Appends a copy of change, with additional references. If the queue is full or memory runs out,
 * the watch ends cleanly, and the client watches again from the last event that it received.
 */
static void queue_change_locked(struct hfd_watcher *watcher, const struct hfd_change *change,
                                uint64_t revision) {
        if (watcher->end_requested)
                return;
        if (watcher->queue_space > 0 && watcher->n_queue == watcher->queue_space)
                compact_queue_locked(watcher);
        if (watcher->n_queue == watcher->queue_space) {
                size_t space = watcher->queue_space ? 2 * watcher->queue_space : 4;
                struct queued_change *more = NULL;
                if (watcher->n_queue < watcher->n_initial + QUEUE_MAX)
                        more = realloc(watcher->queue, space * sizeof *more);
                if (!more) {
                        request_end_locked(watcher, 0);
                        return;
                }
                watcher->queue = more;
                watcher->queue_space = space;
        }
        struct queued_change *queued = &watcher->queue[watcher->n_queue++];
        *queued = (struct queued_change){.revision = revision, .change = *change};
        hfd_object_ref(queued->change.object);
        hfd_object_ref(queued->change.before);
}

static bool is_watched(const struct hfd_watcher *watcher, const struct hfd_object *object) {
        if (watcher->n_ns && (watcher->n_ns != object->n_ns ||
                              memcmp(watcher->ns, object->path, watcher->n_ns) != 0))
                return false;
        return !watcher->name || strcmp(watcher->name, hfd_object_name(object)) == 0;
}

size_t hfd_watchers_queue_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                        struct hfd_watcher **dirty) {
        size_t n = 0;

        for (struct hfd_watcher *w =
                     cacher->watchers.list[hfd_resource_index(change->object->resource)];
             w; w = w->next) {
                if (change->object->revision <= w->after || !is_watched(w, change->object))
                        continue;
                queue_change_locked(w, change, change->object->revision);
                mark_dirty_locked(w, dirty);
                n++;
        }
        return n;
}

static void end_all_locked(struct hfd_cacher *cacher, int error, struct hfd_watcher **dirty) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next) {
                        request_end_locked(w, error);
                        mark_dirty_locked(w, dirty);
                }
}

void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        end_all_locked(cacher, HF_E_GONE, dirty);
}

void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        end_all_locked(cacher, 0, dirty);
}

static void queue_bookmark_locked(struct hfd_watcher *watcher) {
        struct hfd_change bookmark = {.type = HF_EVENT_BOOKMARK};

        queue_change_locked(watcher, &bookmark,
                            watcher->cacher->revision > watcher->after ? watcher->cacher->revision
                                                                       : watcher->after);
}

void hfd_watchers_lease_acquired_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next)
                        if (w->in_process && w->bookmarks && !w->end_requested) {
                                queue_bookmark_locked(w);
                                mark_dirty_locked(w, dirty);
                        }
}

void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty) {
        hf_nsec next = HF_NSEC_NEVER;

        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next) {
                        if (w->end_requested)
                                continue;
                        if (w->bookmark_at <= now) {
                                queue_bookmark_locked(w);
                                mark_dirty_locked(w, dirty);
                                w->bookmark_at = now + BOOKMARK_INTERVAL;
                                if (w->bookmark_at > w->ends_at - BOOKMARK_BEFORE_END)
                                        w->bookmark_at = now < w->ends_at - BOOKMARK_BEFORE_END
                                                                 ? w->ends_at - BOOKMARK_BEFORE_END
                                                                 : HF_NSEC_NEVER;
                        }
                        if (w->ends_at <= now) {
                                request_end_locked(w, 0);
                                mark_dirty_locked(w, dirty);
                                continue;
                        }
                        hf_nsec due = w->bookmark_at < w->ends_at ? w->bookmark_at : w->ends_at;
                        next = due < next ? due : next;
                }
        cacher->watchers.due = next;
}

/* ---- delivering, without cacher->mu ---- */

static bool is_selected(struct hfd_watcher *watcher, struct hfd_object *object) {
        return object && hfd_selector_matches(&watcher->labels, object) &&
               hfd_selector_matches(&watcher->fields, object);
}

/*
 * Turns a change into the event for this watcher. An object that begins to match the selectors is
 * ADDED, and an object that no longer matches is DELETED. False: the watcher gets no event.
 */
static bool apply_selectors(struct hfd_watcher *watcher, struct queued_change *queued) {
        struct hfd_change *change = &queued->change;

        if (change->type == HF_EVENT_BOOKMARK || (!watcher->labels.n && !watcher->fields.n))
                return true;
        bool now = change->type != HF_EVENT_DELETED && is_selected(watcher, change->object);
        bool before = is_selected(watcher, change->before);
        if (now) {
                change->type = before ? HF_EVENT_MODIFIED : HF_EVENT_ADDED;
                return true;
        }
        if (before && change->type != HF_EVENT_DELETED) {
                struct hfd_object *last = hfd_object_at(change->before, change->object->revision);
                if (!last)
                        return false;
                hfd_object_unref(change->object);
                change->object = last;
                change->type = HF_EVENT_DELETED;
        }
        return before;
}

/* Delivers the batch, and drops its references. False: the sink accepts no more events. */
static bool deliver_batch(struct hfd_watcher *watcher, struct queued_change *queue, size_t n) {
        struct hfd_watch_item items[BATCH_MAX];
        size_t n_items = 0;
        bool good = true;

        assert(n <= BATCH_MAX);
        for (size_t i = 0; i < n; i++)
                if (apply_selectors(watcher, &queue[i]))
                        items[n_items++] =
                                (struct hfd_watch_item){queue[i].change.type,
                                                        queue[i].change.object, queue[i].revision};
        if (n_items)
                good = watcher->sink.events(watcher->ctx, items, n_items);
        for (size_t i = 0; i < n; i++)
                free_queued(&queue[i]);
        return good;
}

/* Delivers the objects of the snapshot, if its owner has not taken it. False as above. */
static bool deliver_snapshot(struct hfd_watcher *watcher, const struct hfd_snapshot *snapshot) {
        struct queued_change batch[BATCH_MAX];
        struct hfd_object_iter iter;
        struct hfd_object *object;
        bool good = true;

        hfd_object_iter_init(&iter, &snapshot->objects, "", "");
        do {
                size_t n = 0;
                while (n < BATCH_MAX && (object = hfd_object_iter_next(&iter)) != NULL)
                        if (is_watched(watcher, object))
                                batch[n++] =
                                        (struct queued_change){.change = {.type = HF_EVENT_ADDED,
                                                                          .object = hfd_object_ref(
                                                                                  object)},
                                                               .revision = object->revision};
                good = deliver_batch(watcher, batch, n);
        } while (object && good);
        return good;
}

static void deliver_end(struct hfd_watcher *watcher, int error) {
        struct hfd_response response = {0};

        if (error == HF_E_GONE)
                hfd_response_status(&response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided watch is too old.", NULL);
        watcher->sink.end(watcher->ctx, error, &response);
        hfd_response_done(&response);
}

/* Takes up to BATCH_MAX changes from the queue. */
static size_t take_batch_locked(struct hfd_watcher *watcher,
                                struct queued_change batch[BATCH_MAX]) {
        size_t n = watcher->n_queue - watcher->queue_at;

        n = n < BATCH_MAX ? n : BATCH_MAX;
        memcpy(batch, watcher->queue + watcher->queue_at, n * sizeof *batch);
        watcher->queue_at += n;
        if (watcher->queue_at == watcher->n_queue) {
                /* A watch without changes keeps no memory for them. */
                free(watcher->queue);
                watcher->queue = NULL;
                watcher->queue_at = watcher->n_queue = watcher->queue_space = 0;
                watcher->n_initial = 0;
        }
        return n;
}

/*
 * Delivers the snapshot and the queue, as long as the sink has room. The caller holds the lock, and
 * has set `delivering`; the lock is not held while the sink is called.
 */
static void deliver_events_locked(struct hfd_watcher *watcher) {
        pthread_mutex_t *mu = &watcher->cacher->mu;
        struct queued_change batch[BATCH_MAX];

        while ((watcher->n_queue || watcher->snapshot) && !watcher->ended_early &&
               !(watcher->end_requested && watcher->end_error == HF_E_CANCELED)) {
                struct hfd_snapshot *snapshot = watcher->snapshot;
                watcher->snapshot = NULL;
                watcher->resumed = false;
                pthread_mutex_unlock(mu);
                bool good = true, ready = true;
                if (snapshot) {
                        good = deliver_snapshot(watcher, snapshot);
                        hfd_snapshot_done(snapshot);
                        free(snapshot);
                } else {
                        ready = !watcher->sink.ready || watcher->sink.ready(watcher->ctx);
                }
                pthread_mutex_lock(mu);
                /* The client of a watch that ends watches again, from the last event it has got. */
                if (!ready && (watcher->end_requested || !watcher->resumed))
                        return;
                if (good && ready && !snapshot) {
                        size_t n = take_batch_locked(watcher, batch);
                        pthread_mutex_unlock(mu);
                        good = deliver_batch(watcher, batch, n);
                        pthread_mutex_lock(mu);
                }
                if (!good)
                        request_end_locked(watcher, 0);
        }
}

/*
 * Delivers the queue and then the end. If another thread is delivering, this does nothing: that
 * thread also delivers the new events, because it checks the queue again before it stops.
 */
static void deliver_queue(struct hfd_watcher *watcher) {
        struct hfd_cacher *cacher = watcher->cacher;

        pthread_mutex_lock(&cacher->mu);
        bool may_end = watcher->opened && watcher->end_requested;
        if (watcher->delivering || watcher->ended || (!watcher->started && !may_end)) {
                pthread_mutex_unlock(&cacher->mu);
                return;
        }
        watcher->delivering = true;
        deliver_events_locked(watcher);
        watcher->delivering = false;
        bool end = watcher->end_requested;
        int error = watcher->end_error;
        if (end) {
                watcher->ended = true;
                *watcher->link = watcher->next;
                if (watcher->next)
                        watcher->next->link = watcher->link;
                assert(cacher->watchers.n > 0);
                cacher->watchers.n--;
        }
        pthread_mutex_unlock(&cacher->mu);
        if (end) {
                deliver_end(watcher, error);
                hfd_watcher_unref(watcher);
        }
}

void hfd_watchers_deliver(struct hfd_watcher *dirty) {
        while (dirty) {
                struct hfd_watcher *watcher = dirty;
                struct hfd_cacher *cacher = watcher->cacher;
                /* Unlink it before delivering, so that events queued from now on mark it again. */
                pthread_mutex_lock(&cacher->mu);
                dirty = watcher->dirty_next;
                watcher->dirty = false;
                pthread_mutex_unlock(&cacher->mu);
                deliver_queue(watcher);
                hfd_watcher_unref(watcher);
        }
}

void hfd_watcher_start(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->started = true; /* an earlier cancel may have set it */
        pthread_mutex_unlock(&watcher->cacher->mu);
        deliver_queue(watcher);
}

void hfd_watcher_open(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->opened = true;
        pthread_mutex_unlock(&watcher->cacher->mu);
        deliver_queue(watcher);
}

void hfd_watcher_resume(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        watcher->resumed = true;
        pthread_mutex_unlock(&watcher->cacher->mu);
        deliver_queue(watcher);
}

bool hfd_watcher_take_snapshot(struct hfd_watcher *watcher, struct hfd_snapshot *ret_snapshot) {
        pthread_mutex_lock(&watcher->cacher->mu);
        struct hfd_snapshot *snapshot = watcher->snapshot;
        watcher->snapshot = NULL;
        pthread_mutex_unlock(&watcher->cacher->mu);
        if (!snapshot)
                return false;
        *ret_snapshot = *snapshot;
        free(snapshot);
        return true;
}

void hfd_watcher_filter(const struct hfd_watcher *watcher, const struct hfd_selector **ret_labels,
                        const struct hfd_selector **ret_fields, const char **ret_name) {
        *ret_labels = &watcher->labels;
        *ret_fields = &watcher->fields;
        *ret_name = watcher->name;
}

void hfd_watcher_cancel(struct hfd_watcher *watcher) {
        pthread_mutex_lock(&watcher->cacher->mu);
        if (!watcher->ended) {
                watcher->end_requested = true;
                watcher->end_error = HF_E_CANCELED;
                watcher->started = true;
        }
        pthread_mutex_unlock(&watcher->cacher->mu);
        deliver_queue(watcher);
}

/* ---- creating a watcher ---- */

/*
 * Queues the initial events of the watch: all objects, or all changes after a revision. False: the
 * history no longer contains all changes after that revision.
 */
static bool queue_initial_locked(struct hfd_watcher *watcher, uint64_t revision) {
        struct hfd_cacher *cacher = watcher->cacher;
        size_t index = hfd_resource_index(watcher->resource);

        if (!revision) {
                /* Constant time: the objects are looked at when they are delivered. */
                const struct hfd_object_tree *tree = &cacher->trees[index];
                if (watcher->snapshot)
                        *watcher->snapshot =
                                (struct hfd_snapshot){.objects = hfd_object_tree_snapshot(tree),
                                                      .revision = cacher->revision};
                return true;
        }
        const struct hfd_event_history *history = &cacher->histories.of[index];
        if (revision < history->floor)
                return false;
        watcher->after = revision;
        for (size_t i = hfd_event_history_after(history, revision); i < history->n; i++) {
                const struct hfd_change *change = hfd_event_history_at(history, i);
                watcher->n_initial++;
                if (is_watched(watcher, change->object))
                        queue_change_locked(watcher, change, change->object->revision);
        }
        return true;
}

static struct hfd_watcher *watcher_alloc(struct hfd_cacher *cacher,
                                         const struct hfd_watcher_spec *spec,
                                         const struct hfd_watcher_sink *sink, void *ctx) {
        size_t n_ns = strlen(spec->ns), n_name = strlen(spec->name);
        struct hfd_watcher *watcher = calloc(1, sizeof *watcher + n_ns + n_name + 2);
        hf_nsec now = hfd_cacher_now(cacher);

        if (!watcher)
                return NULL;
        atomic_init(&watcher->refs, 2); /* the caller's and the list's */
        watcher->cacher = cacher;
        watcher->resource = spec->resource;
        memcpy(watcher->text, spec->ns, n_ns + 1);
        memcpy(watcher->text + n_ns + 1, spec->name, n_name + 1);
        watcher->ns = watcher->text;
        watcher->n_ns = n_ns;
        watcher->labels = *spec->labels;
        watcher->fields = *spec->fields;
        *spec->labels = *spec->fields = (struct hfd_selector){0};
        watcher->name = n_name > 0 ? watcher->text + n_ns + 1 : hfd_selector_name(&watcher->fields);
        watcher->bookmarks = spec->bookmarks;
        watcher->in_process = spec->in_process;
        watcher->sink = *sink;
        watcher->ctx = ctx;
        if (!spec->revision && !spec->from_now) {
                watcher->snapshot = calloc(1, sizeof *watcher->snapshot);
                if (!watcher->snapshot) {
                        hfd_selector_done(&watcher->labels);
                        hfd_selector_done(&watcher->fields);
                        free(watcher);
                        return NULL;
                }
        }
        /*
         * If the client sets no timeout, the watch ends after 30 to 60 minutes. The watcher's
         * address spreads the ends, so that clients do not all reconnect at once.
         */
        int64_t seconds = spec->timeout_s;
        if (seconds == 0)
                seconds = DEFAULT_TIMEOUT_MIN_S +
                          (int64_t)(((uintptr_t)watcher >> 6) % DEFAULT_TIMEOUT_MIN_S);
        watcher->ends_at = now + seconds * HF_NSEC_PER_SEC;
        watcher->bookmark_at = HF_NSEC_NEVER;
        if (watcher->bookmarks) {
                watcher->bookmark_at = now + BOOKMARK_INTERVAL;
                if (watcher->bookmark_at > watcher->ends_at - BOOKMARK_BEFORE_END)
                        watcher->bookmark_at = watcher->ends_at - BOOKMARK_BEFORE_END;
        }
        return watcher;
}

static void add_to_list_locked(struct hfd_watcher *watcher) {
        struct hfd_cacher *cacher = watcher->cacher;
        struct hfd_watcher **head = &cacher->watchers.list[hfd_resource_index(watcher->resource)];
        hf_nsec due =
                watcher->bookmark_at < watcher->ends_at ? watcher->bookmark_at : watcher->ends_at;

        watcher->next = *head;
        watcher->link = head;
        if (*head)
                (*head)->link = &watcher->next;
        *head = watcher;
        cacher->watchers.n++;
        if (due < cacher->watchers.due) {
                cacher->watchers.due = due;
                pthread_cond_broadcast(&cacher->cond);
        }
}

/*
 * If the store itself has not reached the client's revision, the revision belongs to a history that
 * a restored backup has replaced. The client would get no events until the new history reaches that
 * revision, and would miss all changes before it. So the watch ends with HF_E_GONE, and the client
 * lists again.
 */
static void on_revision(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_watcher *watcher = ctx;

        if (!reply->error && reply->revision < watcher->after) {
                pthread_mutex_lock(&watcher->cacher->mu);
                request_end_locked(watcher, HF_E_GONE);
                pthread_mutex_unlock(&watcher->cacher->mu);
                deliver_queue(watcher);
        }
        hfd_watcher_unref(watcher);
}

/*
 * Called if the client's revision is newer than the cache's. The cache may only be late, so this
 * requests the store's revision.
 */
static void check_revision(struct hfd_watcher *watcher) {
        struct hfd_cacher *cacher = watcher->cacher;

        atomic_fetch_add(&watcher->refs, 1);
        if (hfd_store_request_revision(cacher, hfd_cacher_now(cacher) + REVISION_DEADLINE,
                                       on_revision, watcher))
                hfd_watcher_unref(watcher);
}

bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watcher_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watcher) {
        const struct hfd_details soon = {.retry_after_s = 1};

        assert(sink->events && sink->end);
        struct hfd_watcher *watcher = watcher_alloc(cacher, spec, sink, ctx);
        if (!watcher) {
                hfd_response_no_memory(response);
                return false;
        }
        pthread_mutex_lock(&cacher->mu);
        bool ended = cacher->watchers.ended, synced = cacher->synced, added = false, ahead = false;
        if (!ended && synced && queue_initial_locked(watcher, spec->revision)) {
                add_to_list_locked(watcher);
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
        else
                hfd_response_status(response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided watch is too old.", NULL);
        return false;
}
