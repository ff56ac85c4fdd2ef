/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The objects of one resource, by path, in the order in which the store sorts keys. Pure. The
 * cacher's trees are guarded by its lock.
 */
#include <stdbool.h>

#include "server/resources/object.h"

struct hfd_object_node {
        struct hfd_object_node *left, *right;
        uint32_t priority;         /* of a treap: larger than those of both children */
        struct hfd_object *object; /* owned; the version that the store's watch has delivered */
        /*
         * owned; a later version that a write of ours has stored already; NULL = none is known.
         * For the next write only: readers must not see it before the watch has delivered it.
         */
        struct hfd_object *newer;
};

struct hfd_object_tree {
        struct hfd_object_node *root;
        size_t n;
};

struct hfd_object_node *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path);
/*
 * Takes object. *ret_old is the object that it replaces, with its reference, or NULL. 0, or
 * -ENOMEM: object is dropped.
 */
int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old);
/* The removed object, with its reference. NULL: it was not there. */
struct hfd_object *hfd_object_tree_remove(struct hfd_object_tree *tree, const char *path);
/*
 * Visits, in order, the objects whose path begins with prefix and sorts after `after` ("" = all),
 * until visit returns false.
 */
void hfd_object_tree_walk(const struct hfd_object_tree *tree, const char *prefix, const char *after,
                          bool (*visit)(void *ctx, struct hfd_object *object), void *ctx);
void hfd_object_tree_clear(struct hfd_object_tree *tree);
