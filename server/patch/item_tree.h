/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The children of one large JSON container in a balanced tree, so that a JSON patch finds, inserts
 * and removes a child in logarithmic time. An array's children are in their order in the array; an
 * object's are sorted by key. The place of a child is its number in this order.
 *
 * The tree only points to the children. Code that changes the container must change the tree as
 * well. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__json;
struct hfd_item_node;

struct hfd_item_tree {
        struct hfd_item_node *nodes; /* owned; nodes[0] is the empty tree */
        uint32_t root, n_used, n_space;
        uint32_t unused; /* list of removed nodes, linked by left; 0 = none */
};

/* Builds the tree of container's children. 0, -ENOMEM, or HF_E_TOO_LARGE (2^30 children or more).
 * On failure there is nothing to free. */
int hfd_item_tree_init(struct hfd_item_tree *tree, const struct hf__json *container);
void hfd_item_tree_done(struct hfd_item_tree *tree);
size_t hfd_item_tree_count(const struct hfd_item_tree *tree);
/* The child at a place; NULL = there are fewer children. */
struct hf__json *hfd_item_tree_at(const struct hfd_item_tree *tree, size_t place);
/* Only for the tree of an object. True: the child with this key is at *ret_place. False: there is
 * no such child, and a new one belongs at *ret_place. */
bool hfd_item_tree_find(const struct hfd_item_tree *tree, const char *key, size_t *ret_place);
/* Makes room for one insert, which then cannot fail. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_item_tree_reserve(struct hfd_item_tree *tree);
/* Inserts item before the child at the place. place is at most the number of children. The caller
 * has called hfd_item_tree_reserve. */
void hfd_item_tree_insert(struct hfd_item_tree *tree, size_t place, struct hf__json *item);
/* The child at the place must exist. It leaves the tree, but is not freed. */
void hfd_item_tree_remove(struct hfd_item_tree *tree, size_t place);
void hfd_item_tree_replace(struct hfd_item_tree *tree, size_t place, struct hf__json *item);
