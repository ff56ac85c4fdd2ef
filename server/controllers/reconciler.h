/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loop that leader-only controllers share: cache plus queue. It waits until the cache has reached the revision of the
 * acquiring write, adds a handler (the whole cache is replayed as keys), and works keys off one by one until the term ends:
 * on drain the queue is finished, on abort it is dropped. The handler is gone when it returns.
 */
#include <holdfast/cache.h>
#include <holdfast/leader.h>
#include <holdfast/workqueue.h>

struct hfd_reconciler {
        const char *name;       /* of the queue's metrics */
        struct hf_cache *cache; /* borrowed */
        void *ctx;
        /* Optional, on the cache's thread: an object was seen. False = do not queue it. */
        bool (*observe)(void *ctx, enum hf_event_type type, const char *key, const char *object, size_t n);
        /*
         * Brings one object to where it should be; "ns/name", or "name" for cluster-scoped ones. 0 = done; *ret_again > 0 =
         * look again after that delay; else an error: tried again with the queue's growing delay, but for HF_E_CANCELED,
         * HF_E_NOT_LEADER and HF_E_STALE_TERM, which end nothing by themselves (the term's end is coming).
         */
        int (*reconcile)(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
};

/* Blocks for the term. 0, or an error of the set-up (the controller is then restarted with backoff). */
int hfd_reconciler_run(const struct hfd_reconciler *reconciler, struct hf_term *term);
