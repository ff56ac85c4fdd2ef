/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of groups and versions, which is that of kube-apiserver. A client that finds the name
 * of a kind in several groups takes the first group. The APIServices contain the same numbers.
 * Pure. Thread: any.
 */
#include "server/resources/resource.h"

struct hfd_group_priority {
        int group;   /* groupPriorityMinimum: groups with a higher number come first */
        int version; /* versionPriority: in a group, versions with a higher number come first */
};

/* The priorities of the row's group and version. */
struct hfd_group_priority hfd_group_priority(const struct hfd_resource *row);
