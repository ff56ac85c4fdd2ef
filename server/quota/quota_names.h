/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names under which quotas count objects. Pure. Thread: any. */
#include <stdbool.h>

#include "server/quota/usage.h"

/* The names under which a quota may count the objects of a kind, sorted. The second is "" if there
 * is only one. */
struct hfd_quota_names {
        char of[2][HFD_QUOTA_NAME_MAX];
};

/* False: objects of the kind are never counted. They are Events, which the system itself writes, or
 * the names would be too long. */
bool hfd_quota_names(const char *group, const char *plural, struct hfd_quota_names *ret_names);

/* Whether objects of the kind are never counted: they are Events. */
bool hfd_quota_ignores(const char *group, const char *plural);
/* Sets group and plural to the kind whose objects a name counts. False: it counts no objects, or is
 * too long. */
bool hfd_quota_name_kind(const char *name, char group[HFD_QUOTA_NAME_MAX],
                         char plural[HFD_QUOTA_NAME_MAX]);
