/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The garbage collector's decisions, without caches, calls or threads: what becomes of one object,
 * from what is known of its owners and dependents. Pure.
 *
 *      any owner stands          the references to owners that do not are taken out of it
 *      no owner stands, one
 *      waits for its dependents  it is deleted in the foreground when it has dependents itself
 * (else in the background); when one of those waits too this may be a cycle, so it gives up
 * blocking its owners before no owner is left          it is deleted, the way its own finalizers
 * say
 *
 * An owner "waits" when it is deleted in the foreground: marked, with the finalizer
 * foregroundDeletion, until no dependent with blockOwnerDeletion is left.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_FOREGROUND "foregroundDeletion"
#define HFD_ORPHAN     "orphan"

struct hfd_gc_view {
        size_t n_solid, n_waiting, n_absent; /* owners */
        bool orphan, foreground;             /* its own finalizers */
        bool has_dependents;
        bool dependent_waits; /* one of them is itself deleted in the foreground */
        bool blocks;          /* it asks an owner to wait for it */
};

enum hfd_gc_verdict {
        HFD_GC_KEEP,
        HFD_GC_DROP_OWNERS, /* take the references out that are absent or waiting */
        HFD_GC_DELETE_BACKGROUND,
        HFD_GC_DELETE_FOREGROUND,
        HFD_GC_DELETE_ORPHAN,
        HFD_GC_UNBLOCK, /* blockOwnerDeletion off; the write brings it back to be deleted */
};
enum hfd_gc_verdict hfd_gc_decide(const struct hfd_gc_view *view);
/* The verdict's propagationPolicy; NULL = it is no deletion. */
const char *hfd_gc_policy(enum hfd_gc_verdict verdict);

/* Whether the collector has anything to do with an object: a look at its bytes that may say yes too
 * often, never no wrongly. */
bool hfd_gc_concerns(const char *object, size_t n);

/* Deleted in the foreground, and waiting for its dependents. */
bool hfd_gc_waits(const struct hf__json *object);
/* Whether one of its owner references asks the owner to wait for it. */
bool hfd_gc_blocks(const struct hf__json *object);
/* Takes out the references to the owners of these uids, a list below "uids"; the references go with
 * the last. 0, -ENOMEM. */
int hfd_gc_drop_owners(struct hf__json *object, const struct hf__json *uids);
/* Sets blockOwnerDeletion to false in all its references. 0, -ENOMEM. */
int hfd_gc_unblock(struct hf__json *object);
