/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts that watcher.c (one watch), watchers.c (all of them) and watcher_lists.c (the lists
 * that they are in) share. Private to server/cacher/watch. */
#include <stdatomic.h>

#include "base/timer_heap.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/watch/delivery.h"

#define HFD_BOOKMARK_INTERVAL (60 * HF_NSEC_PER_SEC)
/* Lists of narrow watches. A watch is narrow if it selects a namespace, a name, or a value of the
 * kind's trigger field (watcher_lists.c). Of 100,000 such watches, each list has about 25. */
#define HFD_NARROW_BUCKETS 4096
/* The most such lists that a change visits: by namespace, name or both, and two trigger values. */
#define HFD_NARROW_LISTS_MAX 5
/* A last bookmark shortly before the end lets the client watch again from there. */
#define HFD_BOOKMARK_BEFORE_END (2 * HF_NSEC_PER_SEC)

/* Guarded by cacher->mu. */
struct hfd_watchers {
        /* By hfd_resource_index: the watches of all objects, and those that are told of terms. The
         * latter come first, so that the beginning of a term visits no others. They are few: the
         * informers of this process. */
        struct hfd_watcher *list[HFD_SLOTS_MAX];
        /* The others, which are narrow, of all resources, by a hash of what they watch
         * (watcher_lists.c). */
        struct hfd_watcher *narrow[HFD_NARROW_BUCKETS];
        /* The narrow ones again, by hfd_resource_index: the end of a kind visits no others, nor
         * does a change whose values of the trigger are not known. */
        struct hfd_watcher *narrow_of[HFD_SLOTS_MAX];
        /* By hfd_resource_index: how many narrow watches are in `narrow` by the value of the
         * trigger. Only built-in kinds have a trigger, so custom kinds have no place here. */
        uint32_t n_by_trigger[HFD_RESOURCES_MAX];
        size_t n; /* watches in the lists */
        /* The next bookmark or the end of each; one whose end was requested may have none. */
        struct hf__timer_heap timers;
        bool ended; /* the server is shutting down and accepts no further watch */
};

/* The lists in which a watcher has a place until it has ended. */
enum hfd_watcher_list {
        HFD_WATCHER_BY_OBJECTS, /* `list` or `narrow`: a change visits it */
        HFD_WATCHER_BY_KIND,    /* `narrow_of`; only a narrow watcher */
        HFD_WATCHER_LISTS
};

struct hfd_watcher {
        /* guarded by cacher->mu; its place in each list: the next watcher, and the pointer that
         * points here */
        struct {
                struct hfd_watcher *next, **link;
        } in[HFD_WATCHER_LISTS];
        struct hfd_watcher *dirty_next; /* in a list of dirty watchers: those to deliver to */
        bool dirty;                     /* it is in such a list */

        /* immutable */
        bool told_of_terms;   /* it gets a bookmark when a term of this process begins */
        bool by_trigger;      /* it is in `narrow` by the trigger's value, not by its path */
        uint16_t trigger_tag; /* a hash of this value; 0 also if it selects none */
        struct hfd_cacher *cacher;
        uint64_t after; /* new changes are queued only if their revision is later */

        atomic_int refs;
        struct hfd_delivery delivery; /* what it selects, its queue and its sink */
        hf_nsec ends_at, bookmark_at; /* boot times; guarded by cacher->mu */
        struct hf__timer timer;       /* the earlier one; guarded by cacher->mu */

        /* Namespace and name, each with its NUL; immutable. Only as long as these are, because a
         * server has many watchers. */
        char text[];
};

/* Sets by_trigger and trigger_tag. Call it once, when told_of_terms and the resource, the
 * namespace, the name and the selectors of the delivery are set: they decide in which lists a
 * watcher is. */
void hfd_watcher_choose_lists(struct hfd_watcher *watcher);
/* Only for hfd_watchers_add_locked and hfd_watchers_remove_locked: put the watcher into its lists,
 * and take it out of them. */
void hfd_watcher_enter_lists_locked(struct hfd_watcher *watcher);
void hfd_watcher_leave_lists_locked(struct hfd_watcher *watcher);
/*
 * Finds the lists that have all narrow watches which the change concerns, each list once. They may
 * also have watches that it does not concern, even of other resources: the caller compares. False:
 * an object of the change has not been parsed, so the trigger's value is not known, and lists may
 * be missing. Then the caller visits narrow_of.
 */
bool hfd_watchers_find_narrow_locked(struct hfd_watchers *watchers, const struct hfd_change *change,
                                     struct hfd_watcher *lists[HFD_NARROW_LISTS_MAX],
                                     size_t *ret_n);
/* Adds a watcher to its lists, and queues its timer: it gets every change from here on. The lists
 * take over one reference, which the end drops (hfd_watcher_deliver_unlock). */
void hfd_watchers_add_locked(struct hfd_watcher *watcher);
/* Removes a watcher from its lists, and its timer. The caller drops the reference of the lists
 * afterwards, without the lock. */
void hfd_watchers_remove_locked(struct hfd_watcher *watcher);
/* Delivers the queue. If the watch ends, removes it from its lists, and calls sink.end. Releases
 * cacher->mu, which the caller holds. The caller also has a reference to the watcher, because the
 * end drops that of the lists. */
void hfd_watcher_deliver_unlock(struct hfd_watcher *watcher);
