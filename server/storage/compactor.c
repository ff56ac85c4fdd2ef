/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one attempt per interval to compact the store. An attempt is a transaction that writes the
 * compact key and, on the instance whose transaction succeeds, a compaction.
 *
 * Invariants: At most one attempt is running (`busy`), and until it ends only this attempt uses
 * `key_revision` and `previous_revision`. The owner and the running attempt hold one reference
 * each. hfd_compactor_free sets `closed` and drops the owner's reference; an attempt that is still
 * running then starts no further operation.
 *
 * If the transaction fails or its outcome is unknown, `key_revision` does not change. If another
 * instance, or the lost transaction itself, has written the key, the next compare fails, and its
 * reply contains the key's current revision. A compaction that fails does no harm, because a later
 * compaction at a higher revision includes it.
 */
#include "server/storage/compactor.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/storage/keys.h"

#define OPERATION_TIMEOUT (10 * HF_NSEC_PER_SEC) /* for each operation of an attempt */

struct hfd_compactor {
        /* Immutable. */
        const struct hf_host *host; /* borrowed */
        struct hfd_store *store;    /* borrowed */
        char key[HFD_KEY_MAX];      /* the compact key */
        /* Owner only. */
        hf_nsec due; /* boot time of the next attempt; 0 = hfd_compactor_tick was never called */
        /* Used by the callbacks of a running attempt; by the owner while none is running. */
        uint64_t key_revision;      /* the compact key's mod revision; 0 = no such key */
        uint64_t previous_revision; /* the store's, in the last reply; 0 = do not compact */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        unsigned refs;
        bool busy, closed;
};

static void compactor_unref(struct hfd_compactor *compactor) {
        unsigned left;

        pthread_mutex_lock(&compactor->mu);
        assert(compactor->refs > 0);
        left = --compactor->refs;
        pthread_mutex_unlock(&compactor->mu);
        if (left == 0) {
                pthread_mutex_destroy(&compactor->mu);
                free(compactor);
        }
}

static void end_attempt(struct hfd_compactor *compactor) {
        pthread_mutex_lock(&compactor->mu);
        assert(compactor->busy);
        compactor->busy = false;
        pthread_mutex_unlock(&compactor->mu);
        compactor_unref(compactor);
}

static bool is_closed(struct hfd_compactor *compactor) {
        bool closed;

        pthread_mutex_lock(&compactor->mu);
        closed = compactor->closed;
        pthread_mutex_unlock(&compactor->mu);
        return closed;
}

static hf_nsec operation_deadline(const struct hfd_compactor *compactor) {
        return hf_now(hf_host_clock(compactor->host)) + OPERATION_TIMEOUT;
}

static void on_compacted(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;

        /* HF_E_GONE: the store was already compacted at this revision or a later one. */
        if (reply->error != 0 && reply->error != HF_E_GONE && reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor",
                       "cannot compact the store, will try again: %s", reply->status.message);
        end_attempt(compactor);
}

/* Compacts at the revision of the previous attempt, not at the current one, so that clients have at
 * least one interval to continue a watch or a list. */
static void on_key_written(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;
        uint64_t target = compactor->previous_revision;

        if (reply->error == 0)
                compactor->key_revision = reply->revision;
        else if (reply->error == HF_E_CONFLICT)
                compactor->key_revision = reply->n_kvs > 0 ? reply->kvs[0].mod_revision : 0;
        else if (reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor",
                       "cannot write the key %s, will try again: %s", compactor->key,
                       reply->status.message);
        if (reply->error == 0 || reply->error == HF_E_CONFLICT)
                compactor->previous_revision = reply->revision;
        if (reply->error != 0 || target == 0 || is_closed(compactor) ||
            compactor->store->ops->compact(compactor->store, target, operation_deadline(compactor),
                                           on_compacted, compactor) != 0)
                end_attempt(compactor);
}

/* Sends the transaction. 0, or an error: then on_key_written is not called. */
static int start_attempt(struct hfd_compactor *compactor) {
        const char *keys[] = {compactor->key};
        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                      .key = compactor->key,
                                      .revision = compactor->key_revision};
        struct hfd_op put = {.kind = HFD_PUT, .key = compactor->key};
        struct hfd_txn txn = {.compares = &compare,
                              .n_compares = 1,
                              .ops = &put,
                              .n_ops = 1,
                              .get_on_failure = keys,
                              .n_get_on_failure = 1};
        char text[32];
        int n = snprintf(text, sizeof text, "%llu",
                         (unsigned long long)compactor->previous_revision);
        int r;

        /* Only the key's mod revision matters; the value is for a human who reads the key. */
        put.value = hf__buf_copy(text, (size_t)n);
        if (!put.value)
                return -ENOMEM;
        r = compactor->store->ops->txn(compactor->store, &txn, operation_deadline(compactor),
                                       on_key_written, compactor);
        hf__buf_unref(put.value);
        return r;
}

void hfd_compactor_tick(struct hfd_compactor *compactor, hf_nsec now) {
        bool start;

        if (compactor->due == 0)
                compactor->due = now + HFD_COMPACT_INTERVAL;
        if (now < compactor->due)
                return;
        compactor->due = now + HFD_COMPACT_INTERVAL;
        pthread_mutex_lock(&compactor->mu);
        start = !compactor->busy;
        if (start) {
                compactor->busy = true;
                compactor->refs++;
        }
        pthread_mutex_unlock(&compactor->mu);
        if (start && start_attempt(compactor) != 0)
                end_attempt(compactor);
}

int hfd_compactor_new(const struct hf_host *host, struct hfd_store *store, const char *prefix,
                      struct hfd_compactor **ret_compactor) {
        struct hfd_compactor *compactor = calloc(1, sizeof *compactor);
        int n, r;

        if (!compactor)
                return -ENOMEM;
        compactor->host = host;
        compactor->store = store;
        compactor->refs = 1;
        n = snprintf(compactor->key, sizeof compactor->key, "%s.holdfast/compact", prefix);
        r = HF_E_TOO_LARGE;
        if (n >= 0 && (size_t)n < sizeof compactor->key)
                r = hf__mutex_init(&compactor->mu);
        if (r != 0) {
                free(compactor);
                return r;
        }
        *ret_compactor = compactor;
        return 0;
}

struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor) {
        if (!compactor)
                return NULL;
        pthread_mutex_lock(&compactor->mu);
        assert(!compactor->closed);
        compactor->closed = true;
        pthread_mutex_unlock(&compactor->mu);
        compactor_unref(compactor);
        return NULL;
}
