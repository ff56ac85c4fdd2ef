/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ownership graph of the garbage collector. Its nodes are objects, and its edges are their
 * ownerReferences.
 *
 * The graph itself is not stored. It is read from the shared informers: each has an index from an
 * owner's uid to its dependents (HFD_OWNER_INDEX). A node's key in the work queue is "<id of the
 * kind>:<namespace>/<name>", or "<id of the kind>:<name>" for kinds without a namespace.
 *
 * Thread: any; immutable between init and done.
 */
#include <stdbool.h>

#include <holdfast/workqueue.h>

#include "server/controllers/kinds/kinds.h"

struct hf__json;

/* The id of a kind has up to 20 digits; then there are ":", "/" and the NUL. */
#define HFD_GC_KEY_MAX (2 * HF_NAME_MAX + 24)
#define HFD_GC_UID_MAX 64 /* bytes, with the NUL; an owner with a longer uid counts as existing */

struct hfd_gc_graph {
        struct hfd_kind_set *set;        /* borrowed */
        const struct hfd_kind *without;  /* borrowed; of the set, not in the graph; NULL = none */
        const struct hfd_kind **members; /* owned; the kinds in the graph, n */
        struct hf_informer **informers;  /* owned; of members, in the same order */
        size_t n;
};

/* An object that a worker processes. */
struct hfd_gc_node {
        const struct hfd_kind *kind;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1]; /* ns "" = the kind has no namespace */
        struct hf__json *object; /* from the cache; owned by the function that filled the node */
        const char *uid, *resource_version; /* borrowed from object */
};

/* The dependents of a node, as far as the informers know them. */
struct hfd_gc_dependents {
        bool any;
        bool waits; /* one of them is itself being deleted in the foreground */
};

/* Puts all kinds of the set except `without`, which may be NULL, into the graph. 0, or -ENOMEM:
 * nothing is left to free. */
int hfd_gc_graph_init(struct hfd_gc_graph *graph, struct hfd_kind_set *set,
                      const struct hfd_kind *without);
void hfd_gc_graph_done(struct hfd_gc_graph *graph);

/* Writes the key of an object. ns may be NULL or "". */
void hfd_gc_graph_key(const struct hfd_kind *kind, const char *ns, const char *name,
                      char key[HFD_GC_KEY_MAX]);

/* Returns the kind of a key. *ret_rest: the part of the key that hf_key_split parses. NULL = the
 * key is malformed, or the graph does not have the kind. */
const struct hfd_kind *hfd_gc_graph_kind(const struct hfd_gc_graph *graph, const char *key,
                                         const char **ret_rest);

/*
 * Calls `each` for every object that names uid in an owner reference, even if the reference has the
 * wrong kind, namespace or name. The callback runs under the lock of an informer, so it must not
 * block and must not call an informer.
 */
typedef void (*hfd_gc_graph_each_fn)(void *ctx, const struct hfd_kind *kind, const char *ns,
                                     const char *name, const char *object, size_t n);
void hfd_gc_graph_each(const struct hfd_gc_graph *graph, const char *uid, hfd_gc_graph_each_fn each,
                       void *ctx);

/* Describes the dependents of owner: the objects whose references match it by namespace, name and
 * kind, not only by uid. */
void hfd_gc_graph_find_dependents(const struct hfd_gc_graph *graph, const struct hfd_gc_node *owner,
                                  struct hfd_gc_dependents *ret_dependents);
/* Whether one of these dependents has blockOwnerDeletion set in its reference to owner. The first
 * one that has it ends the search, because the owner is checked again and again while it waits. */
bool hfd_gc_graph_is_blocked(const struct hfd_gc_graph *graph, const struct hfd_gc_node *owner);

/* Adds the keys of all objects that name uid as an owner. 0 or -ENOMEM: some are missing. */
int hfd_gc_graph_enqueue_dependents(const struct hfd_gc_graph *graph, const char *uid,
                                    struct hf_workqueue *queue);

/* Adds the keys of the owners that `object` names. ns: the namespace of `object`. 0 or
 * -ENOMEM: some are missing. */
int hfd_gc_graph_enqueue_owners(const struct hfd_gc_graph *graph, const struct hf__json *object,
                                const char *ns, struct hf_workqueue *queue);
