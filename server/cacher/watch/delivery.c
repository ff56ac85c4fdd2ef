/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a watch, and its delivery.
 *
 * Under the lock, references to changes are queued. Selectors are applied later, by the delivering
 * thread, because they may have to parse the object. Only one thread at a time delivers: it takes a
 * batch from the queue, calls the sink without the lock, and repeats until the queue is empty, the
 * sink has no room or the watch is canceled. Other threads only add to the queue. So events are
 * delivered in the order of the queue, and never concurrently.
 *
 * A watch that begins at an earlier revision first catches up: it takes its batches from the
 * history instead of the queue, a slice under each lock. Meanwhile nothing is queued for it,
 * because the history gets every change. The watch goes over to the queue under the lock under
 * which it takes the last change, so no change is lost and none comes twice. If the history drops
 * changes before a slow client has got them, the watch ends, and the client lists again.
 *
 * Invariant: hfd_delivery_run_locked returns true at most once, after the last call of sink.events.
 * No event follows one that was not delivered. A watch ends without the rest of its changes if it
 * was canceled, if its end is requested before its start, before it has caught up or while its sink
 * has no room, if its sink accepts no more, or if memory ran out before an event: the client of a
 * watch that ends watches again.
 */
#include "server/cacher/watch/delivery.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "server/cacher/state/cacher_state.h"
#include "server/resources/rows/resource_table.h"

/* The most places of the queue's array, which doubles from 4 places. A change that was taken keeps
 * its place until compact_queue_locked moves the others, which it does only if at least half of the
 * array is free. So more than QUEUE_MAX / 2 changes wait when an array of QUEUE_MAX places is full.
 */
#define QUEUE_MAX 8192
#define BATCH_MAX 64   /* changes in one call of the sink */
#define PAST_MAX  1024 /* changes of the history that are looked at under one lock */

static void free_queued(struct hfd_queued_change *queued) {
        assert(queued->change.object || queued->change.type == HF_EVENT_BOOKMARK);
        hfd_object_unref(queued->change.object);
        hfd_object_unref(queued->change.before);
}

/* The memory that a queued change keeps in use, if no other reference does: both versions, and its
 * place in the queue. */
static size_t queued_bytes(const struct hfd_queued_change *queued) {
        const struct hfd_object *object = queued->change.object, *before = queued->change.before;
        size_t n = sizeof *queued;

        if (object && object->bytes)
                n += object->bytes->n;
        if (before && before->bytes)
                n += before->bytes->n;
        return n;
}

/* Frees the changes that are left in the queue. Requires that no thread delivers, and that none
 * queues any more: the end was requested, or nobody else has a reference to the watcher. */
static void free_queue(struct hfd_delivery *delivery) {
        assert(delivery->queue_at <= delivery->n_queue &&
               delivery->n_queue <= delivery->queue_space);
        for (size_t i = delivery->queue_at; i < delivery->n_queue; i++)
                free_queued(&delivery->queue[i]);
        free(delivery->queue);
        delivery->queue = NULL;
        delivery->queue_at = delivery->n_queue = delivery->queue_space = 0;
        atomic_store_explicit(&delivery->n_bytes, 0, memory_order_relaxed);
}

void hfd_delivery_done(struct hfd_delivery *delivery) {
        assert(!delivery->delivering);
        free_queue(delivery);
        if (delivery->snapshot)
                hfd_snapshot_done(delivery->snapshot);
        free(delivery->snapshot);
        hfd_selector_done(&delivery->labels);
        hfd_selector_done(&delivery->fields);
}

/* ---- queueing, under the lock ---- */

void hfd_delivery_request_end_locked(struct hfd_delivery *delivery, int error) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        if (delivery->end_requested)
                return;
        delivery->end_requested = true;
        delivery->end_error = error;
        delivery->drops_queue = !delivery->started;
        delivery->catches_up = false;
}

void hfd_delivery_cancel_locked(struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        if (delivery->ended)
                return;
        delivery->end_requested = true;
        delivery->end_error = HF_E_CANCELED;
        delivery->started = true;
        delivery->catches_up = false;
}

/* Moves the waiting changes to the start of the array, if at least half of it is free. */
static void compact_queue_locked(struct hfd_delivery *delivery) {
        size_t n = delivery->n_queue - delivery->queue_at;

        hf__mutex_assert_held(&delivery->cacher->mu);
        if (delivery->queue_at < delivery->queue_space / 2)
                return;
        memmove(delivery->queue, delivery->queue + delivery->queue_at, n * sizeof *delivery->queue);
        delivery->queue_at = 0;
        delivery->n_queue = n;
}

void hfd_delivery_queue_locked(struct hfd_delivery *delivery, const struct hfd_change *change,
                               uint64_t revision) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        if (delivery->end_requested)
                return;
        if (delivery->catches_up) {
                delivery->bookmark_due |= change->type == HF_EVENT_BOOKMARK;
                return;
        }
        if (delivery->queue_space > 0 && delivery->n_queue == delivery->queue_space)
                compact_queue_locked(delivery);
        if (delivery->n_queue == delivery->queue_space) {
                size_t space = delivery->queue_space ? 2 * delivery->queue_space : 4;
                struct hfd_queued_change *more = NULL;
                if (delivery->n_queue < QUEUE_MAX)
                        more = realloc(delivery->queue, space * sizeof *more);
                if (!more) {
                        hfd_delivery_request_end_locked(delivery, 0);
                        return;
                }
                delivery->queue = more;
                delivery->queue_space = space;
        }
        assert(delivery->n_queue < delivery->queue_space);
        struct hfd_queued_change *queued = &delivery->queue[delivery->n_queue++];
        *queued = (struct hfd_queued_change){.revision = revision, .change = *change};
        hfd_object_ref(queued->change.object);
        hfd_object_ref(queued->change.before);
        atomic_fetch_add_explicit(&delivery->n_bytes, queued_bytes(queued), memory_order_relaxed);
}

void hfd_delivery_catch_up_locked(struct hfd_delivery *delivery,
                                  const struct hfd_event_history *history, size_t first) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        assert(!delivery->started && delivery->n_queue == 0);
        delivery->past = hfd_event_history_number(history, first);
        delivery->catches_up = first < history->n;
}

bool hfd_delivery_is_watched(const struct hfd_delivery *delivery, const struct hfd_object *object) {
        if (delivery->n_ns && (delivery->n_ns != object->n_ns ||
                               memcmp(delivery->ns, object->path, delivery->n_ns) != 0))
                return false;
        return !delivery->name || strcmp(delivery->name, hfd_object_name(object)) == 0;
}

/* ---- delivering, without the lock ---- */

/* Whether the watch selects the object; NULL is not selected. 0 or -ENOMEM. */
static int select_object(struct hfd_delivery *delivery, struct hfd_object *object,
                         bool *ret_selected) {
        int r = 0;

        *ret_selected = object != NULL;
        if (*ret_selected)
                r = hfd_selector_matches(&delivery->labels, object, ret_selected);
        if (*ret_selected)
                r = hfd_selector_matches(&delivery->fields, object, ret_selected);
        return r;
}

/*
 * Turns a change into the event for this watch. An object that begins to match the selectors is
 * ADDED, and an object that no longer matches is DELETED, with its last state that matched and the
 * revision of the change. *ret_event: the watch gets an event. 0 or -ENOMEM.
 */
static int apply_selectors(struct hfd_delivery *delivery, struct hfd_queued_change *queued,
                           bool *ret_event) {
        struct hfd_change *change = &queued->change;
        bool now = false, before = false;
        int r = 0;

        *ret_event = true;
        if (change->type == HF_EVENT_BOOKMARK || (!delivery->labels.n && !delivery->fields.n))
                return 0;
        if (change->type != HF_EVENT_DELETED)
                r = select_object(delivery, change->object, &now);
        if (r == 0)
                r = select_object(delivery, change->before, &before);
        if (r != 0)
                return r;
        if (now) {
                change->type = before ? HF_EVENT_MODIFIED : HF_EVENT_ADDED;
                return 0;
        }
        *ret_event = before;
        if (before && change->type != HF_EVENT_DELETED) {
                struct hfd_object *last = hfd_object_at(change->before, change->object->revision);
                if (!last)
                        return -ENOMEM;
                hfd_object_unref(change->object);
                change->object = last;
                change->type = HF_EVENT_DELETED;
        }
        return 0;
}

/*
 * Delivers the batch, and drops its references. False: the sink accepts no more events, or memory
 * ran out before an event. Then the watch must end, so that its client does not miss the event.
 */
static bool deliver_batch(struct hfd_delivery *delivery, struct hfd_queued_change *queue,
                          size_t n) {
        struct hfd_watch_item items[BATCH_MAX];
        size_t n_items = 0;
        bool good = true;

        assert(n <= BATCH_MAX);
        for (size_t i = 0; i < n && good; i++) {
                bool event;
                good = apply_selectors(delivery, &queue[i], &event) == 0;
                const struct hfd_change *change = &queue[i].change;
                if (good && event)
                        items[n_items++] =
                                (struct hfd_watch_item){.type = change->type,
                                                        .object = change->object,
                                                        .revision = queue[i].revision,
                                                        .before = change->type == HF_EVENT_MODIFIED
                                                                          ? change->before
                                                                          : NULL};
        }
        if (n_items > 0 && !delivery->sink.events(delivery->ctx, items, n_items))
                good = false;
        for (size_t i = 0; i < n; i++)
                free_queued(&queue[i]);
        return good;
}

/* Delivers the objects of a snapshot that nobody has taken (hfd_watcher_take_snapshot). False: the
 * sink accepts no more events, or memory ran out. */
static bool deliver_snapshot(struct hfd_delivery *delivery, const struct hfd_snapshot *snapshot) {
        struct hfd_queued_change batch[BATCH_MAX];
        struct hfd_scope scope;
        struct hfd_object_iter iter;
        struct hfd_object *object;
        bool good = true;

        hfd_object_scope(delivery->resource, delivery->ns, delivery->name, &scope);
        hfd_object_iter_init(&iter, &snapshot->objects, &scope, "");
        do {
                size_t n = 0;
                while (n < BATCH_MAX && (object = hfd_object_iter_next(&iter)) != NULL)
                        if (hfd_delivery_is_watched(delivery, object))
                                batch[n++] = (struct hfd_queued_change){
                                        .change = {.type = HF_EVENT_ADDED,
                                                   .object = hfd_object_ref(object)},
                                        .revision = object->revision};
                good = deliver_batch(delivery, batch, n);
        } while (object && good);
        return good;
}

void hfd_delivery_end(struct hfd_delivery *delivery) {
        struct hfd_response response = {0};
        int error = delivery->end_error; /* it no longer changes */

        assert(delivery->ended);
        free_queue(delivery);
        if (error == HF_E_GONE)
                hfd_response_status(&response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided watch is too old.", NULL);
        delivery->sink.end(delivery->ctx, error, &response);
        hfd_response_done(&response);
}

/* Takes up to BATCH_MAX changes from the queue. */
static size_t take_batch_locked(struct hfd_delivery *delivery,
                                struct hfd_queued_change batch[BATCH_MAX]) {
        size_t n = delivery->n_queue - delivery->queue_at;

        hf__mutex_assert_held(&delivery->cacher->mu);
        n = n < BATCH_MAX ? n : BATCH_MAX;
        memcpy(batch, delivery->queue + delivery->queue_at, n * sizeof *batch);
        delivery->queue_at += n;
        size_t n_bytes = 0;
        for (size_t i = 0; i < n; i++)
                n_bytes += queued_bytes(&batch[i]);
        atomic_fetch_sub_explicit(&delivery->n_bytes, n_bytes, memory_order_relaxed);
        if (delivery->queue_at == delivery->n_queue) {
                /* A watch without changes keeps no memory for them. */
                free(delivery->queue);
                delivery->queue = NULL;
                delivery->queue_at = delivery->n_queue = delivery->queue_space = 0;
        }
        return n;
}

/*
 * Takes up to BATCH_MAX changes from the history. If none is left, the watch has caught up: later
 * changes are queued. The slice of the history is small and the sink is asked between two slices,
 * so nobody waits long for the lock.
 */
static size_t take_past_locked(struct hfd_delivery *delivery,
                               struct hfd_queued_change batch[BATCH_MAX]) {
        const struct hfd_change bookmark = {.type = HF_EVENT_BOOKMARK};
        struct hfd_cacher *cacher = delivery->cacher;
        const struct hfd_event_history *history =
                hfd_event_history_of(&cacher->histories, hfd_resource_index(delivery->resource));
        size_t first, n = 0;

        hf__mutex_assert_held(&cacher->mu);
        assert(delivery->catches_up && delivery->n_queue == 0);
        if (!hfd_event_history_seek(history, delivery->past, &first)) {
                hfd_delivery_request_end_locked(delivery, HF_E_GONE);
                return 0;
        }
        size_t end = history->n - first > PAST_MAX ? first + PAST_MAX : history->n, i = first;
        for (; n < BATCH_MAX; i++) {
                i = hfd_event_history_find(history, i, end, delivery->ns, delivery->name);
                if (i == end)
                        break;
                const struct hfd_change *change = hfd_event_history_at(history, i);
                if (!hfd_delivery_is_watched(delivery, change->object))
                        continue;
                batch[n++] = (struct hfd_queued_change){.revision = change->object->revision,
                                                        .change = *change};
                hfd_object_ref(change->object);
                hfd_object_ref(change->before);
        }
        delivery->past += i - first;
        delivery->catches_up = i < history->n;
        if (!delivery->catches_up && delivery->bookmark_due)
                hfd_delivery_queue_locked(delivery, &bookmark, cacher->revision);
        return n;
}

/*
 * Ends the watch because an event was not delivered: no later event may follow it. The client
 * watches again from the last event that it received. But objects of a snapshot do not come in the
 * order of their revisions, so without all of them the client must list again.
 */
static void end_after_loss_locked(struct hfd_delivery *delivery, bool is_snapshot) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        hfd_delivery_request_end_locked(delivery, 0);
        if (is_snapshot && delivery->end_error == 0) /* also if a clean end was requested before */
                delivery->end_error = HF_E_GONE;
        delivery->drops_queue = true;
}

/* May take none: a slice of the history may have none for this watch, or the end of the watch was
 * requested meanwhile. */
static size_t take_changes_locked(struct hfd_delivery *delivery,
                                  struct hfd_queued_change batch[BATCH_MAX]) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        if (delivery->catches_up)
                return take_past_locked(delivery, batch);
        return delivery->n_queue > 0 ? take_batch_locked(delivery, batch) : 0;
}

static bool has_changes_locked(const struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        return delivery->n_queue > 0 || delivery->snapshot || delivery->catches_up;
}

/*
 * Delivers the snapshot, the history and the queue, as long as the sink has room. The caller holds
 * the lock, and has set `delivering`; the lock is not held while the sink is called.
 */
static void deliver_events_locked(struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        pthread_mutex_t *mu = &delivery->cacher->mu;
        struct hfd_queued_change batch[BATCH_MAX];

        while (has_changes_locked(delivery) && !delivery->drops_queue &&
               !(delivery->end_requested && delivery->end_error == HF_E_CANCELED)) {
                struct hfd_snapshot *snapshot = delivery->snapshot;
                delivery->snapshot = NULL;
                delivery->resumed = false;
                pthread_mutex_unlock(mu);
                bool good = true, ready = true;
                if (snapshot) {
                        good = deliver_snapshot(delivery, snapshot);
                        hfd_snapshot_done(snapshot);
                        free(snapshot);
                } else {
                        ready = !delivery->sink.ready || delivery->sink.ready(delivery->ctx);
                        if (!ready && delivery->sink.waiting_changed)
                                delivery->sink.waiting_changed(delivery->ctx);
                }
                pthread_mutex_lock(mu);
                delivery->behind = delivery->behind || !ready;
                /* No room: hfd_watcher_resume makes a thread deliver the rest. If it was called
                 * since the sink was asked, ask again. A watch that ends waits for no room: its
                 * client watches again, from the last event that it has received. */
                if (!ready && (delivery->end_requested || !delivery->resumed))
                        return;
                if (good && ready && !snapshot) {
                        size_t n = take_changes_locked(delivery, batch);
                        pthread_mutex_unlock(mu);
                        good = deliver_batch(delivery, batch, n);
                        pthread_mutex_lock(mu);
                }
                if (!good)
                        end_after_loss_locked(delivery, snapshot != NULL);
        }
}

/* Tells the sink about the changes that wait. The caller has set `delivering`. */
static void tell_waiting_locked(struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        if (!delivery->sink.waiting_changed)
                return;
        pthread_mutex_unlock(&delivery->cacher->mu);
        delivery->sink.waiting_changed(delivery->ctx);
        pthread_mutex_lock(&delivery->cacher->mu);
}

static bool may_run_locked(const struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        return delivery->started || (delivery->opened && delivery->end_requested);
}

bool hfd_delivery_run_locked(struct hfd_delivery *delivery) {
        hf__mutex_assert_held(&delivery->cacher->mu);
        /* The thread that is delivering checks the queue again before it stops. */
        if (delivery->delivering || delivery->ended)
                return false;
        delivery->delivering = true;
        if (!may_run_locked(delivery) && delivery->n_queue > 0) {
                delivery->behind = true;
                tell_waiting_locked(delivery);
        }
        bool runs = may_run_locked(delivery); /* it may have been started meanwhile */
        if (runs)
                deliver_events_locked(delivery);
        while (runs && delivery->behind && !has_changes_locked(delivery)) {
                delivery->behind = false;
                tell_waiting_locked(delivery);
                /* Delivers the changes that were added meanwhile. */
                deliver_events_locked(delivery);
        }
        delivery->delivering = false;
        delivery->ended = runs && delivery->end_requested;
        return delivery->ended;
}
