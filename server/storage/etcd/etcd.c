/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses which endpoint of an etcd cluster is in use.
 *
 * Invariant: new operations go to one endpoint until a request to it fails with HF_E_UNAVAILABLE or
 * HF_E_TIMEOUT, or the stream of a watch on it fails. When several requests fail at the same time,
 * they must not skip a working endpoint. So a request switches to the next endpoint only if the
 * endpoint that it used is still the one in use. Watches have an endpoint of their own, by the same
 * rule, because a watch may hang on an endpoint where operations work. When the stream of a watch
 * fails, both endpoints are switched; when its user suspects that it hangs, only that of watches.
 *
 * The indexes are read and written relaxed: they publish nothing, because the endpoints themselves
 * are immutable.
 */
#include "server/storage/etcd/etcd.h"

#include <assert.h>

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store) {
        return (struct hfd_etcd *)store;
}

size_t hfd_etcd_endpoint(struct hfd_etcd *etcd) {
        return atomic_load_explicit(&etcd->current, memory_order_relaxed);
}

/* Switches *index from an endpoint to the next one, unless it was switched already. */
static bool switch_endpoint(struct hfd_etcd *etcd, _Atomic size_t *index, size_t endpoint,
                            size_t *ret_next) {
        size_t expected = endpoint;

        assert(endpoint < etcd->n_endpoints);
        *ret_next = (endpoint + 1) % etcd->n_endpoints;
        return *ret_next != endpoint &&
               atomic_compare_exchange_strong_explicit(index, &expected, *ret_next,
                                                       memory_order_relaxed, memory_order_relaxed);
}

void hfd_etcd_fail_over(struct hfd_etcd *etcd, size_t endpoint) {
        size_t next;

        if (switch_endpoint(etcd, &etcd->current, endpoint, &next))
                hf_log(&etcd->store.host->log, HF_LOG_NOTICE, "etcd", "%s failed, trying %s",
                       etcd->endpoints[endpoint].url, etcd->endpoints[next].url);
}

size_t hfd_etcd_watch_endpoint(struct hfd_etcd *etcd) {
        size_t endpoint = HFD_ETCD_NO_ENDPOINT, chosen = hfd_etcd_endpoint(etcd);

        return atomic_compare_exchange_strong_explicit(&etcd->watch_endpoint, &endpoint, chosen,
                                                       memory_order_relaxed, memory_order_relaxed)
                       ? chosen
                       : endpoint;
}

void hfd_etcd_watch_fail_over(struct hfd_etcd *etcd, size_t endpoint) {
        size_t next;

        if (switch_endpoint(etcd, &etcd->watch_endpoint, endpoint, &next))
                hf_log(&etcd->store.host->log, HF_LOG_NOTICE, "etcd",
                       "the watch on %s failed, watching on %s", etcd->endpoints[endpoint].url,
                       etcd->endpoints[next].url);
}
