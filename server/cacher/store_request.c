/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the store. A request is tracked from before it is sent until its `done` has returned.
 * The cacher is not freed while a request is tracked, so `done` may use the cacher. The mark of the
 * store's identity is taken before sending, because replies may overtake each other.
 */
#include "server/cacher/store_request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"

void hfd_store_requests_init(struct hfd_store_requests *requests, const struct hf_host *host) {
        static const char *const operations[] = {"get", "list", "txn", "revision"};

        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
                char labels[64];
                (void)snprintf(labels, sizeof labels, "operation=\"%s\"", operations[i]);
                requests->metrics[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                       "etcd_request_duration_seconds",
                                       "Latency of requests to the store, by operation.", labels);
        }
}

enum { OP_GET, OP_LIST, OP_TXN, OP_REVISION };

struct tracked {
        struct hfd_cacher *cacher;
        hfd_store_fn done;
        void *ctx;
        hf_nsec started;
        struct hf_metric *metric;
        struct hfd_store_identity_snapshot sent;
};

/* The cacher may be freed as soon as the last request is untracked. */
static void untrack(struct tracked *t) {
        struct hfd_cacher *cacher = t->cacher;

        free(t);
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->requests.n > 0);
        cacher->requests.n--;
        if (cacher->requests.n == 0 && cacher->stopping)
                pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

static void tracked_done(void *ctx, const struct hfd_store_reply *reply) {
        struct tracked *t = ctx;
        hf_nsec now = hfd_cacher_now(t->cacher);

        hf_metric_observe(t->metric, (double)(now - t->started) / (double)HF_NSEC_PER_SEC);
        /* Any other error was sent by the store itself, so the store is alive. */
        if (reply->error != HF_E_UNAVAILABLE && reply->error != HF_E_TIMEOUT &&
            reply->error != HF_E_CANCELED)
                atomic_store(&t->cacher->requests.heard_at, now);
        hfd_store_identity_check(t->cacher, t->sent, reply);
        t->done(t->ctx, reply);
        untrack(t);
}

static struct tracked *track(struct hfd_cacher *cacher, int op, hfd_store_fn done, void *ctx) {
        struct tracked *t = malloc(sizeof *t);

        if (!t)
                return NULL;
        *t = (struct tracked){.cacher = cacher,
                              .done = done,
                              .ctx = ctx,
                              .started = hfd_cacher_now(cacher),
                              .metric = cacher->requests.metrics[op]};
        pthread_mutex_lock(&cacher->mu);
        t->sent = hfd_store_identity_snapshot_locked(&cacher->identity);
        cacher->requests.n++;
        pthread_mutex_unlock(&cacher->mu);
        return t;
}

/* If the store has refused the request (r), `done` will not be called, so tracking ends here. */
static int started(struct tracked *t, int r) {
        if (r != 0)
                untrack(t);
        return r;
}

int hfd_store_request_get(struct hfd_cacher *cacher, const char *key, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        struct tracked *t = track(cacher, OP_GET, done, ctx);

        return t ? started(t,
                           cacher->store->ops->get(cacher->store, key, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx) {
        struct tracked *t = track(cacher, OP_LIST, done, ctx);

        return t ? started(t, cacher->store->ops->list(cacher->store, prefix, start_key, revision,
                                                       limit, false, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_request_keys(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx) {
        struct tracked *t = track(cacher, OP_LIST, done, ctx);

        return t ? started(t, cacher->store->ops->list(cacher->store, prefix, start_key, revision,
                                                       limit, true, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_request_txn(struct hfd_cacher *cacher, const struct hfd_txn *txn, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        struct tracked *t = track(cacher, OP_TXN, done, ctx);

        return t ? started(t,
                           cacher->store->ops->txn(cacher->store, txn, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_request_revision(struct hfd_cacher *cacher, hf_nsec deadline, hfd_store_fn done,
                               void *ctx) {
        struct tracked *t = track(cacher, OP_REVISION, done, ctx);

        return t ? started(t,
                           cacher->store->ops->revision(cacher->store, deadline, tracked_done, t))
                 : -ENOMEM;
}
