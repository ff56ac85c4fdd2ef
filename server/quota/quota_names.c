/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names under which quotas count objects: "count/configmaps", "configmaps".
 *
 * Invariant: hfd_quota_name_kind leads from each name that hfd_quota_names makes back to the kind.
 * A write is charged under these names, and a recount counts the kind to which a name leads.
 */
#include "server/quota/quota_names.h"

#include <stdio.h>
#include <string.h>

#define COUNT "count/"

/* The kinds of the core group that a quota may count by their plural alone. */
static const char *const plain_names[] = {
        "configmaps",     "persistentvolumeclaims",
        "pods",           "replicationcontrollers",
        "resourcequotas", "secrets",
        "services",
};

static bool has_plain_name(const char *group, const char *plural) {
        for (size_t i = 0; !*group && i < sizeof plain_names / sizeof plain_names[0]; i++)
                if (strcmp(plain_names[i], plural) == 0)
                        return true;
        return false;
}

bool hfd_quota_ignores(const char *group, const char *plural) {
        return strcmp(plural, "events") == 0 && (!*group || strcmp(group, "events.k8s.io") == 0);
}

bool hfd_quota_names(const char *group, const char *plural, struct hfd_quota_names *ret_names) {
        char counted[HFD_QUOTA_NAME_MAX];

        *ret_names = (struct hfd_quota_names){0};
        int n = snprintf(counted, sizeof counted, COUNT "%s%s%s", plural, *group ? "." : "", group);
        if (hfd_quota_ignores(group, plural) || n < 0 || (size_t)n >= sizeof counted)
                return false;
        bool plain = has_plain_name(group, plural), first = plain && strcmp(plural, counted) < 0;
        if (plain)
                (void)snprintf(ret_names->of[first ? 0 : 1], HFD_QUOTA_NAME_MAX, "%s", plural);
        (void)snprintf(ret_names->of[first ? 1 : 0], HFD_QUOTA_NAME_MAX, "%s", counted);
        return true;
}

bool hfd_quota_name_kind(const char *name, char group[HFD_QUOTA_NAME_MAX],
                         char plural[HFD_QUOTA_NAME_MAX]) {
        bool plain = has_plain_name("", name);

        if (!plain && strncmp(name, COUNT, strlen(COUNT)) != 0)
                return false;
        int n = snprintf(plural, HFD_QUOTA_NAME_MAX, "%s", plain ? name : name + strlen(COUNT));
        if (n < 0 || n >= HFD_QUOTA_NAME_MAX)
                return false;
        char *dot = strchr(plural, '.');
        (void)snprintf(group, HFD_QUOTA_NAME_MAX, "%s", dot ? dot + 1 : "");
        if (dot)
                *dot = '\0';
        return true;
}
