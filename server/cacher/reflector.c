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
#include "server/cacher/reflector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"
#include "server/resources/object_key.h"

#define PAGE           500
#define LIST_DEADLINE  (30 * HF_NSEC_PER_SEC)
#define EPOCH_DEADLINE (5 * HF_NSEC_PER_SEC)
#define BACKOFF_MIN    (50 * HF_NSEC_PER_MSEC)
#define BACKOFF_MAX    (1000 * HF_NSEC_PER_MSEC)

struct listing {
        struct hfd_cacher *cacher;
        struct hfd_object_tree trees[HFD_RESOURCES_MAX], unreadable;
        uint64_t revision;               /* the first page's; 0 = no page yet */
        unsigned long replacement_epoch; /* of a replaced history, when it began */
        char start[HFD_KEY_MAX];
};

static void begin_watch(struct hfd_cacher *cacher);

static struct listing *listing_free(struct listing *listing) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                hfd_object_tree_clear(&listing->trees[i]);
        hfd_object_tree_clear(&listing->unreadable);
        free(listing);
        return NULL;
}

/* The chain broke: the timer takes it up again. */
static void fill_failed(struct hfd_cacher *cacher, int error, const struct hf_status *status,
                        bool relist) {
        pthread_mutex_lock(&cacher->mu);
        cacher->reflector.status =
                status && *status->message ? *status : (struct hf_status){.error = error};
        if (!*cacher->reflector.status.message)
                (void)snprintf(cacher->reflector.status.message,
                               sizeof cacher->reflector.status.message, "%s", hf_strerror(error));
        cacher->reflector.relist |= relist;
        cacher->reflector.watching = false;
        cacher->reflector.watch_id = 0;
        cacher->reflector.state = cacher->stopping ? HFD_REFLECTOR_IDLE : HFD_REFLECTOR_BACKOFF;
        cacher->reflector.again_at = hfd_cacher_now(cacher) + cacher->reflector.backoff;
        cacher->reflector.backoff = cacher->reflector.backoff * 2 > BACKOFF_MAX
                                            ? BACKOFF_MAX
                                            : cacher->reflector.backoff * 2;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

/* ---- the list ---- */

static void listing_next(struct listing *listing);
static void read_epoch(struct hfd_cacher *cacher);

static void publish(struct listing *listing) {
        struct hfd_cacher *cacher = listing->cacher;
        struct hfd_watcher *dirty = NULL;
        struct hfd_consistent_read *passed;

        pthread_mutex_lock(&cacher->mu);
        if (listing->replacement_epoch !=
            cacher->identity.replacement_epoch) { /* begun on the history that was replaced */
                pthread_mutex_unlock(&cacher->mu);
                listing_free(listing);
                read_epoch(cacher);
                return;
        }
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++) {
                struct hfd_object_tree old = cacher->trees[i];
                cacher->trees[i] = listing->trees[i];
                listing->trees[i] = old;
        }
        struct hfd_object_tree unreadable = cacher->unreadable;
        cacher->unreadable = listing->unreadable;
        listing->unreadable = unreadable;
        hfd_watchers_expire_locked(cacher, &dirty);
        hfd_event_history_clear(&cacher->history);
        cacher->history.floor = cacher->revision = listing->revision;
        cacher->synced = true;
        cacher->identity.replaced = cacher->identity.settling = false;
        cacher->reflector.relist = false;
        cacher->reflector.backoff = BACKOFF_MIN;
        passed = hfd_consistent_reads_passed_locked(cacher);
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_go(passed);
        hfd_watchers_deliver(dirty);
        listing_free(listing);
        begin_watch(cacher);
}

/*
 * A value of which no object could be made: NULL for want of memory, and the cache must be filled
 * anew; else somebody else has stored what is none, which is told here, and what is returned is to
 * be remembered.
 */
static struct hfd_object *unreadable(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                     const struct hfd_kv *kv) {
        if (hfd_object_check(kv->value) != HF_E_INVALID)
                return NULL;
        hf_log(&cacher->host->log, HF_LOG_ERROR, "api", "%s is no object, it is not served",
               kv->key);
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
                        hfd_object_key_parse(listing->cacher->prefix, kv->key, &path);
                struct hfd_object *object, *old = NULL;
                if (!resource || !kv->value)
                        continue;
                object = hfd_object_new(resource, path, kv->mod_revision, kv->value);
                if (!object) {
                        struct hfd_object *mark = unreadable(listing->cacher, resource, kv);
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
        struct hfd_cacher *cacher = listing->cacher;
        int r = reply->error;

        if (r == 0)
                r = listing_take(listing, reply);
        if (r != 0) {
                listing_free(listing);
                fill_failed(cacher, r, &reply->status, true);
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
        struct hfd_cacher *cacher = listing->cacher;
        char prefix[sizeof cacher->prefix + 1];

        (void)snprintf(prefix, sizeof prefix, "%s/", cacher->prefix);
        int r = hfd_store_request_list(cacher, prefix, *listing->start ? listing->start : NULL,
                                       listing->revision, PAGE,
                                       hfd_cacher_now(cacher) + LIST_DEADLINE, on_page, listing);
        if (r != 0) {
                listing_free(listing);
                fill_failed(cacher, r, NULL, true);
        }
}

/* ---- the watch ---- */

/* The object of a put: the one an own write has made already, if it is this version. */
static struct hfd_object *object_of_put(struct hfd_cacher *cacher,
                                        const struct hfd_resource *resource, const char *path,
                                        const struct hfd_kv *kv) {
        struct hfd_object *object = NULL;

        pthread_mutex_lock(&cacher->mu);
        struct hfd_object_node *node =
                hfd_object_tree_find(&cacher->trees[hfd_resource_index(resource)], path);
        if (node && node->newer && node->newer->revision == kv->mod_revision)
                object = hfd_object_ref(node->newer);
        pthread_mutex_unlock(&cacher->mu);
        return object ? object : hfd_object_new(resource, path, kv->mod_revision, kv->value);
}

/* Takes object (NULL = deleted at revision). False: out of memory, the cache must be filled anew.
 */
static bool apply_locked(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                         const char *path, struct hfd_object *object, uint64_t revision,
                         struct hfd_watcher **dirty) {
        struct hfd_object_tree *tree = &cacher->trees[hfd_resource_index(resource)];
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
        hfd_watchers_change_locked(cacher, &change, dirty);
        hfd_event_history_add(&cacher->history, change);
        return true;
}

static bool is_new_epoch(struct hfd_cacher *cacher, const struct hfd_watch_event *event) {
        char key[HFD_KEY_MAX];

        return event->type == HFD_WATCH_PUT && hfd_store_identity_epoch_key(cacher, key) == 0 &&
               strcmp(key, event->kv.key) == 0 &&
               hfd_store_identity_epoch_changed(cacher, event->kv.value);
}

/* Whether a term record names a holder anew. */
static bool is_taking(struct hfd_cacher *cacher, const struct hfd_watch_event *event) {
        const struct hf__buf *value = event->kv.value;

        return event->type == HFD_WATCH_PUT && value && value->n && value->data[0] != '\n' &&
               hfd_key_is_of_terms(event->kv.key, cacher->prefix);
}

static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct hfd_cacher *cacher = ctx;
        struct hfd_watcher *dirty = NULL;
        struct hfd_consistent_read *passed;
        bool whole = true, replaced = false, taken = false;

        for (size_t i = 0; i < n && whole; i++) {
                const struct hfd_watch_event *event = &events[i];
                const struct hfd_resource *resource = NULL;
                struct hfd_object *object = NULL, *mark = NULL;
                const char *path = NULL;
                if (event->type != HFD_WATCH_PROGRESS)
                        resource = hfd_object_key_parse(cacher->prefix, event->kv.key, &path);
                if (!resource) {
                        replaced |= is_new_epoch(cacher, event);
                        taken |= is_taking(cacher, event);
                }
                if (resource && event->type == HFD_WATCH_PUT) {
                        object = object_of_put(cacher, resource, path, &event->kv);
                        if (!object) /* what was there before is no more */
                                whole = (mark = unreadable(cacher, resource, &event->kv));
                }
                pthread_mutex_lock(&cacher->mu);
                if (resource && whole)
                        whole = remember(&cacher->unreadable, event->kv.key, mark) &&
                                apply_locked(cacher, resource, path, object, event->kv.mod_revision,
                                             &dirty);
                /* With the last of a revision's events all of it is in the trees; a list must not
                 * hold what is newer than it says. */
                bool last = i + 1 == n || events[i + 1].revision != event->revision;
                if (whole && last && event->revision > cacher->revision)
                        cacher->revision = event->revision;
                pthread_mutex_unlock(&cacher->mu);
        }
        pthread_mutex_lock(&cacher->mu);
        if (!whole)
                cacher->reflector.relist = true;
        else if (taken)
                hfd_watchers_taken_locked(cacher, &dirty);
        uint64_t cancel = whole ? 0 : cacher->reflector.watch_id;
        cacher->reflector.backoff = BACKOFF_MIN;
        passed = hfd_consistent_reads_passed_locked(cacher);
        pthread_mutex_unlock(&cacher->mu);
        atomic_store(&cacher->requests.heard_at, hfd_cacher_now(cacher));
        hfd_consistent_reads_go(passed);
        hfd_watchers_deliver(dirty);
        if (cancel)
                cacher->store->ops->watch_cancel(cacher->store, cancel);
        if (replaced)
                hfd_store_identity_replaced(cacher, "the epoch key changed");
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_cacher *cacher = ctx;

        hf_log(&cacher->host->log, HF_LOG_DEBUG, "api", "the watch of the store ended: %s",
               status && *status->message ? status->message : hf_strerror(error));
        fill_failed(cacher, error, status, error == HF_E_GONE);
}

static const struct hfd_watch_handler handler = {on_events, on_watch_end};

static void begin_watch(struct hfd_cacher *cacher) {
        char begin[sizeof cacher->prefix + 1], end[sizeof cacher->prefix + 1];
        uint64_t id = 0, from;

        (void)snprintf(begin, sizeof begin, "%s.", cacher->prefix);
        (void)snprintf(end, sizeof end, "%s0", cacher->prefix);
        pthread_mutex_lock(&cacher->mu);
        cacher->reflector.watching = true;
        uint64_t mine = ++cacher->reflector.n_watches;
        from = cacher->revision + 1;
        pthread_mutex_unlock(&cacher->mu);
        int r = cacher->store->ops->watch(cacher->store, begin, end, from, &handler, cacher, &id);
        if (r != 0) {
                fill_failed(cacher, r, NULL, false);
                return;
        }
        /* It may have ended already; then the id names nothing, and cancelling it does nothing. */
        pthread_mutex_lock(&cacher->mu);
        if (cacher->reflector.watching && cacher->reflector.n_watches == mine)
                cacher->reflector.watch_id = id;
        bool unwanted = cacher->stopping ||
                        cacher->reflector.relist; /* who wanted it ended had no id to cancel yet */
        pthread_mutex_unlock(&cacher->mu);
        if (unwanted)
                cacher->store->ops->watch_cancel(cacher->store, id);
}

/* ---- the chain's ends ---- */

static void begin_list(struct hfd_cacher *cacher);

/* Before a watch goes on where another ended: is it still the history that one belonged to? */
static void on_epoch(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;

        if (reply->error) {
                fill_failed(cacher, reply->error, &reply->status, false);
                return;
        }
        if (hfd_store_identity_epoch_changed(cacher, reply->n_kvs ? reply->kvs[0].value : NULL))
                hfd_store_identity_replaced(cacher, "the epoch key changed");
        pthread_mutex_lock(&cacher->mu);
        bool relist = cacher->reflector.relist;
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
                r = hfd_store_request_get(cacher, key, hfd_cacher_now(cacher) + EPOCH_DEADLINE,
                                          on_epoch, cacher);
        if (r != 0)
                fill_failed(cacher, r, NULL, false);
}

void hfd_reflector_run(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool go = !cacher->stopping && cacher->reflector.state != HFD_REFLECTOR_RUNNING;
        if (go)
                cacher->reflector.state = HFD_REFLECTOR_RUNNING;
        if (!cacher->reflector.backoff)
                cacher->reflector.backoff = BACKOFF_MIN;
        pthread_mutex_unlock(&cacher->mu);
        if (!go)
                return;
        read_epoch(cacher);
}

static void begin_list(struct hfd_cacher *cacher) {
        struct listing *listing = calloc(1, sizeof *listing);
        if (!listing) {
                fill_failed(cacher, -ENOMEM, NULL, true);
                return;
        }
        listing->cacher = cacher;
        pthread_mutex_lock(&cacher->mu);
        listing->replacement_epoch = cacher->identity.replacement_epoch;
        pthread_mutex_unlock(&cacher->mu);
        listing_next(listing);
}

void hfd_reflector_stop(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        cacher->stopping = true;
        uint64_t id = cacher->reflector.watch_id;
        if (cacher->reflector.state == HFD_REFLECTOR_BACKOFF)
                cacher->reflector.state = HFD_REFLECTOR_IDLE;
        pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
        if (id)
                cacher->store->ops->watch_cancel(cacher->store, id);
        pthread_mutex_lock(&cacher->mu);
        while (cacher->reflector.state == HFD_REFLECTOR_RUNNING)
                pthread_cond_wait(&cacher->cond, &cacher->mu);
        hfd_event_history_clear(&cacher->history);
        pthread_mutex_unlock(&cacher->mu);
}

void hfd_reflector_relist_locked(struct hfd_cacher *cacher, uint64_t *ret_cancel) {
        cacher->reflector.relist = true;
        *ret_cancel = cacher->reflector.watch_id;
        if (cacher->reflector.state == HFD_REFLECTOR_BACKOFF)
                cacher->reflector.again_at = 0;
        pthread_cond_broadcast(&cacher->cond);
}
