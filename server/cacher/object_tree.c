/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of one resource in a treap: a binary search tree by path, which is at the same time a
 * heap by a random priority. Paths have the order of the store's keys. So a list can continue after
 * any path, even if its first page came from the store.
 *
 * Invariant: a node's priority is never below those of its children. As priorities are random, the
 * depth is then logarithmic with overwhelming probability, which bounds the recursion below.
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

/* Joins two trees. Every node of left sorts before every node of right. */
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
        /*
         * Insert the node at the first place where its priority keeps the heap order. The subtree
         * that was there becomes its children.
         */
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

struct visit_args {
        const char *prefix, *after;
        size_t n_prefix;
        bool (*visit)(void *ctx, struct hfd_object *object);
        void *ctx;
};

/* Visits a subtree in order, skipping the parts that cannot match. False: visit returned false. */
static bool visit_node(const struct hfd_object_node *node, const struct visit_args *args) {
        if (!node)
                return true;
        const char *path = node->object->path;
        bool below =
                strcmp(path, args->prefix) < 0 || (*args->after && strcmp(path, args->after) <= 0);
        int order = strncmp(path, args->prefix, args->n_prefix);
        if (!below && order <= 0 && !visit_node(node->left, args))
                return false;
        if (!below && order > 0) /* all paths with the prefix sort before this node */
                return visit_node(node->left, args);
        if (!below && !args->visit(args->ctx, node->object))
                return false;
        return visit_node(node->right, args);
}

void hfd_object_tree_for_each(const struct hfd_object_tree *tree, const char *prefix,
                              const char *after,
                              bool (*visit)(void *ctx, struct hfd_object *object), void *ctx) {
        struct visit_args args = {prefix, after, strlen(prefix), visit, ctx};

        visit_node(tree->root, &args);
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
