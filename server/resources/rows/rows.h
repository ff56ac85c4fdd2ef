/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of the table of resources, by what their groups are for. resource_table.c joins them,
 * and the workload kinds (workloads/workloads.h) if they are served. To serve another kind, add a
 * row here; strategies/strategies.h lists what else the kind needs.
 *
 * Invariants:
 *
 *  - The storage segments are part of the on-disk format and must never change.
 *  - Rows of one group are in one part (the core group also has a part for its workload kinds), and
 *    those of one version are adjacent. The first row of a group has the version that discovery
 *    prefers.
 *  - Columns and flags follow kube-apiserver, so that kubectl shows the usual tables (without some
 *    columns of -o wide) and clients meet the usual rules.
 *
 * The rows are static and immutable. Thread: any.
 */
#include <stddef.h>

struct hfd_resource;

struct hfd_resource_part {
        const struct hfd_resource *rows;
        size_t n;
};
extern const struct hfd_resource_part hfd_core_part;      /* core_kinds.c */
extern const struct hfd_resource_part hfd_extension_part; /* extension_kinds.c */
extern const struct hfd_resource_part hfd_access_part;    /* access_kinds.c */
extern const struct hfd_resource_part hfd_cluster_part;   /* cluster_kinds.c */

/* Both versions of Events have these columns. The paths are those of the stored form, that of the
 * core group. */
#define HFD_EVENT_COLUMNS                                                                          \
        {"Last Seen", "string", "", "@event:last"}, {"Type", "string", "", "type"},                \
                {"Reason", "string", "", "reason"}, {"Object", "string", "", "@event:object"},     \
                {"Subobject", "string", "", "involvedObject.fieldPath", true},                     \
                {"Source", "string", "", "@event:source", true},                                   \
                {"Message", "string", "", "@event:message"},                                       \
                {"First Seen", "string", "", "@event:first", true},                                \
                {"Count", "integer", "", "@event:count", true}, {                                  \
                "Name", "string", "", "metadata.name", true                                        \
        }
