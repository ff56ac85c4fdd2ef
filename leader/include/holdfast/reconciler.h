/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reconcile loop that most controllers need: informers say which keys to look at, one queue
 * holds the keys, and workers reconcile what a key names. hf_reconciler_run makes one for one term,
 * inside a controller's run(), and leaves nothing behind.
 *
 * What a run does:
 *
 *   1. It waits until every informer has reached the revision of the write that began the term
 *      (HF_EVERY_INSTANCE: until it has its first list).
 *   2. It adds a handler to each informer. The whole cache is replayed as keys, then every change
 *      follows. So a change made while nobody led is acted on by the next leader. Now the
 *      controller counts as started (hf_term_started).
 *   3. Workers take the keys. One key is never worked on by two workers at a time.
 *   4. On drain, the queued keys are finished. Keys that wait for a delay are dropped; the next
 *      leader's replay brings them again.
 *      On abort, all queued keys are dropped. What is in hand finds that its client refuses writes.
 *   5. The handlers are removed, the workers joined, the queue freed.
 *
 * Reconcile from what the caches say now (hf_informer_get), never from what an event said: several
 * changes may arrive as one key.
 */
#include <stddef.h>

#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/workqueue.h>

#define HF_RECONCILER_WORKERS_MAX 64

/*
 * Adds the keys that an informer's event concerns, with hf_workqueue_add for each. For example an
 * event of a namespace enqueues the workspace that owns it. Runs on the informer's thread and must
 * not block. The object is borrowed until it returns.
 */
typedef void (*hf_reconciler_map_fn)(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                                     const char *ns, const char *name, const char *object,
                                     size_t n);

struct hf_reconciler_source {
        struct hf_informer *informer; /* required, started; borrowed */
        hf_reconciler_map_fn map;     /* NULL = the object's own key: "namespace/name", or "name" */
};

struct hf_reconciler {
        size_t size;      /* sizeof(struct hf_reconciler) */
        const char *name; /* required; used in the queue's metrics and in the log */
        const struct hf_reconciler_source *sources; /* required; n_sources; borrowed */
        size_t n_sources;
        unsigned n_workers; /* at most; 0 = 1; up to HF_RECONCILER_WORKERS_MAX. The calling thread
                               is one; the others exist only while keys wait */
        /* A limit for all retries together, beside each key's own growing delay. 0 = no limit.
         * Kubernetes' controllers use 10 per second and a burst of 100. */
        double retries_per_s;
        unsigned retry_burst; /* 0 = 1 */
        /*
         * Brings what key names to its desired state. 0 = done; *ret_again > 0: look at it again
         * after that delay. An error: retried with the queue's growing delay, as long as the term
         * goes on. HF_E_CONFLICT, and errors that come from the term's end (HF_E_CANCELED,
         * HF_E_NOT_LEADER, HF_E_STALE_TERM), are logged at debug level only. Runs on a worker's
         * thread; must return soon after hf_term_abort has fired.
         */
        int (*reconcile)(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
        void *ctx; /* of reconcile and the maps; borrowed */
};

/*
 * Blocks until the term ends. 0, or an error of the set-up: the controller's run() returns it and
 * is then called again with backoff. -EINVAL: something required is missing. Thread: the
 * controller's own.
 */
int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term);
