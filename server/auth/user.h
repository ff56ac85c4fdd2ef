/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The user of a request: a name and groups, as Kubernetes has them. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_MAX_GROUPS 16
/* The group of requests without credentials. */
#define HFD_GROUP_UNAUTHENTICATED "system:unauthenticated"

struct hfd_user {
        char name[256]; /* "system:anonymous" for a request without credentials */
        char groups[HFD_MAX_GROUPS][128];
        size_t n_groups;
};

bool hfd_user_in_group(const struct hfd_user *user, const char *group);
