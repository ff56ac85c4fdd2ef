/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Is the store behind the cache still the one that filled it? A restored backup, or another etcd
 * cluster behind the same address, replaces the history of all objects. The model is at the head of
 * store_identity.c.
 *
 * Thread: any; never under the cacher's lock, except where a name ends in _locked.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/metrics.h>

#include "base/buf.h"
#include "server/storage/keys.h"
#include "server/storage/store.h"

struct hfd_cacher;

#define HFD_STORE_IDENTITY_AUDIT_INTERVAL (3 * 60 * HF_NSEC_PER_SEC)

/* The state, a part of the cacher. */
struct hfd_store_identity {
        /* immutable */
        void (*on_replaced)(void *ctx); /* NULL = nobody is told */
        void *ctx;
        struct hf_metric *n_replaced, *n_differences;

        /* guarded by the cacher's lock */

        /*
         * Replacements of the store noticed so far. Results of operations begun before the newest
         * are discarded.
         */
        unsigned long replacement_epoch;
        uint64_t known_revision; /* the highest that the store has answered; 0 = none */
        uint64_t known_cluster;  /* the cluster that answered it; 0 = not known */
        struct hf__buf *epoch;   /* owned; the epoch key's value as last read; NULL = not read */
        bool epoch_exists;       /* the key was there when it was read */
        bool settling; /* the epoch has changed, and the cache is not filled from the new store */
        bool replaced; /* a replacement was noticed, and the cache is not filled again */
        bool audit_running;
        hf_nsec audit_at; /* boot time of the next audit */
};

/* The part of the identity that is read when a request is sent, to compare its reply with. */
struct hfd_store_identity_mark {
        unsigned long replacement_epoch;
        uint64_t revision;
};
struct hfd_store_identity_mark
hfd_store_identity_mark_locked(const struct hfd_store_identity *identity);
/* Compares a reply with the mark of its request. A reply of another store is a replacement. */
void hfd_store_identity_check(struct hfd_cacher *cacher, struct hfd_store_identity_mark sent,
                              const struct hfd_store_reply *reply);

/*
 * The store was replaced: tells the host (its term ends), ends all watches, and has the cache
 * filled again. why goes to the log.
 */
void hfd_store_identity_replaced(struct hfd_cacher *cacher, const char *why);
/* An epoch other than the known one was noticed, and the cache is not filled from its store yet. */
bool hfd_store_identity_settling(struct hfd_cacher *cacher);

/* The key whose value a restore procedure changes. 0 or HF_E_TOO_LARGE. */
int hfd_store_identity_epoch_key(struct hfd_cacher *cacher, char key[HFD_KEY_MAX]);
/* Records the epoch as it was read now (NULL: the key does not exist). True: it has changed. */
bool hfd_store_identity_epoch_changed(struct hfd_cacher *cacher, const struct hf__buf *value);
/*
 * The epoch as it was read last; the caller drops the reference. *ret_exists: the key was there.
 * NULL: it was not read yet.
 */
struct hf__buf *hfd_store_identity_epoch_known(struct hfd_cacher *cacher, bool *ret_exists);

/* Begins to compare the cache with the store, unless the cache is being filled. Never blocks. */
void hfd_store_identity_audit(struct hfd_cacher *cacher);
