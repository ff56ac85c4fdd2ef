/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that the files of the etcd store share: the endpoints, which of them is in use, and the
 * channels to them. Private to server/storage/etcd.
 *
 * Threads: any. Everything is immutable after hfd_etcd_store_new, except `current` and
 * `watch_endpoint`, which are atomic, and what `mu` guards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/grpc/channel.h"
#include "server/storage/store.h"

/* The lanes of the channel for calls, which never share a connection. The other channels use one
 * lane each. */
#define HFD_ETCD_LANE_CALLS 0
#define HFD_ETCD_LANE_WATCH 1 /* a watch with many events does not delay a transaction */
#define HFD_ETCD_ONLY_LANE  0

/* Limit for one message. etcd is trusted, but a faulty one must not use up our memory. */
#define HFD_ETCD_BODY_MAX (512u * 1024 * 1024)

struct hfd_etcd_watch;

struct hfd_etcd {
        struct hfd_store store; /* first member */
        /* Immutable after new. */
        struct hfd_grpc_channel *calls, *lists, *leases; /* owned; see store.c for their uses */
        struct hfd_grpc_tls *tls;                        /* owned; NULL = no endpoint uses TLS */
        struct hfd_grpc_endpoint *endpoints;             /* owned; n_endpoints of them */
        size_t n_endpoints;
        /* Any thread: the index of the endpoint in use. */
        _Atomic size_t current;
        /* Any thread: the index of the endpoint for watches; HFD_ETCD_NO_ENDPOINT = not chosen. */
        _Atomic size_t watch_endpoint;

        pthread_mutex_t mu; /* taken before a channel's locks; never held during a callback */
        /* guarded by mu: the watches that have not ended */
        struct hfd_etcd_watch *watches;
        uint64_t last_watch_id;
};

#define HFD_ETCD_NO_ENDPOINT SIZE_MAX

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store);
/* The index of the endpoint in use. */
size_t hfd_etcd_endpoint(struct hfd_etcd *etcd);
/* Called when a request to the endpoint has failed and the endpoint may be the reason. Switches to
 * the next one, unless another request has done so. */
void hfd_etcd_fail_over(struct hfd_etcd *etcd, size_t endpoint);
/* The index of the endpoint for watches. The first call chooses the endpoint in use. */
size_t hfd_etcd_watch_endpoint(struct hfd_etcd *etcd);
/* Called when a watch on an endpoint has failed or hangs. Switches new watches to the next
 * endpoint, unless another watch has done so. */
void hfd_etcd_watch_fail_over(struct hfd_etcd *etcd, size_t endpoint);
