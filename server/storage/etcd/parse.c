/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes etcd's responses with protobuf-c (rpc.proto).
 *
 * Invariants: A message is decoded into the arena and freed with it. Only the values are copied out
 * of the arena, each into a reference-counted buffer, because they may outlive the message: the
 * cacher keeps them. Malformed input from the network never fails an assert: it is an error.
 */
#include "server/storage/etcd/parse.h"

#include <errno.h>
#include <string.h>

#include "server/storage/rpc.pb-c.h"

static void *arena_alloc(void *ctx, size_t n) { return hf__arena_alloc(ctx, n); }

static void arena_free(void *ctx, void *block) {} /* the arena frees everything at once */

static void *unpack_message(const ProtobufCMessageDescriptor *descriptor, struct hf__arena *arena,
                            const void *data, size_t n) {
        ProtobufCAllocator allocator = {.alloc = arena_alloc,
                                        .free = arena_free,
                                        .allocator_data = arena};

        return protobuf_c_message_unpack(descriptor, &allocator, n, data);
}

/* Why a message could not be unpacked: out of memory, or it is malformed. */
static int unpack_error(const struct hf__arena *arena) { return arena->failed ? -ENOMEM : -EPROTO; }

/* Our keys (store.h) are C strings, so a key with a NUL inside would be mistaken for a shorter key.
 * Holdfast never writes such keys. */
static bool is_valid_key(const ProtobufCBinaryData *key) {
        return key->len > 0 && !memchr(key->data, 0, key->len);
}

/* The arena puts a NUL after each block, so the key's bytes are a C string. */
static int read_kv(const Hfd__KeyValue *from, bool with_value, struct hfd_kv *ret_kv) {
        if (!from || !is_valid_key(&from->key))
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

/* Reads the header. A response without one is rejected, because callers need its revision. */
static int read_header(const Hfd__ResponseHeader *header, struct hfd_store_reply *reply) {
        if (!header)
                return -EPROTO;
        reply->revision = (uint64_t)header->revision;
        reply->cluster_id = header->cluster_id;
        return 0;
}

/* Appends the range's kvs to the array kvs, which has room for them; reply->kvs points to the same
 * array, as const. reply->n_kvs counts complete entries only, so that hfd_etcd_release_reply is
 * correct after an error too. */
static int read_range(const Hfd__RangeResponse *range, struct hfd_kv *kvs, bool with_values,
                      struct hfd_store_reply *reply) {
        for (size_t i = 0; i < range->n_kvs; i++) {
                int r = read_kv(range->kvs[i], with_values, &kvs[reply->n_kvs]);

                if (r != 0)
                        return r;
                reply->n_kvs++;
        }
        return 0;
}

static int parse_range(const void *data, size_t n, bool with_values, struct hf__arena *arena,
                       struct hfd_store_reply *reply) {
        Hfd__RangeResponse *range =
                unpack_message(&hfd__range_response__descriptor, arena, data, n);
        struct hfd_kv *kvs;
        int r;

        if (!range)
                return unpack_error(arena);
        kvs = hf__arena_alloc(arena, range->n_kvs * sizeof *kvs);
        if (!kvs)
                return -ENOMEM;
        reply->kvs = kvs;
        reply->more = range->more;
        r = read_header(range->header, reply);
        return r != 0 ? r : read_range(range, kvs, with_values, reply);
}

/* The responses to get_on_failure are ranges. Those to puts and deletes are ignored. */
static int parse_txn(const void *data, size_t n, struct hf__arena *arena,
                     struct hfd_store_reply *reply) {
        Hfd__TxnResponse *txn = unpack_message(&hfd__txn_response__descriptor, arena, data, n);
        size_t n_kvs = 0;
        struct hfd_kv *kvs;
        int r;

        if (!txn)
                return unpack_error(arena);
        r = read_header(txn->header, reply);
        if (r != 0 || txn->succeeded)
                return r;
        /* Count first, because an array in the arena cannot grow. */
        for (size_t i = 0; i < txn->n_responses; i++)
                if (txn->responses[i]->response_case == HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
                        n_kvs += txn->responses[i]->response_range->n_kvs;
        kvs = hf__arena_alloc(arena, n_kvs * sizeof *kvs);
        if (!kvs)
                return -ENOMEM;
        reply->kvs = kvs;
        reply->error =
                hf_fail(&reply->status, HF_E_CONFLICT, "a compare of the transaction failed");
        for (size_t i = 0; i < txn->n_responses && r == 0; i++)
                if (txn->responses[i]->response_case == HFD__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
                        r = read_range(txn->responses[i]->response_range, kvs, true, reply);
        return r;
}

static int parse_compact(const void *data, size_t n, struct hf__arena *arena,
                         struct hfd_store_reply *reply) {
        Hfd__CompactionResponse *compaction =
                unpack_message(&hfd__compaction_response__descriptor, arena, data, n);

        return compaction ? read_header(compaction->header, reply) : unpack_error(arena);
}

int hfd_etcd_parse(enum hfd_etcd_response kind, const void *data, size_t n, struct hf__arena *arena,
                   struct hfd_store_reply *reply) {
        switch (kind) {
        case HFD_ETCD_RANGE: return parse_range(data, n, true, arena, reply);
        case HFD_ETCD_RANGE_KEYS: return parse_range(data, n, false, arena, reply);
        case HFD_ETCD_TXN: return parse_txn(data, n, arena, reply);
        case HFD_ETCD_COMPACT: return parse_compact(data, n, arena, reply);
        }
        return -EINVAL;
}

void hfd_etcd_release_reply(struct hfd_store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++)
                hf__buf_unref(reply->kvs[i].value);
        reply->n_kvs = 0;
}

int hfd_etcd_parse_watch_response(const void *data, size_t n, struct hf__arena *arena,
                                  struct hfd_etcd_watch_response *ret_response) {
        Hfd__WatchResponse *response =
                unpack_message(&hfd__watch_response__descriptor, arena, data, n);

        /* Set before the first return, because the caller releases it after an error too. */
        *ret_response = (struct hfd_etcd_watch_response){.cancel_reason = ""};
        if (!response)
                return unpack_error(arena);
        if (!response->header)
                return -EPROTO;
        ret_response->revision = (uint64_t)response->header->revision;
        ret_response->created = response->created;
        ret_response->canceled = response->canceled;
        ret_response->is_probed = response->watch_id == -1;
        ret_response->compact_revision = (uint64_t)response->compact_revision;
        if (response->cancel_reason)
                ret_response->cancel_reason = response->cancel_reason;
        ret_response->events =
                hf__arena_alloc(arena, response->n_events * sizeof *ret_response->events);
        if (!ret_response->events)
                return -ENOMEM;
        for (size_t i = 0; i < response->n_events; i++) {
                bool put = response->events[i]->type == HFD__EVENT__TYPE__PUT;
                struct hfd_watch_event *event = &ret_response->events[i];
                int r;

                *event = (struct hfd_watch_event){.type = put ? HFD_WATCH_PUT : HFD_WATCH_DELETE};
                r = read_kv(response->events[i]->kv, put, &event->kv);
                if (r != 0)
                        return r;
                ret_response->n_events++;
                if (response->events[i]->kv->mod_revision <= 0) /* every event of etcd has one */
                        return -EPROTO;
                event->revision = event->kv.mod_revision;
        }
        return 0;
}

void hfd_etcd_release_watch_response(struct hfd_etcd_watch_response *response) {
        for (size_t i = 0; i < response->n_events; i++)
                hf__buf_unref(response->events[i].kv.value);
        response->n_events = 0;
}
