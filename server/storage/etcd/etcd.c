/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoint of an etcd cluster that is in use.
 *
 * Invariant: all requests go to one endpoint until it fails. When several requests fail at the same
 * time, they must not skip a working endpoint. So a request switches to the next endpoint only if
 * the endpoint that it used is still the one in use.
 */
#include "server/storage/etcd/etcd.h"

#include <assert.h>

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store) {
        return (struct hfd_etcd *)store;
}

size_t hfd_etcd_endpoint(struct hfd_etcd *etcd) {
        return atomic_load_explicit(&etcd->current, memory_order_relaxed);
}

void hfd_etcd_fail_over(struct hfd_etcd *etcd, size_t endpoint) {
        size_t expected = endpoint, next;

        assert(endpoint < etcd->n_endpoints);
        next = (endpoint + 1) % etcd->n_endpoints;
        if (next != endpoint &&
            atomic_compare_exchange_strong_explicit(&etcd->current, &expected, next,
                                                    memory_order_relaxed, memory_order_relaxed))
                hf_log(&etcd->store.host->log, HF_LOG_NOTICE, "etcd", "%s failed, trying %s",
                       etcd->endpoints[endpoint].url, etcd->endpoints[next].url);
}
