/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: a cache's thread only adds keys; workers take and work them; drain and abort reach the queue through
 * wakers, which only close it. The run is on the caller's stack and outlives all of them: handlers are removed (they no
 * longer run then) and workers joined before it is left.
 *
 * A key that failed comes back through the queue's delay, so nothing that was seen is forgotten while the term lasts; what is
 * open at its end is replayed by the next leader's caches.
 */
#include <holdfast/reconciler.h>

#include <errno.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/thread.h"

struct run {
        struct hf_reconciler reconciler; /* complete */
        struct hf_term *term;            /* borrowed */
        struct hf_workqueue *queue;      /* owned */
        struct feed *feeds;              /* owned, one per source */
        pthread_t workers[HF_RECONCILER_WORKERS_MAX];
        size_t n_workers; /* made, beside the caller's thread */
};

struct feed {
        struct run *run;
        hf_reconciler_map_fn map;
        struct hf_cache *cache;           /* borrowed */
        struct hf_cache_handler *handler; /* owned by the cache; NULL = not added */
};

/* ---- what goes in ---- */

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name, const char *object, size_t n) {
        struct feed *feed = ctx;
        char key[HF_KEY_MAX];

        if (feed->map)
                feed->map(feed->run->reconciler.ctx, feed->run->queue, type, ns, name, object, n);
        else if (hf_key_make(key, ns, name) == 0)
                (void)hf_workqueue_add(feed->run->queue, key); /* out of memory: the next event or the next leader's replay brings it */
}

static int add_handlers(struct run *run) {
        const struct hf_reconciler *reconciler = &run->reconciler;
        int r = 0;

        for (size_t i = 0; r == 0 && i < reconciler->n_sources; i++)
                r = hf_cache_add_handler(run->feeds[i].cache, on_object, &run->feeds[i], &run->feeds[i].handler);
        return r;
}

static void remove_handlers(struct run *run) {
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                hf_cache_remove_handler(run->feeds[i].cache, run->feeds[i].handler);
}

static int wait_for_caches(struct run *run) {
        const char *acquired_at = hf_term_acquired_at(run->term);
        struct hf_cache **caches = calloc(run->reconciler.n_sources, sizeof(struct hf_cache *));

        if (!caches)
                return -ENOMEM;
        for (size_t i = 0; i < run->reconciler.n_sources; i++)
                caches[i] = run->feeds[i].cache;
        int r = hf_cache_wait_all(caches, run->reconciler.n_sources, acquired_at[0] ? acquired_at : NULL, hf_term_drain(run->term));
        free(caches);
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
        } else if (r != HF_E_CANCELED && r != HF_E_NOT_LEADER && r != HF_E_STALE_TERM) {
                enum hf_log_level level = r == HF_E_CONFLICT ? HF_LOG_DEBUG : HF_LOG_WARNING; /* that another wrote first is daily life */
                hf_log(&hf_term_host(run->term)->log, level, reconciler->name, "%s: %s; will be tried again", key, hf_strerror(r));
                (void)hf_workqueue_retry(run->queue, key);
        }
}

static void *work(void *ctx) {
        struct run *run = ctx;
        const char *key;

        while (hf_workqueue_take(run->queue, hf_term_abort(run->term), &key) == 0) {
                work_on(run, key);
                hf_workqueue_done(run->queue, key);
        }
        return NULL;
}

/* With fewer threads than asked for the work is slower, not wrong. */
static void start_workers(struct run *run) {
        const struct hf_host *host = hf_term_host(run->term);

        for (unsigned i = 1; i < run->reconciler.n_workers; i++) {
                int r = hf__thread_start(host, "hf-worker", work, run, &run->workers[run->n_workers]);
                if (r < 0) {
                        hf_log(&host->log, HF_LOG_WARNING, run->reconciler.name, "no thread for worker %u: %s", i + 1, hf_strerror(r));
                        return;
                }
                run->n_workers++;
        }
}

static void join_workers(struct run *run) {
        while (run->n_workers > 0)
                (void)pthread_join(run->workers[--run->n_workers], NULL);
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
                start_workers(run);
                (void)work(run);
                join_workers(run);
        }
        remove_handlers(run);
        hf_cancel_remove_waker(&abort);
        hf_cancel_remove_waker(&drain);
        return r == HF_E_CANCELED ? 0 : r;
}

static int prepare(struct run *run, const struct hf_reconciler *given) {
        struct hf_reconciler *reconciler = &run->reconciler;

        if (hf__config_take(reconciler, sizeof *reconciler, HF__CONFIG_LEAST(struct hf_reconciler, n_sources), given) != 0)
                return -EINVAL;
        if (!reconciler->name || !reconciler->reconcile || !reconciler->sources || reconciler->n_sources == 0 ||
            reconciler->n_workers > HF_RECONCILER_WORKERS_MAX)
                return -EINVAL;
        run->feeds = calloc(reconciler->n_sources, sizeof *run->feeds);
        if (!run->feeds)
                return -ENOMEM;
        for (size_t i = 0; i < reconciler->n_sources; i++) {
                if (!reconciler->sources[i].cache)
                        return -EINVAL;
                run->feeds[i] = (struct feed){.run = run, .map = reconciler->sources[i].map, .cache = reconciler->sources[i].cache};
        }
        int r = hf_workqueue_new(hf_term_host(run->term), reconciler->name, &run->queue);
        if (r == 0 && reconciler->retries_per_s > 0)
                hf_workqueue_limit_retries(run->queue, reconciler->retries_per_s, reconciler->retry_burst);
        return r;
}

int hf_reconciler_run(const struct hf_reconciler *reconciler, struct hf_term *term) {
        struct run run = {.term = term};

        if (!reconciler || !term)
                return -EINVAL;
        int r = prepare(&run, reconciler);
        if (r == 0)
                r = lead(&run);
        hf_workqueue_free(run.queue);
        free(run.feeds);
        return r;
}
