/* SPDX-License-Identifier: Apache-2.0 */
/* See faulty_store.h. The mutex is never held during a call of the inner store or a callback. */
#include "faulty_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "server/storage/memory/store.h"

static void count(struct faulty_store *store, int *n) {
        pthread_mutex_lock(&store->mu);
        (*n)++;
        pthread_mutex_unlock(&store->mu);
}

/* Calls *fn without the lock, because the callback uses the API, which uses this store. */
static void call_hook(struct faulty_store *store, void (**fn)(void *ctx)) {
        pthread_mutex_lock(&store->mu);
        void (*due)(void *ctx) = *fn;
        *fn = NULL;
        pthread_mutex_unlock(&store->mu);
        if (due)
                due(store->hook_ctx);
}

static int get(struct hfd_store *self, const char *key, bool urgent, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        struct faulty_store *store = (struct faulty_store *)self;

        if (!strstr(key, ".holdfast/")) /* only gets of objects are counted */
                count(store, &store->n_gets);
        return store->inner->ops->get(store->inner, key, urgent, deadline, done, ctx);
}

static int list(struct hfd_store *self, const char *prefix, const char *start, uint64_t revision,
                size_t limit, bool keys_only, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty_store *store = (struct faulty_store *)self;

        count(store, &store->n_lists);
        call_hook(store, &store->on_next_list);
        return store->inner->ops->list(store->inner, prefix, start, revision, limit, keys_only,
                                       deadline, done, ctx);
}

static int revision(struct hfd_store *self, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty_store *store = (struct faulty_store *)self;

        count(store, &store->n_revisions);
        if (store->hold) {
                store->hold = false;
                store->held = done;
                store->held_ctx = ctx;
                return 0;
        }
        if (store->reported_revision) {
                struct hfd_store_reply reply = {.revision = store->reported_revision};
                done(ctx, &reply);
                return 0;
        }
        return store->inner->ops->revision(store->inner, deadline, done, ctx);
}

/* ---- transactions whose reply is lost ---- */

struct lost_reply {
        hfd_store_fn done;
        void *ctx;
        int error;
};

static void replace_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct lost_reply *lost = ctx;
        struct hfd_store_reply instead = {.error = lost->error};

        lost->done(lost->ctx, &instead);
        free(lost);
}

static int txn(struct hfd_store *self, const struct hfd_txn *transaction, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        struct faulty_store *store = (struct faulty_store *)self;

        if (!store->txn_error)
                return store->inner->ops->txn(store->inner, transaction, deadline, done, ctx);
        struct lost_reply *lost = malloc(sizeof *lost);
        assert(lost);
        *lost = (struct lost_reply){done, ctx, store->txn_error};
        return store->inner->ops->txn(store->inner, transaction, deadline, replace_reply, lost);
}

/* ---- the watch ---- */

static void forward_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct faulty_store *store = ctx;

        pthread_mutex_lock(&store->mu);
        bool drops_events = store->drops_events;
        pthread_mutex_unlock(&store->mu);
        if (!drops_events)
                store->handler->event(store->ctx, events, n);
}

/*
 * The inner store can only cancel the watch. This replaces the error by the one that the test
 * chose.
 */
static void forward_end(void *ctx, int error, const struct hf_status *status) {
        struct faulty_store *store = ctx;

        pthread_mutex_lock(&store->mu);
        int shown_error = store->end_error ? store->end_error : error;
        store->end_error = 0;
        pthread_mutex_unlock(&store->mu);
        store->handler->end(store->ctx, shown_error, status);
}

static int watch(struct hfd_store *self, const char *begin, const char *end, uint64_t from,
                 const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        static const struct hfd_watch_handler own = {forward_event, forward_end};
        struct faulty_store *store = (struct faulty_store *)self;

        store->handler = handler; /* must be set before the watch can call back */
        store->ctx = ctx;
        int r = store->inner->ops->watch(store->inner, begin, end, from, &own, store, ret_id);
        call_hook(store, &store->on_next_watch);
        pthread_mutex_lock(&store->mu);
        store->watch_id = *ret_id;
        pthread_mutex_unlock(&store->mu);
        return r;
}

static void watch_cancel(struct hfd_store *self, uint64_t id) {
        struct faulty_store *store = (struct faulty_store *)self;

        store->inner->ops->watch_cancel(store->inner, id);
}

static void watch_suspect(struct hfd_store *self, uint64_t id) {
        struct faulty_store *store = (struct faulty_store *)self;

        pthread_mutex_lock(&store->mu);
        store->n_suspected++;
        store->drops_events &= store->drops_for_good;
        pthread_mutex_unlock(&store->mu);
        store->inner->ops->watch_suspect(store->inner, id);
}

static bool has_open_watch(struct faulty_store *store) {
        pthread_mutex_lock(&store->mu);
        bool is_open = store->watch_id != store->ended_id;
        pthread_mutex_unlock(&store->mu);
        return is_open;
}

void faulty_store_await_watch(struct faulty_store *store) { PATIENCE_AWAIT(has_open_watch(store)); }

void faulty_store_end_watch(struct faulty_store *store, int error) {
        faulty_store_await_watch(store);
        pthread_mutex_lock(&store->mu);
        store->end_error = error;
        uint64_t id = store->ended_id = store->watch_id;
        pthread_mutex_unlock(&store->mu);
        store->inner->ops->watch_cancel(store->inner, id);
}

void faulty_store_init(struct faulty_store *store, const struct hf_host *host) {
        static const struct hfd_store_ops ops = {.get = get,
                                                 .list = list,
                                                 .txn = txn,
                                                 .watch = watch,
                                                 .watch_cancel = watch_cancel,
                                                 .watch_suspect = watch_suspect,
                                                 .revision = revision};

        *store = (struct faulty_store){.base = {.ops = &ops, .host = host}};
        pthread_mutex_init(&store->mu, NULL);
        int r = hfd_memory_store_new(host, &store->inner);
        assert(r == 0);
}

void faulty_store_deinit(struct faulty_store *store) {
        store->inner->ops->free(store->inner);
        pthread_mutex_destroy(&store->mu);
}

void faulty_store_drop_events(struct faulty_store *store, bool drops_events) {
        pthread_mutex_lock(&store->mu);
        store->drops_events = drops_events;
        pthread_mutex_unlock(&store->mu);
}

int faulty_store_n_lists(struct faulty_store *store) {
        pthread_mutex_lock(&store->mu);
        int n = store->n_lists;
        pthread_mutex_unlock(&store->mu);
        return n;
}

void faulty_store_drop_events_for_good(struct faulty_store *store) {
        pthread_mutex_lock(&store->mu);
        store->drops_events = store->drops_for_good = true;
        pthread_mutex_unlock(&store->mu);
}

int faulty_store_n_suspected(struct faulty_store *store) {
        pthread_mutex_lock(&store->mu);
        int n = store->n_suspected;
        pthread_mutex_unlock(&store->mu);
        return n;
}
