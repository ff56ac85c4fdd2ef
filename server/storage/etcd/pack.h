/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encodes requests to etcd. Each function returns a complete gRPC body (prefix and message), of
 * which the caller owns a reference; NULL = out of memory, or the message exceeds 4 GiB. Pure.
 * Thread: any. Private to server/storage/etcd.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct hf__buf *hfd_etcd_pack_get(const char *key);
/* Keys in [begin, end); an empty end = up to the last key of the store. revision 0 = now, limit 0 =
 * all. */
struct hf__buf *hfd_etcd_pack_list(const char *begin, const char *end, uint64_t revision,
                                   size_t limit, bool keys_only);
/* txn must have passed hfd_txn_check. */
struct hf__buf *hfd_etcd_pack_txn(const struct hfd_txn *txn);
struct hf__buf *hfd_etcd_pack_compact(uint64_t revision);
/* A linearizable read that returns no keys: only the header of the response is used. */
struct hf__buf *hfd_etcd_pack_revision(void);
/* Also asks for progress notifications. revision 0 = from the next write on. */
struct hf__buf *hfd_etcd_pack_watch(const char *begin, const char *end, uint64_t revision);
/* Asks for the progress of all watches of a stream. etcd responds at once, unless one of them has
 * not caught up yet. */
struct hf__buf *hfd_etcd_pack_watch_progress(void);
