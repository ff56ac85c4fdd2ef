/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and frees the cacher, runs its timer thread, and reads from its trees.
 *
 * The timer ends reads that have waited too long, sends bookmarks, ends watches, restarts the
 * reflector after a backoff, notices and reopens a watch of the store that hangs, starts audits,
 * drops old history, and builds the trees of a listing, in small steps between the others. It
 * sleeps until the first of these is due. A thread that makes one of them due earlier must wake the
 * timer through cacher->cond.
 *
 * Invariant: the timer collects the due work under the lock and does it after releasing the lock.
 */
#include "server/cacher/cacher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/cacher_private.h"
#include "server/resources/rows/resource_table.h"

/* ---- the timer ---- */

/* The work that is due, which the timer collects under the lock. */
struct due_work {
        struct hfd_consistent_read *late;        /* their wait has timed out */
        struct hfd_watcher *dirty;               /* they have events to deliver */
        bool reflector, audit, listing, history; /* history: it has more to drop */
        struct hfd_history_garbage garbage;
        struct hfd_store_lag_action lag;
};

static bool is_work_due(const struct due_work *due) {
        return due->late || due->dirty || due->reflector || due->audit || due->listing ||
               due->history || due->garbage.n || due->garbage.n_states ||
               due->lag.kind != HFD_WATCH_LAG_WAIT;
}

/*
 * Collects the due work. Lowers *next to the boot time at which the next waiting read times out or
 * the lag of the store's watch must be checked.
 */
static void collect_due_work_locked(struct hfd_cacher *cacher, hf_nsec now,
                                    struct due_work *ret_due, hf_nsec *next) {
        struct due_work due = {0};

        due.late = hfd_consistent_reads_remove_late_locked(cacher, now, next);
        if (cacher->watchers.due <= now)
                hfd_watchers_tick_locked(cacher, now, &due.dirty);
        due.reflector = cacher->reflector.state == HFD_REFLECTOR_BACKOFF &&
                        cacher->reflector.retry_at <= now;
        due.listing = hfd_listing_step_due_locked(cacher);
        due.audit = cacher->audit.due <= now;
        due.lag = hfd_store_lag_decide_locked(cacher, now, next);
        due.history = !hfd_event_histories_trim(&cacher->histories, now, &due.garbage);
        *ret_due = due;
}

/* Called without the lock, because each of these runs callbacks or sends requests. */
static void run_due_work(struct hfd_cacher *cacher, struct due_work *due) {
        hfd_history_garbage_free(&due->garbage);
        hfd_consistent_reads_call_ready(due->late);
        hfd_watchers_deliver(due->dirty);
        if (due->reflector)
                hfd_reflector_run(cacher);
        if (due->listing)
                hfd_listing_step(cacher);
        if (due->audit)
                hfd_cache_audit_start(cacher);
        hfd_store_lag_act(cacher, &due->lag);
}

/*
 * The timer thread. After work that was due, it checks again before it sleeps, because the lock was
 * released and more work may be due.
 */
static void *timer_main(void *ctx) {
        struct hfd_cacher *cacher = ctx;
        const struct hf_clock *clock = hf_host_clock(cacher->host);

        pthread_mutex_lock(&cacher->mu);
        while (!cacher->stopping || cacher->filling) {
                hf_nsec next = HF_NSEC_NEVER;
                struct due_work due;
                collect_due_work_locked(cacher, hf_now(clock), &due, &next);
                if (is_work_due(&due)) {
                        pthread_mutex_unlock(&cacher->mu);
                        run_due_work(cacher, &due);
                        pthread_mutex_lock(&cacher->mu);
                        continue;
                }
                if (cacher->watchers.due < next)
                        next = cacher->watchers.due;
                if (cacher->histories.due < next)
                        next = cacher->histories.due;
                if (cacher->audit.due < next)
                        next = cacher->audit.due;
                if (cacher->reflector.state == HFD_REFLECTOR_BACKOFF &&
                    cacher->reflector.retry_at < next)
                        next = cacher->reflector.retry_at;
                cacher->lag.timer_due = next;
                (void)clock->wait(clock->ctx, &cacher->cond, &cacher->mu, next);
        }
        pthread_mutex_unlock(&cacher->mu);
        return NULL;
}

/* ---- create, start, free ---- */

static void init_metrics(struct hfd_cacher *cacher) {
        struct hf_metrics *metrics = cacher->host->metrics;

        hfd_store_requests_init(&cacher->requests, cacher->host);
        cacher->identity.n_replaced =
                hf_metrics_get(metrics, HF_METRIC_COUNTER, "holdfast_store_history_replaced_total",
                               "How often the store was found to have been replaced.", "");
        cacher->audit.n_differences =
                hf_metrics_get(metrics, HF_METRIC_COUNTER, "holdfast_watch_cache_differences_total",
                               "How often the watch cache was found to differ from the store.", "");
}

/* A byte for each row, so that an event costs one look-up however many rows there are. */
static void init_observers(struct hfd_cacher *cacher, const struct hfd_cacher_config *config) {
        for (size_t i = 0; i < hfd_resources_count() && config->observers; i++)
                cacher->observers[i] = config->observers(hfd_resource_at(i));
}

int hfd_cacher_new(const struct hf_host *host, const struct hfd_cacher_config *config,
                   struct hfd_cacher **ret_cacher) {
        if (!config->prefix || strlen(config->prefix) >= HFD_CACHER_PREFIX_MAX || !config->store)
                return -EINVAL;
        struct hfd_cacher *cacher = calloc(1, sizeof *cacher);
        if (!cacher)
                return -ENOMEM;
        cacher->host = host;
        cacher->store = config->store;
        cacher->table = config->table;
        (void)snprintf(cacher->prefix, sizeof cacher->prefix, "%s", config->prefix);
        cacher->on_copy_begun = config->on_copy_begun;
        cacher->ctx = config->ctx;
        cacher->identity.on_replaced = config->on_history_replaced;
        cacher->identity.ctx = config->ctx;
        cacher->on_observed = config->on_observed;
        init_observers(cacher, config);
        cacher->audit.due = hfd_cacher_now(cacher) + HFD_CACHE_AUDIT_INTERVAL;
        cacher->reflector.relist = true;
        hfd_event_histories_init(&cacher->histories);
        cacher->watchers.due = HF_NSEC_NEVER;
        init_metrics(cacher);
        int r = hf__mutex_cond_init(&cacher->mu, &cacher->cond);
        if (r != 0)
                goto fail;
        r = hfd_store_lag_init(cacher);
        if (r != 0)
                goto fail_lock;
        *ret_cacher = cacher;
        return 0;
fail_lock:
        pthread_cond_destroy(&cacher->cond);
        pthread_mutex_destroy(&cacher->mu);
fail:
        free(cacher);
        return r;
}

int hfd_cacher_start(struct hfd_cacher *cacher) {
        assert(!cacher->timer_running);
        int r = hf__thread_start(cacher->host, "hf-api-time", timer_main, cacher,
                                 &cacher->timer_thread);
        if (r != 0)
                return r;
        cacher->timer_running = true;
        hfd_reflector_run(cacher);
        return 0;
}

void hfd_cacher_end_watches(struct hfd_cacher *cacher) {
        struct hfd_watcher *dirty = NULL;

        pthread_mutex_lock(&cacher->mu);
        cacher->watchers.ended = true;
        hfd_watchers_end_locked(cacher, &dirty);
        pthread_mutex_unlock(&cacher->mu);
        hfd_watchers_deliver(dirty);
}

struct hfd_cacher *hfd_cacher_free(struct hfd_cacher *cacher) {
        if (!cacher)
                return NULL;
        /*
         * Stop the sources of new work first. So no read can begin to wait after the waiting reads
         * have been ended below.
         */
        hfd_cacher_end_watches(cacher);
        hfd_reflector_stop(cacher);
        if (cacher->timer_running)
                (void)hf__thread_join(cacher->timer_thread);
        pthread_mutex_lock(&cacher->mu);
        struct hfd_consistent_read *remaining =
                hfd_consistent_reads_remove_all_locked(cacher, HF_E_CANCELED);
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_call_ready(remaining);
        /* This wait is bounded, because every request to the store has a deadline, and a thread
         * delays a probe only while it handles what it has read. */
        pthread_mutex_lock(&cacher->mu);
        while (cacher->requests.n > 0 || cacher->reads.n_delaying > 0)
                pthread_cond_wait(&cacher->cond, &cacher->mu);
        pthread_mutex_unlock(&cacher->mu);
        assert(!cacher->reads.waiting && !cacher->reads.to_probe && !cacher->reads.probing);
        hfd_event_histories_done(&cacher->histories);
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++) {
                hfd_object_tree_clear(&cacher->trees[i]);
                hfd_object_tree_clear(&cacher->newer[i]);
        }
        hfd_object_tree_clear(&cacher->unreadable);
        hfd_slot_forms_done(&cacher->forms);
        hf__buf_unref(cacher->identity.epoch);
        hfd_store_lag_deinit(cacher);
        pthread_cond_destroy(&cacher->cond);
        pthread_mutex_destroy(&cacher->mu);
        free(cacher);
        return NULL;
}

struct hfd_custom_table *hfd_cacher_table(const struct hfd_cacher *cacher) {
        return cacher->table;
}

const char *hfd_cacher_prefix(const struct hfd_cacher *cacher) { return cacher->prefix; }

/* ---- waiting for the first fill ---- */

bool hfd_cacher_synced(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool synced = cacher->synced;
        pthread_mutex_unlock(&cacher->mu);
        return synced;
}

/*
 * The token's waker. It acquires the lock, because otherwise a thread could miss the wake-up
 * between its check of the token and its wait.
 */
static void wake_threads(void *ctx) {
        struct hfd_cacher *cacher = ctx;

        pthread_mutex_lock(&cacher->mu);
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

int hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                           struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(cacher->host);
        const char *why = cacher->reflector.status.message;
        struct hf_cancel_waker waker = {0};
        int r = 0;

        hf_cancel_add_waker(token, &waker, wake_threads, cacher);
        pthread_mutex_lock(&cacher->mu);
        while (!cacher->synced && !hf_cancel_fired(token))
                (void)clock->wait(clock->ctx, &cacher->cond, &cacher->mu,
                                  hf_cancel_deadline(token));
        if (!cacher->synced && cacher->reflector.status.error == -EBADMSG)
                r = hf_fail(reterr_status, -EBADMSG, "%s", why);
        else if (!cacher->synced && cacher->reflector.n_listed > 0)
                r = hf_fail(reterr_status, HF_E_CANCELED, "the cache has %zu objects so far",
                            cacher->reflector.n_listed);
        else if (!cacher->synced)
                r = hf_fail(reterr_status, HF_E_CANCELED, "the store did not respond: %s",
                            *why ? why : "no reply yet");
        pthread_mutex_unlock(&cacher->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

int hfd_cacher_refill(struct hfd_cacher *cacher, struct hf_cancel *token) {
        const struct hf_clock *clock = hf_host_clock(cacher->host);
        struct hf_cancel_waker waker = {0};
        uint64_t cancel;

        hf_cancel_add_waker(token, &waker, wake_threads, cacher);
        pthread_mutex_lock(&cacher->mu);
        uint64_t n_fills = cacher->n_fills;
        cacher->identity.replacement_epoch++; /* a listing that runs is not published */
        hfd_reflector_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        if (cancel)
                cacher->store->ops->watch_cancel(cacher->store, cancel);
        pthread_mutex_lock(&cacher->mu);
        while (cacher->n_fills == n_fills && !hf_cancel_fired(token))
                (void)clock->wait(clock->ctx, &cacher->cond, &cacher->mu,
                                  hf_cancel_deadline(token));
        bool filled = cacher->n_fills != n_fills;
        pthread_mutex_unlock(&cacher->mu);
        hf_cancel_remove_waker(&waker);
        return filled ? 0 : HF_E_CANCELED;
}

hf_nsec hfd_cacher_fill_progress(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        hf_nsec at = cacher->reflector.progress_at;
        pthread_mutex_unlock(&cacher->mu);
        return at;
}

hf_nsec hfd_cacher_last_store_contact(struct hfd_cacher *cacher) {
        return (hf_nsec)atomic_load(&cacher->requests.last_contact);
}

hf_nsec hfd_cacher_store_full(struct hfd_cacher *cacher) {
        return (hf_nsec)atomic_load(&cacher->requests.room.refused_at);
}

uint64_t hfd_cacher_lag(struct hfd_cacher *cacher, hf_nsec *ret_time) {
        hf_nsec now = hfd_cacher_now(cacher);

        pthread_mutex_lock(&cacher->mu);
        uint64_t revisions = hfd_watch_lag_revisions(&cacher->lag.watch);
        *ret_time = hfd_watch_lag_time(&cacher->lag.watch, now);
        pthread_mutex_unlock(&cacher->mu);
        return revisions;
}

/* ---- reading ---- */

uint64_t hfd_cacher_revision(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        uint64_t revision = cacher->revision;
        pthread_mutex_unlock(&cacher->mu);
        return revision;
}

struct hfd_object *hfd_cacher_get(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                  const char *path) {
        pthread_mutex_lock(&cacher->mu);
        struct hfd_object *object = hfd_object_ref(
                hfd_object_tree_find(&cacher->trees[hfd_resource_index(resource)], path));
        pthread_mutex_unlock(&cacher->mu);
        return object;
}

size_t hfd_cacher_count(struct hfd_cacher *cacher, const struct hfd_resource *resource) {
        pthread_mutex_lock(&cacher->mu);
        size_t n = hfd_object_tree_size(&cacher->trees[hfd_resource_index(resource)]);
        pthread_mutex_unlock(&cacher->mu);
        return n;
}

/* ---- for writes ---- */

struct hfd_object *hfd_cacher_newest(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                     const char *path, bool *ret_synced) {
        size_t index = hfd_resource_index(resource);
        struct hfd_object *object = NULL;

        pthread_mutex_lock(&cacher->mu);
        *ret_synced = cacher->synced;
        if (cacher->synced)
                object = hfd_object_tree_find(&cacher->newer[index], path);
        if (cacher->synced && !object)
                object = hfd_object_tree_find(&cacher->trees[index], path);
        hfd_object_ref(object);
        pthread_mutex_unlock(&cacher->mu);
        return object;
}

size_t hfd_cacher_newest_in(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                            const char *ns, struct hfd_object **ret_objects, size_t max,
                            bool *ret_synced) {
        size_t index = hfd_resource_index(resource), n = 0;
        struct hfd_object_iter iter;
        struct hfd_scope scope;

        hfd_object_scope(resource, ns, NULL, &scope);
        pthread_mutex_lock(&cacher->mu);
        *ret_synced = cacher->synced;
        if (cacher->synced)
                n = hfd_object_tree_count(&cacher->trees[index], scope.prefix, "");
        if (n > 0)
                hfd_object_iter_init(&iter, &cacher->trees[index], &scope, "");
        for (size_t i = 0; i < n && i < max; i++) {
                struct hfd_object *seen = hfd_object_iter_next(&iter), *newer;
                assert(seen); /* the tree has n objects in the scope */
                newer = hfd_object_tree_find(&cacher->newer[index], seen->path);
                ret_objects[i] = hfd_object_ref(newer ? newer : seen);
        }
        pthread_mutex_unlock(&cacher->mu);
        return n;
}

void hfd_cacher_record_write(struct hfd_cacher *cacher, struct hfd_object *object) {
        size_t index = hfd_resource_index(object->resource);
        struct hfd_object *old = NULL;

        pthread_mutex_lock(&cacher->mu);
        const struct hfd_object *seen = hfd_object_tree_find(&cacher->trees[index], object->path);
        const struct hfd_object *newer = hfd_object_tree_find(&cacher->newer[index], object->path);
        /*
         * Replies to writes may arrive in any order, and the watch may deliver a version before the
         * reply to its write. So keep a version only if it is the newest. An object that is not in
         * the tree may have been deleted since, so it is not kept at all.
         */
        if (seen && seen->revision < object->revision &&
            (!newer || newer->revision < object->revision))
                /* If memory runs out, the next write is based on the version before, and
                 * repeats. */
                (void)hfd_object_tree_put(&cacher->newer[index], hfd_object_ref(object), &old);
        pthread_mutex_unlock(&cacher->mu);
        hfd_object_unref(old);
}
