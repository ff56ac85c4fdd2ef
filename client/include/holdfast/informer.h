/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list-watch cache (informer): a local copy of a collection, kept current by LIST and WATCH.
 *
 * It lists, then watches from the list's resourceVersion; on the end of a watch it watches on from
 * the last resourceVersion seen (bookmarks included), on HF_E_GONE it lists again; failures back
 * off (0.1 s doubling to 30 s, reset by success). It runs on every instance, leading or not.
 * Handlers are added and removed at any time: adding replays the whole cache to that handler as
 * ADDED, removing returns only when the handler no longer runs. What came, changed or went while no
 * watch was open is told after the next list as ADDED, MODIFIED and DELETED, each once; an object
 * with another uid than the one known by its name as DELETED and ADDED.
 *
 * Thread: any, except that a handler must not add or remove handlers or free the cache. Handlers
 * run on the cache's own thread, in order per object; objects are borrowed until the handler
 * returns. Handlers do no work: they enqueue.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/client.h>

struct hf_informer;
struct hf_informer_handler;

struct hf_informer_config {
        size_t size;
        struct hf_client *client; /* borrowed */
        struct hf_resource resource;
        const char *ns;    /* NULL or "" = all */
        const char *query; /* selectors, encoded; NULL = none */
        /* All collections of the server share one revision, which its reads have soon reached:
         * holdfastd's own client. Lists for who waits then ask for "not older than", which costs
         * the store nothing. Default: a consistent list. */
        bool one_revision;
        /* Of each object only apiVersion, kind and metadata are kept and handed out, without
         * managedFields: for big collections of which names, labels and owners are all that is
         * asked. Such an object must not be written back. */
        bool metadata_only;
        /* Every so often each handler gets all objects again, as MODIFIED, though nothing changed;
         * 0 = never. For those who compare with a world outside that sends no events. */
        hf_nsec resync;
};

int hf_informer_new(const struct hf_host *host, const struct hf_informer_config *config,
                    struct hf_informer **ret_informer);
int hf_informer_start(struct hf_informer *informer); /* starts its thread; returns at once */
struct hf_informer *hf_informer_free(struct hf_informer *informer); /* stops, joins; accepts NULL */

bool hf_informer_synced(struct hf_informer *informer); /* the first list is in */
/*
 * Blocks until the cache has seen everything up to resource_version (a numeric one that the server
 * has given out; NULL = the first list), or token fires: HF_E_CANCELED. A caught-up cache of a
 * quiet collection learns its revision by a list. On a server whose collections may each count for
 * themselves (not one_revision) a consistent list begun after the call is as good as the number: it
 * has all that was written before.
 */
int hf_informer_wait(struct hf_informer *informer, const char *resource_version,
                     struct hf_cancel *token);
/* The same for several at once: all of them set out to catch up before the first is waited for. */
int hf_informer_wait_all(struct hf_informer *const *informers, size_t n_informers,
                         const char *resource_version, struct hf_cancel *token);

/* The object as JSON, malloc'ed, the caller frees; HF_E_NOT_FOUND. */
int hf_informer_get(struct hf_informer *informer, const char *ns, const char *name,
                    char **ret_object, size_t *ret_n);
size_t hf_informer_count(struct hf_informer *informer);
/* Calls each for every object under the cache's lock, in key order: each must not block nor call
 * the cache. */
void hf_informer_each(struct hf_informer *informer,
                      void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                   size_t n),
                      void *ctx);

/*
 * Indexes: which objects have a value, say those of an owner or of a node. An index is added before
 * start. Its function says an object's values by calling hf_informer_value for each (the same twice
 * counts once; 0, or -ENOMEM, which may be ignored: the cache then lists again); it runs on the
 * cache's thread with no lock held, and must say the same of the same object. -EINVAL after start;
 * HF_E_EXISTS a name taken.
 */
struct hf_informer_values;
typedef void (*hf_informer_index_fn)(void *ctx, const char *ns, const char *name,
                                     const char *object, size_t n,
                                     struct hf_informer_values *values);
int hf_informer_add_index(struct hf_informer *informer, const char *index, hf_informer_index_fn fn,
                          void *ctx); /* index is copied, ctx borrowed */
int hf_informer_value(struct hf_informer_values *values, const char *value); /* copied */
/* As hf_informer_each, for the objects that have the value. -EINVAL: no such index. */
int hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                         void (*each)(void *ctx, const char *ns, const char *name,
                                      const char *object, size_t n),
                         void *ctx);

/* An event of type MODIFIED may also be a resync. */
typedef void (*hf_informer_handler_fn)(void *ctx, enum hf_event_type type, const char *ns,
                                       const char *name, const char *object, size_t n);
int hf_informer_add_handler(struct hf_informer *informer, hf_informer_handler_fn fn, void *ctx,
                            struct hf_informer_handler **ret_handler);
void hf_informer_remove_handler(struct hf_informer *informer, struct hf_informer_handler *handler);
size_t hf_informer_n_handlers(
        struct hf_informer *informer); /* for tests that count: constant over terms */
