/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether the cache has missed an event. Versions of etcd 3.4 and 3.5 are known to lose
 * watch events around a compaction (etcd issue 18089). So every few minutes all keys are listed at
 * the cache's own revision, without values, and compared with a snapshot of the cache at that
 * revision. If they differ, the first difference is logged and counted, and the cache is filled
 * again.
 *
 * Invariant: the list and the snapshot are of one revision of one history. So an event that is
 * still on its way is no difference, and an audit that spans a replacement of the store ends
 * without a result.
 */
#include "server/cacher/sync/cache_audit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <holdfast/metrics.h>

#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"

#define AUDIT_DEADLINE (30 * HF_NSEC_PER_SEC)
/* Keys. For each page etcd counts the rest of the range, so the cost grows with the number of
 * pages: small ones would make it quadratic. */
#define AUDIT_PAGE_SIZE 20000

/* A running audit. The thread that runs the callback of its request owns it. */
struct audit {
        struct hfd_cacher *cacher; /* borrowed */
        uint64_t revision;         /* the cache's, when the audit began */
        unsigned long generation;  /* of the store (store_identity.h), when the audit began */
        /* Owned snapshots of the cache at that revision. */
        struct hfd_object_tree trees[HFD_SLOTS_MAX], unreadable;
        char start[HFD_KEY_MAX]; /* the next page starts at this key; "" = the first page */
        size_t n_keys;           /* keys of known resources on the pages so far */
        char difference[HFD_KEY_MAX + 64]; /* "" = none so far */
};

static void request_audit_page(struct audit *audit);

struct hfd_cache_audit *hfd_cache_audit_new(const struct hf_host *host) {
        struct hfd_cache_audit *audit = calloc(1, sizeof *audit);

        if (!audit)
                return NULL;
        audit->n_differences =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                               "holdfast_watch_cache_differences_total",
                               "How often the watch cache was found to differ from the store.", "");
        audit->due = hf_now(hf_host_clock(host)) + HFD_CACHE_AUDIT_INTERVAL;
        return audit;
}

struct hfd_cache_audit *hfd_cache_audit_free(struct hfd_cache_audit *audit) {
        assert(!audit || !audit->running);
        free(audit);
        return NULL;
}

hf_nsec hfd_cache_audit_due_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return cacher->audit->due;
}

static void free_audit(struct audit *audit) {
        assert(audit->cacher);
        for (size_t i = 0; i < hfd_cacher_slots(audit->cacher); i++)
                hfd_object_tree_clear(&audit->trees[i]);
        hfd_object_tree_clear(&audit->unreadable);
        free(audit);
}

/* Comparing the counts finds objects that the cache contains and the store does not. */
static void compare_counts(struct audit *audit) {
        size_t n_cached = hfd_object_tree_size(&audit->unreadable);

        for (size_t i = 0; i < hfd_cacher_slots(audit->cacher); i++)
                n_cached += hfd_object_tree_size(&audit->trees[i]);
        if (n_cached != audit->n_keys)
                (void)snprintf(audit->difference, sizeof audit->difference,
                               "%zu objects cached, %zu stored", n_cached, audit->n_keys);
}

/* complete: no page failed, and the generation is the same, so the counts may be compared. */
static void end_audit(struct audit *audit, bool complete) {
        struct hfd_cacher *cacher = audit->cacher;
        uint64_t cancel = 0;

        if (complete && !*audit->difference)
                compare_counts(audit);
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->audit->running);
        cacher->audit->running = false;
        cacher->audit->due = hfd_cacher_now(cacher) + HFD_CACHE_AUDIT_INTERVAL;
        if (*audit->difference)
                hfd_cacher_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        if (*audit->difference) {
                hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
                       "the cache differs from the store at revision %" PRIu64
                       " (%s); filling it again",
                       audit->revision, audit->difference);
                hf_metric_add(cacher->audit->n_differences, 1);
        }
        hfd_cacher_cancel_watch(cacher, cancel);
        free_audit(audit);
}

/* Whether the cache had this version of the key. */
static bool is_cached(const struct audit *audit, const struct hfd_resource *resource,
                      const struct hfd_kv *kv, const char *path) {
        const struct hfd_object *object =
                hfd_object_tree_find(&audit->trees[hfd_resource_index(resource)], path);

        if (!object)
                object = hfd_object_tree_find(&audit->unreadable, kv->key);
        return object && object->revision == kv->mod_revision;
}

/* Compares the keys of a page until the first difference. */
static void compare_page(struct audit *audit, const struct hfd_store_reply *reply) {
        const char *path;

        for (size_t i = 0; i < reply->n_kvs && !*audit->difference; i++) {
                const struct hfd_kv *kv = &reply->kvs[i];
                struct hfd_cacher *cacher = audit->cacher;
                const struct hfd_resource *resource =
                        hfd_object_key_parse(cacher->prefix, cacher->table, kv->key, &path);
                /* Either the key is of no known resource, or of a custom kind that has no slot, its
                 * place in `trees`: all are in use, or memory ran out. Nothing of such a kind is
                 * cached, so to skip the key does not make the counts differ. When memory ran out,
                 * the next audit compares the key. */
                if (!resource)
                        continue;
                audit->n_keys++;
                if (!is_cached(audit, resource, kv, path))
                        (void)snprintf(audit->difference, sizeof audit->difference,
                                       "%s is stored at revision %" PRIu64, kv->key,
                                       kv->mod_revision);
        }
}

static void on_audit_page(void *ctx, const struct hfd_store_reply *reply) {
        struct audit *audit = ctx;
        struct hfd_cacher *cacher = audit->cacher;

        if (reply->error) { /* compacted, or etcd is unavailable: the next audit tries again */
                end_audit(audit, false);
                return;
        }
        pthread_mutex_lock(&cacher->mu);
        bool same_history = audit->generation == hfd_store_identity_generation_locked(cacher);
        pthread_mutex_unlock(&cacher->mu);
        if (same_history)
                compare_page(audit, reply);
        if (!reply->more || !reply->n_kvs || *audit->difference || !same_history) {
                end_audit(audit, same_history);
                return;
        }
        hfd_key_after(audit->start, reply->kvs[reply->n_kvs - 1].key);
        request_audit_page(audit);
}

static void request_audit_page(struct audit *audit) {
        struct hfd_cacher *cacher = audit->cacher;
        char prefix[sizeof cacher->prefix + 1];

        (void)snprintf(prefix, sizeof prefix, "%s/", cacher->prefix);
        if (hfd_store_request_keys(cacher, prefix, *audit->start ? audit->start : NULL,
                                   audit->revision, AUDIT_PAGE_SIZE,
                                   hfd_cacher_now(cacher) + AUDIT_DEADLINE, on_audit_page, audit))
                end_audit(audit, false);
}

static void begin_audit_locked(struct hfd_cacher *cacher, struct audit *audit) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->audit->running = true;
        audit->cacher = cacher;
        audit->revision = cacher->revision;
        audit->generation = hfd_store_identity_generation_locked(cacher);
        for (size_t i = 0; i < hfd_cacher_slots(cacher); i++)
                audit->trees[i] = hfd_object_tree_snapshot(&cacher->trees[i]);
        audit->unreadable = hfd_object_tree_snapshot(&cacher->unreadable);
}

void hfd_cache_audit_start(struct hfd_cacher *cacher) {
        struct audit *audit = calloc(1, sizeof *audit);

        pthread_mutex_lock(&cacher->mu);
        bool start = audit && cacher->synced && !cacher->stopping && !cacher->audit->running &&
                     !cacher->watch.relist && cacher->watch.is_open;
        cacher->audit->due = hfd_cacher_now(cacher) + HFD_CACHE_AUDIT_INTERVAL;
        if (start)
                begin_audit_locked(cacher, audit);
        pthread_mutex_unlock(&cacher->mu);
        if (start)
                request_audit_page(audit);
        else
                free(audit);
}
