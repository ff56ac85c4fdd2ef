/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: a cache's thread only adds keys; workers take and work them; drain and abort
 * reach the queue through wakers, which only close it. The run is on the caller's stack and
 * outlives all of them: handlers are removed (they no longer run then) and workers joined before it
 * is left.
 *
 * Workers come and go: the caller's thread is one from the first to the last; as long as there may
 * be more, one always waits for keys, so that a key that takes long holds up no other. Who takes a
 * key while nobody else waits makes another worker; one that has waited for a while beside others
 * leaves. At rest there is the caller's thread alone.
 *
 * A key that failed comes back through the queue's delay, so nothing that was seen is forgotten
 * while the term lasts; what is open at its end is replayed by the next leader's caches.
 */
#include <holdfast/reconciler.h>

#include <errno.h>
#include <stdlib.h>

#include "base/sized_config.h"
#include "base/thread.h"
#include "client/informer_barrier.h"

#define LINGER (2 * HF_NSEC_PER_SEC) /* how long a worker waits beside others before it leaves */

struct worker {
        struct run *run;
        pthread_t thread;
        enum { FREE, WORKING, LEFT } state; /* guarded by the run's mu; LEFT = to be joined */
};

struct run {
        /* immutable once it works */
        struct hf_reconciler reconciler; /* complete */
        struct hf_term *term;            /* borrowed */
        struct hf_workqueue *queue;      /* owned */
        struct feed *feeds;              /* owned, one per source */

        /* guarded by mu */
        pthread_mutex_t mu;
        struct worker workers[HF_RECONCILER_WORKERS_MAX - 1]; /* beside the caller's thread */
        unsigned n_waiting;                                   /* for a key, or about to */
        bool ending, complained;
};

struct feed {
        struct run *run;
        hf_reconciler_map_fn map;
        struct hf_informer *informer;        /* borrowed */
        struct hf_informer_handler *handler; /* owned by the cache; NULL = not added */
};

/* ---- what goes in ---- */

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {
        struct feed *feed = ctx;
        char key[HF_KEY_MAX];

        if (feed->map)
                feed->map(feed->run->reconciler.ctx, feed->run->queue, type, ns, name, object, n);
        else if (hf_key_make(key, ns, name) == 0)
                (void)hf_workqueue_add(feed->run->queue,
                                       key); /* out of memory: the next event or the next leader's
                                                replay brings it */
}

static int add_handlers(struct run *run) {
        const struct hf_reconciler *reconciler = &run->reconciler;
        int r = 0;

        for (size_t i = 0; r == 0 && i < reconciler->n_sources; i++)
                r = hf_informer_add_handler(run->feeds[i].informer, on_object, &run->feeds[i],
                                            &run->feeds[i].handler);
        return r;
}

static void remove_handlers(struct run *run) {
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                hf_informer_remove_handler(run->feeds[i].informer, run->feeds[i].handler);
}

static int wait_for_caches(struct run *run) {
        const char *acquired_at = hf_term_acquired_at(run->term);
        struct hf_informer **informers =
                calloc(run->reconciler.n_sources, sizeof(struct hf_informer *));

        if (!informers)
                return -ENOMEM;
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                informers[i] = run->feeds[i].informer;
        int r = hf__informer_wait_term(informers, run->reconciler.n_sources,
                                       acquired_at[0] ? acquired_at : NULL,
                                       hf_term_drain(run->term));
        free(informers);
        return r;
}

/* ---- what is done ---- */

static void work_on(struct run *run, const char *key) {
        const struct hf_reconciler *reconciler = &run->reconciler;
        hf_nsec again = 0;

        int r = reconciler->reconcile(reconciler->ctx, run->term, key, &again);
        if (r == 0) {
                hf_workqueue_forget(run->queue, key);
                if (again > 0)
                        (void)hf_workqueue_add_after(run->queue, key, again);
        } else {
                /* That another wrote first is daily life. Of the others no word is lost: when the
                 * term ends, the queue takes nothing more.
                 */
                bool quiet = r == HF_E_CONFLICT || r == HF_E_CANCELED || r == HF_E_NOT_LEADER ||
                             r == HF_E_STALE_TERM;
                hf_log(&hf_term_host(run->term)->log, quiet ? HF_LOG_DEBUG : HF_LOG_WARNING,
                       reconciler->name, "%s: %s; will be tried again", key, hf_strerror(r));
                (void)hf_workqueue_retry(run->queue, key);
        }
}

/* ---- workers ---- */

static void *worker_thread(void *ctx);

/* With fewer threads than asked for the work is slower, not wrong. The lock is held so that the one
 * who joins knows them all. */
static void make_worker_locked(struct run *run) {
        const struct hf_host *host = hf_term_host(run->term);
        struct worker *worker = run->workers,
                      *end = worker +
                             (run->reconciler.n_workers > 1 ? run->reconciler.n_workers - 1 : 0);

        while (worker < end && worker->state == WORKING)
                worker++;
        if (worker == end || run->ending)
                return;
        if (worker->state == LEFT)
                (void)pthread_join(worker->thread,
                                   NULL); /* it is on its way out, and takes no lock any more */
        *worker = (struct worker){.run = run};
        int r = hf__thread_start(host, "hf-worker", worker_thread, worker, &worker->thread);
        if (r < 0) {
                if (!run->complained)
                        hf_log(&host->log, HF_LOG_WARNING, run->reconciler.name,
                               "no thread for a further worker: %s", hf_strerror(r));
                run->complained = true;
                return;
        }
        worker->state = WORKING;
        run->n_waiting++; /* it is about to */
}

static int take(struct run *run, const char **ret_key, bool lingers) {
        struct hf_cancel *abort = hf_term_abort(run->term), *patience = NULL;

        if (lingers && hf_cancel_new(abort, hf_host_clock(hf_term_host(run->term)), &patience) == 0)
                hf_cancel_set_deadline(patience,
                                       hf_now(hf_host_clock(hf_term_host(run->term))) + LINGER);
        int r = hf_workqueue_take(run->queue, patience ? patience : abort, ret_key);
        hf_cancel_unref(patience);
        return r;
}

/* Counted as waiting when it comes, and no more when it returns. */
static void work(struct run *run, bool lingers) {
        bool goes_on = true;

        while (goes_on) {
                const char *key = NULL;
                int r = take(run, &key, lingers);
                (void)pthread_mutex_lock(&run->mu);
                if (r != 0) {
                        /* The time is up: the last who waits stays. Or the term ends. */
                        goes_on = lingers && r == HF_E_CANCELED &&
                                  !hf_cancel_fired(hf_term_abort(run->term)) && !run->ending &&
                                  run->n_waiting == 1;
                        run->n_waiting -= !goes_on;
                } else if (--run->n_waiting == 0) {
                        make_worker_locked(run);
                }
                (void)pthread_mutex_unlock(&run->mu);
                if (r != 0)
                        continue;
                work_on(run, key);
                hf_workqueue_done(run->queue, key);
                (void)pthread_mutex_lock(&run->mu);
                run->n_waiting++;
                (void)pthread_mutex_unlock(&run->mu);
        }
}

static void *worker_thread(void *ctx) {
        struct worker *worker = ctx;
        struct run *run = worker->run;

        work(run, true);
        (void)pthread_mutex_lock(&run->mu);
        worker->state = LEFT;
        (void)pthread_mutex_unlock(&run->mu);
        return NULL;
}

static void join_workers(struct run *run) {
        (void)pthread_mutex_lock(&run->mu);
        run->ending = true;
        (void)pthread_mutex_unlock(&run->mu);
        for (struct worker *worker = run->workers;
             worker < run->workers + HF_RECONCILER_WORKERS_MAX - 1; worker++) {
                (void)pthread_mutex_lock(&run->mu);
                bool made = worker->state != FREE;
                (void)pthread_mutex_unlock(&run->mu);
                if (made)
                        (void)pthread_join(worker->thread, NULL);
        }
}

/* ---- the run ---- */

static void on_drain(void *ctx) { hf_workqueue_drain(ctx); }
static void on_abort(void *ctx) { hf_workqueue_drop(ctx); }

static int lead(struct run *run) {
        struct hf_cancel_waker drain, abort;

        hf_cancel_add_waker(hf_term_drain(run->term), &drain, on_drain, run->queue);
        hf_cancel_add_waker(hf_term_abort(run->term), &abort, on_abort, run->queue);
        int r = wait_for_caches(run);
        if (r == 0)
                r = add_handlers(run);
        if (r == 0) {
                hf_term_started(run->term);
                run->n_waiting = 1;
                work(run, false);
                join_workers(run);
        }
        remove_handlers(run);
        hf_cancel_remove_waker(&abort);
        hf_cancel_remove_waker(&drain);
        return r == HF_E_CANCELED ? 0 : r;
}

static int prepare(struct run *run, const struct hf_reconciler *given) {
        struct hf_reconciler *reconciler = &run->reconciler;

        if (hf__sized_config_take(reconciler, sizeof *reconciler,
                                  HF__SIZED_CONFIG_LEAST(struct hf_reconciler, n_sources),
                                  given) != 0)
                return -EINVAL;
        if (!reconciler->name || !reconciler->reconcile || !reconciler->sources ||
            reconciler->n_sources == 0 || reconciler->n_workers > HF_RECONCILER_WORKERS_MAX)
                return -EINVAL;
        run->feeds = calloc(reconciler->n_sources, sizeof *run->feeds);
        if (!run->feeds)
                return -ENOMEM;
        for (size_t i = 0; i < reconciler->n_sources; i++) {
                if (!reconciler->sources[i].informer)
                        return -EINVAL;
                run->feeds[i] = (struct feed){.run = run,
                                              .map = reconciler->sources[i].map,
                                              .informer = reconciler->sources[i].informer};
        }
        int r = hf_workqueue_new(hf_term_host(run->term), reconciler->name, &run->queue);
        if (r == 0 && reconciler->retries_per_s > 0)
                hf_workqueue_limit_retries(run->queue, reconciler->retries_per_s,
                                           reconciler->retry_burst);
        return r;
}

int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term) {
        struct run run = {.term = term};

        if (!reconciler || !term)
                return -EINVAL;
        int r = hf__mutex_init(&run.mu);
        if (r != 0)
                return r;
        r = prepare(&run, reconciler);
        if (r == 0)
                r = lead(&run);
        hf_workqueue_free(run.queue);
        free(run.feeds);
        (void)pthread_mutex_destroy(&run.mu);
        return r;
}
