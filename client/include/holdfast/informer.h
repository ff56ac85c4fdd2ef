/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The informer: a local copy of a collection, kept current by LIST and WATCH, with the semantics of
 * client-go's shared informers. Create one per collection on every instance, whether it leads or
 * not, so that a new leader starts with a warm copy.
 *
 * The reflector, which runs on a thread of the informer or on one that several informers share,
 * lists the collection and watches from the list's resourceVersion on. When a watch ends, the
 * reflector watches again from the last version it saw (bookmarks included); after HF_E_GONE it
 * lists again. After a failure it waits 0.1 s, doubling to 30 s (to 0.8 s while a thread is in one
 * of the hf_informer_wait functions), or for a longer Retry-After of up to 5 minutes. Success
 * resets the delay.
 *
 * Handlers get one event for each change that the watch delivers. What changed while no watch was
 * open shows in the next list, and handlers get one ADDED, MODIFIED or DELETED for each object that
 * differs. If an object was deleted and created again under its name (it has a new uid), handlers
 * get DELETED and then ADDED. A handler that is added later first gets every object as ADDED.
 *
 * Order of calls: hf_informer_new; hf_informer_add_index for each index; hf_informer_start once;
 * then any function, in any order; hf_informer_free. Before the start, reads find nothing, waits
 * block, and handlers may be added, which are called after the start. An informer that was never
 * started may be freed at once. Remove a handler before you free what it uses, or free the informer
 * first.
 *
 * Thread: any, except where a function states otherwise. Handlers and index functions run on the
 * reflector's thread. They must be quick: put a key into a queue and return. They must not add or
 * remove handlers, call hf_informer_wait, or free an informer, not even another one of their
 * thread.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_informer;
struct hf_informer_handler; /* a registration of a handler */
struct hf_informer_thread;

/* ---- a thread for several informers ---- */

/*
 * Starts a thread ("hf-informer") for the informers whose configuration names it. `host` is
 * borrowed. An informer costs little while its collection is idle, but a thread of its own costs
 * stack and caches of the allocator. The informers of a thread take turns, so a slow handler of one
 * delays all. Returns 0 or -errno. Thread: any.
 */
HF_MUST_CHECK int hf_informer_thread_new(const struct hf_host *host,
                                         struct hf_informer_thread **ret_thread);
/* Joins the thread and frees it. All informers that name it must have been freed before. Accepts
 * NULL; returns NULL. */
struct hf_informer_thread *hf_informer_thread_free(struct hf_informer_thread *thread);

/* ---- life cycle ---- */

/* Zero is the default of every member except size, client and resource. Strings are copied. */
struct hf_informer_config {
        size_t size;                 /* sizeof(struct hf_informer_config) */
        struct hf_client *client;    /* required; borrowed until hf_informer_free */
        struct hf_resource resource; /* required */
        const char *ns;              /* NULL or "" = all namespaces */
        const char *query;           /* selectors, encoded as in hf_request; NULL = none */
        /*
         * Set this if all collections of the server share one revision counter, and reads from the
         * server soon catch up with that counter. holdfastd sets it for its loopback client.
         * hf_informer_wait then first requests a list with resourceVersionMatch=NotOlderThan, which
         * the server can serve from its cache. By default it requests a consistent list.
         */
        bool one_revision;
        /* Keep only apiVersion, kind and metadata of each object, without managedFields. For large
         * collections of which only names, labels and owners are needed. Such an object must not be
         * written back to the server, because its other members are missing. */
        bool metadata_only;
        /* Resync period: how often each handler gets every object again as MODIFIED although
         * nothing changed. For controllers that compare objects with an external system that sends
         * no events. 0 = never. */
        hf_nsec resync;
        /* Runs the reflector and the handlers; borrowed until hf_informer_free. NULL = a thread of
         * the informer's own. */
        struct hf_informer_thread *thread;
};

/* Creates an informer; `host` is borrowed. Returns 0, -errno, or -EINVAL: the configuration lacks a
 * required member, its size is wrong, resync is negative, or `thread` has another host. */
HF_MUST_CHECK int hf_informer_new(const struct hf_host *host,
                                  const struct hf_informer_config *config,
                                  struct hf_informer **ret_informer);
/* Starts the informer, with its own thread ("hf-informer") unless the configuration names one, and
 * returns at once, before the first list. Returns 0, -errno, or -EINVAL: informer is NULL, or it
 * has already been started. Thread: the owner's. */
HF_MUST_CHECK int hf_informer_start(struct hf_informer *informer);
/* Cancels the current list and watch, waits for their end, joins the informer's own thread, and
 * frees the informer with its handlers and indexes. So it blocks while a handler runs, even one of
 * another informer on the same thread. No other thread may be in a function with this informer.
 * Must not be called on an informer's thread. Accepts NULL; returns NULL. */
struct hf_informer *hf_informer_free(struct hf_informer *informer);

/* ---- waiting ---- */

/* Whether the first list is complete. Never blocks. */
bool hf_informer_synced(struct hf_informer *informer);
/*
 * Blocks until the informer has seen all changes up to resource_version, and its handlers have been
 * called for them. (A handler that was just added may still wait for its first events.) Returns 0;
 * HF_E_CANCELED: token fired first; -EINVAL: informer or token is NULL, or resource_version is
 * neither NULL nor a number above 0.
 *
 * resource_version: a number that the server issued for an object of this collection (with
 * one_revision: of any collection); NULL = only wait for the first list. If the informer has not
 * seen the revision yet, it also sends a list request (for a large collection after a moment),
 * because the watch of an idle collection may deliver nothing. Without one_revision, a consistent
 * list that began after this call ends the wait too, because it contains everything that was
 * written before.
 */
HF_MUST_CHECK int hf_informer_wait(struct hf_informer *informer, const char *resource_version,
                                   struct hf_cancel *token);
/* The same for several informers. All of them start to catch up before this function waits for the
 * first, so that they do so in parallel. Returns -ENOMEM in addition. */
HF_MUST_CHECK int hf_informer_wait_all(struct hf_informer *const *informers, size_t n_informers,
                                       const char *resource_version, struct hf_cancel *token);
/*
 * The barrier at the beginning of a leader's term: blocks until each informer has everything that
 * was written before the Lease was acquired. hf_reconciler_run calls it. acquired_at: from
 * hf_term_acquired_at; "" = only wait for the first list. Returns as hf_informer_wait_all does.
 *
 * Without one_revision, only a consistent list that began after this call ends the wait, because
 * the Lease and the collection may have separate revisions. acquired_at then need not be a number.
 * With one_revision it must be one (-EINVAL), and the watch gets a moment to deliver the revision
 * before a list is requested.
 */
HF_MUST_CHECK int hf_informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                                        const char *acquired_at, struct hf_cancel *token);

/* ---- reading; object is JSON of n bytes ---- */

/* Copies an object. *ret_object is malloc'ed and NUL-terminated, and the caller frees it; *ret_n
 * (may be NULL) is its length. ns may be NULL or "". Returns 0, HF_E_NOT_FOUND, -ENOMEM or
 * -EINVAL. */
HF_MUST_CHECK int hf_informer_get(struct hf_informer *informer, const char *ns, const char *name,
                                  char **ret_object, size_t *ret_n);
/* The current number of objects. */
size_t hf_informer_count(struct hf_informer *informer);
/* Calls `each` for every object, in the order of their keys. The informer's lock is held, so `each`
 * must not block or call the informer. Arguments of `each` are borrowed until it returns. */
void hf_informer_each(struct hf_informer *informer,
                      void (*each)(void *ctx, const char *ns, const char *name, const char *object,
                                   size_t n),
                      void *ctx);

/* ---- indexes: find objects by a value, such as their owner or their node ---- */

/* An index function calls hf_informer_values_add for each value of the object. It runs on the
 * reflector's thread without a lock, for each new state of an object. Its arguments are borrowed
 * until it returns. It must always produce the same values for the same object. */
struct hf_informer_values;
typedef void (*hf_informer_index_fn)(void *ctx, const char *ns, const char *name,
                                     const char *object, size_t n,
                                     struct hf_informer_values *values);
/* Adds an index; only before hf_informer_start. The name `index` is copied; ctx is borrowed until
 * hf_informer_free. Returns 0, -ENOMEM, -EINVAL (after start, or an argument is missing), or
 * HF_E_EXISTS: the name is already used. */
HF_MUST_CHECK int hf_informer_add_index(struct hf_informer *informer, const char *index,
                                        hf_informer_index_fn fn, void *ctx);
/* For index functions only: adds a value (copied). Ignores a value that was already added. Returns
 * 0; -ENOMEM, which the index function may ignore, because the informer notices it and lists again;
 * or -EINVAL: an argument is NULL, and nothing is added. */
int hf_informer_values_add(struct hf_informer_values *values, const char *value);
/* For index functions only: memory ran out before all values were added. The informer then does not
 * use this state of the object, and lists again. */
void hf_informer_values_fail(struct hf_informer_values *values);
/* As hf_informer_each, for the objects that have the value. 0, or -EINVAL: there is no such index,
 * or an argument is NULL. */
HF_MUST_CHECK int hf_informer_by_index(struct hf_informer *informer, const char *index,
                                       const char *value,
                                       void (*each)(void *ctx, const char *ns, const char *name,
                                                    const char *object, size_t n),
                                       void *ctx);

/* ---- handlers ---- */

/* Receives the events of all objects; the events of one object arrive in order. type is never
 * BOOKMARK. object is the new state, or for DELETED the last known state. Arguments are borrowed
 * until it returns. A MODIFIED may be a resync. */
typedef void (*hf_informer_handler_fn)(void *ctx, enum hf_event_type type, const char *ns,
                                       const char *name, const char *object, size_t n);
/* Adds a handler, before or after start. Once the informer runs, the handler soon gets every known
 * object as ADDED, perhaps before this function has returned. ctx is borrowed until the handler is
 * removed or the informer is freed. Returns 0, -ENOMEM or -EINVAL. */
HF_MUST_CHECK int hf_informer_add_handler(struct hf_informer *informer, hf_informer_handler_fn fn,
                                          void *ctx, struct hf_informer_handler **ret_handler);
/* Removes a handler and frees its registration. Blocks while the handler runs; afterwards the
 * handler is never called again. Must not be called from a handler. Accepts a NULL handler. */
void hf_informer_remove_handler(struct hf_informer *informer, struct hf_informer_handler *handler);
/* The number of handlers. Lets a test detect a handler that a term left behind. */
size_t hf_informer_n_handlers(struct hf_informer *informer);

#ifdef __cplusplus
}
#endif
