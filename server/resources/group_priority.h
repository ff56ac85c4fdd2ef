/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of groups and versions, as kube-apiserver has it: clients that find a kind's name in
 * several groups take the first one. The same numbers are in the APIServices. Pure. Thread: any.
 */
#include "server/resources/resource.h"

struct hfd_group_priority {
        int group;   /* groupPriorityMinimum: higher groups come first */
        int version; /* versionPriority: the same among the versions of a group */
};

/* Those of the group and version of a row. */
struct hfd_group_priority hfd_group_priority(const struct hfd_resource *row);
