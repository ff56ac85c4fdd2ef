/* SPDX-License-Identifier: Apache-2.0 */
/* The core's calls of the store: measured (etcd_request_duration_seconds), counted, and heard. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/cacher/cacher.h"

enum { OP_GET, OP_LIST, OP_TXN, OP_REVISION };

struct tracked {
        struct hfd_api *api;
        hfd_store_fn done;
        void *ctx;
        hf_nsec started;
        struct hf_metric *metric;
        struct hfd_store_identity_mark sent;
};

static void untrack(struct tracked *t) {
        struct hfd_api *api = t->api;

        free(t);
        pthread_mutex_lock(&api->mu);
        api->n_store_calls--;
        if (!api->n_store_calls && api->stopping)
                pthread_cond_broadcast(&api->cond);
        pthread_mutex_unlock(&api->mu);
}

static void tracked_done(void *ctx, const struct hfd_store_reply *reply) {
        struct tracked *t = ctx;
        hf_nsec now = hfd_api_now(t->api);

        hf_metric_observe(t->metric, (double)(now - t->started) / (double)HF_NSEC_PER_SEC);
        if (reply->error != HF_E_UNAVAILABLE && reply->error != HF_E_TIMEOUT &&
            reply->error != HF_E_CANCELED)
                atomic_store(&t->api->heard_at, now);
        hfd_store_identity_check(t->api, t->sent, reply);
        t->done(t->ctx, reply);
        untrack(t);
}

static struct tracked *track(struct hfd_api *api, int op, hfd_store_fn done, void *ctx) {
        struct tracked *t = malloc(sizeof *t);

        if (!t)
                return NULL;
        *t = (struct tracked){.api = api,
                              .done = done,
                              .ctx = ctx,
                              .started = hfd_api_now(api),
                              .metric = api->metrics[op]};
        pthread_mutex_lock(&api->mu);
        t->sent = hfd_store_identity_mark_locked(api);
        api->n_store_calls++;
        pthread_mutex_unlock(&api->mu);
        return t;
}

static int started(struct tracked *t, int r) {
        if (r != 0)
                untrack(t);
        return r;
}

int hfd_store_get(struct hfd_api *api, const char *key, hf_nsec deadline, hfd_store_fn done,
                  void *ctx) {
        struct tracked *t = track(api, OP_GET, done, ctx);

        return t ? started(t, api->store->ops->get(api->store, key, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_list(struct hfd_api *api, const char *prefix, const char *start_key,
                   uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                   void *ctx) {
        struct tracked *t = track(api, OP_LIST, done, ctx);

        return t ? started(t, api->store->ops->list(api->store, prefix, start_key, revision, limit,
                                                    false, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_keys(struct hfd_api *api, const char *prefix, const char *start_key,
                   uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                   void *ctx) {
        struct tracked *t = track(api, OP_LIST, done, ctx);

        return t ? started(t, api->store->ops->list(api->store, prefix, start_key, revision, limit,
                                                    true, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_txn(struct hfd_api *api, const struct hfd_txn *txn, hf_nsec deadline,
                  hfd_store_fn done, void *ctx) {
        struct tracked *t = track(api, OP_TXN, done, ctx);

        return t ? started(t, api->store->ops->txn(api->store, txn, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_store_revision(struct hfd_api *api, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct tracked *t = track(api, OP_REVISION, done, ctx);

        return t ? started(t, api->store->ops->revision(api->store, deadline, tracked_done, t))
                 : -ENOMEM;
}

int hfd_object_key(struct hfd_api *api, const struct hfd_resource *resource, const char *path,
                   char key[HFD_KEY_MAX]) {
        return hf__join(key, HFD_KEY_MAX, api->prefix, "/", resource->storage, "/", path, NULL)
                       ? 0
                       : HF_E_TOO_LARGE;
}

const struct hfd_resource *hfd_object_of_key(struct hfd_api *api, const char *key,
                                             const char **ret_path) {
        size_t n, n_prefix = strlen(api->prefix);
        const struct hfd_resource *rows = hfd_resources(&n);

        if (strncmp(key, api->prefix, n_prefix) != 0 || key[n_prefix] != '/')
                return NULL;
        key += n_prefix + 1;
        for (size_t i = 0; i < n; i++) {
                size_t n_storage = strlen(rows[i].storage);
                if (strncmp(key, rows[i].storage, n_storage) != 0 || key[n_storage] != '/')
                        continue;
                *ret_path = key + n_storage + 1;
                const char *slash = strchr(*ret_path, '/');
                return **ret_path && (slash != NULL) == rows[i].namespaced ? &rows[i] : NULL;
        }
        return NULL;
}

void hfd_request_object_path(const struct hfd_request *request, char path[2 * HF_NAME_MAX + 2]) {
        bool namespaced = request->resource->namespaced;

        (void)hf__join(path, 2 * HF_NAME_MAX + 2, namespaced ? request->ns : "",
                       namespaced ? "/" : "", request->name, NULL);
}
