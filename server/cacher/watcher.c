/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of the API. Under mu a change is queued, by reference, for each watch whose resource,
 * namespace and name it concerns; selectors, which may have to parse, are asked later, by whoever
 * delivers. One thread at a time delivers to one watch: it takes the whole queue, calls the sink
 * under no lock, and looks again; others that find it delivering leave their items to it. So order
 * is the queue's, and the sink is never called twice at once.
 *
 *      new --go--> delivering whenever something is queued --end wanted, queue empty--> sink.end,
 * unlisted
 *
 * References: one for the adapter, one for being listed (dropped when end was called), one for each
 * dirty link.
 */
#include "server/cacher/watcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"

#define REVISION_DEADLINE (10 * HF_NSEC_PER_SEC)
#define QUEUE_MAX         8192 /* changes that may wait for a sink; the initial ones not counted */
#define BOOKMARK_EVERY    (60 * HF_NSEC_PER_SEC)
#define BOOKMARK_BEFORE   (2 * HF_NSEC_PER_SEC)
#define DEFAULT_SECONDS   1800

struct queued {
        struct hfd_change change; /* its references are owned; object NULL = bookmark */
        uint64_t revision;
};

struct hfd_watcher {
        /* immutable */
        atomic_int refs;
        struct hfd_cacher *cacher;
        const struct hfd_resource *resource;
        char ns[HF_NAME_MAX + 1];
        size_t n_ns;
        struct hfd_selector labels, fields; /* owned */
        const char *name; /* what the path or the field selector demands; NULL = any */
        char name_in_path[HF_NAME_MAX + 1];
        bool bookmarks, in_process;
        uint64_t after; /* changes up to it are not for this watch */
        struct hfd_watcher_sink sink;
        void *ctx;

        /* guarded by cacher->mu */
        struct hfd_watcher *next, **link; /* listed */
        struct hfd_watcher *dirty_next;
        bool dirty, started, delivering, ended;
        bool end_wanted;
        int end_error;
        struct queued *queue; /* owned */
        size_t n_queue, queue_space, n_initial;
        hf_nsec ends_at, bookmark_at;
};

static void queued_done(struct queued *q) {
        hfd_object_unref(q->change.object);
        hfd_object_unref(q->change.before);
}

struct hfd_watcher *hfd_watcher_unref(struct hfd_watcher *watch) {
        if (!watch || atomic_fetch_sub_explicit(&watch->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < watch->n_queue; i++)
                queued_done(&watch->queue[i]);
        free(watch->queue);
        hfd_selector_done(&watch->labels);
        hfd_selector_done(&watch->fields);
        free(watch);
        return NULL;
}

/* ---- queueing, under mu ---- */

static void mark_dirty_locked(struct hfd_watcher *watch, struct hfd_watcher **dirty) {
        if (watch->dirty || watch->ended)
                return;
        watch->dirty = true;
        atomic_fetch_add(&watch->refs, 1);
        watch->dirty_next = *dirty;
        *dirty = watch;
}

static void want_end_locked(struct hfd_watcher *watch, int error) {
        if (watch->end_wanted)
                return;
        watch->end_wanted = true;
        watch->end_error = error;
}

/* Takes new references. A watch that cannot take it ends; its client comes again from what it has
 * seen. */
static void queue_locked(struct hfd_watcher *watch, const struct hfd_change *change,
                         uint64_t revision) {
        if (watch->end_wanted)
                return;
        if (watch->n_queue == watch->queue_space) {
                size_t space = watch->queue_space ? 2 * watch->queue_space : 4;
                struct queued *more = NULL;
                if (watch->n_queue < watch->n_initial + QUEUE_MAX)
                        more = realloc(watch->queue, space * sizeof *more);
                if (!more) {
                        want_end_locked(watch, 0);
                        return;
                }
                watch->queue = more;
                watch->queue_space = space;
        }
        struct queued *q = &watch->queue[watch->n_queue++];
        *q = (struct queued){.revision = revision, .change = *change};
        hfd_object_ref(q->change.object);
        hfd_object_ref(q->change.before);
}

static bool concerns(const struct hfd_watcher *watch, const struct hfd_object *object) {
        if (watch->n_ns &&
            (watch->n_ns != object->n_ns || memcmp(watch->ns, object->path, watch->n_ns) != 0))
                return false;
        return !watch->name || strcmp(watch->name, object->name) == 0;
}

void hfd_watchers_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                struct hfd_watcher **dirty) {
        for (struct hfd_watcher *w =
                     cacher->watchers.list[hfd_resource_index(change->object->resource)];
             w; w = w->next) {
                if (change->object->revision <= w->after || !concerns(w, change->object))
                        continue;
                queue_locked(w, change, change->object->revision);
                mark_dirty_locked(w, dirty);
        }
}

static void end_all_locked(struct hfd_cacher *cacher, int error, struct hfd_watcher **dirty) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next) {
                        want_end_locked(w, error);
                        mark_dirty_locked(w, dirty);
                }
}

void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        end_all_locked(cacher, HF_E_GONE, dirty);
}

void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        end_all_locked(cacher, 0, dirty);
}

static void bookmark_locked(struct hfd_watcher *watch) {
        struct hfd_change none = {.type = HF_EVENT_BOOKMARK};

        queue_locked(watch, &none,
                     watch->cacher->revision > watch->after ? watch->cacher->revision
                                                            : watch->after);
}

void hfd_watchers_taken_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next)
                        if (w->in_process && w->bookmarks && !w->end_wanted) {
                                bookmark_locked(w);
                                mark_dirty_locked(w, dirty);
                        }
}

void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty) {
        hf_nsec next = HF_NSEC_NEVER;

        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                for (struct hfd_watcher *w = cacher->watchers.list[i]; w; w = w->next) {
                        if (w->end_wanted)
                                continue;
                        if (w->bookmark_at <= now) {
                                bookmark_locked(w);
                                mark_dirty_locked(w, dirty);
                                w->bookmark_at = now + BOOKMARK_EVERY;
                                if (w->bookmark_at > w->ends_at - BOOKMARK_BEFORE)
                                        w->bookmark_at = now < w->ends_at - BOOKMARK_BEFORE
                                                                 ? w->ends_at - BOOKMARK_BEFORE
                                                                 : HF_NSEC_NEVER;
                        }
                        if (w->ends_at <= now) {
                                want_end_locked(w, 0);
                                mark_dirty_locked(w, dirty);
                                continue;
                        }
                        hf_nsec due = w->bookmark_at < w->ends_at ? w->bookmark_at : w->ends_at;
                        next = due < next ? due : next;
                }
        cacher->watchers.due = next;
}

/* ---- delivering, under no lock ---- */

static bool selected(struct hfd_watcher *watch, struct hfd_object *object) {
        return object && hfd_selector_matches(&watch->labels, object) &&
               hfd_selector_matches(&watch->fields, object);
}

/* What the change is for this watch: an object that begins or ceases to match is added or deleted.
 * False: nothing. */
static bool translate(struct hfd_watcher *watch, struct queued *q) {
        struct hfd_change *change = &q->change;

        if (change->type == HF_EVENT_BOOKMARK || (!watch->labels.n && !watch->fields.n))
                return true;
        bool now = change->type != HF_EVENT_DELETED && selected(watch, change->object);
        bool before = selected(watch, change->before);
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

/* False: the sink wants no more, or memory ran out. */
static bool deliver_batch(struct hfd_watcher *watch, struct queued *queue, size_t n) {
        struct hfd_watch_item *items = n ? malloc(n * sizeof *items) : NULL;
        size_t n_items = 0;
        bool good = items || !n;

        for (size_t i = 0; i < n && good; i++)
                if (translate(watch, &queue[i]))
                        items[n_items++] =
                                (struct hfd_watch_item){queue[i].change.type,
                                                        queue[i].change.object, queue[i].revision};
        if (good && n_items)
                good = watch->sink.events(watch->ctx, items, n_items);
        for (size_t i = 0; i < n; i++)
                queued_done(&queue[i]);
        free(items);
        free(queue);
        return good;
}

static void deliver_end(struct hfd_watcher *watch, int error) {
        struct hfd_response response = {0};

        if (error == HF_E_GONE)
                hfd_response_status(&response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided watch is too old.", NULL);
        watch->sink.end(watch->ctx, error, &response);
        hfd_response_done(&response);
}

static void deliver(struct hfd_watcher *watch) {
        struct hfd_cacher *cacher = watch->cacher;

        pthread_mutex_lock(&cacher->mu);
        if (watch->delivering || watch->ended || !watch->started) {
                pthread_mutex_unlock(&cacher->mu);
                return;
        }
        watch->delivering = true;
        while (watch->n_queue && !(watch->end_wanted && watch->end_error == HF_E_CANCELED)) {
                struct queued *queue = watch->queue;
                size_t n = watch->n_queue;
                watch->queue = NULL;
                watch->n_queue = watch->queue_space = watch->n_initial = 0;
                pthread_mutex_unlock(&cacher->mu);
                bool good = deliver_batch(watch, queue, n);
                pthread_mutex_lock(&cacher->mu);
                if (!good)
                        want_end_locked(watch, 0);
        }
        watch->delivering = false;
        bool end = watch->end_wanted;
        int error = watch->end_error;
        if (end) {
                watch->ended = true;
                *watch->link = watch->next;
                if (watch->next)
                        watch->next->link = watch->link;
                cacher->watchers.n--;
        }
        pthread_mutex_unlock(&cacher->mu);
        if (end) {
                deliver_end(watch, error);
                hfd_watcher_unref(watch);
        }
}

void hfd_watchers_deliver(struct hfd_watcher *dirty) {
        while (dirty) {
                struct hfd_watcher *watch = dirty;
                struct hfd_cacher *cacher = watch->cacher;
                pthread_mutex_lock(&cacher->mu);
                dirty = watch->dirty_next;
                watch->dirty = false;
                pthread_mutex_unlock(&cacher->mu);
                deliver(watch);
                hfd_watcher_unref(watch);
        }
}

void hfd_watcher_go(struct hfd_watcher *watch) {
        pthread_mutex_lock(&watch->cacher->mu);
        watch->started = true;
        pthread_mutex_unlock(&watch->cacher->mu);
        deliver(watch);
}

void hfd_watcher_cancel(struct hfd_watcher *watch) {
        pthread_mutex_lock(&watch->cacher->mu);
        if (!watch->ended) {
                watch->end_wanted = true;
                watch->end_error = HF_E_CANCELED;
                watch->started = true;
        }
        pthread_mutex_unlock(&watch->cacher->mu);
        deliver(watch);
}

/* ---- beginning ---- */

static bool queue_initial(void *ctx, struct hfd_object *object) {
        struct hfd_watcher *watch = ctx;
        struct hfd_change change = {.type = HF_EVENT_ADDED, .object = object};

        watch->n_initial++; /* so that the limit does not count it */
        if (concerns(watch, object))
                queue_locked(watch, &change, object->revision);
        return !watch->end_wanted;
}

/* Queues what the watch begins with. False: its resourceVersion is too old. */
static bool begin_locked(struct hfd_watcher *watch, uint64_t revision) {
        struct hfd_cacher *cacher = watch->cacher;
        size_t index = hfd_resource_index(watch->resource);
        char prefix[HF_NAME_MAX + 2] = "";

        if (!revision) {
                if (watch->n_ns)
                        (void)snprintf(prefix, sizeof prefix, "%s/", watch->ns);
                hfd_object_tree_walk(&cacher->trees[index], prefix, "", queue_initial, watch);
                return true;
        }
        if (revision < cacher->history.floor)
                return false;
        watch->after = revision;
        for (size_t i = 0; i < cacher->history.n; i++) {
                const struct hfd_change *change = hfd_event_history_at(&cacher->history, i);
                if (change->object->resource != watch->resource ||
                    change->object->revision <= watch->after)
                        continue;
                watch->n_initial++;
                if (concerns(watch, change->object))
                        queue_locked(watch, change, change->object->revision);
        }
        return true;
}

static struct hfd_watcher *watch_alloc(struct hfd_cacher *cacher,
                                       const struct hfd_watcher_spec *spec,
                                       const struct hfd_watcher_sink *sink, void *ctx) {
        struct hfd_watcher *watch = calloc(1, sizeof *watch);
        hf_nsec now = hfd_cacher_now(cacher);

        if (!watch)
                return NULL;
        atomic_init(&watch->refs, 2);
        watch->cacher = cacher;
        watch->resource = spec->resource;
        (void)snprintf(watch->ns, sizeof watch->ns, "%s", spec->ns);
        watch->n_ns = strlen(watch->ns);
        watch->labels = *spec->labels;
        watch->fields = *spec->fields;
        *spec->labels = *spec->fields = (struct hfd_selector){0};
        (void)snprintf(watch->name_in_path, sizeof watch->name_in_path, "%s", spec->name);
        watch->name =
                *watch->name_in_path ? watch->name_in_path : hfd_selector_name(&watch->fields);
        watch->bookmarks = spec->bookmarks;
        watch->in_process = spec->in_process;
        watch->sink = *sink;
        watch->ctx = ctx;
        /* Without a wish the ends are spread over half an hour, so that clients do not come back
         * all at once. */
        int64_t seconds =
                spec->timeout_s
                        ? spec->timeout_s
                        : DEFAULT_SECONDS + (int64_t)(((uintptr_t)watch >> 6) % DEFAULT_SECONDS);
        watch->ends_at = now + seconds * HF_NSEC_PER_SEC;
        watch->bookmark_at = HF_NSEC_NEVER;
        if (watch->bookmarks) {
                watch->bookmark_at = now + BOOKMARK_EVERY;
                if (watch->bookmark_at > watch->ends_at - BOOKMARK_BEFORE)
                        watch->bookmark_at = watch->ends_at - BOOKMARK_BEFORE;
        }
        return watch;
}

static void list_locked(struct hfd_watcher *watch) {
        struct hfd_cacher *cacher = watch->cacher;
        struct hfd_watcher **head = &cacher->watchers.list[hfd_resource_index(watch->resource)];
        hf_nsec due = watch->bookmark_at < watch->ends_at ? watch->bookmark_at : watch->ends_at;

        watch->next = *head;
        watch->link = head;
        if (*head)
                (*head)->link = &watch->next;
        *head = watch;
        cacher->watchers.n++;
        if (due < cacher->watchers.due) {
                cacher->watchers.due = due;
                pthread_cond_broadcast(&cacher->cond);
        }
}

/*
 * A revision that the store itself has not reached when it is asked is one of a history that a
 * restored backup has replaced. Its client would wait, and believe itself up to date, until the new
 * one has got there; it is told to list again.
 */
static void on_revision(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_watcher *watch = ctx;

        if (!reply->error && reply->revision < watch->after) {
                pthread_mutex_lock(&watch->cacher->mu);
                want_end_locked(watch, HF_E_GONE);
                pthread_mutex_unlock(&watch->cacher->mu);
                deliver(watch);
        }
        hfd_watcher_unref(watch);
}

/* Of a watch from beyond the cache: which may only be late. */
static void doubt_revision(struct hfd_watcher *watch) {
        struct hfd_cacher *cacher = watch->cacher;

        atomic_fetch_add(&watch->refs, 1);
        if (hfd_store_request_revision(cacher, hfd_cacher_now(cacher) + REVISION_DEADLINE,
                                       on_revision, watch))
                hfd_watcher_unref(watch);
}

bool hfd_watcher_new(struct hfd_cacher *cacher, const struct hfd_watcher_spec *spec,
                     const struct hfd_watcher_sink *sink, void *ctx, struct hfd_response *response,
                     struct hfd_watcher **ret_watcher) {
        const struct hfd_details soon = {.retry_after_s = 1};

        struct hfd_watcher *watch = watch_alloc(cacher, spec, sink, ctx);
        if (!watch) {
                hfd_response_no_memory(response);
                return false;
        }
        pthread_mutex_lock(&cacher->mu);
        bool ended = cacher->watchers.ended, synced = cacher->synced, good = false, ahead = false;
        if (!ended && synced && begin_locked(watch, spec->revision)) {
                list_locked(watch);
                good = true;
                ahead = watch->after > cacher->revision;
        }
        pthread_mutex_unlock(&cacher->mu);
        if (ahead)
                doubt_revision(watch);
        if (good) {
                *ret_watcher = watch;
                return true;
        }
        hfd_watcher_unref(watch);
        hfd_watcher_unref(watch);
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
