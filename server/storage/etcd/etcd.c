/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoints of an etcd cluster, and the choice among them.
 *
 * Invariant: all requests go to one endpoint until it fails. When several requests fail at the same
 * time, they must not skip a working endpoint. So a request switches to the next endpoint only if
 * the endpoint that it used is still the one in use. Watches have an endpoint of their own, by the
 * same rule, because one of the two may hang on an endpoint where the other works.
 */
#include "server/storage/etcd/etcd.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store) {
        return (struct hfd_etcd *)store;
}

static bool is_tls(const char *endpoint) { return strncmp(endpoint, "https://", 8) == 0; }

/* A slash after the port is removed, because users copy URLs that end in one. A path, a query or a
 * user is refused. */
int hfd_etcd_add_endpoint(struct hfd_etcd *etcd, const char *endpoint,
                          struct hf_status *reterr_status) {
        char *copy = etcd->endpoints[etcd->n_endpoints];
        const char *host;
        size_t n = strlen(endpoint);

        if (is_tls(endpoint))
                host = endpoint + 8;
        else if (strncmp(endpoint, "http://", 7) == 0)
                host = endpoint + 7;
        else
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd endpoint %s: must begin with http:// or https://", endpoint);
        if (n > 0 && endpoint[n - 1] == '/')
                n--;
        if (endpoint + n <= host || strpbrk(host, "?#@ ") ||
            memchr(host, '/', (size_t)(endpoint + n - host)))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd endpoint %s: must be <scheme>://<host>:<port> and nothing "
                               "more",
                               endpoint);
        if (n >= HFD_ETCD_ENDPOINT_MAX)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd endpoint %.64s...: must be shorter than %d bytes", endpoint,
                               HFD_ETCD_ENDPOINT_MAX);
        memcpy(copy, endpoint, n);
        copy[n] = 0;
        etcd->n_endpoints++;
        return 0;
}

/* Relaxed is enough: `current` is an index into immutable data, and any valid index will do. */
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
                       etcd->endpoints[endpoint], etcd->endpoints[next]);
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
                       "the watch on %s failed, watching on %s", etcd->endpoints[endpoint],
                       etcd->endpoints[next]);
}

void hfd_etcd_prepare_request(struct hfd_etcd *etcd, size_t endpoint, const char *path, char *url,
                              struct hf__http_request *request) {
        const char *base = etcd->endpoints[endpoint];
        int n = snprintf(url, HFD_ETCD_URL_MAX, "%s/etcdserverpb.%s", base, path);

        assert(n > 0 && n < HFD_ETCD_URL_MAX);
        (void)n;
        request->method = "POST";
        request->url = url;
        request->url_recurs = true;
        request->version = is_tls(base) ? HF__HTTP_2 : HF__HTTP_2_PRIOR_KNOWLEDGE;
        request->tls = is_tls(base) ? etcd->tls : NULL;
}
