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

static void call_handler_locked(struct hf_informer *informer, struct hf_informer_handler *handler,
                                enum hf_event_type type, const struct hf__informer_entry *entry,
                                const struct hf__buf *object) {
        informer->running = handler;
        (void)pthread_mutex_unlock(&informer->mu);
        handler->fn(handler->ctx, type, entry->ns, entry->name, object->data, object->n);
        (void)pthread_mutex_lock(&informer->mu);
        informer->running = NULL;
        (void)pthread_cond_broadcast(&informer->changed);
}

void hf__informer_tell(struct hf_informer *informer, enum hf_event_type type,
                       const struct hf__informer_entry *entry, const struct hf__buf *object) {
        (void)pthread_mutex_lock(&informer->mu);
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                if (h->replayed && !h->removed)
                        call_handler_locked(informer, h, type, entry, object);
        (void)pthread_mutex_unlock(&informer->mu);
}

static void tell_all_locked(struct hf_informer *informer, struct hf_informer_handler *handler,
                            enum hf_event_type type) {
        for (size_t i = 0; i < informer->store.n && !handler->removed && !informer->stop; i++) {
                const struct hf__informer_entry *entry =
                        (const struct hf__informer_entry *)informer->store.items[i];
                call_handler_locked(informer, handler, type, entry, entry->object);
        }
}

bool hf__informer_replay_locked(struct hf_informer *informer) {
        bool any = false;

        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next) {
                if (h->replayed || h->removed)
                        continue;
                any = true;
                tell_all_locked(informer, h, HF_EVENT_ADDED);
                h->replayed = true;
        }
        return any;
}

bool hf__informer_resync_locked(struct hf_informer *informer) {
        hf_nsec now = hf_now(informer->clock);

        if (informer->resync <= 0 || now < informer->resync_at)
                return false;
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                if (h->replayed)
                        tell_all_locked(informer, h, HF_EVENT_MODIFIED);
        informer->resync_at = now + informer->resync;
        return true;
}

int hf_informer_add_handler(struct hf_informer *informer, hf_informer_handler_fn fn, void *ctx,
                            struct hf_informer_handler **ret_handler) {
        if (!informer || !fn || !ret_handler)
                return -EINVAL;
        struct hf_informer_handler *handler = calloc(1, sizeof *handler), **place;
        if (!handler)
                return -ENOMEM;
        handler->fn = fn;
        handler->ctx = ctx;
        (void)pthread_mutex_lock(&informer->mu);
        for (place = &informer->handlers; *place; place = &(*place)->next)
                ;
        *place = handler;
        (void)pthread_cond_signal(&informer->wake);
        (void)pthread_mutex_unlock(&informer->mu);
        *ret_handler = handler;
        return 0;
}

void hf_informer_remove_handler(struct hf_informer *informer, struct hf_informer_handler *handler) {
        struct hf_informer_handler **place;

        if (!handler)
                return;
        (void)pthread_mutex_lock(&informer->mu);
        handler->removed = true;
        while (informer->running == handler) /* handlers do not block, so this ends */
                (void)informer->clock->wait(informer->clock->ctx, &informer->changed, &informer->mu,
                                            HF_NSEC_NEVER);
        for (place = &informer->handlers; *place != handler; place = &(*place)->next)
                ;
        *place = handler->next;
        (void)pthread_mutex_unlock(&informer->mu);
        free(handler);
}

size_t hf_informer_n_handlers(struct hf_informer *informer) {
        size_t n = 0;

        (void)pthread_mutex_lock(&informer->mu);
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                n++;
        (void)pthread_mutex_unlock(&informer->mu);
        return n;
}

/* ---- waiting and reading ---- */

static void wake_waiters(void *ctx) {
        struct hf_informer *informer = ctx;

        /* Under the lock, so that it cannot fall between a waiter's look at its token and its wait.
         */
        (void)pthread_mutex_lock(&informer->mu);
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Makes the thread set out for what the waiter wants. */
static void enlist_locked(struct hf_informer *informer, struct hf__informer_waiter *waiter,
                          uint64_t revision, hf_nsec grace) {
        *waiter = (struct hf__informer_waiter){.next = informer->waiters,
                                               .revision = revision,
                                               .after = informer->n_lists};
        if (!hf__informer_reached_locked(informer, waiter)) {
                if (informer->store.n > HF__REFLECTOR_PAGE)
                        grace = PROBE_GRACE;
                hf_nsec probe_at = hf_now(informer->clock) + grace;
                if (!informer->waiters || probe_at < informer->probe_at)
                        informer->probe_at = probe_at; /* a new waiter does not inherit the delays
                                                       of one that asks too much */
                informer->probe_failures = 0;
                (void)pthread_cond_signal(&informer->wake);
        }
        informer->waiters = waiter;
}

static void strike_locked(struct hf_informer *informer, const struct hf__informer_waiter *waiter) {
        struct hf__informer_waiter **place = &informer->waiters;
        while (*place != waiter)
                place = &(*place)->next;
        *place = waiter->next;
}

static int await(struct hf_informer *informer, const struct hf__informer_waiter *waiter,
                 struct hf_cancel *token) {
        struct hf_cancel_waker waker = {0};

        hf_cancel_add_waker(token, &waker, wake_waiters, informer);
        (void)pthread_mutex_lock(&informer->mu);
        while (!hf__informer_reached_locked(informer, waiter) && !hf_cancel_fired(token))
                (void)informer->clock->wait(informer->clock->ctx, &informer->changed, &informer->mu,
                                            hf_cancel_deadline(token));
        int r = hf__informer_reached_locked(informer, waiter) ? 0 : HF_E_CANCELED;
        (void)pthread_mutex_unlock(&informer->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

static int wait_all(struct hf_informer *const *informers, size_t n_informers, uint64_t revision,
                    hf_nsec grace, struct hf_cancel *token) {
        int r = 0;

        /* A few, and always the one of hf_informer_wait, need no memory that could be short. */
        struct hf__informer_waiter few[4] = {0}, *waiters = few;
        if (n_informers > sizeof few / sizeof *few &&
            !(waiters = calloc(n_informers, sizeof *waiters)))
                return -ENOMEM;
        for (size_t i = 0; i < n_informers; i++) {
                (void)pthread_mutex_lock(&informers[i]->mu);
                enlist_locked(informers[i], &waiters[i], revision,
                              informers[i]->one_revision ? grace : 0);
                (void)pthread_mutex_unlock(&informers[i]->mu);
        }
        for (size_t i = 0; r == 0 && i < n_informers; i++)
                r = await(informers[i], &waiters[i], token);
        for (size_t i = 0; i < n_informers; i++) {
                (void)pthread_mutex_lock(&informers[i]->mu);
                strike_locked(informers[i], &waiters[i]);
                (void)pthread_mutex_unlock(&informers[i]->mu);
        }
        if (waiters != few)
                free(waiters);
        return r;
}

int hf_informer_wait_all(struct hf_informer *const *informers, size_t n_informers,
                         const char *resource_version, struct hf_cancel *token) {
        uint64_t revision = hf__informer_revision(resource_version);

        if (!informers || !token || (resource_version && revision == 0))
                return -EINVAL;
        return wait_all(informers, n_informers, revision, 0, token);
}

int hf__informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                           const char *resource_version, struct hf_cancel *token) {
        uint64_t revision = hf__informer_revision(resource_version);

        if (resource_version &&
            revision ==
                    0) /* no number that an event or a list could reach: a list is what it takes */
                revision = ONLY_A_LIST;
        for (size_t i = 0; i < n_informers && revision == ONLY_A_LIST; i++)
                if (informers[i]->one_revision)
                        return -EINVAL;
        return wait_all(informers, n_informers, revision, TERM_GRACE, token);
}

int hf_informer_wait(struct hf_informer *informer, const char *resource_version,
                     struct hf_cancel *token) {
        return informer ? hf_informer_wait_all(&informer, 1, resource_version, token) : -EINVAL;
}

bool hf_informer_synced(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->mu);
        bool synced = informer->synced;
        (void)pthread_mutex_unlock(&informer->mu);
        return synced;
}

int hf_informer_get(struct hf_informer *informer, const char *ns, const char *name,
                    char **ret_object, size_t *ret_n) {
        char key[HF_KEY_MAX];

        if (!informer || !name || !ret_object)
                return -EINVAL;
        if (hf_key_make(key, ns, name) < 0)
                return HF_E_NOT_FOUND;
        (void)pthread_mutex_lock(&informer->mu);
        struct hf__informer_entry *entry =
                (struct hf__informer_entry *)hf__key_index_find(&informer->store, key);
        struct hf__buf *object = entry ? hf__buf_ref(entry->object) : NULL;
        (void)pthread_mutex_unlock(&informer->mu);
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

size_t hf_informer_count(struct hf_informer *informer) {
        (void)pthread_mutex_lock(&informer->mu);
        size_t n = informer->store.n;
        (void)pthread_mutex_unlock(&informer->mu);
        return n;
}

bool hf__informer_has_in(struct hf_informer *informer, const char *ns) {
        char from[HF_NAME_MAX + 2];
        int n = snprintf(from, sizeof from, "%s/", ns);

        if (n < 0 || (size_t)n >= sizeof from)
                return false;
        (void)pthread_mutex_lock(&informer->mu);
        const struct hf__keyed *first = hf__key_index_from(&informer->store, from);
        bool has = first && strncmp(first->key, from, (size_t)n) == 0;
        (void)pthread_mutex_unlock(&informer->mu);
        return has;
}

void hf_informer_each(struct hf_informer *informer,
                      void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                   size_t n),
                      void *ctx) {
        (void)pthread_mutex_lock(&informer->mu);
        for (size_t i = 0; i < informer->store.n; i++)
                hf__informer_hand_out((const struct hf__informer_entry *)informer->store.items[i],
                                      each, ctx);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* ---- life ---- */

static int copy_text(const char *text, char **ret_copy) {
        *ret_copy = strdup(text ? text : "");
        return *ret_copy ? 0 : -ENOMEM;
}

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

static void free_config(struct hf_informer *informer) {
        free((char *)informer->resource.group);
        free((char *)informer->resource.version);
        free((char *)informer->resource.plural);
        free(informer->ns);
        free(informer->query);
}

static int init_locks(struct hf_informer *informer) {
        int r = hf__mutex_init(&informer->mu);
        if (r < 0)
                return r;
        r = hf_cond_init(&informer->wake);
        if (r == 0) {
                r = hf_cond_init(&informer->changed);
                if (r == 0)
                        return 0;
                (void)pthread_cond_destroy(&informer->wake);
        }
        (void)pthread_mutex_destroy(&informer->mu);
        return r;
}

int hf_informer_new(const struct hf_host *host, const struct hf_informer_config *given,
                    struct hf_informer **ret_informer) {
        struct hf_informer_config config;

        if (!host || !given || !ret_informer ||
            hf__sized_config_take(&config, sizeof config,
                                  HF__SIZED_CONFIG_LEAST(struct hf_informer_config, resource),
                                  given) != 0)
                return -EINVAL;
        if (!config.client || !config.resource.version || !config.resource.plural ||
            config.resync < 0)
                return -EINVAL;
        struct hf_informer *informer = calloc(1, sizeof *informer);
        if (!informer)
                return -ENOMEM;
        informer->host = host;
        informer->clock = hf_host_clock(host);
        informer->client = config.client;
        informer->one_revision = config.one_revision;
        informer->metadata_only = config.metadata_only;
        informer->resync = config.resync;
        informer->messages_tail = &informer->messages;
        informer->need_list = true;
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

int hf_informer_start(struct hf_informer *informer) {
        if (!informer || informer->started)
                return -EINVAL;
        informer->resync_at = hf_now(informer->clock) + informer->resync;
        int r = hf__thread_start(informer->host, "hf-cache", hf__reflector_run, informer,
                                 &informer->thread);
        informer->started = r == 0;
        return r;
}

struct hf_informer *hf_informer_free(struct hf_informer *informer) {
        if (!informer)
                return NULL;
        if (informer->started) {
                (void)pthread_mutex_lock(&informer->mu);
                informer->stop = true;
                (void)pthread_cond_signal(&informer->wake);
                (void)pthread_mutex_unlock(&informer->mu);
                (void)pthread_join(informer->thread, NULL);
        }
        while (informer->handlers) {
                struct hf_informer_handler *handler = informer->handlers;
                informer->handlers = handler->next;
                free(handler);
        }
        hf__informer_store_done(informer);
        hf__indexers_done(informer);
        (void)pthread_cond_destroy(&informer->wake);
        (void)pthread_cond_destroy(&informer->changed);
        (void)pthread_mutex_destroy(&informer->mu);
        free_config(informer);
        free(informer);
        return NULL;
}
