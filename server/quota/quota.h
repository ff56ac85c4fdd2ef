/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a ResourceQuota decides. A quota limits how many objects of a kind its namespace may have.
 * It names a kind "count/<plural>.<group>", a kind of the core group "count/<plural>", and some of
 * the latter also by the plural alone.
 *
 *      create    is allowed if status.used is below status.hard, and adds 1 to status.used. The
 *                registry writes the object and the quota in one transaction
 *                (server/registry/write/quota/quota.h)
 *      recount   sets status.hard to spec.hard, and status.used to the number of objects. A
 *                controller recounts after every change
 *                (server/controllers/quota/quota_controller.h)
 *
 * Two facts keep a namespace within its limits. Each create that a quota counts, or will count,
 * writes the quota in the same transaction, which compares the version that the decision was based
 * on. And a recount counts at a revision that is not older than the version of the quota that it
 * replaces. So status.used is never less than the number of objects; after a delete it is too large
 * until the recount.
 *
 * A quota with scopes counts only certain pods, so here it limits nothing.
 *
 * Pure. Thread: any; a quota belongs to the caller.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__json;
struct hf__strbuf;

#define HFD_QUOTA_NAME_MAX 320 /* bytes of the name of a counted kind, with the NUL */

/* The names under which a quota may count a kind, sorted. The second is "" if there is only one. */
struct hfd_quota_names {
        char of[2][HFD_QUOTA_NAME_MAX];
};

/* False: objects of the kind are never counted. They are Events, which the system itself writes, or
 * the names would be too long. */
bool hfd_quota_names(const char *group, const char *plural, struct hfd_quota_names *ret_names);

enum hfd_quota_verdict {
        HFD_QUOTA_UNCOUNTED, /* the quota does not count the kind */
        /* The quota will count the kind after the next recount: spec.hard names the kind,
         * status.hard does not yet. The recount must not miss the object. So the create's
         * transaction writes the quota unchanged, and the write of a recount that is under way
         * conflicts. */
        HFD_QUOTA_PENDING,
        HFD_QUOTA_CHARGED, /* one more object is within the limit; status.used includes it now */
        HFD_QUOTA_REFUSED, /* one more object exceeds the limit, or status.used is not known */
};

/*
 * Decides about the create of one object. Changes quota only if the verdict is CHARGED. REFUSED:
 * the message is appended to why. 0 or -ENOMEM.
 */
int hfd_quota_charge(struct hf__json *quota, const struct hfd_quota_names *names,
                     enum hfd_quota_verdict *ret_verdict, struct hf__strbuf *why);

/* Counts the objects of a kind in the quota's namespace. *ret_served is true before the call;
 * false: there is no such kind. 0, or an error that ends the recount. */
typedef int (*hfd_quota_count_fn)(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                                  bool *ret_served);

/*
 * Sets the status of quota to what `count` returns. *ret_changed: the status was different before.
 * 0, -ENOMEM or an error of `count`; after an error the quota must not be used any more.
 */
int hfd_quota_recount(struct hf__json *quota, hfd_quota_count_fn count, void *ctx,
                      bool *ret_changed);
