/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cacher keeps all objects of the store in memory, in the exact bytes that are served, and
 * serves the watches of clients. Kubernetes' apiserver has a component of the same name.
 *
 * Its parts, each with a separate header (except watcher_lists). A folder uses only those above it:
 *
 *      history/   object_tree      the objects of one resource
 *                 event_history    the recent changes
 *      state/     cacher_state     what all parts share
 *                 stored_value     values that are not valid objects, or cannot be decrypted
 *      requests/  store_request    requests to the store, measured and counted
 *                 store_identity   detects a replaced store
 *                 store_lag        notices that the store's watch hangs
 *                 store_room       remembers whether the store has room
 *      watch/     snapshot         all objects of a resource at one revision, for a list
 *                 watcher          a watch of a client
 *                 watch_sink       where its events go
 *                 delivery         its queue
 *                 watchers         the watches of all clients
 *                 watcher_lists    which of them a change visits
 *      sync/      slot_forms       the form of custom objects
 *                 consistent_read  reads that wait for a revision
 *                 listing_page     a page of a listing
 *                 listing          lists the store
 *                 store_events     applies the events of the store's watch
 *                 reflector        keeps the cache equal to the store
 *                 cache_audit      compares the cache with the store
 *      timer      the thread for everything that comes at a time
 *      cacher     the functions below
 *      feed/      feed, kind_feed  threads that build something from the objects
 *
 * Lock: one mutex guards what several threads change. It is held for lookups and for changes of
 * pointers: usually a few of them, at most some for each resource, each watch, each read that waits
 * or each change in a history. Two rare cases take longer, in proportion to the object: the last
 * state of a deleted object is copied if the object changed after its deletion was prepared, or if
 * an invalid value has replaced it; and an object of a custom kind whose form changed while its
 * event was prepared is made anew. Callbacks and requests to the store never run under the lock:
 * the work is collected under it and done after it is released. Objects, too, are collected and
 * dropped afterwards, because the last one of a replaced custom kind frees this kind; only the
 * placeholder of an invalid or sealed value, which belongs to no such kind, is dropped at once. No
 * code of the cacher takes another lock while it holds this one.
 *
 * Threads: the cacher has one thread, its timer (timer.h), and each feed has one. The store's
 * threads deliver replies and events. Any thread may call the functions below. Only wait_synced,
 * refill and free block.
 *
 * Invariants: the trees contain every change up to `revision` and no later one. The history of a
 * resource contains every change after its floor. Until it ends, a watcher gets each change that it
 * selects once, in order. If a change cannot be applied, usually because memory ran out, the trees
 * may contain a part of a later revision until they have been filled again, which ends all watches.
 */
#include <stdbool.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

#include "server/resources/objects/object.h"
#include "server/storage/store.h"

struct hfd_cacher;
struct hfd_custom_table;

struct hfd_cacher_config {
        struct hfd_store *store; /* borrowed until hfd_cacher_free */
        const char *prefix;      /* all keys begin with it: "/registry"; copied */
        /* Borrowed until hfd_cacher_free; NULL = there are no custom resources. */
        struct hfd_custom_table *table;
        /* The identity under which the electors of this process hold Leases: when one of them
         * acquires a Lease, the informers of this process get a bookmark. At most HF_IDENTITY_MAX
         * bytes; copied. NULL = there is no elector. */
        const char *holder;
        /*
         * Called when the store's history was replaced (a restored backup, another cluster): a
         * leader must stop leading. Thread: any; must not block. NULL = no callback.
         */
        void (*on_history_replaced)(void *ctx);
        /*
         * Which observers are told when an object of the resource may have changed: a set of bits,
         * whose meaning the caller chooses; 0 = none. hfd_cacher_new calls it for each built-in
         * resource. NULL = nobody.
         */
        unsigned char (*observers)(const struct hfd_resource *resource);
        /*
         * Called after events of the store's watch, with the observers of the resources that have
         * changed, and after each filling, with all observers. Thread: any; must not block. NULL =
         * no callback.
         */
        void (*on_observed)(void *ctx, unsigned observers);
        /*
         * Called when `holdfastd store copy` has begun to write to the store (storage/copy.h):
         * until it is complete, objects are missing. Thread: any; must not block. NULL = no
         * callback.
         */
        void (*on_copy_begun)(void *ctx);
        void *ctx;
};

/* host outlives the cacher. 0, -EINVAL (the store or the prefix is missing, or the prefix is too
 * long) or another -errno. */
int hfd_cacher_new(const struct hf_host *host, const struct hfd_cacher_config *config,
                   struct hfd_cacher **ret_cacher);
/* Starts to fill the cache and does not wait for it. Failures of the store are retried until
 * hfd_cacher_free, with backoff. 0, or -errno: the thread cannot be started. Call it once. */
int hfd_cacher_start(struct hfd_cacher *cacher);
/*
 * Fills the cache again, because the store delivers other values from now on: other keys decrypt
 * them. The old contents are served until the new ones are complete; then all watches end with 410.
 * Blocks until that is done (0), or until token fires (HF_E_CANCELED: it will be done later). Call
 * it after start.
 */
int hfd_cacher_refill(struct hfd_cacher *cacher, struct hf_cancel *token);
/*
 * For a shutdown: ends every watch cleanly, so that clients watch another server. New watches get
 * 503.
 */
void hfd_cacher_end_watches(struct hfd_cacher *cacher);
/*
 * Blocks until every request to the store has ended. No other thread may use the cacher any more,
 * apart from the store's, those that collect metrics, and those that still have to send a delayed
 * probe (sync/consistent_read.h). Requires that every watcher was started, opened or canceled
 * (watch/watcher.h): otherwise its watch does not end. Accepts NULL; returns NULL.
 */
struct hfd_cacher *hfd_cacher_free(struct hfd_cacher *cacher);

/* Returns the table of the configuration. */
struct hfd_custom_table *hfd_cacher_table(const struct hfd_cacher *cacher);
/* Returns the prefix of all keys, which lives as long as the cacher. */
const char *hfd_cacher_prefix(const struct hfd_cacher *cacher);

/* Whether the cache has been filled at least once. */
bool hfd_cacher_synced(struct hfd_cacher *cacher);
/*
 * Blocks until the cache is filled or token fires. 0: the cache is filled. -EBADMSG: it is not,
 * and the store is damaged, so there is no use in waiting again. HF_E_CANCELED: it is not, for
 * another reason. reterr_status then says how many objects the running listing has received, or, if
 * it has received none, the store's most recent failure.
 */
int hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                           struct hf_status *reterr_status);
/*
 * Returns the boot time at which a filling of the cache last came further than any before; 0 = no
 * key has arrived yet. So a store that responds but never lets the cache be filled makes no
 * progress.
 */
hf_nsec hfd_cacher_fill_progress(struct hfd_cacher *cacher);
/* Returns the boot time of the store's last reply or event, for the health check of etcd; 0 = none
 * yet. */
hf_nsec hfd_cacher_last_store_contact(struct hfd_cacher *cacher);
/* Returns the boot time at which the store last refused a write because it is full; 0 = it has
 * refused none since the last put that succeeded. */
hf_nsec hfd_cacher_store_full(struct hfd_cacher *cacher);

/*
 * How many revisions the cache is behind the store, as far as replies of the store show it, and for
 * how long (nanoseconds). 0: it is not known to be behind.
 */
uint64_t hfd_cacher_lag(struct hfd_cacher *cacher, hf_nsec *ret_time);

/* Returns a revision: all changes up to it are in the cache. 0 = the cache is not filled yet. */
uint64_t hfd_cacher_revision(struct hfd_cacher *cacher);
/* Returns a reference to the object at path, in the version that readers see. NULL: not cached. */
struct hfd_object *hfd_cacher_get(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                  const char *path);
/* Returns how many objects of the resource are cached. */
size_t hfd_cacher_count(struct hfd_cacher *cacher, const struct hfd_resource *resource);

/*
 * For writes: returns a reference to the newest known version of the object. It may come from a
 * write of this instance that the store's watch has not delivered yet, so only writes may use it.
 * NULL: the object is not cached. If *ret_synced is true, the cache is filled: so at its revision
 * the store had no object at this path, or one that this instance cannot read
 * (state/stored_value.h).
 */
struct hfd_object *hfd_cacher_newest(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                                     const char *path, bool *ret_synced);
/*
 * The same for all objects of a namespace, in the order of their names: fills in references to the
 * first `max` of them. Returns how many there are. Logarithmic if there is none.
 */
size_t hfd_cacher_newest_in(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                            const char *ns, struct hfd_object **ret_objects, size_t max,
                            bool *ret_synced);
/*
 * Records that a write of this instance has stored a new version of an object, so that the next
 * write is based on this version. Does nothing for an object that the cache does not have yet, or
 * has in this or a later version. The caller keeps its reference.
 */
void hfd_cacher_record_write(struct hfd_cacher *cacher, struct hfd_object *object);
