/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted array of pointers. An insertion moves all later items. That is acceptable, because the
 * items of a list arrive in the order of their keys, so that filling a store only appends.
 *
 * Invariant: the keys of the items are in strictly ascending order, as strcmp compares them.
 */
#include "client/key_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the index of the item with that key, or the index at which it would be inserted. */
static size_t find_place(const struct hf__key_index *index, const char *key, bool *ret_found) {
        size_t low = 0, high = index->n;

        *ret_found = false;
        if (high > 0 && strcmp(index->items[high - 1]->key, key) < 0)
                return high; /* the usual case: the items of a list are added in order */
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(index->items[middle]->key, key);
                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

void hf__key_index_done(struct hf__key_index *index) {
        free(index->items);
        *index = (struct hf__key_index){0};
}

struct hf__keyed *hf__key_index_find(const struct hf__key_index *index, const char *key) {
        bool found;
        size_t i = find_place(index, key, &found);
        return found ? index->items[i] : NULL;
}

struct hf__keyed *hf__key_index_lower_bound(const struct hf__key_index *index, const char *key) {
        bool found;
        size_t i = find_place(index, key, &found);
        return i < index->n ? index->items[i] : NULL;
}

/* Grows the array first, so that a failure changes nothing. */
int hf__key_index_insert(struct hf__key_index *index, struct hf__keyed *item) {
        bool found;

        if (index->n == index->space) {
                size_t space = index->space ? index->space * 2 : 16;
                struct hf__keyed **items = reallocarray(index->items, space, sizeof *items);
                if (!items)
                        return -ENOMEM;
                index->items = items;
                index->space = space;
        }
        size_t i = find_place(index, item->key, &found);
        assert(!found);
        memmove(index->items + i + 1, index->items + i, (index->n - i) * sizeof *index->items);
        index->items[i] = item;
        index->n++;
        return 0;
}

void hf__key_index_remove(struct hf__key_index *index, const char *key) {
        bool found;
        size_t i = find_place(index, key, &found);

        if (!found)
                return;
        index->n--;
        memmove(index->items + i, index->items + i + 1, (index->n - i) * sizeof *index->items);
}
