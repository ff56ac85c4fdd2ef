/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transitions between the states of the elector's core. Only this file, and hf__core_init and
 * enter_stuck in core.c, change `state`.
 *
 * Invariants:
 *  - validity counts from the moment at which the acquire was sent, not from its reply;
 *  - when a term is lost (aborted), the gate is shut before any other action of the step;
 *  - no release, and no new term, before the controllers of the last term have returned (`joined`)
 *    and before its writes have settled (rule 13; a release of a Lease that is no longer ours need
 *    not wait for them).
 */
#include "leader/core_term.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "leader/core_lease.h"

/* splitmix64. It accepts every seed, and a test that repeats a seed repeats the run. */
static uint64_t next_random(struct hf__core *core) {
        uint64_t z = core->rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

hf_nsec hf__core_jittered(struct hf__core *core, hf_nsec duration) {
        assert(duration >= 0);
        return duration + (hf_nsec)(next_random(core) % (uint64_t)(duration / 5 + 1));
}

struct hf__core_action *hf__core_push_action(struct hf__core_actions *actions,
                                             enum hf__core_action_type type) {
        struct hf__core_action *action = &actions->list[0];

        assert(actions->n < HF__CORE_MAX_ACTIONS);
        /* The gate must be shut before any other action of the step is carried out. */
        if (type == HF__ACT_GATE_SHUT)
                memmove(&actions->list[1], &actions->list[0], actions->n * sizeof actions->list[0]);
        else
                action = &actions->list[actions->n];
        actions->n++;
        memset(action, 0, offsetof(struct hf__core_action, record));
        action->type = type;
        return action;
}

hf_nsec hf__core_state_limit(const struct hf__core *core) {
        if (core->state == HF_DRAINING)
                return hf__core_timing(core)->drain_deadline;
        if (core->state == HF_ABORTING)
                return hf__core_timing(core)->stop_grace;
        /* One timeout for a read of the Lease, and one for the write. */
        if (core->state == HF_RELEASING)
                return 2 * hf__core_timing(core)->request_timeout;
        return HF_NSEC_NEVER;
}

hf_nsec hf__core_stops_by(const struct hf__core *core) {
        const hf_nsec release = 2 * hf__core_timing(core)->request_timeout;

        if (core->state == HF_DRAINING)
                return hf__nsec_after(core->deadline.at,
                                      hf__core_timing(core)->stop_grace + release);
        if (core->state == HF_ABORTING)
                return hf__nsec_after(core->deadline.at, release);
        return core->state == HF_RELEASING ? core->deadline.at : 0;
}

static void enter_limited(struct hf__core *core, enum hf_leader_state state, hf_nsec now) {
        core->state = state;
        core->deadline = hf__deadline_after(now, hf__core_state_limit(core));
}

/* ---- the beginning of a term ---- */

void hf__core_start_term(struct hf__core *core, hf_nsec now, const struct hf__record *record,
                         struct hf__core_actions *actions) {
        struct hf__core_action *action;

        assert(!hf__core_has_valid_term(core) && core->joined);
        core->state = HF_LEADING;
        core->n_terms++;
        core->term = record->term ? record->term : record->rv_number;
        /* A foreign server's revision may not be a number. Such a server has no fences, so any
         * number that grows will do. */
        if (core->term == 0)
                core->term = core->n_terms;
        core->term_started_at = now;
        core->joined = false;
        core->valid_until = core->op_sent_at + hf__core_timing(core)->renew_deadline;
        action = hf__core_push_action(actions, HF__ACT_TERM_START);
        action->term = core->term;
        action->valid_until = core->valid_until;
        action->record = *record;
}

/* ---- the end of a term ---- */

void hf__core_abort_term(struct hf__core *core, hf_nsec now, const char *why,
                         struct hf__core_actions *actions) {
        assert(hf__core_has_valid_term(core) && !core->joined);
        hf__core_push_action(actions, HF__ACT_GATE_SHUT);
        hf__core_push_action(actions, HF__ACT_TERM_ABORT)->text = why;
        enter_limited(core, HF_ABORTING, now);
        core->valid_until = 0;
        core->last_end = why;
        /* A leader that cannot keep the Lease must not keep others from it (rule 9). */
        if (now - core->term_started_at < hf__core_timing(core)->lease_duration)
                core->n_short_terms++;
        else
                core->n_short_terms = 0;
}

void hf__core_lose_lease(struct hf__core *core, hf_nsec now, bool exists,
                         struct hf__core_actions *actions) {
        hf__core_abort_term(core, now,
                            exists ? "another process changed the Lease's record"
                                   : "the Lease was deleted",
                            actions);
}

void hf__core_drain_term(struct hf__core *core, hf_nsec now, const char *why,
                         struct hf__core_actions *actions) {
        assert(core->state == HF_LEADING && !core->joined);
        hf__core_push_action(actions, HF__ACT_TERM_DRAIN);
        enter_limited(core, HF_DRAINING, now);
        core->last_end = why;
        if (now - core->term_started_at >= hf__core_timing(core)->lease_duration)
                core->n_short_terms = 0;
}

static void enter_following(struct hf__core *core, hf_nsec contend_at) {
        assert(core->joined);
        core->state = HF_FOLLOWING;
        core->contend_at = contend_at;
        core->hand_over_requested = false;
        core->successor = "";
        core->n_failures = 0;
        core->poll_at = core->heard_at; /* a time in the past: without a watch, poll at once */
}

/* The time to wait before contending again: retry_period x 2^(n-1) after n short terms in a row, at
 * most a lease duration, plus jitter; 0 after a long term. */
static hf_nsec contend_backoff(struct hf__core *core) {
        hf_nsec delay = hf__core_timing(core)->retry_period;

        if (core->n_short_terms == 0)
                return 0;
        for (unsigned n = core->n_short_terms;
             n > 1 && delay < hf__core_timing(core)->lease_duration; n--)
                delay *= 2;
        return hf__core_jittered(core, hf__earlier(delay, hf__core_timing(core)->lease_duration));
}

void hf__core_term_settled(struct hf__core *core, hf_nsec doubt_at) {
        hf_nsec margin =
                hf__core_timing(core)->lease_duration - hf__core_timing(core)->renew_deadline;

        if (doubt_at == 0)
                core->settled_at = 0;
        else if (doubt_at != HF_NSEC_NEVER)
                core->settled_at = hf__earlier(core->settled_at, doubt_at + margin);
}

void hf__core_term_joined(struct hf__core *core, hf_nsec now) {
        assert(core->state == HF_DRAINING || core->state == HF_ABORTING);
        assert(!core->joined);
        core->joined = true;
        core->term = 0;
        core->valid_until = 0;
        if (core->stop_requested || core->hand_over_requested)
                hf__core_enter_releasing(core, now);
        else
                enter_following(core, now + contend_backoff(core));
}

/* ---- the release and the stop ---- */

void hf__core_enter_releasing(struct hf__core *core, hf_nsec now) {
        assert(core->joined && core->state != HF_RELEASING);
        enter_limited(core, HF_RELEASING, now);
        core->next_op_at = now;
        core->n_failures = 0;
        /* The release waits for the operation under way. If that hangs, enough of the time limit
         * must be left to read the Lease and to release it. */
        if (core->op_kind != HF__OP_NONE)
                core->op_deadline = hf__earlier(core->op_deadline,
                                                now + hf__core_timing(core)->request_timeout / 2);
}

void hf__core_stop(struct hf__core *core, bool released, struct hf__core_actions *actions) {
        assert(core->joined && (core->state == HF_FOLLOWING || core->state == HF_RELEASING));
        core->state = HF_STOPPED;
        core->op_kind = HF__OP_NONE;
        if (core->watching)
                hf__core_push_action(actions, HF__ACT_UNWATCH);
        core->watching = false;
        hf__core_push_action(actions, HF__ACT_STOPPED)->released = released;
}

void hf__core_end_release(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        assert(core->state == HF_RELEASING);
        core->op_kind = HF__OP_NONE;
        if (core->stop_requested) {
                /* A Lease that could not be read in time does not count as released. */
                bool released = !core->in_doubt && !core->must_read && !core->observed.unsettled &&
                                !hf__core_is_written_by_us(core, &core->observed);
                hf__core_stop(core, released, actions);
                return;
        }
        /* After a hand-over the successor may acquire first, then the other standbys, and this
         * process only after them (rule 10). */
        enter_following(core, now);
        core->yields_until = now + 2 * hf__core_timing(core)->retry_period;
}
