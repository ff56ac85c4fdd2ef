/* SPDX-License-Identifier: Apache-2.0 */
/* See scripted_store.h. The mutex is never held during a callback. */
#include "scripted_store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "patience.h"

/* ---- requests ---- */

static void copy_key(char copy[HFD_KEY_MAX], const char *key) {
        int n = snprintf(copy, HFD_KEY_MAX, "%s", key ? key : "");

        assert(n >= 0 && n < HFD_KEY_MAX);
}

/* Queues the request, unless its kind is refused. */
static int add(struct hfd_store *self, struct scripted_request *request) {
        struct scripted_store *store = (struct scripted_store *)self;

        pthread_mutex_lock(&store->mu);
        int r = store->refusals[request->kind];
        if (r == 0) {
                assert(store->n_waiting < SCRIPTED_WAITING_MAX);
                store->waiting[store->n_waiting++] = *request;
                pthread_cond_broadcast(&store->cond);
        }
        pthread_mutex_unlock(&store->mu);
        return r;
}

static int get(struct hfd_store *self, const char *key, bool urgent, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        struct scripted_request request = {.kind = SCRIPTED_GET,
                                           .urgent = urgent,
                                           .deadline = deadline,
                                           .done = done,
                                           .ctx = ctx};

        copy_key(request.key, key);
        return add(self, &request);
}

static int list(struct hfd_store *self, const char *prefix, const char *start, uint64_t revision,
                size_t limit, bool keys_only, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct scripted_request request = {.kind = SCRIPTED_LIST,
                                           .revision = revision,
                                           .limit = limit,
                                           .keys_only = keys_only,
                                           .deadline = deadline,
                                           .done = done,
                                           .ctx = ctx};

        copy_key(request.key, prefix);
        copy_key(request.start, start);
        return add(self, &request);
}

static int txn(struct hfd_store *self, const struct hfd_txn *txn, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        struct scripted_request request = {.kind = SCRIPTED_TXN,
                                           .urgent = txn->urgent,
                                           .deadline = deadline,
                                           .done = done,
                                           .ctx = ctx};

        assert(hfd_txn_check(txn) == 0);
        copy_key(request.key, txn->n_ops > 0 ? txn->ops[0].key : "");
        request.revision = txn->n_compares > 0 ? txn->compares[0].revision : 0;
        return add(self, &request);
}

static int revision(struct hfd_store *self, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct scripted_request request = {.kind = SCRIPTED_REVISION,
                                           .deadline = deadline,
                                           .done = done,
                                           .ctx = ctx};

        return add(self, &request);
}

struct scripted_request scripted_store_next(struct scripted_store *store, enum scripted_kind kind) {
        pthread_mutex_lock(&store->mu);
        PATIENCE_AWAIT_LOCKED(&store->cond, &store->mu, store->n_waiting > 0);
        struct scripted_request request = store->waiting[0];
        store->n_waiting--;
        memmove(store->waiting, store->waiting + 1, store->n_waiting * sizeof request);
        pthread_mutex_unlock(&store->mu);
        assert(request.kind == kind);
        return request;
}

size_t scripted_store_n_waiting(struct scripted_store *store) {
        pthread_mutex_lock(&store->mu);
        size_t n = store->n_waiting;
        pthread_mutex_unlock(&store->mu);
        return n;
}

void scripted_store_refuse(struct scripted_store *store, enum scripted_kind kind, int error) {
        pthread_mutex_lock(&store->mu);
        store->refusals[kind] = error;
        pthread_mutex_unlock(&store->mu);
}

/* ---- replies ---- */

void scripted_reply(const struct scripted_request *request, const struct hfd_store_reply *reply) {
        request->done(request->ctx, reply);
}

void scripted_reply_error(const struct scripted_request *request, int error) {
        scripted_reply(request, &(struct hfd_store_reply){.error = error});
}

void scripted_reply_revision(const struct scripted_request *request, uint64_t revision) {
        scripted_reply(request, &(struct hfd_store_reply){.revision = revision});
}

static struct hf__buf *value_of(const char *text) {
        struct hf__buf *value = text ? hf__buf_copy(text, strlen(text)) : NULL;

        assert(value || !text);
        return value;
}

void scripted_reply_key(const struct scripted_request *request, uint64_t revision, const char *key,
                        const char *value, uint64_t mod_revision) {
        const struct hfd_kv kv = {.key = key,
                                  .value = value_of(value),
                                  .mod_revision = mod_revision,
                                  .create_revision = mod_revision};

        scripted_reply(request,
                       &(struct hfd_store_reply){.revision = revision, .kvs = &kv, .n_kvs = 1});
        if (kv.value)
                hf__buf_unref(kv.value);
}

/* ---- the watch ---- */

static int watch(struct hfd_store *self, const char *begin, const char *end, uint64_t from,
                 const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        struct scripted_store *store = (struct scripted_store *)self;

        pthread_mutex_lock(&store->mu);
        assert(!store->is_watched);
        int r = store->watch_refusal;
        if (r == 0) {
                store->is_watched = true;
                *ret_id = ++store->n_watches;
                copy_key(store->begin, begin);
                copy_key(store->end, end);
                store->from = from;
                store->handler = *handler;
                store->ctx = ctx;
                pthread_cond_broadcast(&store->cond);
        }
        pthread_mutex_unlock(&store->mu);
        if (r == 0 && store->on_watch)
                store->on_watch(store);
        return r;
}

/* Ends the watch if it has this ID. */
static void end_watch(struct scripted_store *store, uint64_t id, int error,
                      const struct hf_status *status) {
        pthread_mutex_lock(&store->mu);
        bool ends = store->is_watched && id == store->n_watches;
        store->is_watched &= !ends;
        struct hfd_watch_handler handler = store->handler;
        void *ctx = store->ctx;
        pthread_mutex_unlock(&store->mu);
        if (ends)
                handler.end(ctx, error, status);
}

static void watch_cancel(struct hfd_store *self, uint64_t id) {
        struct scripted_store *store = (struct scripted_store *)self;
        const struct hf_status status = {.error = HF_E_CANCELED};

        pthread_mutex_lock(&store->mu);
        store->n_canceled++;
        pthread_mutex_unlock(&store->mu);
        end_watch(store, id, HF_E_CANCELED, &status);
}

static void watch_suspect(struct hfd_store *self, uint64_t id) {
        struct scripted_store *store = (struct scripted_store *)self;
        const struct hf_status status = {.error = HF_E_CANCELED};

        pthread_mutex_lock(&store->mu);
        store->n_suspected++;
        store->suspected = id;
        pthread_mutex_unlock(&store->mu);
        end_watch(store, id, HF_E_CANCELED, &status);
}

void scripted_store_await_watch(struct scripted_store *store, unsigned n) {
        pthread_mutex_lock(&store->mu);
        PATIENCE_AWAIT_LOCKED(&store->cond, &store->mu, store->n_watches >= n && store->is_watched);
        assert(store->n_watches == n);
        pthread_mutex_unlock(&store->mu);
}

unsigned scripted_store_n_watches(struct scripted_store *store) {
        pthread_mutex_lock(&store->mu);
        unsigned n = store->n_watches;
        pthread_mutex_unlock(&store->mu);
        return n;
}

bool scripted_store_is_watched(struct scripted_store *store) {
        pthread_mutex_lock(&store->mu);
        bool is = store->is_watched;
        pthread_mutex_unlock(&store->mu);
        return is;
}

void scripted_store_refuse_watch(struct scripted_store *store, int error) {
        pthread_mutex_lock(&store->mu);
        store->watch_refusal = error;
        pthread_mutex_unlock(&store->mu);
}

void scripted_store_events(struct scripted_store *store, const struct hfd_watch_event *events,
                           size_t n) {
        pthread_mutex_lock(&store->mu);
        assert(store->is_watched);
        struct hfd_watch_handler handler = store->handler;
        void *ctx = store->ctx;
        pthread_mutex_unlock(&store->mu);
        handler.event(ctx, events, n);
}

void scripted_store_event(struct scripted_store *store, const char *key, const char *value,
                          uint64_t revision) {
        struct hfd_watch_event event = {.type = HFD_WATCH_PROGRESS, .revision = revision};

        if (key) {
                event.type = value ? HFD_WATCH_PUT : HFD_WATCH_DELETE;
                event.kv = (struct hfd_kv){.key = key,
                                           .value = value_of(value),
                                           .mod_revision = revision,
                                           .create_revision = value ? revision : 0};
        }
        scripted_store_events(store, &event, 1);
        if (event.kv.value)
                hf__buf_unref(event.kv.value);
}

void scripted_store_end_watch(struct scripted_store *store, int error, const char *message) {
        struct hf_status status = {.error = error};

        (void)snprintf(status.message, sizeof status.message, "%s", message ? message : "");
        end_watch(store, scripted_store_n_watches(store), error, &status);
}

/* ---- the store ---- */

void scripted_store_init(struct scripted_store *store, const struct hf_host *host) {
        static const struct hfd_store_ops ops = {.get = get,
                                                 .list = list,
                                                 .txn = txn,
                                                 .watch = watch,
                                                 .watch_cancel = watch_cancel,
                                                 .watch_suspect = watch_suspect,
                                                 .revision = revision};

        *store = (struct scripted_store){.base = {.ops = &ops, .host = host}};
        int r = hf__mutex_cond_init(&store->mu, &store->cond);
        assert(r == 0);
}

void scripted_store_deinit(struct scripted_store *store) {
        assert(store->n_waiting == 0 && !store->is_watched);
        pthread_cond_destroy(&store->cond);
        pthread_mutex_destroy(&store->mu);
}
