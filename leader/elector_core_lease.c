/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/elector_core_lease.h"

#include <string.h>

#define DURATION_MAX_S                                                                             \
        INT64_C(0x7fffffff) /* leaseDurationSeconds is 32 bits; a foreign record may say anything  \
                             */
#define TRANSITIONS_MAX                                                                            \
        INT64_C(0x7fffffff) /* likewise leaseTransitions; a server refuses what is more */

bool hf__core_is_mine(const struct hf__core *core, const struct hf__record *record) {
        return record->exists && record->acquire_us == core->mine.acquire_us &&
               record->duration_s == core->mine.duration_s &&
               strcmp(record->holder, core->mine.holder) == 0;
}

static bool written_by_me(const struct hf__core *core, int64_t acquire_us) {
        unsigned n = core->n_own_acquires < HF__CORE_OWN_ACQUIRES ? core->n_own_acquires
                                                                  : HF__CORE_OWN_ACQUIRES;

        for (unsigned i = 0; i < n; i++)
                if (core->own_acquires[i] == acquire_us)
                        return true;
        return false;
}

bool hf__core_is_own(const struct hf__core *core, const struct hf__record *record) {
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               written_by_me(core, record->acquire_us);
}

bool hf__core_is_twin(const struct hf__core *core, const struct hf__record *record) {
        if (core->config.coordinated) /* a coordinator writes my name too */
                return false;
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               !written_by_me(core, record->acquire_us);
}

static bool is_older(const struct hf__core *core, const struct hf__record *record) {
        const struct hf__record *known = &core->observed;

        if (!core->observed_once || record->rv_number == 0 || known->rv_number == 0)
                return false;
        /* A Lease known to be gone had its last words at or before that revision; its deletion
         * comes last of all. */
        return record->rv_number < known->rv_number ||
               (record->rv_number == known->rv_number && record->exists && !known->exists);
}

/* The count stays at its end: a Lease that somebody has set to it can be taken all the same. */
static int64_t one_more(int64_t transitions) {
        return transitions < TRANSITIONS_MAX ? transitions + 1 : TRANSITIONS_MAX;
}

static void note(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        int64_t transitions = core->observed.transitions;

        if (!core->observed_once || !hf__record_same_fields(&core->observed, record))
                core->observed_at = now;
        core->heard_at = now;
        /* The hold after a release was for whoever comes next, who has come; or a coordinator has
         * named me. */
        if (record->exists && record->holder[0] && !hf__core_is_own(core, record))
                core->yields_until = 0;
        if (record->exists) {
                core->saw_lease = true;
                core->last_renew_us = record->renew_us;
                if (record->holder[0])
                        strcpy(core->last_holder, record->holder);
        }
        if (!record->exists && core->observed_once && core->observed.exists) {
                /* The count of transitions outlives the Lease as far as it is remembered: a new one
                 * goes on from here. */
                core->observed = *record;
                core->observed.transitions = one_more(transitions);
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
        note(core, record, now);
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
                absent.rv_number =
                        core->observed.rv_number; /* what the watch still has of it is older */
                record = &absent;
        }
        note(core, record, now);
        return true;
}

bool hf__core_may_still_apply(const struct hf__core *core) {
        if (!core->op_record.exists)
                return !core->observed.exists;
        return core->observed.exists && strcmp(core->observed.rv, core->op_record.rv) == 0;
}

bool hf__core_is_named(const struct hf__core *core, hf_nsec now) {
        const struct hf__record *record = &core->observed;

        return record->exists && !record->preferred &&
               strcmp(record->holder, core->config.identity) == 0 && record->duration_s > 0 &&
               now < core->observed_at + (record->duration_s < DURATION_MAX_S ? record->duration_s
                                                                              : DURATION_MAX_S) *
                                                 HF_NSEC_PER_SEC;
}

hf_nsec hf__core_free_at(const struct hf__core *core) {
        const struct hf__record *record = &core->observed;
        int64_t duration_s = record->duration_s;

        if (!record->exists || hf__core_is_own(core, record))
                return 0;
        if (record->holder[0] == '\0') {
                if (record->successor[0] == '\0' ||
                    strcmp(record->successor, core->config.identity) == 0)
                        return 0;
                return core->observed_at + core->config.timing.retry_period;
        }
        if (duration_s <= 0) /* not said: what we would have recorded */
                return core->observed_at + core->config.timing.lease_duration;
        return core->observed_at +
               (duration_s < DURATION_MAX_S ? duration_s : DURATION_MAX_S) * HF_NSEC_PER_SEC;
}

/*
 * The acquire time names the term, so it is never used for two, however real time is set. Attempts
 * under one and the same condition share it: at most one of them can ever be applied, and however
 * many fail, the former ones stay known as mine.
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

/* For people: what this taking follows on. The times are of two clocks, so the gap is only as good
 * as their agreement. */
static void note_cause(const struct hf__core *core, int64_t real_us, struct hf__record *record) {
        record->cause = cause_of(core);
        record->gap_us = 0;
        if (record->cause != HF__CAUSE_CREATED && core->last_renew_us > 0 &&
            real_us > core->last_renew_us)
                record->gap_us = real_us - core->last_renew_us;
        strcpy(record->previous, core->last_holder);
}

static void forget_cause(struct hf__record *record) {
        record->cause = HF__CAUSE_NONE;
        record->gap_us = 0;
        record->previous[0] = '\0';
}

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        struct hf__record *record = ret_record;
        int64_t acquire_us = acquire_time(core, now);

        *record = core->observed;
        /* Whoever names the holder counts the changes. */
        if (core->observed.exists && !core->config.coordinated)
                record->transitions = one_more(core->observed.transitions);
        strcpy(record->holder, core->config.identity);
        record->successor[0] = record->hand_over_to[0] = '\0';
        record->duration_s = core->config.timing.lease_duration / HF_NSEC_PER_SEC;
        record->acquire_us = acquire_us;
        record->renew_us = now.real_us > acquire_us ? now.real_us : acquire_us;
        note_cause(core, now.real_us, record);
}

void hf__core_make_renewal(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        *ret_record = core->observed;
        ret_record->hand_over_to[0] = '\0';
        forget_cause(ret_record);
        /* A standby takes a changed renew time for a sign of life: it changes with every renewal.
         */
        ret_record->renew_us =
                now.real_us > core->observed.renew_us ? now.real_us : core->observed.renew_us + 1;
}

void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        *ret_record = core->observed;
        ret_record->hand_over_to[0] = '\0';
        forget_cause(ret_record);
        ret_record->holder[0] = '\0';
        ret_record->duration_s = 1; /* the API refuses 0 */
        ret_record->acquire_us = now.real_us;
        ret_record->renew_us = now.real_us;
        ret_record->successor[0] = '\0';
        if (core->hand_over_asked)
                strcpy(ret_record->successor, core->successor);
}
