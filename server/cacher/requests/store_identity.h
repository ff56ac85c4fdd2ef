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

#include <holdfast/host.h>

#include "base/buf.h"
#include "server/storage/keys.h"
#include "server/storage/store.h"

struct hfd_cacher;
struct hfd_store_identity;

/*
 * Registers the metric. on_replaced is called after a replacement, with ctx, on any thread; NULL =
 * no callback. NULL: out of memory.
 */
struct hfd_store_identity *hfd_store_identity_new(const struct hf_host *host,
                                                  void (*on_replaced)(void *ctx), void *ctx);
/* Accepts NULL; returns NULL. */
struct hfd_store_identity *hfd_store_identity_free(struct hfd_store_identity *identity);

/* A copy of part of the identity, made when a request is sent; its reply is compared with it. */
struct hfd_store_identity_snapshot {
        unsigned long generation; /* hfd_store_identity_generation_locked */
        uint64_t revision;        /* the highest that was known */
};
struct hfd_store_identity_snapshot
hfd_store_identity_snapshot_locked(const struct hfd_cacher *cacher);
/* Whether a reply can be compared: its request was sent in this generation, and the cache is not
 * waiting to be filled after a replacement of the store. */
bool hfd_store_identity_is_comparable_locked(const struct hfd_cacher *cacher,
                                             struct hfd_store_identity_snapshot sent);
/*
 * Compares a reply with the snapshot of its request and with the known cluster ID. If they
 * contradict, reads the store's revision once more, unless such a read is running or the cacher
 * stops, and handles a replacement if that reply contradicts too.
 */
void hfd_store_identity_check(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                              const struct hfd_store_reply *reply);

/*
 * Handles a replacement of the store: makes the reflector fill the cache again, which ends all
 * watches. The first call for a replacement also logs why and calls on_replaced, which ends the
 * leader's term.
 */
void hfd_store_identity_replaced(struct hfd_cacher *cacher, const char *why);
/*
 * Whether a reply has confirmed a replacement, or another epoch was read, and the cache has not
 * been filled from the new store yet.
 */
bool hfd_store_identity_replacement_pending(struct hfd_cacher *cacher);
/* Whether a replacement is pending, and hfd_store_identity_replaced has handled it. */
bool hfd_store_identity_is_replaced_locked(const struct hfd_cacher *cacher);
/*
 * The generation of the store's contents: a counter of this process that increases with each
 * confirmed sign of a replacement of the store, and whenever the store's encryption keys are
 * replaced. A result is discarded if its operation began in an earlier generation. (The epoch,
 * below, is a key in the store.)
 */
unsigned long hfd_store_identity_generation_locked(const struct hfd_cacher *cacher);
/* The encryption keys were replaced: a new generation, but no replacement of the store. */
void hfd_store_identity_encryption_keys_replaced_locked(struct hfd_cacher *cacher);
/* The cache was filled by a listing that began after the newest replacement. */
void hfd_store_identity_filled_locked(struct hfd_cacher *cacher);

/*
 * Copies the name of the epoch key to key. A restore procedure changes the value of this key. 0 or
 * HF_E_TOO_LARGE.
 */
int hfd_store_identity_epoch_key(struct hfd_cacher *cacher, char key[HFD_KEY_MAX]);
/*
 * Records the epoch that was just read (NULL: the key does not exist). *ret_changed: it differs
 * from the one before. 0, or -ENOMEM: it was compared but not recorded, so it must be read again.
 */
int hfd_store_identity_epoch_read(struct hfd_cacher *cacher, const struct hf__buf *value,
                                  bool *ret_changed);
/* Called when the watch delivers a write of the epoch key. Reads the key to confirm the change. */
void hfd_store_identity_epoch_written(struct hfd_cacher *cacher);
/*
 * Returns the epoch that was recorded most recently; the caller drops the reference. *ret_exists:
 * the key existed; if not, the result is an empty buffer. NULL: the epoch was not recorded yet.
 */
struct hf__buf *hfd_store_identity_epoch_known(struct hfd_cacher *cacher, bool *ret_exists);
