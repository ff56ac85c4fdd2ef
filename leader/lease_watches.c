/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared watches of a set. A collection (a client and a namespace) has at most one shared watch
 * with subscriptions. It begins with the first subscription, and is canceled after the last one.
 *
 * Threads. The elector loop subscribes and closes; the client calls back on threads of its own,
 * sometimes before hf_client_watch has returned. A shared watch holds a reference on struct
 * hf__lease_watches, so its last callback finds the memory. `mu` guards everything, and is not held
 * while the client or a subscriber is called.
 *
 * Invariants:
 *  - a subscription is in the index of a shared watch, or an event of it is being delivered, or one
 *    thread is ending it;
 *  - a subscription that is closed during a delivery is ended by the delivering thread, so that
 *    on_end comes after the last event.
 */
#include "leader/lease_watches.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "client/json_span.h"
#include "client/key_index.h"

struct subscription {
        struct hf__keyed keyed; /* first; the name of the Lease */
        /* immutable */
        uint64_t id;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
        /* guarded by mu */
        bool in_delivery, closed;
        struct subscription *next; /* in the list of those that end together */
};

struct shared_watch {
        struct collection *collection; /* immutable */
        /* guarded by mu */
        int refs;           /* one for the starting function, one for on_end */
        uint64_t client_id; /* 0 = not known yet */
        bool cancel_wanted, over;
        struct hf__key_index subscriptions; /* owned, until they end */
};

struct collection {
        /* immutable */
        struct hf__lease_watches *watches;
        struct collection *next;
        struct hf_client *client; /* borrowed */
        char *ns;                 /* owned */
        /* guarded by mu */
        unsigned n_expected;
        bool forbidden;
        struct shared_watch *current; /* the one with subscriptions; NULL = none */
};

struct hf__lease_watches {
        pthread_mutex_t mu;
        /* guarded by mu */
        int refs; /* one for the owner, one for each shared watch */
        uint64_t last_id;
        struct collection *collections; /* owned */
};

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

/* ---- lifetime ---- */

int hf__lease_watches_new(struct hf__lease_watches **ret_watches) {
        struct hf__lease_watches *watches = calloc(1, sizeof *watches);
        if (!watches)
                return -ENOMEM;
        int r = hf__mutex_init(&watches->mu);
        if (r != 0) {
                free(watches);
                return r;
        }
        watches->refs = 1;
        *ret_watches = watches;
        return 0;
}

static void watches_unref(struct hf__lease_watches *watches) {
        pthread_mutex_lock(&watches->mu);
        assert(watches->refs > 0);
        bool is_last_ref = --watches->refs == 0;
        pthread_mutex_unlock(&watches->mu);
        if (!is_last_ref)
                return;
        while (watches->collections) {
                struct collection *collection = watches->collections;
                watches->collections = collection->next;
                assert(!collection->current);
                free(collection->ns);
                free(collection);
        }
        pthread_mutex_destroy(&watches->mu);
        free(watches);
}

struct hf__lease_watches *hf__lease_watches_free(struct hf__lease_watches *watches) {
        if (watches)
                watches_unref(watches);
        return NULL;
}

static void shared_unref(struct shared_watch *shared) {
        struct hf__lease_watches *watches = shared->collection->watches;
        pthread_mutex_lock(&watches->mu);
        assert(shared->refs > 0);
        bool is_last_ref = --shared->refs == 0;
        pthread_mutex_unlock(&watches->mu);
        if (!is_last_ref)
                return;
        assert(shared->subscriptions.n == 0);
        hf__key_index_done(&shared->subscriptions);
        free(shared);
        watches_unref(watches);
}

/* ---- collections ---- */

static struct collection *find_locked(struct hf__lease_watches *watches,
                                      const struct hf_client *client, const char *ns) {
        struct collection *collection = watches->collections;
        hf__mutex_assert_held(&watches->mu);
        while (collection && (collection->client != client || strcmp(collection->ns, ns) != 0))
                collection = collection->next;
        return collection;
}

static struct collection *add_locked(struct hf__lease_watches *watches, struct hf_client *client,
                                     const char *ns) {
        struct collection *collection = calloc(1, sizeof *collection);
        char *copy = strdup(ns);
        hf__mutex_assert_held(&watches->mu);
        if (!collection || !copy) {
                free(collection);
                free(copy);
                return NULL;
        }
        *collection = (struct collection){.watches = watches,
                                          .next = watches->collections,
                                          .client = client,
                                          .ns = copy};
        watches->collections = collection;
        return collection;
}

int hf__lease_watches_expect(struct hf__lease_watches *watches, struct hf_client *client,
                             const char *ns) {
        pthread_mutex_lock(&watches->mu);
        struct collection *collection = find_locked(watches, client, ns);
        if (!collection)
                collection = add_locked(watches, client, ns);
        if (collection)
                collection->n_expected++;
        pthread_mutex_unlock(&watches->mu);
        return collection ? 0 : -ENOMEM;
}

bool hf__lease_watches_is_shared(struct hf__lease_watches *watches, struct hf_client *client,
                                 const char *ns) {
        pthread_mutex_lock(&watches->mu);
        struct collection *collection = find_locked(watches, client, ns);
        bool shared = collection && !collection->forbidden &&
                      collection->n_expected >= HF__LEASE_WATCHES_SHARED;
        pthread_mutex_unlock(&watches->mu);
        return shared;
}

/* ---- the callbacks of a shared watch ---- */

static void end_subscription(struct subscription *subscription, int error,
                             const struct hf_status *status) {
        subscription->on_end(subscription->ctx, error, status);
        free(subscription);
}

/* Copies the name of the event's object. False: it has none, or one that no Lease can have. */
static bool name_of(const struct hf_event *event, char name[HF_NAME_MAX + 1]) {
        struct hf__span object = {event->object, event->n_object}, metadata, text;
        if (!hf__span_member(object, "metadata", &metadata) ||
            !hf__span_member(metadata, "name", &text) || text.n < 3 || text.n - 2 > HF_NAME_MAX)
                return false;
        memcpy(name, text.data + 1, text.n - 2); /* without its quotes */
        name[text.n - 2] = '\0';
        return true;
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct shared_watch *shared = ctx;
        pthread_mutex_t *mu = &shared->collection->watches->mu;
        char name[HF_NAME_MAX + 1];
        if (event->type == HF_EVENT_BOOKMARK || !name_of(event, name))
                return;
        pthread_mutex_lock(mu);
        struct subscription *subscription =
                (struct subscription *)hf__key_index_find(&shared->subscriptions, name);
        if (subscription)
                subscription->in_delivery = true;
        pthread_mutex_unlock(mu);
        if (!subscription)
                return;
        subscription->on_event(subscription->ctx, event);
        pthread_mutex_lock(mu);
        subscription->in_delivery = false;
        bool closed = subscription->closed;
        pthread_mutex_unlock(mu);
        if (closed)
                end_subscription(subscription, HF_E_CANCELED, NULL);
}

/* Takes all subscriptions from the shared watch, which is over. None of them is in a delivery,
 * because a client calls on_end after the last on_event has returned. */
static struct subscription *take_all_locked(struct shared_watch *shared) {
        hf__mutex_assert_held(&shared->collection->watches->mu);
        struct subscription *list = NULL;
        struct hf__keyed *keyed;
        struct hf__key_iter iter;
        hf__key_iter_init(&iter, &shared->subscriptions);
        while ((keyed = hf__key_iter_next(&iter))) {
                struct subscription *subscription = (struct subscription *)keyed;
                subscription->next = list;
                list = subscription;
        }
        hf__key_index_done(&shared->subscriptions);
        if (shared->collection->current == shared)
                shared->collection->current = NULL;
        shared->over = true;
        return list;
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct shared_watch *shared = ctx;
        struct collection *collection = shared->collection;
        pthread_mutex_lock(&collection->watches->mu);
        struct subscription *list = take_all_locked(shared);
        if (error == HF_E_FORBIDDEN)
                collection->forbidden = true;
        pthread_mutex_unlock(&collection->watches->mu);
        while (list) {
                struct subscription *subscription = list;
                list = subscription->next;
                end_subscription(subscription, error, status);
        }
        shared_unref(shared);
}

/* ---- subscribing ---- */

static struct shared_watch *new_shared_locked(struct collection *collection) {
        hf__mutex_assert_held(&collection->watches->mu);
        struct shared_watch *shared = calloc(1, sizeof *shared);
        if (!shared)
                return NULL;
        shared->collection = collection;
        shared->refs = 2;
        assert(collection->watches->refs > 0 && !collection->current);
        collection->watches->refs++;
        collection->current = shared;
        return shared;
}

/* Starts the watch of a collection. Drops the starting function's reference; on failure both. */
static int start_shared(struct shared_watch *shared) {
        struct collection *collection = shared->collection;
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = leases,
                                           .ns = collection->ns,
                                           .bookmarks = true,
                                           .lane = HF_LANE_LEASE};
        uint64_t client_id = 0;
        int r = hf_client_watch(collection->client, &spec, on_event, on_end, shared, &client_id);
        pthread_mutex_lock(&collection->watches->mu);
        shared->client_id = client_id;
        bool cancel = r == 0 && shared->cancel_wanted && !shared->over;
        struct subscription *list = r == 0 ? NULL : take_all_locked(shared);
        pthread_mutex_unlock(&collection->watches->mu);
        assert(!list || !list->next);
        free(list); /* the caller's own subscription: no callback was called, and none will be */
        if (cancel)
                hf_client_watch_cancel(collection->client, client_id);
        if (r != 0)
                shared_unref(shared);
        shared_unref(shared);
        return r;
}

int hf__lease_watches_open(struct hf__lease_watches *watches, struct hf_client *client,
                           const char *ns, const char *name, hf_event_fn event_fn,
                           hf_watch_end_fn end_fn, void *ctx, uint64_t *ret_id) {
        struct subscription *subscription = malloc(sizeof *subscription);
        struct shared_watch *started = NULL;
        if (!subscription)
                return -ENOMEM;
        *subscription = (struct subscription){.keyed = {name},
                                              .on_event = event_fn,
                                              .on_end = end_fn,
                                              .ctx = ctx};
        pthread_mutex_lock(&watches->mu);
        *ret_id = subscription->id = ++watches->last_id;
        struct collection *collection = find_locked(watches, client, ns);
        assert(collection);
        if (!collection->current)
                started = new_shared_locked(collection);
        int r = collection->current ? hf__key_index_insert(&collection->current->subscriptions,
                                                           &subscription->keyed)
                                    : -ENOMEM;
        if (r != 0 && started)
                collection->current = NULL;
        pthread_mutex_unlock(&watches->mu);
        if (r == 0)
                return started ? start_shared(started) : 0;
        free(subscription);
        if (started) {
                shared_unref(started);
                shared_unref(started);
        }
        return r;
}

void hf__lease_watches_close(struct hf__lease_watches *watches, struct hf_client *client,
                             const char *ns, const char *name, uint64_t id) {
        struct subscription *ended = NULL;
        uint64_t client_id = 0;
        pthread_mutex_lock(&watches->mu);
        struct collection *collection = find_locked(watches, client, ns);
        struct shared_watch *shared = collection ? collection->current : NULL;
        struct subscription *subscription =
                shared ? (struct subscription *)hf__key_index_find(&shared->subscriptions, name)
                       : NULL;
        if (subscription && subscription->id == id) {
                hf__key_index_remove(&shared->subscriptions, name);
                if (subscription->in_delivery)
                        subscription->closed = true;
                else
                        ended = subscription;
                if (shared->subscriptions.n == 0) {
                        collection->current = NULL;
                        shared->cancel_wanted = true;
                        client_id = shared->client_id;
                }
        }
        pthread_mutex_unlock(&watches->mu);
        if (ended)
                end_subscription(ended, HF_E_CANCELED, NULL);
        if (client_id)
                hf_client_watch_cancel(client, client_id);
}
