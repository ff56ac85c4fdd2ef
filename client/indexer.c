/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The indexes of an informer. An index has a node for each value that an object has, and a node
 * contains the entries with that value, in the order of their keys. Each entry has a list of its
 * nodes, so that the old values of the entry need not be computed again. A node without entries is
 * freed.
 *
 * Invariants: an entry is in a node exactly if that node is in the entry's list, and no list has a
 * node twice. An update either moves the entry to all of its new values or, out of memory, changes
 * nothing.
 */
#include "client/indexer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_costly.h"
#include "base/thread.h"
#include "client/informer_private.h"

struct hf__index {
        struct hf__index *next;
        hf_informer_index_fn fn;
        void *ctx;
        struct hf__key_index nodes; /* owns the nodes */
        char name[];
};

struct hf__index_node {
        struct hf__keyed keyed; /* the value */
        struct hf__index *index;
        struct hf__key_index entries; /* borrowed from the store */
        /* Each update of an entry has a number. During an update, old_update equals the number if
         * the entry had this value before, and new_update equals the number if the entry has this
         * value afterwards. So no search through the old and new values is necessary. */
        uint64_t old_update, new_update;
        char value[];
};

struct hf__index_value {
        struct hf__index *index;
        char *text; /* owned */
};

/* ---- the values of an object ---- */

static int grow_values(struct hf_informer_values *values) {
        size_t space = values->space ? values->space * 2 : 4;
        struct hf__index_value *grown = reallocarray(values->values, space, sizeof *grown);

        if (!grown)
                return -ENOMEM;
        values->values = grown;
        values->space = space;
        return 0;
}

int hf_informer_values_add(struct hf_informer_values *values, const char *value) {
        if (!values || !value)
                return -EINVAL;
        if (values->error == 0 && values->n == values->space)
                values->error = grow_values(values);
        if (values->error != 0)
                return values->error;
        char *copy = strdup(value);
        if (copy)
                values->values[values->n++] = (struct hf__index_value){values->index, copy};
        else
                values->error = -ENOMEM;
        return values->error;
}

void hf_informer_values_fail(struct hf_informer_values *values) {
        if (values)
                values->error = -ENOMEM;
}

int hf__indexer_values_of(const struct hf__indexer *indexer, const struct hf__informer_entry *entry,
                          const char *object, size_t n, struct hf_informer_values *ret_values) {
        *ret_values = (struct hf_informer_values){0};
        for (struct hf__index *index = indexer->indexes; index && ret_values->error == 0;
             index = index->next) {
                ret_values->index = index;
                index->fn(index->ctx, entry->ns, entry->name, object, n, ret_values);
        }
        return ret_values->error;
}

void hf__indexer_values_done(struct hf_informer_values *values) {
        for (size_t i = 0; i < values->n; i++)
                free(values->values[i].text);
        free(values->values);
}

/* ---- nodes ---- */

static void node_free_if_empty(struct hf__index_node *node) {
        if (node->entries.n > 0)
                return;
        hf__key_index_remove(&node->index->nodes, node->value);
        hf__key_index_done(&node->entries);
        free(node);
}

/* Finds the node of a value, or creates an empty one. NULL: out of memory. */
static struct hf__index_node *node_get(struct hf__index *index, const char *value) {
        struct hf__index_node *node =
                (struct hf__index_node *)hf__key_index_find(&index->nodes, value);
        size_t n = strlen(value);

        if (node)
                return node;
        node = calloc(1, sizeof *node + n + 1);
        if (!node)
                return NULL;
        memcpy(node->value, value, n + 1);
        node->keyed.key = node->value;
        node->index = index;
        if (hf__key_index_insert(&index->nodes, &node->keyed) < 0) {
                free(node);
                return NULL;
        }
        return node;
}

static void node_remove(struct hf__index_node *node, const struct hf__informer_entry *entry) {
        hf__assert_costly(hf__key_index_find(&node->entries, entry->keyed.key) == &entry->keyed);
        hf__key_index_remove(&node->entries, entry->keyed.key);
        node_free_if_empty(node);
}

/* Adds the entry, unless it was in this node before the update. 0, or -ENOMEM; in that case a node
 * without entries is freed. */
static int node_add(struct hf__index_node *node, struct hf__informer_entry *entry,
                    uint64_t update) {
        if (node->old_update == update)
                return 0;
        int r = hf__key_index_insert(&node->entries, &entry->keyed);
        if (r < 0)
                node_free_if_empty(node);
        return r;
}

/* ---- entries; under the informer's lock ---- */

/* Adds the entry to the nodes of its new values, and stores these nodes in `nodes`, which has room
 * for all of them. 0 or -ENOMEM. */
static int add_to_nodes(struct hf__informer_entry *entry, const struct hf_informer_values *values,
                        uint64_t update, struct hf__index_node **nodes, size_t *n_nodes) {
        for (size_t i = 0; i < values->n; i++) {
                struct hf__index_node *node =
                        node_get(values->values[i].index, values->values[i].text);
                if (!node)
                        return -ENOMEM;
                if (node->new_update == update)
                        continue; /* the index function added this value twice */
                int r = node_add(node, entry, update);
                if (r < 0)
                        return r;
                node->new_update = update;
                nodes[(*n_nodes)++] = node;
        }
        return 0;
}

/* First adds the entry to its new nodes, then removes it from the old ones. Adding can fail, and is
 * then undone. Removing cannot fail. */
int hf__indexer_update_locked(struct hf__indexer *indexer, struct hf__informer_entry *entry,
                              const struct hf_informer_values *values) {
        struct hf__index_node **nodes = NULL, **old = entry->nodes;
        uint64_t update = ++indexer->n_updates;
        size_t n = 0;

        assert(values->error == 0);
        if (values->n > 0) {
                nodes = calloc(values->n + 1, sizeof(struct hf__index_node *));
                if (!nodes)
                        return -ENOMEM;
        }
        for (struct hf__index_node **node = old; node && *node; node++)
                (*node)->old_update = update;
        int r = add_to_nodes(entry, values, update, nodes, &n);
        if (r < 0) { /* remove the entry from the nodes that are new to it */
                while (n > 0)
                        if (nodes[--n]->old_update != update)
                                node_remove(nodes[n], entry);
                free(nodes);
                return r;
        }
        for (struct hf__index_node **node = old; node && *node; node++)
                if ((*node)->new_update != update)
                        node_remove(*node, entry);
        free(old);
        entry->nodes = nodes;
        return 0;
}

void hf__indexer_remove_locked(struct hf__informer_entry *entry) {
        for (struct hf__index_node **node = entry->nodes; node && *node; node++)
                node_remove(*node, entry);
        free(entry->nodes);
        entry->nodes = NULL;
}

/* ---- functions for users ---- */

static struct hf__index *find_index(const struct hf__indexer *indexer, const char *name) {
        struct hf__index *index = indexer->indexes;

        while (index && strcmp(index->name, name) != 0)
                index = index->next;
        return index;
}

int hf_informer_add_index(struct hf_informer *informer, const char *name, hf_informer_index_fn fn,
                          void *ctx) {
        if (!informer || informer->started || !name || !name[0] || !fn)
                return -EINVAL;
        if (find_index(&informer->indexer, name))
                return HF_E_EXISTS;
        size_t n = strlen(name);
        struct hf__index *index = calloc(1, sizeof *index + n + 1);
        if (!index)
                return -ENOMEM;
        memcpy(index->name, name, n + 1);
        index->fn = fn;
        index->ctx = ctx;
        index->next = informer->indexer.indexes;
        informer->indexer.indexes = index;
        return 0;
}

int hf_informer_by_index(struct hf_informer *informer, const char *name, const char *value,
                         void (*each)(void *ctx, const char *ns, const char *name,
                                      const char *object, size_t n),
                         void *ctx) {
        struct hf__index *index =
                informer && name && value && each ? find_index(&informer->indexer, name) : NULL;

        if (!index)
                return -EINVAL;
        (void)pthread_mutex_lock(&informer->mu);
        const struct hf__index_node *node =
                (const struct hf__index_node *)hf__key_index_find(&index->nodes, value);
        const struct hf__informer_entry *entry;
        struct hf__key_iter iter = {.depth = 0};
        if (node)
                hf__key_iter_init(&iter, &node->entries);
        while ((entry = (const struct hf__informer_entry *)hf__key_iter_next(&iter)))
                hf__informer_entry_visit(entry, each, ctx);
        (void)pthread_mutex_unlock(&informer->mu);
        return 0;
}

void hf__indexer_done(struct hf__indexer *indexer) {
        while (indexer->indexes) {
                struct hf__index *index = indexer->indexes;
                assert(index->nodes.n == 0); /* each node was freed with its last entry */
                indexer->indexes = index->next;
                hf__key_index_done(&index->nodes);
                free(index);
        }
}
