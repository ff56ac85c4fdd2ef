/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The face of the cache: what other threads call. cache_impl.h says how the parts divide the work.
 *
 * A handler is in one of three states: new (replayed false), told (it gets events), removed. The
 * thread marks the one it is in as running; a remover marks it removed, waits until it is not the
 * running one, and only then unlinks and frees it. So the thread may rely on the handler it is in,
 * and on its next, whenever it holds the lock again.
 */
#include "client/informer_barrier.h"
#include "client/informer_lookup.h"
#include "client/informer_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/workqueue.h>

#include "base/buf.h"
#include "base/sized_config.h"
#include "base/thread.h"

/* A list made for waiters costs as much as the collection; a large one first gives the watch a
 * chance. */
#define PROBE_GRACE (50 * HF_NSEC_PER_MSEC)
#define TERM_GRACE  (10 * HF_NSEC_PER_MSEC)
#define ONLY_A_LIST UINT64_MAX /* a revision that nothing reaches */

/* ---- handlers ---- */

static void call_handler_locked(struct hf_cache *cache, struct hf_cache_handler *handler,
                                enum hf_event_type type, const struct hf__cache_entry *entry,
                                const struct hf__buf *object) {
        cache->running = handler;
        (void)pthread_mutex_unlock(&cache->mu);
        handler->fn(handler->ctx, type, entry->ns, entry->name, object->data, object->n);
        (void)pthread_mutex_lock(&cache->mu);
        cache->running = NULL;
        (void)pthread_cond_broadcast(&cache->changed);
}

void hf__cache_tell(struct hf_cache *cache, enum hf_event_type type,
                    const struct hf__cache_entry *entry, const struct hf__buf *object) {
        (void)pthread_mutex_lock(&cache->mu);
        for (struct hf_cache_handler *h = cache->handlers; h; h = h->next)
                if (h->replayed && !h->removed)
                        call_handler_locked(cache, h, type, entry, object);
        (void)pthread_mutex_unlock(&cache->mu);
}

static void tell_all_locked(struct hf_cache *cache, struct hf_cache_handler *handler,
                            enum hf_event_type type) {
        for (size_t i = 0; i < cache->store.n && !handler->removed && !cache->stop; i++) {
                const struct hf__cache_entry *entry =
                        (const struct hf__cache_entry *)cache->store.items[i];
                call_handler_locked(cache, handler, type, entry, entry->object);
        }
}

bool hf__cache_replay_locked(struct hf_cache *cache) {
        bool any = false;

        for (struct hf_cache_handler *h = cache->handlers; h; h = h->next) {
                if (h->replayed || h->removed)
                        continue;
                any = true;
                tell_all_locked(cache, h, HF_EVENT_ADDED);
                h->replayed = true;
        }
        return any;
}

bool hf__cache_resync_locked(struct hf_cache *cache) {
        hf_nsec now = hf_now(cache->clock);

        if (cache->resync <= 0 || now < cache->resync_at)
                return false;
        for (struct hf_cache_handler *h = cache->handlers; h; h = h->next)
                if (h->replayed)
                        tell_all_locked(cache, h, HF_EVENT_MODIFIED);
        cache->resync_at = now + cache->resync;
        return true;
}

int hf_cache_add_handler(struct hf_cache *cache, hf_cache_handler_fn fn, void *ctx,
                         struct hf_cache_handler **ret_handler) {
        if (!cache || !fn || !ret_handler)
                return -EINVAL;
        struct hf_cache_handler *handler = calloc(1, sizeof *handler), **place;
        if (!handler)
                return -ENOMEM;
        handler->fn = fn;
        handler->ctx = ctx;
        (void)pthread_mutex_lock(&cache->mu);
        for (place = &cache->handlers; *place; place = &(*place)->next)
                ;
        *place = handler;
        (void)pthread_cond_signal(&cache->wake);
        (void)pthread_mutex_unlock(&cache->mu);
        *ret_handler = handler;
        return 0;
}

void hf_cache_remove_handler(struct hf_cache *cache, struct hf_cache_handler *handler) {
        struct hf_cache_handler **place;

        if (!handler)
                return;
        (void)pthread_mutex_lock(&cache->mu);
        handler->removed = true;
        while (cache->running == handler) /* handlers do not block, so this ends */
                (void)cache->clock->wait(cache->clock->ctx, &cache->changed, &cache->mu,
                                         HF_NSEC_NEVER);
        for (place = &cache->handlers; *place != handler; place = &(*place)->next)
                ;
        *place = handler->next;
        (void)pthread_mutex_unlock(&cache->mu);
        free(handler);
}

size_t hf_cache_n_handlers(struct hf_cache *cache) {
        size_t n = 0;

        (void)pthread_mutex_lock(&cache->mu);
        for (struct hf_cache_handler *h = cache->handlers; h; h = h->next)
                n++;
        (void)pthread_mutex_unlock(&cache->mu);
        return n;
}

/* ---- waiting and reading ---- */

static void wake_waiters(void *ctx) {
        struct hf_cache *cache = ctx;

        /* Under the lock, so that it cannot fall between a waiter's look at its token and its wait.
         */
        (void)pthread_mutex_lock(&cache->mu);
        (void)pthread_cond_broadcast(&cache->changed);
        (void)pthread_mutex_unlock(&cache->mu);
}

/* Makes the thread set out for what the waiter wants. */
static void enlist_locked(struct hf_cache *cache, struct hf__cache_waiter *waiter,
                          uint64_t revision, hf_nsec grace) {
        *waiter = (struct hf__cache_waiter){.next = cache->waiters,
                                            .revision = revision,
                                            .after = cache->n_lists};
        if (!hf__cache_reached_locked(cache, waiter)) {
                if (cache->store.n > HF__CACHE_PAGE)
                        grace = PROBE_GRACE;
                hf_nsec probe_at = hf_now(cache->clock) + grace;
                if (!cache->waiters || probe_at < cache->probe_at)
                        cache->probe_at = probe_at; /* a new waiter does not inherit the delays of
                                                       one that asks too much */
                cache->probe_failures = 0;
                (void)pthread_cond_signal(&cache->wake);
        }
        cache->waiters = waiter;
}

static void strike_locked(struct hf_cache *cache, const struct hf__cache_waiter *waiter) {
        struct hf__cache_waiter **place = &cache->waiters;
        while (*place != waiter)
                place = &(*place)->next;
        *place = waiter->next;
}

static int await(struct hf_cache *cache, const struct hf__cache_waiter *waiter,
                 struct hf_cancel *token) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, wake_waiters, cache);
        (void)pthread_mutex_lock(&cache->mu);
        while (!hf__cache_reached_locked(cache, waiter) && !hf_cancel_fired(token))
                (void)cache->clock->wait(cache->clock->ctx, &cache->changed, &cache->mu,
                                         hf_cancel_deadline(token));
        int r = hf__cache_reached_locked(cache, waiter) ? 0 : HF_E_CANCELED;
        (void)pthread_mutex_unlock(&cache->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

static int wait_all(struct hf_cache *const *caches, size_t n_caches, uint64_t revision,
                    hf_nsec grace, struct hf_cancel *token) {
        int r = 0;

        /* A few, and always the one of hf_cache_wait, need no memory that could be short. */
        struct hf__cache_waiter few[4] = {0}, *waiters = few;
        if (n_caches > sizeof few / sizeof *few && !(waiters = calloc(n_caches, sizeof *waiters)))
                return -ENOMEM;
        for (size_t i = 0; i < n_caches; i++) {
                (void)pthread_mutex_lock(&caches[i]->mu);
                enlist_locked(caches[i], &waiters[i], revision,
                              caches[i]->one_revision ? grace : 0);
                (void)pthread_mutex_unlock(&caches[i]->mu);
        }
        for (size_t i = 0; r == 0 && i < n_caches; i++)
                r = await(caches[i], &waiters[i], token);
        for (size_t i = 0; i < n_caches; i++) {
                (void)pthread_mutex_lock(&caches[i]->mu);
                strike_locked(caches[i], &waiters[i]);
                (void)pthread_mutex_unlock(&caches[i]->mu);
        }
        if (waiters != few)
                free(waiters);
        return r;
}

int hf_cache_wait_all(struct hf_cache *const *caches, size_t n_caches, const char *resource_version,
                      struct hf_cancel *token) {
        uint64_t revision = hf__cache_revision(resource_version);

        if (!caches || !token || (resource_version && revision == 0))
                return -EINVAL;
        return wait_all(caches, n_caches, revision, 0, token);
}

int hf__cache_wait_term(struct hf_cache *const *caches, size_t n_caches,
                        const char *resource_version, struct hf_cancel *token) {
        uint64_t revision = hf__cache_revision(resource_version);

        if (resource_version &&
            revision ==
                    0) /* no number that an event or a list could reach: a list is what it takes */
                revision = ONLY_A_LIST;
        for (size_t i = 0; i < n_caches && revision == ONLY_A_LIST; i++)
                if (caches[i]->one_revision)
                        return -EINVAL;
        return wait_all(caches, n_caches, revision, TERM_GRACE, token);
}

int hf_cache_wait(struct hf_cache *cache, const char *resource_version, struct hf_cancel *token) {
        return cache ? hf_cache_wait_all(&cache, 1, resource_version, token) : -EINVAL;
}

bool hf_cache_synced(struct hf_cache *cache) {
        (void)pthread_mutex_lock(&cache->mu);
        bool synced = cache->synced;
        (void)pthread_mutex_unlock(&cache->mu);
        return synced;
}

int hf_cache_get(struct hf_cache *cache, const char *ns, const char *name, char **ret_object,
                 size_t *ret_n) {
        char key[HF_KEY_MAX];

        if (!cache || !name || !ret_object)
                return -EINVAL;
        if (hf_key_make(key, ns, name) < 0)
                return HF_E_NOT_FOUND;
        (void)pthread_mutex_lock(&cache->mu);
        struct hf__cache_entry *entry =
                (struct hf__cache_entry *)hf__key_index_find(&cache->store, key);
        struct hf__buf *object = entry ? hf__buf_ref(entry->object) : NULL;
        (void)pthread_mutex_unlock(&cache->mu);
        if (!object)
                return HF_E_NOT_FOUND;
        char *copy = malloc(object->n + 1);
        if (copy) {
                memcpy(copy, object->data, object->n);
                copy[object->n] = '\0';
                *ret_object = copy;
                if (ret_n)
                        *ret_n = object->n;
        }
        (void)hf__buf_unref(object);
        return copy ? 0 : -ENOMEM;
}

size_t hf_cache_count(struct hf_cache *cache) {
        (void)pthread_mutex_lock(&cache->mu);
        size_t n = cache->store.n;
        (void)pthread_mutex_unlock(&cache->mu);
        return n;
}

bool hf__cache_has_in(struct hf_cache *cache, const char *ns) {
        char from[HF_NAME_MAX + 2];
        int n = snprintf(from, sizeof from, "%s/", ns);

        if (n < 0 || (size_t)n >= sizeof from)
                return false;
        (void)pthread_mutex_lock(&cache->mu);
        const struct hf__keyed *first = hf__key_index_from(&cache->store, from);
        bool has = first && strncmp(first->key, from, (size_t)n) == 0;
        (void)pthread_mutex_unlock(&cache->mu);
        return has;
}

void hf_cache_each(struct hf_cache *cache,
                   void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                size_t n),
                   void *ctx) {
        (void)pthread_mutex_lock(&cache->mu);
        for (size_t i = 0; i < cache->store.n; i++)
                hf__cache_hand_out((const struct hf__cache_entry *)cache->store.items[i], each,
                                   ctx);
        (void)pthread_mutex_unlock(&cache->mu);
}

/* ---- life ---- */

static int copy_text(const char *text, char **ret_copy) {
        *ret_copy = strdup(text ? text : "");
        return *ret_copy ? 0 : -ENOMEM;
}

static int copy_config(struct hf_cache *cache, const struct hf_cache_config *config) {
        int r = copy_text(config->resource.group, (char **)&cache->resource.group);
        if (r == 0)
                r = copy_text(config->resource.version, (char **)&cache->resource.version);
        if (r == 0)
                r = copy_text(config->resource.plural, (char **)&cache->resource.plural);
        if (r == 0)
                r = copy_text(config->ns, &cache->ns);
        if (r == 0)
                r = copy_text(config->query, &cache->query);
        return r;
}

static void free_config(struct hf_cache *cache) {
        free((char *)cache->resource.group);
        free((char *)cache->resource.version);
        free((char *)cache->resource.plural);
        free(cache->ns);
        free(cache->query);
}

static int init_locks(struct hf_cache *cache) {
        int r = hf__mutex_init(&cache->mu);
        if (r < 0)
                return r;
        r = hf_cond_init(&cache->wake);
        if (r == 0) {
                r = hf_cond_init(&cache->changed);
                if (r == 0)
                        return 0;
                (void)pthread_cond_destroy(&cache->wake);
        }
        (void)pthread_mutex_destroy(&cache->mu);
        return r;
}

int hf_cache_new(const struct hf_host *host, const struct hf_cache_config *given,
                 struct hf_cache **ret_cache) {
        struct hf_cache_config config;

        if (!host || !given || !ret_cache ||
            hf__config_take(&config, sizeof config,
                            HF__CONFIG_LEAST(struct hf_cache_config, resource), given) != 0)
                return -EINVAL;
        if (!config.client || !config.resource.version || !config.resource.plural ||
            config.resync < 0)
                return -EINVAL;
        struct hf_cache *cache = calloc(1, sizeof *cache);
        if (!cache)
                return -ENOMEM;
        cache->host = host;
        cache->clock = hf_host_clock(host);
        cache->client = config.client;
        cache->one_revision = config.one_revision;
        cache->metadata_only = config.metadata_only;
        cache->resync = config.resync;
        cache->letters_tail = &cache->letters;
        cache->need_list = true;
        int r = copy_config(cache, &config);
        if (r == 0)
                r = init_locks(cache);
        if (r < 0) {
                free_config(cache);
                free(cache);
                return r;
        }
        *ret_cache = cache;
        return 0;
}

int hf_cache_start(struct hf_cache *cache) {
        if (!cache || cache->started)
                return -EINVAL;
        cache->resync_at = hf_now(cache->clock) + cache->resync;
        int r = hf__thread_start(cache->host, "hf-cache", hf__cache_run, cache, &cache->thread);
        cache->started = r == 0;
        return r;
}

struct hf_cache *hf_cache_free(struct hf_cache *cache) {
        if (!cache)
                return NULL;
        if (cache->started) {
                (void)pthread_mutex_lock(&cache->mu);
                cache->stop = true;
                (void)pthread_cond_signal(&cache->wake);
                (void)pthread_mutex_unlock(&cache->mu);
                (void)pthread_join(cache->thread, NULL);
        }
        while (cache->handlers) {
                struct hf_cache_handler *handler = cache->handlers;
                cache->handlers = handler->next;
                free(handler);
        }
        hf__cache_store_done(cache);
        hf__cache_indexes_done(cache);
        (void)pthread_cond_destroy(&cache->wake);
        (void)pthread_cond_destroy(&cache->changed);
        (void)pthread_mutex_destroy(&cache->mu);
        free_config(cache);
        free(cache);
        return NULL;
}
