/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's indexes. Each has a node per value that some object has, and a node holds the entries
 * that have it, in key order; an entry knows its nodes, so that nobody has to ask again which
 * values an object had. A node goes with its last entry.
 *
 * Nodes and the entries' lists of them change under the cache's lock, by its thread only, together
 * with the store: who reads finds an object under exactly the values that it has. What an object's
 * values are is asked without the lock.
 */
#include "client/informer_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hf__indexer {
        struct hf__indexer *next;
        hf_informer_index_fn fn;
        void *ctx;
        struct hf__key_index nodes; /* owns them */
        char name[];
};

struct hf__indexer_node {
        struct hf__keyed keyed; /* the value */
        struct hf__indexer *index;
        struct hf__key_index entries; /* borrowed from the store */
        uint64_t had, has;            /* the last swap whose entry was in before, and after */
        char value[];
};

struct wanted {
        struct hf__indexer *index;
        char *value; /* owned */
};

/* ---- what an object's values are ---- */

int hf_informer_value(struct hf_informer_values *values, const char *value) {
        if (!values || !value)
                return -EINVAL;
        if (values->error == 0 && values->n == values->space) {
                size_t space = values->space ? values->space * 2 : 4;
                struct wanted *wanted = reallocarray(values->wanted, space, sizeof *wanted);
                if (wanted) {
                        values->wanted = wanted;
                        values->space = space;
                } else {
                        values->error = -ENOMEM;
                }
        }
        char *copy = values->error ? NULL : strdup(value);
        if (copy)
                values->wanted[values->n++] = (struct wanted){values->index, copy};
        else
                values->error = -ENOMEM;
        return values->error;
}

int hf__indexer_values_of(struct hf_informer *informer, const struct hf__informer_entry *entry,
                          const char *object, size_t n, struct hf_informer_values *ret_values) {
        *ret_values = (struct hf_informer_values){0};
        for (struct hf__indexer *index = informer->indexes; index && ret_values->error == 0;
             index = index->next) {
                ret_values->index = index;
                index->fn(index->ctx, entry->ns, entry->name, object, n, ret_values);
        }
        return ret_values->error;
}

void hf__indexer_values_done(struct hf_informer_values *values) {
        for (size_t i = 0; i < values->n; i++)
                free(values->wanted[i].value);
        free(values->wanted);
        *values = (struct hf_informer_values){0};
}

/* ---- nodes ---- */

static void node_drop_if_empty(struct hf__indexer_node *node) {
        if (node->entries.n > 0)
                return;
        hf__key_index_remove(&node->index->nodes, node->value);
        hf__key_index_done(&node->entries);
        free(node);
}

static struct hf__indexer_node *node_of(struct hf__indexer *index, const char *value) {
        struct hf__indexer_node *node =
                (struct hf__indexer_node *)hf__key_index_find(&index->nodes, value);
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

static void leave(struct hf__indexer_node *node, const struct hf__informer_entry *entry) {
        hf__key_index_remove(&node->entries, entry->keyed.key);
        node_drop_if_empty(node);
}

static int enter(struct hf__indexer_node *node, struct hf__informer_entry *entry, uint64_t swap) {
        if (node->had == swap)
                return 0;
        int r = hf__key_index_insert(&node->entries, &entry->keyed);
        if (r < 0)
                node_drop_if_empty(node);
        return r;
}

int hf__indexer_swap_locked(struct hf_informer *informer, struct hf__informer_entry *entry,
                            const struct hf_informer_values *values) {
        struct hf__indexer_node **nodes = values->n > 0 ? calloc(values->n + 1,
                                                                 sizeof(struct hf__indexer_node *))
                                                        : NULL,
                                **old = entry->nodes;
        uint64_t swap = ++informer->n_swaps;
        size_t n = 0;
        int r = values->n > 0 && !nodes ? -ENOMEM : 0;

        for (struct hf__indexer_node **had = old; had && *had; had++)
                (*had)->had = swap;
        for (size_t i = 0; r == 0 && i < values->n; i++) {
                struct hf__indexer_node *node =
                        node_of(values->wanted[i].index, values->wanted[i].value);
                if (node && node->has == swap)
                        continue; /* said twice */
                r = node ? enter(node, entry, swap) : -ENOMEM;
                if (r == 0) {
                        node->has = swap;
                        nodes[n++] = node;
                }
        }
        if (r < 0) { /* as if nothing had been */
                while (n > 0)
                        if (nodes[--n]->had != swap)
                                leave(nodes[n], entry);
                free(nodes);
                return r;
        }
        for (struct hf__indexer_node **had = old; had && *had; had++)
                if ((*had)->has != swap)
                        leave(*had, entry);
        free(old);
        entry->nodes = nodes;
        return 0;
}

void hf__indexer_leave_locked(struct hf__informer_entry *entry) {
        for (struct hf__indexer_node **node = entry->nodes; node && *node; node++)
                leave(*node, entry);
        free(entry->nodes);
        entry->nodes = NULL;
}

/* ---- the face ---- */

static struct hf__indexer *find_index(const struct hf_informer *informer, const char *name) {
        struct hf__indexer *index = informer->indexes;
        while (index && strcmp(index->name, name) != 0)
                index = index->next;
        return index;
}

int hf_informer_add_index(struct hf_informer *informer, const char *name, hf_informer_index_fn fn,
                          void *ctx) {
        if (!informer || informer->started || !name || !name[0] || !fn)
                return -EINVAL;
        if (find_index(informer, name))
                return HF_E_EXISTS;
        size_t n = strlen(name);
        struct hf__indexer *index = calloc(1, sizeof *index + n + 1);
        if (!index)
                return -ENOMEM;
        memcpy(index->name, name, n + 1);
        index->fn = fn;
        index->ctx = ctx;
        index->next = informer->indexes;
        informer->indexes = index;
        return 0;
}

int hf_informer_by_index(struct hf_informer *informer, const char *name, const char *value,
                         void (*each)(void *ctx, const char *ns, const char *name,
                                      const char *object, size_t n),
                         void *ctx) {
        struct hf__indexer *index =
                informer && name && value && each ? find_index(informer, name) : NULL;

        if (!index)
                return -EINVAL;
        (void)pthread_mutex_lock(&informer->mu);
        const struct hf__indexer_node *node =
                (const struct hf__indexer_node *)hf__key_index_find(&index->nodes, value);
        for (size_t i = 0; node && i < node->entries.n; i++)
                hf__informer_hand_out((const struct hf__informer_entry *)node->entries.items[i],
                                      each, ctx);
        (void)pthread_mutex_unlock(&informer->mu);
        return 0;
}

void hf__indexers_done(struct hf_informer *informer) {
        while (informer->indexes) {
                struct hf__indexer *index = informer->indexes;
                informer->indexes = index->next;
                hf__key_index_done(&index->nodes); /* its nodes went with the entries */
                free(index);
        }
}
