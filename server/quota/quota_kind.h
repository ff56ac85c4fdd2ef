/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of which a quota measures more than their number. Pure. Thread: any. */

/* The kinds that are measured in different ways. */
enum hfd_quota_kind {
        HFD_QUOTA_OBJECTS, /* only their number matters */
        HFD_QUOTA_PODS,
        HFD_QUOTA_CLAIMS,
        HFD_QUOTA_SERVICES,
};

/* Other kinds than pods, claims and services of the core group are HFD_QUOTA_OBJECTS. */
enum hfd_quota_kind hfd_quota_kind(const char *group, const char *plural);
/* The plural of a kind other than HFD_QUOTA_OBJECTS. */
const char *hfd_quota_kind_plural(enum hfd_quota_kind kind);
