/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects, sorted by path as the store sorts its keys: normally those of one resource.
 *
 * A tree is persistent: hfd_object_tree_snapshot takes a second reference to it in constant time,
 * and a later change of either tree copies the few nodes that it would have to change. So a
 * snapshot never changes, and costs only the memory of what has changed since.
 *
 * Thread: one at a time for each struct hfd_object_tree. Two trees that share nodes may be used by
 * two threads. The cacher's lock guards the cacher's trees; a snapshot belongs to its owner and
 * needs no lock.
 */
#include <stdbool.h>

#include "server/resources/objects/object.h"
#include "server/resources/objects/object_key.h"

struct hfd_object_node;

struct hfd_object_tree {
        struct hfd_object_node *root; /* owned reference; NULL = empty */
        uint64_t n_copied;            /* nodes that changes of this tree have copied so far */
};

size_t hfd_object_tree_size(const struct hfd_object_tree *tree);
/* Returns the object at path, borrowed from the tree. NULL: the tree does not contain the path. */
struct hfd_object *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path);
/*
 * Adds object or replaces the one at its path, and consumes the reference to object. *ret_old is
 * the replaced object, with its reference; NULL = it was added. 0, or -ENOMEM: the reference is
 * dropped, and the tree's contents are unchanged.
 */
int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old);
/*
 * The same, but faster if the object sorts after all others: then only one path is compared.
 */
int hfd_object_tree_append(struct hfd_object_tree *tree, struct hfd_object *object,
                           struct hfd_object **ret_old);
/*
 * *ret_old is the removed object with its reference; NULL: the tree does not contain the path. 0,
 * or -ENOMEM: nothing was removed.
 */
int hfd_object_tree_remove(struct hfd_object_tree *tree, const char *path,
                           struct hfd_object **ret_old);
/* Returns a tree with the same objects, which the caller clears. Constant time, never fails. */
struct hfd_object_tree hfd_object_tree_snapshot(const struct hfd_object_tree *tree);
/* Empties the tree: linear in the objects that no snapshot shares. */
void hfd_object_tree_clear(struct hfd_object_tree *tree);
/*
 * Returns the number of objects whose path begins with prefix and sorts after `after` ("" = all).
 * Logarithmic.
 */
size_t hfd_object_tree_count(const struct hfd_object_tree *tree, const char *prefix,
                             const char *after);

/* Four times the depth that a tree of a million objects is likely to have. */
#define HFD_OBJECT_ITER_DEPTH 256

/*
 * Walks in order through the objects of a scope whose path sorts after `after`. The tree must not
 * change meanwhile. The owner keeps the struct; nothing must be freed.
 */
struct hfd_object_iter {
        /* The nodes whose object and right subtree follow, the next one last. Borrowed. */
        const struct hfd_object_node *stack[HFD_OBJECT_ITER_DEPTH];
        size_t depth;
        const struct hfd_scope *scope; /* borrowed */
        size_t n_compared; /* how many bytes of a path must equal the scope's prefix. They include
                              the NUL if the scope is exact. */
};

/* The start costs a logarithmic search. scope is borrowed; after "" = all. */
void hfd_object_iter_init(struct hfd_object_iter *iter, const struct hfd_object_tree *tree,
                          const struct hfd_scope *scope, const char *after);
/* Returns the next object, borrowed from the tree. NULL: the end. */
struct hfd_object *hfd_object_iter_next(struct hfd_object_iter *iter);
