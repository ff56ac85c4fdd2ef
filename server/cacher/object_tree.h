/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects of one resource, sorted by path as the store sorts its keys. Pure. The cacher's lock
 * guards the cacher's trees.
 */
#include <stdbool.h>

#include "server/resources/object.h"

struct hfd_object_node {
        struct hfd_object_node *left, *right;
        uint32_t priority;         /* orders the treap: never below a child's priority */
        struct hfd_object *object; /* owned; the version that the store's watch has delivered */
        /*
         * owned; a later version, which a write of this instance has stored; NULL = none is known.
         * Only writes use it: a reader must not see a change before the watches see it.
         */
        struct hfd_object *newer;
};

struct hfd_object_tree {
        struct hfd_object_node *root;
        size_t n;
};

struct hfd_object_node *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path);
/*
 * Adds object or replaces the one at its path, and consumes the reference to object. *ret_old is
 * the replaced object, with its reference; NULL = it was added. 0, or -ENOMEM: the reference is
 * dropped.
 */
int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old);
/* Returns the removed object with its reference. NULL: the tree does not contain the path. */
struct hfd_object *hfd_object_tree_remove(struct hfd_object_tree *tree, const char *path);
/*
 * Visits, in order, the objects whose path begins with prefix and sorts after `after` ("" = all),
 * until visit returns false.
 */
void hfd_object_tree_for_each(const struct hfd_object_tree *tree, const char *prefix,
                              const char *after,
                              bool (*visit)(void *ctx, struct hfd_object *object), void *ctx);
void hfd_object_tree_clear(struct hfd_object_tree *tree);
