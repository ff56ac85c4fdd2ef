/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of one resource in a treap: a binary search tree by path, which is at the same time a
 * heap by a random priority. The store sorts its keys in the same order, so a list can continue
 * after any path. The depth is logarithmic with overwhelming probability, which bounds the
 * recursions below.
 */
#include "server/cacher/object_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hfd_object_node *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path) {
        struct hfd_object_node *node = tree->root;

        while (node) {
                int order = strcmp(path, node->object->path);
                if (order == 0)
                        return node;
                node = order < 0 ? node->left : node->right;
        }
        return NULL;
}

/* Splits the subtree of node into the nodes that sort before path and all others. */
static void split_tree(struct hfd_object_node *node, const char *path,
                       struct hfd_object_node **ret_left, struct hfd_object_node **ret_right) {
        if (!node) {
                *ret_left = *ret_right = NULL;
        } else if (strcmp(node->object->path, path) < 0) {
                split_tree(node->right, path, &node->right, ret_right);
                *ret_left = node;
        } else {
                split_tree(node->left, path, ret_left, &node->left);
                *ret_right = node;
        }
}

/* Joins two trees. Every node of left must sort before every node of right. */
static struct hfd_object_node *join_trees(struct hfd_object_node *left,
                                          struct hfd_object_node *right) {
        if (!left || !right)
                return left ? left : right;
        if (left->priority > right->priority) {
                left->right = join_trees(left->right, right);
                return left;
        }
        right->left = join_trees(left, right->left);
        return right;
}

/*
 * Clients must not be able to choose priorities, or they could make the tree deep. So the hash
 * covers the path and the address of the node, which clients do not know.
 */
static uint32_t priority_of(const struct hfd_object_node *node, const char *path) {
        uint64_t h = UINT64_C(1469598103934665603) ^ (uintptr_t)node;

        for (; *path; path++)
                h = (h ^ (unsigned char)*path) * UINT64_C(1099511628211);
        h ^= h >> 32;
        return (uint32_t)(h * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old) {
        struct hfd_object_node *node = hfd_object_tree_find(tree, object->path),
                               **link = &tree->root;

        *ret_old = NULL;
        if (node) {
                *ret_old = node->object;
                node->object = object;
                return 0;
        }
        node = calloc(1, sizeof *node);
        if (!node) {
                hfd_object_unref(object);
                return -ENOMEM;
        }
        node->object = object;
        node->priority = priority_of(node, object->path);
        while (*link && (*link)->priority >= node->priority)
                link = strcmp(object->path, (*link)->object->path) < 0 ? &(*link)->left
                                                                       : &(*link)->right;
        split_tree(*link, object->path, &node->left, &node->right);
        *link = node;
        tree->n++;
        return 0;
}

struct hfd_object *hfd_object_tree_remove(struct hfd_object_tree *tree, const char *path) {
        struct hfd_object_node **link = &tree->root;

        while (*link) {
                int order = strcmp(path, (*link)->object->path);
                if (order == 0)
                        break;
                link = order < 0 ? &(*link)->left : &(*link)->right;
        }
        struct hfd_object_node *node = *link;
        if (!node)
                return NULL;
        struct hfd_object *object = node->object;
        assert(tree->n > 0);
        *link = join_trees(node->left, node->right);
        hfd_object_unref(node->newer);
        free(node);
        tree->n--;
        return object;
}

struct walk {
        const char *prefix, *after;
        size_t n_prefix;
        bool (*visit)(void *ctx, struct hfd_object *object);
        void *ctx;
};

static bool walk_node(const struct hfd_object_node *node, const struct walk *w) {
        if (!node)
                return true;
        const char *path = node->object->path;
        bool below = strcmp(path, w->prefix) < 0 || (*w->after && strcmp(path, w->after) <= 0);
        int order = strncmp(path, w->prefix, w->n_prefix);
        if (!below && order <= 0 && !walk_node(node->left, w))
                return false;
        if (!below && order > 0) /* this node sorts after the prefix: only the left side matters */
                return walk_node(node->left, w);
        if (!below && !w->visit(w->ctx, node->object))
                return false;
        return walk_node(node->right, w);
}

void hfd_object_tree_for_each(const struct hfd_object_tree *tree, const char *prefix,
                              const char *after,
                              bool (*visit)(void *ctx, struct hfd_object *object), void *ctx) {
        struct walk w = {prefix, after, strlen(prefix), visit, ctx};

        walk_node(tree->root, &w);
}

static void clear_node(struct hfd_object_node *node) {
        if (!node)
                return;
        clear_node(node->left);
        clear_node(node->right);
        hfd_object_unref(node->object);
        hfd_object_unref(node->newer);
        free(node);
}

void hfd_object_tree_clear(struct hfd_object_tree *tree) {
        clear_node(tree->root);
        *tree = (struct hfd_object_tree){0};
}
