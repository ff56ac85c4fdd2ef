/* SPDX-License-Identifier: Apache-2.0 */
/* See store_reply.h. It asserts that each operation gets exactly one reply. */
#include "store_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

void store_reply_init(struct store_reply *reply) {
        *reply = (struct store_reply){0};
        pthread_mutex_init(&reply->mu, NULL);
        int r = hf_cond_init(&reply->cond);
        assert(r == 0);
}

void store_reply_deinit(struct store_reply *reply) {
        for (size_t i = 0; i < reply->n_kvs; i++) {
                free(reply->kvs[i].key);
                hf__buf_unref(reply->kvs[i].value);
        }
        free(reply->kvs);
        pthread_cond_destroy(&reply->cond);
        pthread_mutex_destroy(&reply->mu);
}

static void copy_kvs(struct store_reply *reply, const struct hfd_kv *kvs, size_t n) {
        reply->n_kvs = n;
        reply->kvs = calloc(n + 1, sizeof *reply->kvs);
        assert(reply->kvs);
        for (size_t i = 0; i < n; i++) {
                reply->kvs[i] = (struct store_reply_kv){.key = strdup(kvs[i].key),
                                                        .value = hf__buf_ref(kvs[i].value),
                                                        .mod_revision = kvs[i].mod_revision,
                                                        .create_revision = kvs[i].create_revision};
                assert(reply->kvs[i].key);
        }
}

void store_reply_fill(void *ctx, const struct hfd_store_reply *from) {
        struct store_reply *reply = ctx;

        pthread_mutex_lock(&reply->mu);
        assert(!reply->done);
        reply->done = true;
        reply->error = from->error;
        reply->revision = from->revision;
        reply->cluster_id = from->cluster_id;
        reply->more = from->more;
        reply->status = from->status;
        copy_kvs(reply, from->kvs, from->n_kvs);
        pthread_cond_broadcast(&reply->cond);
        pthread_mutex_unlock(&reply->mu);
}

int store_reply_wait(struct store_reply *reply) {
        pthread_mutex_lock(&reply->mu);
        PATIENCE_AWAIT_LOCKED(&reply->cond, &reply->mu, reply->done);
        pthread_mutex_unlock(&reply->mu);
        return reply->error;
}

const char *store_reply_value(const struct store_reply *reply, size_t i) {
        return i < reply->n_kvs && reply->kvs[i].value ? reply->kvs[i].value->data : "(none)";
}
