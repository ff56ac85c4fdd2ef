/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The table of the built-in resources that are served: all rows of rows.h, and the workload kinds
 * (workloads/workloads.h) if they are served.
 *
 * The table is static, and immutable once the process has read its flags, so callers may keep
 * pointers to its rows, and compare them.
 *
 * Custom resources have rows outside the table, which come and go at run time
 * (custom/custom_kind.h). Such a row is counted: a caller that keeps it has a reference. Two
 * rows of a custom resource may belong to the same objects, so callers compare hfd_resource_index,
 * and not pointers.
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/resource.h"

/* Also serves the workload kinds (workloads/workloads.h), in this whole process. Call it at the
 * start, before anything uses the rows; a second call does nothing. */
void hfd_resources_add_workloads(void);
/* The number of rows of the table, and each of them. Those of one group and version are adjacent,
 * in the order in which discovery lists them. Discovery lists the groups by their priority
 * (group_priority.h). */
size_t hfd_resources_count(void);
const struct hfd_resource *hfd_resource_at(size_t index);
/*
 * The slot of a row, a number below HFD_SLOTS_MAX. That of a row of the table is its index there,
 * below HFD_RESOURCES_MAX. That of a custom resource is at least HFD_RESOURCES_MAX, and the rows of
 * all its versions share it. Of built-in kinds with two versions, such as Events, each row has a
 * slot of its own, and objects are kept under that of the row that stores them
 * (hfd_resource_stored). A row of hfd_resource_of_part has none; the function must not get it.
 */
size_t hfd_resource_index(const struct hfd_resource *resource);
/* Whether two rows have the same slot: whether they are one row of the table, or versions of one
 * custom resource. */
static inline bool hfd_resource_same(const struct hfd_resource *a, const struct hfd_resource *b) {
        return hfd_resource_index(a) == hfd_resource_index(b);
}
/* Whether a row of the table is the first of its group and version. */
bool hfd_resource_starts_version(const struct hfd_resource *resource);
/* Finds a row of the table; NULL = it has no such row. custom/custom_table.h also finds those of
 * custom resources. */
const struct hfd_resource *hfd_resource_find(const char *group, const char *version,
                                             const char *plural);
/* The row of the kind that the bodies of a subresource have, if it is not the object's kind. That
 * row is outside the table. NULL: the bodies are objects of the same kind. */
const struct hfd_resource *hfd_resource_of_part(enum hfd_subresource subresource);
/* The row of Namespaces. */
const struct hfd_resource *hfd_resource_namespaces(void);
