/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elector's state machine; the model is in the header. How a step runs:
 *
 *   1. validity: a term whose validity is over ends before anything else is looked at, also the
 * event;
 *   2. the event changes what is known, and may change the state;
 *   3. the timers: the operation's deadline, drain deadline, stop grace, release bound;
 *   4. drive: with no operation under way, start the one that is due; (re)open the watch;
 *   5. the wake-up is the earliest instant at which 1, 3 or 4 would do something.
 *
 * So each event handler only notes and marks (must_read, next_op_at); what to send is decided in
 * one place, `drive`.
 *
 * Two doubts are kept apart. must_read: what I know of the Lease may be wrong, read before writing.
 * in_doubt: a write of mine may have been applied without my knowing, so that the Lease may bear my
 * name; only a read settles it before a stop.
 *
 * Pacing: the first failure in a row is followed up at once (a conflict is read, a lost reply too),
 * further ones wait, so that no pair of answers, however odd, makes a loop at network speed.
 */
#include "leader/elector_core.h"

#include <string.h>

#include "leader/elector_core_lease.h"

enum { OP_NONE, OP_READ, OP_ACQUIRE, OP_RENEW, OP_RELEASE };

static const struct hf_leader_timing *timing_of(const struct hf__core *core) {
        return &core->config.timing;
}
static bool leads(const struct hf__core *core) {
        return core->state == HF_LEADING || core->state == HF_DRAINING;
}
static bool ended(const struct hf__core *core) {
        return core->state == HF_STOPPED || core->state == HF_STUCK;
}
static hf_nsec earlier(hf_nsec a, hf_nsec b) { return a < b ? a : b; }
static hf_nsec later(hf_nsec a, hf_nsec b) { return a > b ? a : b; }

/* splitmix64: any seed will do, and the same seed gives the same run. */
static uint64_t draw(struct hf__core *core) {
        uint64_t z = core->rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* duration x [1, 1.2) */
static hf_nsec jittered(struct hf__core *core, hf_nsec duration) {
        return duration + (hf_nsec)(draw(core) % (uint64_t)(duration / 5 + 1));
}

static struct hf__core_action *push(struct hf__core_actions *actions,
                                    enum hf__core_action_type type) {
        struct hf__core_action *action = &actions->list[0];

        /* The gate shuts before anything else of the step is carried out. */
        if (type == HF__ACT_GATE_SHUT)
                memmove(&actions->list[1], &actions->list[0], actions->n * sizeof actions->list[0]);
        else
                action = &actions->list[actions->n];
        actions->n++;
        memset(action, 0, offsetof(struct hf__core_action, record));
        action->type = type;
        return action;
}

/* ---- the end of a term ---- */

static void enter_following(struct hf__core *core, hf_nsec contend_at) {
        core->state = HF_FOLLOWING;
        core->contend_at = contend_at;
        core->hand_over_asked = false;
        core->successor[0] = '\0';
        core->n_failures = 0;
        core->poll_at = core->heard_at;
}

static void enter_releasing(struct hf__core *core, hf_nsec now) {
        core->state = HF_RELEASING;
        core->release_until = now + 2 * timing_of(core)->request_timeout;
        core->next_op_at = now;
        core->n_failures = 0;
        /* What is under way may be heard out, but a hung request leaves half the time to settle the
         * matter. */
        if (core->op_kind != OP_NONE)
                core->op_deadline =
                        earlier(core->op_deadline, now + timing_of(core)->request_timeout / 2);
}

/* After n short terms in a row: retry_period x 2^(n-1), at most a lease duration; none after a
 * stable term. */
static hf_nsec backoff(struct hf__core *core) {
        hf_nsec delay = timing_of(core)->retry_period;

        if (core->n_short_terms == 0)
                return 0;
        for (unsigned n = core->n_short_terms; n > 1 && delay < timing_of(core)->lease_duration;
             n--)
                delay *= 2;
        return jittered(core, earlier(delay, timing_of(core)->lease_duration));
}

static void after_join(struct hf__core *core, hf_nsec now) {
        core->joined = true;
        core->term = 0;
        core->valid_until = 0;
        if (core->stop_asked || core->hand_over_asked)
                enter_releasing(core, now);
        else
                enter_following(core, now + backoff(core));
}

static void abort_term(struct hf__core *core, hf_nsec now, const char *why,
                       struct hf__core_actions *actions) {
        push(actions, HF__ACT_GATE_SHUT);
        push(actions, HF__ACT_TERM_ABORT)->text = why;
        core->state = HF_ABORTING;
        core->abort_at = now;
        core->valid_until = 0;
        core->last_end = why;
        if (now - core->term_started_at < timing_of(core)->lease_duration)
                core->n_short_terms++;
        else
                core->n_short_terms = 0;
}

static void begin_drain(struct hf__core *core, hf_nsec now, const char *why,
                        struct hf__core_actions *actions) {
        push(actions, HF__ACT_TERM_DRAIN);
        core->state = HF_DRAINING;
        core->drain_until = now + timing_of(core)->drain_deadline;
        core->last_end = why;
        if (now - core->term_started_at >= timing_of(core)->lease_duration)
                core->n_short_terms = 0;
}

static void stop(struct hf__core *core, bool released, struct hf__core_actions *actions) {
        core->state = HF_STOPPED;
        core->op_kind = OP_NONE;
        if (core->watching)
                push(actions, HF__ACT_UNWATCH);
        core->watching = false;
        push(actions, HF__ACT_STOPPED)->released = released;
}

static void end_release(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        core->op_kind = OP_NONE;
        if (core->stop_asked)
                stop(core,
                     !core->in_doubt && !core->observed.unsettled &&
                             !hf__core_is_own(core, &core->observed),
                     actions);
        else { /* handed over: the successor has the first word, and the others the second */
                enter_following(core, now);
                core->yields_until = now + 2 * timing_of(core)->retry_period;
        }
}

/* ---- operations ---- */

/* What is known of the Lease is not enough to write: read first. */
static bool unknown(const struct hf__core *core) {
        return core->must_read || !core->observed_once ||
               (core->observed.exists && core->observed.rv[0] == '\0');
}

static void send_op(struct hf__core *core, int kind, struct hf__core_time now,
                    struct hf__core_actions *actions) {
        struct hf__core_action *action =
                push(actions, kind == OP_READ ? HF__ACT_READ : HF__ACT_WRITE);

        core->op_kind = kind;
        core->op_id = ++core->next_op_id;
        core->op_sent_at = now.boot;
        core->op_deadline = now.boot + timing_of(core)->request_timeout;
        core->op_looks = false;
        core->event_since_send = false;
        if (leads(core))
                core->op_deadline = earlier(core->op_deadline, core->valid_until);
        else if (core->state == HF_RELEASING)
                core->op_deadline = earlier(core->op_deadline, core->release_until);
        action->op_id = core->op_id;
        action->deadline = core->op_deadline;
        if (kind == OP_READ) {
                core->op_settles = unknown(core);
                core->must_read = false; /* what comes up from now on needs another read */
                return;
        }
        if (kind == OP_ACQUIRE)
                hf__core_make_acquire(core, now, &core->op_record);
        else if (kind == OP_RENEW)
                hf__core_make_renewal(core, now, &core->op_record);
        else
                hf__core_make_release(core, now, &core->op_record);
        core->renew_at = now.boot + timing_of(core)->retry_period;
        action->record = core->op_record;
}

/* When to try again after a failure: sooner the less validity is left, never at network speed, and
 * as late as asked. */
static hf_nsec pace(struct hf__core *core, hf_nsec now, hf_nsec retry_after) {
        hf_nsec retry = timing_of(core)->retry_period;
        hf_nsec left, delay;

        if (leads(core)) {
                left = core->valid_until - now;
                delay = later(earlier(left / 4, retry), retry / 16);
                /* A server may ask for patience, but a term is not given up without another try. */
                delay = later(delay, earlier(retry_after, left / 2));
        } else if (core->state == HF_RELEASING) {
                delay = earlier(later(retry_after, timing_of(core)->request_timeout / 8),
                                timing_of(core)->request_timeout / 2);
        } else {
                delay = jittered(core, later(retry, earlier(retry_after,
                                                            timing_of(core)->lease_duration)));
        }
        return now + delay;
}

static void op_failed(struct hf__core *core, int kind, int result, hf_nsec retry_after,
                      struct hf__core_time now) {
        if (core->op_looks) /* nothing depends on it */
                return;
        bool odd = result == HF_E_CONFLICT || result == HF_E_EXISTS || result == HF_E_NOT_FOUND ||
                   result == HF_E_TIMEOUT;

        core->n_failures++;
        if (kind == OP_READ) {
                core->must_read = core->must_read || core->op_settles;
        } else {
                if (result < 0 || result == HF_E_TIMEOUT || result == HF_E_UNAVAILABLE ||
                    result == HF_E_CANCELED)
                        core->in_doubt = true;
                if (odd) {
                        core->must_read = true;
                        core->renew_at = now.boot;
                }
        }
        if (kind != OP_READ && odd && core->n_failures == 1)
                core->next_op_at = now.boot;
        else
                core->next_op_at = pace(core, now.boot, retry_after);
        if (kind != OP_READ && !odd)
                core->renew_at = core->next_op_at;
}

static void start_term(struct hf__core *core, hf_nsec now, const struct hf__record *record,
                       struct hf__core_actions *actions) {
        struct hf__core_action *action;

        core->state = HF_LEADING;
        core->n_terms++;
        /* A foreign server's revision that is no number makes no fence; the term then only counts.
         */
        core->term = record->term        ? record->term
                     : record->rv_number ? record->rv_number
                                         : core->n_terms;
        core->term_started_at = now;
        core->joined = false;
        core->valid_until = core->op_sent_at + timing_of(core)->renew_deadline;
        action = push(actions, HF__ACT_TERM_START);
        action->term = core->term;
        action->valid_until = core->valid_until;
        action->record = *record;
}

static void acquired(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                     struct hf__core_actions *actions) {
        bool ordered = record->rv_number != 0 && core->observed.rv_number != 0;

        core->mine = core->op_record;
        hf__core_learn(core, record, now);
        if (core->state != HF_FOLLOWING) /* a stop overtook it: what was taken is released */
                return;
        /* The watch may know more than the reply: then somebody has overwritten what I have just
         * taken. */
        if (!hf__core_is_mine(core, &core->observed))
                return;
        if (core->event_since_send && !ordered)
                core->must_read = true;
        if (now >= core->op_sent_at + timing_of(core)->renew_deadline) {
                core->next_op_at =
                        pace(core, now, 0); /* too late to be worth anything: acquire anew */
                return;
        }
        start_term(core, now, record, actions);
}

static void renewed(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                    struct hf__core_actions *actions) {
        hf_nsec valid_until = core->op_sent_at + timing_of(core)->renew_deadline;

        hf__core_learn(core, record, now);
        if (!leads(core)) /* the term ended meanwhile; this only keeps the others waiting */
                return;
        if (!hf__core_is_mine(core, &core->observed)) {
                abort_term(core, now, "the Lease's record was changed by somebody else", actions);
                return;
        }
        if (valid_until <= core->valid_until)
                return;
        core->valid_until = valid_until;
        push(actions, HF__ACT_EXTEND)->valid_until = valid_until;
}

static void write_done(struct hf__core *core, int kind, const struct hf__core_event *event,
                       struct hf__core_time now, struct hf__core_actions *actions) {
        if (event->result) {
                op_failed(core, kind, event->result, event->retry_after, now);
                if (event->result == HF_E_NOT_FOUND && leads(core))
                        abort_term(core, now.boot, "the Lease was deleted", actions);
                return;
        }
        core->n_failures = 0;
        core->in_doubt = false; /* an earlier write cannot be applied after this one: the revision
                                   it expects is gone */
        core->next_op_at = now.boot;
        if (kind == OP_ACQUIRE)
                acquired(core, &event->record, now.boot, actions);
        else if (kind == OP_RENEW)
                renewed(core, &event->record, now.boot, actions);
        else
                hf__core_learn(core, &event->record, now.boot);
}

static void read_done(struct hf__core *core, const struct hf__core_event *event,
                      struct hf__core_time now, struct hf__core_actions *actions) {
        bool found = event->result == 0;

        core->poll_at = now.boot + jittered(core, timing_of(core)->retry_period);
        if (!found && event->result != HF_E_NOT_FOUND) {
                op_failed(core, OP_READ, event->result, event->retry_after, now);
                return;
        }
        if (core->n_failures <=
            1) /* else a failed write has set a pace that its read does not undo */
                core->next_op_at = now.boot;
        else
                core->next_op_at = pace(core, now.boot, 0);
        if (!hf__core_learn_read(core, found ? &event->record : NULL, now.boot))
                return;
        if (!hf__core_may_still_apply(core) ||
            (core->state == HF_RELEASING && hf__core_is_own(core, &core->observed)))
                core->in_doubt = false;
        if (core->state == HF_RELEASING && core->in_doubt && hf__core_free_at(core) > now.boot)
                core->next_op_at = pace(core, now.boot, 0);
        if (!leads(core) && hf__core_free_at(core) > now.boot)
                core->n_failures = 0; /* somebody else has it: that contest is over */
        if (!leads(core) || hf__core_is_mine(core, &core->observed))
                return;
        abort_term(core, now.boot,
                   found ? "the Lease's record was changed by somebody else"
                         : "the Lease was deleted",
                   actions);
}

static void op_done(struct hf__core *core, const struct hf__core_event *event,
                    struct hf__core_time now, struct hf__core_actions *actions) {
        int kind = core->op_kind;

        if (kind == OP_NONE || event->op_id != core->op_id)
                return; /* the answer to an operation that was given up */
        core->op_kind = OP_NONE;
        core->op_took = now.boot - core->op_sent_at;
        if (kind == OP_READ)
                read_done(core, event, now, actions);
        else
                write_done(core, kind, event, now, actions);
}

/* ---- events ---- */

static void watched(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                    struct hf__core_actions *actions) {
        if (core->state != HF_FOLLOWING &&
            (record->rv_number == 0 || core->observed.rv_number == 0)) {
                /* It cannot be told whether this is older than my own last write, which a release
                 * has to know too. */
                core->heard_at = now;
                if (!hf__core_is_mine(core, record))
                        core->must_read = true;
                return;
        }
        if (!hf__core_learn(core, record, now))
                return;
        core->event_since_send = true;
        if (leads(core) && !hf__core_is_mine(core, record))
                abort_term(core, now,
                           record->exists ? "the Lease's record was changed by somebody else"
                                          : "the Lease was deleted",
                           actions);
}

/* What was known of the Lease may be wrong, and the read that settles it is yet to be sent or
 * answered; or only a release settles it. */
static bool is_unsettled(const struct hf__core *core) {
        return core->observed.unsettled || core->must_read ||
               (core->op_kind == OP_READ && core->op_settles && core->observed_once);
}

static void stop_asked(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        core->stop_asked = true;
        if (core->state == HF_LEADING) {
                begin_drain(core, now, "stopped", actions);
        } else if (core->state ==
                   HF_RELEASING) { /* for a hand-over, whose time may be all but over */
                core->release_until = now + 2 * timing_of(core)->request_timeout;
        } else if (core->state == HF_FOLLOWING) {
                if (core->op_kind == OP_ACQUIRE || core->in_doubt || is_unsettled(core) ||
                    hf__core_is_own(core, &core->observed))
                        enter_releasing(core, now);
                else
                        stop(core, true, actions);
        }
}

static void hand_over_asked(struct hf__core *core, const char *successor, hf_nsec now,
                            struct hf__core_actions *actions) {
        if (core->state != HF_LEADING || strcmp(successor, core->config.identity) == 0)
                return;
        core->hand_over_asked = true;
        strcpy(core->successor, successor);
        begin_drain(core, now, successor[0] ? "handed over" : "stepped down", actions);
}

static void joined(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        if (core->state == HF_DRAINING)
                push(actions, HF__ACT_GATE_SHUT);
        else if (core->state != HF_ABORTING && core->state != HF_DRAINING)
                return;
        after_join(core, now);
}

/*
 * The store's history may be another. A revision that I know may have been issued anew, for another
 * record, and smaller ones may be newer; an answer under way may be from before. So nothing counts
 * until a read that is sent from now on.
 */
static void doubt_all(struct hf__core *core) {
        if (core->op_kind != OP_NONE && core->op_kind != OP_READ)
                core->in_doubt = true;
        core->op_kind = OP_NONE;
        core->must_read = true;
        core->observed.rv_number = 0;
}

static void handle(struct hf__core *core, const struct hf__core_event *event,
                   struct hf__core_time now, struct hf__core_actions *actions) {
        switch (event->type) {
        case HF__EV_TICK: break;
        case HF__EV_READ_DONE:
        case HF__EV_WRITE_DONE: op_done(core, event, now, actions); break;
        case HF__EV_WATCHED:
                if (!core->watching)
                        break;
                core->watch_told = true;
                watched(core, &event->record, now.boot, actions);
                break;
        case HF__EV_WATCH_LOST:
                core->watching = false;
                core->watch_retry_at = later(core->watch_retry_at, now.boot);
                core->poll_at =
                        later(now.boot,
                              core->heard_at + jittered(core, timing_of(core)->retry_period));
                break;
        case HF__EV_STOP: stop_asked(core, now.boot, actions); break;
        case HF__EV_HAND_OVER: hand_over_asked(core, event->successor, now.boot, actions); break;
        case HF__EV_JOINED: joined(core, now.boot, actions); break;
        case HF__EV_STALE_TERM:
                doubt_all(core);
                if (leads(core))
                        abort_term(core, now.boot, "a write was refused: the term is stale",
                                   actions);
                break;
        }
}

/* ---- timers ---- */

static void run_timers(struct hf__core *core, struct hf__core_time now,
                       struct hf__core_actions *actions) {
        int kind = core->op_kind;

        if (core->state == HF_DRAINING && now.boot >= core->drain_until)
                abort_term(core, now.boot, "the drain deadline passed", actions);
        if (core->state == HF_ABORTING &&
            now.boot >= core->abort_at + timing_of(core)->stop_grace) {
                core->state = HF_STUCK;
                core->op_kind = OP_NONE;
                if (core->watching)
                        push(actions, HF__ACT_UNWATCH);
                core->watching = false;
                push(actions, HF__ACT_STUCK);
                return;
        }
        if (kind != OP_NONE && core->op_kind == kind && now.boot >= core->op_deadline) {
                core->op_kind = OP_NONE;
                if (kind == OP_READ)
                        core->poll_at = now.boot + jittered(core, timing_of(core)->retry_period);
                op_failed(core, kind, HF_E_TIMEOUT, 0, now);
        }
        if (core->state == HF_RELEASING && now.boot >= core->release_until) {
                core->in_doubt = core->in_doubt || core->op_kind != OP_NONE;
                end_release(core, now.boot, actions);
        }
}

/* ---- what to send ---- */

/* When a follower wants to hear of the Lease again if it has not heard of it. */
static hf_nsec listen_at(const struct hf__core *core) {
        if (!core->watching || !core->watch_told)
                return core->poll_at;
        return core->heard_at + timing_of(core)->lease_duration / 2;
}

/* A read under way that settles nothing. */
static bool is_look(const struct hf__core *core) {
        return core->op_kind == OP_READ && !core->op_settles;
}

static hf_nsec takeable_at(const struct hf__core *core, hf_nsec now) {
        if (!core->config.coordinated)
                return hf__core_free_at(core);
        return hf__core_is_named(core, now) ? now : HF_NSEC_NEVER;
}

/*
 * A last look at a Lease that is about to expire, as late as its answer may still come in time: the
 * watch may lag behind a renewal, and what the acquire will go through (threads, connection, the
 * store) is awake then.
 */
static hf_nsec look_at(const struct hf__core *core, hf_nsec write_at) {
        hf_nsec retry = timing_of(core)->retry_period;
        hf_nsec at = write_at -
                     earlier(later(core->op_took + core->op_took / 4, retry / 1024), retry / 4);

        return core->observed.holder[0] && core->heard_at < at && core->looked_for != write_at
                       ? at
                       : HF_NSEC_NEVER;
}

static bool is_handed_to_me(const struct hf__core *core) {
        return core->observed.exists && !core->observed.holder[0] &&
               strcmp(core->observed.successor, core->config.identity) == 0;
}

/* Starts the operation that is due and returns HF_NSEC_NEVER, or returns when one will be. A mere
 * look is given up for an acquire. */
static hf_nsec drive_following(struct hf__core *core, struct hf__core_time now,
                               struct hf__core_actions *actions) {
        hf_nsec write_at, read_at, allowed_at;

        if (unknown(core)) {
                if (core->op_kind != OP_NONE)
                        return HF_NSEC_NEVER;
                if (now.boot < core->next_op_at)
                        return core->next_op_at;
                send_op(core, OP_READ, now, actions);
                return HF_NSEC_NEVER;
        }
        allowed_at = is_handed_to_me(core) ? core->contend_at
                                           : later(core->contend_at, core->yields_until);
        write_at = later(takeable_at(core, now.boot), later(allowed_at, core->next_op_at));
        read_at = later(listen_at(core), core->next_op_at);
        if (now.boot >= write_at) {
                send_op(core, OP_ACQUIRE, now, actions);
                return HF_NSEC_NEVER;
        }
        if (core->op_kind != OP_NONE)
                return write_at;
        /* Not long before the Lease expires: a failure's pace would delay the acquire, whose
         * condition tells the same. */
        bool looks = write_at - read_at <= timing_of(core)->retry_period / 2;
        if (looks)
                read_at = look_at(core, write_at);
        if (now.boot < read_at)
                return earlier(read_at, write_at);
        send_op(core, OP_READ, now, actions);
        core->op_looks = looks;
        if (looks)
                core->looked_for = write_at;
        return write_at;
}

/* A coordinator prefers another holder and waits for this one to end. */
static bool is_let_go(const struct hf__core *core) {
        return core->config.coordinated && core->observed.preferred;
}

static hf_nsec drive_leading(struct hf__core *core, struct hf__core_time now,
                             struct hf__core_actions *actions) {
        bool read = unknown(core);
        hf_nsec at = read ? core->next_op_at : later(core->renew_at, core->next_op_at);

        if (!read && is_let_go(core))
                return HF_NSEC_NEVER; /* the validity that is left is what the work has to end in */
        if (now.boot < at)
                return at;
        send_op(core, read ? OP_READ : OP_RENEW, now, actions);
        return HF_NSEC_NEVER;
}

/* An acquire of mine may yet be applied to a Lease that may be taken: a release over it takes the
 * acquire's condition away. */
static bool must_outdate(const struct hf__core *core, hf_nsec now) {
        return core->in_doubt && !unknown(core) && hf__core_may_still_apply(core) &&
               hf__core_free_at(core) <= now;
}

static hf_nsec drive_releasing(struct hf__core *core, struct hf__core_time now,
                               struct hf__core_actions *actions) {
        bool read = unknown(core) || (core->in_doubt && !must_outdate(core, now.boot));

        if (!core->in_doubt && !read && !core->observed.unsettled &&
            !hf__core_is_own(core, &core->observed)) {
                end_release(core, now.boot, actions);
                return HF_NSEC_NEVER;
        }
        if (now.boot < core->next_op_at)
                return core->next_op_at;
        send_op(core, read ? OP_READ : OP_RELEASE, now, actions);
        return HF_NSEC_NEVER;
}

static hf_nsec drive(struct hf__core *core, struct hf__core_time now,
                     struct hf__core_actions *actions) {
        hf_nsec at = HF_NSEC_NEVER;

        if (core->op_kind == OP_NONE && core->state == HF_RELEASING)
                at = drive_releasing(core, now, actions); /* may leave the state */
        if ((core->op_kind == OP_NONE || is_look(core)) && core->state == HF_FOLLOWING)
                at = drive_following(core, now, actions);
        else if (core->op_kind == OP_NONE && leads(core))
                at = drive_leading(core, now, actions);
        if (!core->watching && !ended(core)) {
                if (now.boot >= core->watch_retry_at) {
                        core->watching = true;
                        core->watch_told = false;
                        core->watch_retry_at = now.boot + timing_of(core)->retry_period;
                        push(actions, HF__ACT_WATCH);
                } else {
                        at = earlier(at, core->watch_retry_at);
                }
        }
        return at;
}

static hf_nsec wake_at(const struct hf__core *core, hf_nsec drive_at) {
        hf_nsec at = drive_at;

        if (core->op_kind != OP_NONE)
                at = earlier(at, core->op_deadline);
        if (leads(core))
                at = earlier(at, core->valid_until);
        if (core->state == HF_DRAINING)
                at = earlier(at, core->drain_until);
        if (core->state == HF_ABORTING)
                at = earlier(at, core->abort_at + timing_of(core)->stop_grace);
        if (core->state == HF_RELEASING)
                at = earlier(at, core->release_until);
        return at;
}

/* ---- the machine ---- */

void hf__core_init(struct hf__core *core, const struct hf__core_config *config,
                   struct hf__core_time now) {
        memset(core, 0, sizeof *core);
        core->config = *config;
        core->state = HF_FOLLOWING;
        core->rng = config->seed;
        core->joined = true;
        core->heard_at = core->next_op_at = core->poll_at = core->contend_at =
                core->watch_retry_at = now.boot;
}

/* What the record asks of its holder. */
static void heed(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions) {
        if (core->state != HF_LEADING || !hf__core_is_mine(core, &core->observed))
                return;
        if (is_let_go(core)) { /* handed over to whom the coordinator names next */
                core->hand_over_asked = true;
                core->successor[0] = '\0';
                begin_drain(core, now, "another holder is preferred", actions);
        } else if (core->observed.hand_over_to[0] != '\0') {
                hand_over_asked(core, core->observed.hand_over_to, now, actions);
        }
}

static void report(struct hf__core *core, enum hf_leader_state old_state, const char *old_holder,
                   struct hf__core_actions *actions) {
        bool twin = hf__core_is_twin(core, &core->observed), new_twin = twin && !core->twin;

        core->twin = twin;
        if (!new_twin && core->state == old_state && strcmp(core->observed.holder, old_holder) == 0)
                return;
        push(actions, HF__ACT_REPORT)->text =
                new_twin ? "the Lease bears this identity but was not taken by this process: "
                           "another one goes by it, or did"
                         : NULL;
}

void hf__core_step(struct hf__core *core, const struct hf__core_event *event,
                   struct hf__core_time now, struct hf__core_actions *ret_actions) {
        enum hf_leader_state old_state = core->state;
        char old_holder[HF_IDENTITY_MAX + 1];
        hf_nsec drive_at;

        ret_actions->n = 0;
        ret_actions->wake_at = HF_NSEC_NEVER;
        if (ended(core))
                return;
        strcpy(old_holder, core->observed.holder);
        if (leads(core) && now.boot >= core->valid_until)
                abort_term(core, now.boot, "the Lease could not be renewed in time", ret_actions);
        handle(core, event, now, ret_actions);
        heed(core, now.boot, ret_actions);
        run_timers(core, now, ret_actions);
        drive_at = drive(core, now, ret_actions);
        report(core, old_state, old_holder, ret_actions);
        ret_actions->wake_at = wake_at(core, drive_at);
}
