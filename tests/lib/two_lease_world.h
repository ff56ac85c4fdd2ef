/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two Leases led as one: the elector's core over the decisions of the two-Lease lock, in virtual
 * time, against two Leases in memory. A world has processes of three kinds, those that know the old
 * Lease only, both, or the new one only; requests, replies and news that come late or never;
 * pauses, and crashes anywhere, also between the two writes. What the lock tells the core takes its
 * time too, and may be overtaken, as letters from several threads are: the core decides by what the
 * lock knows better already.
 *
 * What must hold at every step: of processes that share a Lease at most one acts, nobody's
 * unexpired record is replaced by another's, and none takes a Lease, or has one still, after it
 * said that it has stopped and released. One seed is one schedule.
 *
 * To be included after cmocka; everything is static.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "leader/elector_core.h"
#include "leader/two_lease_core.h"

#define S  HF_NSEC_PER_SEC
#define MS HF_NSEC_PER_MSEC

#define OLD HF__TWO_LEASE_OLD
#define NEW HF__TWO_LEASE_NEW

#define MAX_PROCS  3
#define MAX_EVENTS 512

enum kind { KNOWS_OLD, KNOWS_BOTH, KNOWS_NEW };
enum event_type { E_APPLY, E_REPLY, E_NEWS, E_LETTER, E_JOIN };

struct event {
        hf_nsec at;
        uint64_t seq;
        enum event_type type;
        int proc;
        unsigned incarnation, watch;
        enum hf__two_lease_side side;
        bool write;
        uint32_t op_id;
        hf_nsec deadline;
        int result;
        struct hf__record record;
        enum hf__core_event_type message;
};

struct proc {
        enum kind kind;
        bool alive;
        unsigned incarnation, watch; /* watch: which opening of it */
        char identity[32];
        struct hf__core core;
        struct hf__two_lease two;
        hf_nsec wake_at, paused_until, event_at[HF__TWO_LEASE_SIDES];
        bool acts;    /* the gate is open */
        bool is_done; /* stopped, and said that no Lease bears its name */
        hf_nsec valid_until;
        uint32_t write_id; /* of the core's last write */
        unsigned n_requests;
};

struct world {
        hf_nsec now;
        uint64_t seed, rng, seq, revision;
        struct hf__record lease[HF__TWO_LEASE_SIDES];
        uint64_t term[HF__TWO_LEASE_SIDES];  /* as the term record has it */
        hf_nsec put_at[HF__TWO_LEASE_SIDES]; /* when its holder last gave a sign of life */
        struct event events[MAX_EVENTS];
        unsigned n_events;
        struct proc procs[MAX_PROCS];
        unsigned n_procs;
        bool faults;       /* requests and replies are late or lost */
        unsigned crash_at; /* the process that handles this reply, counted over all, dies of it; 0 =
                              none */
        unsigned n_replies; /* handled so far */
        unsigned n_overlaps, n_terms[3], n_split_crashes, n_halves, n_given_back, n_undone;
        bool overlap_is_expected;
};

static inline uint64_t draw(struct world *w) {
        uint64_t z = w->rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}
static inline bool chance(struct world *w, unsigned of_1000) { return draw(w) % 1000 < of_1000; }
static inline hf_nsec up_to(struct world *w, hf_nsec most) {
        return (hf_nsec)(draw(w) % (uint64_t)most);
}
static inline struct hf__core_time time_of(const struct world *w) {
        return (struct hf__core_time){.boot = w->now, .real_us = w->now / 1000};
}
static inline bool knows(enum kind kind, enum hf__two_lease_side side) {
        return kind == KNOWS_BOTH || (kind == KNOWS_OLD) == (side == OLD);
}

/* ---- events ---- */

static inline struct event *add_event(struct world *w, enum event_type type, int proc, hf_nsec at) {
        assert_true(w->n_events < MAX_EVENTS);
        struct event *event = &w->events[w->n_events++];
        *event = (struct event){.at = at,
                                .seq = ++w->seq,
                                .type = type,
                                .proc = proc,
                                .incarnation = w->procs[proc].incarnation};
        return event;
}

/* Quick as a rule, now and then slow. */
static inline hf_nsec way(struct world *w) {
        return w->faults && chance(w, 30) ? up_to(w, 12 * S) : 1 + up_to(w, 5 * MS);
}

static inline void request(struct world *w, int proc, enum hf__two_lease_side side, bool write,
                           uint32_t op_id, hf_nsec deadline, const struct hf__record *record) {
        bool lost = w->faults && chance(w, 20);
        struct event *event =
                add_event(w, lost ? E_REPLY : E_APPLY, proc, lost ? deadline : w->now + way(w));

        w->procs[proc].n_requests++;
        event->side = side;
        event->write = write;
        event->op_id = op_id;
        event->deadline = deadline;
        event->result = lost ? HF_E_TIMEOUT : 0;
        if (record)
                event->record = *record;
}

/* ---- the store ---- */

static inline void tell(struct world *w, int proc, enum hf__two_lease_side side) {
        struct proc *p = &w->procs[proc];

        if (!p->alive || p->watch == 0 || !knows(p->kind, side))
                return;
        p->event_at[side] = w->now + way(w) > p->event_at[side] ? w->now + 1 + up_to(w, 5 * MS)
                                                                : p->event_at[side];
        struct event *event = add_event(w, E_NEWS, proc, p->event_at[side]);
        event->side = side;
        event->watch = p->watch;
        event->record = w->lease[side];
}

static inline void check_stays_stopped(const struct world *w, enum hf__two_lease_side side,
                                       const struct hf__record *record) {
        for (unsigned i = 0; i < w->n_procs; i++) {
                const struct proc *p = &w->procs[i];
                if (p->is_done && strcmp(record->holder, p->identity) == 0 &&
                    strcmp(record->holder, w->lease[side].holder) != 0)
                        fail_msg("seed %llu, at %.3f s: a Lease is taken for %s (%d), which has "
                                 "stopped",
                                 (unsigned long long)w->seed, (double)w->now / 1e9, p->identity,
                                 p->kind);
        }
}

static inline void put(struct world *w, enum hf__two_lease_side side,
                       const struct hf__record *record) {
        struct hf__record *lease = &w->lease[side];

        check_stays_stopped(w, side, record);
        w->revision++;
        if (!hf__record_same_fields(lease, record))
                w->put_at[side] = w->now;
        if (!lease->exists || strcmp(lease->holder, record->holder) != 0 ||
            lease->acquire_us != record->acquire_us)
                w->term[side] = w->revision;
        *lease = *record;
        lease->exists = true;
        lease->cause = HF__CAUSE_NONE;
        lease->beat = lease->term = 0;
        lease->unsettled = false;
        lease->rv_number = w->revision;
        (void)snprintf(lease->rv, sizeof lease->rv, "%u", (unsigned)w->revision);
        for (unsigned i = 0; i < w->n_procs; i++)
                tell(w, (int)i, side);
}

/* Nobody's record is replaced, nor cleared, by another before its time is over. */
static inline void check_takes_from_nobody(const struct world *w, const struct event *event) {
        const struct hf__record *lease = &w->lease[event->side];

        if (!lease->holder[0] || event->incarnation != w->procs[event->proc].incarnation ||
            strcmp(lease->holder, w->procs[event->proc].identity) == 0)
                return;
        if (w->now - w->put_at[event->side] < lease->duration_s * S)
                fail_msg("seed %llu, at %.3f s: %s takes the %s Lease from %s",
                         (unsigned long long)w->seed, (double)w->now / 1e9,
                         w->procs[event->proc].identity, event->side == OLD ? "old" : "new",
                         lease->holder);
}

static inline int apply_write(struct world *w, const struct event *event) {
        const struct hf__record *record = &event->record, *lease = &w->lease[event->side];

        if (!record->exists && lease->exists)
                return HF_E_EXISTS;
        if (record->exists && !lease->exists)
                return HF_E_NOT_FOUND;
        if (record->exists && strcmp(record->rv, lease->rv) != 0)
                return HF_E_CONFLICT;
        check_takes_from_nobody(w, event);
        put(w, event->side, record);
        return 0;
}

static inline void apply(struct world *w, const struct event *from) {
        struct event event = *from;
        int result = event.write                   ? apply_write(w, &event)
                     : w->lease[event.side].exists ? 0
                                                   : HF_E_NOT_FOUND;
        hf_nsec at = w->now + way(w);
        bool lost = w->faults && chance(w, 20);
        struct event *reply = add_event(w, E_REPLY, event.proc,
                                        lost || at > event.deadline ? event.deadline : at);
        hf_nsec when = reply->at;
        uint64_t seq = reply->seq;

        *reply = event;
        reply->type = E_REPLY;
        reply->at = when > w->now ? when : w->now;
        reply->seq = seq;
        reply->result = when < at ? HF_E_TIMEOUT : result;
        reply->record = w->lease[event.side];
}

/* ---- a process ---- */

static inline void step(struct world *w, int proc, struct hf__core_event *event);

static inline void write_message(struct world *w, int proc, enum hf__core_event_type type,
                                 const struct hf__two_lease_command *command) {
        struct event *event =
                add_event(w, E_LETTER, proc,
                          w->now + 1 + up_to(w, w->faults && chance(w, 50) ? 50 * MS : MS / 5));

        event->message = type;
        event->op_id = command->op_id;
        event->result = command->result;
        event->record = command->record;
}

static inline void carry_out_two(struct world *w, int proc,
                                 const struct hf__two_lease_commands *commands) {
        struct proc *p = &w->procs[proc];

        for (unsigned i = 0; i < commands->n; i++) {
                const struct hf__two_lease_command *command = &commands->list[i];
                switch (command->type) {
                case HF__TWO_LEASE_READ:
                case HF__TWO_LEASE_WRITE:
                        if (command->type == HF__TWO_LEASE_WRITE && command->side == OLD &&
                            command->record.holder[0] == '\0' && p->core.state == HF_FOLLOWING) {
                                w->n_given_back += p->core.op_kind != 2;
                                w->n_undone += p->core.op_kind == 2;
                        }
                        request(w, proc, command->side, command->type == HF__TWO_LEASE_WRITE,
                                command->op_id, command->deadline, &command->record);
                        break;
                case HF__TWO_LEASE_RESPONSE:
                        write_message(w, proc,
                                      command->op_id == p->write_id ? HF__EV_WRITE_DONE
                                                                    : HF__EV_READ_DONE,
                                      command);
                        break;
                case HF__TWO_LEASE_EVENT: write_message(w, proc, HF__EV_WATCHED, command); break;
                }
        }
}

static inline void check_alone(struct world *w, int proc) {
        const struct proc *p = &w->procs[proc];

        for (unsigned i = 0; i < w->n_procs; i++) {
                const struct proc *q = &w->procs[i];
                if (q == p || !q->alive || !q->acts || w->now >= q->valid_until)
                        continue;
                w->n_overlaps++;
                if (!w->overlap_is_expected)
                        fail_msg("seed %llu, at %.3f s: %s (%d) leads while %s (%d) does",
                                 (unsigned long long)w->seed, (double)w->now / 1e9, p->identity,
                                 p->kind, q->identity, q->kind);
        }
}

/* The fence that a term gets names what the term records say, unless somebody has taken a Lease
 * meanwhile. */
static inline void check_fence(const struct world *w, const struct proc *p, uint64_t term) {
        for (int side = OLD; side <= NEW; side++) {
                bool mine = strcmp(w->lease[side].holder, p->identity) == 0 &&
                            w->lease[side].acquire_us == p->core.mine.acquire_us;
                uint64_t fenced = side == OLD && p->kind == KNOWS_BOTH ? p->two.old_term : term;
                if (knows(p->kind, side) && mine)
                        assert_int_equal(fenced, w->term[side]);
        }
}

static inline void begin_term(struct world *w, int proc, const struct hf__core_action *action) {
        struct proc *p = &w->procs[proc];

        p->acts = true;
        p->valid_until = action->valid_until;
        w->n_terms[p->kind]++;
        check_alone(w, proc);
        check_fence(w, p, action->term);
}

static inline void end(const struct world *w, struct proc *p, bool released) {
        p->is_done = released;
        for (int side = OLD; released && side <= NEW; side++)
                if (strcmp(w->lease[side].holder, p->identity) == 0)
                        fail_msg("seed %llu, at %.3f s: %s (%d) has stopped and says that it has "
                                 "released, but a Lease bears its name",
                                 (unsigned long long)w->seed, (double)w->now / 1e9, p->identity,
                                 p->kind);
}

static inline void open_watch(struct world *w, int proc) {
        w->procs[proc].watch++;
        for (int side = OLD; side <= NEW; side++)
                if (w->lease[side].exists)
                        tell(w, proc, side);
}

static inline void ask(struct world *w, int proc, const struct hf__core_action *action) {
        struct proc *p = &w->procs[proc];
        struct hf__two_lease_commands commands;
        bool write = action->type == HF__ACT_WRITE;

        if (p->kind != KNOWS_BOTH) {
                request(w, proc, p->kind == KNOWS_OLD ? OLD : NEW, write, action->op_id,
                        action->deadline, &action->record);
                return;
        }
        if (write)
                p->write_id = action->op_id;
        if (write)
                hf__two_lease_write(&p->two, action->op_id, &action->record, action->deadline,
                                    time_of(w), &commands);
        else
                hf__two_lease_read(&p->two, action->op_id, action->deadline, time_of(w), &commands);
        carry_out_two(w, proc, &commands);
}

static inline void carry_out(struct world *w, int proc, const struct hf__core_actions *actions) {
        struct proc *p = &w->procs[proc];

        for (unsigned i = 0; i < actions->n; i++)
                if (actions->list[i].type == HF__ACT_GATE_SHUT)
                        p->acts = false;
        for (unsigned i = 0; i < actions->n; i++) {
                const struct hf__core_action *action = &actions->list[i];
                switch (action->type) {
                case HF__ACT_READ:
                case HF__ACT_WRITE: ask(w, proc, action); break;
                case HF__ACT_WATCH: open_watch(w, proc); break;
                case HF__ACT_UNWATCH: p->watch = 0; break;
                case HF__ACT_TERM_START: begin_term(w, proc, action); break;
                case HF__ACT_EXTEND: p->valid_until = action->valid_until; break;
                case HF__ACT_TERM_DRAIN:
                case HF__ACT_TERM_ABORT:
                        add_event(w, E_JOIN, proc, w->now + 1 + up_to(w, S));
                        break;
                case HF__ACT_GATE_SHUT:
                case HF__ACT_STUCK:
                case HF__ACT_REPORT: break;
                case HF__ACT_STOPPED: end(w, p, action->released); break;
                }
        }
}

static inline void step(struct world *w, int proc, struct hf__core_event *event) {
        struct proc *p = &w->procs[proc];
        struct hf__core_actions actions;

        hf__core_step(&p->core, event, time_of(w), &actions);
        p->wake_at = actions.wake_at;
        carry_out(w, proc, &actions);
}

static inline void start(struct world *w, int proc, enum kind kind, const char *identity) {
        struct proc *p = &w->procs[proc];
        struct hf__core_config config = {.seed = draw(w)};
        struct hf__core_event tick = {.type = HF__EV_TICK};
        unsigned incarnation = p->incarnation + 1;

        *p = (struct proc){.kind = kind, .alive = true, .incarnation = incarnation};
        if (identity)
                (void)snprintf(p->identity, sizeof p->identity, "%s", identity);
        else
                (void)snprintf(p->identity, sizeof p->identity, "p%d_%u", proc, incarnation);
        strcpy(config.identity, p->identity);
        hf_leader_timing_defaults(&config.timing);
        hf__two_lease_init(&p->two, p->identity, config.timing.lease_duration);
        hf__core_init(&p->core, &config, time_of(w));
        if (w->n_procs <= (unsigned)proc)
                w->n_procs = (unsigned)proc + 1;
        step(w, proc, &tick);
}

static inline void crash(struct world *w, int proc) {
        struct proc *p = &w->procs[proc];
        const char *old = w->lease[OLD].holder, *new = w->lease[NEW].holder;

        if (p->alive && p->kind == KNOWS_BOTH &&
            (strcmp(old, p->identity) == 0) != (strcmp(new, p->identity) == 0))
                w->n_split_crashes++;
        p->alive = p->acts = false;
}

static inline void order(struct world *w, int proc, enum hf__core_event_type type) {
        struct hf__core_event event = {.type = type};

        if (w->procs[proc].alive)
                step(w, proc, &event);
}

/* ---- the run ---- */

static inline void replied(struct world *w, const struct event *event) {
        struct proc *p = &w->procs[event->proc];
        struct hf__two_lease_commands commands;
        struct hf__core_event done = {.type = event->write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE,
                                      .op_id = event->op_id,
                                      .result = event->result,
                                      .record = event->record};

        if (++w->n_replies == w->crash_at) {
                crash(w, event->proc);
                return;
        }
        if (p->kind != KNOWS_BOTH) {
                step(w, event->proc, &done);
                return;
        }
        hf__two_lease_response(&p->two, event->side, event->op_id, event->result, 0, &event->record,
                               time_of(w), &commands);
        carry_out_two(w, event->proc, &commands);
        w->n_halves += p->two.half_since != 0;
}

static inline void told(struct world *w, const struct event *event) {
        struct proc *p = &w->procs[event->proc];
        struct hf__two_lease_commands commands;
        struct hf__core_event observation = {.type = HF__EV_WATCHED, .record = event->record};

        if (event->watch != p->watch)
                return;
        if (w->faults && chance(w, 20)) {
                observation.type = HF__EV_WATCH_LOST;
                step(w, event->proc, &observation);
        } else if (p->kind != KNOWS_BOTH) {
                step(w, event->proc, &observation);
        } else {
                hf__two_lease_watched(&p->two, event->side, &event->record, time_of(w), &commands);
                carry_out_two(w, event->proc, &commands);
        }
}

static inline void delivered(struct world *w, const struct event *event) {
        struct hf__core_event message = {.type = event->message,
                                         .op_id = event->op_id,
                                         .result = event->result,
                                         .record = event->record};

        step(w, event->proc, &message);
}

static inline void handle(struct world *w, struct event *event) {
        struct proc *p = &w->procs[event->proc];

        if (event->type == E_APPLY) { /* what is on its way arrives, whoever sent it */
                apply(w, event);
                return;
        }
        if (!p->alive || event->incarnation != p->incarnation)
                return;
        if (w->now < p->paused_until) {
                struct event *later = add_event(w, event->type, event->proc, p->paused_until);
                uint64_t seq = event->seq; /* in the order it came */
                *later = *event;
                later->at = p->paused_until;
                later->seq = seq;
                return;
        }
        if (event->type == E_REPLY)
                replied(w, event);
        else if (event->type == E_NEWS)
                told(w, event);
        else if (event->type == E_LETTER)
                delivered(w, event);
        else
                order(w, event->proc, HF__EV_JOINED);
}

static inline hf_nsec wakes_at(const struct proc *p) {
        if (!p->alive)
                return HF_NSEC_NEVER;
        return p->wake_at > p->paused_until   ? p->wake_at
               : p->paused_until > p->wake_at ? p->paused_until
                                              : p->wake_at;
}

/* The next thing that happens, unless it is after `until`. */
static inline bool turn(struct world *w, hf_nsec until) {
        unsigned next = MAX_EVENTS;
        int waking = -1;
        hf_nsec at = until;

        for (unsigned i = 0; i < w->n_events; i++)
                if (w->events[i].at < at || (w->events[i].at == at && next < MAX_EVENTS &&
                                             w->events[i].seq < w->events[next].seq)) {
                        next = i;
                        at = w->events[i].at;
                }
        for (unsigned i = 0; i < w->n_procs; i++)
                if (wakes_at(&w->procs[i]) < at) {
                        waking = (int)i;
                        at = wakes_at(&w->procs[i]);
                }
        if (at >= until && next == MAX_EVENTS && waking < 0) {
                w->now = until;
                return false;
        }
        w->now = at > w->now ? at : w->now;
        if (waking >= 0) {
                order(w, waking, HF__EV_TICK);
                return true;
        }
        struct event event = w->events[next];
        w->events[next] = w->events[--w->n_events];
        handle(w, &event);
        return true;
}

static inline void run_for(struct world *w, hf_nsec duration) {
        hf_nsec until = w->now + duration;

        while (turn(w, until))
                ;
}

static inline struct world *new_world(uint64_t seed) {
        static struct world worlds[1];
        struct world *w = &worlds[0];

        memset(w, 0, offsetof(struct world, events));
        memset(w->procs, 0, sizeof w->procs);
        w->n_events = w->n_procs = w->crash_at = w->n_replies = w->n_overlaps = 0;
        memset(w->n_terms, 0, sizeof w->n_terms);
        w->n_split_crashes = w->n_halves = w->n_given_back = w->n_undone = 0;
        w->faults = w->overlap_is_expected = false;
        w->now = 1000 * S;
        w->rng = w->seed = seed;
        w->revision = 100;
        return w;
}
