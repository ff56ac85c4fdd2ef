/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A sorted array of pointers to items, found by their keys. The API sends lists in the order of
 * their keys, so filling the array from a list only appends.
 *
 * The caller owns the items. Each item begins with a struct hf__keyed, whose key must not change
 * while the item is in the array. Thread: the owner's; there is no lock.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__keyed {
        const char *key;
};

struct hf__key_index {
        struct hf__keyed **items; /* owned array of borrowed items */
        size_t n, space;
};

/* Frees the array, not the items. A zeroed struct is an empty array. */
void hf__key_index_done(struct hf__key_index *index);
/* Returns the item with that key, or NULL. */
struct hf__keyed *hf__key_index_find(const struct hf__key_index *index, const char *key);
/* Returns the first item whose key is equal to or after `key`, or NULL. */
struct hf__keyed *hf__key_index_lower_bound(const struct hf__key_index *index, const char *key);
/* Adds an item whose key is not in the array yet. 0 or -ENOMEM. */
int hf__key_index_insert(struct hf__key_index *index, struct hf__keyed *item);
/* Removes the item with that key; does nothing if there is none. */
void hf__key_index_remove(struct hf__key_index *index, const char *key);
