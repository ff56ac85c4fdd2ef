/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Items in the order of their keys, found by their keys, in a balanced tree: adding, finding and
 * removing an item take logarithmic time in any order. The API sends lists in the order of their
 * keys; then adding an item compares one key.
 *
 * The caller owns the items. Each item begins with a struct hf__keyed, whose key must not change
 * while the item is in the index. Thread: the owner's; there is no lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__keyed {
        const char *key;
};

struct hf__key_node;

struct hf__key_index {
        struct hf__key_node *root; /* owned */
        size_t n;
};

/* Frees the index, not the items. A zeroed struct is an empty index. */
void hf__key_index_done(struct hf__key_index *index);
/* Frees the index, and each item with free. For items that own nothing else. */
void hf__key_index_free_items(struct hf__key_index *index);
/* Returns the item with that key, or NULL. */
struct hf__keyed *hf__key_index_find(const struct hf__key_index *index, const char *key);
/* Returns the first item whose key is equal to or after `key`, or NULL. */
struct hf__keyed *hf__key_index_lower_bound(const struct hf__key_index *index, const char *key);
/* Returns the first item whose key is after `key`, or NULL. The item of `key` may be gone. */
struct hf__keyed *hf__key_index_after(const struct hf__key_index *index, const char *key);
/* Adds an item whose key is not in the index yet. 0 or -ENOMEM. */
int hf__key_index_insert(struct hf__key_index *index, struct hf__keyed *item);
/* Removes the item with that key; does nothing if there is none. */
void hf__key_index_remove(struct hf__key_index *index, const char *key);

/* A tree of a million items usually has some 50 levels: see key_index.c. */
#define HF__KEY_ITER_DEPTH 128

/* Walks through all items in order. The index must not change meanwhile; the items may be freed. */
struct hf__key_iter {
        const struct hf__key_node *stack[HF__KEY_ITER_DEPTH];
        size_t depth;
};

/* Begins before the first item. */
void hf__key_iter_init(struct hf__key_iter *iter, const struct hf__key_index *index);
/* Returns the next item, or NULL at the end. */
struct hf__keyed *hf__key_iter_next(struct hf__key_iter *iter);
