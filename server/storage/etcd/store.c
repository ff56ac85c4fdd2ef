/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and frees the etcd store, and contains its table of operations. call.c implements the
 * operations, watch.c the watches, etcd.c the choice of the endpoint.
 *
 * Invariant: the engine owns all calls and watches, and its last callback for each of them frees
 * it. So etcd_free must free the engine first: that ends all calls and watches, and after it
 * nothing refers to the store.
 */
#include "server/storage/etcd/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/http/tls.h"
#include "server/storage/etcd/call.h"
#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/watch.h"

static int add_endpoints(struct hfd_etcd *etcd, const char *const *endpoints,
                         struct hf_status *reterr_status) {
        size_t n = 0;

        while (endpoints && endpoints[n])
                n++;
        if (n == 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "no etcd endpoint is given: give one like http://127.0.0.1:2379");
        etcd->endpoints = calloc(n, sizeof *etcd->endpoints);
        if (!etcd->endpoints)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        for (size_t i = 0; i < n; i++) {
                int r = hfd_etcd_add_endpoint(etcd, endpoints[i], reterr_status);

                if (r != 0)
                        return r;
        }
        return 0;
}

static int init_etcd(struct hfd_etcd *etcd, const struct hfd_etcd_config *config,
                     struct hf_status *reterr_status) {
        const struct hf__http_tls_config tls = {.ca_pem = config->ca_pem,
                                                .cert_pem = config->cert_pem,
                                                .key_pem = config->key_pem};
        int r = add_endpoints(etcd, config->endpoints, reterr_status);

        if (r != 0)
                return r;
        if (tls.ca_pem || tls.cert_pem || tls.key_pem) {
                r = hf__http_tls_new(&tls, &etcd->tls);
                if (r != 0)
                        return hf_fail(reterr_status, r, "cannot use the certificates for etcd: %s",
                                       hf_strerror(r));
        }
        r = hf__http_engine_new(etcd->store.host, "hfd-etcd", &etcd->engine);
        return r != 0 ? hf_fail(reterr_status, r, "cannot start the etcd client: %s",
                                hf_strerror(r))
                      : 0;
}

/* Accepts a partly initialized store, which hfd_etcd_store_new frees when a step fails. */
static void etcd_free(struct hfd_store *store) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);

        hf__http_engine_free(etcd->engine); /* every callback has returned afterwards */
        hf__http_tls_unref(etcd->tls);
        free(etcd->endpoints);
        free(etcd);
}

static void etcd_stop(struct hfd_store *store) { hf__http_engine_stop(hfd_etcd_of(store)->engine); }

static uint64_t etcd_iterations(struct hfd_store *store) {
        return hf__http_engine_iterations(hfd_etcd_of(store)->engine);
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

int hfd_etcd_store_new(const struct hf_host *host, const struct hfd_etcd_config *config,
                       struct hfd_store **ret_store, struct hf_status *reterr_status) {
        struct hfd_etcd *etcd = calloc(1, sizeof *etcd);
        int r;

        assert(host && config);
        if (!etcd)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        etcd->store = (struct hfd_store){.ops = &etcd_ops, .host = host};
        atomic_init(&etcd->watch_endpoint, HFD_ETCD_NO_ENDPOINT);
        r = init_etcd(etcd, config, reterr_status);
        if (r != 0) {
                etcd_free(&etcd->store);
                return r;
        }
        *ret_store = &etcd->store;
        return 0;
}
