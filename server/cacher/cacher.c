/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and frees the cacher and its parts, waits until it is filled, and reads from its trees.
 *
 * Invariant: the parts are created from the lowest to the highest, before any thread uses one, and
 * freed in the opposite order, after all threads have stopped. A part uses only lower ones, except
 * that the parts of requests/ use each other. The lag (store_lag.h) is in use earlier and later
 * than the others: threads that collect metrics read it from its creation until it is freed. They
 * use nothing else of the cacher but its lock and its clock.
 */
#include "server/cacher/cacher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/cache_audit.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/sync/listing.h"
#include "server/cacher/sync/reflector.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/timer.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/rows/resource_table.h"

/* ---- create, start, free ---- */

/* A byte for each row of resource_table.h, so that an event costs one look-up. */
static void init_observers(struct hfd_cacher *cacher, const struct hfd_cacher_config *config) {
        for (size_t i = 0; i < hfd_resources_count() && config->observers; i++)
                cacher->observers[i] = config->observers(hfd_resource_at(i));
}

/* 0 or -ENOMEM; free_parts accepts what was made before a failure. */
static int make_parts(struct hfd_cacher *cacher, const struct hfd_cacher_config *config) {
        const struct hf_host *host = cacher->host;

        cacher->requests = hfd_store_requests_new(host);
        cacher->identity = hfd_store_identity_new(host, config->on_history_replaced, config->ctx);
        cacher->lag = hfd_store_lag_new(cacher);
        cacher->watchers = hfd_watchers_new();
        cacher->forms = hfd_slot_forms_new();
        cacher->reads = hfd_consistent_reads_new();
        cacher->listings = hfd_listings_new();
        cacher->reflector = hfd_reflector_new();
        cacher->audit = hfd_cache_audit_new(host);
        cacher->timer = hfd_cacher_timer_new();
        bool good = cacher->requests && cacher->identity && cacher->lag && cacher->watchers &&
                    cacher->forms && cacher->reads && cacher->listings && cacher->reflector &&
                    cacher->audit && cacher->timer;
        return good ? 0 : -ENOMEM;
}

static void free_parts(struct hfd_cacher *cacher) {
        cacher->timer = hfd_cacher_timer_free(cacher->timer);
        cacher->audit = hfd_cache_audit_free(cacher->audit);
        cacher->reflector = hfd_reflector_free(cacher->reflector);
        cacher->listings = hfd_listings_free(cacher->listings);
        cacher->reads = hfd_consistent_reads_free(cacher->reads);
        cacher->forms = hfd_slot_forms_free(cacher->forms);
        cacher->watchers = hfd_watchers_free(cacher->watchers);
        cacher->lag = hfd_store_lag_free(cacher->lag);
        cacher->identity = hfd_store_identity_free(cacher->identity);
        cacher->requests = hfd_store_requests_free(cacher->requests);
}

static void destroy_cacher(struct hfd_cacher *cacher) {
        free_parts(cacher);
        pthread_cond_destroy(&cacher->cond);
        pthread_mutex_destroy(&cacher->mu);
        free(cacher);
}

HF__CLEANUP_DEFINE(cacher_cleanup, struct hfd_cacher *, destroy_cacher)

int hfd_cacher_new(const struct hf_host *host, const struct hfd_cacher_config *config,
                   struct hfd_cacher **ret_cacher) {
        if (!config->prefix || strlen(config->prefix) >= HFD_CACHER_PREFIX_MAX || !config->store)
                return -EINVAL;
        HF__CLEANUP(hf__free_cleanup) struct hfd_cacher *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&memory->mu, &memory->cond);
        if (r != 0)
                return r;
        HF__CLEANUP(cacher_cleanup) struct hfd_cacher *cacher = HF__TAKE(memory);
        assert(host && config->store->ops);
        cacher->host = host;
        cacher->store = config->store;
        cacher->table = config->table;
        (void)snprintf(cacher->prefix, sizeof cacher->prefix, "%s", config->prefix);
        (void)snprintf(cacher->holder, sizeof cacher->holder, "%s",
                       config->holder ? config->holder : "");
        cacher->on_copy_begun = config->on_copy_begun;
        cacher->ctx = config->ctx;
        cacher->on_observed = config->on_observed;
        init_observers(cacher, config);
        cacher->watch.relist = true;
        hfd_event_histories_init(&cacher->histories);
        r = make_parts(cacher, config);
        if (r != 0)
                return r;
        *ret_cacher = HF__TAKE(cacher);
        return 0;
}

int hfd_cacher_start(struct hfd_cacher *cacher) {
        int r = hfd_cacher_timer_start(cacher);

        if (r == 0)
                hfd_reflector_run(cacher);
        return r;
}

void hfd_cacher_end_watches(struct hfd_cacher *cacher) {
        struct hfd_watcher *dirty = NULL;

        pthread_mutex_lock(&cacher->mu);
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
        hfd_cacher_timer_join(cacher);
        pthread_mutex_lock(&cacher->mu);
        struct hfd_consistent_read *remaining =
                hfd_consistent_reads_remove_all_locked(cacher, HF_E_CANCELED);
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_call_ready(remaining);
        /* A thread may have put off a probe (send_delayed_probe) and send it even now. The probe is
         * a request, so wait for these threads before the requests. */
        hfd_consistent_reads_await_end(cacher);
        hfd_store_requests_await_end(cacher);
        hfd_event_histories_done(&cacher->histories);
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++) {
                hfd_object_tree_clear(&cacher->trees[i]);
                hfd_object_tree_clear(&cacher->newer[i]);
        }
        hfd_object_tree_clear(&cacher->unreadable);
        destroy_cacher(cacher);
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

/* Returns the reason why the cache is not filled, as hfd_cacher_wait_synced does. */
static int explain_unfilled_locked(struct hfd_cacher *cacher, struct hf_status *reterr_status) {
        const struct hf_status *status = hfd_reflector_status_locked(cacher);
        hf_nsec at;
        size_t n = hfd_listings_progress_locked(cacher, &at);

        hf__mutex_assert_held(&cacher->mu);
        if (status->error == -EBADMSG)
                return hf_fail(reterr_status, -EBADMSG, "%s", status->message);
        if (n > 0)
                return hf_fail(reterr_status, HF_E_CANCELED, "the cache has %zu objects so far", n);
        return hf_fail(reterr_status, HF_E_CANCELED, "the store did not respond: %s",
                       *status->message ? status->message : "no reply yet");
}

int hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                           struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(cacher->host);
        struct hf_cancel_waker waker = {0};
        int r = 0;

        hf_cancel_add_waker(token, &waker, wake_threads, cacher);
        pthread_mutex_lock(&cacher->mu);
        while (!cacher->synced && !hf_cancel_fired(token))
                (void)clock->wait(clock->ctx, &cacher->cond, &cacher->mu,
                                  hf_cancel_deadline(token));
        if (!cacher->synced)
                r = explain_unfilled_locked(cacher, reterr_status);
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
        /* The result of a listing that is running already is discarded. */
        hfd_store_identity_encryption_keys_replaced_locked(cacher);
        hfd_cacher_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        hfd_cacher_cancel_watch(cacher, cancel);
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
        hf_nsec at;

        pthread_mutex_lock(&cacher->mu);
        (void)hfd_listings_progress_locked(cacher, &at);
        pthread_mutex_unlock(&cacher->mu);
        return at;
}

hf_nsec hfd_cacher_last_store_contact(struct hfd_cacher *cacher) {
        return hfd_store_requests_last_contact(cacher);
}

hf_nsec hfd_cacher_store_full(struct hfd_cacher *cacher) { return hfd_store_requests_full(cacher); }

uint64_t hfd_cacher_lag(struct hfd_cacher *cacher, hf_nsec *ret_time) {
        return hfd_store_lag_get(cacher, ret_time);
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
        assert(object->resource);
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
                /* If memory runs out, the next write is based on the previous version. So it has a
                 * conflict and makes another attempt. */
                (void)hfd_object_tree_put(&cacher->newer[index], hfd_object_ref(object), &old);
        pthread_mutex_unlock(&cacher->mu);
        hfd_object_unref(old);
}
