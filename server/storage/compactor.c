/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of the compactor. A round is a chain of at most two operations: the agreement (a
 * transaction) and then, for its winner, the compaction.
 *
 * Two invariants. At most one round is under way (`busy`), and while it is, it alone touches
 * `agreed` and `seen`. And the owner and the round hold one reference each: freeing marks the
 * compactor closed and drops the owner's reference, and a round that ends later starts nothing
 * more.
 *
 * If a round fails or its outcome is unknown, `agreed` stays as it was. The next agreement then
 * fails its compare, and the reply contains the key's revision. A compaction that fails does no
 * harm: a later one includes it.
 */
#include "server/storage/compactor.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/storage/keys.h"

#define ROUND_TIMEOUT (10 * HF_NSEC_PER_SEC) /* for each operation of a round */

struct hfd_compactor {
        /* Immutable. */
        const struct hf_host *host; /* borrowed */
        struct hfd_store *store;    /* borrowed */
        char key[HFD_KEY_MAX];      /* the agreement key */
        /* Owner only. */
        hf_nsec due; /* boot time; 0 = there was no tick yet */
        /* Used by the round under way, or by the owner while there is none. */
        uint64_t agreed; /* mod revision of the agreement key when it was last seen */
        uint64_t seen;   /* the store's revision one round ago; 0 = unknown: compact nothing */
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

static void end_round(struct hfd_compactor *compactor) {
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

static hf_nsec round_deadline(const struct hfd_compactor *compactor) {
        return hf_now(hf_host_clock(compactor->host)) + ROUND_TIMEOUT;
}

static void on_compacted(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;

        /* HF_E_GONE: it was compacted already. */
        if (reply->error != 0 && reply->error != HF_E_GONE && reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor",
                       "cannot compact the store, will try again: %s", reply->status.message);
        end_round(compactor);
}

/* Compacts at the revision seen one round ago, not at the current one, so that clients have at
 * least one interval to continue a watch or a list. */
static void on_agreed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;
        uint64_t target = compactor->seen;

        if (reply->error == 0)
                compactor->agreed = reply->revision;
        else if (reply->error == HF_E_CONFLICT)
                compactor->agreed = reply->n_kvs > 0 ? reply->kvs[0].mod_revision : 0;
        else if (reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor",
                       "cannot write the key %s, will try again: %s", compactor->key,
                       reply->status.message);
        if (reply->error == 0 || reply->error == HF_E_CONFLICT)
                compactor->seen = reply->revision;
        if (reply->error != 0 || target == 0 || is_closed(compactor) ||
            compactor->store->ops->compact(compactor->store, target, round_deadline(compactor),
                                           on_compacted, compactor) != 0)
                end_round(compactor);
}

/* 0, or an error: then no callback is called. */
static int start_round(struct hfd_compactor *compactor) {
        const char *keys[] = {compactor->key};
        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                      .key = compactor->key,
                                      .revision = compactor->agreed};
        struct hfd_op put = {.kind = HFD_PUT, .key = compactor->key};
        struct hfd_txn txn = {.compares = &compare,
                              .n_compares = 1,
                              .ops = &put,
                              .n_ops = 1,
                              .get_on_failure = keys,
                              .n_get_on_failure = 1};
        char text[32];
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)compactor->seen);
        int r;

        /* The value is for people only; its mod revision is what counts. */
        put.value = hf__buf_copy(text, (size_t)n);
        if (!put.value)
                return -ENOMEM;
        r = compactor->store->ops->txn(compactor->store, &txn, round_deadline(compactor), on_agreed,
                                       compactor);
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
        if (start && start_round(compactor) != 0)
                end_round(compactor);
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
