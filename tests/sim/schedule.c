/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One schedule from beginning to end: the random numbers, the clocks, the heap of events.
 *
 * Every random number comes from sim_draw (or the generator of unfenced.c), and events of one
 * instant run in the order in which they were scheduled. So a seed with the same options always
 * gives the same schedule. If a change draws one number more or less, nearly every seed gives
 * another schedule.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/* splitmix64 */
uint64_t sim_draw(struct sim *sim) {
        uint64_t z = sim->rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

hf_nsec sim_between(struct sim *sim, hf_nsec low, hf_nsec high) {
        return low + (hf_nsec)(sim_draw(sim) % (uint64_t)(high - low + 1));
}
bool sim_chance(struct sim *sim, unsigned percent) { return sim_draw(sim) % 100 < percent; }

/* ---- clocks ---- */

hf_nsec sim_local_time(const struct sim *sim, const struct sim_proc *proc) {
        if (proc->frozen)
                return proc->local0;
        return proc->local0 + (hf_nsec)((double)(sim->now - proc->true0) * proc->rate);
}

/* Changes a clock. It continues from the present local time, so it does not jump. */
void sim_set_clock(struct sim *sim, struct sim_proc *proc, double rate, bool frozen) {
        proc->local0 = sim_local_time(sim, proc);
        proc->true0 = sim->now;
        proc->rate = rate;
        if (proc->frozen && !frozen)
                proc->thawed_at = sim->now;
        proc->frozen = frozen;
}

/* ---- the heap of events ---- */

static bool is_before(const struct sim_event *a, const struct sim_event *b) {
        return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void sim_event_at(struct sim *sim, hf_nsec at, enum sim_event_type type, int proc, uint64_t a,
                  uint64_t b) {
        struct sim_event event =
                {.at = at, .seq = sim->seq++, .type = type, .proc = proc, .a = a, .b = b};
        unsigned i = sim->n_events;

        if (sim->n_events == MAX_EVENTS)
                sim_violate(sim, "%d events are scheduled at once", MAX_EVENTS);
        event.incarnation = sim->procs[proc].incarnation;
        for (; i > 0 && is_before(&event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
                sim->heap[i] = sim->heap[(i - 1) / 2];
        sim->heap[i] = event;
        sim->n_events++;
}

static struct sim_event pop_event(struct sim *sim) {
        struct sim_event first = sim->heap[0], last = sim->heap[--sim->n_events];
        unsigned i = 0, child;

        while ((child = 2 * i + 1) < sim->n_events) {
                if (child + 1 < sim->n_events &&
                    is_before(&sim->heap[child + 1], &sim->heap[child]))
                        child++;
                if (!is_before(&sim->heap[child], &last))
                        break;
                sim->heap[i] = sim->heap[child];
                i = child;
        }
        sim->heap[i] = last;
        return first;
}

/* ---- events ---- */

/* A process learns that another one is dead. An identity belongs to one incarnation, so the proof
 * holds for each record that names the dead process. */
static void prove_death(struct sim *sim, const struct sim_event *event) {
        const struct hf__core *core = &sim->procs[event->proc].core;
        char dead[32];

        (void)snprintf(dead, sizeof dead, "e%d-%u", (int)event->a, (unsigned)event->b);
        if (!core->observed.exists || strcmp(core->observed.holder, dead) != 0)
                return;
        COUNT(sim, proofs_of_death);
        hf__core_observed(core, &sim->event.record);
        sim_proc_event(sim, event->proc, HF__EV_HOLDER_DEAD);
}

/*
 * An event for a process. It is dropped if that incarnation is dead, and queued while the process
 * is paused.
 */
static void deliver(struct sim *sim, const struct sim_event *event) {
        struct sim_proc *proc = &sim->procs[event->proc];

        if (!proc->alive || event->incarnation != proc->incarnation)
                return;
        if (proc->paused) {
                if (proc->n_queued == MAX_QUEUED)
                        sim_violate(sim, "%d events are queued for a paused process", MAX_QUEUED);
                proc->queue[proc->n_queued++] = *event;
                return;
        }
        switch ((int)event->type) {
        case E_WAKE:
                if (event->a == proc->wake_gen)
                        sim_proc_event(sim, event->proc, HF__EV_TICK);
                break;
        case E_REPLY: sim_net_reply(sim, event->a); break;
        case E_WATCH:
                if (event->b != proc->watch_gen)
                        break;
                sim->event.record = sim->history[event->a];
                sim_proc_event(sim, event->proc, HF__EV_WATCHED);
                break;
        case E_WATCH_LOST:
                if (event->a == proc->watch_gen)
                        sim_proc_event(sim, event->proc, HF__EV_WATCH_LOST);
                break;
        case E_WORK:
                if (event->a == proc->work_gen && proc->work_alive)
                        sim_proc_work(sim, event->proc);
                break;
        case E_TURN: sim_queue_turn(sim, event->proc, event->a); break;
        case E_DEAD: prove_death(sim, event); break;
        case E_EPOCH: sim_proc_epoch(sim, event->proc); break;
        case E_ANSWER: sim_unfenced_answer(sim, event); break;
        case E_STALE:
                if (event->a == proc->work_gen && proc->work_alive)
                        sim_proc_event(sim, event->proc, HF__EV_STALE_TERM);
                break;
        case E_JOIN:
                if (event->a == proc->work_gen && proc->work_alive)
                        sim_proc_join(sim, event->proc);
                break;
        default: break;
        }
}

void sim_dispatch(struct sim *sim, const struct sim_event *event) {
        struct sim_proc *proc = &sim->procs[event->proc];

        COUNT(sim, events);
        switch (event->type) {
        case E_APPLY: sim_net_apply(sim, event->a); break;
        case E_FENCED: sim_store_fenced(sim, event); break;
        case E_UNFENCED: sim_unfenced_arrive(sim, event->a); break;
        case E_CHAOS: sim_chaos(sim); break;
        case E_RESUME:
                if (proc->alive && proc->paused && event->incarnation == proc->incarnation)
                        sim_proc_resume(sim, event->proc);
                break;
        case E_THAW:
                if (proc->frozen) {
                        sim_set_clock(sim, proc, proc->rate, false);
                        sim_proc_set_wake(sim, event->proc);
                }
                break;
        case E_RESTART:
                if (event->incarnation != proc->incarnation)
                        break;
                if (proc->alive)
                        sim_proc_kill(sim, event->proc);
                sim_proc_boot(sim, event->proc);
                break;
        case E_WAKE:
        case E_REPLY:
        case E_WATCH:
        case E_WATCH_LOST:
        case E_WORK:
        case E_STALE:
        case E_TURN:
        case E_DEAD:
        case E_EPOCH:
        case E_ANSWER:
        case E_JOIN: deliver(sim, event); break;
        }
}

void sim_run_until(struct sim *sim, hf_nsec until) {
        while (sim->n_events && sim->heap[0].at <= until) {
                struct sim_event event = pop_event(sim);

                if (event.at > sim->now)
                        sim->now = event.at;
                sim_dispatch(sim, &event);
        }
        if (sim->now < until)
                sim->now = until;
}

/* ---- a schedule ---- */

/* Chooses the default timing most often; else one with little time between the deadlines. */
static void draw_timing(struct sim *sim) {
        static const struct {
                int lease, renew, retry_ms;
        } sets[] = {{15, 10, 2000}, {15, 10, 2000}, {6, 3, 1000},
                    {10, 6, 1500},  {12, 10, 3000}, {4, 3, 500}};
        unsigned i = (unsigned)(sim_draw(sim) % 6);

        sim->timing = (struct hf_leader_timing){.lease_duration = sets[i].lease * S,
                                                .renew_deadline = sets[i].renew * S,
                                                .retry_period = sets[i].retry_ms * MS,
                                                .drain_deadline = sim_between(sim, 1, 8) * S};
        hf_leader_timing_defaults(&sim->timing);
        if (hf_leader_timing_check(&sim->timing, NULL))
                sim_violate(sim, "the schedule has an invalid timing");
}

static void count_contenders(struct sim *sim) {
        switch (sim->n_procs) {
        case 3: COUNT(sim, contenders_3); break;
        case 4: COUNT(sim, contenders_4); break;
        case 5: COUNT(sim, contenders_5); break;
        case 6: COUNT(sim, contenders_6); break;
        case 7: COUNT(sim, contenders_7); break;
        default: break;
        }
}

static void begin_proc(struct sim *sim, struct sim_proc *proc) {
        /* Any two of these rates differ by less than the skew margin. */
        double rate = 0.976 + (double)(sim_draw(sim) % 1000) / 1000 * 0.048;

        if (!sim->clean && !sim->steps && sim_draw(sim) % 200 == 0) {
                rate = sim_chance(sim, 50) ? 0.5 : 2;
                COUNT(sim, odd_clock_rates);
        }
        proc->incarnation = 0;
        proc->n_unanswered = 0;
        proc->alive = false;
        proc->frozen = false;
        proc->network = NET_GOOD;
        proc->local0 = sim_between(sim, 0, 1000 * S);
        proc->true0 = 0;
        proc->rate = rate;
        proc->thawed_at = -1;
        proc->real_offset_us = INT64_C(1700000000000000) + sim_between(sim, -3600, 3600) * 1000000;
        proc->last_step_at = -1;
}

static void begin_schedule(struct sim *sim, uint64_t seed, int n_procs) {
        sim->rng = seed * UINT64_C(0xd1342543de82ef95) + 1;
        sim->n_procs = n_procs;
        if (n_procs == 0)
                sim->n_procs = sim_chance(sim, 70) ? 3 : (int)sim_between(sim, 3, MAX_PROCS);
        sim->n_events = sim->n_ops = 0;
        sim->seq = 0;
        sim->now = 0;
        count_contenders(sim);
        sim->clean = sim->calm = sim_chance(sim, 10);
        if (sim->sweep.on) {
                sim->clean = false;
                sim->calm = sim->sweep.calm;
        }
        sim->is_slow = false;
        sim->has_steady_network = seed % 5 == 3;
        sim->slow_cut_until = 0;
        if (sim->slow)
                sim->clean = sim->calm = true;
        /* A foreign server, whose revisions are not numbers. So each process counts its terms
         * itself, and no fence can compare them. */
        sim->opaque = sim_chance(sim, 5) && !sim->slow && !sim->steps;
        if (sim->opaque)
                COUNT(sim, opaque_revisions);
        sim_unfenced_begin(sim, seed);
        sim->n_history = 1;
        memset(&sim->history[0], 0, sizeof sim->history[0]);
        memset(&sim->term, 0, sizeof sim->term);
        memset(&sim->terms[0], 0, sizeof sim->terms[0]);
        sim->revision = sim->highest_revision = sim->newest_term = sim->last_commit_term = 0;
        sim->n_restores = sim->restored_index = 0;
        sim->hung_until = sim->slow_until = 0;
        sim->sweep.n_steps = 0;
        sim->n_marks = 0;
        sim->outsider_at = -1;
        sim->took = false;
        sim->release_at = sim->last_put_at = sim->put_at = 0;
        draw_timing(sim);
        for (int p = 0; p < sim->n_procs; p++)
                begin_proc(sim, &sim->procs[p]);
}

/*
 * Checks that each process can lead: kills the leader again and again, until no process is left to
 * take over.
 */
static void each_leads_in_turn(struct sim *sim) {
        for (int n = sim->n_procs; n > 1; n--) {
                int p = sim_leader(sim);
                bool others = false;
                hf_nsec until;

                if (p < 0)
                        sim_violate(sim, "P4: no process leads, %d are left", n);
                sim_proc_kill(sim, p);
                for (int i = 0; i < sim->n_procs; i++)
                        others = others || (sim->procs[i].alive && !sim->procs[i].stop_asked &&
                                            sim->procs[i].core.state != HF_STUCK);
                if (!others)
                        return;
                until = sim->now + sim->timing.lease_duration * 5 / 2 +
                        2 * sim->timing.request_timeout;
                while (sim_leader(sim) < 0 && sim->now < until)
                        sim_run_until(sim, sim->now + S / 4);
        }
        COUNT(sim, tails_every_one_leads);
}

static void end_schedule(struct sim *sim) {
        const struct hf_leader_timing *t = &sim->timing;
        bool able = false;

        sim_chaos_end(sim);
        /*
         * Enough time for hung requests to be applied, for a drain or a stop to end, for the Lease
         * and a backoff to expire, and for a request.
         */
        sim_run_until(sim, sim->now + t->lease_duration * 4 + t->drain_deadline + t->stop_grace +
                                   2 * t->request_timeout);
        for (int p = 0; p < sim->n_procs; p++) {
                able = able || (sim->procs[p].alive && !sim->procs[p].stop_asked &&
                                sim->procs[p].core.state != HF_STUCK);
                sim_check_overdue(sim, p);
        }
        if (!able) /* each process is dead, was asked to stop, or is stuck */
                return;
        if (sim_leader(sim) < 0)
                sim_violate(sim, "P4: no process leads, %d s after the last fault",
                            (int)((sim->now - sim->chaos_until) / S));
        COUNT(sim, tails);
        if (sim_chance(sim, 10))
                each_leads_in_turn(sim);
}

bool sim_schedule(struct sim *sim, uint64_t seed, int n_procs) {
        if (setjmp(sim->violated))
                return false;
        begin_schedule(sim, seed, n_procs);
        sim->chaos_until = sim_between(sim, 50, 110) * S;
        sim->longest_gap = sim_between(sim, 2, 12) * S;
        if (sim->sweep.on) /* short, because the sweep runs it many times */
                sim->chaos_until = sim_between(sim, 15, 40) * S;
        for (int p = 0; p < sim->n_procs; p++)
                sim_proc_boot(sim, p);
        if (sim->sweep.on && sim->calm) {
                sim_run_until(sim, sim->chaos_until);
                end_schedule(sim);
                return true;
        }
        if (sim->slow) {
                sim_slow(sim);
                return true;
        }
        if (sim->clean) {
                bool crash = sim_chance(sim, 50);

                sim_run_until(sim, sim_between(sim, 5 * S, 12 * S));
                sim_planned(sim, crash);
                return true;
        }
        sim_event_at(sim, sim_between(sim, S, 5 * S), E_CHAOS, 0, 0, 0);
        sim_run_until(sim, sim->chaos_until);
        end_schedule(sim);
        return true;
}
