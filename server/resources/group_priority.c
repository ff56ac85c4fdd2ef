/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The priorities of groups and versions. Discovery orders the groups by theirs
 * (custom/served_rows.c); APIServices show those of groups and of versions.
 *
 * Invariant: the order is that of Kubernetes, because clients choose the first group and version
 * that has a kind. So the numbers are those of Kubernetes, too, except that of
 * apiregistration.k8s.io: it has no APIService, and need only come before the other named groups.
 * A group that is not in the table has the numbers that Kubernetes gives to the group of a custom
 * resource.
 */
#include "server/resources/group_priority.h"

#include <string.h>

static const struct {
        const char *group;
        int priority;
} of_groups[] = {{"", 18000},
                 {"apiregistration.k8s.io", 18000},
                 {"events.k8s.io", 17750},
                 {"apps", 17800},
                 {"authentication.k8s.io", 17700},
                 {"authorization.k8s.io", 17600},
                 {"autoscaling", 17500},
                 {"batch", 17400},
                 {"certificates.k8s.io", 17300},
                 {"networking.k8s.io", 17200},
                 {"policy", 17100},
                 {"rbac.authorization.k8s.io", 17000},
                 {"storage.k8s.io", 16800},
                 {"admissionregistration.k8s.io", 16700},
                 {"apiextensions.k8s.io", 16700},
                 {"scheduling.k8s.io", 16600},
                 {"coordination.k8s.io", 16500},
                 {"node.k8s.io", 16300},
                 {"discovery.k8s.io", 16200},
                 {"flowcontrol.apiserver.k8s.io", 16100}};

enum { CUSTOM_GROUP = 1000, CUSTOM_VERSION = 100 };

/* Kubernetes' numbers. They only say which version of one group comes first. */
static int version_priority(const struct hfd_resource *row) {
        if (!*row->group)
                return 1;
        if (strcmp(row->group, "autoscaling") == 0)
                return strcmp(row->version, "v2") == 0 ? 30 : 15;
        if (strcmp(row->group, "flowcontrol.apiserver.k8s.io") == 0)
                return 21;
        if (strcmp(row->version, "v1beta1") == 0)
                return strcmp(row->group, "coordination.k8s.io") == 0 ? 13 : 12;
        return 15;
}

struct hfd_group_priority hfd_group_priority(const struct hfd_resource *row) {
        for (size_t i = 0; i < sizeof of_groups / sizeof of_groups[0]; i++)
                if (strcmp(row->group, of_groups[i].group) == 0)
                        return (struct hfd_group_priority){of_groups[i].priority,
                                                           version_priority(row)};
        return (struct hfd_group_priority){CUSTOM_GROUP, CUSTOM_VERSION};
}
