/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed of configuration.
 *
 * Invariants: the thread sleeps without a time limit while nothing changes. A change while it
 * refreshes makes it refresh again, so the last refresh sees the last state. After a refresh it
 * pauses PAUSE_FACTOR times as long as that took, at most PAUSE_MAX, so that frequent changes do
 * not keep a processor busy. chain->ready becomes true after the first refresh of all plug-ins that
 * succeeds, and stays.
 */
#include "server/admission/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/admission/admission.h"

#define PAUSE_FACTOR 4
#define PAUSE_MAX    (300 * HF_NSEC_PER_MSEC)
#define RETRY        HF_NSEC_PER_SEC /* after memory ran out */

struct hfd_admission_feed {
        /* Immutable. */
        const struct hf_host *host;
        struct hfd_admission_chain *chain;
        pthread_t thread;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool changed, stopping;
};

bool hfd_admission_feed_observes(const struct hfd_resource *resource) {
        return strcmp(resource->group, HFD_ADMISSION_GROUP) == 0;
}

/* Refreshes all plug-ins. 0, or what the last failing one returned. */
static int refresh(const struct hfd_admission_chain *chain) {
        int result = 0;

        for (size_t i = 0; i < chain->n_plugins; i++) {
                const struct hfd_admission_plugin *plugin = &chain->plugins[i];
                int r = plugin->refresh ? plugin->refresh(plugin->ctx) : 0;
                if (r != 0)
                        result = r;
        }
        return result;
}

/* Waits until `until` or the stop. */
static void pause_locked(struct hfd_admission_feed *feed, hf_nsec until) {
        const struct hf_clock *clock = hf_host_clock(feed->host);

        while (!feed->stopping && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, until);
}

static void *feed_main(void *ctx) {
        struct hfd_admission_feed *feed = ctx;
        const struct hf_clock *clock = hf_host_clock(feed->host);

        pthread_mutex_lock(&feed->mu);
        while (!feed->stopping) {
                if (!feed->changed) {
                        (void)clock->wait(clock->ctx, &feed->cond, &feed->mu, HF_NSEC_NEVER);
                        continue;
                }
                feed->changed = false;
                pthread_mutex_unlock(&feed->mu);
                hf_nsec began = hf_now(clock);
                int r = refresh(feed->chain);
                hf_nsec ended = hf_now(clock), pause = (ended - began) * PAUSE_FACTOR;
                if (pause > PAUSE_MAX)
                        pause = PAUSE_MAX;
                if (r == 0) {
                        atomic_store(&feed->chain->ready, true);
                } else if (r != -EAGAIN) {
                        hf_log(&feed->host->log, HF_LOG_WARNING, "admission",
                               "cannot read the configuration of admission: %s", hf_strerror(r));
                        pause = RETRY;
                }
                pthread_mutex_lock(&feed->mu);
                feed->changed |= r != 0 && r != -EAGAIN;
                pause_locked(feed, ended + pause);
        }
        pthread_mutex_unlock(&feed->mu);
        return NULL;
}

int hfd_admission_feed_new(const struct hf_host *host, struct hfd_admission_chain *chain,
                           struct hfd_admission_feed **ret_feed) {
        struct hfd_admission_feed *feed = calloc(1, sizeof *feed);

        if (!feed)
                return -ENOMEM;
        *feed = (struct hfd_admission_feed){.host = host, .chain = chain, .changed = true};
        int r = hf__mutex_cond_init(&feed->mu, &feed->cond);
        if (r != 0)
                goto fail;
        r = hf__thread_start(host, "hf-admission", feed_main, feed, &feed->thread);
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

void hfd_admission_feed_stop(struct hfd_admission_feed *feed) {
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

struct hfd_admission_feed *hfd_admission_feed_free(struct hfd_admission_feed *feed) {
        if (!feed)
                return NULL;
        hfd_admission_feed_stop(feed);
        pthread_cond_destroy(&feed->cond);
        pthread_mutex_destroy(&feed->mu);
        free(feed);
        return NULL;
}

void hfd_admission_feed_wake(struct hfd_admission_feed *feed) {
        if (!feed)
                return;
        pthread_mutex_lock(&feed->mu);
        feed->changed = true;
        pthread_cond_broadcast(&feed->cond);
        pthread_mutex_unlock(&feed->mu);
}
