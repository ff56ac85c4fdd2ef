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
 *  1. A member is live from the first renewal of its Lease that this process saw after another
 *     record of the same holder, until the Lease is released, deleted or expired by this process's
 *     clock. The record that is seen first proves nothing: it may be that of a process that died
 *     long ago.
 *  2. Each live member's quota is the number of shards divided by the number of live members. The
 *     remainder is given out one by one: to members that hold more than that already, in the order
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

/* One member's Lease, as last seen. */
struct hf__shards_member {
        uint64_t key; /* hf__shards_key of its identity */
        char identity[HF_IDENTITY_MAX + 1];
        int64_t renew_us; /* the renewTime in the record; only compared for equality */
        hf_nsec seen_at;  /* boot time at which the record last changed */
        bool held;        /* the Lease was not released */
        bool live;        /* rule 1 */
        hf_nsec tried_at; /* boot time at which its Lease was last found as garbage; 0 = never */
        unsigned n_held, quota; /* only while deciding */
};

struct hf__shards_shard {
        char owner[HF_IDENTITY_MAX + 1]; /* the holder, or else the named successor; "" = none */
        bool held; /* owner holds the Lease; false: owner is "" or a successor */
        /* the decision about this process */
        bool contends; /* true: acquire it as soon as it is free; false: acquire it only if it
                          stays free for three retry periods (HOLD_BACK in shards.c) longer */
        char hand_over_to[HF_IDENTITY_MAX + 1]; /* "" = keep it, if it is held */
        size_t target; /* only while deciding: index of a member; SIZE_MAX = none yet */
};

struct hf__shards_core {
        uint64_t self; /* this process's key */
        hf_nsec lease_duration, retry_period;
        hf_nsec joined_at;                 /* boot time at which a member last became live */
        struct hf__shards_member *members; /* owned; sorted by key */
        size_t n_members;
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
/* A member's Lease was seen. identity "" = it is released. True if it may change a decision. If
 * memory runs out, a new member is left out until its next renewal. */
bool hf__shards_core_saw_member(struct hf__shards_core *core, uint64_t key, const char *identity,
                                int64_t renew_us, hf_nsec now);
/* A member's Lease was deleted. */
void hf__shards_core_lost_member(struct hf__shards_core *core, uint64_t key);
/* A shard's Lease was seen, or (both "") was deleted. True if it may change a decision. */
bool hf__shards_core_saw_shard(struct hf__shards_core *core, size_t shard, const char *holder,
                               const char *successor);
/* Fills the decisions in core->shards. While this process is not live itself, and while rule 4
 * applies, it contends for no shard and hands none over. Returns the boot time at which to decide
 * again if nothing is seen before. */
hf_nsec hf__shards_core_decide(struct hf__shards_core *core, hf_nsec now);
/* Finds the Lease of a member that has ended so long ago that this process may delete it. Only the
 * first live member of a group finds any. If the watch still shows the Lease one lease duration
 * later, it could not be deleted, and is found again. */
bool hf__shards_core_find_garbage(struct hf__shards_core *core, hf_nsec now, uint64_t *ret_key);
