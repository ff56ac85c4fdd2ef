/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All watches: which of them get a change, a bookmark or their end.
 *
 * Under the lock, a change is queued for every watcher with a matching resource, namespace and name
 * that began at an earlier revision, unless its end was requested. A change visits the watches of
 * all objects of its resource, and those lists of narrow watches in which watches of its object may
 * be (watcher_lists.c). The watchers that get it are dirty: the thread that has queued the change
 * delivers to them after it has released the lock. A watcher that still catches up gets the change
 * from the history, which has it before the lock is released.
 *
 * Invariants: a dirty watcher is in one list of dirty watchers, and that list has a reference to
 * it. A watcher is in its lists (watcher_private.h) until it has ended. Its timer is in the heap
 * for as long, but may be missing once its end was requested.
 */
#include "server/cacher/watch/watchers.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/watch/watcher.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/resources/rows/resource_table.h"

#define TICK_MAX 256 /* watches whose time has come that are visited under one lock */

struct hfd_watchers *hfd_watchers_new(void) {
        return calloc(1, sizeof(struct hfd_watchers));
}

struct hfd_watchers *hfd_watchers_free(struct hfd_watchers *watchers) {
        assert(!watchers || watchers->n == 0);
        free(watchers);
        return NULL;
}

/* ---- one watch, under cacher->mu ---- */

/* Queues the timer for the next bookmark or the end. */
static void set_timer_locked(struct hfd_watcher *watcher) {
        hf_nsec at = watcher->bookmark_at;

        hf__mutex_assert_held(&watcher->cacher->mu);
        if (watcher->ends_at < at)
                at = watcher->ends_at;
        hf__timer_heap_add(&watcher->cacher->watchers->timers, &watcher->timer, at);
}

void hfd_watchers_add_locked(struct hfd_watcher *watcher) {
        hf__mutex_assert_held(&watcher->cacher->mu);
        hfd_watcher_enter_lists_locked(watcher);
        watcher->cacher->watchers->n++;
        set_timer_locked(watcher);
        hfd_cacher_wake_timer_locked(watcher->cacher, watcher->timer.at);
}

void hfd_watchers_remove_locked(struct hfd_watcher *watcher) {
        struct hfd_watchers *watchers = watcher->cacher->watchers;

        hf__mutex_assert_held(&watcher->cacher->mu);
        hfd_watcher_leave_lists_locked(watcher);
        assert(watchers->n > 0);
        watchers->n--;
        hf__timer_heap_remove(&watchers->timers, &watcher->timer);
}

/* ---- queueing, under cacher->mu ---- */

static void mark_dirty_locked(struct hfd_watcher *watcher, struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&watcher->cacher->mu);
        if (watcher->dirty || watcher->delivery.ended)
                return;
        watcher->dirty = true;
        /* The list of watches has a reference: a watcher that ends leaves the list under the
         * lock, before that reference is dropped. */
        assert(atomic_load_explicit(&watcher->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&watcher->refs, 1);
        watcher->dirty_next = *dirty;
        *dirty = watcher;
}

/* Queues the change for the watchers of a list that watch its object. resource: the index of the
 * change's resource, if the list may have watchers of others, which are passed over; SIZE_MAX = it
 * has none. Returns the number of watchers of the object, as hfd_watchers_queue_change_locked
 * counts them. */
static size_t queue_change_in_locked(struct hfd_watcher *first, enum hfd_watcher_list list,
                                     const struct hfd_change *change, size_t resource,
                                     struct hfd_watcher **dirty) {
        size_t n = 0;

        for (struct hfd_watcher *w = first; w; w = w->in[list].next) {
                if (change->object->revision <= w->after ||
                    !hfd_delivery_is_watched(&w->delivery, change->object) ||
                    w->delivery.catches_up ||
                    (resource != SIZE_MAX && hfd_resource_index(w->delivery.resource) != resource))
                        continue;
                hfd_delivery_queue_locked(&w->delivery, change, change->object->revision);
                mark_dirty_locked(w, dirty);
                n++;
        }
        return n;
}

size_t hfd_watchers_queue_change_locked(struct hfd_cacher *cacher, const struct hfd_change *change,
                                        struct hfd_watcher **dirty) {
        struct hfd_watchers *watchers = cacher->watchers;
        struct hfd_watcher *lists[HFD_NARROW_LISTS_MAX];
        size_t resource = hfd_resource_index(change->object->resource), n_lists, n;

        hf__mutex_assert_held(&cacher->mu);
        n = queue_change_in_locked(watchers->list[resource], HFD_WATCHER_BY_OBJECTS, change,
                                   SIZE_MAX, dirty);
        if (!watchers->narrow_of[resource])
                return n;
        if (!hfd_watchers_find_narrow_locked(watchers, change, lists, &n_lists))
                return n + queue_change_in_locked(watchers->narrow_of[resource],
                                                  HFD_WATCHER_BY_KIND, change, SIZE_MAX, dirty);
        for (size_t i = 0; i < n_lists; i++)
                n += queue_change_in_locked(lists[i], HFD_WATCHER_BY_OBJECTS, change, resource,
                                            dirty);
        return n;
}

bool hfd_watchers_need_trigger_locked(const struct hfd_cacher *cacher, size_t resource) {
        hf__mutex_assert_held(&cacher->mu);
        return resource < HFD_RESOURCES_MAX && cacher->watchers->n_by_trigger[resource] > 0;
}

/* Requests the end of all watches of a list. */
static void end_in_locked(struct hfd_watcher *first, enum hfd_watcher_list list, int error,
                          struct hfd_watcher **dirty) {
        for (struct hfd_watcher *w = first; w; w = w->in[list].next) {
                hfd_delivery_request_end_locked(&w->delivery, error);
                mark_dirty_locked(w, dirty);
        }
}

static void end_resource_locked(struct hfd_cacher *cacher, size_t resource, int error,
                                struct hfd_watcher **dirty) {
        const struct hfd_watchers *watchers = cacher->watchers;

        hf__mutex_assert_held(&cacher->mu);
        end_in_locked(watchers->list[resource], HFD_WATCHER_BY_OBJECTS, error, dirty);
        end_in_locked(watchers->narrow_of[resource], HFD_WATCHER_BY_KIND, error, dirty);
}

static void end_all_locked(struct hfd_cacher *cacher, int error, struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++)
                end_resource_locked(cacher, i, error, dirty);
}

void hfd_watchers_expire_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                         struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        end_resource_locked(cacher, resource, HF_E_GONE, dirty);
}

void hfd_watchers_expire_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        end_all_locked(cacher, HF_E_GONE, dirty);
}

void hfd_watchers_end_resource_locked(struct hfd_cacher *cacher, size_t resource,
                                      struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        end_resource_locked(cacher, resource, 0, dirty);
}

void hfd_watchers_end_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->watchers->ended = true;
        end_all_locked(cacher, 0, dirty);
}

static void queue_bookmark_locked(struct hfd_watcher *watcher) {
        struct hfd_change bookmark = {.type = HF_EVENT_BOOKMARK};

        hf__mutex_assert_held(&watcher->cacher->mu);
        hfd_delivery_queue_locked(&watcher->delivery, &bookmark,
                                  watcher->cacher->revision > watcher->after
                                          ? watcher->cacher->revision
                                          : watcher->after);
}

void hfd_watchers_term_begun_locked(struct hfd_cacher *cacher, struct hfd_watcher **dirty) {
        hf__mutex_assert_held(&cacher->mu);
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++)
                for (struct hfd_watcher *w = cacher->watchers->list[i]; w && w->told_of_terms;
                     w = w->in[HFD_WATCHER_BY_OBJECTS].next) {
                        if (w->delivery.end_requested)
                                continue;
                        queue_bookmark_locked(w);
                        mark_dirty_locked(w, dirty);
                }
}

/* When the watcher gets a bookmark after `now`: at an interval, and once before its end. */
static hf_nsec next_bookmark(const struct hfd_watcher *w, hf_nsec now) {
        hf_nsec last = w->ends_at - HFD_BOOKMARK_BEFORE_END;

        if (now + HFD_BOOKMARK_INTERVAL <= last)
                return now + HFD_BOOKMARK_INTERVAL;
        return now < last ? last : HF_NSEC_NEVER;
}

hf_nsec hfd_watchers_due_locked(const struct hfd_cacher *cacher) {
        const struct hf__timer *first = cacher->watchers->timers.first;

        hf__mutex_assert_held(&cacher->mu);
        return first ? first->at : HF_NSEC_NEVER;
}

/* A watch that is due costs a logarithm of the number of watches, and the others cost nothing. Many
 * may be due at once, because their clients connected at once: the rest is due when this is called
 * again. */
void hfd_watchers_tick_locked(struct hfd_cacher *cacher, hf_nsec now, struct hfd_watcher **dirty) {
        struct hf__timer_heap *timers = &cacher->watchers->timers;
        struct hf__timer *timer;

        hf__mutex_assert_held(&cacher->mu);
        for (size_t n = 0; n < TICK_MAX && (timer = timers->first) && timer->at <= now; n++) {
                struct hfd_watcher *w =
                        (void *)((char *)timer - offsetof(struct hfd_watcher, timer));
                hf__timer_heap_remove(timers, timer);
                if (w->delivery.end_requested)
                        continue;
                if (w->bookmark_at <= now) {
                        queue_bookmark_locked(w);
                        w->bookmark_at = next_bookmark(w, now);
                }
                if (w->ends_at <= now)
                        hfd_delivery_request_end_locked(&w->delivery, 0);
                else
                        set_timer_locked(w);
                mark_dirty_locked(w, dirty);
        }
}

/* ---- delivering, without cacher->mu ---- */

void hfd_watchers_deliver(struct hfd_watcher *dirty) {
        while (dirty) {
                struct hfd_watcher *watcher = dirty;
                /* Unlink it before delivering, so that events queued from now on mark it again. */
                pthread_mutex_lock(&watcher->cacher->mu);
                assert(watcher->dirty);
                dirty = watcher->dirty_next;
                watcher->dirty = false;
                hfd_watcher_deliver_unlock(watcher);
                hfd_watcher_unref(watcher);
        }
}
