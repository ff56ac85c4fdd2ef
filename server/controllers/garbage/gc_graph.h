/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ownership graph of the garbage collector: nodes are objects, edges their ownerReferences.
 *
 * Nothing is stored here but the list of kinds. The shared informers are the graph: each has an
 * index from an owner's uid to its dependents (HFD_OWNER_INDEX). A node's key in the work queue is
 * "<kind's place in the table>:<namespace>/<name>", without namespace and slash for kinds that have
 * none.
 *
 * Thread: any; immutable after init.
 */
#include <stdbool.h>

#include <holdfast/workqueue.h>

#include "server/controllers/kinds.h"

struct hf__json;

#define HFD_GC_KEY_MAX (2 * HF_NAME_MAX + 8)
#define HFD_GC_UID_MAX 64 /* bytes of a uid that we follow, with its NUL */

struct hfd_gc_graph {
        const struct hfd_kinds *kinds;                 /* borrowed */
        const struct hfd_kind *members[HFD_KINDS_MAX]; /* the kinds in the graph; borrowed */
        struct hf_informer *informers[HFD_KINDS_MAX];  /* theirs, in the same order; borrowed */
        size_t n;
};

/* An object that a worker looks at. */
struct hfd_gc_node {
        const struct hfd_kind *kind;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1]; /* ns "" = the kind has no namespace */
        struct hf__json *object; /* as cached; owned by the function that filled the node */
        const char *uid, *resource_version; /* borrowed from object */
};

/* What is known of a node's dependents. */
struct hfd_gc_dependents {
        bool any;
        bool waits;  /* one of them is itself being deleted in the foreground */
        bool blocks; /* one of them has blockOwnerDeletion set in its reference to the node */
};

/* All kinds but `without`, which may be NULL. */
void hfd_gc_graph_init(struct hfd_gc_graph *graph, const struct hfd_kinds *kinds,
                       const struct hfd_kind *without);

/* Writes the key of an object. ns may be NULL or "". */
void hfd_gc_graph_key(const struct hfd_gc_graph *graph, const struct hfd_kind *kind, const char *ns,
                      const char *name, char key[HFD_GC_KEY_MAX]);

/* The kind of a key, and the rest of the key as hf_key_split reads it. NULL = not a key of ours. */
const struct hfd_kind *hfd_gc_graph_kind(const struct hfd_gc_graph *graph, const char *key,
                                         const char **ret_rest);

/*
 * Calls each for every object that names uid in an owner reference, rightly or not. It runs under
 * the lock of an informer, so it must not block and must not call an informer.
 */
typedef void (*hfd_gc_graph_each_fn)(void *ctx, const struct hfd_kind *kind, const char *ns,
                                     const char *name, const char *object, size_t n);
void hfd_gc_graph_each(const struct hfd_gc_graph *graph, const char *uid, hfd_gc_graph_each_fn each,
                       void *ctx);

/* Looks at the dependents of owner: the objects whose references really mean it, by namespace, name
 * and kind, not only by uid. */
void hfd_gc_graph_look(const struct hfd_gc_graph *graph, const struct hfd_gc_node *owner,
                       struct hfd_gc_dependents *ret_dependents);

/* Adds the keys of all objects that name uid as an owner. */
void hfd_gc_graph_enqueue_dependents(const struct hfd_gc_graph *graph, const char *uid,
                                     struct hf_workqueue *queue);

/* Adds the keys of the owners that object, which is in ns, names. */
void hfd_gc_graph_enqueue_owners(const struct hfd_gc_graph *graph, const struct hf__json *object,
                                 const char *ns, struct hf_workqueue *queue);
