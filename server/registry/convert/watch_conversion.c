/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the events of a watch in a queue while they are converted (watch_conversion.h).
 *
 *      IDLE --add--> CALLING --response--> DELIVERING --> CALLING (more) or IDLE
 *
 * Invariants: the thread that changes the state from IDLE runs the queue, and later the callback of
 * the webhook's call continues it. The queue has a reference of its own until the state is IDLE
 * again. While the state is CALLING, the owner may end the watch and free its sink: the callback
 * then sees `ended` and does not use the sink.
 */
#include "server/registry/convert/watch_conversion.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/registry/convert/convert.h"
#include "server/registry/convert/shared_conversions.h"
#include "server/resources/custom/custom_kind.h"

#define BATCH 100 /* events that are converted together */

enum state { IDLE, CALLING, DELIVERING };

struct hfd_watch_conversion {
        atomic_int refs;
        struct hfd_registry *registry;
        const struct hfd_resource *row; /* owned reference */
        uint64_t owner;
        const struct hfd_watch_conversion_sink *sink;
        void *ctx;

        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_watch_item *items; /* owned, with references */
        size_t n, at, space;          /* at: the first item that is not in a batch yet */
        enum state state;
        bool ended, failed;
        bool wanted; /* hfd_watch_conversion_is_idle has returned false, so sink.idle is due */

        struct hfd_shared_turn turn; /* of the conversion, see shared_conversions.h */

        /* only used by the thread that runs the queue */
        struct hfd_watch_item batch[BATCH];
        struct hfd_object *objects[BATCH]; /* those of the batch that are not NULL; owned */
        size_t n_batch, n_objects;
};

/* ---- the queue ---- */

static void drop_items(struct hfd_watch_conversion *c) {
        for (size_t i = c->at; i < c->n; i++)
                hfd_object_unref(c->items[i].object);
        c->n = c->at = 0;
}

struct hfd_watch_conversion *hfd_watch_conversion_unref(struct hfd_watch_conversion *c) {
        assert(!c || atomic_load_explicit(&c->refs, memory_order_relaxed) > 0);
        if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
                return NULL;
        drop_items(c);
        free(c->items);
        hfd_shared_table_leave(&c->registry->shared);
        hfd_resource_unref(c->row);
        pthread_mutex_destroy(&c->mu);
        free(c);
        return NULL;
}

struct hfd_watch_conversion *hfd_watch_conversion_new(struct hfd_registry *registry,
                                                      const struct hfd_request *request,
                                                      const struct hfd_watch_conversion_sink *sink,
                                                      void *ctx) {
        struct hfd_watch_conversion *c = calloc(1, sizeof *c);

        if (!c)
                return NULL;
        if (hf__mutex_init(&c->mu) != 0) {
                free(c);
                return NULL;
        }
        atomic_init(&c->refs, 1);
        c->registry = registry;
        hfd_shared_table_join(&registry->shared);
        c->row = hfd_resource_ref(request->resource);
        c->owner = request->owner;
        c->sink = sink;
        c->ctx = ctx;
        return c;
}

/* Makes room for n items more. */
static bool grow_locked(struct hfd_watch_conversion *c, size_t n) {
        hf__mutex_assert_held(&c->mu);
        if (c->at == c->n)
                c->at = c->n = 0;
        if (c->n + n <= c->space)
                return true;
        size_t space = c->n + n;
        struct hfd_watch_item *more = realloc(c->items, space * sizeof *more);
        if (!more)
                return false;
        c->items = more;
        c->space = space;
        return true;
}

/* ---- running it ---- */

static void on_converted(void *ctx, const struct hfd_response *failure);

static void drop_batch(struct hfd_watch_conversion *c) {
        for (size_t i = 0; i < c->n_objects; i++)
                hfd_object_unref(c->objects[i]);
        c->n_objects = c->n_batch = 0;
}

static void take_items_locked(struct hfd_watch_conversion *c) {
        hf__mutex_assert_held(&c->mu);
        while (c->at < c->n && c->n_batch < BATCH) {
                c->batch[c->n_batch++] = c->items[c->at];
                if (c->items[c->at].object)
                        c->objects[c->n_objects++] = c->items[c->at].object;
                c->at++;
        }
}

/* Takes the next events. False: there are none, or the watch has ended; the caller must not use c
 * any more. */
static bool take_batch(struct hfd_watch_conversion *c) {
        pthread_mutex_lock(&c->mu);
        while (!c->ended && c->at == c->n && c->wanted) {
                c->wanted = false;
                c->state = DELIVERING;
                pthread_mutex_unlock(&c->mu);
                c->sink->idle(c->ctx);
                pthread_mutex_lock(&c->mu);
        }
        /* If the watch was ended in DELIVERING, its owner waits for sink.ended. */
        bool owes_end = c->ended && c->state == DELIVERING;
        if (!c->ended)
                take_items_locked(c);
        bool more = c->n_batch > 0;
        c->state = more ? CALLING : IDLE;
        pthread_mutex_unlock(&c->mu);
        if (owes_end)
                c->sink->ended(c->ctx);
        if (!more)
                hfd_watch_conversion_unref(c);
        return more;
}

/* Call it before the sink is called. False: the watch has ended; the caller must not use c any
 * more. */
static bool begin_delivery(struct hfd_watch_conversion *c) {
        pthread_mutex_lock(&c->mu);
        bool ended = c->ended;
        c->state = ended ? IDLE : DELIVERING;
        pthread_mutex_unlock(&c->mu);
        if (!ended)
                return true;
        drop_batch(c);
        hfd_watch_conversion_unref(c);
        return false;
}

static void fail_watch(struct hfd_watch_conversion *c, const struct hfd_response *failure) {
        pthread_mutex_lock(&c->mu);
        c->failed = true;
        drop_items(c);
        pthread_mutex_unlock(&c->mu);
        c->sink->failed(c->ctx, failure);
}

/* Delivers the batch. The state is DELIVERING afterwards. False: as begin_delivery. */
static bool deliver_events(struct hfd_watch_conversion *c) {
        bool good = true;

        if (!begin_delivery(c))
                return false;
        for (size_t i = 0, o = 0; i < c->n_batch && good; i++) {
                struct hfd_watch_item item = c->batch[i];
                if (item.object)
                        item.object = c->objects[o++];
                good = c->sink->event(c->ctx, &item);
        }
        drop_batch(c);
        if (!good)
                fail_watch(c, NULL);
        return true;
}

static void run_conversion(struct hfd_watch_conversion *c) {
        while (take_batch(c)) {
                const struct hfd_convert convert = {.row = c->row,
                                                    .objects = c->objects,
                                                    .n = c->n_objects,
                                                    .deadline = HF_NSEC_NEVER,
                                                    .owner = c->owner,
                                                    .done = on_converted,
                                                    .ctx = c};
                if (!hfd_shared_convert(c->registry, &convert, &c->turn) || !deliver_events(c))
                        return;
        }
}

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct hfd_watch_conversion *c = ctx;

        if (failure) {
                if (!begin_delivery(c))
                        return;
                drop_batch(c);
                fail_watch(c, failure);
        } else if (!deliver_events(c)) {
                return;
        }
        run_conversion(c);
}

/* ---- the watch's side ---- */

bool hfd_watch_conversion_add(struct hfd_watch_conversion *c, const struct hfd_watch_item *items,
                              size_t n) {
        pthread_mutex_lock(&c->mu);
        bool takes = !c->ended && !c->failed, good = !takes || grow_locked(c, n), starts = false;
        for (size_t i = 0; takes && good && i < n; i++) {
                c->items[c->n] = items[i];
                c->items[c->n].before = NULL; /* it was borrowed for the call only */
                hfd_object_ref(c->items[c->n++].object);
        }
        if (takes && good && c->state == IDLE) {
                assert(c->row);
                c->state = CALLING;
                /* The caller is the owner, so the owner's reference exists. */
                assert(atomic_load_explicit(&c->refs, memory_order_relaxed) > 0);
                atomic_fetch_add(&c->refs, 1);
                starts = true;
        }
        pthread_mutex_unlock(&c->mu);
        if (starts)
                run_conversion(c);
        return good;
}

bool hfd_watch_conversion_is_idle(struct hfd_watch_conversion *c) {
        pthread_mutex_lock(&c->mu);
        bool idle = c->state == IDLE;
        c->wanted |= !idle;
        pthread_mutex_unlock(&c->mu);
        return idle;
}

bool hfd_watch_conversion_end(struct hfd_watch_conversion *c) {
        pthread_mutex_lock(&c->mu);
        assert(!c->ended);
        bool over = c->state != DELIVERING;
        c->ended = true;
        drop_items(c);
        pthread_mutex_unlock(&c->mu);
        /* While an event is delivered, no conversion waits, and none begins any more. */
        if (over)
                hfd_shared_cancel(c->registry, &c->turn);
        return over;
}
