/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elector's state machine: events, timers and the step itself. core.h describes the
 * states and the rules. core_op.c decides what the core reads and writes,
 * core_term.c has the transitions between states, and core_lease.c interprets
 * records.
 *
 * A step runs in this order:
 *
 *   1. Validity: a term that is no longer valid ends, even before the event is handled, because a
 *      process that was paused must not act on an old event.
 *   2. The event changes what is known of the Lease, and may change the state. Before that, an
 *      operation that was not sent is withdrawn. After it, a leader follows the requests in the
 *      record.
 *   3. Timers that have expired act: the drain deadline, the stop grace, the deadline of the
 *      operation, the time limit of the release.
 *   4. The operation that is due is started. A lost watch is reopened. If the operation is the last
 *      write of a stop, the watch is closed.
 *   5. The wake-up time is the earliest time at which 1, 3 or 4 would do something.
 *
 * Invariants (asserted after every step):
 *  - a term is valid exactly while the state is LEADING or DRAINING;
 *  - in FOLLOWING, RELEASING and STOPPED no controller of a term runs.
 */
#include "leader/core.h"

#include <assert.h>
#include <string.h>

#include "leader/core_lease.h"
#include "leader/core_op.h"
#include "leader/core_term.h"

static bool has_ended(const struct hf__core *core) {
        return core->state == HF_STOPPED || core->state == HF_STUCK;
}

/* ---- events ---- */

static void on_watched(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                       struct hf__core_actions *actions) {
        const struct hf__core_seen seen = hf__core_see(record);

        if (!core->watching)
                return;
        core->watch_reported = true;
        if (core->state != HF_FOLLOWING &&
            (record->rv_number == 0 || core->observed.rv_number == 0)) {
                /* Without numeric revisions the event may be older than our own last write, so
                 * only a read can show the current record. While following, an outdated record
                 * does no harm: an acquire that is based on it conflicts. */
                core->heard_at = now;
                if (!hf__core_is_current_term(core, &seen))
                        core->must_read = true;
                return;
        }
        if (!hf__core_observe(core, record, now))
                return;
        core->event_since_send = true;
        if (hf__core_has_valid_term(core) && !hf__core_is_current_term(core, &seen))
                hf__core_lose_lease(core, now, record->exists, actions);
}

static void on_watch_lost(struct hf__core *core, hf_nsec now) {
        core->watching = false;
        core->watch_retry_at = hf__later(core->watch_retry_at, now);
        core->poll_at =
                hf__later(now,
                          core->heard_at +
                                  hf__core_jittered(core, hf__core_timing(core)->retry_period));
}

/* Whether this process may hold the Lease without knowing it: the known record may be outdated, or,
 * in a lock of two Leases (two_lease_lock.h), one is held without the other. While the very first
 * read is under way the answer is no, because this process has written nothing yet. */
static bool is_holder_uncertain(const struct hf__core *core) {
        return core->observed.unsettled || core->must_read ||
               (core->op_kind == HF__OP_READ && core->op_is_required && core->observed_once);
}

static void on_stop(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        core->stop_requested = true;
        if (core->state == HF_LEADING) {
                hf__core_drain_term(core, now, "stopped", actions);
        } else if (core->state == HF_RELEASING) {
                /* A release for a hand-over is under way, and its time limit may be almost reached.
                 * The stop gets the full time. */
                core->deadline = hf__deadline_after(now, hf__core_state_limit(core));
        } else if (core->state == HF_FOLLOWING) {
                /* The Lease may name this process, or a late acquire may yet be applied. Then the
                 * other processes would have to wait until the Lease expires, so release it first
                 * (rule 11). */
                if (core->op_kind == HF__OP_ACQUIRE || core->in_doubt ||
                    is_holder_uncertain(core) || hf__core_is_written_by_us(core, &core->observed))
                        hf__core_enter_releasing(core, now);
                else
                        hf__core_stop(core, true, actions);
        }
}

static void on_hand_over(struct hf__core *core, const char *successor, hf_nsec now,
                         struct hf__core_actions *actions) {
        /* Only a leader can hand over. The holder as its own successor would release the Lease for
         * nothing. */
        if (core->state != HF_LEADING || strcmp(successor, core->config.identity) == 0)
                return;
        core->hand_over_requested = true;
        core->successor = hf__core_keep_text(core, core->successor, successor);
        hf__core_drain_term(core, now, successor[0] ? "handed over" : "stepped down", actions);
}

static void on_joined(struct hf__core *core, hf_nsec doubt_at, hf_nsec now,
                      struct hf__core_actions *actions) {
        if (core->state != HF_ABORTING && core->state != HF_DRAINING)
                return;
        /* An abort has shut the gate already. After a drain it is still open. */
        if (core->state == HF_DRAINING)
                hf__core_push_action(actions, HF__ACT_GATE_SHUT);
        /* An upper bound: an unanswered write ends with the validity at the latest, at most
         * renew_deadline from now, and settles lease_duration - renew_deadline later (rule 13). */
        core->settled_at = now + hf__core_timing(core)->lease_duration;
        hf__core_term_settled(core, doubt_at);
        hf__core_term_joined(core, now);
}

/*
 * The store may have been restored from a backup. Then a known revision may now belong to another
 * record, a smaller revision may be newer, and a reply under way may come from the old store. So
 * nothing known counts until the Lease has been read again.
 */
static void invalidate_observed(struct hf__core *core) {
        if (core->op_kind != HF__OP_NONE && core->op_kind != HF__OP_READ)
                core->in_doubt = true;
        core->op_kind = HF__OP_NONE;
        core->must_read = true;
        core->observed.rv_number = 0;
}

static const char *why_stale(int error) {
        switch (error) {
        case 0: return "the embedder ended it";
        case HF_E_STALE_TERM: return "a write was refused: the term is stale";
        case HF_E_UNFENCED: return "the server did not confirm the fence of a write";
        default: return "its controllers could not start";
        }
}

static void on_stale_term(struct hf__core *core, int error, hf_nsec now,
                          struct hf__core_actions *actions) {
        invalidate_observed(core);
        if (hf__core_has_valid_term(core))
                hf__core_abort_term(core, now, why_stale(error), actions);
}

/* The record may have changed since the proof. A record under our own identity is never taken for a
 * dead process's: rule 7 decides about it. */
static void on_holder_dead(struct hf__core *core, const struct hf__record *record) {
        const struct hf__core_seen *seen = &core->observed;

        if (seen->exists && seen->holder[0] != '\0' && seen->acquire_us == record->acquire_us &&
            strcmp(seen->holder, record->holder) == 0 &&
            strcmp(seen->holder, core->config.identity) != 0)
                core->holder_is_dead = true;
}

static void handle_event(struct hf__core *core, const struct hf__core_event *event,
                         struct hf__core_time now, struct hf__core_actions *actions) {
        switch (event->type) {
        case HF__EV_TICK: break;
        case HF__EV_READ_DONE:
        case HF__EV_WRITE_DONE: hf__core_op_done(core, event, now, actions); break;
        case HF__EV_WATCHED: on_watched(core, &event->record, now.boot, actions); break;
        case HF__EV_WATCH_LOST: on_watch_lost(core, now.boot); break;
        case HF__EV_STOP: on_stop(core, now.boot, actions); break;
        case HF__EV_HAND_OVER: on_hand_over(core, event->successor, now.boot, actions); break;
        case HF__EV_JOINED: on_joined(core, event->doubt_at, now.boot, actions); break;
        case HF__EV_SETTLED: hf__core_term_settled(core, event->doubt_at); break;
        case HF__EV_HOLD_BACK: core->hold_back = event->hold_back; break;
        case HF__EV_HOLDER_DEAD: on_holder_dead(core, &event->record); break;
        case HF__EV_STALE_TERM: on_stale_term(core, event->result, now.boot, actions); break;
        }
}

/* Follows the requests in the record to its holder: a coordinator has named a preferred holder, or
 * a user has set the hand-over annotation. */
static void apply_record_requests(struct hf__core *core, hf_nsec now,
                                  struct hf__core_actions *actions) {
        if (core->state != HF_LEADING || !hf__core_is_current_term(core, &core->observed))
                return;
        if (hf__core_is_other_preferred(core)) {
                /* Name no successor, because the coordinator chooses the next holder. */
                core->hand_over_requested = true;
                core->successor = "";
                hf__core_drain_term(core, now, "another holder is preferred", actions);
        } else if (core->observed.hand_over_to[0] != '\0') {
                on_hand_over(core, core->observed.hand_over_to, now, actions);
        }
}

/* ---- timers ---- */

static void close_watch(struct hf__core *core, struct hf__core_actions *actions) {
        if (core->watching)
                hf__core_push_action(actions, HF__ACT_UNWATCH);
        core->watching = false;
}

static void enter_stuck(struct hf__core *core, struct hf__core_actions *actions) {
        assert(core->state == HF_ABORTING && !core->joined);
        core->state = HF_STUCK;
        core->op_kind = HF__OP_NONE;
        close_watch(core, actions);
        hf__core_push_action(actions, HF__ACT_STUCK);
}

static bool is_deadline_over(struct hf__core *core, hf_nsec now) {
        return hf__deadline_is_over(&core->deadline, hf__core_state_limit(core), now);
}

/* joins: see struct hf__core_event. */
static void run_timers(struct hf__core *core, bool joins, struct hf__core_time now,
                       struct hf__core_actions *actions) {
        if (core->state == HF_DRAINING && is_deadline_over(core, now.boot))
                hf__core_abort_term(core, now.boot, "the drain deadline passed", actions);
        if (core->state == HF_ABORTING && !joins && is_deadline_over(core, now.boot)) {
                enter_stuck(core, actions);
                return;
        }
        hf__core_op_expire(core, now);
        if (core->state == HF_RELEASING && is_deadline_over(core, now.boot))
                hf__core_end_release(core, now.boot, actions);
}

/* Whether the release of a stop is under way: the last write of the elector, if it succeeds.
 * Nothing depends on an event then: the write is conditional, and if it fails, the Lease is
 * read. */
static bool is_last_write(const struct hf__core *core) {
        return core->op_kind == HF__OP_RELEASE && core->stop_requested;
}

/* Opens the watch if it is not open, at most once per retry period. Returns the boot time at which
 * that will be due, or HF_NSEC_NEVER. While the last write is under way the watch is closed. If it
 * were open when a process with ten thousand electors stops, the server would send each release
 * back to the process as an event. */
static hf_nsec update_watch(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        if (has_ended(core))
                return HF_NSEC_NEVER;
        if (is_last_write(core)) {
                close_watch(core, actions);
                return HF_NSEC_NEVER;
        }
        if (core->watching)
                return HF_NSEC_NEVER;
        if (now < core->watch_retry_at)
                return core->watch_retry_at;
        core->watching = true;
        core->watch_reported = false;
        core->watch_retry_at = now + hf__core_timing(core)->retry_period;
        hf__core_push_action(actions, HF__ACT_WATCH);
        return HF_NSEC_NEVER;
}

static hf_nsec next_wake_up(const struct hf__core *core, hf_nsec due_at) {
        hf_nsec at = due_at;

        if (core->op_kind != HF__OP_NONE)
                at = hf__earlier(at, core->op_deadline);
        if (hf__core_has_valid_term(core))
                at = hf__earlier(at, core->valid_until);
        if (hf__core_state_limit(core) != HF_NSEC_NEVER)
                at = hf__earlier(at, core->deadline.at);
        return at;
}

/* ---- init and step ---- */

void hf__core_init(struct hf__core *core, const struct hf__core_config *config,
                   struct hf__core_time now) {
        assert(config->identity[0] != '\0');
        assert(config->timing.lease_duration > config->timing.renew_deadline);
        assert(config->timing.retry_period > 0 && config->timing.request_timeout > 0);
        assert(config->renew_phase >= 0 && config->renew_phase <= config->timing.retry_period);
        memset(core, 0, sizeof *core);
        core->config = *config;
        core->observed.holder = core->observed.successor = core->observed.hand_over_to = "";
        core->last_holder = core->term_record.previous = core->successor = "";
        core->state = HF_FOLLOWING;
        core->rng = config->seed;
        core->joined = true;
        core->heard_at = core->next_op_at = core->poll_at = core->contend_at =
                core->watch_retry_at = now.boot;
}

/* Appends HF__ACT_REPORT if the state or the holder has changed, or if a collision has begun:
 * another process holds the Lease under our identity. */
static void push_report(struct hf__core *core, enum hf_leader_state old_state,
                        const char *old_holder, struct hf__core_actions *actions) {
        bool collision = hf__core_is_collision(core, &core->observed);
        bool is_new = collision && !core->collision;

        core->collision = collision;
        if (!is_new && core->state == old_state && strcmp(core->observed.holder, old_holder) == 0)
                return;
        hf__core_push_action(actions, HF__ACT_REPORT)->text =
                is_new ? "the Lease is held under this process's identity, but this process did "
                         "not acquire it: another process has, or had, the same identity"
                       : NULL;
}

static void assert_invariants(const struct hf__core *core) {
        assert(core->joined == (core->state == HF_FOLLOWING || core->state == HF_RELEASING ||
                                core->state == HF_STOPPED));
        assert(hf__core_has_valid_term(core) == (core->valid_until != 0));
        assert(!hf__core_has_valid_term(core) || core->term != 0);
        assert(!has_ended(core) || (core->op_kind == HF__OP_NONE && !core->watching));
        (void)core; /* unused when asserts are compiled out */
}

void hf__core_step(struct hf__core *core, const struct hf__core_event *event,
                   struct hf__core_time now, struct hf__core_actions *ret_actions) {
        enum hf_leader_state old_state = core->state;
        const char *old_holder = core->observed.holder; /* exists until the step has ended */
        hf_nsec due_at;

        ret_actions->n = 0;
        ret_actions->wake_at = HF_NSEC_NEVER;
        if (has_ended(core))
                return;
        if (hf__core_has_valid_term(core) && now.boot >= core->valid_until)
                hf__core_abort_term(core, now.boot, "the Lease could not be renewed in time",
                                    ret_actions);
        if (event->op_unsent)
                hf__core_op_withdraw(core, now);
        handle_event(core, event, now, ret_actions);
        apply_record_requests(core, now.boot, ret_actions);
        run_timers(core, event->joins, now, ret_actions);
        due_at = hf__core_start_due_op(core, now, ret_actions);
        due_at = hf__earlier(due_at, update_watch(core, now.boot, ret_actions));
        push_report(core, old_state, old_holder, ret_actions);
        ret_actions->wake_at = next_wake_up(core, due_at);
        assert_invariants(core);
}
