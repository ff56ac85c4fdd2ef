/* SPDX-License-Identifier: Apache-2.0 */
/* See store_client.h. Each operation fills the caller's reply, or a temporary one. */
#include "store_client.h"

#include <assert.h>
#include <string.h>

#include "time_units.h"

#define DEADLINE in_msec(20000)

/* Waits for the reply, unless r says that the operation did not start. Frees a temporary reply. */
static int finish(int r, struct store_reply *reply, struct store_reply *of_caller) {
        if (r == 0)
                r = store_reply_wait(reply);
        if (!of_caller)
                store_reply_deinit(reply);
        return r;
}

int store_client_get(struct hfd_store *store, const char *key, struct store_reply *reply) {
        struct store_reply own, *to = reply ? reply : &own;

        store_reply_init(to);
        int r = store->ops->get(store, key, false, DEADLINE, store_reply_fill, to);
        return finish(r, to, reply);
}

int store_client_list(struct hfd_store *store, const char *prefix, const char *start,
                      uint64_t revision, size_t limit, bool keys_only, struct store_reply *reply) {
        struct store_reply own, *to = reply ? reply : &own;

        store_reply_init(to);
        int r = store->ops->list(store, prefix, start, revision, limit, keys_only, DEADLINE,
                                 store_reply_fill, to);
        return finish(r, to, reply);
}

int store_client_txn(struct hfd_store *store, const struct hfd_txn *txn,
                     struct store_reply *reply) {
        struct store_reply own, *to = reply ? reply : &own;

        store_reply_init(to);
        int r = store->ops->txn(store, txn, DEADLINE, store_reply_fill, to);
        return finish(r, to, reply);
}

int store_client_compact(struct hfd_store *store, uint64_t revision) {
        struct store_reply reply;

        store_reply_init(&reply);
        int r = store->ops->compact(store, revision, DEADLINE, store_reply_fill, &reply);
        return finish(r, &reply, NULL);
}

uint64_t store_client_revision(struct hfd_store *store) {
        struct store_reply reply;

        store_reply_init(&reply);
        int r = store->ops->revision(store, DEADLINE, store_reply_fill, &reply);
        uint64_t revision = finish(r, &reply, &reply) == 0 ? reply.revision : 0;
        store_reply_deinit(&reply);
        return revision;
}

static uint64_t write_one(struct hfd_store *store, const struct hfd_op *op) {
        struct hfd_txn txn = {.ops = op, .n_ops = 1};
        struct store_reply reply;
        uint64_t revision = store_client_txn(store, &txn, &reply) == 0 ? reply.revision : 0;

        store_reply_deinit(&reply);
        return revision;
}

uint64_t store_client_put(struct hfd_store *store, const char *key, const char *value) {
        struct hfd_op op = {.kind = HFD_PUT,
                            .key = key,
                            .value = hf__buf_copy(value, strlen(value))};

        assert(op.value);
        uint64_t revision = write_one(store, &op);
        hf__buf_unref(op.value);
        return revision;
}

uint64_t store_client_delete(struct hfd_store *store, const char *key) {
        struct hfd_op op = {.kind = HFD_DELETE, .key = key};

        return write_one(store, &op);
}

uint64_t store_client_mod_revision(struct hfd_store *store, const char *key) {
        struct store_reply reply;
        int r = store_client_get(store, key, &reply);
        uint64_t revision = r == 0 && reply.n_kvs > 0 ? reply.kvs[0].mod_revision : 0;

        assert(r == 0);
        store_reply_deinit(&reply);
        return revision;
}
