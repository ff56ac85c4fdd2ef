/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The reply of a store (server/storage/store.h) that a test waits for: a copy that outlives the
 * store's callback. Waiting aborts when it takes too long. Thread: one waits; the store's thread
 * fills it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct store_reply_kv {
        char *key;
        struct hf__buf *value;
        uint64_t mod_revision, create_revision;
};

struct store_reply {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int error;
        uint64_t revision, cluster_id;
        bool more;
        size_t n_kvs;
        struct store_reply_kv *kvs;
        struct hf_status status;
};

void store_reply_init(struct store_reply *reply);
void store_reply_deinit(struct store_reply *reply);
/* For an operation's done, with the store_reply as its ctx. */
void store_reply_fill(void *ctx, const struct hfd_store_reply *from);
int store_reply_wait(struct store_reply *reply); /* returns reply->error */
/* The value of kvs[i] as a string; "(none)" if there is none. */
const char *store_reply_value(const struct store_reply *reply, size_t i);
