/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of the elector's core that judges Lease records: which record is the newest, whose it
 * is, when the Lease may be taken, and what this process writes into it. Pure. Private to the core
 * (elector_core*.c), except that the loop reports hf__core_free_at.
 */
#include "leader/elector_core.h"

/* ---- whose it is ---- */

/* Whether the record belongs to the term we lead: same holder, acquire time and duration. */
bool hf__core_is_mine(const struct hf__core *core, const struct hf__record *record);
/* Whether this core wrote the record: in this term, in an earlier one, or by a write whose reply
 * was lost. */
bool hf__core_is_own(const struct hf__core *core, const struct hf__record *record);
/* Whether another process holds the Lease under our identity. */
bool hf__core_is_collision(const struct hf__core *core, const struct hf__record *record);

/* ---- knowledge of the Lease ---- */

/* Stores a record from the watch or from a write. False: a newer record is known. */
bool hf__core_learn(struct hf__core *core, const struct hf__record *record, hf_nsec now);
/*
 * Stores the result of a read; record NULL = the Lease does not exist. It counts whatever its
 * revision (a restored backup makes revisions go back), unless the watch reported a change since
 * the read was sent. False: it is older than that change. If the two cannot be ordered, must_read
 * is set.
 */
bool hf__core_learn_read(struct hf__core *core, const struct hf__record *record, hf_nsec now);

/* ---- what may be done ---- */

/* Whether our last write, if its outcome is unknown, may still be applied: the Lease is still at
 * the revision that the write expects. */
bool hf__core_may_still_apply(const struct hf__core *core);
/* Coordinated: whether the record names us, is not expired, and no other holder is preferred. */
bool hf__core_is_named(const struct hf__core *core, hf_nsec now);
/* Coordinated: whether the coordinator wants the present holder to end its term. */
bool hf__core_is_other_preferred(const struct hf__core *core);
/* The boot time from which the observed Lease may be taken; 0 = it is free, or our own. */
hf_nsec hf__core_free_at(const struct hf__core *core);

/* ---- what is written ---- */

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_renewal(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
