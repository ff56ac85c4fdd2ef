/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operations of the memory store. The contract is that of struct hfd_store_ops (store.h).
 * Private to server/storage/memory.
 *
 * Threads: any may start an operation. Lock: the functions take mu; only the _locked function
 * expects the caller to hold it.
 */
#include <stdbool.h>

#include "server/storage/memory/memory.h"

int hfd_memory_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                   hfd_store_fn done, void *ctx);
int hfd_memory_list(struct hfd_store *store, const char *prefix, const char *start_key,
                    uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                    hfd_store_fn done, void *ctx);
int hfd_memory_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                   hfd_store_fn done, void *ctx);
int hfd_memory_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                       hfd_store_fn done, void *ctx);
int hfd_memory_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx);

/* Delivers the oldest reply; mu is released during the callback. Returns false, without releasing
 * mu, if there is no reply. Thread: the store's own. */
bool hfd_memory_deliver_reply_locked(struct hfd_memory *memory);
