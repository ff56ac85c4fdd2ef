/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All rows that are served at a moment, those of the table in resource_table.h and those of custom
 * resources, in the order in which clients see them: groups as kube-apiserver orders them; in a
 * group its versions, the preferred one first; in a version its resources. Used for discovery and
 * OpenAPI, and to find out whether a group version is served. Pure. Thread: owner only.
 */
#include "server/resources/custom/custom_table.h"

struct hfd_served_rows {
        struct hfd_custom_set *set; /* owned; keeps the rows of custom resources; NULL = none */
        size_t n;
        const struct hfd_resource *of[];
};

/* table NULL = without custom resources. NULL = out of memory. */
struct hfd_served_rows *hfd_served_rows_new(struct hfd_custom_table *table);
/* Accepts NULL; returns NULL. */
struct hfd_served_rows *hfd_served_rows_free(struct hfd_served_rows *rows);

/* The index after the last row that has the group of row i, or its group and version. */
size_t hfd_served_group_end(const struct hfd_served_rows *rows, size_t i);
size_t hfd_served_version_end(const struct hfd_served_rows *rows, size_t i);
/* The index of the first row of a group, or of a group and version; rows->n: there is none. */
size_t hfd_served_find_group(const struct hfd_served_rows *rows, const char *group);
size_t hfd_served_find_version(const struct hfd_served_rows *rows, const char *group,
                               const char *version);
