/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A weight-balanced tree. Each node has the size of the tree that begins at it. The sizes give the
 * place of a child, and show whether the tree is balanced.
 *
 * Invariant: neither subtree of a node weighs more than DELTA times the other one; the weight is
 * the number of nodes plus one. So the depth is logarithmic whatever a client inserts and removes,
 * and recursion is safe. It is proved that balance_node keeps the invariant with these values of
 * DELTA and GAMMA (Hirai, Yamamoto: Balancing weight-balanced trees, 2011).
 */
#include "server/patch/item_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"

#define DELTA 3
#define GAMMA 2 /* decides between a single and a double rotation */

struct hfd_item_node {
        struct hf__json *item;      /* borrowed */
        uint32_t left, right, size; /* 0 = none; size counts the node itself */
};

#define NODE(t, i) ((t)->nodes[i])

/* ---- balance ---- */

static uint64_t subtree_weight(const struct hfd_item_tree *tree, uint32_t at) {
        return (uint64_t)NODE(tree, at).size + 1;
}

static uint32_t update_size(struct hfd_item_tree *tree, uint32_t at) {
        struct hfd_item_node *node = &NODE(tree, at);

        node->size = NODE(tree, node->left).size + NODE(tree, node->right).size + 1;
        return at;
}

/* Makes the right child of `at` the root of this subtree. Returns the root. */
static uint32_t rotate_left(struct hfd_item_tree *tree, uint32_t at) {
        uint32_t root = NODE(tree, at).right;

        NODE(tree, at).right = NODE(tree, root).left;
        NODE(tree, root).left = update_size(tree, at);
        return update_size(tree, root);
}

static uint32_t rotate_right(struct hfd_item_tree *tree, uint32_t at) {
        uint32_t root = NODE(tree, at).left;

        NODE(tree, at).left = NODE(tree, root).right;
        NODE(tree, root).right = update_size(tree, at);
        return update_size(tree, root);
}

/* Restores the invariant after one node was inserted or removed below `at`. Returns the new root of
 * the subtree. */
static uint32_t balance_node(struct hfd_item_tree *tree, uint32_t at) {
        struct hfd_item_node *node = &NODE(tree, at);
        uint32_t left = node->left, right = node->right;

        if (subtree_weight(tree, right) > DELTA * subtree_weight(tree, left)) {
                if (subtree_weight(tree, NODE(tree, right).left) >=
                    GAMMA * subtree_weight(tree, NODE(tree, right).right))
                        node->right = rotate_right(tree, right);
                return rotate_left(tree, at);
        }
        if (subtree_weight(tree, left) > DELTA * subtree_weight(tree, right)) {
                if (subtree_weight(tree, NODE(tree, left).right) >=
                    GAMMA * subtree_weight(tree, NODE(tree, left).left))
                        node->left = rotate_left(tree, left);
                return rotate_right(tree, at);
        }
        return update_size(tree, at);
}

/* ---- build ---- */

/* Links the nodes from first to last, which are in order. Returns their root. */
static uint32_t link_nodes(struct hfd_item_tree *tree, uint32_t first, uint32_t last) {
        uint32_t middle;

        if (first > last)
                return 0;
        middle = first + (last - first) / 2;
        NODE(tree, middle).left = link_nodes(tree, first, middle - 1);
        NODE(tree, middle).right = link_nodes(tree, middle + 1, last);
        return update_size(tree, middle);
}

/* Fills the nodes with an object's members, sorted by key. 0 or -ENOMEM. */
static int add_members(struct hfd_item_tree *tree, const struct hf__json *object) {
        struct hf__json_index by_key;
        int r = hf__json_index_init(&by_key, object, NULL);

        for (size_t i = 0; r == 0 && i < by_key.n; i++)
                NODE(tree, tree->n_used++) = (struct hfd_item_node){.item = by_key.entries[i].item};
        hf__json_index_done(&by_key);
        return r;
}

int hfd_item_tree_init(struct hfd_item_tree *tree, const struct hf__json *container) {
        size_t n = hf__json_count(container);
        int r = 0;

        if (n > UINT32_MAX / 4) /* so that the space can be doubled */
                return HF_E_TOO_LARGE;
        /* Node 0, and some for the first inserts. */
        *tree = (struct hfd_item_tree){.n_used = 1, .n_space = (uint32_t)n + 1 + 8};
        tree->nodes = malloc(tree->n_space * sizeof *tree->nodes);
        if (!tree->nodes)
                return -ENOMEM;
        NODE(tree, 0) = (struct hfd_item_node){0};
        if (hf__json_is_object(container))
                r = add_members(tree, container);
        else
                for (struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                        NODE(tree, tree->n_used++) = (struct hfd_item_node){.item = m};
        if (r != 0) {
                hfd_item_tree_done(tree);
                return r;
        }
        tree->root = link_nodes(tree, 1, tree->n_used - 1);
        return 0;
}

void hfd_item_tree_done(struct hfd_item_tree *tree) {
        free(tree->nodes);
        *tree = (struct hfd_item_tree){0};
}

/* ---- search ---- */

size_t hfd_item_tree_count(const struct hfd_item_tree *tree) { return NODE(tree, tree->root).size; }

/* The node at a place; 0 = the tree has fewer nodes. */
static uint32_t node_at(const struct hfd_item_tree *tree, size_t place) {
        uint32_t at = tree->root;

        while (at != 0) {
                size_t n_left = NODE(tree, NODE(tree, at).left).size;
                if (place == n_left)
                        return at;
                if (place < n_left) {
                        at = NODE(tree, at).left;
                } else {
                        place -= n_left + 1;
                        at = NODE(tree, at).right;
                }
        }
        return 0;
}

struct hf__json *hfd_item_tree_at(const struct hfd_item_tree *tree, size_t place) {
        return NODE(tree, node_at(tree, place)).item;
}

bool hfd_item_tree_find(const struct hfd_item_tree *tree, const char *key, size_t *ret_place) {
        uint32_t at = tree->root;

        *ret_place = 0;
        while (at != 0) {
                const struct hfd_item_node *node = &NODE(tree, at);
                size_t n_left = NODE(tree, node->left).size;
                int order = strcmp(key, hf__json_key(node->item));
                if (order == 0)
                        *ret_place += n_left;
                if (order == 0)
                        return true;
                if (order > 0)
                        *ret_place += n_left + 1;
                at = order < 0 ? node->left : node->right;
        }
        return false;
}

/* ---- change ---- */

int hfd_item_tree_reserve(struct hfd_item_tree *tree) {
        struct hfd_item_node *grown;

        if (tree->unused != 0 || tree->n_used < tree->n_space)
                return 0;
        if (tree->n_space > UINT32_MAX / 4)
                return HF_E_TOO_LARGE;
        grown = realloc(tree->nodes, (size_t)tree->n_space * 2 * sizeof *grown);
        if (!grown)
                return -ENOMEM;
        tree->nodes = grown;
        tree->n_space *= 2;
        return 0;
}

static uint32_t insert_below(struct hfd_item_tree *tree, uint32_t at, size_t place,
                             uint32_t added) {
        size_t n_left = NODE(tree, NODE(tree, at).left).size;

        if (at == 0)
                return added;
        if (place <= n_left)
                NODE(tree, at).left = insert_below(tree, NODE(tree, at).left, place, added);
        else
                NODE(tree, at).right =
                        insert_below(tree, NODE(tree, at).right, place - n_left - 1, added);
        return balance_node(tree, at);
}

void hfd_item_tree_insert(struct hfd_item_tree *tree, size_t place, struct hf__json *item) {
        uint32_t added = tree->unused;

        assert(place <= hfd_item_tree_count(tree));
        if (added != 0)
                tree->unused = NODE(tree, added).left;
        else
                added = tree->n_used++;
        assert(added < tree->n_space); /* reserve has made room */
        NODE(tree, added) = (struct hfd_item_node){.item = item, .size = 1};
        tree->root = insert_below(tree, tree->root, place, added);
}

/* Removes the node at the place within the subtree `at`. *ret_removed is the node's number. Returns
 * the new root of the subtree. */
static uint32_t remove_below(struct hfd_item_tree *tree, uint32_t at, size_t place,
                             uint32_t *ret_removed) {
        struct hfd_item_node *node = &NODE(tree, at);
        size_t n_left = NODE(tree, node->left).size;
        uint32_t next;

        assert(at != 0);
        if (place < n_left) {
                node->left = remove_below(tree, node->left, place, ret_removed);
                return balance_node(tree, at);
        }
        if (place > n_left) {
                node->right = remove_below(tree, node->right, place - n_left - 1, ret_removed);
                return balance_node(tree, at);
        }
        *ret_removed = at;
        if (node->left == 0 || node->right == 0)
                return node->left != 0 ? node->left : node->right;
        /* The node that follows in order takes the place of the removed node. */
        uint32_t right = remove_below(tree, node->right, 0, &next);
        NODE(tree, next).left = node->left;
        NODE(tree, next).right = right;
        return balance_node(tree, next);
}

void hfd_item_tree_remove(struct hfd_item_tree *tree, size_t place) {
        uint32_t removed = 0;

        assert(place < hfd_item_tree_count(tree));
        tree->root = remove_below(tree, tree->root, place, &removed);
        NODE(tree, removed).left = tree->unused;
        tree->unused = removed;
}

void hfd_item_tree_replace(struct hfd_item_tree *tree, size_t place, struct hf__json *item) {
        uint32_t at = node_at(tree, place);

        assert(at != 0);
        NODE(tree, at).item = item;
}
