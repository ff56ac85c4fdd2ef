/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the elector's core that judges Lease records, and makes those that it writes.
 *
 * Invariants:
 *  - whether another process holds the Lease is decided by what this process observed and when it
 *    observed it, never by the times in the record;
 *  - an acquire time is used for one term only, so a record's holder and acquire time identify the
 *    term that wrote it.
 */
#include "leader/elector_core_lease.h"

#include <assert.h>
#include <string.h>

/* leaseDurationSeconds and leaseTransitions are 32 bits on the wire. A foreign record may contain
 * anything, and a server refuses more than this. */
#define DURATION_MAX_S  INT64_C(0x7fffffff)
#define TRANSITIONS_MAX INT64_C(0x7fffffff)

/* ---- whose it is ---- */

bool hf__core_is_mine(const struct hf__core *core, const struct hf__record *record) {
        return record->exists && record->acquire_us == core->mine.acquire_us &&
               record->duration_s == core->mine.duration_s &&
               strcmp(record->holder, core->mine.holder) == 0;
}

static bool is_written_by_us(const struct hf__core *core, int64_t acquire_us) {
        unsigned n = core->n_own_acquires < HF__CORE_OWN_ACQUIRES ? core->n_own_acquires
                                                                  : HF__CORE_OWN_ACQUIRES;

        for (unsigned i = 0; i < n; i++)
                if (core->own_acquires[i] == acquire_us)
                        return true;
        return false;
}

bool hf__core_is_own(const struct hf__core *core, const struct hf__record *record) {
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               is_written_by_us(core, record->acquire_us);
}

bool hf__core_is_collision(const struct hf__core *core, const struct hf__record *record) {
        if (core->config.coordinated) /* the coordinator writes our identity too */
                return false;
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               !is_written_by_us(core, record->acquire_us);
}

/* ---- what is known ---- */

/* False also where the two cannot be ordered. */
static bool is_older(const struct hf__core *core, const struct hf__record *record) {
        const struct hf__record *known = &core->observed;

        if (!core->observed_once || record->rv_number == 0 || known->rv_number == 0)
                return false;
        /* A deletion is reported with the revision of the deletion, or with the last one known: of
         * two records at one revision it is the newer. */
        return record->rv_number < known->rv_number ||
               (record->rv_number == known->rv_number && record->exists && !known->exists);
}

/* The count stays at its maximum, so a Lease that was set to it by hand can still be taken. */
static int64_t next_count(int64_t transitions) {
        return transitions < TRANSITIONS_MAX ? transitions + 1 : TRANSITIONS_MAX;
}

static void remember(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        int64_t transitions = core->observed.transitions;

        if (!core->observed_once || !hf__record_same_fields(&core->observed, record))
                core->observed_at = now;
        core->heard_at = now;
        /* We yield to the next holder. There is one now; or a coordinator has named us. */
        if (record->exists && record->holder[0] && !hf__core_is_own(core, record))
                core->yields_until = 0;
        if (record->exists) {
                core->saw_lease = true;
                core->last_renew_us = record->renew_us;
                if (record->holder[0])
                        strcpy(core->last_holder, record->holder);
        }
        if (!record->exists && core->observed_once && core->observed.exists) {
                /* A Lease created after the deletion goes on with the count of transitions. */
                core->observed = *record;
                core->observed.transitions = next_count(transitions);
        } else if (record->exists || !core->observed_once) {
                core->observed = *record;
        } else if (record->rv_number > core->observed.rv_number) {
                core->observed.rv_number = record->rv_number;
        }
        core->observed.unsettled = record->unsettled;
        core->observed_once = true;
}

bool hf__core_learn(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        if (is_older(core, record))
                return false;
        remember(core, record, now);
        return true;
}

bool hf__core_learn_read(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        struct hf__record absent;

        if (core->event_since_send) {
                if (!record || record->rv_number == 0 || core->observed.rv_number == 0) {
                        core->must_read = true;
                        return false;
                }
                if (is_older(core, record))
                        return false;
        }
        if (!record) {
                memset(&absent, 0, sizeof absent);
                /* Watch events of the deleted Lease that are still to come are older. */
                absent.rv_number = core->observed.rv_number;
                record = &absent;
        }
        remember(core, record, now);
        return true;
}

/* ---- what may be done ---- */

bool hf__core_may_still_apply(const struct hf__core *core) {
        if (!core->op_record.exists)
                return !core->observed.exists;
        return core->observed.exists && strcmp(core->observed.rv, core->op_record.rv) == 0;
}

static hf_nsec duration_of(const struct hf__record *record) {
        int64_t seconds = record->duration_s < DURATION_MAX_S ? record->duration_s : DURATION_MAX_S;

        return seconds * HF_NSEC_PER_SEC;
}

bool hf__core_is_named(const struct hf__core *core, hf_nsec now) {
        const struct hf__record *record = &core->observed;

        return record->exists && !record->preferred &&
               strcmp(record->holder, core->config.identity) == 0 && record->duration_s > 0 &&
               now < core->observed_at + duration_of(record);
}

bool hf__core_is_other_preferred(const struct hf__core *core) {
        return core->config.coordinated && core->observed.preferred;
}

hf_nsec hf__core_free_at(const struct hf__core *core) {
        const struct hf__record *record = &core->observed;

        if (!record->exists || hf__core_is_own(core, record))
                return 0;
        if (record->holder[0] == '\0') {
                if (record->successor[0] == '\0' ||
                    strcmp(record->successor, core->config.identity) == 0)
                        return 0;
                return core->observed_at + core->config.timing.retry_period;
        }
        if (record->duration_s <= 0) /* absent: assume the duration that we would record */
                return core->observed_at + core->config.timing.lease_duration;
        return core->observed_at + duration_of(record);
}

/* ---- what is written ---- */

/*
 * The acquire time of the next attempt. It grows even when real time is set back, so no two terms
 * share one. Attempts at the same revision do share it: at most one of them can ever be applied,
 * and the ring of own_acquires does not lose older times however many attempts fail.
 */
static int64_t acquire_time(struct hf__core *core, struct hf__core_time now) {
        const struct hf__record *last = &core->op_record;

        if (core->n_own_acquires && last->acquire_us == core->last_acquire_us &&
            core->mine.acquire_us != core->last_acquire_us && last->holder[0] != '\0' &&
            hf__core_may_still_apply(core))
                return core->last_acquire_us;
        core->last_acquire_us =
                now.real_us > core->last_acquire_us ? now.real_us : core->last_acquire_us + 1;
        core->own_acquires[core->n_own_acquires++ % HF__CORE_OWN_ACQUIRES] = core->last_acquire_us;
        return core->last_acquire_us;
}

static enum hf__cause cause_of(const struct hf__core *core) {
        const struct hf__record *seen = &core->observed;

        if (!seen->exists)
                return core->saw_lease ? HF__CAUSE_DELETED : HF__CAUSE_CREATED;
        if (seen->holder[0] == '\0') {
                if (strcmp(seen->successor, core->config.identity) == 0)
                        return HF__CAUSE_HANDED_OVER;
                return seen->renew_us ? HF__CAUSE_RELEASED : HF__CAUSE_CREATED;
        }
        if (hf__core_is_own(core, seen))
                return HF__CAUSE_REGAINED;
        return core->config.coordinated ? HF__CAUSE_CHOSEN : HF__CAUSE_EXPIRED;
}

/* For the history that people read: what ended the previous term, and how long ago. The gap is the
 * difference of two machines' clocks, and only as good as they agree. Nothing decides by it. */
static void set_cause(const struct hf__core *core, int64_t real_us, struct hf__record *record) {
        record->cause = cause_of(core);
        record->gap_us = 0;
        if (record->cause != HF__CAUSE_CREATED && core->last_renew_us > 0 &&
            real_us > core->last_renew_us)
                record->gap_us = real_us - core->last_renew_us;
        strcpy(record->previous, core->last_holder);
}

static void clear_cause(struct hf__record *record) {
        record->cause = HF__CAUSE_NONE;
        record->gap_us = 0;
        record->previous[0] = '\0';
}

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        struct hf__record *record = ret_record;
        int64_t acquire_us = acquire_time(core, now);

        assert(core->state == HF_FOLLOWING && core->observed_once);
        *record = core->observed;
        /* In a coordinated election the coordinator counts the transitions. */
        if (core->observed.exists && !core->config.coordinated)
                record->transitions = next_count(core->observed.transitions);
        strcpy(record->holder, core->config.identity);
        record->successor[0] = record->hand_over_to[0] = '\0';
        record->duration_s = core->config.timing.lease_duration / HF_NSEC_PER_SEC;
        record->acquire_us = acquire_us;
        record->renew_us = now.real_us > acquire_us ? now.real_us : acquire_us;
        set_cause(core, now.real_us, record);
}

void hf__core_make_renewal(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        assert(core->state == HF_LEADING || core->state == HF_DRAINING);
        *ret_record = core->observed;
        ret_record->hand_over_to[0] = '\0';
        clear_cause(ret_record);
        /* Standbys see by a changed renew time that the holder is alive, so it changes with every
         * renewal, also when real time stands still or is set back. */
        ret_record->renew_us =
                now.real_us > core->observed.renew_us ? now.real_us : core->observed.renew_us + 1;
}

void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        assert(core->state == HF_RELEASING && core->joined);
        *ret_record = core->observed;
        ret_record->hand_over_to[0] = '\0';
        clear_cause(ret_record);
        ret_record->holder[0] = '\0';
        ret_record->duration_s = 1; /* the API refuses 0 */
        ret_record->acquire_us = now.real_us;
        ret_record->renew_us = now.real_us;
        ret_record->successor[0] = '\0';
        if (core->hand_over_asked)
                strcpy(ret_record->successor, core->successor);
}
