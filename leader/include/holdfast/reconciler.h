/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loop that controllers share: caches that say which keys to look at, one queue, workers that
 * bring what a key names to where it should be. It is made for one term, from a controller's run,
 * and leaves nothing behind.
 *
 *      every cache has reached the revision of the acquiring write (for HF_EVERY_INSTANCE: has its
 * first list) a handler is added to each: the whole cache is replayed as keys, and what changes
 * from then on follows. So what changed while nobody led is acted on by the next leader. Now the
 * controller counts as started (hf_term_started) workers take the keys, each key by one worker at a
 * time drain:  what is queued is finished, keys that wait for their delay are dropped; the next
 * leader's replay brings them abort:  what is queued is dropped at once; what is in hand finds its
 * client refusing the handlers are removed, the workers joined, the queue freed
 *
 * Reconcile from what the caches say now (hf_informer_get), never from what an event said: several
 * changes may come as one key.
 */
#include <stddef.h>

#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/workqueue.h>

#define HF_RECONCILER_WORKERS_MAX 64

/*
 * Says which keys an event of a cache concerns, with hf_workqueue_add for each: an event of a
 * namespace may enqueue the workspace that owns it. Runs on the cache's thread, must not block; the
 * object is borrowed until it returns.
 */
typedef void (*hf_reconciler_map_fn)(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                                     const char *ns, const char *name, const char *object,
                                     size_t n);

struct hf_reconciler_source {
        struct hf_informer *informer; /* required, started; borrowed */
        hf_reconciler_map_fn map;     /* NULL = the object's own key, "namespace/name", or "name" */
};

struct hf_reconciler {
        size_t size;
        const char *name; /* required; of the queue's metrics and the log */
        const struct hf_reconciler_source *sources; /* required, n_sources; borrowed */
        size_t n_sources;
        unsigned n_workers; /* at most; 0 = 1; up to HF_RECONCILER_WORKERS_MAX. The caller's thread
                               is one, others live while keys wait */
        /* All retries together, beside each key's own growing delay; 0 = no limit. The field's
         * controllers have 10 and 100. */
        double retries_per_s;
        unsigned retry_burst; /* 0 = 1 */
        /*
         * Brings what key names to where it should be. 0 = done; *ret_again > 0 = look again after
         * that delay; else an error: tried again with the queue's growing delay, as long as the
         * term goes on. HF_E_CONFLICT, and what tells of the term's end (HF_E_CANCELED,
         * HF_E_NOT_LEADER, HF_E_STALE_TERM), is logged as detail only. Runs on a worker's thread;
         * gives way to hf_term_abort.
         */
        int (*reconcile)(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
        void *ctx; /* of reconcile and the maps; borrowed */
};

/*
 * Blocks for the term. Returns 0, or an error of the set-up: returned from the controller's run it
 * is begun again with backoff. Thread: the controller's own.
 */
int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term);
