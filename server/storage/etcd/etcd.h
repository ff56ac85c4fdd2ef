/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that the files of the etcd store share, and the functions for its endpoints: which of
 * them is in use, and the parts that all requests have in common. Private to server/storage/etcd.
 *
 * Threads: any. Everything is immutable after hfd_etcd_store_new, except `current` and
 * `watch_endpoint`, which are atomic.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/engine.h"
#include "server/storage/store.h"

/* Requests of different lanes never share a connection. */
#define HFD_ETCD_LANE_CALLS 0
#define HFD_ETCD_LANE_LEASE 1 /* so that a renewal does not queue behind a list */
#define HFD_ETCD_LANE_WATCH 2 /* so that a watch with many events does not delay a transaction */

/* Limit for one response. etcd is trusted, but a faulty etcd must not use up our memory. */
#define HFD_ETCD_BODY_MAX     (512u * 1024 * 1024)
#define HFD_ETCD_ENDPOINT_MAX 512
#define HFD_ETCD_URL_MAX      (HFD_ETCD_ENDPOINT_MAX + 64)

struct hfd_etcd {
        struct hfd_store store; /* first member */
        /* Immutable after new. */
        struct hf__http_engine *engine;           /* owned */
        struct hf__http_tls *tls;                 /* owned reference; NULL = no certificates */
        char (*endpoints)[HFD_ETCD_ENDPOINT_MAX]; /* owned; n_endpoints of them */
        size_t n_endpoints;
        /* Any thread: the index of the endpoint in use. */
        _Atomic size_t current;
        /* Any thread: the index of the endpoint for watches; HFD_ETCD_NO_ENDPOINT = not chosen. */
        _Atomic size_t watch_endpoint;
};

#define HFD_ETCD_NO_ENDPOINT SIZE_MAX

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store);
/* Checks an endpoint, "scheme://host:port", and appends it. There must be space for it. 0 or
 * HF_E_INVALID: the message names it. */
int hfd_etcd_add_endpoint(struct hfd_etcd *etcd, const char *endpoint,
                          struct hf_status *reterr_status);
/* The index of the endpoint in use. */
size_t hfd_etcd_endpoint(struct hfd_etcd *etcd);
/* Called when an endpoint has failed. Switches to the next one, unless another request has. */
void hfd_etcd_fail_over(struct hfd_etcd *etcd, size_t endpoint);
/* The index of the endpoint for watches. The first one is the endpoint in use. */
size_t hfd_etcd_watch_endpoint(struct hfd_etcd *etcd);
/* Called when a watch on an endpoint has failed or hangs. Switches watches to the next endpoint,
 * unless another watch has. */
void hfd_etcd_watch_fail_over(struct hfd_etcd *etcd, size_t endpoint);
/* Fills in the members that are the same for every request to that endpoint. path: "KV/Range". url
 * has HFD_ETCD_URL_MAX bytes and must live as long as request. */
void hfd_etcd_prepare_request(struct hfd_etcd *etcd, size_t endpoint, const char *path, char *url,
                              struct hf__http_request *request);
