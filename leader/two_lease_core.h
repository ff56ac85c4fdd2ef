/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two Leases that are held as one, so that running processes can migrate from an old Lease to a new
 * one without two leaders. This is the decision logic of that lock. Pure: the shell
 * (two_lease_lock.c) and the tests drive the same code.
 *
 * To the elector's core the pair is one record. A read reads both Leases. An acquire writes the old
 * one and then the new one, and succeeds when both are written. So does a renewal; its validity
 * counts from before the first of the two writes. The two records combine as follows:
 *
 *      holder, acquire time, duration agree   that record
 *      the holder agrees, but not all three   that holder, with the old Lease's acquire time and
 *                                             the longer duration
 *      only one of them has a holder          that holder
 *      two different holders                  HF__TWO_LEASE_UNKNOWN. A standby waits as long as
 *                                             either of them renews
 *
 * In the second and the third case the holder may be this process. Then the pair may be acquired,
 * but it is no term: the record gets a duration of 0, which we never write. A pair is half-held if
 * the old Lease is ours and the new one is not.
 *
 * Rules, and why each holds
 *
 *  1. The old Lease is written first. A process that knows only the old Lease and one that knows
 *     both then compete for the old one; a process that knows both and one that knows only the new
 *     one compete for the new one. (Processes that know only the old and processes that know only
 *     the new one do not meet at all. They must never run together.)
 *
 *  2. If the new Lease refuses the acquire, the old one is given back within the same operation. No
 *     controller has begun, so that is safe.
 *
 *  3. A pair may become half-held later (a reply was lost, or another process acquired the new
 *     Lease). Then it is not renewed. The old Lease is given back a lease duration later, when the
 *     controllers of any term have certainly ended.
 *
 *  4. A release writes only the Leases that are ours, and those to which an acquire of ours may
 *     still be applied: the write uses up the revision that the acquire expects.
 *
 *  5. An operation that was given up, or whose deadline has passed, sends nothing more.
 */
#include "leader/core.h"

/* client-go's MultiLock uses this name for holders that differ. */
#define HF__TWO_LEASE_UNKNOWN      "leaderelection.k8s.io/unknown"
#define HF__TWO_LEASE_OWN_ACQUIRES 8

enum hf__two_lease_side { HF__TWO_LEASE_OLD, HF__TWO_LEASE_NEW, HF__TWO_LEASE_SIDES };

enum hf__two_lease_command_type {
        HF__TWO_LEASE_READ,     /* side, op_id, deadline: read that Lease */
        HF__TWO_LEASE_WRITE,    /* side, op_id, deadline, record: write that Lease */
        HF__TWO_LEASE_RESPONSE, /* op_id of the elector's operation, result, retry_after, record:
                                   reply to the elector */
        HF__TWO_LEASE_EVENT,    /* record: report it to the elector as a watch event */
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
        /* Carry out in this order. A read that replaces another operation gives the most: the reply
         * to that one, and two reads. */
        struct hf__two_lease_command list[3];
        unsigned n;
};

/* One operation is under way at a time. The states are drawn in two_lease_core.c. */
enum hf__two_lease_stage {
        HF__TWO_LEASE_IDLE,
        HF__TWO_LEASE_READING,
        HF__TWO_LEASE_WRITING_OLD,
        HF__TWO_LEASE_WRITING_NEW,
        HF__TWO_LEASE_UNDOING,     /* gives the old Lease back after the new one refused (rule 2) */
        HF__TWO_LEASE_GIVING_BACK, /* gives the old Lease back after a lease duration (rule 3) */
};

struct hf__two_lease {
        /* immutable */
        char identity[HF_IDENTITY_MAX + 1];
        hf_nsec lease_duration;

        /* the state of each Lease */
        struct {
                bool known;
                bool event_since_send;      /* the watch has reported a change since the last
                                               request was sent */
                struct hf__record record;   /* the newest seen */
                struct hf__record expected; /* the state that the write under way expects */
                bool doubtful;       /* an acquire of unknown outcome may still be applied at this
                                        revision */
                uint32_t request_id; /* id of the request under way; 0 = none */
        } part[HF__TWO_LEASE_SIDES];
        uint32_t next_id;

        /* the state of the pair */
        uint64_t version; /* changes with either Lease's revision: the pair's resourceVersion */
        uint64_t change_count;   /* increases when either Lease changes in a field that
                                    hf__record_same_fields compares; then a holder is alive */
        hf_nsec half_held_since; /* boot time since which the pair is known to be half-held: the old
                                    Lease is ours, the new one is not; 0 = it is not half-held */

        /* ring of acquire times that this process wrote: distinguishes our records from those of
         * another process with the same identity */
        int64_t own_acquires[HF__TWO_LEASE_OWN_ACQUIRES];
        unsigned n_own_acquires;

        /* the operation under way */
        enum hf__two_lease_stage stage;
        uint32_t op_id; /* the elector's; 0 = the elector does not wait for it */
        hf_nsec deadline;
        struct hf__record record; /* to be written */
        /* UNDOING: the result of the new Lease's write, reported after the old one is given back */
        int refusal;
        hf_nsec refusal_retry_after;

        /* of the last acquire; for lock_grant, once it has succeeded */
        uint64_t old_term;                  /* the old Lease's term */
        char acquired_at[HF__REVISION_MAX]; /* the new Lease's revision */
};

/* identity is copied. There is nothing to free. */
void hf__two_lease_init(struct hf__two_lease *two, const char *identity, hf_nsec lease_duration);
/* Each of the following overwrites ret_commands. Reading and writing give up an operation that is
 * still under way; its reply, if the elector waits for one, is HF_E_TIMEOUT. op_id: not 0. */
void hf__two_lease_read(struct hf__two_lease *two, uint32_t op_id, hf_nsec deadline,
                        struct hf__core_time now, struct hf__two_lease_commands *ret_commands);
void hf__two_lease_write(struct hf__two_lease *two, uint32_t op_id, const struct hf__record *record,
                         hf_nsec deadline, struct hf__core_time now,
                         struct hf__two_lease_commands *ret_commands);
/* The response to a command's request. record is read if result is 0. A response to a request that
 * was given up is ignored. */
void hf__two_lease_response(struct hf__two_lease *two, enum hf__two_lease_side side, uint32_t op_id,
                            int result, hf_nsec retry_after, const struct hf__record *record,
                            struct hf__core_time now, struct hf__two_lease_commands *ret_commands);
/* A watch event of one Lease. record.exists = false: the Lease was deleted. */
void hf__two_lease_watched(struct hf__two_lease *two, enum hf__two_lease_side side,
                           const struct hf__record *record, struct hf__core_time now,
                           struct hf__two_lease_commands *ret_commands);
