/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling the watch cache: one list in pages pinned to one revision, then one watch of the store
 * for everything below the prefix and the term records beside it, for ever.
 *
 *      IDLE --start--> RUNNING (epoch -> list pages -> watch) --failure--> BACKOFF --timer-->
 * RUNNING
 *
 * A watch that ends as unavailable goes on from the last revision + 1; one whose history was
 * compacted lists again, closes the API's watches with 410 and begins a new history. Only one
 * operation of this chain is under way at any time, so its own state (struct fill's pages) needs no
 * lock; what it publishes goes under mu.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher.h"
#include "server/storage/keys.h"

#define PAGE           500
#define LIST_DEADLINE  (30 * HF_NSEC_PER_SEC)
#define EPOCH_DEADLINE (5 * HF_NSEC_PER_SEC)
#define BACKOFF_MIN    (50 * HF_NSEC_PER_MSEC)
#define BACKOFF_MAX    (1000 * HF_NSEC_PER_MSEC)

struct listing {
        struct hfd_api *api;
        struct hfd_object_tree trees[HFD_RESOURCES_MAX], unreadable;
        uint64_t revision;               /* the first page's; 0 = no page yet */
        unsigned long replacement_epoch; /* of a replaced history, when it began */
        char start[HFD_KEY_MAX];
};

static void begin_watch(struct hfd_api *api);

static struct listing *listing_free(struct listing *listing) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                hfd_object_tree_clear(&listing->trees[i]);
        hfd_object_tree_clear(&listing->unreadable);
        free(listing);
        return NULL;
}

/* The chain broke: the timer takes it up again. */
static void fill_failed(struct hfd_api *api, int error, const struct hf_status *status,
                        bool relist) {
        pthread_mutex_lock(&api->mu);
        api->fill_status =
                status && *status->message ? *status : (struct hf_status){.error = error};
        if (!*api->fill_status.message)
                (void)snprintf(api->fill_status.message, sizeof api->fill_status.message, "%s",
                               hf_strerror(error));
        api->fill_relist |= relist;
        api->fill_watching = false;
        api->fill_watch_id = 0;
        api->fill = api->stopping ? HFD_FILL_IDLE : HFD_FILL_BACKOFF;
        api->fill_again_at = hfd_api_now(api) + api->fill_backoff;
        api->fill_backoff =
                api->fill_backoff * 2 > BACKOFF_MAX ? BACKOFF_MAX : api->fill_backoff * 2;
        pthread_cond_broadcast(&api->cond);
        pthread_mutex_unlock(&api->mu);
}

/* ---- history: the ring of the last changes ---- */

static void history_drop_first(struct hfd_api *api) {
        struct hfd_change *change = &api->history[api->first_history];

        api->history_floor = change->object->revision;
        api->history_bytes -= change->object->bytes->n;
        hfd_object_unref(change->object);
        hfd_object_unref(change->before);
        *change = (struct hfd_change){0};
        api->first_history = (api->first_history + 1) % HFD_HISTORY_EVENTS;
        api->n_history--;
}

static void history_clear_locked(struct hfd_api *api) {
        while (api->n_history)
                history_drop_first(api);
}

/* Takes change's references. */
static void history_add_locked(struct hfd_api *api, struct hfd_change change) {
        while (api->n_history &&
               (api->n_history == HFD_HISTORY_EVENTS || api->history_bytes > HFD_HISTORY_BYTES))
                history_drop_first(api);
        api->history[(api->first_history + api->n_history++) % HFD_HISTORY_EVENTS] = change;
        api->history_bytes += change.object->bytes->n;
}

/* ---- the list ---- */

static void listing_next(struct listing *listing);
static void read_epoch(struct hfd_api *api);

static void publish(struct listing *listing) {
        struct hfd_api *api = listing->api;
        struct hfd_watcher *dirty = NULL;
        struct hfd_consistent_read *passed;

        pthread_mutex_lock(&api->mu);
        if (listing->replacement_epoch !=
            api->replacement_epoch) { /* begun on the history that was replaced */
                pthread_mutex_unlock(&api->mu);
                listing_free(listing);
                read_epoch(api);
                return;
        }
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++) {
                struct hfd_object_tree old = api->trees[i];
                api->trees[i] = listing->trees[i];
                listing->trees[i] = old;
        }
        struct hfd_object_tree unreadable = api->unreadable;
        api->unreadable = listing->unreadable;
        listing->unreadable = unreadable;
        hfd_watchers_expire_locked(api, &dirty);
        history_clear_locked(api);
        api->history_floor = api->revision = listing->revision;
        api->synced = true;
        api->replaced = api->settles = false;
        api->fill_relist = false;
        api->fill_backoff = BACKOFF_MIN;
        passed = hfd_consistent_reads_passed_locked(api);
        pthread_cond_broadcast(&api->cond);
        pthread_mutex_unlock(&api->mu);
        hfd_consistent_reads_go(passed);
        hfd_watchers_deliver(dirty);
        listing_free(listing);
        begin_watch(api);
}

/*
 * A value of which no object could be made: NULL for want of memory, and the cache must be filled
 * anew; else somebody else has stored what is none, which is told here, and what is returned is to
 * be remembered.
 */
static struct hfd_object *unreadable(struct hfd_api *api, const struct hfd_resource *resource,
                                     const struct hfd_kv *kv) {
        if (hfd_object_check(kv->value) != HF_E_INVALID)
                return NULL;
        hf_log(&api->host->log, HF_LOG_ERROR, "api", "%s is no object, it is not served", kv->key);
        return hfd_object_unreadable(resource, kv->key, kv->mod_revision);
}

/* Takes mark, NULL = key is readable or gone. False: out of memory. */
static bool remember(struct hfd_object_tree *tree, const char *key, struct hfd_object *mark) {
        struct hfd_object *old = NULL;
        bool good = true;

        if (mark)
                good = hfd_object_tree_put(tree, mark, &old) == 0;
        else if (tree->n)
                old = hfd_object_tree_remove(tree, key);
        hfd_object_unref(old);
        return good;
}

static int listing_take(struct listing *listing, const struct hfd_store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++) {
                const struct hfd_kv *kv = &reply->kvs[i];
                const char *path;
                const struct hfd_resource *resource =
                        hfd_object_of_key(listing->api, kv->key, &path);
                struct hfd_object *object, *old = NULL;
                if (!resource || !kv->value)
                        continue;
                object = hfd_object_new(resource, path, kv->mod_revision, kv->value);
                if (!object) {
                        struct hfd_object *mark = unreadable(listing->api, resource, kv);
                        if (!mark || !remember(&listing->unreadable, kv->key, mark))
                                return -ENOMEM;
                        continue;
                }
                if (hfd_object_tree_put(&listing->trees[hfd_resource_index(resource)], object,
                                        &old))
                        return -ENOMEM;
                hfd_object_unref(old);
        }
        if (reply->more && reply->n_kvs) /* no key has a byte below 1 in it */
                (void)snprintf(listing->start, sizeof listing->start, "%.*s\x01", HFD_KEY_MAX - 2,
                               reply->kvs[reply->n_kvs - 1].key);
        return 0;
}

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct listing *listing = ctx;
        struct hfd_api *api = listing->api;
        int r = reply->error;

        if (r == 0)
                r = listing_take(listing, reply);
        if (r != 0) {
                listing_free(listing);
                fill_failed(api, r, &reply->status, true);
                return;
        }
        if (!listing->revision)
                listing->revision = reply->revision;
        if (reply->more && reply->n_kvs)
                listing_next(listing);
        else
                publish(listing);
}

static void listing_next(struct listing *listing) {
        struct hfd_api *api = listing->api;
        char prefix[sizeof api->prefix + 1];

        (void)snprintf(prefix, sizeof prefix, "%s/", api->prefix);
        int r = hfd_store_list(api, prefix, *listing->start ? listing->start : NULL,
                               listing->revision, PAGE, hfd_api_now(api) + LIST_DEADLINE, on_page,
                               listing);
        if (r != 0) {
                listing_free(listing);
                fill_failed(api, r, NULL, true);
        }
}

/* ---- the watch ---- */

/* The object of a put: the one an own write has made already, if it is this version. */
static struct hfd_object *object_of_put(struct hfd_api *api, const struct hfd_resource *resource,
                                        const char *path, const struct hfd_kv *kv) {
        struct hfd_object *object = NULL;

        pthread_mutex_lock(&api->mu);
        struct hfd_object_node *node =
                hfd_object_tree_find(&api->trees[hfd_resource_index(resource)], path);
        if (node && node->newer && node->newer->revision == kv->mod_revision)
                object = hfd_object_ref(node->newer);
        pthread_mutex_unlock(&api->mu);
        return object ? object : hfd_object_new(resource, path, kv->mod_revision, kv->value);
}

/* Takes object (NULL = deleted at revision). False: out of memory, the cache must be filled anew.
 */
static bool apply_locked(struct hfd_api *api, const struct hfd_resource *resource, const char *path,
                         struct hfd_object *object, uint64_t revision, struct hfd_watcher **dirty) {
        struct hfd_object_tree *tree = &api->trees[hfd_resource_index(resource)];
        struct hfd_change change = {.object = object};

        if (object) {
                if (hfd_object_tree_put(tree, hfd_object_ref(object), &change.before)) {
                        hfd_object_unref(object);
                        return false;
                }
                struct hfd_object_node *node = hfd_object_tree_find(tree, path);
                if (node->newer && node->newer->revision <= revision)
                        node->newer = hfd_object_unref(node->newer);
                change.type = change.before ? HF_EVENT_MODIFIED : HF_EVENT_ADDED;
        } else {
                change.before = hfd_object_tree_remove(tree, path);
                if (!change.before)
                        return true;
                change.type = HF_EVENT_DELETED;
                change.object = hfd_object_at(change.before, revision);
                if (!change.object) {
                        hfd_object_unref(change.before);
                        return false;
                }
        }
        hfd_watchers_change_locked(api, &change, dirty);
        history_add_locked(api, change);
        return true;
}

static bool is_new_epoch(struct hfd_api *api, const struct hfd_watch_event *event) {
        char key[HFD_KEY_MAX];

        return event->type == HFD_WATCH_PUT && hfd_store_identity_epoch_key(api, key) == 0 &&
               strcmp(key, event->kv.key) == 0 &&
               hfd_store_identity_epoch_changed(api, event->kv.value);
}

/* Whether a term record names a holder anew. */
static bool is_taking(struct hfd_api *api, const struct hfd_watch_event *event) {
        const struct hf__buf *value = event->kv.value;

        return event->type == HFD_WATCH_PUT && value && value->n && value->data[0] != '\n' &&
               hfd_key_is_of_terms(event->kv.key, api->prefix);
}

static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct hfd_api *api = ctx;
        struct hfd_watcher *dirty = NULL;
        struct hfd_consistent_read *passed;
        bool whole = true, replaced = false, taken = false;

        for (size_t i = 0; i < n && whole; i++) {
                const struct hfd_watch_event *event = &events[i];
                const struct hfd_resource *resource = NULL;
                struct hfd_object *object = NULL, *mark = NULL;
                const char *path = NULL;
                if (event->type != HFD_WATCH_PROGRESS)
                        resource = hfd_object_of_key(api, event->kv.key, &path);
                if (!resource) {
                        replaced |= is_new_epoch(api, event);
                        taken |= is_taking(api, event);
                }
                if (resource && event->type == HFD_WATCH_PUT) {
                        object = object_of_put(api, resource, path, &event->kv);
                        if (!object) /* what was there before is no more */
                                whole = (mark = unreadable(api, resource, &event->kv));
                }
                pthread_mutex_lock(&api->mu);
                if (resource && whole)
                        whole = remember(&api->unreadable, event->kv.key, mark) &&
                                apply_locked(api, resource, path, object, event->kv.mod_revision,
                                             &dirty);
                /* With the last of a revision's events all of it is in the trees; a list must not
                 * hold what is newer than it says. */
                bool last = i + 1 == n || events[i + 1].revision != event->revision;
                if (whole && last && event->revision > api->revision)
                        api->revision = event->revision;
                pthread_mutex_unlock(&api->mu);
        }
        pthread_mutex_lock(&api->mu);
        if (!whole)
                api->fill_relist = true;
        else if (taken)
                hfd_watchers_taken_locked(api, &dirty);
        uint64_t cancel = whole ? 0 : api->fill_watch_id;
        api->fill_backoff = BACKOFF_MIN;
        passed = hfd_consistent_reads_passed_locked(api);
        pthread_mutex_unlock(&api->mu);
        atomic_store(&api->heard_at, hfd_api_now(api));
        hfd_consistent_reads_go(passed);
        hfd_watchers_deliver(dirty);
        if (cancel)
                api->store->ops->watch_cancel(api->store, cancel);
        if (replaced)
                hfd_store_identity_replaced(api, "the epoch key changed");
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_api *api = ctx;

        hf_log(&api->host->log, HF_LOG_DEBUG, "api", "the watch of the store ended: %s",
               status && *status->message ? status->message : hf_strerror(error));
        fill_failed(api, error, status, error == HF_E_GONE);
}

static const struct hfd_watch_handler handler = {on_events, on_watch_end};

static void begin_watch(struct hfd_api *api) {
        char begin[sizeof api->prefix + 1], end[sizeof api->prefix + 1];
        uint64_t id = 0, from;

        (void)snprintf(begin, sizeof begin, "%s.", api->prefix);
        (void)snprintf(end, sizeof end, "%s0", api->prefix);
        pthread_mutex_lock(&api->mu);
        api->fill_watching = true;
        uint64_t mine = ++api->fill_n_watches;
        from = api->revision + 1;
        pthread_mutex_unlock(&api->mu);
        int r = api->store->ops->watch(api->store, begin, end, from, &handler, api, &id);
        if (r != 0) {
                fill_failed(api, r, NULL, false);
                return;
        }
        /* It may have ended already; then the id names nothing, and cancelling it does nothing. */
        pthread_mutex_lock(&api->mu);
        if (api->fill_watching && api->fill_n_watches == mine)
                api->fill_watch_id = id;
        bool unwanted =
                api->stopping || api->fill_relist; /* who wanted it ended had no id to cancel yet */
        pthread_mutex_unlock(&api->mu);
        if (unwanted)
                api->store->ops->watch_cancel(api->store, id);
}

/* ---- the chain's ends ---- */

static void begin_list(struct hfd_api *api);

/* Before a watch goes on where another ended: is it still the history that one belonged to? */
static void on_epoch(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_api *api = ctx;

        if (reply->error) {
                fill_failed(api, reply->error, &reply->status, false);
                return;
        }
        if (hfd_store_identity_epoch_changed(api, reply->n_kvs ? reply->kvs[0].value : NULL))
                hfd_store_identity_replaced(api, "the epoch key changed");
        pthread_mutex_lock(&api->mu);
        bool relist = api->fill_relist;
        pthread_mutex_unlock(&api->mu);
        if (relist)
                begin_list(api);
        else
                begin_watch(api);
}

static void read_epoch(struct hfd_api *api) {
        char key[HFD_KEY_MAX];
        int r = hfd_store_identity_epoch_key(api, key);

        if (r == 0)
                r = hfd_store_get(api, key, hfd_api_now(api) + EPOCH_DEADLINE, on_epoch, api);
        if (r != 0)
                fill_failed(api, r, NULL, false);
}

void hfd_reflector_run(struct hfd_api *api) {
        pthread_mutex_lock(&api->mu);
        bool go = !api->stopping && api->fill != HFD_FILL_RUNNING;
        if (go)
                api->fill = HFD_FILL_RUNNING;
        if (!api->fill_backoff)
                api->fill_backoff = BACKOFF_MIN;
        pthread_mutex_unlock(&api->mu);
        if (!go)
                return;
        read_epoch(api);
}

static void begin_list(struct hfd_api *api) {
        struct listing *listing = calloc(1, sizeof *listing);
        if (!listing) {
                fill_failed(api, -ENOMEM, NULL, true);
                return;
        }
        listing->api = api;
        pthread_mutex_lock(&api->mu);
        listing->replacement_epoch = api->replacement_epoch;
        pthread_mutex_unlock(&api->mu);
        listing_next(listing);
}

void hfd_reflector_stop(struct hfd_api *api) {
        pthread_mutex_lock(&api->mu);
        api->stopping = true;
        uint64_t id = api->fill_watch_id;
        if (api->fill == HFD_FILL_BACKOFF)
                api->fill = HFD_FILL_IDLE;
        pthread_cond_broadcast(&api->cond);
        pthread_mutex_unlock(&api->mu);
        if (id)
                api->store->ops->watch_cancel(api->store, id);
        pthread_mutex_lock(&api->mu);
        while (api->fill == HFD_FILL_RUNNING)
                pthread_cond_wait(&api->cond, &api->mu);
        history_clear_locked(api);
        pthread_mutex_unlock(&api->mu);
}

void hfd_cacher_note_write(struct hfd_api *api, struct hfd_object *object) {
        struct hfd_object *old = NULL;

        pthread_mutex_lock(&api->mu);
        struct hfd_object_node *node =
                hfd_object_tree_find(&api->trees[hfd_resource_index(object->resource)],
                                     object->path);
        if (node && node->object->revision < object->revision &&
            (!node->newer || node->newer->revision < object->revision)) {
                old = node->newer;
                node->newer = hfd_object_ref(object);
        }
        pthread_mutex_unlock(&api->mu);
        hfd_object_unref(old);
}

struct hfd_object *hfd_cacher_newest(struct hfd_api *api, const struct hfd_resource *resource,
                                     const char *path, bool *ret_synced) {
        struct hfd_object *object = NULL;

        pthread_mutex_lock(&api->mu);
        *ret_synced = api->synced;
        struct hfd_object_node *node =
                api->synced ? hfd_object_tree_find(&api->trees[hfd_resource_index(resource)], path)
                            : NULL;
        if (node)
                object = hfd_object_ref(node->newer ? node->newer : node->object);
        pthread_mutex_unlock(&api->mu);
        return object;
}
