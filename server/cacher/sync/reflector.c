/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the cache equal to the store. It lists all objects, and then watches the objects below
 * PREFIX/, and the keys below PREFIX.holdfast/ (storage/keys.h), of which the term records, the
 * epoch and the mark of a copy matter here.
 *
 *      IDLE --run--> RUNNING: read the epoch, [list,] watch --failure--> BACKOFF --timer--> RUNNING
 *
 * After hfd_reflector_stop, BACKOFF and the end of RUNNING lead to IDLE.
 *
 * Reading the epoch, listing and watching are a chain of operations: the callback of each one
 * starts the next. When the watch has ended, the next watch normally resumes at `revision` + 1.
 * But if the store has compacted that revision or was replaced, if its encryption keys were
 * replaced, if events could not be applied, or if an audit has found a difference, everything is
 * listed again. Then the watches of clients end with 410, and a new history begins.
 *
 * Invariants: only one operation of the chain is running at a time. A listing that began before the
 * store, or its encryption keys, were found to be replaced is never published.
 */
#include "server/cacher/sync/reflector.h"

#include <assert.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/sync/listing.h"
#include "server/cacher/sync/store_events.h"
#include "server/cacher/watch/watchers.h"

#define EPOCH_DEADLINE (5 * HF_NSEC_PER_SEC)
#define BACKOFF_MIN    (50 * HF_NSEC_PER_MSEC)
#define BACKOFF_MAX    (1000 * HF_NSEC_PER_MSEC)
#define TRIM_MIN       10000 /* keys; a smaller listing leaves little memory to give back */

/* Guarded by the cacher's lock, as is the watch (struct hfd_store_watch). */
struct hfd_reflector {
        enum { IDLE, RUNNING, BACKOFF } state;
        uint64_t n_watches; /* watches opened so far; identifies the newest one (begin_watch) */
        hf_nsec backoff;
        struct hf_status status; /* the last failure */
};

static void read_epoch(struct hfd_cacher *cacher);
static void begin_watch(struct hfd_cacher *cacher);

struct hfd_reflector *hfd_reflector_new(void) {
        struct hfd_reflector *reflector = calloc(1, sizeof *reflector);

        if (reflector)
                reflector->backoff = BACKOFF_MIN;
        return reflector;
}

struct hfd_reflector *hfd_reflector_free(struct hfd_reflector *reflector) {
        assert(!reflector || reflector->state == IDLE);
        free(reflector);
        return NULL;
}

/*
 * Ends the chain after a failure, or after the end of the watch. The timer restarts it after the
 * backoff, unless the cacher is being freed. status may be NULL. relist: the next chain must list;
 * otherwise it does so only if something else sets watch.relist.
 */
static void fail_chain(struct hfd_cacher *cacher, int error, const struct hf_status *status,
                       bool relist) {
        struct hfd_reflector *reflector = cacher->reflector;

        pthread_mutex_lock(&cacher->mu);
        assert(reflector->state == RUNNING);
        hfd_listings_reset_locked(cacher);
        reflector->status =
                status && *status->message ? *status : (struct hf_status){.error = error};
        if (!*reflector->status.message)
                (void)snprintf(reflector->status.message, sizeof reflector->status.message, "%s",
                               hf_strerror(error));
        cacher->watch.relist |= relist;
        cacher->watch.is_open = false;
        cacher->watch.id = 0;
        hfd_store_lag_closed_locked(cacher);
        reflector->state = cacher->stopping ? IDLE : BACKOFF;
        cacher->watch.retry_at = hfd_cacher_now(cacher) + reflector->backoff;
        reflector->backoff *= 2;
        if (reflector->backoff > BACKOFF_MAX)
                reflector->backoff = BACKOFF_MAX;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

/* ---- the list ---- */

static void swap_trees(struct hfd_object_tree *a, struct hfd_object_tree *b) {
        struct hfd_object_tree tree = *a;

        *a = *b;
        *b = tree;
}

/*
 * Replaces the contents of the cache by the listing. The old trees are moved to the listing, so
 * that they are freed after the lock is released. False: the store or its encryption keys were
 * replaced after the listing had begun.
 */
static bool publish_locked(struct hfd_cacher *cacher, struct hfd_listing *listing) {
        hf__mutex_assert_held(&cacher->mu);
        if (listing->generation != hfd_store_identity_generation_locked(cacher))
                return false;
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++) {
                swap_trees(&cacher->trees[i], &listing->trees[i]);
                swap_trees(&cacher->newer[i], &listing->newer[i]);
        }
        swap_trees(&cacher->unreadable, &listing->unreadable);
        hfd_event_histories_restart(&cacher->histories, listing->revision, &listing->histories);
        cacher->revision = listing->revision;
        hfd_store_lag_filled_locked(cacher);
        cacher->synced = true;
        cacher->n_fills++;
        hfd_listings_reset_locked(cacher);
        atomic_store(&cacher->n_sealed_logged, 0);
        hfd_store_identity_filled_locked(cacher);
        cacher->watch.relist = false;
        cacher->reflector->backoff = BACKOFF_MIN;
        return true;
}

static unsigned all_observers(const struct hfd_cacher *cacher) {
        unsigned all = 0;

        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                all |= cacher->observers[i];
        return all;
}

static void on_listed(struct hfd_listing *listing, int error, const struct hf_status *status) {
        struct hfd_cacher *cacher = listing->cacher;
        struct hfd_consistent_read *reached = NULL;
        struct hfd_watcher *dirty = NULL;

        if (error) {
                const struct hf_status why = status ? *status : (struct hf_status){0};
                hfd_listing_free(listing); /* it owns status */
                fail_chain(cacher, error, &why, true);
                return;
        }
        pthread_mutex_lock(&cacher->mu);
        bool published = publish_locked(cacher, listing);
        if (published) {
                hfd_watchers_expire_locked(cacher, &dirty);
                reached = hfd_consistent_reads_remove_reached_locked(cacher);
                pthread_cond_broadcast(&cacher->cond);
        }
        pthread_mutex_unlock(&cacher->mu);
        /* Reads come first, here and in on_events: a client waits for each of them. */
        hfd_consistent_reads_call_ready(reached);
        hfd_watchers_deliver(dirty);
        if (published && cacher->on_observed)
                cacher->on_observed(cacher->ctx, all_observers(cacher));
        size_t n_keys = listing->n_keys;
        hfd_listing_free(listing); /* with the replaced trees, if it was published */
        if (n_keys > TRIM_MIN)
                (void)malloc_trim(0); /* the memory of the pages and of the replaced trees */
        if (published)
                begin_watch(cacher);
        else
                read_epoch(cacher);
}

/* ---- events of the watch ---- */

static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct hfd_cacher *cacher = ctx;
        struct hfd_event_batch batch;
        hf_nsec now = hfd_cacher_now(cacher);

        hfd_store_events_apply(cacher, events, n, &batch);
        pthread_mutex_lock(&cacher->mu);
        if (!batch.complete)
                cacher->watch.relist = true;
        else if (batch.term_begun)
                hfd_watchers_term_begun_locked(cacher, &batch.dirty);
        uint64_t cancel = batch.complete ? 0 : cacher->watch.id;
        cacher->reflector->backoff = BACKOFF_MIN;
        hfd_store_lag_reached_locked(cacher, now);
        struct hfd_consistent_read *reached = hfd_consistent_reads_remove_reached_locked(cacher);
        pthread_mutex_unlock(&cacher->mu);
        hfd_store_requests_heard(cacher, now);
        bool epoch_written = batch.epoch_written, copy_begun = batch.copy_begun;
        hfd_consistent_reads_call_ready(reached);
        unsigned observers = batch.observers;
        hfd_store_events_deliver(&batch);
        if (observers != 0 && cacher->on_observed)
                cacher->on_observed(cacher->ctx, observers);
        hfd_cacher_cancel_watch(cacher, cancel);
        if (epoch_written)
                hfd_store_identity_epoch_written(cacher);
        if (copy_begun && cacher->on_copy_begun)
                cacher->on_copy_begun(cacher->ctx);
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_cacher *cacher = ctx;

        hf_log(&cacher->host->log, HF_LOG_DEBUG, "cacher", "the watch of the store ended: %s",
               status && *status->message ? status->message : hf_strerror(error));
        fail_chain(cacher, error, status, error == HF_E_GONE);
}

/* ---- the chain ---- */

static void begin_watch(struct hfd_cacher *cacher) {
        static const struct hfd_watch_handler handler = {on_events, on_watch_end};
        struct hfd_reflector *reflector = cacher->reflector;
        char begin[sizeof cacher->prefix + 1], end[sizeof cacher->prefix + 1];
        uint64_t id = 0;

        /*
         * '.' sorts right before '/', and '0' right after it. So the range contains the keys below
         * PREFIX/ and those below PREFIX.holdfast/.
         */
        (void)snprintf(begin, sizeof begin, "%s.", cacher->prefix);
        (void)snprintf(end, sizeof end, "%s0", cacher->prefix);
        pthread_mutex_lock(&cacher->mu);
        cacher->watch.is_open = true;
        cacher->watch.reopen = false;
        uint64_t watch_number = ++reflector->n_watches;
        uint64_t from = cacher->revision + 1;
        pthread_mutex_unlock(&cacher->mu);
        int r = cacher->store->ops->watch(cacher->store, begin, end, from, &handler, cacher, &id);
        if (r != 0) {
                fail_chain(cacher, r, NULL, false);
                return;
        }
        /*
         * The watch may have ended already, and another one may have begun. Then this ID is no
         * longer valid and must not be stored. Canceling it below has no effect.
         */
        pthread_mutex_lock(&cacher->mu);
        if (cacher->watch.is_open && reflector->n_watches == watch_number) {
                cacher->watch.id = id;
                hfd_store_lag_opened_locked(cacher);
        }
        /* Another thread may have tried to cancel the watch before its ID was stored. */
        bool must_cancel = cacher->stopping || cacher->watch.relist || cacher->watch.reopen;
        pthread_mutex_unlock(&cacher->mu);
        if (must_cancel)
                hfd_cacher_cancel_watch(cacher, id);
}

static void begin_list(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        unsigned long generation = hfd_store_identity_generation_locked(cacher);
        pthread_mutex_unlock(&cacher->mu);
        int r = hfd_listing_start(cacher, generation, on_listed);
        if (r != 0)
                fail_chain(cacher, r, NULL, true);
}

/*
 * The epoch shows whether the store was replaced since the last watch. A list is then necessary,
 * because the watch cannot resume in another history.
 */
static void on_epoch(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        bool changed;

        if (reply->error) {
                fail_chain(cacher, reply->error, &reply->status, false);
                return;
        }
        int r = hfd_store_identity_epoch_read(cacher, reply->n_kvs ? reply->kvs[0].value : NULL,
                                              &changed);
        if (changed)
                hfd_store_identity_replaced(cacher, "the epoch key changed");
        if (r != 0) {
                fail_chain(cacher, r, NULL, false);
                return;
        }
        pthread_mutex_lock(&cacher->mu);
        bool relist = cacher->watch.relist;
        pthread_mutex_unlock(&cacher->mu);
        if (relist)
                begin_list(cacher);
        else
                begin_watch(cacher);
}

static void read_epoch(struct hfd_cacher *cacher) {
        char key[HFD_KEY_MAX];
        int r = hfd_store_identity_epoch_key(cacher, key);

        if (r == 0)
                r = hfd_store_request_get(cacher, key, false,
                                          hfd_cacher_now(cacher) + EPOCH_DEADLINE, on_epoch,
                                          cacher);
        if (r != 0)
                fail_chain(cacher, r, NULL, false);
}

void hfd_reflector_run(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool start = !cacher->stopping && cacher->reflector->state != RUNNING;
        if (start)
                cacher->reflector->state = RUNNING;
        pthread_mutex_unlock(&cacher->mu);
        if (start)
                read_epoch(cacher);
}

hf_nsec hfd_reflector_due_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return cacher->reflector->state == BACKOFF ? cacher->watch.retry_at : HF_NSEC_NEVER;
}

const struct hf_status *hfd_reflector_status_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return &cacher->reflector->status;
}

void hfd_reflector_stop(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        cacher->stopping = true;
        uint64_t id = cacher->watch.id;
        if (cacher->reflector->state == BACKOFF)
                cacher->reflector->state = IDLE;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
        hfd_cacher_cancel_watch(cacher, id);
        /* This wait is bounded: a request ends by its deadline, a listing sends no further one, and
         * a canceled watch ends soon. */
        pthread_mutex_lock(&cacher->mu);
        while (cacher->reflector->state == RUNNING)
                pthread_cond_wait(&cacher->cond, &cacher->mu);
        pthread_mutex_unlock(&cacher->mu);
}
