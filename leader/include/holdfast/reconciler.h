/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reconcile loop that most controllers need: informers report which keys have changed, one
 * queue holds the keys, and workers reconcile one key at a time. hf_reconciler_run runs such a loop
 * for one term, inside a controller's run(), and frees everything before it returns.
 *
 * What a run does:
 *
 *   1. It waits until every informer has everything that was written before the term began, as
 *      hf_informer_wait_term does (HF_EVERY_INSTANCE: until it has its first list).
 *   2. It adds a handler to each informer. The handler enqueues a key for every object in the
 *      cache, and then for every change. So a change made while no process led reaches the next
 *      leader. The controller now counts as started (hf_term_started).
 *      While memory is short, the informer's thread waits until the event's keys are in the queue.
 *   3. Workers take the keys. Two workers never work on the same key at a time.
 *   4. On drain, the workers finish the queued keys. Keys that wait for a delay are dropped; the
 *      next leader gets the keys of all objects that still exist.
 *      On abort, all queued keys are dropped. A reconcile under way runs on, but a leader's client
 *      refuses its requests.
 *   5. The workers are joined, the handlers removed, the queue freed.
 *
 * A reconcile function must read the current state from the caches (hf_informer_get), because
 * several changes of an object are merged into one key.
 */
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/workqueue.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_RECONCILER_WORKERS_MAX 64

/*
 * Calls hf_workqueue_add for each key that an informer's event affects. For example, an event of a
 * namespace enqueues the workspace that owns it. Called on the informer's thread; must not block.
 * The object (n bytes of JSON) is borrowed for the call.
 *
 * Returns 0, or -ENOMEM: an add failed with it, or the function's own work did. It is then called
 * again with the same event after a pause, until it returns something else or the term ends, so
 * that no key is lost. Adding a key twice does no harm. Any other result counts as 0.
 */
typedef int (*hf_reconciler_map_fn)(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                                    const char *ns, const char *name, const char *object, size_t n);

struct hf_reconciler_source {
        size_t size;                  /* sizeof(struct hf_reconciler_source) */
        struct hf_informer *informer; /* required, started; borrowed */
        hf_reconciler_map_fn map;     /* NULL = the object's own key: "namespace/name", or "name" */
};

struct hf_reconciler {
        size_t size;      /* sizeof(struct hf_reconciler) */
        const char *name; /* required; used in the queue's metrics and in the log */
        const struct hf_reconciler_source *sources; /* required; n_sources; borrowed */
        size_t n_sources;
        unsigned n_workers; /* maximum, up to HF_RECONCILER_WORKERS_MAX; 0 = 1. The first one is
                               started for a key, the others under load. If no thread can be
                               started, the calling thread is the first worker */
        /* A rate limit for the retries of all keys together, in addition to the growing delay of
         * each key. 0 = no limit. Kubernetes' controllers use 10 per second and a burst of 100. */
        double retries_per_s;
        unsigned retry_burst; /* 0 = 1 */
        /*
         * Brings the object that key names to its desired state; the object may have been deleted.
         * 0 = done, and if *ret_again > 0 the key is enqueued again after that delay. An error: the
         * key is retried with a growing delay until the term ends. HF_E_CONFLICT and the errors
         * that a term's end causes (HF_E_CANCELED, HF_E_NOT_LEADER, HF_E_STALE_TERM) are logged at
         * debug level only. Called on a worker's thread; must return soon after hf_term_abort has
         * fired.
         */
        int (*reconcile)(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again);
        void *ctx; /* passed to reconcile and to each map; borrowed */
};

/*
 * Blocks until the term ends, then returns 0. An error means that the loop could not be set up; the
 * controller's run() should return it, and is then called again with backoff. -EINVAL: a `size` is
 * wrong, a required member is missing, n_workers is too large, or an informer has one_revision but
 * hf_term_acquired_at is neither "" nor a number. Thread: the controller's own.
 */
HF_MUST_CHECK int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term);

#ifdef __cplusplus
}
#endif
