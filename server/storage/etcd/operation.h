/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The store's operations on etcd. Each operation is one gRPC call. The contract is that of struct
 * hfd_store_ops (store.h). Private to server/storage/etcd.
 *
 * Threads: any may start a call; `done` is called on a channel's thread.
 */
#include "server/storage/store.h"

int hfd_etcd_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                 hfd_store_fn done, void *ctx);
int hfd_etcd_list(struct hfd_store *store, const char *prefix, const char *start_key,
                  uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                  hfd_store_fn done, void *ctx);
int hfd_etcd_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                 hfd_store_fn done, void *ctx);
int hfd_etcd_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                     hfd_store_fn done, void *ctx);
int hfd_etcd_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx);
