/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A persistent treap: a binary search tree by path, which is at the same time a heap by a random
 * priority. Paths have the order of the store's keys. So a list can continue after any path, even
 * if its first page came from the store.
 *
 * Invariants:
 *  - A node's priority is never below those of its children. As priorities are like random numbers,
 *    the depth is then logarithmic with overwhelming probability, which bounds the recursion and
 *    the stack of an iterator.
 *  - A node with more than one reference belongs to several trees and is never changed. Each change
 *    first makes the tree the only owner of all nodes that it will change (own_link), which may run
 *    out of memory, and only then changes the structure, which cannot fail.
 *  - A node counts the nodes of its subtree.
 */
#include "server/cacher/history/object_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hfd_object_node {
        struct hfd_object_node *left, *right; /* owned references */
        struct hfd_object *object;            /* owned reference */
        uint32_t priority;                    /* never below a child's priority */
        uint32_t n;                           /* nodes of this subtree */
        atomic_uint refs;
};

static int compare_paths(const char *path, const struct hfd_object_node *node) {
        return strcmp(path, node->object->path);
}

/* ---- nodes ---- */

static uint32_t subtree_size(const struct hfd_object_node *node) { return node ? node->n : 0; }

static void recount_node(struct hfd_object_node *node) {
        node->n = 1 + subtree_size(node->left) + subtree_size(node->right);
}

/* Relaxed is enough, because a tree of the caller has a reference already. */
static struct hfd_object_node *ref_node(struct hfd_object_node *node) {
        assert(!node || atomic_load_explicit(&node->refs, memory_order_relaxed) > 0);
        if (node)
                atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
        return node;
}

/* Release: this thread has finished reading the node (own_link). Acquire: all other threads have
 * finished reading it before it is freed. */
static void unref_node(struct hfd_object_node *node) {
        while (node && atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1) {
                struct hfd_object_node *right = node->right;

                unref_node(node->left);
                hfd_object_unref(node->object);
                free(node);
                node = right;
        }
}

/*
 * Makes the node that link refers to one that only this tree uses: copies it if another tree shares
 * it. link itself must be in such a node, or be the tree's root. False: out of memory.
 */
static bool own_link(struct hfd_object_tree *tree, struct hfd_object_node **link) {
        struct hfd_object_node *shared = *link;

        /* Acquire: another thread that had the second reference has finished reading the node. */
        if (atomic_load_explicit(&shared->refs, memory_order_acquire) == 1)
                return true;
        struct hfd_object_node *copy = malloc(sizeof *copy);
        if (!copy)
                return false;
        copy->left = ref_node(shared->left);
        copy->right = ref_node(shared->right);
        copy->object = hfd_object_ref(shared->object);
        copy->priority = shared->priority;
        copy->n = shared->n;
        atomic_init(&copy->refs, 1);
        *link = copy;
        tree->n_copied++;
        unref_node(shared);
        return true;
}

/* Calls own_link for the nodes from the root to path, or to the place where path would be.
 * *ret_node: the node at path; NULL = there is none. False: out of memory. */
static bool own_path(struct hfd_object_tree *tree, const char *path,
                     struct hfd_object_node **ret_node) {
        struct hfd_object_node **link = &tree->root;

        *ret_node = NULL;
        while (*link) {
                if (!own_link(tree, link))
                        return false;
                int order = compare_paths(path, *link);
                if (order == 0) {
                        *ret_node = *link;
                        break;
                }
                link = order < 0 ? &(*link)->left : &(*link)->right;
        }
        return true;
}

/*
 * Clients must not be able to choose priorities, or they could make the tree deep. So the hash (of
 * FNV's kind, mixed once more) covers the path and the address of the node, which clients do not
 * know.
 */
static uint32_t priority_of(const struct hfd_object_node *node, const char *path) {
        uint64_t h = UINT64_C(1469598103934665603) ^ (uintptr_t)node;

        for (; *path; path++)
                h = (h ^ (unsigned char)*path) * UINT64_C(1099511628211);
        h ^= h >> 32;
        return (uint32_t)(h * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Consumes the reference to object. NULL: out of memory. */
static struct hfd_object_node *new_node(struct hfd_object *object) {
        struct hfd_object_node *node = malloc(sizeof *node);

        if (!node) {
                hfd_object_unref(object);
                return NULL;
        }
        node->left = node->right = NULL;
        node->object = object;
        node->priority = priority_of(node, object->path);
        node->n = 1;
        atomic_init(&node->refs, 1);
        return node;
}

/* ---- changes; all nodes that these functions change are owned ---- */

/* Splits the subtree of node into the nodes that sort before path and all others. */
static void split_tree(struct hfd_object_node *node, const char *path,
                       struct hfd_object_node **ret_left, struct hfd_object_node **ret_right) {
        if (!node) {
                *ret_left = *ret_right = NULL;
        } else if (compare_paths(path, node) > 0) {
                split_tree(node->right, path, &node->right, ret_right);
                *ret_left = node;
                recount_node(node);
        } else {
                split_tree(node->left, path, ret_left, &node->left);
                *ret_right = node;
                recount_node(node);
        }
}

/* Calls own_link for the nodes that join_trees will change. False: out of memory. */
static bool own_seam(struct hfd_object_tree *tree, struct hfd_object_node **left,
                     struct hfd_object_node **right) {
        while (*left && *right) {
                struct hfd_object_node **next =
                        (*left)->priority > (*right)->priority ? left : right;
                if (!own_link(tree, next))
                        return false;
                if (next == left)
                        left = &(*left)->right;
                else
                        right = &(*right)->left;
        }
        return true;
}

/* Joins two trees. Every node of left sorts before every node of right. */
static struct hfd_object_node *join_trees(struct hfd_object_node *left,
                                          struct hfd_object_node *right) {
        if (!left || !right)
                return left ? left : right;
        if (left->priority > right->priority) {
                left->right = join_trees(left->right, right);
                recount_node(left);
                return left;
        }
        right->left = join_trees(left, right->left);
        recount_node(right);
        return right;
}

/* Adds a node whose path the tree does not contain. own_path has succeeded for it. */
static void insert_node(struct hfd_object_tree *tree, struct hfd_object_node *node) {
        struct hfd_object_node **link = &tree->root;
        const char *path = node->object->path;

        /*
         * Insert the node at the first place where its priority keeps the heap order. The subtree
         * that was there becomes its children.
         */
        while (*link && (*link)->priority >= node->priority) {
                (*link)->n++;
                link = compare_paths(path, *link) < 0 ? &(*link)->left : &(*link)->right;
        }
        split_tree(*link, path, &node->left, &node->right);
        recount_node(node);
        *link = node;
}

/* ---- the tree ---- */

size_t hfd_object_tree_size(const struct hfd_object_tree *tree) { return subtree_size(tree->root); }

static struct hfd_object_node *find_node(const struct hfd_object_tree *tree, const char *path) {
        struct hfd_object_node *node = tree->root;

        while (node) {
                int order = compare_paths(path, node);
                if (order == 0)
                        return node;
                node = order < 0 ? node->left : node->right;
        }
        return NULL;
}

struct hfd_object *hfd_object_tree_find(const struct hfd_object_tree *tree, const char *path) {
        const struct hfd_object_node *node = find_node(tree, path);

        return node ? node->object : NULL;
}

int hfd_object_tree_put(struct hfd_object_tree *tree, struct hfd_object *object,
                        struct hfd_object **ret_old) {
        struct hfd_object_node *node;

        *ret_old = NULL;
        if (!own_path(tree, object->path, &node)) {
                hfd_object_unref(object);
                return -ENOMEM;
        }
        if (node) {
                *ret_old = node->object;
                node->object = object;
                return 0;
        }
        node = new_node(object);
        if (!node)
                return -ENOMEM;
        insert_node(tree, node);
        return 0;
}

int hfd_object_tree_append(struct hfd_object_tree *tree, struct hfd_object *object,
                           struct hfd_object **ret_old) {
        struct hfd_object_node **link = &tree->root, *last = NULL, *node;

        *ret_old = NULL;
        for (; *link; link = &last->right) {
                if (!own_link(tree, link)) {
                        hfd_object_unref(object);
                        return -ENOMEM;
                }
                last = *link;
        }
        if (last && compare_paths(object->path, last) <= 0)
                return hfd_object_tree_put(tree, object, ret_old);
        node = new_node(object);
        if (!node)
                return -ENOMEM;
        for (link = &tree->root; *link && (*link)->priority >= node->priority;
             link = &(*link)->right)
                (*link)->n++;
        node->left = *link; /* all of it sorts before the new node */
        recount_node(node);
        *link = node;
        return 0;
}

int hfd_object_tree_remove(struct hfd_object_tree *tree, const char *path,
                           struct hfd_object **ret_old) {
        struct hfd_object_node **link = &tree->root, *node = find_node(tree, path);

        *ret_old = NULL;
        if (!node)
                return 0;
        if (!own_path(tree, path, &node))
                return -ENOMEM;
        if (!own_seam(tree, &node->left, &node->right))
                return -ENOMEM;
        while (*link != node) {
                (*link)->n--;
                link = compare_paths(path, *link) < 0 ? &(*link)->left : &(*link)->right;
        }
        *link = join_trees(node->left, node->right);
        *ret_old = node->object;
        free(node);
        return 0;
}

struct hfd_object_tree hfd_object_tree_snapshot(const struct hfd_object_tree *tree) {
        return (struct hfd_object_tree){.root = ref_node(tree->root)};
}

void hfd_object_tree_clear(struct hfd_object_tree *tree) {
        unref_node(tree->root);
        *tree = (struct hfd_object_tree){0};
}

/* ---- reading ---- */

/* Whether the node sorts before all objects of the range: it is not after `after`, or precedes the
 * prefix. */
static bool is_below(const struct hfd_object_node *node, const char *prefix, const char *after) {
        return compare_paths(prefix, node) > 0 || (*after && compare_paths(after, node) >= 0);
}

size_t hfd_object_tree_count(const struct hfd_object_tree *tree, const char *prefix,
                             const char *after) {
        size_t n_below = 0, n_not_above = 0, n_prefix = strlen(prefix);

        for (const struct hfd_object_node *node = tree->root; node;) {
                bool below = is_below(node, prefix, after);
                n_below += below ? 1 + (size_t)subtree_size(node->left) : 0;
                node = below ? node->right : node->left;
        }
        for (const struct hfd_object_node *node = tree->root; node;) {
                bool above = strncmp(node->object->path, prefix, n_prefix) > 0;
                n_not_above += above ? 0 : 1 + (size_t)subtree_size(node->left);
                node = above ? node->left : node->right;
        }
        return n_not_above > n_below ? n_not_above - n_below : 0;
}

static void push_node(struct hfd_object_iter *iter, const struct hfd_object_node *node) {
        assert(iter->depth < HFD_OBJECT_ITER_DEPTH);
        iter->stack[iter->depth++] = node;
}

void hfd_object_iter_init(struct hfd_object_iter *iter, const struct hfd_object_tree *tree,
                          const struct hfd_scope *scope, const char *after) {
        iter->depth = 0;
        iter->scope = scope;
        iter->n_compared = strlen(scope->prefix) + (scope->exact ? 1 : 0);
        for (const struct hfd_object_node *node = tree->root; node;) {
                bool below = is_below(node, scope->prefix, after);
                if (!below)
                        push_node(iter, node);
                node = below ? node->right : node->left;
        }
}

struct hfd_object *hfd_object_iter_next(struct hfd_object_iter *iter) {
        if (iter->depth == 0)
                return NULL;
        assert(iter->depth > 0);
        const struct hfd_object_node *node = iter->stack[--iter->depth];
        if (strncmp(node->object->path, iter->scope->prefix, iter->n_compared) != 0) {
                iter->depth = 0; /* all others sort after it, so they do not match either */
                return NULL;
        }
        for (const struct hfd_object_node *next = node->right; next; next = next->left)
                push_node(iter, next);
        return node->object;
}
