/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * etcd's messages, packed and parsed; the only user of protobuf-c. What is packed is a whole gRPC
 * body: the five bytes of its prefix and the message. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/etcd/arena.h"
#include "server/storage/store.h"

#define HFD_GRPC_PREFIX 5

/* Each: NULL = out of memory. */
struct hf__buf *hfd_etcd_pack_get(const char *key);
/* Keys in [begin, end); an empty end = up to the last key of the store. */
struct hf__buf *hfd_etcd_pack_list(const char *begin, const char *end, uint64_t revision,
                                   size_t limit, bool keys_only);
struct hf__buf *hfd_etcd_pack_txn(const struct hfd_txn *txn); /* checked by hfd_txn_check */
struct hf__buf *hfd_etcd_pack_compact(uint64_t revision);
struct hf__buf *hfd_etcd_pack_revision(void); /* a linearizable range that finds nothing */
struct hf__buf *hfd_etcd_pack_watch(const char *begin, const char *end, uint64_t revision);

/* Reads a gRPC prefix (HFD_GRPC_PREFIX bytes). 0 or -EPROTO (compressed: never asked for). */
int hfd_grpc_prefix_read(const void *prefix, uint32_t *ret_n);

enum hfd_etcd_response {
        HFD_ETCD_RANGE,
        HFD_ETCD_RANGE_KEYS,
        HFD_ETCD_TXN,
        HFD_ETCD_COMPACT
}; /* keys: no values wanted */

/*
 * Parses the message of an answer into reply: revision, cluster_id, kvs, more, and error
 * HF_E_CONFLICT for a transaction whose compares failed. The kvs lie in the arena, their values are
 * references of the caller's: hfd_etcd_release after use, in any case. 0, -ENOMEM or -EPROTO.
 */
int hfd_etcd_parse(enum hfd_etcd_response kind, const void *data, size_t n, struct hfd_arena *arena,
                   struct hfd_store_reply *reply);
void hfd_etcd_release(struct hfd_store_reply *reply);

struct hfd_etcd_watch_response {
        uint64_t revision; /* the header's */
        bool created, canceled;
        uint64_t compact_revision; /* != 0: canceled because of it */
        const char *cancel_reason; /* never NULL */
        struct hfd_watch_event *events;
        size_t n_events;
};
/* As hfd_etcd_parse, for one message of a watch. */
int hfd_etcd_parse_watch_response(const void *data, size_t n, struct hfd_arena *arena,
                                  struct hfd_etcd_watch_response *ret_event);
void hfd_etcd_release_watch_response(struct hfd_etcd_watch_response *event);
