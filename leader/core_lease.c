/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the elector's core that interprets Lease records and composes the records to write.
 *
 * Invariants:
 *  - whether another process holds the Lease depends on what this process observed and when it
 *    observed it, never on the times in the record, because machines' clocks differ;
 *  - an acquire time is used for one term only, so a record's holder and acquire time identify the
 *    term that wrote it.
 */
#include "leader/core_lease.h"

#include <assert.h>
#include <string.h>

/* leaseDurationSeconds and leaseTransitions are 32 bits on the wire. A foreign record may contain
 * anything, and a server refuses more than this. */
#define DURATION_MAX_S  INT64_C(0x7fffffff)
#define TRANSITIONS_MAX INT64_C(0x7fffffff)

struct hf__core_seen hf__core_see(const struct hf__record *record) {
        struct hf__core_seen seen = {.exists = record->exists,
                                     .preferred = record->preferred,
                                     .unsettled = record->unsettled,
                                     .holder = record->holder,
                                     .successor = record->successor,
                                     .hand_over_to = record->hand_over_to,
                                     .duration_s = record->duration_s,
                                     .acquire_us = record->acquire_us,
                                     .renew_us = record->renew_us,
                                     .transitions = record->transitions,
                                     .rv_number = record->rv_number,
                                     .change_count = record->change_count};

        memcpy(seen.uid, record->uid, sizeof seen.uid);
        memcpy(seen.rv, record->rv, sizeof seen.rv);
        return seen;
}

/* ---- who wrote a record ---- */

bool hf__core_is_current_term(const struct hf__core *core, const struct hf__core_seen *record) {
        return record->exists && record->acquire_us == core->term_record.acquire_us &&
               record->duration_s == core->term_record.duration_s &&
               strcmp(record->holder, core->config.identity) == 0;
}

static bool is_own_acquire_time(const struct hf__core *core, int64_t acquire_us) {
        unsigned n = core->n_own_acquires < HF__CORE_OWN_ACQUIRES ? core->n_own_acquires
                                                                  : HF__CORE_OWN_ACQUIRES;

        for (unsigned i = 0; i < n; i++)
                if (core->own_acquires[i] == acquire_us)
                        return true;
        return false;
}

bool hf__core_is_written_by_us(const struct hf__core *core, const struct hf__core_seen *record) {
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               is_own_acquire_time(core, record->acquire_us);
}

bool hf__core_is_collision(const struct hf__core *core, const struct hf__core_seen *record) {
        /* The coordinator writes our identity into the Lease, so it proves nothing there. */
        if (core->config.coordinated)
                return false;
        return record->exists && strcmp(record->holder, core->config.identity) == 0 &&
               !is_own_acquire_time(core, record->acquire_us);
}

/* ---- knowledge of the Lease ---- */

/* Whether the record is older than the known one. False if that cannot be decided, because a
 * revision is not a number. */
static bool is_older(const struct hf__core *core, const struct hf__record *record) {
        const struct hf__core_seen *known = &core->observed;

        if (!core->observed_once || record->rv_number == 0 || known->rv_number == 0)
                return false;
        /* A deletion is reported with the revision of the deletion, or with the last one known: of
         * two records at one revision it is the newer. */
        return record->rv_number < known->rv_number ||
               (record->rv_number == known->rv_number && record->exists && !known->exists);
}

/* The count stays at its maximum, so that a Lease whose count was set to it by hand can still be
 * acquired: the server would refuse a greater one. */
static int64_t next_count(int64_t transitions) {
        return transitions < TRANSITIONS_MAX ? transitions + 1 : TRANSITIONS_MAX;
}

const char *hf__core_keep_text(const struct hf__core *core, const char *old, const char *text) {
        if (text[0] == '\0')
                return "";
        if (strcmp(text, core->config.identity) == 0)
                return core->config.identity;
        return strcmp(text, old) == 0 ? old : core->config.texts->copy(core->config.texts, text);
}

void hf__core_texts(const struct hf__core *core, const char *ret_texts[HF__CORE_N_TEXTS]) {
        ret_texts[0] = core->observed.holder;
        ret_texts[1] = core->observed.successor;
        ret_texts[2] = core->observed.hand_over_to;
        ret_texts[3] = core->last_holder;
        ret_texts[4] = core->term_record.previous;
        ret_texts[5] = core->successor;
}

/* Whether the two records agree in every field that a holder changes, as hf__record_same_fields. */
static bool has_same_fields(const struct hf__core_seen *a, const struct hf__core_seen *b) {
        return a->exists == b->exists && a->duration_s == b->duration_s &&
               a->acquire_us == b->acquire_us && a->renew_us == b->renew_us &&
               a->transitions == b->transitions && a->change_count == b->change_count &&
               strcmp(a->holder, b->holder) == 0 && strcmp(a->successor, b->successor) == 0;
}

static void replace_observed(struct hf__core *core, const struct hf__core_seen *record) {
        const struct hf__core_seen old = core->observed;

        core->observed = *record;
        core->observed.holder = hf__core_keep_text(core, old.holder, record->holder);
        core->observed.successor = hf__core_keep_text(core, old.successor, record->successor);
        core->observed.hand_over_to =
                hf__core_keep_text(core, old.hand_over_to, record->hand_over_to);
        if (record->exists && record->holder[0])
                core->last_holder = core->observed.holder;
}

/* Replaces the known record by one that was seen now, or by the fact that the Lease is absent. */
static void store_observed(struct hf__core *core, const struct hf__core_seen *record, hf_nsec now) {
        int64_t transitions = core->observed.transitions;

        if (!core->observed_once || !has_same_fields(&core->observed, record))
                core->observed_at = now;
        core->heard_at = now;
        if (!record->exists || record->acquire_us != core->observed.acquire_us ||
            strcmp(record->holder, core->observed.holder) != 0)
                core->holder_is_dead = false;
        /* After a hand-over this process waits for a new holder (rule 10). Now there is one, or a
         * coordinator has named this process again. */
        if (record->exists && record->holder[0] && !hf__core_is_written_by_us(core, record))
                core->yields_until = 0;
        if (record->exists) {
                core->lease_existed = true;
                core->last_renew_us = record->renew_us;
        }
        if (!record->exists && core->observed_once && core->observed.exists) {
                /* If the Lease is created again, its count of transitions continues. */
                replace_observed(core, record);
                core->observed.transitions = next_count(transitions);
        } else if (record->exists || !core->observed_once) {
                replace_observed(core, record);
        } else if (record->rv_number > core->observed.rv_number) {
                core->observed.rv_number = record->rv_number;
        }
        core->observed.unsettled = record->unsettled;
        core->observed_once = true;
}

bool hf__core_observe(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        const struct hf__core_seen seen = hf__core_see(record);

        if (is_older(core, record))
                return false;
        store_observed(core, &seen, now);
        return true;
}

bool hf__core_observe_read(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        struct hf__core_seen seen = {.holder = "", .successor = "", .hand_over_to = ""};

        /* The watch reported a change after the read was sent, so the response may be older than
         * what is known. */
        if (core->event_since_send) {
                if (!record || record->rv_number == 0 || core->observed.rv_number == 0) {
                        core->must_read = true;
                        return false;
                }
                if (is_older(core, record))
                        return false;
        }
        if (record)
                seen = hf__core_see(record);
        else /* late watch events of the deleted Lease count as older */
                seen.rv_number = core->observed.rv_number;
        store_observed(core, &seen, now);
        return true;
}

/* ---- whether the Lease may be acquired ---- */

bool hf__core_may_still_apply(const struct hf__core *core) {
        if (!core->op_write.exists) /* it was to create the Lease */
                return !core->observed.exists;
        return core->observed.exists && strcmp(core->observed.rv, core->op_write.rv) == 0;
}

static hf_nsec recorded_duration(const struct hf__core_seen *record) {
        int64_t seconds = record->duration_s < DURATION_MAX_S ? record->duration_s : DURATION_MAX_S;

        return seconds * HF_NSEC_PER_SEC;
}

bool hf__core_is_named(const struct hf__core *core, hf_nsec now) {
        const struct hf__core_seen *record = &core->observed;

        return record->exists && !record->preferred &&
               strcmp(record->holder, core->config.identity) == 0 && record->duration_s > 0 &&
               now < core->observed_at + recorded_duration(record);
}

bool hf__core_is_other_preferred(const struct hf__core *core) {
        return core->config.coordinated && core->observed.preferred;
}

hf_nsec hf__core_free_at(const struct hf__core *core) {
        const struct hf__core_seen *record = &core->observed;

        if (!record->exists || hf__core_is_written_by_us(core, record))
                return 0;
        /* Released. Only a named successor may acquire it within the next retry period. */
        if (record->holder[0] == '\0') {
                if (record->successor[0] == '\0' ||
                    strcmp(record->successor, core->config.identity) == 0)
                        return 0;
                return core->observed_at + core->config.timing.retry_period;
        }
        if (core->holder_is_dead)
                return 0;
        if (record->duration_s <= 0) /* absent: assume our own lease duration */
                return core->observed_at + core->config.timing.lease_duration;
        return core->observed_at + recorded_duration(record);
}

/* ---- records to write ---- */

/*
 * Chooses the acquire time of the next attempt. It increases even if real time is set back, so that
 * no two terms have the same one. Attempts at the same revision share one acquire time, because at
 * most one of them can be applied. So however many attempts fail at one revision, own_acquires
 * keeps the older times.
 */
static int64_t next_acquire_time(struct hf__core *core, struct hf__core_time now) {
        const struct hf__core_write *last = &core->op_write;

        if (core->n_own_acquires && last->acquire_us == core->last_acquire_us &&
            core->term_record.acquire_us != core->last_acquire_us && last->has_holder &&
            hf__core_may_still_apply(core))
                return core->last_acquire_us;
        core->last_acquire_us =
                now.real_us > core->last_acquire_us ? now.real_us : core->last_acquire_us + 1;
        core->own_acquires[core->n_own_acquires++ % HF__CORE_OWN_ACQUIRES] = core->last_acquire_us;
        return core->last_acquire_us;
}

static enum hf__cause find_cause(const struct hf__core *core) {
        const struct hf__core_seen *seen = &core->observed;

        if (!seen->exists)
                return core->lease_existed ? HF__CAUSE_DELETED : HF__CAUSE_CREATED;
        if (seen->holder[0] == '\0') {
                if (strcmp(seen->successor, core->config.identity) == 0)
                        return HF__CAUSE_HANDED_OVER;
                return seen->renew_us ? HF__CAUSE_RELEASED : HF__CAUSE_CREATED;
        }
        if (hf__core_is_written_by_us(core, seen))
                return HF__CAUSE_REGAINED;
        if (core->holder_is_dead)
                return HF__CAUSE_DIED;
        return core->config.coordinated ? HF__CAUSE_CHOSEN : HF__CAUSE_EXPIRED;
}

/* Fills in what the history of the Lease shows: what ended the previous term, and how long ago. The
 * gap is the difference between two machines' clocks, so it is inexact. No decision uses it. */
static void set_cause(struct hf__core *core, int64_t real_us, struct hf__record *record) {
        record->cause = find_cause(core);
        record->gap_us = 0;
        if (record->cause != HF__CAUSE_CREATED && core->last_renew_us > 0 &&
            real_us > core->last_renew_us)
                record->gap_us = real_us - core->last_renew_us;
        core->term_record.previous = core->last_holder;
        strcpy(record->previous, core->term_record.previous);
}

void hf__core_show(const struct hf__core_seen *seen, struct hf__record *ret_record) {
        *ret_record = (struct hf__record){.exists = seen->exists,
                                          .preferred = seen->preferred,
                                          .unsettled = seen->unsettled,
                                          .duration_s = seen->duration_s,
                                          .acquire_us = seen->acquire_us,
                                          .renew_us = seen->renew_us,
                                          .transitions = seen->transitions,
                                          .rv_number = seen->rv_number,
                                          .change_count = seen->change_count};
        strcpy(ret_record->holder, seen->holder);
        strcpy(ret_record->successor, seen->successor);
        strcpy(ret_record->hand_over_to, seen->hand_over_to);
        memcpy(ret_record->uid, seen->uid, sizeof ret_record->uid);
        memcpy(ret_record->rv, seen->rv, sizeof ret_record->rv);
}

void hf__core_observed(const struct hf__core *core, struct hf__record *ret_record) {
        hf__core_show(&core->observed, ret_record);
}

void hf__core_make_acquire(struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        struct hf__record *record = ret_record;
        int64_t acquire_us = next_acquire_time(core, now);

        assert(core->state == HF_FOLLOWING && core->observed_once);
        hf__core_observed(core, record);
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
        hf__core_observed(core, ret_record);
        ret_record->hand_over_to[0] = '\0';
        /* A changed renew time shows the standbys that the holder is alive. So it must change with
         * every renewal, even if real time is set back. */
        ret_record->renew_us =
                now.real_us > core->observed.renew_us ? now.real_us : core->observed.renew_us + 1;
}

void hf__core_make_release(const struct hf__core *core, struct hf__core_time now,
                           struct hf__record *ret_record) {
        assert(core->state == HF_RELEASING && core->joined);
        hf__core_observed(core, ret_record);
        ret_record->hand_over_to[0] = '\0';
        ret_record->holder[0] = '\0';
        ret_record->duration_s = 1; /* the API refuses 0 */
        ret_record->acquire_us = now.real_us;
        ret_record->renew_us = now.real_us;
        ret_record->successor[0] = '\0';
        if (core->hand_over_requested)
                strcpy(ret_record->successor, core->successor);
}

void hf__core_keep_write(struct hf__core *core, const struct hf__record *record) {
        core->op_write = (struct hf__core_write){.exists = record->exists,
                                                 .has_holder = record->holder[0] != '\0',
                                                 .duration_s = record->duration_s,
                                                 .acquire_us = record->acquire_us,
                                                 .renew_us = record->renew_us,
                                                 .transitions = record->transitions,
                                                 .gap_us = record->gap_us,
                                                 .cause = record->cause};
        memcpy(core->op_write.rv, record->rv, sizeof core->op_write.rv);
}

void hf__core_op_record(const struct hf__core *core, struct hf__record *ret_record) {
        const struct hf__core_write *write = &core->op_write;

        assert(core->op_kind > HF__OP_READ && !core->event_since_send);
        hf__core_observed(core, ret_record);
        ret_record->exists = write->exists;
        ret_record->duration_s = write->duration_s;
        ret_record->acquire_us = write->acquire_us;
        ret_record->renew_us = write->renew_us;
        ret_record->transitions = write->transitions;
        ret_record->gap_us = write->gap_us;
        ret_record->cause = write->cause;
        memcpy(ret_record->rv, write->rv, sizeof ret_record->rv);
        ret_record->hand_over_to[0] = '\0';
        if (core->op_kind != HF__OP_RENEW) /* a renewal leaves both as they are */
                ret_record->holder[0] = ret_record->successor[0] = '\0';
        if (core->op_kind == HF__OP_ACQUIRE) {
                strcpy(ret_record->holder, core->config.identity);
                strcpy(ret_record->previous, core->term_record.previous);
        } else if (core->op_kind == HF__OP_RELEASE && core->hand_over_requested) {
                strcpy(ret_record->successor, core->successor);
        }
}
