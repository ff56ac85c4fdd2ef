/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the elector's core: which one is due, how it is sent, when it is retried after
 * a failure, and what its outcome means. core.h has the numbered rules.
 *
 * Only hf__core_start_due_op decides what to send. All other code stores what it has learned, and
 * requests operations through must_read, in_doubt and the times at which operations are due.
 *
 * Two kinds of uncertainty are separate:
 *  - must_read: the known record may be outdated. The Lease is read before it is written again.
 *  - in_doubt: the outcome of a write is unknown, so the Lease may name this process. It is cleared
 *    by a later write that succeeds, or by a read which shows that the write cannot be applied any
 *    more (in a release also by one which shows that the Lease is ours). It matters for a stop,
 *    which must not leave the Lease held.
 *
 * Invariants:
 *  - at most one operation is under way, and it has a deadline; while leading, the deadline is not
 *    later than the end of the validity;
 *  - if the first failure in a row is a write after which the Lease must be read, the core reads at
 *    once. After any other failure it waits before it sends again, except after a final read, which
 *    is sent once per expiry. So no sequence of replies makes it send in a tight loop.
 */
#include "leader/core_op.h"

#include <assert.h>
#include <string.h>

#include "leader/core_lease.h"
#include "leader/core_term.h"

/* ---- sending ---- */

/* Whether the Lease must be read before it can be written. */
static bool needs_read(const struct hf__core *core) {
        return core->must_read || !core->observed_once ||
               (core->observed.exists && core->observed.rv[0] == '\0');
}

/* Whether a poll or a final read is under way. No write depends on it, so an acquire may replace
 * it. */
static bool is_optional_read(const struct hf__core *core) {
        return core->op_kind == HF__OP_READ && !core->op_is_required;
}

/*
 * Returns when to renew after a write that is sent now: after a retry period at most, and half of
 * one at least. Each elector has a phase (renew_phase), and its renewals return to that phase
 * within two retry periods. So the renewals of many electors spread out again after a start or an
 * outage that all of them had in common.
 */
static hf_nsec next_renewal_at(const struct hf__core *core, hf_nsec now) {
        hf_nsec period = hf__core_timing(core)->retry_period, phase = core->config.renew_phase;

        if (phase == 0)
                return now + period;
        /* The time until the next phase. `+ period` keeps the remainder from being negative. */
        hf_nsec left = period - (now + period - phase) % period;
        return now + (left < period / 2 ? (left + period) / 2 : left);
}

static void send_op(struct hf__core *core, enum hf__core_op kind, struct hf__core_time now,
                    struct hf__core_actions *actions) {
        struct hf__core_action *action =
                hf__core_push_action(actions, kind == HF__OP_READ ? HF__ACT_READ : HF__ACT_WRITE);

        assert(core->op_kind == HF__OP_NONE || (kind == HF__OP_ACQUIRE && is_optional_read(core)));
        core->op_kind = kind;
        core->op_id = ++core->next_op_id;
        core->op_sent_at = now.boot;
        core->op_deadline = now.boot + hf__core_timing(core)->request_timeout;
        core->op_is_final_read = false;
        core->event_since_send = false;
        /* A write that is applied after the validity has ended would prolong the Lease for a term
         * that is over. */
        if (hf__core_has_valid_term(core))
                core->op_deadline = hf__earlier(core->op_deadline, core->valid_until);
        else if (core->state == HF_RELEASING)
                core->op_deadline = hf__earlier(core->op_deadline, core->deadline.at);
        action->op_id = core->op_id;
        action->deadline = core->op_deadline;
        if (kind == HF__OP_READ) {
                core->op_is_required = needs_read(core);
                core->op_had_must_read = core->must_read;
                core->must_read = false; /* an event during this read may request another one */
                return;
        }
        if (kind == HF__OP_ACQUIRE)
                hf__core_make_acquire(core, now, &action->record);
        else if (kind == HF__OP_RENEW)
                hf__core_make_renewal(core, now, &action->record);
        else
                hf__core_make_release(core, now, &action->record);
        core->renew_at = next_renewal_at(core, now.boot);
        hf__core_keep_write(core, &action->record);
}

/* ---- due operations ---- */

/* Returns when a follower reads the Lease next, if no event arrives before. A working watch reports
 * every renewal, so the Lease is read only after half a lease duration without an event. */
static hf_nsec poll_due_at(const struct hf__core *core) {
        if (!core->watching || !core->watch_reported)
                return core->poll_at;
        return core->heard_at + hf__core_timing(core)->lease_duration / 2;
}

static bool is_handed_to_me(const struct hf__core *core) {
        return core->observed.exists && core->observed.holder[0] == '\0' &&
               strcmp(core->observed.successor, core->config.identity) == 0;
}

/* Returns when the Lease may be acquired, with the hold_back (rule 15). If hf__core_free_at
 * is 0, the hold_back counts from observed_at: at that time this process first saw that the Lease
 * is free, or saw the last renewal by a holder that is dead. */
static hf_nsec acquirable_at(const struct hf__core *core, hf_nsec now) {
        hf_nsec free_at = hf__core_free_at(core);

        if (core->config.coordinated)
                return hf__core_is_named(core, now) ? now : HF_NSEC_NEVER;
        if (core->hold_back == 0 || is_handed_to_me(core) ||
            hf__core_is_written_by_us(core, &core->observed))
                return free_at;
        return hf__later(free_at, core->observed_at) + core->hold_back;
}

/*
 * Returns when to send the final read before an acquire at write_at, or HF_NSEC_NEVER if none is
 * needed. The watch may lag behind a renewal, so the read is sent as late as its reply can still
 * arrive before write_at: it gets a quarter more time than the last operation took, but at least
 * 1/1024 and at most a quarter of a retry period. The read also opens the connection that the
 * acquire will use.
 */
static hf_nsec final_read_at(const struct hf__core *core, hf_nsec write_at) {
        hf_nsec retry = hf__core_timing(core)->retry_period;
        hf_nsec margin = hf__later(core->op_duration + core->op_duration / 4, retry / 1024);
        hf_nsec at = write_at - hf__earlier(margin, retry / 4);
        bool is_wanted = core->observed.holder[0] != '\0' && core->heard_at < at &&
                         core->final_read_for != write_at;

        return is_wanted ? at : HF_NSEC_NEVER;
}

/* Starts the read that must come before any write. Returns as hf__core_start_due_op. */
static hf_nsec start_first_read(struct hf__core *core, struct hf__core_time now,
                                struct hf__core_actions *actions) {
        if (core->op_kind != HF__OP_NONE)
                return HF_NSEC_NEVER;
        if (now.boot < core->next_op_at)
                return core->next_op_at;
        send_op(core, HF__OP_READ, now, actions);
        return HF_NSEC_NEVER;
}

/* Like hf__core_start_due_op. An acquire that is due replaces an optional read under way. */
static hf_nsec start_due_following(struct hf__core *core, struct hf__core_time now,
                                   struct hf__core_actions *actions) {
        hf_nsec write_at, read_at, allowed_at;

        if (needs_read(core))
                return start_first_read(core, now, actions);
        allowed_at = hf__later(core->contend_at, core->settled_at);
        if (!is_handed_to_me(core))
                allowed_at = hf__later(allowed_at, core->yields_until);
        write_at =
                hf__later(acquirable_at(core, now.boot), hf__later(allowed_at, core->next_op_at));
        read_at = hf__later(poll_due_at(core), core->next_op_at);
        if (now.boot >= write_at) {
                send_op(core, HF__OP_ACQUIRE, now, actions);
                return HF_NSEC_NEVER;
        }
        if (core->op_kind != HF__OP_NONE)
                return write_at;
        /* Shortly before the expiry, only a final read is sent. If an ordinary poll failed, the
         * delay after the failure would also delay the acquire. Without a read the acquire is still
         * safe: it conflicts if the record has changed. */
        bool is_final = write_at - read_at <= hf__core_timing(core)->retry_period / 2;
        if (is_final)
                read_at = final_read_at(core, write_at);
        if (now.boot < read_at)
                return hf__earlier(read_at, write_at);
        send_op(core, HF__OP_READ, now, actions);
        core->op_is_final_read = is_final;
        if (is_final)
                core->final_read_for = write_at;
        return write_at;
}

static hf_nsec start_due_leading(struct hf__core *core, struct hf__core_time now,
                                 struct hf__core_actions *actions) {
        bool read = needs_read(core);
        hf_nsec at = read ? core->next_op_at : hf__later(core->renew_at, core->next_op_at);

        /* The coordinator prefers another holder, so the Lease is not renewed any more. The
         * controllers drain within the rest of the validity. */
        if (!read && hf__core_is_other_preferred(core))
                return HF_NSEC_NEVER;
        if (now.boot < at)
                return at;
        send_op(core, read ? HF__OP_READ : HF__OP_RENEW, now, actions);
        return HF_NSEC_NEVER;
}

/* Whether an acquire of ours may still be applied to a Lease that has no holder or has expired
 * (rule 11). A release then uses up the revision that the acquire expects, so that the acquire
 * fails. */
static bool must_invalidate_acquire(const struct hf__core *core, hf_nsec now) {
        return core->in_doubt && !needs_read(core) && hf__core_may_still_apply(core) &&
               hf__core_free_at(core) <= now;
}

/* Whether the Lease names this process, so that nobody else can acquire it before it expires. With
 * a lock of two Leases (two_lease_lock.h) also whether one of them does, or may do so later. */
static bool is_ours(const struct hf__core *core) {
        return core->observed.unsettled || hf__core_is_written_by_us(core, &core->observed);
}

/* Only a Lease that is ours is kept until settled_at (rule 13). If others may acquire it already, a
 * wait would not protect them from the term's writes. */
static hf_nsec start_due_releasing(struct hf__core *core, struct hf__core_time now,
                                   struct hf__core_actions *actions) {
        bool read =
                needs_read(core) || (core->in_doubt && !must_invalidate_acquire(core, now.boot));

        if (!core->in_doubt && !read && !is_ours(core)) {
                hf__core_end_release(core, now.boot, actions);
                return HF_NSEC_NEVER;
        }
        if (now.boot < core->next_op_at)
                return core->next_op_at;
        if (!read && now.boot < core->settled_at && is_ours(core))
                return core->settled_at;
        send_op(core, read ? HF__OP_READ : HF__OP_RELEASE, now, actions);
        return HF_NSEC_NEVER;
}

hf_nsec hf__core_start_due_op(struct hf__core *core, struct hf__core_time now,
                              struct hf__core_actions *actions) {
        hf_nsec at = HF_NSEC_NEVER;

        /* start_due_releasing may end the release and change the state to FOLLOWING. Then an
         * operation of FOLLOWING may be due in the same step. */
        if (core->op_kind == HF__OP_NONE && core->state == HF_RELEASING)
                at = start_due_releasing(core, now, actions);
        if ((core->op_kind == HF__OP_NONE || is_optional_read(core)) && core->state == HF_FOLLOWING)
                at = start_due_following(core, now, actions);
        else if (core->op_kind == HF__OP_NONE && hf__core_has_valid_term(core))
                at = start_due_leading(core, now, actions);
        return at;
}

/* ---- failures ---- */

/*
 * Returns when to try again after a failure. A leader tries sooner when less validity is left, but
 * never in a tight loop. A release has two request timeouts in all, so it waits for half of one at
 * most. The server's Retry-After is respected up to a limit that depends on the state.
 */
static hf_nsec compute_retry_at(struct hf__core *core, hf_nsec now, hf_nsec retry_after) {
        hf_nsec retry = hf__core_timing(core)->retry_period;
        hf_nsec timeout = hf__core_timing(core)->request_timeout;
        hf_nsec left, delay;

        if (hf__core_has_valid_term(core)) {
                left = core->valid_until - now;
                delay = hf__later(hf__earlier(left / 4, retry), retry / 16);
                /* Respect the server's Retry-After only up to half of the remaining validity,
                 * because a later renewal could come too late to save the term. */
                delay = hf__later(delay, hf__earlier(retry_after, left / 2));
        } else if (core->state == HF_RELEASING) {
                delay = hf__earlier(hf__later(retry_after, timeout / 8), timeout / 2);
        } else {
                retry_after = hf__earlier(retry_after, hf__core_timing(core)->lease_duration);
                delay = hf__core_jittered(core, hf__later(retry, retry_after));
        }
        return now + delay;
}

static void on_op_failed(struct hf__core *core, enum hf__core_op kind, int result,
                         hf_nsec retry_after, struct hf__core_time now) {
        assert(core->op_kind == HF__OP_NONE && result != 0);
        if (core->op_is_final_read) /* the acquire is sent with or without it */
                return;
        /* The Lease differs from the known record, or the outcome is unknown: read it first. */
        bool needs_new_read = result == HF_E_CONFLICT || result == HF_E_EXISTS ||
                              result == HF_E_NOT_FOUND || result == HF_E_TIMEOUT;

        core->n_failures++;
        if (kind == HF__OP_READ) {
                core->must_read = core->must_read || core->op_is_required;
        } else {
                /* A lock (lock_port.h) reports an unknown outcome as HF_E_TIMEOUT. The other three
                 * kinds of error say nothing about the Lease: they come from this process, its
                 * connection, or a server that is not available. They count too: at worst a stop
                 * reads the Lease once more. */
                if (result < 0 || result == HF_E_TIMEOUT || result == HF_E_UNAVAILABLE ||
                    result == HF_E_CANCELED)
                        core->in_doubt = true;
                if (needs_new_read) {
                        core->must_read = true;
                        core->renew_at = now.boot;
                }
        }
        if (kind != HF__OP_READ && needs_new_read && core->n_failures == 1)
                core->next_op_at = now.boot;
        else
                core->next_op_at = compute_retry_at(core, now.boot, retry_after);
        if (kind != HF__OP_READ && !needs_new_read)
                core->renew_at = core->next_op_at;
}

void hf__core_op_expire(struct hf__core *core, struct hf__core_time now) {
        enum hf__core_op kind = core->op_kind;

        if (kind == HF__OP_NONE || now.boot < core->op_deadline)
                return;
        core->op_kind = HF__OP_NONE;
        if (kind == HF__OP_READ)
                core->poll_at =
                        now.boot + hf__core_jittered(core, hf__core_timing(core)->retry_period);
        on_op_failed(core, kind, HF_E_TIMEOUT, 0, now);
}

/* Of the operation's own members clears only op_kind, because the next operation overwrites the
 * others. Until then op_write counts as a write that was sent, although this one was not. */
void hf__core_op_withdraw(struct hf__core *core, struct hf__core_time now) {
        enum hf__core_op kind = core->op_kind;

        core->op_kind = HF__OP_NONE;
        if (kind == HF__OP_READ) {
                core->must_read = core->must_read || core->op_had_must_read;
                if (core->op_is_final_read)
                        core->final_read_for = 0;
        } else if (kind != HF__OP_NONE) {
                core->renew_at = now.boot;
        }
}

/* ---- the outcome of a write ---- */

static void keep_term_record(struct hf__core *core) {
        const struct hf__core_write *write = &core->op_write;

        core->term_record.acquire_us = write->acquire_us;
        core->term_record.duration_s = write->duration_s;
        core->term_record.cause = write->cause;
        core->term_record.gap_us = write->gap_us;
}

static void on_acquired(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                        struct hf__core_actions *actions) {
        bool has_order = record->rv_number != 0 && core->observed.rv_number != 0;

        assert(core->joined && core->op_write.has_holder);
        keep_term_record(core);
        bool is_newest = hf__core_observe(core, record, now);
        /* A stop arrived while the acquire was under way: the Lease is released again. */
        if (core->state != HF_FOLLOWING)
                return;
        /* The watch may already have reported a newer record: somebody has replaced, cleared or
         * deleted ours. Or the server has answered with another record than the one it was sent:
         * if that one is free, the core must not acquire again and again. */
        if (!hf__core_is_current_term(core, &core->observed)) {
                if (is_newest)
                        core->next_op_at = compute_retry_at(core, now, 0);
                return;
        }
        /* Without numeric revisions it is unknown whether the record of the event is newer. */
        if (core->event_since_send && !has_order)
                core->must_read = true;
        if (now >= core->op_sent_at + hf__core_timing(core)->renew_deadline) {
                /* Validity counts from the send time, so the term would be over already: acquire
                 * again. */
                core->next_op_at = compute_retry_at(core, now, 0);
                return;
        }
        hf__core_start_term(core, now, record, actions);
}

static void on_renewed(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                       struct hf__core_actions *actions) {
        hf_nsec valid_until = core->op_sent_at + hf__core_timing(core)->renew_deadline;

        hf__core_observe(core, record, now);
        /* The term ended while the renewal was under way, and a renewal never revives a term. */
        if (!hf__core_has_valid_term(core))
                return;
        if (!hf__core_is_current_term(core, &core->observed)) {
                hf__core_lose_lease(core, now, true, actions);
                return;
        }
        if (valid_until <= core->valid_until)
                return;
        core->valid_until = valid_until;
        hf__core_push_action(actions, HF__ACT_EXTEND)->valid_until = valid_until;
}

/* If the Lease is ours even now, the server has answered with another record than the one it was
 * sent. The release is repeated, but not at once. */
static void on_released(struct hf__core *core, const struct hf__record *record, hf_nsec now) {
        hf__core_observe(core, record, now);
        if (core->state == HF_RELEASING && is_ours(core))
                core->next_op_at = compute_retry_at(core, now, 0);
}

static void on_write_done(struct hf__core *core, enum hf__core_op kind,
                          const struct hf__core_event *event, struct hf__core_time now,
                          struct hf__core_actions *actions) {
        if (event->result != 0) {
                on_op_failed(core, kind, event->result, event->retry_after, now);
                if (event->result == HF_E_NOT_FOUND && hf__core_has_valid_term(core))
                        hf__core_lose_lease(core, now.boot, false, actions);
                return;
        }
        core->n_failures = 0;
        /* This write has changed the revision, so an earlier write of unknown outcome cannot be
         * applied any more. */
        core->in_doubt = false;
        core->next_op_at = now.boot;
        if (kind == HF__OP_ACQUIRE)
                on_acquired(core, &event->record, now.boot, actions);
        else if (kind == HF__OP_RENEW)
                on_renewed(core, &event->record, now.boot, actions);
        else
                on_released(core, &event->record, now.boot);
}

/* ---- the outcome of a read ---- */

static void on_read_done(struct hf__core *core, const struct hf__core_event *event,
                         struct hf__core_time now, struct hf__core_actions *actions) {
        bool found = event->result == 0;

        core->poll_at = now.boot + hf__core_jittered(core, hf__core_timing(core)->retry_period);
        if (!found && event->result != HF_E_NOT_FOUND) {
                on_op_failed(core, HF__OP_READ, event->result, event->retry_after, now);
                return;
        }
        /* After several failures in a row, a successful read must not cancel their delay: the read
         * begins a new one. If the Lease has expired, a final read comes shortly before the end of
         * the delay. It leaves the delay as it is: with a new delay, each final read would put the
         * acquire off, and another final read would follow. */
        if (core->n_failures <= 1)
                core->next_op_at = now.boot;
        else if (!core->op_is_final_read)
                core->next_op_at = compute_retry_at(core, now.boot, 0);
        if (!hf__core_observe_read(core, found ? &event->record : NULL, now.boot))
                return;
        /* A Lease without a revision cannot be written, so it is read again; but not at once,
         * because the server may never give a revision. */
        if (core->observed.exists && core->observed.rv[0] == '\0')
                core->next_op_at = compute_retry_at(core, now.boot, 0);
        /* The doubt ends if the read shows that the last write can no longer be applied. In a
         * release it also ends if the Lease is ours, because the release gives it up anyway. */
        if (!hf__core_may_still_apply(core) ||
            (core->state == HF_RELEASING && hf__core_is_written_by_us(core, &core->observed)))
                core->in_doubt = false;
        /* The acquire in doubt can only be made to fail when the Lease is free (rule 11). Until
         * then the core reads at intervals. */
        if (core->state == HF_RELEASING && core->in_doubt && hf__core_free_at(core) > now.boot)
                core->next_op_at = compute_retry_at(core, now.boot, 0);
        if (!hf__core_has_valid_term(core) && hf__core_free_at(core) > now.boot)
                core->n_failures = 0; /* another process holds the Lease, or is to take it */
        if (hf__core_has_valid_term(core) && !hf__core_is_current_term(core, &core->observed))
                hf__core_lose_lease(core, now.boot, found, actions);
}

void hf__core_op_done(struct hf__core *core, const struct hf__core_event *event,
                      struct hf__core_time now, struct hf__core_actions *actions) {
        enum hf__core_op kind = core->op_kind;

        if (kind == HF__OP_NONE || event->op_id != core->op_id)
                return; /* the core has given this operation up */
        core->op_kind = HF__OP_NONE;
        core->op_duration = now.boot - core->op_sent_at;
        if (kind == HF__OP_READ)
                on_read_done(core, event, now, actions);
        else
                on_write_done(core, kind, event, now, actions);
}
