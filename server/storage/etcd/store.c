/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The etcd store's life and its table of operations. operation.c implements the operations, watch.c
 * the watches, etcd.c the choice of the endpoint. There are three channels to etcd, each with a
 * thread and connections of its own:
 *
 *      lists    because decoding a list takes long
 *      leases   urgent operations, so that the renewal of a Lease does not wait for other data
 *      calls    everything else, watches included
 *
 * Invariant: each call and each watch belongs to a channel, and is freed in its own last callback.
 * So the channels are ended first, and nothing refers to the store afterwards.
 */
#include "server/storage/etcd/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/operation.h"
#include "server/storage/etcd/watch.h"
#include "server/storage/grpc/grpc_tls.h"

/* How long an iteration of the threads of the lists and of the Leases may take before the thread
 * counts as hanging. One list may take long. */
#define PATIENCE (10 * HF_NSEC_PER_SEC)

static int add_endpoints(struct hfd_etcd *etcd, const char *const *urls, bool *ret_any_tls,
                         struct hf_status *reterr_status) {
        size_t n = 0;

        while (urls && urls[n])
                n++;
        if (n == 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "no etcd endpoint is given: give one like http://127.0.0.1:2379");
        etcd->endpoints = calloc(n, sizeof *etcd->endpoints);
        if (!etcd->endpoints)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        for (; etcd->n_endpoints < n; etcd->n_endpoints++) {
                struct hfd_grpc_endpoint *endpoint = &etcd->endpoints[etcd->n_endpoints];
                int r = hfd_grpc_endpoint_parse(urls[etcd->n_endpoints], endpoint, reterr_status);

                if (r != 0)
                        return r;
                *ret_any_tls = *ret_any_tls || endpoint->tls;
        }
        return 0;
}

static int open_channel(struct hfd_etcd *etcd, const char *thread_name,
                        struct hfd_grpc_channel **ret_channel, struct hf_status *reterr_status) {
        const struct hfd_grpc_channel_config config = {.thread_name = thread_name,
                                                       .host = etcd->store.host,
                                                       .endpoints = etcd->endpoints,
                                                       .n_endpoints = etcd->n_endpoints,
                                                       .tls = etcd->tls};
        int r = hfd_grpc_channel_new(&config, ret_channel);

        return r != 0 ? hf_fail(reterr_status, r, "cannot start the etcd client: %s",
                                hf_strerror(r))
                      : 0;
}

static int init_etcd(struct hfd_etcd *etcd, const struct hfd_etcd_config *config,
                     struct hf_status *reterr_status) {
        bool any_tls = false;
        int r = add_endpoints(etcd, config->endpoints, &any_tls, reterr_status);

        if (r == 0 && any_tls)
                r = hfd_grpc_tls_new(config->ca_pem, config->cert_pem, config->key_pem, &etcd->tls,
                                     reterr_status);
        if (r == 0)
                r = open_channel(etcd, "hfd-etcd", &etcd->calls, reterr_status);
        if (r == 0)
                r = open_channel(etcd, "hfd-etcd-lists", &etcd->lists, reterr_status);
        if (r == 0)
                r = open_channel(etcd, "hfd-etcd-leases", &etcd->leases, reterr_status);
        return r;
}

static void etcd_stop(struct hfd_store *store) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);

        hfd_grpc_channel_stop(etcd->calls);
        hfd_grpc_channel_stop(etcd->lists);
        hfd_grpc_channel_stop(etcd->leases);
}

/* Also frees a half-built store. A callback of one channel may use the others, so none is freed
 * before all have ended. */
static void etcd_free(struct hfd_store *store) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);

        etcd_stop(store);
        hfd_grpc_channel_join(etcd->calls);
        hfd_grpc_channel_join(etcd->lists);
        hfd_grpc_channel_join(etcd->leases);
        hfd_grpc_channel_free(etcd->calls);
        hfd_grpc_channel_free(etcd->lists);
        hfd_grpc_channel_free(etcd->leases);
        assert(!etcd->watches);
        hfd_grpc_tls_free(etcd->tls);
        pthread_mutex_destroy(&etcd->mu);
        free(etcd->endpoints);
        free(etcd);
}

/* The iterations of the calls' thread; 0 if another thread hangs, so that the watchdog notices any
 * of them. */
static uint64_t etcd_iterations(struct hfd_store *store) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        hf_nsec since = hf_now(hf_host_clock(store->host)) - PATIENCE;

        if (hfd_grpc_channel_alive_at(etcd->lists) < since ||
            hfd_grpc_channel_alive_at(etcd->leases) < since)
                return 0;
        return hfd_grpc_channel_iterations(etcd->calls);
}

static const struct hfd_store_ops etcd_ops = {
        .get = hfd_etcd_get,
        .list = hfd_etcd_list,
        .txn = hfd_etcd_txn,
        .watch = hfd_etcd_watch,
        .watch_cancel = hfd_etcd_watch_cancel,
        .watch_suspect = hfd_etcd_watch_suspect,
        .compact = hfd_etcd_compact,
        .revision = hfd_etcd_revision,
        .stop = etcd_stop,
        .free = etcd_free,
        .iterations = etcd_iterations,
};

static void release_etcd(struct hfd_etcd *etcd) { etcd_free(&etcd->store); }
HF__CLEANUP_DEFINE(etcd_cleanup, struct hfd_etcd *, release_etcd)

int hfd_etcd_store_new(const struct hf_host *host, const struct hfd_etcd_config *config,
                       struct hfd_store **ret_store, struct hf_status *reterr_status) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_etcd *memory = calloc(1, sizeof *memory);
        int r;

        assert(host && config);
        r = memory ? hf__mutex_init(&memory->mu) : -ENOMEM;
        if (r != 0)
                return hf_fail(reterr_status, r, "out of memory");
        HF__CLEANUP(etcd_cleanup) struct hfd_etcd *etcd = HF__TAKE(memory);
        etcd->store = (struct hfd_store){.ops = &etcd_ops, .host = host};
        atomic_init(&etcd->watch_endpoint, HFD_ETCD_NO_ENDPOINT);
        r = init_etcd(etcd, config, reterr_status);
        if (r != 0)
                return r;
        *ret_store = &HF__TAKE(etcd)->store;
        return 0;
}
