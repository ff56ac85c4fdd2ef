/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reconcile loop of one controller in one term.
 *
 * Threads: an informer's thread adds keys to the queue. If there is no memory for a key, the thread
 * waits and tries again: it is the only one that has the event, and a deleted object has no later
 * event. Other events wait meanwhile, also those of other informers on the same thread. Workers
 * remove keys and reconcile them. The wakers of drain and abort only close the queue.
 *
 * The number of workers depends on the load. Without keys there is none: the calling thread waits
 * for a key, and then for the first worker, to which it gives the key. A slow key must not delay
 * the others: if a worker takes a key, and no worker waits for the next one after HELP_AFTER, the
 * calling thread starts another worker, up to the configured maximum. Most keys are done earlier,
 * and at the beginning of a term the further workers of all controllers would delay the first
 * writes. A worker leaves when it has waited for LINGER and another worker waits too. The first
 * worker joins the others and leaves last, so that an idle loop keeps no thread's memory.
 *
 * Invariants:
 *  - struct run is on the stack of run_until. Before that function returns, all handlers are
 *    removed (then none runs any more), all workers are joined and both wakers are removed.
 *  - While the term lasts, no key is lost: a handler returns only when the event's keys are in the
 *    queue, and a key that failed returns after the queue's delay, which needs no memory. Keys left
 *    at the term's end are dropped. The next leader's informers report each object that still
 *    exists, so its key returns. The key of a deleted object does not: a controller that must clean
 *    up after an object needs a finalizer.
 */
#include <holdfast/reconciler.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/sized_struct.h"
#include "base/thread.h"
#include "leader/reconciler_until.h"

#define LINGER      (2 * HF_NSEC_PER_SEC)    /* an idle worker leaves after this time */
#define HELP_AFTER  (2 * HF_NSEC_PER_MSEC)   /* before a further worker is started */
#define NOMEM_PAUSE (100 * HF_NSEC_PER_MSEC) /* before an event is mapped again */

struct worker {
        struct run *run;
        pthread_t thread;
        enum { FREE, WORKING, LEFT } state; /* guarded by run->mu; LEFT = must be joined */
};

struct run {
        /* immutable once a worker runs */
        struct hf_reconciler reconciler; /* a copy, with all members of this version */
        struct hf_term *term;            /* borrowed */
        struct hf_workqueue *queue;      /* owned */
        struct hf_cancel *end;           /* owned; fires with the `until` of run_until (NULL: at the
                                            drain), or when the run ends before that */
        struct feed *feeds;              /* owned, one per source */
        struct worker *workers;          /* owned; all but the first; mu guards their states */
        unsigned n_more;                 /* number of `workers` */

        pthread_mutex_t mu;
        pthread_cond_t changed; /* has_first or help_at; only the calling thread waits */
        /* guarded by mu */
        unsigned n_waiting; /* workers that have no key, or have one and have not begun with it */
        bool has_first;     /* the first worker has a thread, so the calling thread starts others */
        hf_nsec help_at;    /* boot time at which the calling thread starts another worker, if no
                               worker waits then; HF_NSEC_NEVER = nobody has asked */
        bool ending;        /* no further worker is started */
        bool has_warned;    /* it was reported that no thread could be created */
};

struct feed {
        struct run *run;
        hf_reconciler_map_fn map;
        struct hf_informer *informer;        /* borrowed */
        struct hf_informer_handler *handler; /* owned by the informer; NULL = not added */
};

/* ---- enqueueing keys ---- */

static int map_own_key(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                       const char *ns, const char *name, const char *object, size_t n) {
        char key[HF_KEY_MAX];
        int r = hf_key_make(key, ns, name);

        return r != 0 ? r : hf_workqueue_add(queue, key);
}

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {
        const struct feed *feed = ctx;
        const struct run *run = feed->run;
        const struct hf_host *host = hf_term_host(run->term);
        bool has_warned = false;

        while (feed->map(run->reconciler.ctx, run->queue, type, ns, name, object, n) == -ENOMEM) {
                if (!has_warned)
                        hf_log(&host->log, HF_LOG_WARNING, run->reconciler.name,
                               "out of memory: the event of %s is tried again", name);
                has_warned = true;
                hf_nsec until = hf_now(hf_host_clock(host)) + NOMEM_PAUSE;
                if (hf_cancel_wait(run->end, until) == HF_E_CANCELED)
                        return;
        }
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
        hf_cancel_fire(run->end, HF_CANCEL_STOPPING); /* a handler may wait for memory */
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                hf_informer_remove_handler(run->feeds[i].informer, run->feeds[i].handler);
}

static int wait_for_caches(struct run *run) {
        struct hf_informer **informers =
                calloc(run->reconciler.n_sources, sizeof(struct hf_informer *));

        if (!informers)
                return -ENOMEM;
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                informers[i] = run->feeds[i].informer;
        int r = hf_informer_wait_term(informers, run->reconciler.n_sources,
                                      hf_term_acquired_at(run->term), run->end);
        free(informers);
        return r;
}

/* ---- reconciling ---- */

static void reconcile_key(struct run *run, const char *key) {
        const struct hf_reconciler *reconciler = &run->reconciler;
        hf_nsec requeue_after = 0;

        int r = reconciler->reconcile(reconciler->ctx, run->term, key, &requeue_after);
        if (r == 0) {
                hf_workqueue_forget(run->queue, key);
                /* Neither this nor the retry below can fail, because the queue has the key. */
                if (requeue_after > 0)
                        (void)hf_workqueue_add_after(run->queue, key, requeue_after);
        } else {
                /* A conflict is normal: another client wrote first. The other three errors are
                 * caused by the end of the term. */
                bool quiet = r == HF_E_CONFLICT || r == HF_E_CANCELED || r == HF_E_NOT_LEADER ||
                             r == HF_E_STALE_TERM;
                hf_log(&hf_term_host(run->term)->log, quiet ? HF_LOG_DEBUG : HF_LOG_WARNING,
                       reconciler->name, "%s: %s; the key will be retried", key, hf_strerror(r));
                (void)hf_workqueue_retry(run->queue, key);
        }
}

/* ---- workers ---- */

static void *worker_main(void *ctx);

/* Starts another worker, if the limit allows it. mu is held, so that join_workers sees every
 * worker. If the thread cannot be created, the work only becomes slower. Returns -errno when that
 * happens for the first time in this run, else 0. */
static int start_worker_locked(struct run *run) {
        hf__mutex_assert_held(&run->mu);
        const struct hf_host *host = hf_term_host(run->term);
        struct worker *worker = run->workers, *end = worker + run->n_more;

        while (worker < end && worker->state == WORKING)
                worker++;
        if (worker == end || run->ending)
                return 0;
        /* A worker sets LEFT in its last critical section, so this join is short. */
        if (worker->state == LEFT)
                (void)hf__thread_join(worker->thread);
        *worker = (struct worker){.run = run};
        int r = hf__thread_start(host, "hf-worker", worker_main, worker, &worker->thread);
        if (r < 0) {
                bool is_first = !run->has_warned;
                run->has_warned = true;
                return is_first ? r : 0;
        }
        worker->state = WORKING;
        run->n_waiting++; /* counted from here, because it begins by waiting */
        return 0;
}

/* All workers are busy. The thread that called run_until starts another one later
 * (start_helpers). It cannot if it is itself the first worker, so then another one is started at
 * once. Returns as start_worker_locked. */
static int ask_for_help_locked(struct run *run) {
        hf__mutex_assert_held(&run->mu);
        if (!run->has_first)
                return start_worker_locked(run);
        if (run->n_more > 0 && run->help_at == HF_NSEC_NEVER) {
                run->help_at = hf_now(hf_host_clock(hf_term_host(run->term))) + HELP_AFTER;
                pthread_cond_signal(&run->changed);
        }
        return 0;
}

static void report_no_worker(const struct run *run, int error) {
        if (error < 0)
                hf_log(&hf_term_host(run->term)->log, HF_LOG_WARNING, run->reconciler.name,
                       "cannot start another worker: %s", hf_strerror(error));
}

/* Joins the workers that have left. False: besides the first one no worker runs any more. */
static bool join_left_locked(struct run *run) {
        bool any = false;

        hf__mutex_assert_held(&run->mu);
        for (struct worker *worker = run->workers; worker < run->workers + run->n_more; worker++) {
                any = any || worker->state == WORKING;
                if (worker->state == LEFT) {
                        (void)hf__thread_join(worker->thread); /* short, because it is LEFT */
                        worker->state = FREE;
                }
        }
        return any;
}

/* Takes a key as hf_workqueue_take does, but returns HF_E_CANCELED also if none comes within
 * LINGER. (Without memory for the token it waits as long as it takes.) */
static int wait_for_key(struct run *run, const char **ret_key) {
        struct hf_cancel *abort = hf_term_abort(run->term), *linger = NULL;

        if (hf_cancel_new(abort, hf_host_clock(hf_term_host(run->term)), &linger) == 0)
                hf_cancel_set_deadline(linger,
                                       hf_now(hf_host_clock(hf_term_host(run->term))) + LINGER);
        int r = hf_workqueue_take(run->queue, linger ? linger : abort, ret_key);
        hf_cancel_unref(linger);
        return r;
}

/* Whether a worker that got no key continues. If the run ends, no worker does. Otherwise LINGER has
 * passed: the first worker stays as long as there are others, because it joins them. Another one
 * stays if no other worker waits. */
static bool stays_locked(const struct run *run, int error, bool is_first, bool has_others) {
        hf__mutex_assert_held(&run->mu);
        if (error != HF_E_CANCELED || run->ending || hf_cancel_fired(hf_term_abort(run->term)))
                return false;
        return is_first ? has_others : run->n_waiting == 1;
}

/* The caller has counted this worker in n_waiting. The worker removes itself from the count before
 * it returns. first: the key of the first worker, which has been taken already; NULL = this is
 * another worker. */
static void run_worker(struct run *run, const char *first) {
        const bool is_first = first != NULL;
        bool stays = true, has_others = false;

        while (stays) {
                const char *key = first;
                int r = key ? 0 : wait_for_key(run, &key), no_thread = 0;
                first = NULL;
                (void)pthread_mutex_lock(&run->mu);
                assert(run->n_waiting > 0);
                if (is_first)
                        has_others = join_left_locked(run);
                if (r != 0) {
                        stays = stays_locked(run, r, is_first, has_others);
                        run->n_waiting -= !stays;
                } else if (--run->n_waiting == 0) {
                        no_thread = ask_for_help_locked(run);
                }
                (void)pthread_mutex_unlock(&run->mu);
                report_no_worker(run, no_thread);
                if (r != 0)
                        continue;
                reconcile_key(run, key);
                hf_workqueue_done(run->queue, key);
                (void)pthread_mutex_lock(&run->mu);
                run->n_waiting++;
                (void)pthread_mutex_unlock(&run->mu);
        }
}

static void *worker_main(void *ctx) {
        struct worker *worker = ctx;
        struct run *run = worker->run;

        run_worker(run, NULL);
        (void)pthread_mutex_lock(&run->mu);
        worker->state = LEFT;
        (void)pthread_mutex_unlock(&run->mu);
        return NULL;
}

struct first_worker {
        struct run *run;
        const char *key; /* borrowed from the queue */
};

static void *first_worker_main(void *ctx) {
        const struct first_worker *first = ctx;

        run_worker(first->run, first->key);
        (void)pthread_mutex_lock(&first->run->mu);
        first->run->has_first = false;
        pthread_cond_signal(&first->run->changed);
        (void)pthread_mutex_unlock(&first->run->mu);
        return NULL;
}

/* Starts the further workers that the load needs, until the first worker has left. */
static void start_helpers(struct run *run) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(run->term));

        (void)pthread_mutex_lock(&run->mu);
        while (run->has_first) {
                if (run->help_at > hf_now(clock)) {
                        (void)clock->wait(clock->ctx, &run->changed, &run->mu, run->help_at);
                        continue;
                }
                run->help_at = HF_NSEC_NEVER;
                int r = run->n_waiting == 0 ? start_worker_locked(run) : 0;
                (void)pthread_mutex_unlock(&run->mu);
                report_no_worker(run, r);
                (void)pthread_mutex_lock(&run->mu);
        }
        run->help_at = HF_NSEC_NEVER;
        (void)pthread_mutex_unlock(&run->mu);
}

/* Returns when the first worker has left. The calling thread only waits and starts threads, so it
 * needs little memory however much the work takes. If there is no thread for the first worker, the
 * calling thread is that worker. */
static void run_first_worker(struct run *run, const char *key) {
        struct first_worker first = {.run = run, .key = key};
        pthread_t thread;

        (void)pthread_mutex_lock(&run->mu);
        run->n_waiting++;
        run->has_first = true; /* set here, because the thread sets it to false at its end */
        (void)pthread_mutex_unlock(&run->mu);
        int r = hf__thread_start(hf_term_host(run->term), "hf-worker", first_worker_main, &first,
                                 &thread);
        if (r == 0) {
                start_helpers(run);
                (void)hf__thread_join(thread);
                return;
        }
        (void)pthread_mutex_lock(&run->mu);
        run->has_first = false;
        (void)pthread_mutex_unlock(&run->mu);
        run_worker(run, key);
}

/* Returns after `end` has fired and no key is ready, or after an abort: the queue then refuses to
 * hand out keys. All workers but the first may still have keys. */
static void run_workers(struct run *run) {
        const char *key;

        while (hf_workqueue_take(run->queue, hf_term_abort(run->term), &key) == 0)
                run_first_worker(run, key);
}

static void join_workers(struct run *run) {
        (void)pthread_mutex_lock(&run->mu);
        run->ending = true;
        (void)pthread_mutex_unlock(&run->mu);
        for (struct worker *worker = run->workers; worker < run->workers + run->n_more; worker++) {
                (void)pthread_mutex_lock(&run->mu);
                bool made = worker->state != FREE;
                (void)pthread_mutex_unlock(&run->mu);
                if (made)
                        (void)hf__thread_join(worker->thread);
        }
}

/* ---- the term ---- */

static void on_drain(void *ctx) { hf_workqueue_drain(ctx); }
static void on_abort(void *ctx) { hf_workqueue_drop(ctx); }

static int run_term(struct run *run) {
        struct hf_cancel_waker drain, abort;

        hf_cancel_add_waker(run->end, &drain, on_drain, run->queue);
        hf_cancel_add_waker(hf_term_abort(run->term), &abort, on_abort, run->queue);
        int r = wait_for_caches(run);
        if (r == 0)
                r = add_handlers(run);
        if (r == 0) {
                hf_term_started(run->term);
                run_workers(run);
                join_workers(run);
                assert(run->n_waiting == 0);
        }
        remove_handlers(run);
        hf_cancel_remove_waker(&abort);
        hf_cancel_remove_waker(&drain);
        return r == HF_E_CANCELED ? 0 : r;
}

static const struct hf__sized sized_reconciler = HF__SIZED(struct hf_reconciler, n_sources);
static const struct hf__sized sized_source = HF__SIZED(struct hf_reconciler_source, informer);

static int prepare_run(struct run *run, const struct hf_reconciler *given,
                       struct hf_cancel *until) {
        struct hf_reconciler *reconciler = &run->reconciler;

        int r = hf__sized_copy(&sized_reconciler, reconciler, given, NULL);
        if (r != 0)
                return r;
        if (!reconciler->name || !reconciler->reconcile || !reconciler->sources ||
            reconciler->n_sources == 0 || reconciler->n_workers > HF_RECONCILER_WORKERS_MAX)
                return -EINVAL;
        run->n_more = reconciler->n_workers > 1 ? reconciler->n_workers - 1 : 0;
        /* One more, because calloc of nothing may return NULL. */
        run->workers = calloc(run->n_more + 1, sizeof *run->workers);
        run->feeds = calloc(reconciler->n_sources, sizeof *run->feeds);
        if (!run->workers || !run->feeds)
                return -ENOMEM;
        for (size_t i = 0; i < reconciler->n_sources; i++) {
                struct hf_reconciler_source source;
                r = hf__sized_copy_at(&sized_source, &source, reconciler->sources, i, NULL);
                if (r != 0 || !source.informer)
                        return -EINVAL;
                run->feeds[i] =
                        (struct feed){.run = run, .map = source.map, .informer = source.informer};
                if (!run->feeds[i].map)
                        run->feeds[i].map = map_own_key;
        }
        r = hf_cancel_new(until ? until : hf_term_drain(run->term),
                          hf_host_clock(hf_term_host(run->term)), &run->end);
        if (r == 0)
                r = hf_workqueue_new(hf_term_host(run->term), reconciler->name, &run->queue);
        if (r == 0) /* 0 per second: no limit */
                hf_workqueue_limit_retries(run->queue, reconciler->retries_per_s,
                                           reconciler->retry_burst);
        return r;
}

/* until NULL: until the term drains. */
static int run_until(const struct hf_reconciler *reconciler, struct hf_term *term,
                     struct hf_cancel *until) {
        struct run run = {.term = term, .help_at = HF_NSEC_NEVER};

        if (!reconciler || !term)
                return -EINVAL;
        int r = hf__mutex_cond_init(&run.mu, &run.changed);
        if (r != 0)
                return r;
        r = prepare_run(&run, reconciler, until);
        if (r == 0)
                r = run_term(&run);
        hf_workqueue_free(run.queue);
        hf_cancel_unref(run.end);
        free(run.feeds);
        free(run.workers);
        pthread_cond_destroy(&run.changed);
        (void)pthread_mutex_destroy(&run.mu);
        return r;
}

int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term) {
        return run_until(reconciler, term, NULL);
}

int hf__reconciler_run_until(const struct hf_reconciler *reconciler, struct hf_term *term,
                             struct hf_cancel *until) {
        return until ? run_until(reconciler, term, until) : -EINVAL;
}
