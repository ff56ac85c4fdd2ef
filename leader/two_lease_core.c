/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of the lock with two Leases. two_lease_core.h has the rules.
 *
 * One operation is under way at a time. The elector's core starts reads and writes. A watch event
 * can start another operation: it gives the old Lease back, and no reply follows (op_id 0).
 *
 *      IDLE --read---> READING --both read--> replied to the elector, IDLE
 *                         +--half-held for too long--> GIVING_BACK --> replied, IDLE
 *      IDLE --write--> WRITING_OLD --> WRITING_NEW --> replied, IDLE
 *                                          +--an acquire is refused--> UNDOING --> replied, IDLE
 *      IDLE --event, half-held for too long--> GIVING_BACK --> IDLE
 *
 * (Any other failure is replied at once. A release skips a Lease that is not ours and cannot become
 * ours.)
 *
 * Invariants:
 *  - Both Leases are written at the revisions that were known when the elector's write began. While
 *    the old Lease is being written, the watch may report that another process has acquired the new
 *    one. The second write keeps the earlier revision, so that the server then refuses it.
 *  - The state of each Lease is tracked separately. A response replaces it, even with a lower
 *    revision, because a restored backup makes revisions go back. Exception: the watch has reported
 *    a change after the request was sent, and the response is older than that change.
 *  - The sum of the two revisions orders the states of the pair, because every change increases one
 *    of them and decreases neither (unless a backup is restored).
 */
#include "leader/two_lease_core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- knowledge of the two Leases ---- */

/* The acquire time distinguishes our records from those of another process with our identity. */
static bool is_written_by_us(const struct hf__two_lease *two, const struct hf__record *record) {
        unsigned n = two->n_own_acquires < HF__TWO_LEASE_OWN_ACQUIRES ? two->n_own_acquires
                                                                      : HF__TWO_LEASE_OWN_ACQUIRES;

        if (!record->exists || strcmp(record->holder, two->identity) != 0)
                return false;
        for (unsigned i = 0; i < n; i++)
                if (two->own_acquires[i] == record->acquire_us)
                        return true;
        return false;
}

static bool is_ours(const struct hf__two_lease *two, enum hf__two_lease_side side) {
        return two->part[side].known && is_written_by_us(two, &two->part[side].record);
}

/* Stores the newest state of one Lease and updates the state of the pair that depends on it. */
static void store_record(struct hf__two_lease *two, enum hf__two_lease_side side,
                         const struct hf__record *record, hf_nsec now) {
        struct hf__record *known = &two->part[side].record;

        if (!two->part[side].known || !hf__record_same_fields(known, record))
                two->change_count++;
        if (known->exists != record->exists || strcmp(known->rv, record->rv) != 0) {
                two->version++;
                two->part[side].doubtful = false;
        }
        two->part[side].known = true;
        *known = *record;
        if (!is_ours(two, HF__TWO_LEASE_OLD) || is_ours(two, HF__TWO_LEASE_NEW))
                two->half_held_since = 0;
        else if (two->half_held_since == 0)
                two->half_held_since = now;
}

static bool is_older(const struct hf__record *record, const struct hf__record *known) {
        if (record->rv_number == 0 || known->rv_number == 0)
                return false;
        return record->rv_number < known->rv_number ||
               (record->rv_number == known->rv_number && record->exists && !known->exists);
}

/* Stores the record in a response. record NULL: the Lease does not exist. Its deletion increased
 * the revision by at least one, so the pair's revision must increase too. */
static void store_response(struct hf__two_lease *two, enum hf__two_lease_side side,
                           const struct hf__record *record, hf_nsec now) {
        const struct hf__record *known = &two->part[side].record;
        struct hf__record absent = {.rv_number = known->rv_number +
                                                 (known->exists && known->rv_number != 0)};

        if (two->part[side].event_since_send && (record ? is_older(record, known) : known->exists))
                return;
        store_record(two, side, record ? record : &absent, now);
}

/* ---- combining the two records ---- */

static int64_t longer_duration(const struct hf__two_lease *two, const struct hf__record *a,
                               const struct hf__record *b) {
        int64_t fallback =
                two->lease_duration / HF_NSEC_PER_SEC; /* for a record without a duration */
        int64_t x = a->duration_s > 0 ? a->duration_s : fallback;
        int64_t y = b->duration_s > 0 ? b->duration_s : fallback;

        return x > y ? x : y;
}

static void copy_holder(struct hf__record *to, const struct hf__record *from) {
        strcpy(to->holder, from->holder);
        to->duration_s = from->duration_s;
        to->acquire_us = from->acquire_us;
}

static void compose_holder(const struct hf__two_lease *two, const struct hf__record *old_record,
                           const struct hf__record *new_record, struct hf__record *record) {
        bool agree = old_record->exists && new_record->exists &&
                     strcmp(old_record->holder, new_record->holder) == 0 &&
                     old_record->acquire_us == new_record->acquire_us &&
                     old_record->duration_s == new_record->duration_s;

        copy_holder(record, old_record->holder[0] ? old_record : new_record);
        if (old_record->holder[0] && new_record->holder[0]) {
                record->duration_s = agree ? old_record->duration_s
                                           : longer_duration(two, old_record, new_record);
                if (strcmp(old_record->holder, new_record->holder) != 0) {
                        strcpy(record->holder, HF__TWO_LEASE_UNKNOWN);
                        record->acquire_us = 0;
                        return;
                }
        }
        /* A pair that is ours only in part must not look like our own term. A duration of 0 ensures
         * that, because we never write one. */
        if (!agree && strcmp(record->holder, two->identity) == 0)
                record->duration_s = 0;
}

static int64_t greater_of(int64_t a, int64_t b) { return a > b ? a : b; }

static void compose_pair(const struct hf__two_lease *two, struct hf__record *ret_record) {
        const struct hf__record *old_record = &two->part[HF__TWO_LEASE_OLD].record,
                                *new_record = &two->part[HF__TWO_LEASE_NEW].record;

        *ret_record = (struct hf__record){.exists = old_record->exists || new_record->exists,
                                          .change_count = two->change_count};
        ret_record->unsettled = two->part[HF__TWO_LEASE_OLD].doubtful ||
                                two->part[HF__TWO_LEASE_NEW].doubtful ||
                                is_ours(two, HF__TWO_LEASE_OLD) != is_ours(two, HF__TWO_LEASE_NEW);
        if ((!old_record->exists || old_record->rv_number) &&
            (!new_record->exists || new_record->rv_number))
                ret_record->rv_number = old_record->rv_number + new_record->rv_number;
        if (!ret_record->exists)
                return;
        (void)snprintf(ret_record->rv, sizeof ret_record->rv, "pair-%" PRIu64, two->version);
        ret_record->transitions = greater_of(old_record->transitions, new_record->transitions);
        ret_record->renew_us = greater_of(old_record->renew_us, new_record->renew_us);
        strcpy(ret_record->successor,
               old_record->successor[0] ? old_record->successor : new_record->successor);
        strcpy(ret_record->hand_over_to,
               new_record->hand_over_to[0] ? new_record->hand_over_to : old_record->hand_over_to);
        strcpy(ret_record->uid, new_record->uid);
        ret_record->preferred = old_record->preferred || new_record->preferred;
        compose_holder(two, old_record, new_record, ret_record);
}

/* ---- commands ---- */

/* Whether the result proves that the write was not applied. A negative result is a local error,
 * which counts as an unknown outcome here. */
static bool is_refusal(int result) {
        return result > 0 && result != HF_E_TIMEOUT && result != HF_E_CANCELED;
}

static struct hf__two_lease_command *push_command(struct hf__two_lease_commands *commands,
                                                  enum hf__two_lease_command_type type) {
        assert(commands->n < sizeof commands->list / sizeof commands->list[0]);
        struct hf__two_lease_command *command = &commands->list[commands->n++];

        memset(command, 0, offsetof(struct hf__two_lease_command, record));
        command->type = type;
        return command;
}

static void start_request(struct hf__two_lease *two, enum hf__two_lease_command_type type,
                          enum hf__two_lease_side side, struct hf__two_lease_commands *commands) {
        struct hf__two_lease_command *command = push_command(commands, type);

        assert(two->stage != HF__TWO_LEASE_IDLE && two->part[side].request_id == 0);
        two->part[side].request_id = ++two->next_id;
        two->part[side].event_since_send = false;
        command->side = side;
        command->op_id = two->next_id;
        command->deadline = two->deadline;
}

/* Ends the operation under way, and replies if the elector waits for it (op_id not 0). */
static void reply_to_elector(struct hf__two_lease *two, int result, hf_nsec retry_after,
                             struct hf__two_lease_commands *commands) {
        if (two->op_id) {
                struct hf__two_lease_command *command =
                        push_command(commands, HF__TWO_LEASE_RESPONSE);
                command->op_id = two->op_id;
                command->result = result;
                command->retry_after = retry_after;
                compose_pair(two, &command->record);
        }
        two->stage = HF__TWO_LEASE_IDLE;
        two->op_id = 0;
        two->part[HF__TWO_LEASE_OLD].request_id = two->part[HF__TWO_LEASE_NEW].request_id = 0;
}

/* Begins an operation of the elector. An operation that is still under way is given up. */
static void begin_op(struct hf__two_lease *two, uint32_t op_id, hf_nsec deadline,
                     struct hf__two_lease_commands *commands) {
        commands->n = 0;
        assert(op_id != 0);
        if (two->stage != HF__TWO_LEASE_IDLE)
                reply_to_elector(two, HF_E_TIMEOUT, 0, commands);
        two->op_id = op_id;
        two->deadline = deadline;
}

/* ---- reading ---- */

static void end_read(struct hf__two_lease *two, struct hf__two_lease_commands *commands) {
        bool exists = two->part[HF__TWO_LEASE_OLD].record.exists ||
                      two->part[HF__TWO_LEASE_NEW].record.exists;

        reply_to_elector(two, exists ? 0 : HF_E_NOT_FOUND, 0, commands);
}

/* Releases the old Lease: writes its record without a holder. */
static void release_old_lease(struct hf__two_lease *two, enum hf__two_lease_stage stage,
                              struct hf__core_time now, struct hf__two_lease_commands *commands) {
        assert(stage == HF__TWO_LEASE_UNDOING || stage == HF__TWO_LEASE_GIVING_BACK);
        two->stage = stage;
        start_request(two, HF__TWO_LEASE_WRITE, HF__TWO_LEASE_OLD, commands);
        struct hf__record *record = &commands->list[commands->n - 1].record;
        *record = two->part[HF__TWO_LEASE_OLD].record;
        record->holder[0] = record->successor[0] = '\0';
        record->duration_s = 1; /* the API refuses 0 */
        record->acquire_us = record->renew_us = now.real_us;
}

/* Whether the pair has been half-held for so long that no controller of a term can still run. */
static bool is_half_held_too_long(const struct hf__two_lease *two, hf_nsec now) {
        return two->half_held_since && now - two->half_held_since >= two->lease_duration;
}

void hf__two_lease_read(struct hf__two_lease *two, uint32_t op_id, hf_nsec deadline,
                        struct hf__core_time now, struct hf__two_lease_commands *ret_commands) {
        begin_op(two, op_id, deadline, ret_commands);
        two->stage = HF__TWO_LEASE_READING;
        start_request(two, HF__TWO_LEASE_READ, HF__TWO_LEASE_OLD, ret_commands);
        start_request(two, HF__TWO_LEASE_READ, HF__TWO_LEASE_NEW, ret_commands);
}

static void on_read(struct hf__two_lease *two, int result, hf_nsec retry_after,
                    struct hf__core_time now, struct hf__two_lease_commands *commands) {
        if (result != 0 && result != HF_E_NOT_FOUND) {
                reply_to_elector(two, result, retry_after, commands);
                return;
        }
        if (two->part[HF__TWO_LEASE_OLD].request_id || two->part[HF__TWO_LEASE_NEW].request_id)
                return;
        if (is_half_held_too_long(two, now.boot) && now.boot < two->deadline)
                release_old_lease(two, HF__TWO_LEASE_GIVING_BACK, now, commands);
        else
                end_read(two, commands);
}

/* ---- writing ---- */

static bool is_acquire(const struct hf__two_lease *two) {
        return two->record.cause != HF__CAUSE_NONE;
}
static bool is_release(const struct hf__two_lease *two) { return two->record.holder[0] == '\0'; }

/* Whether the record to be written is based on the current state of the pair. */
static bool is_current(const struct hf__two_lease *two) {
        struct hf__record now;

        compose_pair(two, &now);
        return now.exists == two->record.exists &&
               strcmp(now.rv, now.exists ? two->record.rv : "") == 0;
}

static void write_side(struct hf__two_lease *two, enum hf__two_lease_side side,
                       struct hf__two_lease_commands *commands) {
        const struct hf__record *known = &two->part[side].expected;

        two->stage =
                side == HF__TWO_LEASE_OLD ? HF__TWO_LEASE_WRITING_OLD : HF__TWO_LEASE_WRITING_NEW;
        /* Until the response arrives, the acquire may be applied at any time. But if the Lease is
         * known to have changed, the server will refuse the write, so its outcome is certain. */
        if (is_acquire(two) && known->exists == two->part[side].record.exists &&
            strcmp(known->rv, two->part[side].record.rv) == 0)
                two->part[side].doubtful = true;
        start_request(two, HF__TWO_LEASE_WRITE, side, commands);
        struct hf__record *record = &commands->list[commands->n - 1].record;
        *record = two->record;
        record->exists = known->exists;
        strcpy(record->rv, known->rv);
        record->rv_number = known->rv_number;
        record->change_count = 0;
        record->unsettled = false;
}

/* Continues a write with this side. A release skips a Lease that is not ours and cannot become ours
 * by an acquire of unknown outcome. */
static void write_from_side(struct hf__two_lease *two, enum hf__two_lease_side side,
                            struct hf__core_time now, struct hf__two_lease_commands *commands) {
        while (side < HF__TWO_LEASE_SIDES && is_release(two) && !is_ours(two, side) &&
               !two->part[side].doubtful)
                side++;
        if (side == HF__TWO_LEASE_SIDES)
                reply_to_elector(two, 0, 0, commands);
        else if (now.boot >= two->deadline)
                reply_to_elector(two, HF_E_TIMEOUT, 0, commands);
        else
                write_side(two, side, commands);
}

void hf__two_lease_write(struct hf__two_lease *two, uint32_t op_id, const struct hf__record *record,
                         hf_nsec deadline, struct hf__core_time now,
                         struct hf__two_lease_commands *ret_commands) {
        begin_op(two, op_id, deadline, ret_commands);
        two->record = *record;
        if (!is_current(two) ||
            (!is_acquire(two) && !is_release(two) &&
             !(is_ours(two, HF__TWO_LEASE_OLD) && is_ours(two, HF__TWO_LEASE_NEW)))) {
                reply_to_elector(two, HF_E_CONFLICT, 0, ret_commands);
                return;
        }
        /* Repeated attempts share one acquire time, which is stored once. */
        if (is_acquire(two) &&
            (two->n_own_acquires == 0 ||
             two->own_acquires[(two->n_own_acquires - 1) % HF__TWO_LEASE_OWN_ACQUIRES] !=
                     record->acquire_us))
                two->own_acquires[two->n_own_acquires++ % HF__TWO_LEASE_OWN_ACQUIRES] =
                        record->acquire_us;
        two->part[HF__TWO_LEASE_OLD].expected = two->part[HF__TWO_LEASE_OLD].record;
        two->part[HF__TWO_LEASE_NEW].expected = two->part[HF__TWO_LEASE_NEW].record;
        write_from_side(two, HF__TWO_LEASE_OLD, now, ret_commands);
}

static void on_old_written(struct hf__two_lease *two, int result, hf_nsec retry_after,
                           const struct hf__record *record, struct hf__core_time now,
                           struct hf__two_lease_commands *commands) {
        if (result != 0) {
                reply_to_elector(two, result, retry_after, commands);
                return;
        }
        if (is_acquire(two))
                two->old_term = record->rv_number;
        write_from_side(two, HF__TWO_LEASE_NEW, now, commands);
}

/* The old Lease has already been written, unless a release skipped it. If the server refuses to
 * acquire the new one, the old one is given back, if it is still ours and the deadline has not
 * passed. If a renewal or a release fails with HF_E_CONFLICT or HF_E_NOT_FOUND, the elector gets
 * that result. Any other failure is reported as HF_E_TIMEOUT (outcome unknown), so that the elector
 * reads both. */
static void on_new_written(struct hf__two_lease *two, int result, hf_nsec retry_after,
                           const struct hf__record *record, struct hf__core_time now,
                           struct hf__two_lease_commands *commands) {
        bool is_definite = result == HF_E_CONFLICT || result == HF_E_NOT_FOUND;

        if (result == 0) {
                reply_to_elector(two, 0, 0, commands);
                if (is_acquire(two)) {
                        commands->list[commands->n - 1].record.term = record->rv_number;
                        strcpy(two->acquired_at, record->rv);
                }
        } else if (is_acquire(two) && is_refusal(result) && is_ours(two, HF__TWO_LEASE_OLD) &&
                   now.boot < two->deadline) {
                two->refusal = result;
                two->refusal_retry_after = retry_after;
                release_old_lease(two, HF__TWO_LEASE_UNDOING, now, commands);
        } else {
                reply_to_elector(two, !is_acquire(two) && is_definite ? result : HF_E_TIMEOUT,
                                 retry_after, commands);
        }
}

/* ---- events ---- */

void hf__two_lease_response(struct hf__two_lease *two, enum hf__two_lease_side side, uint32_t op_id,
                            int result, hf_nsec retry_after, const struct hf__record *record,
                            struct hf__core_time now, struct hf__two_lease_commands *ret_commands) {
        ret_commands->n = 0;
        if (two->part[side].request_id != op_id || op_id == 0)
                return; /* the request was given up */
        two->part[side].request_id = 0;
        if (two->stage != HF__TWO_LEASE_READING && (result == 0 || is_refusal(result)))
                two->part[side].doubtful = false;
        if (result == 0 || (result == HF_E_NOT_FOUND && two->stage == HF__TWO_LEASE_READING))
                store_response(two, side, result == 0 ? record : NULL, now.boot);
        switch (two->stage) {
        case HF__TWO_LEASE_READING: on_read(two, result, retry_after, now, ret_commands); break;
        case HF__TWO_LEASE_WRITING_OLD:
                on_old_written(two, result, retry_after, record, now, ret_commands);
                break;
        case HF__TWO_LEASE_WRITING_NEW:
                on_new_written(two, result, retry_after, record, now, ret_commands);
                break;
        case HF__TWO_LEASE_UNDOING:
                reply_to_elector(two, result == 0 ? two->refusal : HF_E_TIMEOUT,
                                 two->refusal_retry_after, ret_commands);
                break;
        /* Whether the old Lease was given back or not, the reply has the pair as it is known. */
        case HF__TWO_LEASE_GIVING_BACK: end_read(two, ret_commands); break;
        case HF__TWO_LEASE_IDLE: break;
        }
}

void hf__two_lease_watched(struct hf__two_lease *two, enum hf__two_lease_side side,
                           const struct hf__record *record, struct hf__core_time now,
                           struct hf__two_lease_commands *ret_commands) {
        ret_commands->n = 0;
        if (two->part[side].known && is_older(record, &two->part[side].record))
                return;
        two->part[side].event_since_send = true;
        store_record(two, side, record, now.boot);
        if (two->part[HF__TWO_LEASE_OLD].known && two->part[HF__TWO_LEASE_NEW].known)
                compose_pair(two, &push_command(ret_commands, HF__TWO_LEASE_EVENT)->record);
        /* The same check as in on_read, because a follower with working watches hardly ever
         * reads. */
        if (two->stage == HF__TWO_LEASE_IDLE && is_half_held_too_long(two, now.boot)) {
                /* No elector waits for this write, so it needs a limit of its own. If it fails, the
                 * next event tries again. */
                two->deadline = now.boot + two->lease_duration / 3;
                release_old_lease(two, HF__TWO_LEASE_GIVING_BACK, now, ret_commands);
        }
}

void hf__two_lease_init(struct hf__two_lease *two, const char *identity, hf_nsec lease_duration) {
        memset(two, 0, sizeof *two);
        (void)snprintf(two->identity, sizeof two->identity, "%s", identity);
        two->lease_duration = lease_duration;
}
