/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A treap: a binary search tree by key, which is at the same time a heap by a random priority.
 *
 * Invariants: the keys of the nodes are in strictly ascending order, as strcmp compares them. A
 * node's priority is never below those of its children. As priorities are random, the depth is then
 * logarithmic with overwhelming probability, which bounds the recursion and the stack of an
 * iterator.
 */
#include "client/key_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hf__key_node {
        struct hf__key_node *left, *right; /* owned */
        struct hf__keyed *item;            /* borrowed */
        uint32_t priority;
};

static int compare_keys(const char *key, const struct hf__key_node *node) {
        return strcmp(key, node->item->key);
}

/* Clients that choose the keys must not be able to choose priorities, or they could make the tree
 * deep. So the hash also covers the address of the node, which they do not know. */
static uint32_t priority_of(const struct hf__key_node *node, const char *key) {
        uint64_t h = UINT64_C(1469598103934665603) ^ (uintptr_t)node;

        for (; *key; key++)
                h = (h ^ (unsigned char)*key) * UINT64_C(1099511628211);
        h ^= h >> 32;
        return (uint32_t)(h * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static void free_nodes(struct hf__key_node *node) {
        while (node) {
                struct hf__key_node *right = node->right;

                free_nodes(node->left);
                free(node);
                node = right;
        }
}

void hf__key_index_done(struct hf__key_index *index) {
        free_nodes(index->root);
        *index = (struct hf__key_index){0};
}

void hf__key_index_free_items(struct hf__key_index *index) {
        struct hf__key_iter iter;
        struct hf__keyed *item;

        hf__key_iter_init(&iter, index);
        while ((item = hf__key_iter_next(&iter)))
                free(item);
        hf__key_index_done(index);
}

struct hf__keyed *hf__key_index_find(const struct hf__key_index *index, const char *key) {
        for (const struct hf__key_node *node = index->root; node;) {
                int order = compare_keys(key, node);
                if (order == 0)
                        return node->item;
                node = order < 0 ? node->left : node->right;
        }
        return NULL;
}

/* The first item whose key sorts after `key`, or is equal to it if at_key. */
static struct hf__keyed *find_from(const struct hf__key_index *index, const char *key,
                                   bool at_key) {
        struct hf__keyed *first = NULL;

        for (const struct hf__key_node *node = index->root; node;) {
                int order = compare_keys(key, node);
                bool is_before = order > 0 || (order == 0 && !at_key);
                if (!is_before)
                        first = node->item;
                node = is_before ? node->right : node->left;
        }
        return first;
}

struct hf__keyed *hf__key_index_lower_bound(const struct hf__key_index *index, const char *key) {
        return find_from(index, key, true);
}

struct hf__keyed *hf__key_index_after(const struct hf__key_index *index, const char *key) {
        return find_from(index, key, false);
}

/* Splits the subtree of node into the nodes that sort before key and all others. */
static void split_tree(struct hf__key_node *node, const char *key, struct hf__key_node **ret_left,
                       struct hf__key_node **ret_right) {
        if (!node) {
                *ret_left = *ret_right = NULL;
                return;
        }
        int order = compare_keys(key, node);
        assert(order != 0); /* the index does not contain the key */
        if (order > 0) {
                split_tree(node->right, key, &node->right, ret_right);
                *ret_left = node;
        } else {
                split_tree(node->left, key, ret_left, &node->left);
                *ret_right = node;
        }
}

/* Whether key sorts after all others: the usual case, as the items of a list are added in order. */
static bool is_last(const struct hf__key_index *index, const char *key) {
        const struct hf__key_node *last = index->root;

        while (last && last->right)
                last = last->right;
        return !last || compare_keys(key, last) > 0;
}

int hf__key_index_insert(struct hf__key_index *index, struct hf__keyed *item) {
        struct hf__key_node *node = malloc(sizeof *node), **link = &index->root;
        bool last = is_last(index, item->key);

        if (!node)
                return -ENOMEM;
        node->item = item;
        node->priority = priority_of(node, item->key);
        while (*link && (*link)->priority >= node->priority) {
                int order = last ? 1 : compare_keys(item->key, *link);
                assert(order != 0);
                link = order < 0 ? &(*link)->left : &(*link)->right;
        }
        if (last) {
                node->left = *link;
                node->right = NULL;
        } else {
                split_tree(*link, item->key, &node->left, &node->right);
        }
        *link = node;
        index->n++;
        return 0;
}

/* Joins two trees. Every node of left sorts before every node of right. A loop is sufficient,
 * because only the right edge of left and the left edge of right change. */
static struct hf__key_node *join_trees(struct hf__key_node *left, struct hf__key_node *right) {
        struct hf__key_node *root = NULL, **link = &root;

        while (left && right) {
                if (left->priority > right->priority) {
                        *link = left;
                        link = &left->right;
                        left = left->right;
                } else {
                        *link = right;
                        link = &right->left;
                        right = right->left;
                }
        }
        *link = left ? left : right;
        return root;
}

void hf__key_index_remove(struct hf__key_index *index, const char *key) {
        struct hf__key_node **link = &index->root;

        while (*link) {
                struct hf__key_node *node = *link;
                int order = compare_keys(key, node);
                if (order == 0) {
                        *link = join_trees(node->left, node->right);
                        free(node);
                        assert(index->n > 0);
                        index->n--;
                        return;
                }
                link = order < 0 ? &node->left : &node->right;
        }
}

static void push_nodes(struct hf__key_iter *iter, const struct hf__key_node *node) {
        for (; node; node = node->left) {
                assert(iter->depth < HF__KEY_ITER_DEPTH);
                iter->stack[iter->depth++] = node;
        }
}

void hf__key_iter_init(struct hf__key_iter *iter, const struct hf__key_index *index) {
        iter->depth = 0;
        push_nodes(iter, index->root);
}

struct hf__keyed *hf__key_iter_next(struct hf__key_iter *iter) {
        if (iter->depth == 0)
                return NULL;
        const struct hf__key_node *node = iter->stack[--iter->depth];
        push_nodes(iter, node->right);
        return node->item;
}
