/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to the files of server/cacher. cacher.h describes the lock and the invariants. */
#include <pthread.h>

#include <holdfast/host.h>

#include "server/cacher/cacher.h"
#include "server/cacher/history/event_history.h"
#include "server/cacher/history/object_tree.h"
#include "server/cacher/snapshot.h"
#include "server/cacher/sync/cache_audit.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/sync/listing.h"
#include "server/cacher/sync/reflector.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/sync/store_identity.h"
#include "server/cacher/sync/store_lag.h"
#include "server/cacher/sync/store_request.h"
#include "server/cacher/watcher.h"
#include "server/resources/custom/custom_table.h"

#define HFD_CACHER_PREFIX_MAX 256

struct hfd_cacher {
        /* immutable after new */
        const struct hf_host *host;     /* borrowed */
        struct hfd_store *store;        /* borrowed */
        struct hfd_custom_table *table; /* borrowed; NULL = no custom resources */
        char prefix[HFD_CACHER_PREFIX_MAX];
        void (*on_observed)(void *ctx, unsigned observers); /* NULL = none */
        unsigned char
                observers[HFD_RESOURCES_MAX]; /* by hfd_resource_index; none of custom resources */
        void *ctx;                            /* borrowed; for the callbacks */
        void (*on_copy_begun)(void *ctx);     /* NULL = no callback */

        /* used by the thread that calls start and free */
        pthread_t timer_thread;
        bool timer_running;

        /* guarded by mu */
        pthread_mutex_t mu;
        /* broadcast; the timer, wait_synced, refill, reflector_stop and free wait on it */
        pthread_cond_t cond;
        /* What the last listing contained, changed by the events of the store's watch. */
        struct hfd_object_tree trees[HFD_SLOTS_MAX];
        /*
         * Later versions of objects in `trees`, which writes of this instance have stored. Only
         * writes use them: a reader must not see a change before the watches see it. The store's
         * watch delivers each of them soon, and then it is removed here.
         */
        struct hfd_object_tree newer[HFD_SLOTS_MAX];
        /*
         * By key: placeholders for stored values that are not valid objects, or cannot be decrypted
         * (stored_value.h). They are not served, but the audit needs them.
         */
        struct hfd_object_tree unreadable;
        atomic_uint n_sealed_logged; /* sealed values, since the last filling; not guarded */
        struct hfd_slot_forms forms; /* of objects of custom resources */
        uint64_t revision;
        uint64_t n_fills; /* how often the cache was filled */
        bool synced;      /* the trees have been filled at least once */
        bool stopping;    /* free has begun */

        /* the parts; each header documents which of its members the lock guards */
        struct hfd_event_histories histories;
        struct hfd_reflector reflector;
        struct hfd_listing *filling; /* owned; the running listing; NULL = none */
        struct hfd_consistent_reads reads;
        struct hfd_watchers watchers;
        struct hfd_store_identity identity;
        struct hfd_cache_audit audit;
        struct hfd_store_lag lag;
        struct hfd_store_requests requests;
};

/* Slots below this number may be in use; it grows. Loops need not look at the others. */
static inline size_t hfd_cacher_slots(const struct hfd_cacher *cacher) {
        return hfd_custom_table_slots(cacher->table);
}

static inline hf_nsec hfd_cacher_now(const struct hfd_cacher *cacher) {
        return hf_now(hf_host_clock(cacher->host));
}
