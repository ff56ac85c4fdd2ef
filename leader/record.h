/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Lease record: the part of a Lease that the election decides on. Plain data. lease_record.h
 * converts a record from and to the wire form. Thread: owner only.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/fence.h>

/* Why a term could begin: how the Lease was found by the process that acquired it. */
enum hf__cause {
        HF__CAUSE_NONE,
        HF__CAUSE_CREATED,     /* there was no Lease, or it was never held */
        HF__CAUSE_DELETED,     /* the Lease was deleted */
        HF__CAUSE_RELEASED,    /* its holder released it */
        HF__CAUSE_HANDED_OVER, /* its holder released it to the process that acquired it */
        HF__CAUSE_EXPIRED,     /* its holder stopped renewing it */
        HF__CAUSE_DIED,        /* its holder was proven to be dead */
        HF__CAUSE_CHOSEN,      /* a coordinator named the process that acquired it */
        HF__CAUSE_REGAINED,    /* the process held it already, without leading: a term that was
                                  lost, or an acquire whose reply was lost */
};

#define HF__REVISION_MAX 40 /* bytes of a resourceVersion and its NUL; a longer one is cut */
#define HF__UID_MAX      40 /* likewise of a uid */

struct hf__record {
        bool exists;

        /* ---- from the Lease's spec and annotations; two_lease_core.h has the exceptions for a
         * lock of two Leases, such as a duration of 0 ---- */
        char holder[HF_IDENTITY_MAX + 1]; /* "" = none. A foreign name that is too long is cut so
                                             that it equals no identity of ours */
        int64_t duration_s;               /* leaseDurationSeconds; 0 = absent */
        int64_t acquire_us, renew_us;     /* microseconds since 1970; 0 = absent */
        int64_t transitions;
        char successor[HF_IDENTITY_MAX + 1]; /* annotation holdfast.dev/successor; "" = none */
        /* Annotation holdfast.dev/hand-over-to: asks the holder to hand the Lease over to this
         * identity. Read only: our own writes remove it. */
        char hand_over_to[HF_IDENTITY_MAX + 1];
        bool preferred; /* spec.preferredHolder is set: a coordinator ends the holder's term */

        /* ---- from the Lease's metadata; a lock of two Leases makes an rv of its own, and its
         * rv_number is the sum of both ---- */
        char uid[HF__UID_MAX];     /* only for references to the object; "" = unknown */
        char rv[HF__REVISION_MAX]; /* resourceVersion, opaque; "" = unknown */
        uint64_t rv_number;        /* rv as a number; 0 = rv is not a number */

        /* ---- only for a lock of two Leases; false and 0 otherwise ---- */
        /* One of the two Leases is ours without the other, or an acquire of ours may still be
         * applied to one of them. Ends with the response to that acquire, with a release, or with
         * another change of that Lease. */
        bool unsettled;
        /* Changes when either Lease changes in a field that hf__record_same_fields compares, even
         * if no other member of this combined record shows the change. */
        uint64_t change_count;

        /* ---- only in a record returned by the write that began a term ---- */
        uint64_t term; /* the term's number; 0 = rv_number is the term's number */

        /* ---- only in a record to be written that begins a term; for the history; `cause` also
         * tells such a write from others ---- */
        enum hf__cause cause;
        char previous[HF_IDENTITY_MAX + 1]; /* the last holder seen; "" = none */
        int64_t gap_us; /* real time since the last renewal or the release; never negative */
};

/* Whether the two records agree in every field that a holder changes. A difference shows that the
 * holder is alive. Labels and revisions do not count. */
static inline bool hf__record_same_fields(const struct hf__record *a, const struct hf__record *b) {
        return a->exists == b->exists && a->duration_s == b->duration_s &&
               a->acquire_us == b->acquire_us && a->renew_us == b->renew_us &&
               a->transitions == b->transitions && a->change_count == b->change_count &&
               strcmp(a->holder, b->holder) == 0 && strcmp(a->successor, b->successor) == 0;
}
