/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what: the cache's thread only adds keys; the controller's own thread (the caller of run) takes and works them;
 * drain and abort reach the queue through wakers, which only close it. A key that failed comes back through the queue's
 * delay, so nothing that was seen is forgotten while the term lasts; what is open at its end is replayed by the next
 * leader's cache.
 */
#include "server/controllers/reconciler.h"

#include <stdio.h>

struct run {
        const struct hfd_reconciler *reconciler;
        struct hf_workqueue *queue;
};

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name, const char *object, size_t n) {
        struct run *run = ctx;
        char key[2 * (HF_NAME_MAX + 1) + 1];

        (void)snprintf(key, sizeof key, "%s%s%s", ns ? ns : "", ns && *ns ? "/" : "", name);
        if (!run->reconciler->observe || run->reconciler->observe(run->reconciler->ctx, type, key, object, n))
                (void)hf_workqueue_add(run->queue, key); /* out of memory: the next event or the next leader's replay brings it */
}

static void on_drain(void *ctx) { hf_workqueue_drain(ctx); }
static void on_abort(void *ctx) { hf_workqueue_drop(ctx); }

static void work(struct run *run, struct hf_term *term) {
        const char *key;

        while (hf_workqueue_take(run->queue, hf_term_abort(term), &key) == 0) {
                hf_nsec again = 0;
                int r = run->reconciler->reconcile(run->reconciler->ctx, term, key, &again);

                if (r == 0) {
                        hf_workqueue_forget(run->queue, key);
                        if (again > 0)
                                (void)hf_workqueue_add_after(run->queue, key, again);
                } else if (r != HF_E_CANCELED && r != HF_E_NOT_LEADER && r != HF_E_STALE_TERM) {
                        hf_log(&hf_term_host(term)->log, HF_LOG_WARNING, run->reconciler->name, "%s: %s; will be tried again", key,
                               hf_strerror(r));
                        (void)hf_workqueue_retry(run->queue, key);
                }
                hf_workqueue_done(run->queue, key);
        }
}

int hfd_reconciler_run(const struct hfd_reconciler *reconciler, struct hf_term *term) {
        struct run run = {.reconciler = reconciler};
        struct hf_cancel_waker drain, abort;
        struct hf_cache_handler *handler = NULL;
        int r = hf_workqueue_new(hf_term_host(term), reconciler->name, &run.queue);

        if (r)
                return r;
        hf_cancel_add_waker(hf_term_drain(term), &drain, on_drain, run.queue);
        hf_cancel_add_waker(hf_term_abort(term), &abort, on_abort, run.queue);
        r = hf_cache_wait(reconciler->cache, hf_term_acquired_at(term), hf_term_drain(term));
        if (r == 0)
                r = hf_cache_add_handler(reconciler->cache, on_object, &run, &handler);
        if (r == 0) {
                work(&run, term);
                hf_cache_remove_handler(reconciler->cache, handler);
        }
        hf_cancel_remove_waker(&abort);
        hf_cancel_remove_waker(&drain);
        hf_workqueue_free(run.queue);
        return r == HF_E_CANCELED ? 0 : r;
}
