/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed takes a snapshot of each of the four resources, and builds an index from them. A change
 * between two snapshots wakes the thread again, so the last index has the last state.
 *
 * Invariants: the thread sleeps without a time limit while nothing changes. After building it
 * pauses PAUSE_FACTOR times as long as that took, so that frequent changes do not cost a processor,
 * but at most PAUSE_MAX, so that no change is delayed for long.
 */
#include "server/authorization/index_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "server/cacher/cacher.h"
#include "server/cacher/snapshot.h"
#include "server/rbac/index.h"
#include "server/resources/resource.h"

#define PAUSE_FACTOR 4
#define PAUSE_MAX    (500 * HF_NSEC_PER_MSEC)
#define RETRY        HF_NSEC_PER_SEC /* after memory ran out */

struct hfd_index_feed {
        /* Immutable. */
        const struct hf_host *host;
        struct hfd_cacher *cacher;
        void (*on_index)(void *ctx, struct hfd_rbac_index *index);
        void *ctx;
        pthread_t thread;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed, stopping;
};

static const struct {
        const char *plural;
        enum hfd_rbac_kind kind;
} kinds[] = {{"clusterroles", HFD_RBAC_CLUSTER_ROLE},
             {"roles", HFD_RBAC_ROLE},
             {"clusterrolebindings", HFD_RBAC_CLUSTER_ROLE_BINDING},
             {"rolebindings", HFD_RBAC_ROLE_BINDING}};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

static const struct hfd_resource *find_resource(size_t i) {
        return hfd_resource_find(HFD_RBAC_API, "v1", kinds[i].plural);
}

bool hfd_index_feed_observes(const struct hfd_resource *resource) {
        for (size_t i = 0; i < N_KINDS; i++)
                if (resource == find_resource(i))
                        return true;
        return false;
}

/* ---- building ---- */

/* An object that cannot be parsed grants nothing. 0 or -ENOMEM. */
static int add_object(struct hfd_rbac_builder *builder, enum hfd_rbac_kind kind,
                      const struct hfd_object *object) {
        struct hf__json *json = NULL;
        char ns[HF_NAME_MAX + 1];
        size_t n_ns = object->n_ns;

        if (n_ns >= sizeof ns)
                return 0;
        int r = hf__json_parse(object->bytes->data, object->bytes->n, &json, NULL);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        memcpy(ns, object->path, n_ns);
        ns[n_ns] = '\0';
        r = hfd_rbac_builder_add(builder, kind, ns, hfd_object_name(object), json);
        hf__json_free(json);
        return r;
}

static int add_kind(struct hfd_index_feed *feed, struct hfd_rbac_builder *builder, size_t i) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        int r = 0;

        if (!hfd_cacher_snapshot(feed->cacher, find_resource(i), 0, &snapshot))
                return hfd_cacher_synced(feed->cacher) ? -ENOMEM : -EAGAIN;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)))
                r = add_object(builder, kinds[i].kind, object);
        hfd_snapshot_done(&snapshot);
        return r;
}

/* 0, -ENOMEM, or -EAGAIN: the cacher is not filled yet, and will wake the feed. */
static int build(struct hfd_index_feed *feed, struct hfd_rbac_index **ret_index) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        int r = builder ? 0 : -ENOMEM;

        for (size_t i = 0; i < N_KINDS && r == 0; i++)
                r = add_kind(feed, builder, i);
        if (r != 0) {
                hfd_rbac_builder_free(builder);
                return r;
        }
        *ret_index = hfd_rbac_builder_finish(builder);
        return *ret_index ? 0 : -ENOMEM;
}

/* ---- the thread ---- */

/* Waits until `until` or the stop. */
static void pause_locked(struct hfd_index_feed *feed, hf_nsec until) {
        const struct hf_clock *clock = hf_host_clock(feed->host);

        while (!feed->stopping && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, until);
}

static void *feed_main(void *ctx) {
        struct hfd_index_feed *feed = ctx;
        const struct hf_clock *clock = hf_host_clock(feed->host);

        pthread_mutex_lock(&feed->mu);
        while (!feed->stopping) {
                if (!feed->changed) {
                        (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, HF_NSEC_NEVER);
                        continue;
                }
                feed->changed = false;
                pthread_mutex_unlock(&feed->mu);
                struct hfd_rbac_index *index = NULL;
                hf_nsec began = hf_now(clock);
                int r = build(feed, &index);
                hf_nsec ended = hf_now(clock), pause = (ended - began) * PAUSE_FACTOR;
                if (pause > PAUSE_MAX)
                        pause = PAUSE_MAX;
                if (r == 0) {
                        feed->on_index(feed->ctx, index);
                } else if (r == -ENOMEM) {
                        hf_log(&feed->host->log, HF_LOG_WARNING, "authorization",
                               "cannot index roles and bindings: out of memory");
                        pause = RETRY;
                }
                pthread_mutex_lock(&feed->mu);
                feed->changed |= r == -ENOMEM;
                pause_locked(feed, ended + pause);
        }
        pthread_mutex_unlock(&feed->mu);
        return NULL;
}

int hfd_index_feed_new(const struct hf_host *host, struct hfd_cacher *cacher,
                       void (*on_index)(void *ctx, struct hfd_rbac_index *index), void *ctx,
                       struct hfd_index_feed **ret_feed) {
        struct hfd_index_feed *feed = calloc(1, sizeof *feed);

        if (!feed)
                return -ENOMEM;
        *feed = (struct hfd_index_feed){.host = host,
                                        .cacher = cacher,
                                        .on_index = on_index,
                                        .ctx = ctx,
                                        .changed = true};
        int r = hf__mutex_cond_init(&feed->mu, &feed->cond);
        if (r != 0)
                goto fail;
        r = hf__thread_start(host, "hf-rbac", feed_main, feed, &feed->thread);
        if (r != 0)
                goto fail_lock;
        *ret_feed = feed;
        return 0;
fail_lock:
        pthread_cond_destroy(&feed->cond);
        pthread_mutex_destroy(&feed->mu);
fail:
        free(feed);
        return r;
}

void hfd_index_feed_stop(struct hfd_index_feed *feed) {
        if (!feed)
                return;
        pthread_mutex_lock(&feed->mu);
        bool stopped = feed->stopping;
        feed->stopping = true;
        pthread_cond_broadcast(&feed->cond);
        pthread_mutex_unlock(&feed->mu);
        if (!stopped)
                (void)hf__thread_join(feed->thread);
}

struct hfd_index_feed *hfd_index_feed_free(struct hfd_index_feed *feed) {
        if (!feed)
                return NULL;
        hfd_index_feed_stop(feed);
        pthread_cond_destroy(&feed->cond);
        pthread_mutex_destroy(&feed->mu);
        free(feed);
        return NULL;
}

void hfd_index_feed_wake(struct hfd_index_feed *feed) {
        pthread_mutex_lock(&feed->mu);
        feed->changed = true;
        pthread_cond_broadcast(&feed->cond);
        pthread_mutex_unlock(&feed->mu);
}
