/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots and the served kinds. Invariants:
 *
 *  - A slot's row never moves and is never freed before the table, so pointers to it need no count.
 *  - n_slots only grows, and only after the row is complete. hfd_custom_table_slots reads n_slots
 *    without the lock; the array of rows is read only under the lock.
 *  - Nothing is called under the lock that takes another one.
 */
#include "server/resources/custom/custom_table.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/resources/rows/resource_table.h"

#define BUCKETS (2 * HFD_CUSTOM_SLOTS_MAX) /* so that half of them stay free */

struct hfd_custom_table {
        pthread_mutex_t mu;
        /* Guarded by mu. */
        struct hfd_custom_set *set;      /* owned reference; NULL = empty */
        unsigned short buckets[BUCKETS]; /* index in rows + 1; 0 = free; open addressing */
        /* Allocated one by one, because few of them are used. Owned; as are their strings. */
        struct hfd_resource *rows[HFD_CUSTOM_SLOTS_MAX];
        atomic_size_t n_slots; /* changed under mu */
};

struct hfd_custom_table *hfd_custom_table_new(void) {
        struct hfd_custom_table *table = calloc(1, sizeof *table);

        if (table && hf__mutex_init(&table->mu) != 0) {
                free(table);
                table = NULL;
        }
        return table;
}

struct hfd_custom_table *hfd_custom_table_free(struct hfd_custom_table *table) {
        if (!table)
                return NULL;
        assert(atomic_load(&table->n_slots) <= HFD_CUSTOM_SLOTS_MAX);
        hfd_custom_set_unref(table->set);
        for (size_t i = 0; i < atomic_load(&table->n_slots); i++)
                free(table->rows[i]);
        pthread_mutex_destroy(&table->mu);
        free(table);
        return NULL;
}

/* ---- slots ---- */

static size_t hash_names(const char *group, const char *plural) {
        size_t hash = 5381;

        for (const char *c = group; *c; c++)
                hash = hash * 33 + (unsigned char)*c;
        for (const char *c = plural; *c; c++)
                hash = hash * 33 + (unsigned char)*c;
        return hash;
}

/* The bucket that has the slot, or the free one where it belongs. */
static size_t find_bucket_locked(const struct hfd_custom_table *table, const char *group,
                                 const char *plural) {
        size_t at = hash_names(group, plural) % BUCKETS;

        hf__mutex_assert_held(&table->mu);
        /* At most half of the buckets are in use, so there is a free one. */
        while (table->buckets[at] != 0) {
                const struct hfd_resource *row = table->rows[table->buckets[at] - 1];
                if (strcmp(row->group, group) == 0 && strcmp(row->plural, plural) == 0)
                        break;
                at = (at + 1) % BUCKETS;
        }
        return at;
}

/* One allocation: the row, followed by "group", "plural" and "group/plural". NULL: out of memory.
 */
static struct hfd_resource *make_slot_row(const char *group, const char *plural, size_t slot) {
        size_t n_group = strlen(group) + 1, n_plural = strlen(plural) + 1;
        struct hfd_resource *row = calloc(1, sizeof *row + 2 * (n_group + n_plural));
        char *text = (char *)(row + 1);

        if (!row)
                return NULL;
        memcpy(text, group, n_group);
        memcpy(text + n_group, plural, n_plural);
        char *storage = text + n_group + n_plural;
        (void)hf__join(storage, n_group + n_plural, group, "/", plural, NULL);
        row->group = text;
        row->plural = text + n_group;
        row->storage = storage;
        row->version = row->kind = row->singular = "";
        row->namespaced = true; /* only a guess: the path of an object shows what is true */
        row->slot = (unsigned short)slot;
        return row;
}

int hfd_custom_table_slot(struct hfd_custom_table *table, const char *group, const char *plural,
                          const struct hfd_resource **ret_slot) {
        int r = 0;

        assert(table && ret_slot);
        *ret_slot = NULL;
        pthread_mutex_lock(&table->mu);
        size_t bucket = find_bucket_locked(table, group, plural), n = atomic_load(&table->n_slots);
        if (table->buckets[bucket] != 0) {
                *ret_slot = table->rows[table->buckets[bucket] - 1];
        } else if (n < HFD_CUSTOM_SLOTS_MAX) {
                table->rows[n] = make_slot_row(group, plural, HFD_RESOURCES_MAX + n);
                *ret_slot = table->rows[n];
                r = table->rows[n] ? 0 : -ENOMEM;
        }
        if (r == 0 && *ret_slot && table->buckets[bucket] == 0) {
                table->buckets[bucket] = (unsigned short)(n + 1);
                atomic_store(&table->n_slots, n + 1);
        }
        pthread_mutex_unlock(&table->mu);
        return r;
}

size_t hfd_custom_table_slots(const struct hfd_custom_table *table) {
        return HFD_RESOURCES_MAX + (table ? atomic_load(&table->n_slots) : 0);
}

/* ---- the served kinds ---- */

struct hfd_custom_set *hfd_custom_set_new(size_t max) {
        struct hfd_custom_set *set = calloc(1, sizeof *set + max * sizeof set->kinds[0]);

        if (set)
                atomic_init(&set->refs, 1);
        return set;
}

struct hfd_custom_set *hfd_custom_set_unref(struct hfd_custom_set *set) {
        assert(!set || atomic_load_explicit(&set->refs, memory_order_relaxed) > 0);
        if (!set || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        for (size_t i = 0; i < set->n; i++)
                hfd_custom_kind_unref(set->kinds[i]);
        free(set);
        return NULL;
}

static int compare_names(const struct hfd_resource *row, const char *group, const char *plural) {
        int order = strcmp(row->group, group);

        return order != 0 ? order : strcmp(row->plural, plural);
}

static int compare_kinds(const void *a, const void *b) {
        const struct hfd_custom_kind *x = *(struct hfd_custom_kind *const *)a,
                                     *y = *(struct hfd_custom_kind *const *)b;

        return compare_names(&x->storage->row, y->storage->row.group, y->storage->row.plural);
}

void hfd_custom_set_sort(struct hfd_custom_set *set) {
        assert(set->n == 0 || set->kinds[0]);
        qsort(set->kinds, set->n, sizeof set->kinds[0], compare_kinds);
}

struct hfd_custom_kind *hfd_custom_set_find(const struct hfd_custom_set *set, const char *group,
                                            const char *plural) {
        size_t low = 0, high = set ? set->n : 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = compare_names(&set->kinds[middle]->storage->row, group, plural);
                if (order == 0)
                        return set->kinds[middle];
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* stored: the storage version need not be served. */
static const struct hfd_resource *find_row(struct hfd_custom_table *table, const char *group,
                                           const char *version, const char *plural, bool stored) {
        const struct hfd_resource *row = hfd_resource_find(group, version, plural);

        /* The group of a definition has a dot, unlike "", "apps" and so on. So a request for an
         * unknown resource of a group without a dot takes no lock either. */
        if (row || !table || !strchr(group, '.'))
                return row;
        pthread_mutex_lock(&table->mu);
        struct hfd_custom_kind *kind = hfd_custom_set_find(table->set, group, plural);
        for (size_t i = 0; kind && !row && i < kind->n_versions; i++) {
                const struct hfd_custom_version *found = &kind->versions[i];
                if ((found->served || (stored && found == kind->storage)) &&
                    strcmp(found->row.version, version) == 0)
                        /* While the lock is held, the set keeps its reference to the kind. */
                        row = hfd_resource_ref(&found->row);
        }
        pthread_mutex_unlock(&table->mu);
        return row;
}

const struct hfd_resource *hfd_custom_table_find(struct hfd_custom_table *table, const char *group,
                                                 const char *version, const char *plural) {
        return find_row(table, group, version, plural, false);
}

const struct hfd_resource *hfd_custom_table_find_stored(struct hfd_custom_table *table,
                                                        const char *group, const char *version,
                                                        const char *plural) {
        return find_row(table, group, version, plural, true);
}

struct hfd_custom_set *hfd_custom_table_set(struct hfd_custom_table *table) {
        if (!table)
                return NULL;
        pthread_mutex_lock(&table->mu);
        struct hfd_custom_set *set = table->set;
        if (set) /* the table's own reference stays while the lock is held */
                atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
        pthread_mutex_unlock(&table->mu);
        return set;
}

void hfd_custom_table_replace(struct hfd_custom_table *table, struct hfd_custom_set *set) {
        pthread_mutex_lock(&table->mu);
        struct hfd_custom_set *old = table->set;
        table->set = set;
        pthread_mutex_unlock(&table->mu);
        /* Outside of the lock: the last reference to a kind frees its schemas and rules, which
         * takes time. */
        hfd_custom_set_unref(old);
}
