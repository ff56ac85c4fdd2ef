/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The recent past of the cache: for each resource the changes of at least the last 75 seconds,
 * oldest first, as far as they fit into the limit of memory; and the states that paged lists have
 * begun with. A watch that begins at an earlier resourceVersion gets its first events from here,
 * and a list of an earlier revision its objects.
 *
 * Invariants: every change of a resource after its floor is in its history. A watch from an older
 * resourceVersion cannot be served without a gap, so the client gets 410. The memory that only the
 * histories keep is limited for all resources together; the largest history loses its oldest
 * changes first, so that a busy resource does not shorten the history of a quiet one. The ring of a
 * resource that no longer changes becomes empty.
 *
 * Pure. Guarded by the cacher's lock. hfd_event_history_add, hfd_event_histories_trim and
 * hfd_event_history_keep collect what they drop in hfd_history_garbage, which the caller frees
 * after it has released the lock.
 */
#include <holdfast/client.h>
#include <holdfast/clock.h>

#include "server/cacher/history/object_tree.h"
#include "server/resources/objects/object.h"
#include "server/resources/resource.h"

/* As in Kubernetes' watch cache: somewhat longer than the interval of bookmarks, so that a client
 * can nearly always watch again from its last bookmark. */
#define HFD_EVENT_HISTORY_WINDOW (75 * HF_NSEC_PER_SEC)
#define HFD_EVENT_HISTORY_BYTES  ((size_t)256 << 20)
#define HFD_EVENT_HISTORY_STATES 16 /* of one resource */

/* A change of one object. */
struct hfd_change {
        enum hf_event_type type;
        /* Hashes of the object's namespace and name. hfd_event_history_add sets them, and only
         * hfd_event_history_find reads them. */
        uint16_t ns_tag, name_tag;
        /* owned; after a deletion, the object's last state with the revision of the deletion */
        struct hfd_object *object;
        struct hfd_object *before; /* owned; the state before the change; NULL = did not exist */
};

struct hfd_history_entry {
        struct hfd_change change;
        hf_nsec at; /* boot time */
};

/* next and n are set when a ring moves to garbage. Before that, hfd_event_history.n counts its
 * entries. */
struct hfd_history_ring {
        struct hfd_history_ring *next; /* owned; the next ring in garbage */
        size_t n;                      /* entries in use: all of them, from the first */
        struct hfd_history_entry entries[];
};

/* All objects of the resource at revision `changed`, which is that of a change or the floor. */
struct hfd_history_state {
        uint64_t changed;
        struct hfd_object_tree objects; /* owned */
        /* Estimated: of the nodes that the cacher's tree no longer shares with this state. */
        size_t n_bytes;
};

/* The past of one resource. */
struct hfd_event_history {
        struct hfd_history_ring *ring; /* owned; NULL = empty */
        size_t space, first, n; /* of ring: size (0 or a power of 2), oldest entry, entries */
        size_t n_bytes;         /* that only this history keeps in memory */
        uint64_t floor;         /* every change after this revision is in the ring */
        /* Changes that have left the history, or never got into it: the change at index i has the
         * number n_gone + i. A number is never used again. */
        uint64_t n_gone;
        struct hfd_history_state states[HFD_EVENT_HISTORY_STATES]; /* oldest first */
        size_t n_states;
        uint64_t n_copied; /* object_tree.n_copied of the cacher's tree at the last change */
};

struct hfd_event_histories {
        /* By hfd_resource_index. Those from n_slots on are not in use, and not touched, so they
         * need no memory: use hfd_event_history_of. */
        struct hfd_event_history of[HFD_SLOTS_MAX];
        size_t n_slots;
        uint64_t floor; /* of those that are not in use yet */
        size_t n_bytes, max_bytes;
        hf_nsec window;
        hf_nsec due; /* boot time of the next hfd_event_histories_trim */
};

/* Limits the time for which hfd_event_histories_trim needs the lock. */
#define HFD_HISTORY_GARBAGE_MAX 128

/* Begins empty: n, n_states and rings are 0. The arrays are large and need not be zeroed. */
struct hfd_history_garbage {
        struct hfd_change changes[HFD_HISTORY_GARBAGE_MAX]; /* owned */
        size_t n;
        struct hfd_object_tree states[HFD_EVENT_HISTORY_STATES]; /* owned */
        size_t n_states;
        struct hfd_history_ring *rings; /* owned; dropped as a whole */
};

void hfd_event_histories_init(struct hfd_event_histories *histories);
/* The history of a resource (hfd_resource_index), which is in use from now on. */
struct hfd_event_history *hfd_event_history_of(struct hfd_event_histories *histories,
                                               size_t resource);
/*
 * Adds a change, consuming its references. tree is the resource's tree after the change. False:
 * memory ran out, so the history of the resource begins anew after this change. Its earlier changes
 * have moved to garbage, in constant time, and the caller still owns the references of this one.
 */
bool hfd_event_history_add(struct hfd_event_histories *histories, struct hfd_change change,
                           const struct hfd_object_tree *tree, hf_nsec now,
                           struct hfd_history_garbage *garbage);
/*
 * Begins the history anew after `revision`, because the history lacks a change of that revision, or
 * because the states before that revision must not be served. Changes up to `revision` stay in the
 * ring until hfd_event_histories_trim drops them.
 */
void hfd_event_history_interrupt(struct hfd_event_history *history, uint64_t revision);
/*
 * Drops the oldest changes until the rest is within the limit of bytes and, if `due` is reached,
 * those that are older than the window; and the states that the history then does not reach back
 * to. False: garbage is full, so the caller frees it and calls again. Call it after
 * hfd_event_history_add, and when `due` is reached.
 */
bool hfd_event_histories_trim(struct hfd_event_histories *histories, hf_nsec now,
                              struct hfd_history_garbage *garbage);
/* Frees what garbage contains and empties it. Not under the cacher's lock. */
void hfd_history_garbage_free(struct hfd_history_garbage *garbage);
/*
 * Empties all histories, which then begin after revision `floor`. The old contents move to
 * ret_old, which is good for nothing but hfd_event_histories_done.
 */
void hfd_event_histories_restart(struct hfd_event_histories *histories, uint64_t floor,
                                 struct hfd_event_histories *ret_old);
/* Frees all contents, which may be many: not under the cacher's lock. */
void hfd_event_histories_done(struct hfd_event_histories *histories);

/* Returns the change at index i < n; 0 is the oldest. Borrowed until the history changes. */
const struct hfd_change *hfd_event_history_at(const struct hfd_event_history *history, size_t i);
/* Returns the index of the first change after revision, n if there is none. Logarithmic. */
size_t hfd_event_history_after(const struct hfd_event_history *history, uint64_t revision);
/*
 * Sets *ret_i to the index of the first change that a watch from revision gets: normally the first
 * one after it. But if the transaction of that revision has changed several objects of the
 * resource, a client may have seen only some of these changes when its connection broke, so all of
 * them are repeated. False: only some of them may still be in the ring, so the watch cannot be
 * served. If none of them is in the ring any more, the result is true, and they are not repeated:
 * otherwise no watch could begin at the floor. revision must not be below the floor.
 */
bool hfd_event_history_resume(const struct hfd_event_history *history, uint64_t revision,
                              size_t *ret_i);
/* A hash of a namespace or a name, as in struct hfd_change. */
uint16_t hfd_history_tag(const char *text, size_t n);
/* The number of the change at index i <= n. It stays the same when older changes are dropped. */
uint64_t hfd_event_history_number(const struct hfd_event_history *history, size_t i);
/*
 * Sets *ret_i to the index of the change with this number, n if it is the next one to be added.
 * False: the change, or another one of its revision, may no longer be in the ring, or the history
 * was interrupted after it. Constant time.
 */
bool hfd_event_history_seek(const struct hfd_event_history *history, uint64_t number,
                            size_t *ret_i);
/*
 * Returns the first index, from i on, of a change whose object may have this namespace and name;
 * `end` if there is none below it. ns "" and name NULL = any. Reads the ring only and no object, so
 * it is fast, and the caller compares the object itself.
 */
size_t hfd_event_history_find(const struct hfd_event_history *history, size_t i, size_t end,
                              const char *ns, const char *name);
/* Returns the revision of the last change that the state at `revision` includes, or the floor if
 * this change is not in the ring or not after the floor. revision must not be below the floor. */
uint64_t hfd_event_history_changed(const struct hfd_event_history *history, uint64_t revision);

/* Returns the kept state at revision `changed` (hfd_event_history_changed). NULL: it is not kept.
 * Borrowed. */
const struct hfd_object_tree *hfd_event_history_state(const struct hfd_event_history *history,
                                                      uint64_t changed);
/*
 * Keeps a state, with another reference to its tree, as long as the history reaches back to it,
 * unless states that are kept later need its place. Does nothing if it is kept already, or if the
 * history does not reach back to it.
 */
void hfd_event_history_keep(struct hfd_event_histories *histories, size_t resource,
                            uint64_t changed, const struct hfd_object_tree *objects,
                            struct hfd_history_garbage *garbage);
