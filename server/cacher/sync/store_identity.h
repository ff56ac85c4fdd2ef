/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Detects that the store is no longer the one that filled the cache. A restored backup, or another
 * etcd cluster at the same address, replaces the history of all objects. The head of
 * store_identity.c describes the model.
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

/* The cacher's state for the identity of the store. */
struct hfd_store_identity {
        /* immutable */
        void (*on_replaced)(void *ctx); /* called after a replacement; NULL = no callback */
        void *ctx;
        struct hf_metric *n_replaced;

        /* guarded by the cacher's lock */

        /*
         * How often a replacement of the store was detected, or its encryption keys were replaced
         * (hfd_cacher_refill). A result is discarded if its operation began before the newest one.
         */
        unsigned long replacement_epoch;
        uint64_t known_revision; /* the highest revision in any reply; 0 = none */
        uint64_t known_cluster;  /* the cluster ID in the newest reply; 0 = not known */
        struct hf__buf *epoch;   /* owned; the epoch key's value as last read; NULL = not read */
        bool epoch_exists;       /* the epoch key existed when it was read */
        /*
         * replacement_pending: a sign of a replacement was detected, perhaps only a new epoch.
         * replaced: hfd_store_identity_replaced has also handled it. Both are reset when the cache
         * has been filled from the new store.
         */
        bool replacement_pending;
        bool replaced;
        bool confirming; /* a read that checks a sign of a replacement is running */
};

/* A copy of part of the identity, made when a request is sent; its reply is compared with it. */
struct hfd_store_identity_snapshot {
        unsigned long replacement_epoch;
        uint64_t revision;
};
struct hfd_store_identity_snapshot
hfd_store_identity_snapshot_locked(const struct hfd_store_identity *identity);
/*
 * Compares a reply with the snapshot of its request. If they contradict, reads the store's revision
 * once more, unless such a read is running, and handles a replacement if that reply contradicts
 * too.
 */
void hfd_store_identity_check(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                              const struct hfd_store_reply *reply);

/*
 * Handles a replacement of the store: makes the reflector fill the cache again, which ends all
 * watches. At the first sign of a replacement also logs why and calls on_replaced, which ends the
 * leader's term.
 */
void hfd_store_identity_replaced(struct hfd_cacher *cacher, const char *why);
/* True: a replacement was detected, and the cache has not been filled from the new store yet. */
bool hfd_store_identity_replacement_pending(struct hfd_cacher *cacher);

/*
 * Copies the name of the epoch key to key. A restore procedure changes the value of this key. 0 or
 * HF_E_TOO_LARGE.
 */
int hfd_store_identity_epoch_key(struct hfd_cacher *cacher, char key[HFD_KEY_MAX]);
/* Records the epoch that was just read (NULL: the key does not exist). True: it has changed. */
bool hfd_store_identity_epoch_changed(struct hfd_cacher *cacher, const struct hf__buf *value);
/* Called when the watch delivers a write of the epoch key. Reads the key to confirm the change. */
void hfd_store_identity_epoch_written(struct hfd_cacher *cacher);
/*
 * Returns the epoch that was read most recently; the caller drops the reference. *ret_exists: the
 * key existed. NULL: the epoch was not read yet.
 */
struct hf__buf *hfd_store_identity_epoch_known(struct hfd_cacher *cacher, bool *ret_exists);
