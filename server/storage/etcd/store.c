/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/etcd/etcd.h"

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store) {
        return (struct hfd_etcd *)store;
}

size_t hfd_etcd_endpoint(struct hfd_etcd *etcd) {
        return atomic_load_explicit(&etcd->current, memory_order_relaxed);
}

void hfd_etcd_move_on(struct hfd_etcd *etcd, size_t endpoint) {
        size_t expected = endpoint, next = (endpoint + 1) % etcd->n_endpoints;

        if (next != endpoint &&
            atomic_compare_exchange_strong_explicit(&etcd->current, &expected, next,
                                                    memory_order_relaxed, memory_order_relaxed))
                hf_log(&etcd->store.host->log, HF_LOG_NOTICE, "etcd", "%s failed, going on with %s",
                       etcd->endpoints[endpoint], etcd->endpoints[next]);
}

static bool is_tls(const char *endpoint) { return strncmp(endpoint, "https://", 8) == 0; }

void hfd_etcd_request(struct hfd_etcd *etcd, size_t endpoint, const char *path, char *url,
                      struct hf__http_request *request) {
        const char *base = etcd->endpoints[endpoint];

        snprintf(url, HFD_ETCD_URL_MAX + 64, "%s/etcdserverpb.%s", base, path);
        request->method = "POST";
        request->url = url;
        request->url_recurs = true;
        request->version = is_tls(base) ? HF__HTTP_2 : HF__HTTP_2_PRIOR_KNOWLEDGE;
        request->tls = is_tls(base) ? etcd->tls : NULL;
}

/* scheme://host[:port], with at most a slash behind it, which is cut off. */
static int add_endpoint(struct hfd_etcd *etcd, const char *endpoint,
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
        if (n && endpoint[n - 1] == '/')
                n--;
        if (endpoint + n <= host || strpbrk(host, "?#@ ") ||
            memchr(host, '/', (size_t)(endpoint + n - host)))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd endpoint %s: must be <scheme>://<host>:<port> and nothing "
                               "more",
                               endpoint);
        if (n >= HFD_ETCD_URL_MAX)
                return hf_fail(reterr_status, HF_E_INVALID, "etcd endpoint %.64s...: too long",
                               endpoint);
        memcpy(copy, endpoint, n);
        copy[n] = 0;
        etcd->n_endpoints++;
        return 0;
}

static int etcd_init(struct hfd_etcd *etcd, const struct hfd_etcd_config *config,
                     struct hf_status *reterr_status) {
        const struct hf__http_tls_config tls = {.ca_pem = config->ca_pem,
                                                .cert_pem = config->cert_pem,
                                                .key_pem = config->key_pem};
        size_t n = 0;
        int r;

        while (config->endpoints && config->endpoints[n])
                n++;
        if (!n)
                return hf_fail(reterr_status, HF_E_INVALID, "no etcd endpoint is given");
        etcd->endpoints = calloc(n, sizeof *etcd->endpoints);
        if (!etcd->endpoints)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        for (size_t i = 0; i < n; i++) {
                r = add_endpoint(etcd, config->endpoints[i], reterr_status);
                if (r != 0)
                        return r;
        }
        if (tls.ca_pem || tls.cert_pem || tls.key_pem) {
                r = hf__http_tls_new(&tls, &etcd->tls);
                if (r != 0)
                        return hf_fail(reterr_status, r, "etcd certificates: %s", hf_strerror(r));
        }
        r = hf__http_engine_new(etcd->store.host, "hfd-etcd", &etcd->engine);
        return r != 0 ? hf_fail(reterr_status, r, "etcd client: %s", hf_strerror(r)) : 0;
}

/* Also of a half-built one. */
static void etcd_free(struct hfd_store *store) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);

        hf__http_engine_free(etcd->engine); /* every callback has returned: calls and watches have
                                               freed themselves */
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

        if (!etcd)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        etcd->store = (struct hfd_store){.ops = &etcd_ops, .host = host};
        r = etcd_init(etcd, config, reterr_status);
        if (r != 0) {
                etcd_free(&etcd->store);
                return r;
        }
        *ret_store = &etcd->store;
        return 0;
}
