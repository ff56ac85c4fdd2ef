/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round is a chain of at most two operations: the agreement (a transaction), then, for its
 * winner, the compaction. The owner starts a round only when none is under way; the chain then has
 * the state to itself until it sets `busy` back.
 *
 * The owner and a round under way hold one reference each. Freeing drops the owner's and marks the
 * compactor closed, so a round that comes back later starts nothing more.
 *
 * If a round's outcome is unknown or it failed, `seen` stays as it was: the next agreement then
 * fails its compare, and the round learns from it what is there. Compaction itself may fail without
 * harm: a later one includes it.
 */
#include "server/storage/compactor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/storage/keys.h"

#define ROUND_TIMEOUT (10 * HF_NSEC_PER_SEC) /* of each of its operations */

struct hfd_compactor {
        /* immutable */
        const struct hf_host *host;
        struct hfd_store *store;
        char key[HFD_KEY_MAX];
        /* owner only */
        hf_nsec due; /* 0 = no tick came yet */
        /* the round under way, else the owner */
        uint64_t agreed; /* mod revision of the agreement key as last seen */
        uint64_t seen;   /* the store's revision one round ago; 0 = not known: compact nothing */
        /* guarded by mu */
        pthread_mutex_t mu;
        unsigned refs;
        bool busy, closed;
};

static void compactor_unref(struct hfd_compactor *compactor) {
        unsigned left;

        pthread_mutex_lock(&compactor->mu);
        left = --compactor->refs;
        pthread_mutex_unlock(&compactor->mu);
        if (!left) {
                pthread_mutex_destroy(&compactor->mu);
                free(compactor);
        }
}

static void round_end(struct hfd_compactor *compactor) {
        pthread_mutex_lock(&compactor->mu);
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

        if (reply->error && reply->error != HF_E_GONE && reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor", "compaction failed: %s",
                       reply->status.message);
        round_end(compactor);
}

static void on_agreed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_compactor *compactor = ctx;
        uint64_t target = compactor->seen;

        if (!reply->error)
                compactor->agreed = reply->revision;
        else if (reply->error == HF_E_CONFLICT)
                compactor->agreed = reply->n_kvs ? reply->kvs[0].mod_revision : 0;
        else if (reply->error != HF_E_CANCELED)
                hf_log(&compactor->host->log, HF_LOG_WARNING, "compactor", "no agreement: %s",
                       reply->status.message);
        if (!reply->error || reply->error == HF_E_CONFLICT)
                compactor->seen = reply->revision;
        if (reply->error || !target || is_closed(compactor) ||
            compactor->store->ops->compact(compactor->store, target, round_deadline(compactor),
                                           on_compacted, compactor))
                round_end(compactor);
}

static int round_start(struct hfd_compactor *compactor) {
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
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)compactor->seen), r;

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

        if (!compactor->due)
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
        if (start && round_start(compactor))
                round_end(compactor);
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
        r = n < 0 || (size_t)n >= sizeof compactor->key ? HF_E_TOO_LARGE
                                                        : hf__mutex_init(&compactor->mu);
        if (r) {
                free(compactor);
                return r;
        }
        *ret_compactor = compactor;
        return 0;
}

struct hfd_compactor *hfd_compactor_free(struct hfd_compactor *compactor) {
        if (compactor) {
                pthread_mutex_lock(&compactor->mu);
                compactor->closed = true;
                pthread_mutex_unlock(&compactor->mu);
                compactor_unref(compactor);
        }
        return NULL;
}
