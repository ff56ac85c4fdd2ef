/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The custom resources of this process: their slots, and the kinds that are served now.
 *
 * A slot is a number (hfd_resource_index) that stands for a group and plural. It belongs to them as
 * long as the table lives, whether a definition serves them or not: objects may be read before
 * their definition. Each slot has a permanent row, whose kind and version are "".
 *
 * The served kinds are a counted set, which is immutable from hfd_custom_table_replace on, and is
 * replaced as a whole.
 *
 * Lock: one mutex guards the slots and the pointer to the set. It is held for a look-up, while a
 * slot is added, and while the pointer is read or replaced. A look-up that finds its row in the
 * table of resource_table.h does not take the mutex. Thread: any. Never blocks.
 */
#include "server/resources/custom/custom_kind.h"
#include "server/resources/resource.h"

struct hfd_custom_table;

/* The served kinds, sorted by group and plural. */
struct hfd_custom_set {
        atomic_int refs;
        size_t n;
        struct hfd_custom_kind *kinds[]; /* owned references */
};

/* NULL = out of memory. */
struct hfd_custom_table *hfd_custom_table_new(void);
/* Nobody may use a row of a slot any more: kinds and objects borrow from them. Accepts NULL;
 * returns NULL. */
struct hfd_custom_table *hfd_custom_table_free(struct hfd_custom_table *table);

/*
 * The permanent row of a group and plural, which get a slot if they have none. 0 or -ENOMEM. 0 and
 * *ret_slot NULL: all slots are in use.
 */
int hfd_custom_table_slot(struct hfd_custom_table *table, const char *group, const char *plural,
                          const struct hfd_resource **ret_slot);
/* All numbers that hfd_resource_index may return now are below the result. Those below
 * HFD_RESOURCES_MAX are for the table in resource_table.h, whether it has so many rows or not; then
 * come the slots. The result only grows. table NULL = there are no slots. */
size_t hfd_custom_table_slots(const struct hfd_custom_table *table);

/*
 * Finds a row that is served, in the table of resource_table.h or here, and returns a reference
 * (hfd_resource_unref). table NULL = only the built-in ones. NULL: there is no such resource.
 */
const struct hfd_resource *hfd_custom_table_find(struct hfd_custom_table *table, const char *group,
                                                 const char *version, const char *plural);
/* The same, but the version in which objects are stored is found even if it is not served. The
 * server's own requests use this: its controllers must reach all objects. */
const struct hfd_resource *hfd_custom_table_find_stored(struct hfd_custom_table *table,
                                                        const char *group, const char *version,
                                                        const char *plural);
/* A reference to the served kinds. NULL: there are none. */
struct hfd_custom_set *hfd_custom_table_set(struct hfd_custom_table *table);
/* Serves other kinds, and consumes the reference to set. NULL = none. */
void hfd_custom_table_replace(struct hfd_custom_table *table, struct hfd_custom_set *set);

/* Room for `max` kinds; n is 0. NULL = out of memory. */
struct hfd_custom_set *hfd_custom_set_new(size_t max);
/* Accepts NULL; returns NULL. */
struct hfd_custom_set *hfd_custom_set_unref(struct hfd_custom_set *set);
/* Brings the kinds into the order in which hfd_custom_set_find searches. The set is not shared yet.
 */
void hfd_custom_set_sort(struct hfd_custom_set *set);
/* The kind of a group and plural, borrowed; NULL = it is not in the set. set may be NULL. */
struct hfd_custom_kind *hfd_custom_set_find(const struct hfd_custom_set *set, const char *group,
                                            const char *plural);
