/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See two_lease_fixture.h. The processes are here, the Leases in two_lease_store.c. Two invariants
 * of the three files:
 *
 * Every random number comes from two_lease_fixture_random(), and the calls follow the order of
 * events. Otherwise a seed would not reproduce its schedule.
 *
 * A process gets the watch events of one Lease in the order of the changes.
 */
#include "core_texts.h"
#include "two_lease_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

const char *const two_lease_side_names[] = {[OLD] = "old", [NEW] = "new"};
static const char *const knowledge_names[] = {"old", "both", "new"};

uint64_t two_lease_fixture_random(struct two_lease_fixture *f) {
        uint64_t z = f->rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

bool two_lease_fixture_chance(struct two_lease_fixture *f, unsigned of_1000) {
        return two_lease_fixture_random(f) % 1000 < of_1000;
}

hf_nsec two_lease_fixture_random_below(struct two_lease_fixture *f, hf_nsec most) {
        return (hf_nsec)(two_lease_fixture_random(f) % (uint64_t)most);
}

bool two_lease_has_fault(struct two_lease_fixture *f, unsigned of_1000) {
        return f->faults && two_lease_fixture_chance(f, of_1000);
}

static struct hf__core_time time_of(const struct two_lease_fixture *f) {
        return (struct hf__core_time){.boot = f->now, .real_us = f->now / 1000};
}

bool two_lease_does_know(const struct two_lease_process *p, enum hf__two_lease_side side) {
        return p->knows == KNOWS_BOTH || (p->knows == KNOWS_OLD) == (side == OLD);
}

/* ---- a process: the commands of its lock and the actions of its core ---- */

static void send_message(struct two_lease_fixture *f, int process, enum hf__core_event_type type,
                         const struct hf__two_lease_command *command) {
        hf_nsec most = two_lease_has_fault(f, 50) ? 50 * MSEC : MSEC / 5;
        struct two_lease_event *event =
                two_lease_add_event(f, TWO_LEASE_MESSAGE, process,
                                    f->now + 1 + two_lease_fixture_random_below(f, most));

        event->message = type;
        event->op_id = command->op_id;
        event->result = command->result;
        event->record = command->record;
}

/*
 * Counts writes that clear the old Lease while the process follows. Such a write either releases a
 * lock of which only the old half is held, or undoes an acquire.
 */
static void count_clearing(struct two_lease_fixture *f, const struct two_lease_process *p,
                           const struct hf__two_lease_command *command) {
        if (command->type != HF__TWO_LEASE_WRITE || command->side != OLD ||
            command->record.holder[0] || p->core.state != HF_FOLLOWING)
                return;
        /*
         * While the core acquires (op_kind 2), the lock undoes the acquire within that operation.
         */
        f->n_given_back += p->core.op_kind != 2;
        f->n_undone += p->core.op_kind == 2;
}

static void carry_out_commands(struct two_lease_fixture *f, int process,
                               const struct hf__two_lease_commands *commands) {
        struct two_lease_process *p = &f->processes[process];

        for (unsigned i = 0; i < commands->n; i++) {
                const struct hf__two_lease_command *command = &commands->list[i];
                bool is_of_write = command->op_id == p->write_id;

                switch (command->type) {
                case HF__TWO_LEASE_READ:
                case HF__TWO_LEASE_WRITE:
                        count_clearing(f, p, command);
                        two_lease_send_request(f, process, command->side,
                                               command->type == HF__TWO_LEASE_WRITE, command->op_id,
                                               command->deadline, &command->record);
                        break;
                case HF__TWO_LEASE_RESPONSE:
                        send_message(f, process, is_of_write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE,
                                     command);
                        break;
                case HF__TWO_LEASE_EVENT: send_message(f, process, HF__EV_WATCHED, command); break;
                }
        }
}

static void check_acts_alone(struct two_lease_fixture *f, int process) {
        const struct two_lease_process *p = &f->processes[process];

        for (unsigned i = 0; i < f->n_processes; i++) {
                const struct two_lease_process *q = &f->processes[i];
                if (q == p || !q->alive || !q->acts || f->now >= q->valid_until)
                        continue;
                f->n_overlaps++;
                if (!f->overlap_is_expected && !f->steps)
                        FAIL(f, "%s (%d) leads while %s (%d) does", p->identity, p->knows,
                             q->identity, q->knows);
        }
}

/*
 * The fence of a new term must equal the term records, unless a Lease was acquired by another
 * process meanwhile.
 */
static void check_fence(const struct two_lease_fixture *f, const struct two_lease_process *p,
                        uint64_t term) {
        for (int side = OLD; side <= NEW && !f->steps; side++) {
                const struct hf__record *lease = &f->lease[side];
                bool is_mine = strcmp(lease->holder, p->identity) == 0 &&
                               lease->acquire_us == p->core.term_record.acquire_us;
                uint64_t fenced = side == OLD && p->knows == KNOWS_BOTH ? p->two.old_term : term;
                if (two_lease_does_know(p, side) && is_mine)
                        assert_int_equal(fenced, f->term[side]);
        }
}

static void begin_term(struct two_lease_fixture *f, int process,
                       const struct hf__core_action *action) {
        struct two_lease_process *p = &f->processes[process];

        STEP(f, process, "%s", "leads");
        p->acts = p->works = true;
        p->valid_until = action->valid_until;
        f->n_terms[p->knows]++;
        check_acts_alone(f, process);
        check_fence(f, p, action->term);
}

static void check_release(const struct two_lease_fixture *f, struct two_lease_process *p,
                          bool released) {
        p->is_done = released;
        for (int side = OLD; released && !f->steps && side <= NEW; side++)
                if (strcmp(f->lease[side].holder, p->identity) == 0)
                        FAIL(f, "%s (%d) has stopped and reports its release, but holds a Lease",
                             p->identity, p->knows);
}

static void open_watch(struct two_lease_fixture *f, int process) {
        f->processes[process].watch = ++f->processes[process].n_watches;
        for (int side = OLD; side <= NEW; side++)
                if (f->lease[side].exists)
                        two_lease_send_watch_event(f, process, side);
}

/* Starts a read or a write: directly on the only Lease, or through the lock on both. */
static void begin_operation(struct two_lease_fixture *f, int process,
                            const struct hf__core_action *action) {
        struct two_lease_process *p = &f->processes[process];
        struct hf__two_lease_commands commands;
        bool write = action->type == HF__ACT_WRITE;

        if (p->knows != KNOWS_BOTH) {
                two_lease_send_request(f, process, p->knows == KNOWS_OLD ? OLD : NEW, write,
                                       action->op_id, action->deadline, &action->record);
                return;
        }
        if (write) {
                p->write_id = action->op_id;
                hf__two_lease_write(&p->two, action->op_id, &action->record, action->deadline,
                                    time_of(f), &commands);
        } else {
                hf__two_lease_read(&p->two, action->op_id, action->deadline, time_of(f), &commands);
        }
        carry_out_commands(f, process, &commands);
}

static void carry_out_action(struct two_lease_fixture *f, int process,
                             const struct hf__core_action *action) {
        struct two_lease_process *p = &f->processes[process];

        switch (action->type) {
        case HF__ACT_READ:
        case HF__ACT_WRITE: begin_operation(f, process, action); break;
        case HF__ACT_WATCH: open_watch(f, process); break;
        case HF__ACT_UNWATCH: p->watch = 0; break;
        case HF__ACT_TERM_START: begin_term(f, process, action); break;
        case HF__ACT_EXTEND:
                STEP(f, process, "%s", "extends");
                p->valid_until = action->valid_until;
                break;
        case HF__ACT_TERM_DRAIN:
        case HF__ACT_TERM_ABORT:
                STEP(f, process, "%s", action->type == HF__ACT_TERM_DRAIN ? "drains" : "aborts");
                two_lease_add_event(f, TWO_LEASE_JOINED, process,
                                    f->now + 1 + two_lease_fixture_random_below(f, SEC));
                break;
        case HF__ACT_GATE_SHUT:
        case HF__ACT_STUCK:
        case HF__ACT_REPORT: break;
        case HF__ACT_STOPPED:
                STEP(f, process, "%s", action->released ? "released" : "stopped");
                check_release(f, p, action->released);
                break;
        }
}

/* As in the elector, the gate is shut before the other actions are carried out. */
static void step_core(struct two_lease_fixture *f, int process, struct hf__core_event *event) {
        struct two_lease_process *p = &f->processes[process];
        struct hf__core_actions actions;

        hf__core_step(&p->core, event, time_of(f), &actions);
        p->wake_at = actions.wake_at;
        for (unsigned i = 0; i < actions.n; i++)
                if (actions.list[i].type == HF__ACT_GATE_SHUT)
                        p->acts = false;
        for (unsigned i = 0; i < actions.n; i++)
                carry_out_action(f, process, &actions.list[i]);
}

void two_lease_fixture_start(struct two_lease_fixture *f, int process,
                             enum two_lease_knowledge knows, const char *identity) {
        struct two_lease_process *p = &f->processes[process];
        struct hf__core_config config = {.seed = two_lease_fixture_random(f)};
        struct hf__core_event tick = {.type = HF__EV_TICK};
        unsigned incarnation = p->incarnation + 1;

        *p = (struct two_lease_process){.knows = knows, .alive = true, .incarnation = incarnation};
        if (identity)
                (void)snprintf(p->identity, sizeof p->identity, "%s", identity);
        else
                (void)snprintf(p->identity, sizeof p->identity, "p%d_%u", process, incarnation);
        config.identity = p->identity;
        config.texts = core_texts();
        hf_leader_timing_defaults(&config.timing);
        hf__two_lease_init(&p->two, p->identity, config.timing.lease_duration);
        hf__core_init(&p->core, &config, time_of(f));
        if (f->n_processes <= (unsigned)process)
                f->n_processes = (unsigned)process + 1;
        STEP(f, process, "starts %s", knowledge_names[knows]);
        step_core(f, process, &tick);
}

void two_lease_fixture_crash(struct two_lease_fixture *f, int process) {
        struct two_lease_process *p = &f->processes[process];
        bool has_old = strcmp(f->lease[OLD].holder, p->identity) == 0;
        bool has_new = strcmp(f->lease[NEW].holder, p->identity) == 0;

        if (p->alive && p->knows == KNOWS_BOTH && has_old != has_new)
                f->n_split_crashes++;
        if (p->alive && p->core.state != HF_STOPPED)
                STEP(f, process, "%s", "dies");
        p->alive = p->acts = false;
}

void two_lease_fixture_feed(struct two_lease_fixture *f, int process,
                            enum hf__core_event_type type) {
        struct two_lease_process *p = &f->processes[process];
        struct hf__core_event event = {.type = type};

        if (!p->alive)
                return;
        if (type == HF__EV_JOINED && p->works) {
                STEP(f, process, "%s", "joined");
                p->works = false;
        }
        if (type == HF__EV_STOP && !p->is_stopped && p->core.state != HF_STOPPED) {
                STEP(f, process, "%s", "stops");
                p->is_stopped = true;
        }
        step_core(f, process, &event);
}

/* ---- handling events ---- */

static void handle_reply(struct two_lease_fixture *f, const struct two_lease_event *event) {
        struct two_lease_process *p = &f->processes[event->process];
        struct hf__two_lease_commands commands;
        struct hf__core_event done = {.type = event->write ? HF__EV_WRITE_DONE : HF__EV_READ_DONE,
                                      .op_id = event->op_id,
                                      .result = event->result,
                                      .record = event->record};

        /*
         * There is a reply between any two writes, so crash_at can crash a process between any two
         * of them.
         */
        if (++f->n_replies == f->crash_at) {
                two_lease_fixture_crash(f, event->process);
                return;
        }
        if (p->knows != KNOWS_BOTH) {
                step_core(f, event->process, &done);
                return;
        }
        hf__two_lease_response(&p->two, event->side, event->op_id, event->result, 0, &event->record,
                               time_of(f), &commands);
        carry_out_commands(f, event->process, &commands);
        f->n_half_held += p->two.half_held_since != 0;
}

static void handle_watch_event(struct two_lease_fixture *f, const struct two_lease_event *event) {
        struct two_lease_process *p = &f->processes[event->process];
        struct hf__two_lease_commands commands;
        struct hf__core_event watched = {.type = HF__EV_WATCHED, .record = event->record};

        if (event->watch != p->watch)
                return;
        if (event->record.rv_number < p->watched_revision[event->side])
                FAIL(f, "a watch event of %s overtakes another one", p->identity);
        p->watched_revision[event->side] = event->record.rv_number;
        if (two_lease_has_fault(f, 20)) {
                watched.type = HF__EV_WATCH_LOST;
                step_core(f, event->process, &watched);
        } else if (p->knows != KNOWS_BOTH) {
                step_core(f, event->process, &watched);
        } else {
                hf__two_lease_watched(&p->two, event->side, &event->record, time_of(f), &commands);
                carry_out_commands(f, event->process, &commands);
        }
}

static void handle_message(struct two_lease_fixture *f, const struct two_lease_event *event) {
        struct hf__core_event message = {.type = event->message,
                                         .op_id = event->op_id,
                                         .result = event->result,
                                         .record = event->record};

        step_core(f, event->process, &message);
}

/* Events for a paused process are delivered after the pause, in the same order. */
static void postpone(struct two_lease_fixture *f, const struct two_lease_event *event) {
        hf_nsec until = f->processes[event->process].paused_until;
        struct two_lease_event *later = two_lease_add_event(f, event->type, event->process, until);

        *later = *event;
        later->at = until;
}

static void handle_event(struct two_lease_fixture *f, const struct two_lease_event *event) {
        const struct two_lease_process *p = &f->processes[event->process];

        if (event->type == TWO_LEASE_REQUEST) {
                /* The store applies a request even if the sender has crashed meanwhile. */
                two_lease_handle_request(f, event);
                return;
        }
        if (!p->alive || event->incarnation != p->incarnation)
                return;
        if (f->now < p->paused_until) {
                postpone(f, event);
                return;
        }
        switch (event->type) {
        case TWO_LEASE_REQUEST: break;
        case TWO_LEASE_REPLY: handle_reply(f, event); break;
        case TWO_LEASE_WATCH_EVENT: handle_watch_event(f, event); break;
        case TWO_LEASE_MESSAGE: handle_message(f, event); break;
        case TWO_LEASE_JOINED: two_lease_fixture_feed(f, event->process, HF__EV_JOINED); break;
        }
}

/* ---- time ---- */

/* A process that should have woken during its pause wakes at the end of the pause. */
static hf_nsec wakes_at(const struct two_lease_process *p) {
        if (!p->alive)
                return HF_NSEC_NEVER;
        return p->wake_at > p->paused_until ? p->wake_at : p->paused_until;
}

/* Returns the index of the next event before *at, and sets *at to its time. -1 = there is none. */
static int next_event(const struct two_lease_fixture *f, hf_nsec *at) {
        int next = -1;

        for (int i = 0; i < (int)f->n_events; i++) {
                const struct two_lease_event *event = &f->events[i];
                bool is_same_time = event->at == *at && next >= 0;
                if (event->at < *at || (is_same_time && event->seq < f->events[next].seq)) {
                        next = i;
                        *at = event->at;
                }
        }
        return next;
}

/* Returns the next process to wake before *at, and sets *at to that time. -1 = there is none. */
static int next_to_wake(const struct two_lease_fixture *f, hf_nsec *at) {
        int next = -1;

        for (int i = 0; i < (int)f->n_processes; i++)
                if (wakes_at(&f->processes[i]) < *at) {
                        next = i;
                        *at = wakes_at(&f->processes[i]);
                }
        return next;
}

/* Handles the next event or wake-up before `until`. Returns false if there is none. */
static bool handle_next(struct two_lease_fixture *f, hf_nsec until) {
        hf_nsec at = until;
        int next = next_event(f, &at), waking = next_to_wake(f, &at);

        if (next < 0 && waking < 0) {
                f->now = until;
                return false;
        }
        f->now = at > f->now ? at : f->now;
        if (waking >= 0) {
                two_lease_fixture_feed(f, waking, HF__EV_TICK);
                return true;
        }
        struct two_lease_event event = f->events[next];
        f->events[next] = f->events[--f->n_events];
        handle_event(f, &event);
        return true;
}

void two_lease_fixture_run_for(struct two_lease_fixture *f, hf_nsec duration) {
        hf_nsec until = f->now + duration;

        while (handle_next(f, until))
                ;
}

struct two_lease_fixture *two_lease_fixture_new(uint64_t seed) {
        static struct two_lease_fixture f; /* static because it is large */

        memset(&f, 0, sizeof f);
        f.now = 1000 * SEC;
        f.rng = f.seed = seed;
        f.revision = 100;
        return &f;
}
