/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for operations of a store.
 *
 * Invariant: a result that was begun and started is filled exactly once, because the store calls
 * back exactly once.
 */
#include "server/storage/waiter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

int hfd_waiter_init(struct hfd_waiter *waiter, const struct hf_host *host) {
        waiter->clock = hf_host_clock(host);
        return hf__mutex_cond_init(&waiter->mu, &waiter->cond);
}

void hfd_waiter_deinit(struct hfd_waiter *waiter) {
        pthread_cond_destroy(&waiter->cond);
        pthread_mutex_destroy(&waiter->mu);
}

void hfd_result_deinit(struct hfd_result *result) {
        for (size_t i = 0; i < result->n_kvs; i++) {
                free((char *)result->kvs[i].key);
                hf__buf_unref(result->kvs[i].value);
        }
        free(result->kvs);
        *result = (struct hfd_result){0};
}

void hfd_waiter_begin(struct hfd_waiter *waiter, struct hfd_result *result) {
        hfd_result_deinit(result);
        result->waiter = waiter;
}

/* 0 or -ENOMEM. */
static int copy_kvs(struct hfd_result *result, const struct hfd_store_reply *reply) {
        if (reply->n_kvs == 0)
                return 0;
        result->kvs = calloc(reply->n_kvs, sizeof *result->kvs);
        if (!result->kvs)
                return -ENOMEM;
        for (size_t i = 0; i < reply->n_kvs; i++) {
                assert(result->n_kvs < reply->n_kvs);
                struct hfd_kv *kv = &result->kvs[result->n_kvs++];

                *kv = reply->kvs[i];
                kv->value = hf__buf_ref(kv->value);
                kv->key = strdup(kv->key);
                if (!kv->key)
                        return -ENOMEM;
        }
        return 0;
}

/* Thread: the store's. */
void hfd_result_fill(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_result *result = ctx;
        struct hfd_waiter *waiter = result->waiter;

        result->error = reply->error;
        result->revision = reply->revision;
        result->more = reply->more;
        result->status = reply->status;
        if (copy_kvs(result, reply) != 0)
                result->error = hf_fail(&result->status, -ENOMEM, "out of memory");
        pthread_mutex_lock(&waiter->mu);
        assert(!result->done);
        result->done = true;
        pthread_cond_broadcast(&waiter->cond);
        pthread_mutex_unlock(&waiter->mu);
}

int hfd_waiter_end(struct hfd_waiter *waiter, struct hfd_result *result, int started) {
        assert(result->waiter == waiter);
        if (started != 0) {
                result->error = hf_fail(&result->status, started, "%s", hf_strerror(started));
                return started;
        }
        pthread_mutex_lock(&waiter->mu);
        while (!result->done)
                (void)waiter->clock->wait(waiter->clock->ctx, &waiter->cond, &waiter->mu,
                                          HF_NSEC_NEVER);
        pthread_mutex_unlock(&waiter->mu);
        return result->error;
}

void hfd_waiter_pause(struct hfd_waiter *waiter, hf_nsec until) {
        pthread_mutex_lock(&waiter->mu);
        while (hf_now(waiter->clock) < until)
                (void)waiter->clock->wait(waiter->clock->ctx, &waiter->cond, &waiter->mu, until);
        pthread_mutex_unlock(&waiter->mu);
}
