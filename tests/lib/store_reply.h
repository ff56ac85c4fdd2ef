/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A copy of a store's reply (server/storage/store.h), for a test that waits for it. Waiting aborts
 * after PATIENCE_MSEC. Thread: one thread waits; any thread fills it.
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
/* The callback for an operation; ctx is the store_reply. */
void store_reply_fill(void *ctx, const struct hfd_store_reply *from);
int store_reply_wait(struct store_reply *reply); /* returns reply->error */
/* The value of kvs[i] as a string; "(none)" if there is none. */
const char *store_reply_value(const struct store_reply *reply, size_t i);
