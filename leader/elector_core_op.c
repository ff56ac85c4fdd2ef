/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the elector's core, in the order of their life: what is due, sending, the pace
 * after a failure, the outcome of a write, the outcome of a read.
 *
 * What to send is decided in one place, hf__core_start_due_op. Everything else only notes what it
 * learned and marks what is needed: must_read, in_doubt, next_op_at, renew_at.
 *
 * Two doubts are kept apart:
 *  - must_read: what is known of the Lease may be wrong. Read before writing.
 *  - in_doubt: a write of ours may have been applied without our knowledge, so the Lease may name
 *    us. Before a stop only a read, or a later write, settles that.
 *
 * Invariants:
 *  - at most one operation is under way, and it has a deadline; while leading, the deadline is not
 *    later than the end of the validity;
 *  - the first failure in a row is followed up at once (a conflict, or a lost reply, by a read);
 *    later ones wait. So no series of replies makes the core send at network speed.
 */
#include "leader/elector_core_op.h"

#include <assert.h>
#include <string.h>

#include "leader/elector_core_lease.h"
#include "leader/elector_core_term.h"

/* ---- sending ---- */

/* Not enough is known of the Lease to write it: read first. */
static bool needs_read(const struct hf__core *core) {
        return core->must_read || !core->observed_once ||
               (core->observed.exists && core->observed.rv[0] == '\0');
}

/* A poll or a final read is under way. Nothing depends on it, so an acquire may replace it. */
static bool is_mere_poll(const struct hf__core *core) {
        return core->op_kind == HF__OP_READ && !core->op_resolves_doubt;
}

static void send_op(struct hf__core *core, enum hf__core_op kind, struct hf__core_time now,
                    struct hf__core_actions *actions) {
        struct hf__core_action *action =
                hf__core_push(actions, kind == HF__OP_READ ? HF__ACT_READ : HF__ACT_WRITE);

        assert(core->op_kind == HF__OP_NONE || (kind == HF__OP_ACQUIRE && is_mere_poll(core)));
        core->op_kind = kind;
        core->op_id = ++core->next_op_id;
        core->op_sent_at = now.boot;
        core->op_deadline = now.boot + hf__core_timing(core)->request_timeout;
        core->op_is_final_read = false;
        core->event_since_send = false;
        if (hf__core_leads(core))
                core->op_deadline = hf__earlier(core->op_deadline, core->valid_until);
        else if (core->state == HF_RELEASING)
                core->op_deadline = hf__earlier(core->op_deadline, core->release_until);
        action->op_id = core->op_id;
        action->deadline = core->op_deadline;
        if (kind == HF__OP_READ) {
                core->op_resolves_doubt = needs_read(core);
                core->must_read = false; /* a doubt that arises from now on needs another read */
                return;
        }
        if (kind == HF__OP_ACQUIRE)
                hf__core_make_acquire(core, now, &core->op_record);
        else if (kind == HF__OP_RENEW)
                hf__core_make_renewal(core, now, &core->op_record);
        else
                hf__core_make_release(core, now, &core->op_record);
        core->renew_at = now.boot + hf__core_timing(core)->retry_period;
        action->record = core->op_record;
}

/* ---- what is due ---- */

/* When a follower reads the Lease if it has heard nothing of it until then. A working watch reports
 * every renewal, so its silence is checked only after half a lease duration. */
static hf_nsec poll_due_at(const struct hf__core *core) {
        if (!core->watching || !core->watch_reported)
                return core->poll_at;
        return core->heard_at + hf__core_timing(core)->lease_duration / 2;
}

static hf_nsec takeable_at(const struct hf__core *core, hf_nsec now) {
        if (!core->config.coordinated)
                return hf__core_free_at(core);
        return hf__core_is_named(core, now) ? now : HF_NSEC_NEVER;
}

/*
 * The final read of a Lease that expires at write_at, as late as its reply can still arrive in
 * time. The watch may lag behind a renewal. The read also warms up what the acquire will use:
 * threads, the connection, the store.
 */
static hf_nsec final_read_at(const struct hf__core *core, hf_nsec write_at) {
        hf_nsec retry = hf__core_timing(core)->retry_period;
        hf_nsec margin = hf__later(core->op_duration + core->op_duration / 4, retry / 1024);
        hf_nsec at = write_at - hf__earlier(margin, retry / 4);
        bool is_wanted = core->observed.holder[0] != '\0' && core->heard_at < at &&
                         core->final_read_for != write_at;

        return is_wanted ? at : HF_NSEC_NEVER;
}

static bool is_handed_to_me(const struct hf__core *core) {
        return core->observed.exists && core->observed.holder[0] == '\0' &&
               strcmp(core->observed.successor, core->config.identity) == 0;
}

static hf_nsec start_first_read(struct hf__core *core, struct hf__core_time now,
                                struct hf__core_actions *actions) {
        if (core->op_kind != HF__OP_NONE)
                return HF_NSEC_NEVER;
        if (now.boot < core->next_op_at)
                return core->next_op_at;
        send_op(core, HF__OP_READ, now, actions);
        return HF_NSEC_NEVER;
}

/* As hf__core_start_due_op. An acquire that is due replaces a poll that is under way. */
static hf_nsec start_due_following(struct hf__core *core, struct hf__core_time now,
                                   struct hf__core_actions *actions) {
        hf_nsec write_at, read_at, allowed_at;

        if (needs_read(core))
                return start_first_read(core, now, actions);
        allowed_at = core->contend_at;
        if (!is_handed_to_me(core))
                allowed_at = hf__later(allowed_at, core->yields_until);
        write_at = hf__later(takeable_at(core, now.boot), hf__later(allowed_at, core->next_op_at));
        read_at = hf__later(poll_due_at(core), core->next_op_at);
        if (now.boot >= write_at) {
                send_op(core, HF__OP_ACQUIRE, now, actions);
                return HF_NSEC_NEVER;
        }
        if (core->op_kind != HF__OP_NONE)
                return write_at;
        /* No ordinary poll shortly before the expiry: if it failed, the pace after the failure
         * would delay the acquire, and the acquire itself fails if the record has changed. */
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

        /* Not renewed any more: the controllers end within the validity that is left. */
        if (!read && hf__core_is_other_preferred(core))
                return HF_NSEC_NEVER;
        if (now.boot < at)
                return at;
        send_op(core, read ? HF__OP_READ : HF__OP_RENEW, now, actions);
        return HF_NSEC_NEVER;
}

/* An acquire of ours may yet be applied to a Lease that is free to take (rule 11): a release now
 * uses up the revision that the acquire expects. */
static bool must_outdate_acquire(const struct hf__core *core, hf_nsec now) {
        return core->in_doubt && !needs_read(core) && hf__core_may_still_apply(core) &&
               hf__core_free_at(core) <= now;
}

static hf_nsec start_due_releasing(struct hf__core *core, struct hf__core_time now,
                                   struct hf__core_actions *actions) {
        bool read = needs_read(core) || (core->in_doubt && !must_outdate_acquire(core, now.boot));

        if (!core->in_doubt && !read && !core->observed.unsettled &&
            !hf__core_is_own(core, &core->observed)) {
                hf__core_end_release(core, now.boot, actions);
                return HF_NSEC_NEVER;
        }
        if (now.boot < core->next_op_at)
                return core->next_op_at;
        send_op(core, read ? HF__OP_READ : HF__OP_RELEASE, now, actions);
        return HF_NSEC_NEVER;
}

hf_nsec hf__core_start_due_op(struct hf__core *core, struct hf__core_time now,
                              struct hf__core_actions *actions) {
        hf_nsec at = HF_NSEC_NEVER;

        /* The end of a release may lead to FOLLOWING within this very step. */
        if (core->op_kind == HF__OP_NONE && core->state == HF_RELEASING)
                at = start_due_releasing(core, now, actions);
        if ((core->op_kind == HF__OP_NONE || is_mere_poll(core)) && core->state == HF_FOLLOWING)
                at = start_due_following(core, now, actions);
        else if (core->op_kind == HF__OP_NONE && hf__core_leads(core))
                at = start_due_leading(core, now, actions);
        return at;
}

/* ---- failures ---- */

/* When to try again after a failure: sooner the less validity is left, never at network speed, and
 * otherwise as late as the server asked. */
static hf_nsec pace(struct hf__core *core, hf_nsec now, hf_nsec retry_after) {
        hf_nsec retry = hf__core_timing(core)->retry_period;
        hf_nsec timeout = hf__core_timing(core)->request_timeout;
        hf_nsec left, delay;

        if (hf__core_leads(core)) {
                left = core->valid_until - now;
                delay = hf__later(hf__earlier(left / 4, retry), retry / 16);
                /* The server's Retry-After is kept only as far as a term can still be saved. */
                delay = hf__later(delay, hf__earlier(retry_after, left / 2));
        } else if (core->state == HF_RELEASING) {
                delay = hf__earlier(hf__later(retry_after, timeout / 8), timeout / 2);
        } else {
                retry_after = hf__earlier(retry_after, hf__core_timing(core)->lease_duration);
                delay = hf__core_jittered(core, hf__later(retry, retry_after));
        }
        return now + delay;
}

static void op_failed(struct hf__core *core, enum hf__core_op kind, int result, hf_nsec retry_after,
                      struct hf__core_time now) {
        assert(core->op_kind == HF__OP_NONE && result != 0);
        if (core->op_is_final_read) /* nothing depends on it */
                return;
        /* The Lease is not as it was thought to be, or the outcome is unknown: read it. */
        bool odd = result == HF_E_CONFLICT || result == HF_E_EXISTS || result == HF_E_NOT_FOUND ||
                   result == HF_E_TIMEOUT;

        core->n_failures++;
        if (kind == HF__OP_READ) {
                core->must_read = core->must_read || core->op_resolves_doubt;
        } else {
                if (result < 0 || result == HF_E_TIMEOUT || result == HF_E_UNAVAILABLE ||
                    result == HF_E_CANCELED)
                        core->in_doubt = true;
                if (odd) {
                        core->must_read = true;
                        core->renew_at = now.boot;
                }
        }
        if (kind != HF__OP_READ && odd && core->n_failures == 1)
                core->next_op_at = now.boot;
        else
                core->next_op_at = pace(core, now.boot, retry_after);
        if (kind != HF__OP_READ && !odd)
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
        op_failed(core, kind, HF_E_TIMEOUT, 0, now);
}

/* ---- the outcome of a write ---- */

static void acquired(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                     struct hf__core_actions *actions) {
        bool ordered = record->rv_number != 0 && core->observed.rv_number != 0;

        assert(core->joined && core->op_record.holder[0] != '\0');
        core->mine = core->op_record;
        hf__core_learn(core, record, now);
        /* A stop came while the acquire was under way: what was taken is released. */
        if (core->state != HF_FOLLOWING)
                return;
        /* The watch may be ahead of the reply: then another process has already overwritten our
         * record. */
        if (!hf__core_is_mine(core, &core->observed))
                return;
        if (core->event_since_send && !ordered)
                core->must_read = true;
        if (now >= core->op_sent_at + hf__core_timing(core)->renew_deadline) {
                /* The reply came so late that the term would be over already: acquire again. */
                core->next_op_at = pace(core, now, 0);
                return;
        }
        hf__core_start_term(core, now, record, actions);
}

static void renewed(struct hf__core *core, const struct hf__record *record, hf_nsec now,
                    struct hf__core_actions *actions) {
        hf_nsec valid_until = core->op_sent_at + hf__core_timing(core)->renew_deadline;

        hf__core_learn(core, record, now);
        /* The term ended while the renewal was under way. It only makes the standbys wait. */
        if (!hf__core_leads(core))
                return;
        if (!hf__core_is_mine(core, &core->observed)) {
                hf__core_lose_lease(core, now, true, actions);
                return;
        }
        if (valid_until <= core->valid_until)
                return;
        core->valid_until = valid_until;
        hf__core_push(actions, HF__ACT_EXTEND)->valid_until = valid_until;
}

static void write_done(struct hf__core *core, enum hf__core_op kind,
                       const struct hf__core_event *event, struct hf__core_time now,
                       struct hf__core_actions *actions) {
        if (event->result != 0) {
                op_failed(core, kind, event->result, event->retry_after, now);
                if (event->result == HF_E_NOT_FOUND && hf__core_leads(core))
                        hf__core_lose_lease(core, now.boot, false, actions);
                return;
        }
        core->n_failures = 0;
        /* An earlier write in doubt cannot be applied any more: the revision it expects is gone. */
        core->in_doubt = false;
        core->next_op_at = now.boot;
        if (kind == HF__OP_ACQUIRE)
                acquired(core, &event->record, now.boot, actions);
        else if (kind == HF__OP_RENEW)
                renewed(core, &event->record, now.boot, actions);
        else
                hf__core_learn(core, &event->record, now.boot);
}

/* ---- the outcome of a read ---- */

static void read_done(struct hf__core *core, const struct hf__core_event *event,
                      struct hf__core_time now, struct hf__core_actions *actions) {
        bool found = event->result == 0;

        core->poll_at = now.boot + hf__core_jittered(core, hf__core_timing(core)->retry_period);
        if (!found && event->result != HF_E_NOT_FOUND) {
                op_failed(core, HF__OP_READ, event->result, event->retry_after, now);
                return;
        }
        /* After several failed writes the read does not undo the pace that they set. */
        if (core->n_failures <= 1)
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
        if (!hf__core_leads(core) && hf__core_free_at(core) > now.boot)
                core->n_failures = 0; /* another process holds the Lease: that contest is over */
        if (hf__core_leads(core) && !hf__core_is_mine(core, &core->observed))
                hf__core_lose_lease(core, now.boot, found, actions);
}

void hf__core_op_done(struct hf__core *core, const struct hf__core_event *event,
                      struct hf__core_time now, struct hf__core_actions *actions) {
        enum hf__core_op kind = core->op_kind;

        if (kind == HF__OP_NONE || event->op_id != core->op_id)
                return; /* the reply to an operation that was given up */
        core->op_kind = HF__OP_NONE;
        core->op_duration = now.boot - core->op_sent_at;
        if (kind == HF__OP_READ)
                read_done(core, event, now, actions);
        else
                write_done(core, kind, event, now, actions);
}
