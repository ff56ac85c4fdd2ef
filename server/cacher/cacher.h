/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cacher: all objects of the store in memory, as the very bytes that are served, and the
 * watches that tell of their changes. Named as in Kubernetes' apiserver.
 *
 * Its parts, each with a header of its own: object_tree (the objects), event_history (the last
 * changes), reflector (keeps both equal to the store), consistent_read (reads that wait for a
 * revision), watcher (watches of clients), store_identity (notices a replaced store),
 * store_request (requests to the store, measured and counted).
 *
 * Lock: one mutex guards all mutable state of all parts. It is held for look-ups and pointer moves
 * only. Whatever has to be called (a read that may go on, a watcher with events, the store) is
 * collected under it and called after it is released. It is never held together with another lock.
 *
 * Threads: one timer thread, which only keeps time. The store's threads deliver replies and events;
 * any thread reads, writes and watches. Nothing here blocks, but wait_synced and free.
 *
 * Invariants: every change up to `revision` is in the trees, and no later one. Every change after
 * the history's floor is in the history. A watcher gets each change once, in order.
 */
#include <stdbool.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "server/resources/object.h"
#include "server/storage/store.h"

struct hfd_cacher;

struct hfd_cacher_config {
        struct hfd_store *store; /* borrowed */
        const char *prefix;      /* of all keys: "/registry"; copied */
        /*
         * The store's history was replaced (a restored backup, another cluster): a leader must
         * stop leading. Thread: any; must not block. NULL = nobody is told.
         */
        void (*on_history_replaced)(void *ctx);
        void *ctx;
};

int hfd_cacher_new(const struct hf_host *host, const struct hfd_cacher_config *config,
                   struct hfd_cacher **ret_cacher);
/* Begins to fill the cache, with retries and backoff for ever. Returns at once. */
int hfd_cacher_start(struct hfd_cacher *cacher);
/* Ends every watch cleanly, so that clients watch elsewhere; refuses further ones with 503. */
void hfd_cacher_end_watches(struct hfd_cacher *cacher);
/* Blocks until every request to the store has ended. After the last caller is gone. */
struct hfd_cacher *hfd_cacher_free(struct hfd_cacher *cacher);

/* The prefix of all keys; lives as long as the cacher. */
const char *hfd_cacher_prefix(const struct hfd_cacher *cacher);

/* The cache was filled once. */
bool hfd_cacher_synced(struct hfd_cacher *cacher);
/*
 * Blocks until the cache is filled, or token fires: HF_E_CANCELED, with the store's last failure in
 * reterr_status.
 */
int hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                           struct hf_status *reterr_status);
/* Boot time when the store replied last: for the health check of etcd. */
hf_nsec hfd_cacher_store_heard_at(struct hfd_cacher *cacher);

/* All changes up to this revision are in the cache. */
uint64_t hfd_cacher_revision(struct hfd_cacher *cacher);
/* The object at path, as readers see it; a reference. NULL: there is none. */
struct hfd_object *hfd_cacher_get(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                  const char *path);
/*
 * Visits, under the lock, the objects whose path begins with prefix and sorts after `after`, until
 * visit returns false; visit only takes references. *ret_revision is the revision of the list.
 * False, and nothing visited: the cache is not filled, or `at` is not 0 and not its revision.
 */
bool hfd_cacher_list(struct hfd_cacher *cacher, const struct hfd_resource *resource, uint64_t at,
                     const char *prefix, const char *after,
                     bool (*visit)(void *ctx, struct hfd_object *object), void *ctx,
                     uint64_t *ret_revision);
/*
 * For writes: the newest version that is known, own writes included; a reference. NULL: not
 * cached; *ret_synced says whether that means that there is none.
 */
struct hfd_object *hfd_cacher_newest(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                     const char *path, bool *ret_synced);
/* A write of ours has stored object: the next write begins with it. Takes no reference. */
void hfd_cacher_note_write(struct hfd_cacher *cacher, struct hfd_object *object);
