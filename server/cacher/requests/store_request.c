/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of the cacher and the registry to the store. The tracking of a request begins before
 * the request is sent, and ends when its `done` has returned. From each reply the cacher
 * learns whether the store is there, has room and is the same store, and how far it has come.
 *
 * Invariants: the cacher is not freed while a request is tracked, so `done` may use the cacher. The
 * snapshot of the store's identity is made before the request is sent, because a newer reply may
 * arrive before this one.
 */
#include "server/cacher/requests/store_request.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/metrics.h>

#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_lag.h"
#include "server/cacher/requests/store_room.h"
#include "server/cacher/state/cacher_state.h"

/* The operations whose duration is measured. */
enum store_operation { STORE_GET, STORE_LIST, STORE_TXN, STORE_REVISION, N_OPERATIONS };

struct hfd_store_requests {
        struct hf_metric *metrics[N_OPERATIONS]; /* by operation; immutable */
        size_t n;                  /* running requests; guarded by the cacher's lock */
        atomic_llong last_contact; /* boot time of the store's last reply or event */
        struct hfd_store_room room;
};

struct hfd_store_requests *hfd_store_requests_new(const struct hf_host *host) {
        static const char *const operations[N_OPERATIONS] = {
                [STORE_GET] = "get",
                [STORE_LIST] = "list",
                [STORE_TXN] = "txn",
                [STORE_REVISION] = "revision",
        };
        struct hfd_store_requests *requests = calloc(1, sizeof *requests);

        if (!requests)
                return NULL;
        for (size_t i = 0; i < N_OPERATIONS; i++) {
                char labels[64];
                (void)snprintf(labels, sizeof labels, "operation=\"%s\"", operations[i]);
                requests->metrics[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                       "etcd_request_duration_seconds",
                                       "Latency of requests to the store, by operation.", labels);
        }
        return requests;
}

struct hfd_store_requests *hfd_store_requests_free(struct hfd_store_requests *requests) {
        assert(!requests || requests->n == 0);
        free(requests);
        return NULL;
}

void hfd_store_requests_await_end(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        while (cacher->requests->n > 0)
                pthread_cond_wait(&cacher->cond, &cacher->mu);
        pthread_mutex_unlock(&cacher->mu);
}

void hfd_store_requests_heard(struct hfd_cacher *cacher, hf_nsec now) {
        atomic_store(&cacher->requests->last_contact, now);
}

hf_nsec hfd_store_requests_last_contact(const struct hfd_cacher *cacher) {
        return (hf_nsec)atomic_load(&cacher->requests->last_contact);
}

hf_nsec hfd_store_requests_full(const struct hfd_cacher *cacher) {
        return (hf_nsec)atomic_load(&cacher->requests->room.refused_at);
}

/* A request, from track_request to untrack_request. */
struct tracked_request {
        struct hfd_cacher *cacher;
        hfd_store_fn done;
        void *ctx;
        hf_nsec started; /* boot time */
        struct hf_metric *metric;
        struct hfd_store_identity_snapshot identity; /* before the request was sent */
        bool writes;                                 /* a transaction with operations */
        bool puts;                                   /* one of them is a put */
};

/* hfd_cacher_free may free the cacher as soon as the last request is untracked. */
static void untrack_request(struct tracked_request *request) {
        struct hfd_cacher *cacher = request->cacher;

        free(request);
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->requests->n > 0);
        cacher->requests->n--;
        if (cacher->requests->n == 0 && cacher->stopping)
                pthread_cond_broadcast(&cacher->cond);
        pthread_mutex_unlock(&cacher->mu);
}

/* Thread: the store's. `done` comes last: the request that it may send next must be compared with
 * what this reply shows. */
static void on_tracked_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct tracked_request *request = ctx;
        hf_nsec now = hfd_cacher_now(request->cacher);

        hf_metric_observe(request->metric,
                          (double)(now - request->started) / (double)HF_NSEC_PER_SEC);
        /* These errors may mean that the store is unreachable. With any other error, and without
         * one, the store has responded. */
        if (reply->error != HF_E_UNAVAILABLE && reply->error != HF_E_TIMEOUT &&
            reply->error != HF_E_CANCELED)
                hfd_store_requests_heard(request->cacher, now);
        hfd_store_room_replied(&request->cacher->requests->room, request->puts, reply, now);
        hfd_store_identity_check(request->cacher, request->identity, reply);
        hfd_store_lag_replied(request->cacher, request->identity, request->writes, reply);
        request->done(request->ctx, reply);
        untrack_request(request);
}

static struct tracked_request *track_request(struct hfd_cacher *cacher,
                                             enum store_operation operation, hfd_store_fn done,
                                             void *ctx) {
        struct tracked_request *request = malloc(sizeof *request);

        if (!request)
                return NULL;
        *request = (struct tracked_request){.cacher = cacher,
                                            .done = done,
                                            .ctx = ctx,
                                            .started = hfd_cacher_now(cacher),
                                            .metric = cacher->requests->metrics[operation]};
        pthread_mutex_lock(&cacher->mu);
        request->identity = hfd_store_identity_snapshot_locked(cacher);
        cacher->requests->n++;
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
        struct tracked_request *request = track_request(cacher, STORE_GET, done, ctx);

        return request ? check_started(request,
                                       cacher->store->ops->get(cacher->store, key, urgent, deadline,
                                                               on_tracked_reply, request))
                       : -ENOMEM;
}

/* keys_only: the replies have no values. */
static int list_range(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                      uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                      hfd_store_fn done, void *ctx) {
        struct tracked_request *request = track_request(cacher, STORE_LIST, done, ctx);

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
        struct tracked_request *request = track_request(cacher, STORE_TXN, done, ctx);

        if (request)
                request->writes = txn->n_ops > 0;
        for (size_t i = 0; request && i < txn->n_ops; i++)
                request->puts = request->puts || txn->ops[i].kind == HFD_PUT;
        return request ? check_started(request,
                                       cacher->store->ops->txn(cacher->store, txn, deadline,
                                                               on_tracked_reply, request))
                       : -ENOMEM;
}

int hfd_store_request_revision(struct hfd_cacher *cacher, hf_nsec deadline, hfd_store_fn done,
                               void *ctx) {
        struct tracked_request *request = track_request(cacher, STORE_REVISION, done, ctx);

        return request ? check_started(request,
                                       cacher->store->ops->revision(cacher->store, deadline,
                                                                    on_tracked_reply, request))
                       : -ENOMEM;
}
