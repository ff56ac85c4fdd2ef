/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server in a box over the store that misbehaves, with its loopback client, calls and watches
 * that wait, and looks past the API into the store. To be included after cmocka; everything is
 * static.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/client.h>

#include "faulty_store.h"
#include "server/storage/memory/store.h"

struct box {
        struct hf_host host;
        struct faulty store;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *client;
        struct hf_cancel *token;
        atomic_int n_replaced;
};

static inline void on_replaced(void *ctx) { atomic_fetch_add(&((struct box *)ctx)->n_replaced, 1); }

static inline int set_up(void **state) {
        struct box *box = calloc(1, sizeof *box);

        box->host.size = sizeof box->host;
        pthread_mutex_init(&box->store.mu, NULL);
        assert_int_equal(hfd_memory_store_new(&box->host, &box->store.inner), 0);
        box->store.ops = (struct hfd_store_ops){.get = f_get,
                                                .list = f_list,
                                                .txn = f_txn,
                                                .watch = f_watch,
                                                .watch_cancel = f_watch_cancel,
                                                .revision = f_revision};
        box->store.base = (struct hfd_store){&box->store.ops, &box->host};
        struct hfd_cacher_config config = {.store = &box->store.base,
                                           .prefix = "/registry",
                                           .on_history_replaced = on_replaced,
                                           .ctx = box};
        assert_int_equal(hfd_cacher_new(&box->host, &config, &box->cacher), 0);
        assert_int_equal(hfd_registry_new(&box->host, box->cacher, &box->registry), 0);
        assert_int_equal(hfd_cacher_start(box->cacher), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &box->token), 0);
        hf_cancel_set_deadline(box->token, hf_now(hf_clock_system()) + 60 * HF_NSEC_PER_SEC);
        assert_int_equal(hfd_cacher_wait_synced(box->cacher, box->token, NULL), 0);
        assert_int_equal(hfd_loopback_new(box->registry, &box->client), 0);
        *state = box;
        return 0;
}

static inline int tear_down(void **state) {
        struct box *box = *state;

        hf_client_free(box->client);
        hfd_registry_free(box->registry);
        hfd_cacher_free(box->cacher);
        box->store.inner->ops->free(box->store.inner);
        pthread_mutex_destroy(&box->store.mu);
        hf_cancel_unref(box->token);
        free(box);
        return 0;
}

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};

static inline int call_status(struct box *box, enum hf_verb verb, const char *name,
                              const char *body, struct hf_status *status) {
        struct hf_request request = {.verb = verb,
                                     .resource = workspaces,
                                     .name = name,
                                     .body = body,
                                     .n_body = body ? strlen(body) : 0};

        return hf_client_do(box->client, &request, box->token, NULL, NULL, status);
}

static inline int request(struct box *box, enum hf_verb verb, const char *name, const char *body) {
        return call_status(box, verb, name, body, NULL);
}

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        bool ended;
        int error;
};
static inline void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;
        pthread_mutex_lock(&seen->mu);
        seen->n++;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}
static inline void on_end(void *ctx, int error, const struct hf_status *status) {
        struct seen *seen = ctx;
        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->error = error;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}
static inline void watch(struct box *box, struct seen *seen) {
        struct hf_watch_spec spec = {.resource = workspaces};
        *seen = (struct seen){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false, 0};
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, NULL), 0);
}
static inline void await(struct seen *seen, size_t n, bool ended) {
        pthread_mutex_lock(&seen->mu);
        while (seen->n < n || seen->ended < ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        pthread_mutex_unlock(&seen->mu);
}

struct written {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
};
static inline void on_put(void *ctx, const struct hfd_store_reply *reply) {
        struct written *written = ctx;
        assert_int_equal(reply->error, 0);
        pthread_mutex_lock(&written->mu);
        written->done = true;
        pthread_cond_signal(&written->cond);
        pthread_mutex_unlock(&written->mu);
}
static inline void put_raw(struct box *box, const char *key, const char *text) {
        struct written written = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        assert_int_equal(box->store.inner->ops->txn(box->store.inner, &txn,
                                                    hf_now(hf_clock_system()) +
                                                            10 * HF_NSEC_PER_SEC,
                                                    on_put, &written),
                         0);
        pthread_mutex_lock(&written.mu);
        while (!written.done)
                pthread_cond_wait(&written.cond, &written.mu);
        pthread_mutex_unlock(&written.mu);
        hf__buf_unref(value);
}

struct found {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        uint64_t revision;
};
static inline void on_found(void *ctx, const struct hfd_store_reply *reply) {
        struct found *found = ctx;
        pthread_mutex_lock(&found->mu);
        found->done = true;
        found->revision = reply->n_kvs ? reply->kvs[0].mod_revision : 0;
        pthread_cond_signal(&found->cond);
        pthread_mutex_unlock(&found->mu);
}

static inline uint64_t revision_of(struct box *box, const char *key) {
        struct found found = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
        hf_nsec until = hf_now(hf_clock_system()) + 10 * HF_NSEC_PER_SEC;

        assert_int_equal(box->store.inner->ops->get(box->store.inner, key, until, on_found, &found),
                         0);
        pthread_mutex_lock(&found.mu);
        while (!found.done)
                pthread_cond_wait(&found.cond, &found.mu);
        pthread_mutex_unlock(&found.mu);
        return found.revision;
}

static inline void make_deaf(struct box *box) {
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
}
