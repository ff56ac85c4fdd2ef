/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Waits for the results of a store's operations, for commands that do one thing after the other.
 * The operations themselves are asynchronous (store.h).
 *
 *      struct hfd_result result = {0};
 *      hfd_waiter_begin(&waiter, &result);
 *      r = store->ops->get(store, key, false, deadline, hfd_result_fill, &result);
 *      r = hfd_waiter_end(&waiter, &result, r);
 *
 * Several operations may be begun before the first is ended.
 *
 * Thread: one thread begins and ends; the store's threads fill.
 */
#include <pthread.h>

#include "server/storage/store.h"

struct hfd_waiter {
        const struct hf_clock *clock; /* borrowed */
        pthread_mutex_t mu;
        pthread_cond_t cond;
};

/* The result of an operation: a copy of its reply without cluster_id. Zeroed: no operation yet. */
struct hfd_result {
        struct hfd_waiter *waiter;
        /* Guarded by the waiter's mu. The members below are valid once it is true. It stays false
         * if the operation could not be started: then only `error` and `status` are valid. */
        bool done;
        int error; /* that of the reply or of the start; -ENOMEM: no memory for the copy */
        uint64_t revision;
        struct hfd_kv *kvs; /* owned */
        size_t n_kvs;
        bool more;
        struct hf_status status;
};

/* 0 or -errno. host is borrowed. */
int hfd_waiter_init(struct hfd_waiter *waiter, const struct hf_host *host);
void hfd_waiter_deinit(struct hfd_waiter *waiter);

/* Call it before the operation is started. Frees the result of an earlier operation, which must
 * have ended. */
void hfd_waiter_begin(struct hfd_waiter *waiter, struct hfd_result *result);
/* The callback to start the operation with; ctx is the result. */
void hfd_result_fill(void *ctx, const struct hfd_store_reply *reply);
/* started: the return value of the function that started the operation. If it is 0, waits for the
 * reply, which comes by the operation's deadline, and returns its error. Otherwise returns
 * `started`. */
int hfd_waiter_end(struct hfd_waiter *waiter, struct hfd_result *result, int started);
/* Blocks until this boot time. */
void hfd_waiter_pause(struct hfd_waiter *waiter, hf_nsec until);
/* Accepts a zeroed result and leaves a zeroed one. */
void hfd_result_deinit(struct hfd_result *result);
