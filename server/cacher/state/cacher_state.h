/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that the parts of the cacher share: its lock, the cached objects and their history, and
 * what is known of the store's watch. Private to the files of server/cacher. cacher.h describes the
 * lock and the invariants.
 *
 * Each part keeps its own state behind a pointer in this struct, and only the files of the part
 * change it. hfd_cacher_new creates all parts before any of them runs, and hfd_cacher_free frees
 * them when none runs any more, so no part checks whether another exists. The lag is an exception
 * (cacher.c).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

#include "server/cacher/history/event_history.h"
#include "server/cacher/history/object_tree.h"
#include "server/resources/custom/custom_table.h"
#include "server/storage/store.h"

struct hfd_cache_audit;
struct hfd_cacher_timer;
struct hfd_consistent_reads;
struct hfd_listings;
struct hfd_reflector;
struct hfd_slot_forms;
struct hfd_store_identity;
struct hfd_store_lag;
struct hfd_store_requests;
struct hfd_watchers;

#define HFD_CACHER_PREFIX_MAX 256

/* The watch of the store that the cache follows. The reflector opens it again when it ends. */
struct hfd_store_watch {
        bool relist;      /* list everything again; otherwise resume at revision + 1 */
        bool is_open;     /* a watch is open or being opened */
        bool reopen;      /* end the open watch; then the epoch is read (store_identity.h) */
        uint64_t id;      /* the store's ID of the watch; 0 = none, or not known yet */
        hf_nsec retry_at; /* boot time of the next try, while the reflector waits for one */
};

struct hfd_cacher {
        /* immutable after new */
        const struct hf_host *host;     /* borrowed */
        struct hfd_store *store;        /* borrowed */
        struct hfd_custom_table *table; /* borrowed; NULL = no custom resources */
        char prefix[HFD_CACHER_PREFIX_MAX];
        char holder[HF_IDENTITY_MAX + 1]; /* under which this process holds Leases; "" = none */
        void (*on_observed)(void *ctx, unsigned observers); /* NULL = none */
        /* The observers (cacher.h) of each resource, by hfd_resource_index. Custom resources have
         * none. */
        unsigned char observers[HFD_RESOURCES_MAX];
        void *ctx;                        /* borrowed; for the callbacks */
        void (*on_copy_begun)(void *ctx); /* NULL = no callback */

        /* guarded by mu */
        pthread_mutex_t mu;
        /* broadcast; the timer, wait_synced, refill, reflector_stop and free wait on it */
        pthread_cond_t cond;
        /* Boot time until which the timer sleeps, unless cond wakes it. It is out of date while the
         * timer works. That does no harm, because the timer checks all work again before it
         * sleeps. */
        hf_nsec timer_due;
        /* What the last listing contained, changed by the events of the store's watch. */
        struct hfd_object_tree trees[HFD_SLOTS_MAX];
        /*
         * Later versions of objects in `trees`, which writes of this instance have stored. They are
         * for the next writes: a reader must not see a change before the watches see it. The
         * store's watch delivers each of them soon, and then it is removed here.
         */
        struct hfd_object_tree newer[HFD_SLOTS_MAX];
        /*
         * By key: placeholders for stored values that are invalid, or cannot be decrypted (sealed
         * values; stored_value.h). They are not served, but the audit of the cache needs them.
         */
        struct hfd_object_tree unreadable;
        struct hfd_event_histories histories;
        atomic_uint n_sealed_logged; /* sealed values, since the last filling; not guarded */
        uint64_t revision;
        uint64_t n_fills; /* how often the cache was filled */
        bool synced;      /* the trees have been filled at least once */
        bool stopping;    /* free has begun */
        struct hfd_store_watch watch;

        /* The parts, from the lowest to the highest; owned, and immutable after new. */
        struct hfd_store_requests *requests;
        struct hfd_store_identity *identity;
        struct hfd_store_lag *lag;
        struct hfd_watchers *watchers;
        struct hfd_slot_forms *forms; /* of objects of custom resources */
        struct hfd_consistent_reads *reads;
        struct hfd_listings *listings;
        struct hfd_reflector *reflector;
        struct hfd_cache_audit *audit;
        struct hfd_cacher_timer *timer;
};

/* How many slots may be in use: in `trees` and `newer`, all places from this number on are empty,
 * so loops need not look at them. The number only grows. */
static inline size_t hfd_cacher_slots(const struct hfd_cacher *cacher) {
        return hfd_custom_table_slots(cacher->table);
}

static inline hf_nsec hfd_cacher_now(const struct hfd_cacher *cacher) {
        return hf_now(hf_host_clock(cacher->host));
}

/* Makes the timer sleep only until the boot time `at`, if it would sleep longer. True: it would, so
 * the caller must broadcast cond, but need not hold the lock for that. */
static inline bool hfd_cacher_hasten_timer_locked(struct hfd_cacher *cacher, hf_nsec at) {
        if (at >= cacher->timer_due)
                return false;
        cacher->timer_due = at;
        return true;
}

/* Makes the timer look for due work at the boot time `at` or earlier: wakes it if it would sleep
 * longer. */
static inline void hfd_cacher_wake_timer_locked(struct hfd_cacher *cacher, hf_nsec at) {
        if (hfd_cacher_hasten_timer_locked(cacher, at))
                pthread_cond_broadcast(&cacher->cond);
}

/*
 * Makes the reflector list everything again. *ret_cancel is the ID of the watch that the caller
 * must cancel after it has released the lock; 0 = none.
 */
void hfd_cacher_relist_locked(struct hfd_cacher *cacher, uint64_t *ret_cancel);
/* Cancels a watch of the store; id 0 = none. Its end makes the reflector go on. Not under the
 * lock. */
void hfd_cacher_cancel_watch(struct hfd_cacher *cacher, uint64_t id);
/* Ends the watch that is open, also if it has no ID yet. Before the next one the reflector reads
 * the epoch. Not under the lock. */
void hfd_cacher_reopen_watch(struct hfd_cacher *cacher);
