/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index of a container's children: an array sorted by text. A hash table would be faster, but a
 * client that chooses the texts could make all of them collide.
 *
 * Invariant: entries are ordered by text and position, so equal texts are found in the order of
 * their children. `few` keeps small containers free of allocations.
 */
#include "base/json_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static int compare_entries(const void *a, const void *b) {
        const struct hf__json_index_entry *x = a, *y = b;
        int order = strcmp(x->text, y->text);

        if (order != 0)
                return order;
        return x->position < y->position ? -1 : x->position > y->position;
}

/* Sorts a few entries, which is faster than qsort. */
static void sort_few(struct hf__json_index_entry *entries, size_t n) {
        for (size_t i = 1; i < n; i++) {
                struct hf__json_index_entry entry = entries[i];
                size_t k = i;
                for (; k > 0 && compare_entries(&entries[k - 1], &entry) > 0; k--)
                        entries[k] = entries[k - 1];
                entries[k] = entry;
        }
}

/* Whether nothing remains to be sorted. Clients in Go sort the members of maps. */
static bool is_sorted(const struct hf__json_index_entry *entries, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (compare_entries(&entries[i - 1], &entries[i]) > 0)
                        return false;
        return true;
}

static const char *get_text(const struct hf__json *item, const char *key) {
        return hf__json_text(key ? hf__json_get(item, key) : item);
}

/* absent: the text of a child without one; NULL = it has no entry. */
static int init(struct hf__json_index *index, const struct hf__json *container, const char *key,
                const char *absent) {
        size_t n = hf__json_count(container), position = 0;
        bool by_key = hf__json_is_object(container);

        index->n = 0;
        index->entries = index->few;
        if (n > HF__JSON_INDEX_FEW) {
                index->entries = malloc(n * sizeof *index->entries);
                if (!index->entries)
                        return -ENOMEM;
        }
        for (struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m), position++) {
                const char *text = by_key ? hf__json_key(m) : get_text(m, key);
                text = text ? text : absent;
                if (text)
                        index->entries[index->n++] =
                                (struct hf__json_index_entry){text, m, position};
        }
        assert(index->n <= n);
        if (index->n <= HF__JSON_INDEX_FEW)
                sort_few(index->entries, index->n);
        else if (!is_sorted(index->entries, index->n))
                qsort(index->entries, index->n, sizeof *index->entries, compare_entries);
        return 0;
}

int hf__json_index_init(struct hf__json_index *index, const struct hf__json *container,
                        const char *key) {
        return init(index, container, key, NULL);
}

int hf__json_index_init_texts(struct hf__json_index *index, const struct hf__json *array,
                              const char *key) {
        return init(index, array, key, "");
}

void hf__json_index_done(struct hf__json_index *index) {
        if (index->entries != index->few)
                free(index->entries);
        index->entries = NULL;
        index->n = 0;
}

struct hf__json_index_entry *hf__json_index_find(const struct hf__json_index *index,
                                                 const char *text) {
        size_t low = 0, high = index->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (strcmp(index->entries[middle].text, text) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == index->n || strcmp(index->entries[low].text, text) != 0)
                return NULL;
        return &index->entries[low];
}

int hf__json_add_members(struct hf__json *into, const struct hf__json *from, bool replace) {
        struct hf__json_index index;
        int r = hf__json_index_init(&index, into, NULL);

        for (const struct hf__json *m = hf__json_first(from); m && r == 0; m = hf__json_next(m)) {
                struct hf__json_index_entry *same = hf__json_index_find(&index, hf__json_key(m));
                if (same && !replace)
                        continue;
                struct hf__json *copy = hf__json_dup(m);
                /* A replacement takes over the key, so the texts of the index stay. */
                r = same ? hf__json_replace(into, same->item, copy)
                         : hf__json_add(into, hf__json_key(m), copy);
                if (r == 0 && same)
                        same->item = copy;
        }
        hf__json_index_done(&index);
        return r;
}
