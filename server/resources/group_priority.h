/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of groups and versions, which is that of kube-apiserver. A client that finds the name
 * of a kind in several groups takes the first group. The APIServices contain the same numbers.
 * Pure. Thread: any.
 */
#include "server/resources/resource.h"

struct hfd_group_priority {
        int group;   /* groupPriorityMinimum: higher groups come first */
        int version; /* versionPriority: of one group, higher versions come first */
};

/* The priorities of the row's group and version. */
struct hfd_group_priority hfd_group_priority(const struct hfd_resource *row);
/* Fills groups with the first row of each group, in the order of the groups; the core group is the
 * first one. Returns the number of groups. */
size_t hfd_groups(const struct hfd_resource *groups[HFD_RESOURCES_MAX]);
