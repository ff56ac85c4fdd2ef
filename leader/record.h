/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a Lease says about its holder: the part of the object that election decides on. Plain data,
 * no pointers.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/fence.h>

/* How the Lease was found by who takes it. */
enum hf__cause {
        HF__CAUSE_NONE,
        HF__CAUSE_CREATED,     /* there was none, or nobody ever held it */
        HF__CAUSE_DELETED,     /* there was one, and it was deleted */
        HF__CAUSE_RELEASED,    /* its holder gave it up */
        HF__CAUSE_HANDED_OVER, /* its holder gave it up to who takes it */
        HF__CAUSE_EXPIRED,     /* its holder fell silent */
        HF__CAUSE_CHOSEN,      /* a coordinator named the taker */
        HF__CAUSE_REGAINED, /* it still bore the taker's own name: a term that was lost, or a write
                               whose reply was */
};

#define HF__REVISION_MAX 40 /* bytes of a resourceVersion and its NUL; a longer one is cut */

struct hf__record {
        bool exists;
        char holder[HF_IDENTITY_MAX +
                    1];     /* "" = nobody. A longer foreign one is cut: it is then still not us */
        int64_t duration_s; /* recorded leaseDurationSeconds; 0 = absent */
        int64_t acquire_us, renew_us; /* microseconds since 1970; 0 = absent */
        int64_t transitions;
        char successor[HF_IDENTITY_MAX + 1]; /* annotation holdfast.dev/successor; "" = none */
        /* Annotation holdfast.dev/hand-over-to: somebody asks its holder to give it to this one.
         * Read only: no record we write keeps it. */
        char hand_over_to[HF_IDENTITY_MAX + 1];
        char uid[40]; /* of the object, for references to it; "" = unknown. Read only; nothing
                         decides by it */
        char rv[HF__REVISION_MAX]; /* resourceVersion, opaque; "" = unknown */
        uint64_t rv_number;        /* the same as a number; 0 = it is not one */
        bool preferred; /* spec.preferredHolder names somebody: a coordinator ends the holder's term
                         */
        bool unsettled; /* behind it lies what is mine in part, or may yet become so: a release
                           settles it; false for a Lease */
        uint64_t beat;  /* changes with what lies behind the record and shows in no other field; 0
                           for a Lease */
        uint64_t term;  /* only as returned by a write that began a term: its number; 0 = rv_number
                           is */
        /* Only in a record that is to be written and begins a term; what was read has none of it,
         * and nothing decides by it. */
        enum hf__cause cause;
        char previous[HF_IDENTITY_MAX + 1]; /* the last holder that was seen; "" = none */
        int64_t gap_us; /* from the last sign of life or the release to now, by real time; at least
                           0 */
};

/* Whether the two say the same of the holder: a difference is a sign of life. Labels and revisions
 * are none. */
static inline bool hf__record_same_fields(const struct hf__record *a, const struct hf__record *b) {
        return a->exists == b->exists && a->duration_s == b->duration_s &&
               a->acquire_us == b->acquire_us && a->renew_us == b->renew_us &&
               a->transitions == b->transitions && a->beat == b->beat &&
               strcmp(a->holder, b->holder) == 0 && strcmp(a->successor, b->successor) == 0;
}
