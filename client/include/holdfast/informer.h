/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The informer: a local copy of a collection, kept current by LIST and WATCH, with the semantics of
 * client-go's shared informers. Make one per collection, on every instance, leading or not, so that
 * a new leader starts with a warm copy.
 *
 * The reflector, a thread of the informer, lists the collection and watches from the list's
 * resourceVersion on. When a watch ends, it watches again from the last version it saw (bookmarks
 * included); on HF_E_GONE it lists again. After failures it waits 0.1 s, doubling to 30 s; success
 * resets the delay.
 *
 * Handlers get one event for each change. What changed while no watch was open is found by the next
 * list and comes as ADDED, MODIFIED or DELETED, once each. An object that was deleted and created
 * again under its name (it has another uid) comes as DELETED and ADDED. A handler that is added
 * later first gets every object as ADDED.
 *
 * Thread: any, except where a function says otherwise. Handlers and index functions run on the
 * reflector's thread. They must be quick: put a key into a queue and return. From within them no
 * handler may be added or removed, no hf_informer_wait may be called, and the informer must not be
 * freed.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/client.h>

struct hf_informer;
struct hf_informer_handler; /* a registration, from add_handler to remove_handler */

/* Zero is the default of every member but size, client and resource. Strings are copied. */
struct hf_informer_config {
        size_t size;                 /* sizeof(struct hf_informer_config) */
        struct hf_client *client;    /* required; borrowed until hf_informer_free */
        struct hf_resource resource; /* required */
        const char *ns;              /* NULL or "" = all namespaces */
        const char *query;           /* selectors, encoded as in hf_request; NULL = none */
        /*
         * All collections of the server share one revision counter, and its reads catch up with it
         * soon: true for holdfastd's own client. hf_informer_wait may then ask for a list "not
         * older than" a revision, which costs the store nothing. Default: it asks for a consistent
         * list.
         */
        bool one_revision;
        /*
         * Keep and hand out only apiVersion, kind and metadata of each object, without
         * managedFields: for large collections of which only names, labels and owners matter. Such
         * an object must not be written back to the server.
         */
        bool metadata_only;
        /*
         * Resync period: each handler gets every object again as MODIFIED, though nothing changed.
         * For controllers that compare with an outside world that sends no events. 0 = never.
         */
        hf_nsec resync;
};

/* Makes an informer; `host` is borrowed. 0, -ENOMEM, or -EINVAL: the configuration lacks something
 * that is required, or its size is wrong. */
int hf_informer_new(const struct hf_host *host, const struct hf_informer_config *config,
                    struct hf_informer **ret_informer);
/* Starts the informer's thread ("hf-informer") and returns at once, before the first list. 0,
 * -errno, or -EINVAL: it is started already. */
int hf_informer_start(struct hf_informer *informer);
/*
 * Ends the list and the watch under way, joins the thread, and frees the informer with its handlers
 * and indexes. No other thread may be in a function with this informer. Accepts NULL; returns NULL.
 */
struct hf_informer *hf_informer_free(struct hf_informer *informer);

/* ---- waiting ---- */

/* Whether the first list is complete. Never blocks. */
bool hf_informer_synced(struct hf_informer *informer);
/*
 * Blocks until the informer has seen all changes up to resource_version, and its handlers have been
 * called for them. 0; HF_E_CANCELED: token fired first; -EINVAL: resource_version is not a number.
 *
 * resource_version: a number that this server gave out; NULL = only wait for the first list. If the
 * collection is quiet and no watch event brings the revision, the informer lists to learn it.
 * Without one_revision the collections of the server may count separately; then a consistent list
 * that began after this call is enough, because it contains everything that was written before.
 */
int hf_informer_wait(struct hf_informer *informer, const char *resource_version,
                     struct hf_cancel *token);
/* The same for several informers: all of them start to catch up before the first is waited for.
 * Also -ENOMEM. */
int hf_informer_wait_all(struct hf_informer *const *informers, size_t n_informers,
                         const char *resource_version, struct hf_cancel *token);

/* ---- reading; object is JSON of n bytes ---- */

/* A copy of the object: *ret_object is malloc'ed and NUL-terminated, the caller frees it; *ret_n
 * (may be NULL) is its length. ns may be NULL or "". 0, HF_E_NOT_FOUND, -ENOMEM or -EINVAL. */
int hf_informer_get(struct hf_informer *informer, const char *ns, const char *name,
                    char **ret_object, size_t *ret_n);
/* How many objects there are now. */
size_t hf_informer_count(struct hf_informer *informer);
/* Calls `each` for every object, in the order of their keys, under the informer's lock: `each` must
 * not block nor call the informer. Arguments of `each` are borrowed until it returns. */
void hf_informer_each(struct hf_informer *informer,
                      void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                   size_t n),
                      void *ctx);

/* ---- indexes: find the objects that have a value, such as those of an owner or of a node ---- */

/*
 * An index function calls hf_informer_value for each value of the object. It runs on the
 * reflector's thread without a lock, once for each new state of an object. Its arguments are
 * borrowed until it returns. It must give the same values for the same object.
 */
struct hf_informer_values;
typedef void (*hf_informer_index_fn)(void *ctx, const char *ns, const char *name,
                                     const char *object, size_t n,
                                     struct hf_informer_values *values);
/* Adds an index, before hf_informer_start. The name `index` is copied; ctx is borrowed until
 * hf_informer_free. 0, -ENOMEM, -EINVAL (after start), or HF_E_EXISTS: the name is taken. */
int hf_informer_add_index(struct hf_informer *informer, const char *index, hf_informer_index_fn fn,
                          void *ctx);
/* For index functions only: adds a value (copied); adding it twice counts once. 0, or -ENOMEM,
 * which the index function may ignore: the informer then lists again. */
int hf_informer_value(struct hf_informer_values *values, const char *value);
/* As hf_informer_each, for the objects that have the value. 0, or -EINVAL: no such index. */
int hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                         void (*each)(void *ctx, const char *ns, const char *name,
                                      const char *object, size_t n),
                         void *ctx);

/* ---- handlers ---- */

/* Gets the events of all objects, those of one object in order; type is never BOOKMARK. object is
 * the new state, for DELETED the last known one. Arguments are borrowed until it returns. A
 * MODIFIED may be a resync. */
typedef void (*hf_informer_handler_fn)(void *ctx, enum hf_event_type type, const char *ns,
                                       const char *name, const char *object, size_t n);
/* Adds a handler, before or after start; it soon gets every known object as ADDED. ctx is borrowed
 * until the handler is removed or the informer freed. 0, -ENOMEM or -EINVAL. */
int hf_informer_add_handler(struct hf_informer *informer, hf_informer_handler_fn fn, void *ctx,
                            struct hf_informer_handler **ret_handler);
/* Removes a handler and frees its registration. Blocks while the handler runs; afterwards it is not
 * called any more. Must not be called from a handler. Accepts a NULL handler. */
void hf_informer_remove_handler(struct hf_informer *informer, struct hf_informer_handler *handler);
/* How many handlers there are: lets a test notice a handler that a term left behind. */
size_t hf_informer_n_handlers(struct hf_informer *informer);
