/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of the elector's core that interprets Lease records: which record is the newest, who
 * wrote it, when the Lease may be acquired, and what this process writes into it. Pure. `now` is a
 * boot time. Only the core (core*.c) uses these functions, with three exceptions for
 * elector_loop.c: it fills hf_leader_info.free_at and counts the time without a leader with
 * hf__core_free_at, and passes records on with hf__core_see and hf__core_show.
 */
#include "leader/core.h"

/* A record as the core sees it: its texts are borrowed from the record. */
struct hf__core_seen hf__core_see(const struct hf__record *record);
/* The reverse of hf__core_see. `term`, and what is only for a record to be written, are zero. */
void hf__core_show(const struct hf__core_seen *seen, struct hf__record *ret_record);

/* ---- who wrote a record ---- */

/* Whether the record belongs to this process's current or last term: same holder, acquire time and
 * duration as the write that began the term. */
bool hf__core_is_current_term(const struct hf__core *core, const struct hf__core_seen *record);
/* Whether this core acquired the Lease with this record or renewed it: in this term, in an earlier
 * one, or by a write whose reply was lost. The core remembers its last HF__CORE_OWN_ACQUIRES
 * acquire times. False for a release, because it names no holder. */
bool hf__core_is_written_by_us(const struct hf__core *core, const struct hf__core_seen *record);
/* Whether another process holds the Lease under our identity. Always false in a coordinated
 * election, because there the coordinator writes our identity into the Lease. */
bool hf__core_is_collision(const struct hf__core *core, const struct hf__core_seen *record);

/* ---- knowledge of the Lease ---- */

/* Returns a text that the core may keep in place of `old`: its own identity, "", `old` if it is the
 * same, or a copy. */
const char *hf__core_keep_text(const struct hf__core *core, const char *old, const char *text);
/* Stores a record from the watch or from a write. False: a newer record is known. */
bool hf__core_observe(struct hf__core *core, const struct hf__record *record, hf_nsec now);
/*
 * Stores the result of a read; record NULL = the Lease does not exist. A read may lower the known
 * revision, because a restored backup makes revisions go back. But if the watch has reported a
 * change after the read was sent, the result may be older than that change. False: it is older and
 * was discarded, or the two cannot be ordered. In the second case must_read is set.
 */
bool hf__core_observe_read(struct hf__core *core, const struct hf__record *record, hf_nsec now);

/* ---- whether the Lease may be acquired ---- */

/* Whether our last write, if its outcome is unknown, may still be applied: the Lease is still at
 * the revision that the write expects, or does not exist if the write was to create it. */
bool hf__core_may_still_apply(const struct hf__core *core);
/* Coordinated election: whether the record names this process, has not expired, and no other holder
 * is preferred. */
bool hf__core_is_named(const struct hf__core *core, hf_nsec now);
/* Coordinated election: whether the coordinator wants the present holder to end its term. */
bool hf__core_is_other_preferred(const struct hf__core *core);
/* The boot time from which the observed Lease may be acquired; 0 = at once: it does not exist, is
 * released and names no other successor, its holder is dead, or we wrote its record. */
hf_nsec hf__core_free_at(const struct hf__core *core);

/* ---- records to write ---- */

/* Each record is based on the newest one seen and keeps its revision: if the Lease has changed, the
 * write conflicts. The state must be FOLLOWING for an acquire, LEADING or DRAINING for a renewal,
 * RELEASING for a release. hf__core_make_acquire also chooses the acquire time and remembers it, so
 * that the core recognizes the record later, even if the reply is lost. */

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_renewal(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record);
/* Remembers the record of a write that begins. hf__core_op_record rebuilds the record from it. If
 * the outcome of the write is unknown, the core compares it with what it reads later. */
void hf__core_keep_write(struct hf__core *core, const struct hf__record *record);
