/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the store. A request is tracked from before it is sent until its `done` has returned.
 *
 * Invariants: the cacher is not freed while a request is tracked, so `done` may use the cacher. The
 * snapshot of the store's identity is made before the request is sent, because a newer reply may
 * arrive before this one.
 */
#include "server/cacher/sync/store_request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/cacher_private.h"

void hfd_store_requests_init(struct hfd_store_requests *requests, const struct hf_host *host) {
        static const char *const operations[HFD_STORE_N_OPERATIONS] = {
                [HFD_STORE_GET] = "get",
                [HFD_STORE_LIST] = "list",
                [HFD_STORE_TXN] = "txn",
                [HFD_STORE_REVISION] = "revision",
        };

        for (size_t i = 0; i < HFD_STORE_N_OPERATIONS; i++) {
                char labels[64];
                (void)snprintf(labels, sizeof labels, "operation=\"%s\"", operations[i]);
                requests->metrics[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                       "etcd_request_duration_seconds",
                                       "Latency of requests to the store, by operation.", labels);
        }
}

struct tracked_request {
        struct hfd_cacher *cacher;
        hfd_store_fn done;
        void *ctx;
        hf_nsec started; /* boot time */
        struct hf_metric *metric;
        struct hfd_store_identity_snapshot identity; /* before the request was sent */
        bool writes;                                 /* a transaction with operations */
};

/* hfd_cacher_free may free the cacher as soon as the last request is untracked. */
static void untrack_request(struct tracked_request *request) {
        struct hfd_cacher *cacher = request->cacher;

        free(request);
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->requests.n > 0);
        cacher->requests.n--;
        if (cacher->requests.n == 0 && cacher->stopping)
                pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

static void on_tracked_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct tracked_request *request = ctx;
        hf_nsec now = hfd_cacher_now(request->cacher);

        hf_metric_observe(request->metric,
                          (double)(now - request->started) / (double)HF_NSEC_PER_SEC);
        /* These errors may mean that the store is unreachable; all others are from the store. */
        if (reply->error != HF_E_UNAVAILABLE && reply->error != HF_E_TIMEOUT &&
            reply->error != HF_E_CANCELED)
                atomic_store(&request->cacher->requests.last_contact, now);
        hfd_store_room_replied(&request->cacher->requests.room, request->writes, reply, now);
        hfd_store_identity_check(request->cacher, request->identity, reply);
        hfd_store_lag_replied(request->cacher, request->identity, request->writes, reply);
        request->done(request->ctx, reply);
        untrack_request(request);
}

static struct tracked_request *track_request(struct hfd_cacher *cacher,
                                             enum hfd_store_operation operation, hfd_store_fn done,
                                             void *ctx) {
        struct tracked_request *request = malloc(sizeof *request);

        if (!request)
                return NULL;
        *request = (struct tracked_request){.cacher = cacher,
                                            .done = done,
                                            .ctx = ctx,
                                            .started = hfd_cacher_now(cacher),
                                            .metric = cacher->requests.metrics[operation]};
        pthread_mutex_lock(&cacher->mu);
        request->identity = hfd_store_identity_snapshot_locked(&cacher->identity);
        cacher->requests.n++;
        pthread_mutex_unlock(&cacher->mu);
        return request;
}

/*
 * r is the result of starting the request. If the store has refused it, no callback follows, so
 * tracking ends here.
 */
static int check_started(struct tracked_request *request, int r) {
        if (r != 0)
                untrack_request(request);
        return r;
}

int hfd_store_request_get(struct hfd_cacher *cacher, const char *key, bool urgent, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        struct tracked_request *request = track_request(cacher, HFD_STORE_GET, done, ctx);

        return request ? check_started(request,
                                       cacher->store->ops->get(cacher->store, key, urgent, deadline,
                                                               on_tracked_reply, request))
                       : -ENOMEM;
}

/* keys_only: the replies have no values. */
static int list_range(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                      uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                      hfd_store_fn done, void *ctx) {
        struct tracked_request *request = track_request(cacher, HFD_STORE_LIST, done, ctx);

        return request ? check_started(request, cacher->store->ops->list(cacher->store, prefix,
                                                                         start_key, revision, limit,
                                                                         keys_only, deadline,
                                                                         on_tracked_reply, request))
                       : -ENOMEM;
}

int hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx) {
        return list_range(cacher, prefix, start_key, revision, limit, false, deadline, done, ctx);
}

int hfd_store_request_keys(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx) {
        return list_range(cacher, prefix, start_key, revision, limit, true, deadline, done, ctx);
}

int hfd_store_request_txn(struct hfd_cacher *cacher, const struct hfd_txn *txn, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        struct tracked_request *request = track_request(cacher, HFD_STORE_TXN, done, ctx);

        if (request)
                request->writes = txn->n_ops > 0;
        return request ? check_started(request,
                                       cacher->store->ops->txn(cacher->store, txn, deadline,
                                                               on_tracked_reply, request))
                       : -ENOMEM;
}

int hfd_store_request_revision(struct hfd_cacher *cacher, hf_nsec deadline, hfd_store_fn done,
                               void *ctx) {
        struct tracked_request *request = track_request(cacher, HFD_STORE_REVISION, done, ctx);

        return request ? check_started(request,
                                       cacher->store->ops->revision(cacher->store, deadline,
                                                                    on_tracked_reply, request))
                       : -ENOMEM;
}
