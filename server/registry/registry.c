/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API's life, and its one thread, which only keeps time: readers that waited too long,
 * bookmarks and ends of watches, the next try of filling the cache. It sleeps until the next of
 * these is due.
 */
#include "server/registry/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/cacher.h"

static void *keep_time(void *ctx) {
        struct hfd_api *api = ctx;
        const struct hf_clock *clock = hf_host_clock(api->host);

        pthread_mutex_lock(&api->mu);
        while (!api->stopping) {
                hf_nsec now = hf_now(clock), next = HF_NSEC_NEVER;
                struct hfd_watcher *dirty = NULL;
                bool fill = api->fill == HFD_FILL_BACKOFF && api->fill_again_at <= now;
                struct hfd_consistent_read *late =
                        hfd_consistent_reads_late_locked(api, now, &next);
                if (api->watches_due <= now)
                        hfd_watchers_tick_locked(api, now, &dirty);
                bool audit = api->audit_at <= now;
                uint64_t hung = api->rewatch ? api->fill_watch_id : 0;
                api->rewatch = false;
                if (late || dirty || fill || audit || hung) {
                        pthread_mutex_unlock(&api->mu);
                        hfd_consistent_reads_go(late);
                        hfd_watchers_deliver(dirty);
                        if (fill)
                                hfd_reflector_run(api);
                        if (audit)
                                hfd_store_identity_audit(api);
                        if (hung)
                                api->store->ops->watch_cancel(api->store, hung);
                        pthread_mutex_lock(&api->mu);
                        continue;
                }
                if (api->watches_due < next)
                        next = api->watches_due;
                if (api->audit_at < next)
                        next = api->audit_at;
                if (api->fill == HFD_FILL_BACKOFF && api->fill_again_at < next)
                        next = api->fill_again_at;
                (void)clock->wait(clock->ctx, &api->cond, &api->mu, next);
        }
        pthread_mutex_unlock(&api->mu);
        return NULL;
}

int hfd_api_new(const struct hf_host *host, const struct hfd_api_config *config,
                struct hfd_api **ret_api) {
        static const char *const operations[] = {"get", "list", "txn", "revision"};

        if (!config->prefix || strlen(config->prefix) >= sizeof((struct hfd_api *)0)->prefix ||
            !config->store)
                return -EINVAL;
        struct hfd_api *api = calloc(1, sizeof *api);
        if (!api)
                return -ENOMEM;
        api->host = host;
        api->store = config->store;
        api->auth = config->auth;
        api->on_history_replaced = config->on_history_replaced;
        api->history_ctx = config->ctx;
        api->audit_at = hfd_api_now(api) + HFD_AUDIT_INTERVAL;
        api->history_metrics[0] =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                               "holdfast_store_history_replaced_total",
                               "How often the store's history was found to be another one.", "");
        api->history_metrics[1] =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                               "holdfast_watch_cache_differences_total",
                               "How often the watch cache was found to differ from the store.", "");
        api->fill_relist = true;
        api->watches_due = HF_NSEC_NEVER;
        (void)snprintf(api->prefix, sizeof api->prefix, "%s", config->prefix);
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
                char labels[64];
                (void)snprintf(labels, sizeof labels, "operation=\"%s\"", operations[i]);
                api->metrics[i] =
                        hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                       "etcd_request_duration_seconds",
                                       "Latency of requests to the store, by operation.", labels);
        }
        int r = hf__mutex_init(&api->mu);
        if (r != 0) {
                free(api);
                return r;
        }
        r = hf_cond_init(&api->cond);
        if (r != 0) {
                pthread_mutex_destroy(&api->mu);
                free(api);
                return r;
        }
        *ret_api = api;
        return 0;
}

int hfd_api_start(struct hfd_api *api) {
        int r = hf__thread_start(api->host, "hf-api-time", keep_time, api, &api->timer_thread);

        if (r != 0)
                return r;
        api->timer_running = true;
        hfd_reflector_run(api);
        return 0;
}

bool hfd_api_synced(struct hfd_api *api) {
        pthread_mutex_lock(&api->mu);
        bool synced = api->synced;
        pthread_mutex_unlock(&api->mu);
        return synced;
}

static void wake(void *ctx) {
        struct hfd_api *api = ctx;

        pthread_mutex_lock(&api->mu);
        pthread_cond_broadcast(&api->cond);
        pthread_mutex_unlock(&api->mu);
}

int hfd_api_wait_synced(struct hfd_api *api, struct hf_cancel *token,
                        struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(api->host);
        struct hf_cancel_waker waker = {0};
        int r = 0;

        hf_cancel_add_waker(token, &waker, wake, api);
        pthread_mutex_lock(&api->mu);
        while (!api->synced && !hf_cancel_fired(token))
                (void)clock->wait(clock->ctx, &api->cond, &api->mu, hf_cancel_deadline(token));
        if (!api->synced)
                r = hf_fail(reterr_status, HF_E_CANCELED, "the store did not answer: %s",
                            *api->fill_status.message ? api->fill_status.message : "no reply yet");
        pthread_mutex_unlock(&api->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

hf_nsec hfd_api_store_heard_at(struct hfd_api *api) { return (hf_nsec)atomic_load(&api->heard_at); }

void hfd_api_end_watches(struct hfd_api *api) {
        struct hfd_watcher *dirty = NULL;

        pthread_mutex_lock(&api->mu);
        api->watches_ended = true;
        hfd_watchers_end_locked(api, &dirty);
        pthread_mutex_unlock(&api->mu);
        hfd_watchers_deliver(dirty);
}

struct hfd_api *hfd_api_free(struct hfd_api *api) {
        if (!api)
                return NULL;
        hfd_api_end_watches(api);
        hfd_reflector_stop(api);
        if (api->timer_running)
                pthread_join(api->timer_thread, NULL);
        pthread_mutex_lock(&api->mu);
        struct hfd_consistent_read *left = hfd_consistent_reads_all_locked(api, HF_E_CANCELED);
        pthread_mutex_unlock(&api->mu);
        hfd_consistent_reads_go(left);
        /* Every operation of the store ends by its deadline. */
        pthread_mutex_lock(&api->mu);
        while (api->n_store_calls)
                pthread_cond_wait(&api->cond, &api->mu);
        pthread_mutex_unlock(&api->mu);
        for (size_t i = 0; i < HFD_RESOURCES_MAX; i++)
                hfd_object_tree_clear(&api->trees[i]);
        hfd_object_tree_clear(&api->unreadable);
        hf__buf_unref(api->epoch);
        pthread_cond_destroy(&api->cond);
        pthread_mutex_destroy(&api->mu);
        free(api);
        return NULL;
}

void hfd_api_call(struct hfd_api *api, struct hfd_request *request) {
        struct hfd_response response = {0};

        switch (request->verb) {
        case HFD_GET: hfd_read_get(api, request); return;
        case HFD_LIST: hfd_read_list(api, request); return;
        case HFD_CREATE:
        case HFD_UPDATE:
        case HFD_PATCH:
        case HFD_DELETE_ONE: hfd_write_start(api, request); return;
        case HFD_DELETE_MANY: hfd_delete_collection(api, request); return;
        case HFD_WATCH: break; /* watch.h */
        }
        hfd_response_not_allowed(&response);
        request->done(request, &response);
        hfd_response_done(&response);
}
