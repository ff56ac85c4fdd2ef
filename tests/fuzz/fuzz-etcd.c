/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes etcd's responses: protobuf messages of each kind (the first byte), and those of a watch.
 * What is accepted must be whole: keys that are C strings, values where they were wanted, and as
 * many as are counted. What is refused must leave nothing that the release does not free.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "server/storage/etcd/parse.h"
#include "server/storage/grpc/prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_kv(const struct hfd_kv *kv, bool has_value) {
        assert(kv->key && *kv->key);
        assert(!has_value == !kv->value);
        /* Reads all of it, for the sanitizers. */
        if (kv->value)
                assert(!memchr(kv->value->data, 0, kv->value->n) || kv->value->n > 0);
}

static void try_reply(enum hfd_etcd_response kind, const void *data, size_t n) {
        struct hfd_store_reply reply = {0};
        struct hf__arena arena;

        hf__arena_init(&arena);
        int r = hfd_etcd_parse(kind, data, n, &arena, &reply);
        assert(r == 0 || r == -EPROTO || r == -ENOMEM || r == HF_E_CONFLICT);
        for (size_t i = 0; i < reply.n_kvs; i++)
                check_kv(&reply.kvs[i], kind != HFD_ETCD_RANGE_KEYS);
        if (reply.error)
                assert(kind == HFD_ETCD_TXN && reply.error == HF_E_CONFLICT);
        hfd_etcd_release_reply(&reply);
        assert(reply.n_kvs == 0);
        hf__arena_deinit(&arena);
}

static void try_watch(const void *data, size_t n) {
        struct hfd_etcd_watch_response response;
        struct hf__arena arena;

        hf__arena_init(&arena);
        int r = hfd_etcd_parse_watch_response(data, n, &arena, &response);
        assert(r == 0 || r == -EPROTO || r == -ENOMEM);
        assert(response.cancel_reason);
        for (size_t i = 0; i < response.n_events; i++) {
                const struct hfd_watch_event *event = &response.events[i];

                assert(event->type == HFD_WATCH_PUT || event->type == HFD_WATCH_DELETE);
                check_kv(&event->kv, event->type == HFD_WATCH_PUT);
                assert(event->revision == event->kv.mod_revision);
        }
        hfd_etcd_release_watch_response(&response);
        hf__arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const enum hfd_etcd_response kinds[] = {HFD_ETCD_RANGE, HFD_ETCD_RANGE_KEYS,
                                                       HFD_ETCD_TXN, HFD_ETCD_COMPACT};
        uint32_t n_message;

        if (n == 0)
                return 0;
        if (n > HFD_GRPC_PREFIX && hfd_grpc_prefix_read(data + 1, &n_message) == 0) {
                char prefix[HFD_GRPC_PREFIX];

                hfd_grpc_prefix_write(prefix, n_message);
                assert(memcmp(prefix, data + 1, sizeof prefix) == 0);
        }
        if (data[0] % 5 == 4)
                try_watch(data + 1, n - 1);
        else
                try_reply(kinds[data[0] % 5], data + 1, n - 1);
        return 0;
}
