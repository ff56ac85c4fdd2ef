/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that are served now, those of the table and those of custom resources, sorted as
 * discovery shows them: groups by priority, versions with the preferred one first.
 *
 * Invariant: the rows of one group are adjacent, and among them those of one version, also where a
 * custom resource is in a group of the table.
 */
#include "server/resources/custom/served_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/custom/custom_version_order.h"
#include "server/resources/group_priority.h"
#include "server/resources/rows/resource_table.h"

/* The index of the first row of the table with this group and version; the number of rows of the
 * table, if none has them. */
static size_t rank_in_table(const struct hfd_resource *row) {
        size_t n = hfd_resources_count();

        for (size_t i = 0; i < n; i++)
                if (strcmp(hfd_resource_at(i)->group, row->group) == 0 &&
                    strcmp(hfd_resource_at(i)->version, row->version) == 0)
                        return i;
        return n;
}

static int compare_numbers(size_t a, size_t b) {
        if (a == b)
                return 0;
        return a < b ? -1 : 1;
}

static int compare_versions(const struct hfd_resource *x, const struct hfd_resource *y) {
        if (strcmp(x->version, y->version) == 0)
                return 0;
        int order = compare_numbers(rank_in_table(x), rank_in_table(y));
        return order != 0 ? order : hfd_version_order(x->version, y->version);
}

/* In one version of a group, the rows of the table (slot 0) keep their order, and come before those
 * of custom resources. */
static int compare_rows(const void *a, const void *b) {
        const struct hfd_resource *x = *(const struct hfd_resource *const *)a,
                                  *y = *(const struct hfd_resource *const *)b;
        int order = strcmp(x->group, y->group);

        if (order != 0) {
                int by_priority = hfd_group_priority(y).group - hfd_group_priority(x).group;
                return by_priority != 0 ? by_priority : order;
        }
        order = compare_versions(x, y);
        if (order == 0 && x->slot == 0 && y->slot == 0)
                return compare_numbers(hfd_resource_index(x), hfd_resource_index(y));
        if (order == 0 && (x->slot == 0 || y->slot == 0))
                return x->slot == 0 ? -1 : 1;
        return order != 0 ? order : strcmp(x->plural, y->plural);
}

/* The reference to the set keeps the rows of custom resources alive. */
struct hfd_served_rows *hfd_served_rows_new(struct hfd_custom_table *table) {
        struct hfd_custom_set *set = hfd_custom_table_set(table);
        size_t n_table = hfd_resources_count(), n_custom = 0;

        for (size_t i = 0; set && i < set->n; i++)
                n_custom += set->kinds[i]->n_versions;
        struct hfd_served_rows *rows =
                malloc(sizeof *rows + (n_table + n_custom) * sizeof rows->of[0]);
        if (!rows) {
                hfd_custom_set_unref(set);
                return NULL;
        }
        rows->set = set;
        rows->n = 0;
        for (size_t i = 0; i < n_table; i++)
                rows->of[rows->n++] = hfd_resource_at(i);
        for (size_t i = 0; set && i < set->n; i++)
                for (size_t v = 0; v < set->kinds[i]->n_versions; v++)
                        if (set->kinds[i]->versions[v].served)
                                rows->of[rows->n++] = &set->kinds[i]->versions[v].row;
        qsort(rows->of, rows->n, sizeof rows->of[0], compare_rows);
        return rows;
}

struct hfd_served_rows *hfd_served_rows_free(struct hfd_served_rows *rows) {
        assert(!rows || rows->n > 0);
        if (rows)
                hfd_custom_set_unref(rows->set);
        free(rows);
        return NULL;
}

size_t hfd_served_group_end(const struct hfd_served_rows *rows, size_t i) {
        size_t end = i + 1;

        assert(i < rows->n);
        while (end < rows->n && strcmp(rows->of[end]->group, rows->of[i]->group) == 0)
                end++;
        return end;
}

size_t hfd_served_version_end(const struct hfd_served_rows *rows, size_t i) {
        size_t end = i + 1;

        assert(i < rows->n);
        while (end < rows->n && strcmp(rows->of[end]->group, rows->of[i]->group) == 0 &&
               strcmp(rows->of[end]->version, rows->of[i]->version) == 0)
                end++;
        return end;
}

size_t hfd_served_find_group(const struct hfd_served_rows *rows, const char *group) {
        size_t i = 0;

        while (i < rows->n && strcmp(rows->of[i]->group, group) != 0)
                i++;
        return i;
}

size_t hfd_served_find_version(const struct hfd_served_rows *rows, const char *group,
                               const char *version) {
        size_t i = 0;

        while (i < rows->n && (strcmp(rows->of[i]->group, group) != 0 ||
                               strcmp(rows->of[i]->version, version) != 0))
                i++;
        return i;
}
