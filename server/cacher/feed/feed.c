/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a feed. A change while the thread works makes it run again, so its last result
 * always includes the last change. Each run is on a thread of its own (hf__thread_run): it parses
 * all objects and needs much memory for a moment, but runs are rare. So the stack and the
 * allocator's cache of the thread are given back after each run.
 *
 * Invariants: the thread sleeps without a time limit while nothing changes. Each run costs a pause
 * of PAUSE_FACTOR times as long as the run took, so that frequent changes do not keep a processor
 * busy. The pause is at most pause_max, so that no change is delayed for long. It is at least
 * PAUSE_MIN, unless pause_max is less, because each run reads all objects, and an instance that
 * starts with an empty store creates its default objects one after the other. The thread may put
 * off pauses, up to CREDIT in total: a few changes after a quiet time, such as a role and then its
 * binding, are seen at once, because their client often uses them at once. If memory ran out, the
 * thread pauses RETRY instead.
 */
#include "server/cacher/feed/feed.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/thread.h"
#include "server/cacher/cacher.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/packed.h"

#define PAUSE_FACTOR 4
#define PAUSE_MIN    (10 * HF_NSEC_PER_MSEC)
#define CREDIT       (100 * HF_NSEC_PER_MSEC)
#define RETRY        HF_NSEC_PER_SEC /* after memory ran out */

struct hfd_feed {
        /* Immutable. */
        const struct hf_host *host;
        struct hfd_feed_config config;
        pthread_t thread;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed; /* make must be called; true at first, so that the first run needs no wake */
        bool stopping;
};

/* ---- objects ---- */

static int pass_object(const struct hfd_object *object, hfd_feed_object_fn fn, void *ctx) {
        struct hf__json *json = NULL;
        struct hf__buf *bytes;
        char ns[HF_NAME_MAX + 1];
        size_t n_ns = object->n_ns;

        if (n_ns >= sizeof ns)
                return 0;
        bytes = hfd_unpack(object->bytes);
        int r = bytes ? hf__json_parse(bytes->data, bytes->n, &json, NULL) : -ENOMEM;
        hf__buf_unref(bytes);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        memcpy(ns, object->path, n_ns);
        ns[n_ns] = '\0';
        r = fn(ctx, ns, hfd_object_name(object), json);
        hf__json_free(json);
        return r;
}

int hfd_feed_each(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                  uint64_t *revision, hfd_feed_object_fn fn, void *ctx) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        assert(fn);
        bool taken = *revision != 0 && hfd_snapshot_take(cacher, resource, *revision, &snapshot);
        int r = taken ? 0 : hfd_snapshot_take_now(cacher, resource, &snapshot);

        if (r != 0)
                return r;
        if (*revision == 0)
                *revision = snapshot.revision;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)))
                r = pass_object(object, fn, ctx);
        hfd_snapshot_done(&snapshot);
        return r;
}

/* ---- the thread ---- */

/* Waits until the time `until`, or until the feed stops. */
static void pause_locked(struct hfd_feed *feed, hf_nsec until) {
        const struct hf_clock *clock = hf_host_clock(feed->host);

        hf__mutex_assert_held(&feed->mu);
        while (!feed->stopping && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, until);
}

static int run_make(void *ctx) {
        struct hfd_feed *feed = ctx;

        return feed->config.make(feed->config.ctx, feed->config.cacher);
}

/* The pause that a run costs. */
static hf_nsec pause_after(const struct hfd_feed *feed, hf_nsec took) {
        hf_nsec pause = took * PAUSE_FACTOR;

        if (pause < PAUSE_MIN)
                pause = PAUSE_MIN;
        if (pause > feed->config.pause_max)
                pause = feed->config.pause_max;
        return pause;
}

static void *feed_main(void *ctx) {
        struct hfd_feed *feed = ctx;
        const struct hf_clock *clock = hf_host_clock(feed->host);
        /* Boot time at which the pauses of all runs, also those that were put off, are over. */
        hf_nsec paid = 0;

        pthread_mutex_lock(&feed->mu);
        while (!feed->stopping) {
                if (!feed->changed) {
                        (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, HF_NSEC_NEVER);
                        continue;
                }
                feed->changed = false;
                pthread_mutex_unlock(&feed->mu);
                hf_nsec began = hf_now(clock);
                int r = hf__thread_run(feed->host, feed->config.thread, run_make, feed);
                hf_nsec ended = hf_now(clock), took = ended - began;
                paid = (paid > began ? paid : began) + took + pause_after(feed, took);
                if (r == -ENOMEM) {
                        hf_log(&feed->host->log, HF_LOG_WARNING, feed->config.component,
                               "memory ran out: reading the objects again in a second");
                        paid = ended + RETRY + CREDIT;
                }
                pthread_mutex_lock(&feed->mu);
                feed->changed |= r == -ENOMEM;
                pause_locked(feed, paid - CREDIT);
        }
        pthread_mutex_unlock(&feed->mu);
        return NULL;
}

static void destroy_feed(struct hfd_feed *feed) {
        pthread_cond_destroy(&feed->cond);
        pthread_mutex_destroy(&feed->mu);
        free(feed);
}

HF__CLEANUP_DEFINE(feed_cleanup, struct hfd_feed *, destroy_feed)

int hfd_feed_new(const struct hf_host *host, const struct hfd_feed_config *config,
                 struct hfd_feed **ret_feed) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_feed *memory = calloc(1, sizeof *memory);

        assert(config->cacher && config->make && config->thread && config->component);
        if (!memory)
                return -ENOMEM;
        *memory = (struct hfd_feed){.host = host, .config = *config, .changed = true};
        int r = hf__mutex_cond_init(&memory->mu, &memory->cond);
        if (r != 0)
                return r;
        HF__CLEANUP(feed_cleanup) struct hfd_feed *feed = HF__TAKE(memory);
        r = hf__thread_start(host, config->thread, feed_main, feed, &feed->thread);
        if (r != 0)
                return r;
        *ret_feed = HF__TAKE(feed);
        return 0;
}

void hfd_feed_stop(struct hfd_feed *feed) {
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

struct hfd_feed *hfd_feed_free(struct hfd_feed *feed) {
        if (!feed)
                return NULL;
        hfd_feed_stop(feed);
        assert(feed->stopping); /* so its thread is joined */
        destroy_feed(feed);
        return NULL;
}

void hfd_feed_wake(struct hfd_feed *feed) {
        if (!feed)
                return;
        pthread_mutex_lock(&feed->mu);
        feed->changed = true;
        pthread_cond_broadcast(&feed->cond);
        pthread_mutex_unlock(&feed->mu);
}
