/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The elector's core: it decides when this process reads and writes the Lease, when it begins to
 * lead (a term), and when that term ends.
 *
 * The core is a pure state machine: step(state, event, now) -> actions and the next wake-up. It
 * uses no thread, clock, lock, memory allocation or I/O. The shell delivers events
 * (elector_loop.c) and carries out the actions (elector_actions.c). The simulator (tests/sim)
 * drives the same code through many schedules in virtual time.
 *
 * States
 *
 *      FOLLOWING   another process holds the Lease, or nobody does. This process contends for it.
 *      LEADING     a term: the gate (gate.h) is open and the controllers run.
 *      DRAINING    a planned end of the term: the controllers finish their current work. The
 *                  gate stays open and the Lease is still renewed (rule 12 has the exception).
 *      ABORTING    the term is over: the gate is shut and the controllers must return at once.
 *      RELEASING   the controllers have returned. The Lease is given up, once the last writes of
 *                  the term have settled (rule 13).
 *      STOPPED     final: the elector was stopped.
 *      STUCK       final: a controller did not return in time. Its threads may still write, so the
 *                  Lease is never released. It expires.
 *
 *      from                event                                         to
 *      FOLLOWING           acquire succeeded                             LEADING
 *      FOLLOWING           stop requested, the Lease may be held by us   RELEASING
 *      FOLLOWING           stop requested, the Lease is not held by us   STOPPED
 *      LEADING             stop or hand-over requested                   DRAINING
 *      LEADING, DRAINING   Lease lost, not renewed in time, term stale   ABORTING
 *      DRAINING            drain deadline passed                         ABORTING
 *      DRAINING, ABORTING  controllers returned, a request is pending    RELEASING
 *      ABORTING            controllers returned, no request is pending   FOLLOWING (see rule 9)
 *      ABORTING            stop_grace passed                             STUCK
 *      RELEASING           released or given up, stop requested          STOPPED
 *      RELEASING           released or given up, hand-over requested     FOLLOWING
 *
 *      (A request is a stop by the embedder, or a hand-over by the embedder or the record.)
 *
 * Rules, and why each holds
 *
 *  1. At most one operation (a read or a write of the Lease) is under way. The core itself ends an
 *     operation whose deadline passes, and ignores a reply with another id. So a request that hangs
 *     delays no watch event, and a stop only for a limited time. A late reply does no harm.
 *
 *  2. A term is valid until renew_deadline after the last successful write was *sent*. The server
 *     cannot have applied the write earlier than that, so every standby begins to wait no earlier,
 *     and it waits longer (lease_duration). Reads, watch events and lost replies extend nothing:
 *     none of them proves when the record was written.
 *
 *  3. While leading, a record that differs from ours in holder, acquire time or duration ends the
 *     term at once, and so does a missing Lease: another process may lead already. Only a record
 *     that is older than our own last write (by its numeric revision) is ignored. If revisions are
 *     not numbers, nothing can be ordered and a fresh read decides. A record that is ours under a
 *     newer revision (a user edited a label) replaces the known one, and the term goes on.
 *
 *  4. A write without a reply may have been applied or not. The core never assumes either: it reads
 *     the Lease and then decides. A write that was never sent (op_unsent) is no such write.
 *
 *  5. A standby waits for the recorded lease duration, counted from the moment at which it saw the
 *     holder's fields change last. It never compares another machine's timestamps with its own
 *     clock. It takes a Lease without a holder, or a deleted one, at once, unless rule 9, 10, 12,
 *     13 or 15, or the backoff after a failed request, makes it wait.
 *
 *  6. A standby that watches the Lease acquires a free one without reading it first. Shortly before
 *     a Lease expires it reads once more (the final read), as late as the reply can still arrive in
 *     time, because the watch may lag behind a renewal. It does not wait for that reply longer than
 *     until the expiry. When the watch is lost, the standby polls, with jitter, and reopens the
 *     watch.
 *
 *  7. Every term has a different acquire time, which identifies it. If a record has our identity
 *     and one of the last acquire times that this core wrote, but this core does not lead with it
 *     (its term, or the reply to an acquire, was lost), the core acquires the Lease again with a
 *     new acquire time. Any other record with our identity comes from another process with the same
 *     identity (a collision). It is treated like any other holder's. (Not in a coordinated
 *     election: rule 12.)
 *
 *  8. The Lease is released only after all controllers of the term have returned, and only while
 *     the record is still ours (rule 11 has the exception). A controller that has not returned
 *     stop_grace after the abort leads to STUCK, and nothing is released. If the grace has passed
 *     while the process did not run, it begins anew, because the controllers had no time either.
 *     So do the drain deadline and the time limit of the release. Each of the three does so
 *     HF__DEADLINE_ANEW_MAX times at most (base/deadline.h): a process that is always woken late
 *     reports a stuck controller in the end.
 *
 *  9. After a short term that was lost, the core waits before it contends again. The wait doubles
 *     with each short term in a row, up to a lease duration. There is no wait after a term of at
 *     least one lease duration. A leader that cannot keep the Lease must not keep others from it.
 *
 * 10. A hand-over releases the Lease with the successor's name in it. For one retry period only the
 *     named standby takes it. HF__EV_HAND_OVER or an annotation on the record requests a hand-over.
 *     The process that handed over contends again after two retry periods, or as soon as the Lease
 *     names another holder.
 *
 * 11. After a stop, an acquire of this core must not be applied any more. While that could happen,
 *     the core reads the Lease again, until the time limit of the release at the latest. As soon as
 *     the Lease is free to take, the core writes a release. The release changes the revision that
 *     the acquire expects, so the acquire can only fail.
 *
 * 12. In a coordinated election (KEP-4355) a coordinator names the holder. The core never creates
 *     the Lease and never takes a free or expired one. It acquires the Lease only while the record
 *     names this process and is not expired, and writes a new acquire time. A record with that
 *     acquire time belongs to the term; one without it is the coordinator's. When the coordinator
 *     prefers another holder, the core stops renewing, drains, joins, releases and follows.
 *
 * 13. At a server without fences, a write of the term may take effect after the controllers have
 *     returned. The core neither releases a Lease that is still ours nor acquires one before such a
 *     write has settled: a write settles when it is answered. If its outcome remains unknown, it
 *     settles lease_duration - renew_deadline after it has ended. This is as safe as an expiry: a
 *     write ends at the end of the validity at the latest, and a Lease that is left to expire can
 *     be taken lease_duration - renew_deadline after that. The time limit of the release does not
 *     change. If the limit passes first, the Lease is left to expire.
 *
 * 14. The Lease of a process that is proven to be dead counts as expired at once, so rules 9, 10,
 *     13 and 15 apply to its acquire too. The proof is for a holder and an acquire time. It lasts
 *     while the record has these, because a dead process stays dead. (Not in a coordinated
 *     election: rule 12.)
 *
 * 15. A standby with a hold_back waits for that much longer before it takes a Lease that is free or
 *     expired, so that another one takes it first. The named successor of a hand-over does not
 *     wait, and neither does a core that finds its own record (rule 7). HF__EV_HOLD_BACK changes
 *     the hold_back. (Not in a coordinated election: rule 12.)
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/leader.h>

#include "base/deadline.h"
#include "leader/record.h"

struct hf__core_time {
        hf_nsec boot;    /* CLOCK_BOOTTIME; all decisions use this time */
        int64_t real_us; /* microseconds since 1970; only written into records */
};

enum hf__core_event_type {
        HF__EV_TICK,       /* the wake-up time was reached; an early tick does no harm */
        HF__EV_READ_DONE,  /* op_id; result: 0, HF_E_NOT_FOUND or another error; record if 0;
                              retry_after */
        HF__EV_WRITE_DONE, /* op_id; result: 0, HF_E_CONFLICT, HF_E_EXISTS, HF_E_NOT_FOUND,
                              HF_E_TIMEOUT (outcome unknown) or another error; record as the
                              server returned it if 0; retry_after */
        HF__EV_WATCHED,    /* record; exists = false: the Lease was deleted, rv is the deletion's */
        HF__EV_WATCH_LOST, /* the watch ended, could not be opened, or an event of it was lost */
        HF__EV_STOP,       /* stop this elector: it will not contend again */
        HF__EV_HAND_OVER,  /* successor ("" = any standby): drain, join, release, then follow */
        HF__EV_JOINED,     /* all controllers of the term have returned; doubt_at. At most once per
                              term, after HF__ACT_TERM_DRAIN or HF__ACT_TERM_ABORT */
        HF__EV_SETTLED,    /* the last unanswered write of the term has ended; doubt_at. Only after
                              an HF__EV_JOINED whose doubt_at was HF_NSEC_NEVER */
        HF__EV_HOLD_BACK,  /* hold_back: see rule 15 */
        HF__EV_STALE_TERM, /* result: HF_E_STALE_TERM (the fence refused a write of the term),
                              HF_E_UNFENCED (the server did not confirm the fence), another error
                              (the controllers could not start), or 0 (the embedder ends the term:
                              the store was replaced by a backup). A term ends, and nothing known
                              of the Lease counts until it has been read again */
        HF__EV_HOLDER_DEAD, /* record.holder, record.acquire_us: the process that wrote this record
                               is proven to be dead (rule 14) */
};

struct hf__core_event {
        enum hf__core_event_type type;
        /* The operation under way was not sent and will not be, so it has no outcome. The core
         * withdraws it before it handles the event, and then requests the operation that is due. */
        bool op_unsent;
        /* The controllers of the term have returned, and HF__EV_JOINED comes next. So the stop
         * grace does not end in this step. */
        bool joins;
        uint32_t op_id;
        int result;
        hf_nsec retry_after; /* the server's Retry-After; 0 = none */
        hf_nsec hold_back;
        /* Of the controllers' writes with an unknown outcome, the boot time at which the last one
         * ended: when it was answered, or its deadline if that was earlier. 0 = there is none, or
         * the server has fences; HF_NSEC_NEVER = a write is still unanswered. */
        hf_nsec doubt_at;
        struct hf__record record; /* only for the types above that list it */
        char successor[HF_IDENTITY_MAX + 1];
};

enum hf__core_action_type {
        HF__ACT_READ,       /* op_id, deadline: read the Lease */
        HF__ACT_WRITE,      /* op_id, deadline, record: write the Lease. record.exists = false:
                               create it; true: update it at revision record.rv */
        HF__ACT_WATCH,      /* open or reopen the watch. It may begin with the current Lease or
                               with the next change: until it reports something, the core polls.
                               Report HF__EV_WATCH_LOST when it ends or cannot be opened */
        HF__ACT_UNWATCH,    /* close the watch */
        HF__ACT_TERM_START, /* term, valid_until, record: open the gate, start the controllers */
        HF__ACT_EXTEND,     /* valid_until: extend the gate */
        HF__ACT_TERM_DRAIN, /* fire the controllers' drain tokens */
        HF__ACT_GATE_SHUT,  /* shut the gate, before anything else of the same step */
        HF__ACT_TERM_ABORT, /* fire the abort token; text says why */
        HF__ACT_STUCK,      /* stop_grace has passed: report the stuck controller, fail livez */
        HF__ACT_REPORT,     /* holder or state changed, or a collision has begun (then text is a
                               warning; otherwise NULL): on_change, log */
        HF__ACT_STOPPED, /* the elector has stopped; released: we certainly do not hold the Lease */
};

struct hf__core_action {
        enum hf__core_action_type type;
        uint32_t op_id;
        hf_nsec deadline;    /* boot time */
        hf_nsec valid_until; /* boot time */
        uint64_t term;
        bool released;
        const char *text; /* static */
        struct hf__record record;
};

/* More than any step appends: the start or the extension of a term, its drain or abort (two
 * actions), an operation, the watch, the stop, a report. hf__core_push_action asserts the limit. */
#define HF__CORE_MAX_ACTIONS  8
#define HF__CORE_OWN_ACQUIRES 8 /* acquire times that the core remembers (rule 7) */

struct hf__core_actions {
        struct hf__core_action list[HF__CORE_MAX_ACTIONS]; /* carry out in this order */
        unsigned n;
        hf_nsec wake_at; /* call again with HF__EV_TICK at this boot time at the latest */
};

/*
 * Has copies of the texts of records: holders and successors. A core keeps pointers to them,
 * because a process may have thousands of cores, and most records name the same few processes.
 *
 * copy returns the copy of a text of the event that the core is handling, or of a text that the
 * core has already. It cannot fail: the owner of the core makes the copies of an event before the
 * step. The owner keeps each copy while hf__core_texts lists it, and until the end of the step in
 * which the core drops it.
 */
struct hf__core_texts_port {
        const char *(*copy)(struct hf__core_texts_port *self, const char *text);
};

struct hf__core_config {
        struct hf_leader_timing timing;    /* checked by hf_leader_timing_check */
        const char *identity;              /* borrowed for the core's life */
        struct hf__core_texts_port *texts; /* borrowed likewise */
        bool coordinated;                  /* a coordinator names the holder (rule 12) */
        uint64_t seed;                     /* for the jitter; the same seed gives the same run */
        /* The place of this elector's renewals in each retry period, counted from boot time 0: 1 to
         * retry_period. 0 = none: a renewal follows the last write after a retry period. */
        hf_nsec renew_phase;
};

/* A record as the core keeps it: without `term`, and without what is only for a record to be
 * written. The members are those of struct hf__record; the texts are borrowed, and "" = none. */
struct hf__core_seen {
        bool exists, preferred, unsettled;
        const char *holder, *successor, *hand_over_to;
        int64_t duration_s, acquire_us, renew_us, transitions;
        char uid[HF__UID_MAX], rv[HF__REVISION_MAX];
        uint64_t rv_number, change_count;
};

/* The part of the record that began a term. Another record belongs to this term if it has the same
 * acquire time and duration, and this process as its holder. */
struct hf__core_term_record {
        int64_t acquire_us, duration_s;
        enum hf__cause cause; /* as in struct hf__record */
        const char *previous; /* set with each attempt to acquire; a copy, see the port of texts */
        int64_t gap_us;
};

/* The data that the core keeps of the last write. hf__core_op_record rebuilds the whole record from
 * it, `observed` and other members of the core. A record is large, and a process may have thousands
 * of cores. */
struct hf__core_write {
        bool exists, has_holder;
        int64_t duration_s, acquire_us, renew_us, transitions, gap_us;
        enum hf__cause cause;
        char rv[HF__REVISION_MAX];
};

enum hf__core_op { HF__OP_NONE, HF__OP_READ, HF__OP_ACQUIRE, HF__OP_RENEW, HF__OP_RELEASE };

struct hf__core {
        struct hf__core_config config; /* immutable */
        enum hf_leader_state state;
        bool stop_requested, hand_over_requested; /* the second is cleared when FOLLOWING again */
        const char *successor; /* a copy; if hand_over_requested; "" = any standby */
        uint64_t rng;          /* state of the jitter's generator */

        /* the watch */
        bool watching;          /* open, as far as the core knows */
        bool watch_reported;    /* it has delivered an event since it was opened. Until then the
                                   core polls */
        hf_nsec watch_retry_at; /* if not watching: reopen it at this time */

        /* knowledge of the Lease */
        bool observed_once;
        bool must_read;                /* `observed` may be wrong: read before the next write */
        struct hf__core_seen observed; /* the newest record seen; its texts are copies */
        hf_nsec observed_at;           /* boot time of the last change in the fields of `observed`
                                          that a holder changes (hf__record_same_fields) */
        hf_nsec heard_at;              /* boot time of the last successful read or write, or the
                                          last watch event, even if it showed no change. A reply
                                          that is discarded, or an event older than `observed`,
                                          does not count */
        bool holder_is_dead;           /* the process that wrote `observed` is dead (rule 14) */
        bool collision;                /* another process holds it under our identity (rule 7) */
        /* Describes the last record that existed. Used only for the history in a new record. */
        bool lease_existed;
        const char *last_holder; /* a copy; the last holder that was not empty */
        int64_t last_renew_us;

        /* the one operation under way */
        enum hf__core_op op_kind; /* HF__OP_NONE = none */
        uint32_t op_id, next_op_id;
        hf_nsec op_sent_at, op_deadline;
        bool op_is_required;            /* a read that the next write needs, so that it is
                                           repeated until it succeeds; false for a poll */
        bool op_had_must_read;          /* a read: must_read was set when it was requested */
        bool op_is_final_read;          /* the read shortly before the Lease expires (rule 6) */
        bool event_since_send;          /* the watch reported a change since op_sent_at */
        struct hf__core_write op_write; /* the last write */
        /* kept from one operation to the next */
        bool in_doubt;          /* the outcome of an earlier write is unknown: it may have been
                                   applied, or may still be */
        hf_nsec op_duration;    /* how long the last operation with a reply took */
        hf_nsec next_op_at;     /* backoff: no operation but a final read before this */
        hf_nsec final_read_for; /* the last final read was for an acquire at this time */
        unsigned n_failures;    /* in a row: 0 after a write that succeeded, and when FOLLOWING or
                                   RELEASING begins. A read that succeeds sets it to 0 only
                                   without a valid term, and if the Lease is not free */

        /* the term */
        struct hf__core_term_record term_record; /* of the current or last term */
        uint64_t term; /* the number that the fence compares; 0 = no term */
        /* boot times; valid_until is 0 unless LEADING or DRAINING */
        hf_nsec term_started_at, valid_until;
        struct hf__deadline deadline; /* of the state, if it is DRAINING, ABORTING or RELEASING */
        hf_nsec renew_at;             /* time of the next renewal */
        bool joined;                  /* no controller of a term runs */
        hf_nsec settled_at;           /* if joined: boot time at which the last term's writes have
                                         settled (rule 13); 0 = they have settled already */
        unsigned n_short_terms;       /* in a row (rule 9) */
        uint64_t n_terms;
        const char *last_end; /* why the last term ended; static */

        /* following */
        hf_nsec poll_at;      /* until a watch has reported something: time of the next read */
        hf_nsec contend_at;   /* no acquire before this: backoff after a lost term (rule 9) */
        hf_nsec hold_back;    /* added to the time at which a Lease may be taken (rule 15) */
        hf_nsec yields_until; /* after a hand-over: no acquire before this, unless the Lease names
                                 us as the successor; 0 once it names a new holder (rule 10) */

        /* Ring of the acquire times that this core wrote last. A record with our identity and
         * another acquire time is a collision (rule 7). */
        int64_t own_acquires[HF__CORE_OWN_ACQUIRES];
        unsigned n_own_acquires;
        int64_t last_acquire_us; /* the newest of them; later ones are always greater */
};

/* Lists the pointers to texts that the core has: to copies, to its identity, and to "". */
#define HF__CORE_N_TEXTS 6
void hf__core_texts(const struct hf__core *core, const char *ret_texts[HF__CORE_N_TEXTS]);
/* Rebuilds the newest record seen. */
void hf__core_observed(const struct hf__core *core, struct hf__record *ret_record);
/* Rebuilds the record of the write under way. Call it after the step that requested the write, and
 * before the next one, because an event may change `observed`. */
void hf__core_op_record(const struct hf__core *core, struct hf__record *ret_record);

/* Copies config, except for the text of identity. The core is then FOLLOWING. There is nothing to
 * free. */
void hf__core_init(struct hf__core *core, const struct hf__core_config *config,
                   struct hf__core_time now);
/*
 * Runs one step of the state machine and overwrites ret_actions. The first event after init must be
 * HF__EV_TICK. now.boot must not decrease. The core assumes that the actions are carried out at
 * now.
 */
void hf__core_step(struct hf__core *core, const struct hf__core_event *event,
                   struct hf__core_time now, struct hf__core_actions *ret_actions);
/* The boot time by which a core that was told to stop has ended, if it notices no deadline late:
 * the deadline of its state plus the time limits of the states that may follow. 0 unless DRAINING,
 * ABORTING or RELEASING. */
hf_nsec hf__core_stops_by(const struct hf__core *core);
