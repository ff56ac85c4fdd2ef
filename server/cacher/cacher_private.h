/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The inside of the cacher, for the files of server/cacher only. Lock and invariants: cacher.h. */
#include <pthread.h>

#include <holdfast/host.h>

#include "server/cacher/cacher.h"
#include "server/cacher/consistent_read.h"
#include "server/cacher/event_history.h"
#include "server/cacher/object_tree.h"
#include "server/cacher/reflector.h"
#include "server/cacher/store_identity.h"
#include "server/cacher/store_request.h"
#include "server/cacher/watcher.h"

#define HFD_CACHER_PREFIX_MAX 256

struct hfd_cacher {
        /* immutable after new */
        const struct hf_host *host; /* borrowed */
        struct hfd_store *store;    /* borrowed */
        char prefix[HFD_CACHER_PREFIX_MAX];

        /* the creator's: start and free */
        pthread_t timer_thread;
        bool timer_running;

        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t cond; /* wakes the timer, wait_synced, and who waits for the last request */
        struct hfd_object_tree trees[HFD_RESOURCES_MAX];
        /*
         * By key: stored values that are not valid objects. They are not served, but the audit
         * expects them.
         */
        struct hfd_object_tree unreadable;
        uint64_t revision;
        bool synced;   /* the trees were filled once */
        bool stopping; /* free has begun */

        /* the parts; each header says what of it the lock guards */
        struct hfd_event_history history;
        struct hfd_reflector reflector;
        struct hfd_consistent_reads reads;
        struct hfd_watchers watchers;
        struct hfd_store_identity identity;
        struct hfd_store_requests requests;
};

static inline hf_nsec hfd_cacher_now(const struct hfd_cacher *cacher) {
        return hf_now(hf_host_clock(cacher->host));
}
