/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of a document's large containers, in a hash table by the address of the container.
 *
 * Invariants: a tree in the table has exactly the children of its container, because every change
 * goes through this file. No tree belongs to a container that was freed, because another container
 * may get the same address: remove_trees removes the trees of all containers that are freed. Only
 * an insert that fails leaves such trees, but then the patch ends.
 *
 * A removed entry stays in the table with container NULL until the table grows, so that a search
 * continues after it. `used` distinguishes it from a slot that was never used, where a search ends.
 */
#include "server/patch/document_index.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/patch/item_tree.h"
#include "server/patch/patch.h"

#define FEW_MEMBERS 16 /* up to this many members, a linear search is faster than a tree */
#define FIRST_SLOTS 16 /* a power of two, as find_slot needs; the number only doubles */

struct hfd_document_tree {
        const struct hf__json *container; /* borrowed; NULL = no entry */
        bool used;
        struct hfd_item_tree items;
};

void hfd_document_index_init(struct hfd_document_index *index, struct hfd_patch_outcome *outcome) {
        *index = (struct hfd_document_index){.outcome = outcome};
}

void hfd_document_index_done(struct hfd_document_index *index) {
        for (size_t i = 0; i < index->n_slots; i++)
                if (index->trees[i].container)
                        hfd_item_tree_done(&index->trees[i].items);
        free(index->trees);
}

/* ---- the table ---- */

/* The slot of container, or the unused slot where the search for it ends. */
static struct hfd_document_tree *find_slot(struct hfd_document_tree *trees, size_t n_slots,
                                           const struct hf__json *container) {
        uint64_t hash = (uint64_t)(uintptr_t)container * UINT64_C(0x9e3779b97f4a7c15);
        size_t at = (size_t)(hash >> 32) & (n_slots - 1);

        while (trees[at].used && trees[at].container != container)
                at = (at + 1) & (n_slots - 1);
        return &trees[at];
}

/* The tree of container; NULL = it has none. */
static struct hfd_document_tree *find_tree(struct hfd_document_index *index,
                                           const struct hf__json *container) {
        struct hfd_document_tree *slot;

        if (index->n_trees == 0)
                return NULL;
        slot = find_slot(index->trees, index->n_slots, container);
        return slot->used ? slot : NULL;
}

/* Makes room for one more entry: at most half of the slots are used. 0 or -ENOMEM. */
static int grow_table(struct hfd_document_index *index) {
        size_t n_slots = index->n_slots ? index->n_slots * 2 : FIRST_SLOTS;
        struct hfd_document_tree *grown;

        if ((index->n_trees + 1) * 2 <= index->n_slots)
                return 0;
        grown = calloc(n_slots, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        index->n_trees = 0;
        for (size_t i = 0; i < index->n_slots; i++)
                if (index->trees[i].container) {
                        *find_slot(grown, n_slots, index->trees[i].container) = index->trees[i];
                        index->n_trees++;
                }
        free(index->trees);
        index->trees = grown;
        index->n_slots = n_slots;
        return 0;
}

/* Whether container has more than FEW_MEMBERS. Visits FEW_MEMBERS + 1 of them at most. */
static bool is_large(const struct hf__json *container) {
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                if (++n > FEW_MEMBERS)
                        return true;
        return false;
}

/* Finds the tree of container, or builds it. *ret_tree NULL: the container is small and has
 * none. */
static int find_or_build_tree(struct hfd_document_index *index, const struct hf__json *container,
                              struct hfd_document_tree **ret_tree) {
        struct hfd_document_tree *slot = find_tree(index, container);
        struct hfd_item_tree items;
        int r;

        *ret_tree = slot;
        if (slot || !is_large(container))
                return 0;
        r = hfd_patch_spend(index->outcome, hf__json_count(container));
        if (r == 0)
                r = grow_table(index);
        if (r == 0)
                r = hfd_item_tree_init(&items, container);
        if (r != 0)
                return r;
        slot = find_slot(index->trees, index->n_slots, container);
        assert(!slot->used);
        *slot = (struct hfd_document_tree){.container = container, .used = true, .items = items};
        index->n_trees++;
        *ret_tree = slot;
        return 0;
}

/* Removes the trees of value and of all containers in it. Takes time in proportion to the size of
 * value, as freeing it does. */
static void remove_trees(struct hfd_document_index *index, const struct hf__json *value) {
        struct hfd_document_tree *slot;

        if (index->n_trees == 0 || (!hf__json_is_object(value) && !hf__json_is_array(value)))
                return;
        slot = find_tree(index, value);
        if (slot) {
                hfd_item_tree_done(&slot->items);
                slot->container = NULL;
        }
        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m))
                remove_trees(index, m);
}

/* ---- search ---- */

/* Counts the steps of a search in a tree of n members: about the logarithm of n. */
static int spend_search(struct hfd_document_index *index, size_t n) {
        size_t visits = 1;

        for (; n > 1; n /= 2)
                visits++;
        return hfd_patch_spend(index->outcome, visits);
}

int hfd_document_index_at(struct hfd_document_index *index, struct hf__json *array, size_t number,
                          struct hfd_document_place *ret_place) {
        int r = find_or_build_tree(index, array, &ret_place->tree);
        struct hf__json *m = hf__json_first(array);
        size_t i = 0;

        assert(hf__json_is_array(array));
        if (r != 0)
                return r;
        if (ret_place->tree) {
                const struct hfd_item_tree *items = &ret_place->tree->items;
                size_t n = hfd_item_tree_count(items);
                ret_place->place = number < n ? number : n;
                ret_place->member = hfd_item_tree_at(items, ret_place->place);
                return spend_search(index, n);
        }
        for (; m && i < number; i++)
                m = hf__json_next(m);
        ret_place->place = i;
        ret_place->member = m;
        return spend_search(index, 1);
}

int hfd_document_index_get(struct hfd_document_index *index, struct hf__json *object,
                           const char *key, struct hfd_document_place *ret_place) {
        int r = find_or_build_tree(index, object, &ret_place->tree);

        assert(hf__json_is_object(object));
        if (r != 0)
                return r;
        ret_place->place = 0;
        if (!ret_place->tree)
                ret_place->member = hf__json_get(object, key);
        else if (hfd_item_tree_find(&ret_place->tree->items, key, &ret_place->place))
                ret_place->member = hfd_item_tree_at(&ret_place->tree->items, ret_place->place);
        else
                ret_place->member = NULL;
        return spend_search(index,
                            ret_place->tree ? hfd_item_tree_count(&ret_place->tree->items) : 1);
}

/* ---- change ---- */

int hfd_document_index_insert(struct hfd_document_index *index, struct hf__json *container,
                              struct hfd_document_place *place, const char *key,
                              struct hf__json *value) {
        bool is_array = hf__json_is_array(container);
        int r = place->tree ? hfd_item_tree_reserve(&place->tree->items) : 0;

        assert(value && (is_array || !place->member));
        if (r != 0)
                hf__json_free(value);
        else if (is_array)
                r = hf__json_insert(container, place->member, value);
        else
                r = hf__json_add(container, key, value);
        if (r == 0 && place->tree)
                hfd_item_tree_insert(&place->tree->items, place->place, value);
        return r;
}

int hfd_document_index_replace(struct hfd_document_index *index, struct hf__json *container,
                               struct hfd_document_place *place, struct hf__json *value) {
        assert(value && place->member);
        remove_trees(index, place->member);
        if (place->tree)
                hfd_item_tree_replace(&place->tree->items, place->place, value);
        return hf__json_replace(container, place->member, value); /* frees the member */
}

struct hf__json *hfd_document_index_detach(struct hfd_document_index *index,
                                           struct hf__json *container,
                                           struct hfd_document_place *place) {
        assert(place->member);
        if (place->tree)
                hfd_item_tree_remove(&place->tree->items, place->place);
        return hf__json_detach(container, place->member);
}

void hfd_document_index_free(struct hfd_document_index *index, struct hf__json *value) {
        remove_trees(index, value);
        hf__json_free(value);
}
