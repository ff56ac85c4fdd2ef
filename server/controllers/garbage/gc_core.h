/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The garbage collector's decision about one object, from the states of its owners and dependents,
 * and the edits of the object that follow from the decision. Pure.
 *
 *      its owners                               decision
 *      at least one is solid                    keep it, and remove the references to other
 *                                               owners
 *      none is solid, at least one waits        delete it: in the foreground if it has dependents,
 *                                               otherwise as in the next row. But if one of its
 *                                               dependents waits too, and one of its references has
 *                                               blockOwnerDeletion set, the owners may form a
 *                                               cycle: then first clear blockOwnerDeletion in its
 *                                               references
 *      all are absent                           delete it, with the policy of its finalizers
 *      it has no owner references               keep it
 *
 * gc_owners.h defines the states of owners. An owner "waits" while it is being deleted in the
 * foreground: it has a deletionTimestamp, and keeps the finalizer foregroundDeletion until it has
 * no dependents with blockOwnerDeletion.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_FOREGROUND "foregroundDeletion"
#define HFD_ORPHAN     "orphan"

struct hfd_gc_view {
        size_t n_solid, n_waiting, n_absent; /* numbers of owners in these states */
        bool orphan, foreground;             /* the object has that finalizer */
        bool blocks;                         /* hfd_gc_blocks of the object */
        /* Needed only if n_waiting > 0 and n_solid == 0. */
        bool has_dependents;
        bool dependent_waits; /* a dependent is itself being deleted in the foreground */
};

enum hfd_gc_verdict {
        HFD_GC_KEEP,
        HFD_GC_DROP_OWNERS, /* remove the references to absent and waiting owners */
        HFD_GC_DELETE_BACKGROUND,
        HFD_GC_DELETE_FOREGROUND,
        HFD_GC_DELETE_ORPHAN,
        /* Clear blockOwnerDeletion. The watch event of that write enqueues the object's key again,
         * and then the object is deleted. */
        HFD_GC_UNBLOCK,
};
/* Applies the table above. */
enum hfd_gc_verdict hfd_gc_decide(const struct hfd_gc_view *view);
/* The propagationPolicy of a deletion; NULL = the verdict is not a deletion. Static. */
const char *hfd_gc_policy(enum hfd_gc_verdict verdict);

/* Whether the object is being deleted in the foreground. */
bool hfd_gc_waits(const struct hf__json *object);
/* Whether one of its owner references has blockOwnerDeletion set. References without a uid do not
 * count. */
bool hfd_gc_blocks(const struct hf__json *object);
/* Removes the owner references with certain uids, and the list of references if it becomes empty.
 * uids: {"uids": [...]}. 0, -ENOMEM. */
int hfd_gc_drop_owners(struct hf__json *object, const struct hf__json *uids);
/* Sets blockOwnerDeletion to false in all owner references. 0, -ENOMEM. */
int hfd_gc_unblock(struct hf__json *object);
