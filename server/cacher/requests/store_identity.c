/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices that the store was replaced: a backup was restored, or another cluster uses the same
 * address. There are three signs of it: a reply has another cluster ID; a reply has a revision
 * below the highest that was known when its request was sent; the epoch key has another value. A
 * restore procedure changes this key, which is watched, and read before each new watch. No watch
 * begins before that read has succeeded and its result is recorded.
 *
 * A sign alone is not believed, because a member that lags behind, or a late event, may show an old
 * state: a linearizable read must confirm it. Every replacement has the same consequences:
 * on_replaced is called so that a leader stops leading, watches end with 410, and the cache is
 * filled again.
 *
 * A leader's write does not rely on this: its transaction compares the epoch, once that is known,
 * in addition to the fence (term_record.h). So even if the backup contains the leader's term, the
 * leader's first write after a restore that has changed the epoch fails and ends the term.
 *
 * Invariant: the revision in a reply is compared with the snapshot from the time when its request
 * was sent, never with the state when the reply arrives, because replies may arrive in any order. A
 * reply is not compared if its request was sent in an earlier generation.
 */
#include "server/cacher/requests/store_identity.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/metrics.h>

#include "base/thread.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"

#define CONFIRM_DEADLINE (5 * HF_NSEC_PER_SEC)
#define WHY_MAX          96 /* size of the reason for a replacement */

struct hfd_store_identity {
        /* immutable */
        void (*on_replaced)(void *ctx); /* called after a replacement; NULL = no callback */
        void *ctx;
        struct hf_metric *n_replaced;

        /* guarded by the cacher's lock */

        unsigned long generation; /* see hfd_store_identity_generation_locked */
        uint64_t known_revision;  /* the highest in replies since the last replacement; 0 = none */
        uint64_t known_cluster;   /* the cluster ID in those replies; 0 = not known */
        struct hf__buf *epoch;    /* owned; the epoch key's value as last recorded; NULL = never */
        bool epoch_exists;        /* the epoch key existed when epoch was read */
        /*
         * replacement_pending: a reply has confirmed a replacement, or another epoch was read.
         * replaced: hfd_store_identity_replaced has also handled it. Both are reset when the cache
         * has been filled from the new store.
         */
        bool replacement_pending;
        bool replaced;
        /* A read that checks the sign of a reply is running. The epoch is confirmed separately. */
        bool confirming;
};

struct hfd_store_identity *hfd_store_identity_new(const struct hf_host *host,
                                                  void (*on_replaced)(void *ctx), void *ctx) {
        struct hfd_store_identity *identity = calloc(1, sizeof *identity);

        if (!identity)
                return NULL;
        identity->on_replaced = on_replaced;
        identity->ctx = ctx;
        identity->n_replaced =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                               "holdfast_store_history_replaced_total",
                               "How often the store was found to have been replaced.", "");
        return identity;
}

struct hfd_store_identity *hfd_store_identity_free(struct hfd_store_identity *identity) {
        if (!identity)
                return NULL;
        hf__buf_unref(identity->epoch);
        free(identity);
        return NULL;
}

/* ---- replacements ---- */

void hfd_store_identity_replaced(struct hfd_cacher *cacher, const char *why) {
        struct hfd_store_identity *identity = cacher->identity;
        uint64_t cancel;

        pthread_mutex_lock(&cacher->mu);
        /* Until the cache is filled again, further signs belong to the same replacement. */
        bool handled = identity->replaced;
        identity->generation++;
        identity->replaced = identity->replacement_pending = true;
        identity->known_revision = 0;
        identity->known_cluster = 0;
        hfd_store_lag_reset_locked(cacher);
        hfd_cacher_relist_locked(cacher, &cancel);
        pthread_mutex_unlock(&cacher->mu);
        /* A sign of the same replacement that comes later has no watch to cancel: the first sign
         * cancels the watch that is open, and until the cache is filled again, the reflector itself
         * cancels each watch that it opens, because relist is set. */
        if (handled)
                return;
        hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
               "the store was replaced (%s): ending the term and all watches, filling the "
               "cache again",
               why);
        hf_metric_add(identity->n_replaced, 1);
        if (identity->on_replaced)
                identity->on_replaced(identity->ctx);
        hfd_cacher_cancel_watch(cacher, cancel);
}

bool hfd_store_identity_replacement_pending(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool pending = cacher->identity->replacement_pending;
        pthread_mutex_unlock(&cacher->mu);
        return pending;
}

bool hfd_store_identity_is_replaced_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return cacher->identity->replaced;
}

unsigned long hfd_store_identity_generation_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return cacher->identity->generation;
}

void hfd_store_identity_encryption_keys_replaced_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->identity->generation++;
}

void hfd_store_identity_filled_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->identity->replaced = cacher->identity->replacement_pending = false;
}

/* ---- comparing replies ---- */

struct hfd_store_identity_snapshot
hfd_store_identity_snapshot_locked(const struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        return (struct hfd_store_identity_snapshot){cacher->identity->generation,
                                                    cacher->identity->known_revision};
}

/*
 * Whether the reply has a lower revision than was known when its request was sent, or names another
 * cluster than is known now. If so, writes the reason to why. Otherwise records what the reply
 * shows.
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

bool hfd_store_identity_is_comparable_locked(const struct hfd_cacher *cacher,
                                             struct hfd_store_identity_snapshot sent) {
        hf__mutex_assert_held(&cacher->mu);
        return !cacher->identity->replaced && sent.generation == cacher->identity->generation;
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
        assert(cacher->identity->confirming);
        cacher->identity->confirming = false;
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
                         hfd_store_identity_is_comparable_locked(cacher, confirmation->sent) &&
                         contradicts_locked(cacher->identity, confirmation->sent, reply, why);
        pthread_mutex_unlock(&cacher->mu);
        if (confirmed)
                hfd_store_identity_replaced(cacher, why);
        end_confirmation(confirmation);
}

static void send_confirmation(struct confirmation *confirmation, const char *why) {
        struct hfd_cacher *cacher = confirmation->cacher;

        assert(why[0]);
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
        bool contradicts = hfd_store_identity_is_comparable_locked(cacher, sent) &&
                           contradicts_locked(cacher->identity, sent, reply, why);
        if (contradicts && !cacher->identity->confirming && !cacher->stopping)
                confirmation = malloc(sizeof *confirmation);
        if (confirmation) {
                cacher->identity->confirming = true;
                *confirmation =
                        (struct confirmation){.cacher = cacher,
                                              .sent = hfd_store_identity_snapshot_locked(cacher)};
        }
        pthread_mutex_unlock(&cacher->mu);
        if (confirmation)
                send_confirmation(confirmation, why);
}

/* ---- the epoch key ---- */

int hfd_store_identity_epoch_key(struct hfd_cacher *cacher, char key[HFD_KEY_MAX]) {
        return hfd_key_own(key, cacher->prefix, "epoch");
}

int hfd_store_identity_epoch_read(struct hfd_cacher *cacher, const struct hf__buf *value,
                                  bool *ret_changed) {
        struct hfd_store_identity *identity = cacher->identity;
        const char *text = value ? value->data : "";
        size_t n = value ? value->n : 0;
        int r = 0;

        pthread_mutex_lock(&cacher->mu);
        bool changed = identity->epoch &&
                       (identity->epoch_exists != (value != NULL) || identity->epoch->n != n ||
                        memcmp(identity->epoch->data, text, n) != 0);
        identity->replacement_pending |= changed;
        if (changed || !identity->epoch) {
                struct hf__buf *copy = hf__buf_copy(text, n);
                if (copy) {
                        hf__buf_unref(identity->epoch);
                        identity->epoch = copy;
                        identity->epoch_exists = value != NULL;
                } else {
                        r = -ENOMEM;
                }
        }
        pthread_mutex_unlock(&cacher->mu);
        *ret_changed = changed;
        return r;
}

static void on_epoch_confirmed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        bool changed = false;
        int r = reply->error;

        if (r == 0)
                r = hfd_store_identity_epoch_read(cacher, reply->n_kvs ? reply->kvs[0].value : NULL,
                                                  &changed);
        if (changed)
                hfd_store_identity_replaced(cacher, "the epoch key changed");
        /* End the watch: before the next one the reflector does the same read, and repeats it until
         * it succeeds. */
        else if (r != 0)
                hfd_cacher_reopen_watch(cacher);
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
        struct hf__buf *epoch =
                cacher->identity->epoch ? hf__buf_ref(cacher->identity->epoch) : NULL;
        *ret_exists = cacher->identity->epoch_exists;
        pthread_mutex_unlock(&cacher->mu);
        return epoch;
}
