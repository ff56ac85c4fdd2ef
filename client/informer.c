/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, starts and frees an informer. informer_private.h describes its parts, its lock and its
 * threads.
 *
 * Invariant: the configuration and the list of indexes do not change after start, so that the
 * reflector's thread and the client's callbacks can read them without the lock.
 */
#include <holdfast/informer.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/sized_struct.h"
#include "base/thread.h"
#include "client/informer_handlers.h"
#include "client/informer_private.h"
#include "client/metadata_transform.h"

static const struct hf__sized sized_config = HF__SIZED(struct hf_informer_config, resource);

/* Copies a text; NULL becomes "". */
static int copy_text(const char *text, char **ret_copy) {
        *ret_copy = strdup(text ? text : "");
        return *ret_copy ? 0 : -ENOMEM;
}

/* On failure the caller calls free_config. */
static int copy_config(struct hf_informer *informer, const struct hf_informer_config *config) {
        int r = copy_text(config->resource.group, (char **)&informer->resource.group);

        if (r == 0)
                r = copy_text(config->resource.version, (char **)&informer->resource.version);
        if (r == 0)
                r = copy_text(config->resource.plural, (char **)&informer->resource.plural);
        if (r == 0)
                r = copy_text(config->ns, &informer->ns);
        if (r == 0)
                r = copy_text(config->query, &informer->query);
        return r;
}

/* Undoes copy_config, even if that failed halfway: a member that was not copied is NULL. */
static void free_config(struct hf_informer *informer) {
        free((char *)informer->resource.group);
        free((char *)informer->resource.version);
        free((char *)informer->resource.plural);
        free(informer->ns);
        free(informer->query);
}

static int init_locks(struct hf_informer *informer) {
        int r = hf__mutex_cond_init(&informer->mu, &informer->changed);

        if (r < 0 || informer->thread != &informer->own_thread)
                return r;
        r = hf__informer_thread_init(&informer->own_thread, informer->host);
        if (r < 0) {
                (void)pthread_cond_destroy(&informer->changed);
                (void)pthread_mutex_destroy(&informer->mu);
        }
        return r;
}

int hf_informer_new(const struct hf_host *host, const struct hf_informer_config *given,
                    struct hf_informer **ret_informer) {
        struct hf_informer_config config;

        if (!ret_informer || hf__host_check(host, NULL) != 0 ||
            hf__sized_copy(&sized_config, &config, given, NULL) != 0)
                return -EINVAL;
        if (!config.client || !config.resource.version || !config.resource.plural ||
            config.resync < 0 || (config.thread && config.thread->host != host))
                return -EINVAL;
        struct hf_informer *informer = calloc(1, sizeof *informer);
        if (!informer)
                return -ENOMEM;
        informer->host = host;
        informer->clock = hf_host_clock(host);
        informer->client = config.client;
        informer->one_revision = config.one_revision;
        informer->transform = config.metadata_only ? hf__metadata_transform : NULL;
        informer->resync = config.resync;
        informer->thread = config.thread ? config.thread : &informer->own_thread;
        hf__reflector_queue_init(&informer->queue);
        informer->reflector.need_list = true; /* a watch needs a version to start from */
        int r = copy_config(informer, &config);
        if (r == 0)
                r = init_locks(informer);
        if (r < 0) {
                free_config(informer);
                free(informer);
                return r;
        }
        *ret_informer = informer;
        return 0;
}

void hf__informer_set_transform(struct hf_informer *informer, hf__informer_transform_fn transform) {
        assert(!informer->started);
        informer->transform = transform;
}

int hf_informer_start(struct hf_informer *informer) {
        if (!informer || informer->started)
                return -EINVAL;
        informer->resync_at = hf__nsec_after(hf_now(informer->clock), informer->resync);
        hf__informer_thread_attach(informer);
        int r = informer->thread == &informer->own_thread
                        ? hf__informer_thread_start(&informer->own_thread)
                        : 0;
        if (r != 0)
                hf__informer_thread_detach(informer);
        informer->started = r == 0;
        return r;
}

/* Stops the reflector and waits for its end. The reflector cancels its list and watch, and the
 * client guarantees that both end soon. Therefore this waits mainly for a handler that is still
 * running. */
static void stop_reflector(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->mu);
        informer->stop = true;
        hf__informer_thread_wake(informer);
        (void)pthread_mutex_unlock(&informer->mu);
        if (informer->thread == &informer->own_thread)
                hf__informer_thread_join(informer->thread);
        else
                hf__informer_thread_await_end(informer);
}

struct hf_informer *hf_informer_free(struct hf_informer *informer) {
        if (!informer)
                return NULL;
        if (informer->started)
                stop_reflector(informer);
        assert(!informer->waiters);
        assert(informer->reflector.n_sources == 0 && !informer->queue.first);
        hf__informer_handlers_done(informer);
        hf__informer_store_done(informer);
        hf__indexer_done(&informer->indexer);
        if (informer->thread == &informer->own_thread)
                hf__informer_thread_done(informer->thread);
        (void)pthread_cond_destroy(&informer->changed);
        (void)pthread_mutex_destroy(&informer->mu);
        free_config(informer);
        free(informer);
        return NULL;
}
