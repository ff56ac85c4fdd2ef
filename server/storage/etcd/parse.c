/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "server/storage/etcd/codec.h"
#include "server/storage/rpc.pb-c.h"

static void *arena_alloc(void *ctx, size_t n) { return hfd_arena_alloc(ctx, n); }

static void arena_free(void *ctx, void *block) {}

static void *unpack(const ProtobufCMessageDescriptor *descriptor, struct hfd_arena *arena,
                    const void *data, size_t n) {
        ProtobufCAllocator allocator = {.alloc = arena_alloc,
                                        .free = arena_free,
                                        .allocator_data = arena};

        return protobuf_c_message_unpack(descriptor, &allocator, n, data);
}

/* A message that could not be unpacked: ours or theirs? */
static int unpack_error(const struct hfd_arena *arena) { return arena->failed ? -ENOMEM : -EPROTO; }

int hfd_grpc_prefix_read(const void *prefix, uint32_t *ret_n) {
        const unsigned char *p = prefix;

        if (p[0])
                return -EPROTO;
        *ret_n = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
        return 0;
}

/* A key with a NUL in it is none of ours: it would be cut short silently. */
static bool key_ok(const ProtobufCBinaryData *key) {
        return key->len && !memchr(key->data, 0, key->len);
}

/* The arena puts a NUL behind each block, so the key's bytes are a string. Values are copied once,
 * into what is shared. */
static int kv_from(const Hfd__KeyValue *from, bool with_value, struct hfd_kv *ret_kv) {
        if (!from || !key_ok(&from->key))
                return -EPROTO;
        *ret_kv = (struct hfd_kv){.key = (const char *)from->key.data,
                                  .mod_revision = (uint64_t)from->mod_revision,
                                  .create_revision = (uint64_t)from->create_revision};
        if (with_value) {
                ret_kv->value = hf__buf_copy(from->value.len ? (const void *)from->value.data : "",
                                             from->value.len);
                if (!ret_kv->value)
                        return -ENOMEM;
        }
        return 0;
}

static int header_read(const Hfd__ResponseHeader *header, struct hfd_store_reply *reply) {
        if (!header)
                return -EPROTO;
        reply->revision = (uint64_t)header->revision;
        reply->cluster_id = header->cluster_id;
        return 0;
}

/* kvs has room for the range's kvs behind those that reply has already. */
static int range_read(const Hfd__RangeResponse *range, struct hfd_kv *kvs, bool with_values,
                      struct hfd_store_reply *reply) {
        for (size_t i = 0; i < range->n_kvs; i++) {
                int r = kv_from(range->kvs[i], with_values, &kvs[reply->n_kvs]);

                if (r != 0)
                        return r;
                reply->n_kvs++;
        }
        return 0;
}

static int parse_range(const void *data, size_t n, bool with_values, struct hfd_arena *arena,
                       struct hfd_store_reply *reply) {
        Hfd__RangeResponse *range = unpack(&hfd__range_response__descriptor, arena, data, n);
        struct hfd_kv *kvs;
        int r;

        if (!range)
                return unpack_error(arena);
        kvs = hfd_arena_alloc(arena, range->n_kvs * sizeof *kvs);
        if (!kvs)
                return -ENOMEM;
        reply->kvs = kvs;
        reply->more = range->more;
        r = header_read(range->header, reply);
        return r != 0 ? r : range_read(range, kvs, with_values, reply);
}

static int parse_txn(const void *data, size_t n, struct hfd_arena *arena,
                     struct hfd_store_reply *reply) {
        Hfd__TxnResponse *txn = unpack(&hfd__txn_response__descriptor, arena, data, n);
        size_t n_kvs = 0;
        struct hfd_kv *kvs;
        int r;

        if (!txn)
                return unpack_error(arena);
        r = header_read(txn->header, reply);
        if (r != 0 || txn->succeeded)
                return r;
        for (size_t i = 0; i < txn->n_responses; i++)
                if (txn->responses[i]->response_case == HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
                        n_kvs += txn->responses[i]->response_range->n_kvs;
        kvs = hfd_arena_alloc(arena, n_kvs * sizeof *kvs);
        if (!kvs)
                return -ENOMEM;
        reply->kvs = kvs;
        reply->error =
                hf_fail(&reply->status, HF_E_CONFLICT, "a compare of the transaction failed");
        for (size_t i = 0; i < txn->n_responses && r == 0; i++)
                if (txn->responses[i]->response_case == HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
                        r = range_read(txn->responses[i]->response_range, kvs, true, reply);
        return r;
}

static int parse_compact(const void *data, size_t n, struct hfd_arena *arena,
                         struct hfd_store_reply *reply) {
        Hfd__CompactionResponse *compaction =
                unpack(&hfd__compaction_response__descriptor, arena, data, n);

        return compaction ? header_read(compaction->header, reply) : unpack_error(arena);
}

int hfd_etcd_parse(enum hfd_etcd_response kind, const void *data, size_t n, struct hfd_arena *arena,
                   struct hfd_store_reply *reply) {
        switch (kind) {
        case HFD_ETCD_RANGE: return parse_range(data, n, true, arena, reply);
        case HFD_ETCD_RANGE_KEYS: return parse_range(data, n, false, arena, reply);
        case HFD_ETCD_TXN: return parse_txn(data, n, arena, reply);
        case HFD_ETCD_COMPACT: return parse_compact(data, n, arena, reply);
        }
        return -EINVAL;
}

void hfd_etcd_release(struct hfd_store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++)
                hf__buf_unref(reply->kvs[i].value);
        reply->n_kvs = 0;
}

int hfd_etcd_parse_watch_response(const void *data, size_t n, struct hfd_arena *arena,
                                  struct hfd_etcd_watch_response *ret_event) {
        Hfd__WatchResponse *response = unpack(&hfd__watch_response__descriptor, arena, data, n);

        *ret_event = (struct hfd_etcd_watch_response){.cancel_reason = ""};
        if (!response)
                return unpack_error(arena);
        if (!response->header)
                return -EPROTO;
        ret_event->revision = (uint64_t)response->header->revision;
        ret_event->created = response->created;
        ret_event->canceled = response->canceled;
        ret_event->compact_revision = (uint64_t)response->compact_revision;
        if (response->cancel_reason)
                ret_event->cancel_reason = response->cancel_reason;
        ret_event->events = hfd_arena_alloc(arena, response->n_events * sizeof *ret_event->events);
        if (!ret_event->events)
                return -ENOMEM;
        for (size_t i = 0; i < response->n_events; i++) {
                bool put = response->events[i]->type == HFD__EVENT__TYPE__PUT;
                struct hfd_watch_event *event = &ret_event->events[i];
                int r;

                *event = (struct hfd_watch_event){.type = put ? HFD_WATCH_PUT : HFD_WATCH_DELETE};
                r = kv_from(response->events[i]->kv, put, &event->kv);
                if (r != 0)
                        return r;
                event->revision = event->kv.mod_revision;
                ret_event->n_events++;
        }
        return 0;
}

void hfd_etcd_release_watch_response(struct hfd_etcd_watch_response *event) {
        for (size_t i = 0; i < event->n_events; i++)
                hf__buf_unref(event->events[i].kv.value);
        event->n_events = 0;
}
