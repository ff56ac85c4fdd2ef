/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Blocking operations on a store, with a deadline of 20 s. They return the error of the call or of
 * the reply. The caller deinitializes a reply that is not NULL, whatever the result.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store_reply.h"

int store_client_get(struct hfd_store *store, const char *key, struct store_reply *reply);
int store_client_list(struct hfd_store *store, const char *prefix, const char *start,
                      uint64_t revision, size_t limit, bool keys_only, struct store_reply *reply);
int store_client_txn(struct hfd_store *store, const struct hfd_txn *txn, struct store_reply *reply);
int store_client_compact(struct hfd_store *store, uint64_t revision);

/*
 * These return a revision: the current one of the store, that of the write, or that of the key's
 * last write. 0: the operation failed; for the last function: there is no such key, and it asserts
 * that the operation succeeded.
 */
uint64_t store_client_revision(struct hfd_store *store);
uint64_t store_client_put(struct hfd_store *store, const char *key, const char *value);
uint64_t store_client_delete(struct hfd_store *store, const char *key);
uint64_t store_client_mod_revision(struct hfd_store *store, const char *key);
