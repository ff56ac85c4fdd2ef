/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list-watch cache (informer): a local copy of a collection, kept current by LIST and WATCH.
 *
 * It lists, then watches from the list's resourceVersion; on the end of a watch it watches on from the last
 * resourceVersion seen (bookmarks included), on HF_E_GONE it lists again; failures back off (0.1 s doubling to 30 s,
 * reset by success). It runs on every instance, leading or not. Handlers are added and removed at any time: adding
 * replays the whole cache to that handler as ADDED, removing returns only when the handler no longer runs.
 *
 * Thread: any, except that a handler must not add or remove handlers or free the cache. Handlers run on the cache's own
 * thread, in order per object; objects are borrowed until the handler returns. Handlers do no work: they enqueue.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/client.h>

struct hf_cache;
struct hf_cache_handler;

struct hf_cache_config {
        size_t size;
        struct hf_client *client; /* borrowed */
        struct hf_resource resource;
        const char *ns;    /* NULL or "" = all */
        const char *query; /* selectors, encoded; NULL = none */
        /* All collections of the server share one revision, which its reads have soon reached: holdfastd's own client. Lists for who
         * waits then ask for "not older than", which costs the store nothing. Default: a consistent list. */
        bool one_revision;
};

int hf_cache_new(const struct hf_host *host, const struct hf_cache_config *config, struct hf_cache **ret_cache);
int hf_cache_start(struct hf_cache *cache);             /* starts its thread; returns at once */
struct hf_cache *hf_cache_free(struct hf_cache *cache); /* stops, joins; accepts NULL */

bool hf_cache_synced(struct hf_cache *cache); /* the first list is in */
/*
 * Blocks until the cache has seen everything up to resource_version (a numeric one; NULL = the first list), or token
 * fires: HF_E_CANCELED. A caught-up cache of a quiet collection learns its revision by a consistent list.
 */
int hf_cache_wait(struct hf_cache *cache, const char *resource_version, struct hf_cancel *token);

/* The object as JSON, malloc'ed, the caller frees; HF_E_NOT_FOUND. */
int hf_cache_get(struct hf_cache *cache, const char *ns, const char *name, char **ret_object, size_t *ret_n);
size_t hf_cache_count(struct hf_cache *cache);
/* Calls each for every object under the cache's lock, in key order: each must not block nor call the cache. */
void hf_cache_each(struct hf_cache *cache, void (*each)(void *ctx, const char *ns, const char *name, const char *object, size_t n),
                   void *ctx);

typedef void (*hf_cache_handler_fn)(void *ctx, enum hf_event_type type, const char *ns, const char *name, const char *object, size_t n);
int hf_cache_add_handler(struct hf_cache *cache, hf_cache_handler_fn fn, void *ctx, struct hf_cache_handler **ret_handler);
void hf_cache_remove_handler(struct hf_cache *cache, struct hf_cache_handler *handler);
size_t hf_cache_n_handlers(struct hf_cache *cache); /* for tests that count: constant over terms */
