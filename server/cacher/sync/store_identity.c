/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two checks of the store and the cache: was the store replaced, and has the cache missed an event?
 *
 * Replacement: a backup was restored, or another cluster uses the same address. There are three
 * signs of it: a reply has another cluster ID; a reply has a revision below the highest that was
 * known when its request was sent; the epoch key has another value. A restore procedure changes
 * this key. It is watched, and read before each new watch. A sign alone is not believed, because a
 * member that lags behind, or a late event, may show an old state: a linearizable read must confirm
 * it. A leader's write does not rely on that: its transaction compares the epoch in addition to the
 * fence. So even if the backup contains the leader's term, the leader's first write after a restore
 * that has changed the epoch fails and ends the term. Every replacement has the same consequences:
 * on_replaced is called so that a leader stops leading, watches end with 410, and the cache is
 * filled again.
 *
 * Audit: etcd 3.4 is known to lose watch events around a compaction. So every few minutes all keys
 * are listed at the cache's own revision, without values, and compared with a snapshot of the cache
 * at that revision. If a version differs, it is logged and counted, and the cache is filled again.
 *
 * Invariant: the revision in a reply is compared with the snapshot from the time when its request
 * was sent, never with the state when the reply arrives, because replies may arrive in any order. A
 * reply is not compared if its request was sent before the newest replacement.
 */
#include "server/cacher/sync/store_identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"
#include "server/resources/object_key.h"

#define AUDIT_DEADLINE  (30 * HF_NSEC_PER_SEC)
#define AUDIT_PAGE_SIZE 20000 /* keys; for each page etcd counts the rest of the range */

#define CONFIRM_DEADLINE (5 * HF_NSEC_PER_SEC)
#define WHY_MAX          96 /* size of the reason for a replacement */

void hfd_store_identity_replaced(struct hfd_cacher *cacher, const char *why) {
        uint64_t cancel;

        pthread_mutex_lock(&cacher->mu);
        /* Until the cache is filled again, further signs belong to the same replacement. */
        bool handled = cacher->identity.replaced;
        cacher->identity.replacement_epoch++;
        cacher->identity.replaced = cacher->identity.replacement_pending = true;
        cacher->identity.known_revision = 0;
        cacher->identity.known_cluster = 0;
        cacher->lag.watch = (struct hfd_watch_lag){0};
        hfd_reflector_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        if (handled)
                return;
        hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
               "the store was replaced (%s): ending the term and all watches, filling the cache "
               "again",
               why);
        hf_metric_add(cacher->identity.n_replaced, 1);
        if (cacher->identity.on_replaced)
                cacher->identity.on_replaced(cacher->identity.ctx);
        if (cancel)
                cacher->store->ops->watch_cancel(cacher->store, cancel);
}

struct hfd_store_identity_snapshot
hfd_store_identity_snapshot_locked(const struct hfd_store_identity *identity) {
        return (struct hfd_store_identity_snapshot){identity->replacement_epoch,
                                                    identity->known_revision};
}

/*
 * Whether the reply contradicts what was known when its request was sent. If so, writes the reason
 * to why. Otherwise records what the reply shows.
 */
static bool contradicts_locked(struct hfd_store_identity *identity,
                               struct hfd_store_identity_snapshot sent,
                               const struct hfd_store_reply *reply, char why[WHY_MAX]) {
        if (reply->cluster_id && identity->known_cluster &&
            reply->cluster_id != identity->known_cluster) {
                (void)snprintf(why, WHY_MAX, "another cluster responds: %" PRIx64,
                               reply->cluster_id);
                return true;
        }
        if (reply->revision < sent.revision) {
                (void)snprintf(why, WHY_MAX, "revision %" PRIu64 " after %" PRIu64, reply->revision,
                               sent.revision);
                return true;
        }
        if (reply->revision > identity->known_revision)
                identity->known_revision = reply->revision;
        if (reply->cluster_id)
                identity->known_cluster = reply->cluster_id;
        return false;
}

static bool is_comparable_locked(const struct hfd_store_identity *identity,
                                 struct hfd_store_identity_snapshot sent) {
        return !identity->replaced && sent.replacement_epoch == identity->replacement_epoch;
}

/* ---- confirming a sign ---- */

/*
 * A read of the store's revision, whose reply confirms the sign or not. One is sent at a time. Its
 * reply is compared with what was known when the read was sent.
 */
struct confirmation {
        struct hfd_cacher *cacher; /* borrowed */
        struct hfd_store_identity_snapshot sent;
};

static void end_confirmation(struct confirmation *confirmation) {
        struct hfd_cacher *cacher = confirmation->cacher;

        pthread_mutex_lock(&cacher->mu);
        cacher->identity.confirming = false;
        pthread_mutex_unlock(&cacher->mu);
        free(confirmation);
}

/* If the read failed, the next reply that contradicts starts another one. */
static void on_confirmation(void *ctx, const struct hfd_store_reply *reply) {
        struct confirmation *confirmation = ctx;
        struct hfd_cacher *cacher = confirmation->cacher;
        char why[WHY_MAX];

        pthread_mutex_lock(&cacher->mu);
        bool confirmed = !reply->error &&
                         is_comparable_locked(&cacher->identity, confirmation->sent) &&
                         contradicts_locked(&cacher->identity, confirmation->sent, reply, why);
        pthread_mutex_unlock(&cacher->mu);
        if (confirmed)
                hfd_store_identity_replaced(cacher, why);
        end_confirmation(confirmation);
}

static void send_confirmation(struct confirmation *confirmation, const char *why) {
        struct hfd_cacher *cacher = confirmation->cacher;

        hf_log(&cacher->host->log, HF_LOG_NOTICE, "cacher",
               "the store may have been replaced (%s): reading its revision again", why);
        if (hfd_store_request_revision(cacher, hfd_cacher_now(cacher) + CONFIRM_DEADLINE,
                                       on_confirmation, confirmation) != 0)
                end_confirmation(confirmation);
}

void hfd_store_identity_check(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                              const struct hfd_store_reply *reply) {
        struct confirmation *confirmation = NULL;
        char why[WHY_MAX];

        if (!reply->revision || (reply->error && reply->error != HF_E_CONFLICT))
                return;
        pthread_mutex_lock(&cacher->mu);
        bool contradicts = is_comparable_locked(&cacher->identity, sent) &&
                           contradicts_locked(&cacher->identity, sent, reply, why);
        if (contradicts && !cacher->identity.confirming && !cacher->stopping)
                confirmation = malloc(sizeof *confirmation);
        if (confirmation) {
                cacher->identity.confirming = true;
                *confirmation = (struct confirmation){.cacher = cacher,
                                                      .sent = hfd_store_identity_snapshot_locked(
                                                              &cacher->identity)};
        }
        pthread_mutex_unlock(&cacher->mu);
        if (confirmation)
                send_confirmation(confirmation, why);
}

/* ---- the epoch key ---- */

int hfd_store_identity_epoch_key(struct hfd_cacher *cacher, char key[HFD_KEY_MAX]) {
        int n = snprintf(key, HFD_KEY_MAX, "%s.holdfast/epoch", cacher->prefix);
        return n < 0 || n >= HFD_KEY_MAX ? HF_E_TOO_LARGE : 0;
}

bool hfd_store_identity_epoch_changed(struct hfd_cacher *cacher, const struct hf__buf *value) {
        const char *text = value ? value->data : "";
        size_t n = value ? value->n : 0;

        pthread_mutex_lock(&cacher->mu);
        bool changed =
                cacher->identity.epoch && (cacher->identity.epoch_exists != (value != NULL) ||
                                           cacher->identity.epoch->n != n ||
                                           memcmp(cacher->identity.epoch->data, text, n) != 0);
        cacher->identity.replacement_pending |= changed;
        if (changed || !cacher->identity.epoch) {
                struct hf__buf *copy = hf__buf_copy(text, n);
                if (copy) { /* if memory runs out, the next read detects the change again */
                        hf__buf_unref(cacher->identity.epoch);
                        cacher->identity.epoch = copy;
                        cacher->identity.epoch_exists = value != NULL;
                }
        }
        pthread_mutex_unlock(&cacher->mu);
        return changed;
}

static void on_epoch_confirmed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        uint64_t cancel = 0;

        if (!reply->error) {
                if (hfd_store_identity_epoch_changed(cacher,
                                                     reply->n_kvs ? reply->kvs[0].value : NULL))
                        hfd_store_identity_replaced(cacher, "the epoch key changed");
                return;
        }
        /* A new watch begins with the same read, and is retried until it succeeds. */
        pthread_mutex_lock(&cacher->mu);
        cancel = cacher->reflector.watch_id;
        pthread_mutex_unlock(&cacher->mu);
        if (cancel)
                cacher->store->ops->watch_cancel(cacher->store, cancel);
}

void hfd_store_identity_epoch_written(struct hfd_cacher *cacher) {
        char key[HFD_KEY_MAX];
        int r = hfd_store_identity_epoch_key(cacher, key);

        if (r == 0)
                r = hfd_store_request_get(cacher, key, false,
                                          hfd_cacher_now(cacher) + CONFIRM_DEADLINE,
                                          on_epoch_confirmed, cacher);
        if (r != 0) {
                const struct hfd_store_reply failed = {.error = r};
                on_epoch_confirmed(cacher, &failed);
        }
}

struct hf__buf *hfd_store_identity_epoch_known(struct hfd_cacher *cacher, bool *ret_exists) {
        pthread_mutex_lock(&cacher->mu);
        struct hf__buf *epoch = cacher->identity.epoch ? hf__buf_ref(cacher->identity.epoch) : NULL;
        *ret_exists = cacher->identity.epoch_exists;
        pthread_mutex_unlock(&cacher->mu);
        return epoch;
}

bool hfd_store_identity_replacement_pending(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool pending = cacher->identity.replacement_pending;
        pthread_mutex_unlock(&cacher->mu);
        return pending;
}

/* ---- the audit ---- */

/* A running audit. The thread that runs the callback of its request owns it. */
struct audit {
        struct hfd_cacher *cacher;       /* borrowed */
        uint64_t revision;               /* the cache's, when the audit began */
        unsigned long replacement_epoch; /* its value when the audit began */
        /* Owned snapshots of the cache at that revision. */
        struct hfd_object_tree trees[HFD_RESOURCES_MAX], unreadable;
        char start[HFD_KEY_MAX]; /* the next page starts at this key; "" = the first page */
        size_t n_keys;           /* keys of known resources on the pages so far */
        char difference[HFD_KEY_MAX + 64]; /* "" = none so far */
};

static void request_audit_page(struct audit *audit);

static void free_audit(struct audit *audit) {
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                hfd_object_tree_clear(&audit->trees[i]);
        hfd_object_tree_clear(&audit->unreadable);
        free(audit);
}

/* Comparing the counts finds objects that the cache contains and the store does not. */
static void compare_counts(struct audit *audit) {
        size_t n_cached = hfd_object_tree_size(&audit->unreadable);

        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                n_cached += hfd_object_tree_size(&audit->trees[i]);
        if (n_cached != audit->n_keys)
                (void)snprintf(audit->difference, sizeof audit->difference,
                               "%zu objects cached, %zu stored", n_cached, audit->n_keys);
}

/* complete: no page failed, and the store was not replaced, so the counts may be compared. */
static void end_audit(struct audit *audit, bool complete) {
        struct hfd_cacher *cacher = audit->cacher;
        uint64_t cancel = 0;

        if (complete && !*audit->difference)
                compare_counts(audit);
        pthread_mutex_lock(&cacher->mu);
        cacher->identity.audit_running = false;
        cacher->identity.audit_at = hfd_cacher_now(cacher) + HFD_STORE_IDENTITY_AUDIT_INTERVAL;
        if (*audit->difference)
                hfd_reflector_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        if (*audit->difference) {
                hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
                       "the cache differs from the store at revision %" PRIu64
                       " (%s); filling it again",
                       audit->revision, audit->difference);
                hf_metric_add(cacher->identity.n_differences, 1);
        }
        if (cancel)
                cacher->store->ops->watch_cancel(cacher->store, cancel);
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
                const struct hfd_resource *resource =
                        hfd_object_key_parse(audit->cacher->prefix, kv->key, &path);
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
        bool same_history = audit->replacement_epoch == cacher->identity.replacement_epoch;
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
        cacher->identity.audit_running = true;
        audit->cacher = cacher;
        audit->revision = cacher->revision;
        audit->replacement_epoch = cacher->identity.replacement_epoch;
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                audit->trees[i] = hfd_object_tree_snapshot(&cacher->trees[i]);
        audit->unreadable = hfd_object_tree_snapshot(&cacher->unreadable);
}

void hfd_store_identity_audit(struct hfd_cacher *cacher) {
        struct audit *audit = calloc(1, sizeof *audit);

        pthread_mutex_lock(&cacher->mu);
        bool start = audit && cacher->synced && !cacher->stopping &&
                     !cacher->identity.audit_running && !cacher->reflector.relist &&
                     cacher->reflector.watching;
        cacher->identity.audit_at = hfd_cacher_now(cacher) + HFD_STORE_IDENTITY_AUDIT_INTERVAL;
        if (start)
                begin_audit_locked(cacher, audit);
        pthread_mutex_unlock(&cacher->mu);
        if (start)
                request_audit_page(audit);
        else
                free(audit);
}
