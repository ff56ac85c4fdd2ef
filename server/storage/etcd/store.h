/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * etcd v3 as a store. It speaks gRPC by server/storage/grpc and protobuf-c; no gRPC library is
 * used.
 *
 * Threads: as server/storage/store.h describes. Three threads call back: one for lists, one for
 * urgent operations, one for everything else. So only other lists wait until a large list is
 * decoded and handled, and urgent operations wait for each other only.
 */
#include "server/storage/store.h"

struct hfd_etcd_config {
        const char *const *endpoints; /* "http://127.0.0.1:2379", NULL-terminated */
        /* PEM texts, for https. ca_pem NULL = the system's CAs; the others NULL = no client
         * certificate. */
        const char *ca_pem, *cert_pem, *key_pem;
};

/*
 * Makes a store and starts its threads. Does not connect yet: while etcd is unreachable, operations
 * end with HF_E_UNAVAILABLE or HF_E_TIMEOUT. host is borrowed until the store is freed; config is
 * used during this call only. 0, -errno, or HF_E_INVALID: an endpoint is malformed or none is
 * given, a PEM text is unusable, or only one of cert_pem and key_pem is given; the message says
 * which. Free the store by ops->free.
 */
int hfd_etcd_store_new(const struct hf_host *host, const struct hfd_etcd_config *config,
                       struct hfd_store **ret_store, struct hf_status *reterr_status);
