/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of which quotas measure more than the number of objects.
 *
 * Invariant: all of them are in the core group, so the plural of a kind in another group is not
 * compared.
 */
#include "server/quota/quota_kind.h"

#include <string.h>

static const char *const plurals[] = {[HFD_QUOTA_PODS] = "pods",
                                      [HFD_QUOTA_CLAIMS] = "persistentvolumeclaims",
                                      [HFD_QUOTA_SERVICES] = "services"};

enum hfd_quota_kind hfd_quota_kind(const char *group, const char *plural) {
        for (unsigned i = HFD_QUOTA_PODS; !*group && i <= HFD_QUOTA_SERVICES; i++)
                if (strcmp(plurals[i], plural) == 0)
                        return (enum hfd_quota_kind)i;
        return HFD_QUOTA_OBJECTS;
}

const char *hfd_quota_kind_plural(enum hfd_quota_kind kind) { return plurals[kind]; }
