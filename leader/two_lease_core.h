/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two Leases that are led as one: the decisions of the lock by which a running fleet moves from an
 * old Lease to a new one. Pure: the shell (two_lease_lock.c) and the tests drive the very same
 * code.
 *
 * To the elector's core it is one record. Reading reads both Leases. Taking writes the old one,
 * then the new one, and succeeds when both are written; so does a renewal, whose validity counts
 * from before the first write. What the two say together:
 *
 *      the same holder, acquire time and duration in both      that record
 *      one has a holder, the other none or does not exist      its holder; where that is me, half a
 * lock: mine to take, no term two holders HF__TWO_LEASE_UNKNOWN, who is waited for as long as
 * either renews
 *
 * Rules:
 *  - The old Lease first. Whoever knows only the old one, and whoever knows both, thus meet at the
 * old one; whoever knows both and whoever knows only the new one meet at the new one. Those who
 * know only the old and those who know only the new do not meet.
 *  - When the new Lease refuses a taking, the old one is given back within the same operation: no
 * work has begun.
 *  - What is held by half after that (a lost reply, a new Lease that was stolen) is not renewed,
 * and the old one is given back a lease duration later, when the work of any term is over.
 *  - A release writes only those that are mine, and those to which a taking of mine may yet be
 * applied: that takes its condition away.
 *  - An operation that was given up, or whose deadline has passed, sends nothing more.
 */
#include "leader/elector_core.h"

#define HF__TWO_LEASE_UNKNOWN                                                                      \
        "leaderelection.k8s.io/unknown" /* the field's name for holders that differ */
#define HF__TWO_LEASE_TAKEN 8

enum hf__two_lease_side { HF__TWO_LEASE_OLD, HF__TWO_LEASE_NEW, HF__TWO_LEASE_SIDES };

enum hf__two_lease_command_type {
        HF__TWO_LEASE_READ,     /* side, op_id, deadline */
        HF__TWO_LEASE_WRITE,    /* side, op_id, deadline, record */
        HF__TWO_LEASE_RESPONSE, /* op_id of the caller's operation, result, retry_after, record:
                           what it came to */
        HF__TWO_LEASE_EVENT,    /* record: as the watches tell it */
};
struct hf__two_lease_command {
        enum hf__two_lease_command_type type;
        enum hf__two_lease_side side;
        uint32_t op_id;
        hf_nsec deadline;
        int result;
        hf_nsec retry_after;
        struct hf__record record;
};
struct hf__two_lease_commands {
        struct hf__two_lease_command list[3]; /* carry out in order */
        unsigned n;
};

struct hf__two_lease {
        char identity[HF_IDENTITY_MAX + 1]; /* immutable */
        hf_nsec lease_duration;             /* immutable */

        struct {
                bool known;
                bool told_since; /* the watch told something while a request was under way */
                struct hf__record record;
                struct hf__record expected; /* by the write under way */
                bool doubtful;              /* a taking may yet be applied at this revision */
                uint32_t asked;             /* id of the request under way; 0 = none */
        } part[HF__TWO_LEASE_SIDES];
        uint32_t next_id;
        uint64_t version; /* changes with either Lease's revision: the pair's resourceVersion */
        uint64_t beat;    /* changes with either Lease's fields: a sign of life */

        int64_t taken[HF__TWO_LEASE_TAKEN]; /* acquire times I wrote, a ring */
        unsigned n_taken;
        hf_nsec half_since; /* boot time since which the old Lease is known to be mine and the new
                               one not; 0 = not so */

        /* the operation under way */
        int stage;
        uint32_t op_id;
        hf_nsec deadline;
        struct hf__record record; /* to be written */
        int refusal;              /* of the new Lease, told after the old one was given back */
        hf_nsec refusal_retry_after;

        /* of the last taking that succeeded */
        uint64_t old_term;
        char acquired_at[HF__REVISION_MAX];
};

void hf__two_lease_init(struct hf__two_lease *two, const char *identity, hf_nsec lease_duration);
/* ret_commands is overwritten by each. */
void hf__two_lease_read(struct hf__two_lease *two, uint32_t op_id, hf_nsec deadline,
                        struct hf__core_time now, struct hf__two_lease_commands *ret_commands);
void hf__two_lease_write(struct hf__two_lease *two, uint32_t op_id, const struct hf__record *record,
                         hf_nsec deadline, struct hf__core_time now,
                         struct hf__two_lease_commands *ret_commands);
/* The answer to a command's request; record is read when result is 0. An answer to another one than
 * is under way does nothing. */
void hf__two_lease_response(struct hf__two_lease *two, enum hf__two_lease_side side, uint32_t op_id,
                            int result, hf_nsec retry_after, const struct hf__record *record,
                            struct hf__core_time now, struct hf__two_lease_commands *ret_commands);
void hf__two_lease_watched(struct hf__two_lease *two, enum hf__two_lease_side side,
                           const struct hf__record *record, struct hf__core_time now,
                           struct hf__two_lease_commands *ret_commands);
