/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The elector's core: a pure state machine, step(state, event, now) -> actions and the next
 * wake-up. It has no thread, clock, lock, memory or I/O; the shell (elector_loop.c) and the
 * simulator (tests/sim) drive the very same code.
 *
 *      FOLLOWING --acquired--> LEADING --stop asked--> DRAINING --joined--> RELEASING --> STOPPED
 *          ^                      |                        |
 *          |                    lost                 drain deadline, lost
 *          |                      v                        v
 *          +---joined, backoff-- ABORTING <----------------+        ABORTING --stop grace over-->
 * STUCK
 *
 * Rules it keeps (design 5; the scenario IDs are in the tests):
 *  - At most one lock operation (read or write) is under way; an answer to another one is ignored
 * by its id. The core ends an operation itself when its deadline passes, so that a hung request
 * hides nothing.
 *  - Validity runs from the send time of the last successful write to + renew_deadline. Nothing
 * else extends it.
 *  - While leading, a record that is not exactly mine (holder, acquire time, duration), or its
 * absence, ends the term at once; a record older than my own last write (by rv_number) says
 * nothing; where rv is no number, a fresh read decides.
 *  - A write without an answer (timed out) is neither failure nor success: read, then decide.
 *  - A record of mine that asks for a hand-over (the annotation) is obeyed, as HF__EV_HAND_OVER is.
 *  - A record with my identity that I do not lead by (a lost acquire) is acquired anew: new acquire
 * time, new term.
 *  - A follower waits out the recorded duration from its own observation of the last change of the
 * holder's fields, takes an empty or absent record at once, and writes without reading first when
 * it has watched the record. It looks at an expiring one once more, as late as the answer may still
 * come in time, and waits for that answer no longer than the expiry. If a successor is named who is
 * not me, it holds back one retry period. A lost watch is replaced by polling (jittered) and
 * re-opened.
 *  - After the work of a term has joined: release if stopping and the record is still mine, else
 * contend again after a backoff that grows with short terms and resets after a term of at least one
 * lease duration.
 *  - A stop does not leave behind an acquire that may yet be applied: while it may, the Lease is
 * read again, and as soon as it may be taken the record of a release is written, which takes from
 * the acquire the revision that it expects.
 *  - Coordinated: a Lease is never created, nor taken because it is free or expired, but only while
 * it names me, unexpired; each time with an acquire time of my own, so that the term is told from
 * the naming. When another is preferred, nothing is renewed any more: drain, join, release, follow.
 *  - Work that has not joined stop_grace after abort: STUCK, for ever; nothing is released.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/leader.h>

#include "leader/record.h"

struct hf__core_time {
        hf_nsec boot;    /* all decisions */
        int64_t real_us; /* only to be written onto the wire */
};

enum hf__core_event_type {
        HF__EV_TICK,       /* a wake-up, or nothing at all */
        HF__EV_READ_DONE,  /* op_id, result (0, HF_E_NOT_FOUND, other), record, retry_after */
        HF__EV_WRITE_DONE, /* op_id, result (0, HF_E_CONFLICT, HF_E_EXISTS, HF_E_NOT_FOUND,
                              HF_E_TIMEOUT, other), record as returned, retry_after */
        HF__EV_WATCHED,    /* record (exists = false: deleted; rv of the deletion) */
        HF__EV_WATCH_LOST,
        HF__EV_STOP,      /* planned stop of this elector for good */
        HF__EV_HAND_OVER, /* successor ("" = whoever comes): drain, join, release to it, then follow
                           */
        HF__EV_JOINED,    /* all work of the term has returned; counts only after TERM_DRAIN or
                             TERM_ABORT, once per term */
        HF__EV_STALE_TERM, /* a write of the term was refused by the fence, or its echo was missing,
                              or the store's history was replaced: a term ends, and what is known of
                              the Lease counts for nothing until it is read */
};

struct hf__core_event {
        enum hf__core_event_type type;
        uint32_t op_id;
        int result;
        hf_nsec retry_after;      /* 0 = not said */
        struct hf__record record; /* valid where the table above says so and result is 0 */
        char successor[HF_IDENTITY_MAX + 1];
};

enum hf__core_action_type {
        HF__ACT_READ,  /* op_id, deadline */
        HF__ACT_WRITE, /* op_id, deadline, record: write it; record.exists = false: create, else
                          update at record.rv */
        HF__ACT_WATCH, /* (re)open the watch of the Lease, which tells the record as it is first;
                          the shell reports HF__EV_WATCH_LOST when it ends or cannot open */
        HF__ACT_UNWATCH,
        HF__ACT_TERM_START, /* term, valid_until, record: open the gate, start the work */
        HF__ACT_EXTEND,     /* valid_until */
        HF__ACT_TERM_DRAIN, /* fire drain */
        HF__ACT_GATE_SHUT,  /* before anything else of the same step is carried out */
        HF__ACT_TERM_ABORT, /* fire abort; text says why */
        HF__ACT_STUCK,      /* stop_grace is over; the shell reports it, livez fails */
        HF__ACT_REPORT,  /* holder or state changed: on_change, metrics, log; text may say more */
        HF__ACT_STOPPED, /* the elector is done; released tells whether the Lease is free of us */
};

struct hf__core_action {
        enum hf__core_action_type type;
        uint32_t op_id;
        hf_nsec deadline;    /* boot */
        hf_nsec valid_until; /* boot */
        uint64_t term;
        bool released;
        const char *text; /* static */
        struct hf__record record;
};

#define HF__CORE_MAX_ACTIONS  8
#define HF__CORE_OWN_ACQUIRES 8

struct hf__core_actions {
        struct hf__core_action list[HF__CORE_MAX_ACTIONS]; /* carry out in order */
        unsigned n;
        hf_nsec wake_at; /* call again with HF__EV_TICK at this boot time at the latest */
};

struct hf__core_config {
        struct hf_leader_timing timing; /* checked */
        char identity[HF_IDENTITY_MAX + 1];
        bool coordinated; /* somebody else names the holder */
        uint64_t seed;    /* of the jitter */
};

struct hf__core {
        struct hf__core_config config; /* immutable */
        enum hf_leader_state state;
        bool stop_asked, hand_over_asked;
        bool watching;   /* the watch is open as far as we know */
        bool watch_told; /* it has told something since it was opened; until then polling goes on */
        hf_nsec watch_retry_at;
        uint64_t rng;

        /* what is known of the Lease */
        bool observed_once;
        bool twin;                  /* it bears my identity, by somebody else's hand */
        struct hf__record observed; /* the newest record seen */
        hf_nsec observed_at;        /* boot time when its holder's fields last changed for us */
        hf_nsec heard_at;           /* boot time of the last news of it, changed or not */
        /* of the last record that was there, for the history alone */
        bool saw_lease;
        char last_holder[HF_IDENTITY_MAX + 1]; /* the last that was not empty */
        int64_t last_renew_us;

        /* the one operation under way; op_kind 0 = none */
        int op_kind;
        uint32_t op_id, next_op_id;
        hf_nsec op_sent_at, op_deadline;
        hf_nsec op_took;             /* the last that was answered */
        bool op_looks;               /* a read, the last before the Lease expires */
        hf_nsec looked_for;          /* the expiry of the last such */
        struct hf__record op_record; /* what a write sends */
        hf_nsec next_op_at;          /* not before */

        /* the term: mine.* are the fields by which a record is recognised as mine */
        struct hf__record mine;
        uint64_t term;
        hf_nsec term_started_at, valid_until, drain_until, abort_at, release_until;
        bool joined;
        bool must_read;        /* a doubt (lost reply, odd revision) that only a read settles */
        bool in_doubt;         /* a write of mine may or may not have been applied */
        bool op_settles;       /* the read under way is to settle a doubt; a mere poll may fail */
        bool event_since_send; /* the watch told something new while the operation was under way */
        unsigned n_failures;   /* of operations, in a row */
        hf_nsec renew_at;      /* leading: the next renewal is due */
        hf_nsec poll_at;       /* following without a watch: the next read is due */
        hf_nsec contend_at;    /* following: no acquire before (backoff) */
        hf_nsec yields_until;  /* following: nor before this until the Lease names somebody (after
                                  release) */
        int64_t own_acquires[HF__CORE_OWN_ACQUIRES]; /* acquire times written by this core, a ring:
                                                        what else bears my identity is a twin */
        unsigned n_own_acquires;
        int64_t last_acquire_us;
        char successor[HF_IDENTITY_MAX + 1];
        unsigned n_short_terms; /* in a row */
        uint64_t n_terms;
        const char *last_end; /* static text */
};

void hf__core_init(struct hf__core *core, const struct hf__core_config *config,
                   struct hf__core_time now);
/* Runs the machine. ret_actions is overwritten. The first call after init is with HF__EV_TICK. */
void hf__core_step(struct hf__core *core, const struct hf__core_event *event,
                   struct hf__core_time now, struct hf__core_actions *ret_actions);
