/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides by the ResourceQuotas of a namespace how much a write is charged, and whether it is
 * refused. A quota limits how much its namespace may have of each resource. A resource is a number
 * of objects ("count/<plural>.<group>"; in the core group "count/<plural>", and for some kinds also
 * the plural alone), or what pods, volume claims and services use (usage.h). A quota with scopes
 * counts only the pods or the claims that have them (scopes.h).
 *
 *      charge    a create, or an update that raises the use, is allowed if status.used stays within
 *                status.hard (a write of a status may exceed it), and adds to status.used. The
 *                registry writes the object and the quota in one transaction
 *                (server/registry/write/quota/quota.h)
 *      recount   sets status.hard to spec.hard, and status.used to the present use. A controller
 *                recounts after each change that may alter the use, or the quota
 *                (server/controllers/quota/quota_controller.h)
 *
 * Two facts keep a namespace within its limits. Each write that a quota counts, or will count,
 * writes the quota in the same transaction, which compares the version that the decision was based
 * on. And a recount counts at a revision that is not older than the version of the quota that it
 * replaces. So status.used is never less than the present use, unless an instance writes while it
 * does not know the quota yet, because its watch is late; after a delete, or after an update that
 * lowers the use, it is too large until the recount.
 *
 * Pure. Thread: any; a quota belongs to the caller.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/quota/quota_names.h"
#include "server/quota/usage.h"

struct hf__json;
struct hf__strbuf;

/* The part that is written: the object, its amounts at .../resize, or its status or another part.
 */
enum hfd_quota_write { HFD_QUOTA_OF_OBJECT, HFD_QUOTA_OF_RESIZE, HFD_QUOTA_OF_STATUS };

/* A create or an update, as quotas see it. */
struct hfd_quota_change {
        enum hfd_quota_kind kind;
        struct hfd_quota_names names;
        const struct hf__json *object, *old; /* borrowed; old: NULL = a create */
        struct hfd_usage usage, old_usage;   /* unless only the number of objects matters */
        bool unlimited; /* charged, but may exceed the limits: a write of HFD_QUOTA_OF_STATUS */
};

/*
 * False: no quota counts the change. now_s: the time in seconds since 1970. *ret_error: 0 or
 * -ENOMEM. The caller calls done if the result is true. The objects must live longer.
 */
bool hfd_quota_change_init(struct hfd_quota_change *change, const char *group, const char *plural,
                           const struct hf__json *object, const struct hf__json *old,
                           enum hfd_quota_write what, int64_t now_s, int *ret_error);
void hfd_quota_change_done(struct hfd_quota_change *change);

enum hfd_quota_verdict {
        HFD_QUOTA_UNCOUNTED, /* the quota does not count the object, or the use does not rise */
        /* The quota will count the change after the next recount: spec.hard names the resource,
         * status.hard does not yet. The recount must not miss the object. So the transaction of the
         * write writes the quota unchanged, and the write of a recount that is under way
         * conflicts. */
        HFD_QUOTA_PENDING,
        /* The change is within the limits, or is unlimited. status.used includes it now. */
        HFD_QUOTA_CHARGED,
        /* The change exceeds a limit, or status.used is not known, or the object asks for a
         * negative amount, or the pod does not say what the quota needs to know. */
        HFD_QUOTA_REFUSED,
};

/*
 * Decides about a change. Changes quota only if the verdict is CHARGED. REFUSED: the message is
 * appended to why. 0, or -ENOMEM: there is no verdict, and quota may be changed in part.
 */
int hfd_quota_charge(struct hf__json *quota, const struct hfd_quota_change *change,
                     enum hfd_quota_verdict *ret_verdict, struct hf__strbuf *why);

/* Called for each object of a kind. 0, or an error that ends the visit. */
typedef int (*hfd_quota_each_fn)(void *each_ctx, const struct hf__json *object);

/* The functions by which a recount counts and reads the objects of the quota's namespace.
 * *ret_served is true before a call; a function sets it to false if there is no such kind with
 * objects in namespaces. Both return 0, or an error that ends the recount. */
struct hfd_quota_source {
        int (*count)(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                     bool *ret_served);
        /* Calls each for every object of a kind of the core group. */
        int (*visit)(void *ctx, const char *plural, hfd_quota_each_fn each, void *each_ctx,
                     bool *ret_served);
        void *ctx;
        int64_t now_s; /* seconds since 1970 */
};

/*
 * Sets the status of quota by the objects of `source`. *ret_changed: the status was different
 * before. 0, -ENOMEM or an error of `source`; after an error the quota must not be used any more.
 */
int hfd_quota_recount(struct hf__json *quota, const struct hfd_quota_source *source,
                      bool *ret_changed);
