/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides how shards are divided over the members of a group. Pure: no thread, no clock, no I/O.
 *
 * Every member runs one core, feeds it what it sees of the group's Leases, and gets decisions only
 * about itself. From the same view all members compute the same division, so they need no leader.
 * If views differ for a moment, the Leases still keep every shard with one holder: a decision only
 * says who asks for a Lease first, and who gives one away.
 *
 *  1. A member is live from the first renewal of its Lease that this process saw less than a lease
 *     duration after the previous record of the same holder, until the Lease is released, deleted
 *     or expired by this process's clock. A record without such a predecessor proves nothing: it
 *     may be that of a process that died long ago.
 *  2. Each live member's quota is the number of shards divided by the number of live members. The
 *     remainder is given out one by one: to members that hold more than the quotient, in the order
 *     of their keys, then to the others, in the order of theirs. While shards move to their targets
 *     this order does not change.
 *  3. A member keeps what it holds, up to its quota, the smallest numbers first. All other shards
 *     go to the members below their quota, in the order of the numbers and the keys. A shard that
 *     was handed over and not yet acquired counts as its successor's.
 *  4. Nothing moves for half a retry period after a member has become live, so that several that
 *     start together are counted together. A member that leaves delays nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/fence.h>
#include <holdfast/host.h>

#include "client/key_index.h"
#include "leader/record.h"

#define HF__SHARDS_MEMBER_NAME 17 /* bytes: 16 digits and the NUL */

/* One member's Lease, as last seen. */
struct hf__shards_member {
        struct hf__keyed keyed;            /* its key is `name` */
        uint64_t key;                      /* hf__shards_key of its identity */
        char name[HF__SHARDS_MEMBER_NAME]; /* the key in hexadecimal */
        char identity[HF_IDENTITY_MAX + 1];
        char rv[HF__REVISION_MAX]; /* the Lease's resourceVersion */
        int64_t renew_us;          /* the renewTime in the record; only compared for equality */
        hf_nsec seen_at;           /* boot time at which the record last changed */
        bool held;                 /* the Lease was not released */
        bool live;                 /* rule 1 */
        hf_nsec tried_at; /* boot time at which its Lease was last found as garbage; 0 = never since
                             the record changed */
        struct hf__shards_member *before, *after; /* in core->untried or core->tried */
        unsigned n_held, quota;                   /* only while deciding */
};

struct hf__shards_queue {
        struct hf__shards_member *first, *last;
};

struct hf__shards_shard {
        char owner[HF_IDENTITY_MAX + 1]; /* the holder, or else the named successor; "" = none */
        char member[HF__SHARDS_MEMBER_NAME]; /* the owner's key, as a member's name */
        bool held; /* owner holds the Lease; false: owner is "" or a successor */
        /* the decision about this process */
        bool contends; /* true: acquire it as soon as it is free; false: acquire it only if it
                          stays free for three retry periods (HOLD_BACK in shards.c) longer */
        char hand_over_to[HF_IDENTITY_MAX + 1]; /* "" = keep it, if it is held */
        struct hf__shards_member *target;       /* only while deciding; NULL = none yet */
};

struct hf__shards_core {
        uint64_t self; /* this process's key */
        hf_nsec lease_duration, retry_period;
        hf_nsec joined_at;            /* boot time at which a member last became live */
        struct hf__key_index members; /* owned */
        /* The same members, in the order in which they may become garbage. `untried`: tried_at is
         * 0; in the order of seen_at. `tried`: the others, in the order of tried_at. */
        struct hf__shards_queue untried, tried;
        bool cleans; /* at the last decision this process was the first live member */
        struct hf__shards_member **live; /* owned; room for all members. Only while deciding: the
                                            live ones, in the order of their keys */
        size_t n_live, live_size;
        struct hf__shards_shard *shards; /* owned */
        size_t n_shards;
};

/* A stable hash (64-bit FNV-1a with a final mix). It is the same on every machine and in every
 * version. */
uint64_t hf__shards_key(const char *text);

/* 0 or -ENOMEM. */
int hf__shards_core_init(struct hf__shards_core *core, const char *identity, size_t n_shards,
                         hf_nsec lease_duration, hf_nsec retry_period);
void hf__shards_core_done(struct hf__shards_core *core);
/*
 * A member's Lease was seen, with this record. A record without a holder is a release; the holder
 * of any other must have this key. True if it may change a decision. If memory runs out, a new
 * member is left out until its next renewal. Whoever may write Leases can make any number of them,
 * so this takes logarithmic time.
 */
bool hf__shards_core_saw_member(struct hf__shards_core *core, uint64_t key,
                                const struct hf__record *record, hf_nsec now);
/* A member's Lease was deleted. True if it may change a decision. */
bool hf__shards_core_lost_member(struct hf__shards_core *core, uint64_t key);
/* A shard's Lease was seen, or (both "") was deleted. True if it may change a decision. */
bool hf__shards_core_saw_shard(struct hf__shards_core *core, size_t shard, const char *holder,
                               const char *successor);
/* Fills the decisions in core->shards. While this process is not live itself, or while rule 4
 * applies, it contends for no shard and hands none over. Returns the boot time at which to decide
 * again if nothing is seen before. */
hf_nsec hf__shards_core_decide(struct hf__shards_core *core, hf_nsec now);
/* Finds the Lease of a member that has ended so long ago that this process may delete it, in
 * constant time; NULL = there is none. Only the member that was the first live one at the last
 * decision finds any. If the watch still shows the Lease one lease duration later, it could not be
 * deleted, and is found again. The result is valid until the next observation. */
const struct hf__shards_member *hf__shards_core_find_garbage(struct hf__shards_core *core,
                                                             hf_nsec now);
