/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process: it runs the steps of its core, carries out the actions, and runs the work of a term.
 * In holdfastd the elector's loop does this for each elector. The promises are checked before each
 * action and after each step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/core_texts.h"
#include "tests/sim/sim.h"

hf_nsec sim_state_limit(const struct sim_proc *proc) {
        const struct hf_leader_timing *timing = &proc->core.config.timing;

        switch ((int)proc->core.state) {
        case HF_DRAINING: return timing->drain_deadline;
        case HF_ABORTING: return timing->stop_grace;
        case HF_RELEASING: return 2 * timing->request_timeout;
        default: return 0;
        }
}

bool sim_is_leading(const struct sim_proc *proc) {
        return proc->core.state == HF_LEADING || proc->core.state == HF_DRAINING;
}

int sim_leader(struct sim *sim) {
        for (int p = 0; p < sim->n_procs; p++)
                if (sim->procs[p].alive &&
                    hf__gate_may_act(&sim->procs[p].gate, sim_local_time(sim, &sim->procs[p])))
                        return p;
        return -1;
}

void sim_proc_set_wake(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec at;

        proc->wake_gen++;
        if (proc->frozen || proc->paused || !proc->alive || proc->wake_local == HF_NSEC_NEVER)
                return;
        /* The conversion rounds. By its own clock the core must not wake too early. */
        at = proc->true0 + (hf_nsec)((double)(proc->wake_local - proc->local0) / proc->rate) + 1;
        while (proc->local0 + (hf_nsec)((double)(at - proc->true0) * proc->rate) < proc->wake_local)
                at++;
        at += proc->wakes_late;
        sim_event_at(sim, at > sim->now ? at : sim->now, E_WAKE, p, proc->wake_gen, 0);
}

void sim_proc_boot(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        struct hf__core_config config = {.timing = sim->timing, .seed = sim_draw(sim)};

        config.renew_phase = 1 + (hf_nsec)(config.seed % (uint64_t)sim->timing.retry_period);
        proc->incarnation++;
        snprintf(proc->identity, sizeof proc->identity, "e%d-%u", p, proc->incarnation);
        config.identity = proc->identity;
        config.texts = core_texts();
        proc->alive = true;
        proc->paused = proc->restarting = false;
        proc->n_queued = 0;
        proc->watch_gen++;
        proc->watch_open = false;
        proc->work_alive = proc->joining = proc->held_write = false;
        proc->work_gen++;
        proc->term = proc->last_term = 0;
        proc->stop_asked = false;
        proc->late_until = 0;
        proc->wakes_late = 0;
        proc->stale_history = proc->must_read = proc->short_abort = proc->stopped_free = false;
        proc->contend_from = 0;
        proc->n_steps = 0;
        proc->op_waits = proc->has_turn = false;
        proc->has_written = proc->old_write_applied = false;
        proc->ok_sent_at = -1;
        proc->ok_restores = proc->last_term_restores = sim->n_restores;
        hf__gate_shut(&proc->gate);
        TRACE(sim, "%-6s starts", proc->identity);
        STEP(sim, p, "starts");
        hf__core_init(&proc->core, &config,
                      (struct hf__core_time){.boot = sim_local_time(sim, proc),
                                             .real_us = sim->now / 1000 + proc->real_offset_us});
        sim_proc_event(sim, p, HF__EV_TICK);
}

void sim_proc_kill(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        TRACE(sim, "%-6s is killed", proc->identity);
        STEP(sim, p, "dies");
        sim_mark(sim, MARK_STATE, p, sim->now, -1, "killed");
        sim_mark_resumed(sim, p);
        proc->alive = false;
        proc->work_alive = false;
        proc->work_gen++;
        proc->wake_gen++;
        proc->watch_open = false;
        proc->n_queued = 0;
        sim_unfenced_kill(sim, p);
        hf__gate_shut(&proc->gate);
}

/*
 * As in the library, electors at a server without a fence do not learn of the death. This uses no
 * random number, so that the other faults of a schedule stay as they are.
 */
void sim_proc_prove_death(struct sim *sim, int p) {
        for (int other = 0; other < sim->n_procs && !sim->fence_off; other++) {
                uint64_t chance =
                        ((uint64_t)sim->now ^ (uint64_t)other) * UINT64_C(0x9e3779b97f4a7c15);

                if (other != p && sim->procs[other].alive && chance >> 62 == 0)
                        sim_event_at(sim, sim->now + (hf_nsec)(chance % (2 * (uint64_t)S)), E_DEAD,
                                     other, (uint64_t)p, sim->procs[p].incarnation);
        }
}

/* ---- the work of a term ---- */

static void join_after(struct sim *sim, int p, hf_nsec delay) {
        sim_event_at(sim, sim->now + delay, E_JOIN, p, sim->procs[p].work_gen, 0);
        sim->procs[p].joining = true;
}

/* While there are faults, the work of 70 of 100 terms ends promptly, see join_mode in sim.h. */
static void start_work(struct sim *sim, int p, uint64_t term) {
        struct sim_proc *proc = &sim->procs[p];
        uint64_t d = sim_draw(sim) % 100;

        proc->work_alive = true;
        proc->joining = false;
        proc->term = proc->last_term = term;
        proc->last_term_restores = proc->ok_restores;
        proc->term_local = sim_local_time(sim, proc);
        proc->short_abort = false;
        proc->work_gen++;
        sim_unfenced_term(sim, p);
        proc->join_mode = sim->calm ? 0 : (d >= 70) + (d >= 85) + (d >= 97);
        COUNT(sim, terms);
        sim_event_at(sim, sim->now, E_WORK, p, proc->work_gen, 0);
}

static void notify_work(struct sim *sim, int p, bool abort) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec grace = sim->timing.stop_grace, drain = sim->timing.drain_deadline;

        if (!proc->work_alive)
                return;
        if (proc->join_mode != 0)
                COUNT(sim, slow_joins);
        if (proc->join_mode == 3 || (!abort && proc->join_mode == 2))
                return;
        if (proc->join_mode == 0 && !proc->joining)
                join_after(sim, p, sim_between(sim, 0, 200 * MS));
        else if (!abort)
                join_after(sim, p, sim_between(sim, 0, drain + drain / 4));
        else /* mostly within the grace, but not always */
                join_after(sim, p, sim_between(sim, 0, grace + grace / 10));
}

void sim_proc_work(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        bool gated = hf__gate_may_act(&proc->gate, sim_local_time(sim, proc));
        hf_nsec under_way = sim_between(sim, MS, 30 * MS);

        if (gated)
                STEP(sim, p, "acts");
        if (!sim->calm && sim_draw(sim) % 32 == 0) { /* the network delivers it very late */
                COUNT(sim, late_fenced_writes);
                under_way = sim_between(sim, S, 3 * sim->timing.lease_duration);
        }
        /* If the write has passed the gate, the elector always learns of a refusal; otherwise only
         * sometimes. */
        if (sim->fence_off && gated)
                sim_unfenced_send(sim, p, under_way);
        else if (!sim->fence_off)
                sim_event_at(sim, sim->now + under_way, E_FENCED, p, proc->term,
                             gated || sim_chance(sim, 10));
        sim_event_at(sim, sim->now + sim_between(sim, 200 * MS, 2 * S), E_WORK, p, proc->work_gen,
                     0);
}

void sim_proc_join(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        if (sim_unfenced_delays_join(sim, p)) {
                join_after(sim, p, 5 * MS);
                return;
        }
        proc->work_alive = false;
        STEP(sim, p, "joined");
        /* P4: after a short term the process must wait for a retry period before it contends. */
        proc->contend_from =
                proc->short_abort ? sim_local_time(sim, proc) + sim->timing.retry_period : 0;
        sim_proc_event(sim, p, HF__EV_JOINED);
}

/* ---- steps ---- */

static void mark_validity(struct sim *sim, int p, hf_nsec valid_until) {
        const struct sim_proc *proc = &sim->procs[p];

        if (sim->draw && !proc->frozen && valid_until < HF_NSEC_NEVER / 2)
                sim_mark(sim, MARK_VALID, p,
                         sim->now + (hf_nsec)((double)(valid_until - sim_local_time(sim, proc)) /
                                              proc->rate),
                         0, "");
}

static void send_request(struct sim *sim, int p, const struct hf__core_action *action) {
        if (sim_queue_holds(sim, p))
                return;
        TRACE(sim, "%-6s %s #%u %s", sim->procs[p].identity,
              action->type == HF__ACT_READ ? "read" : "write", action->op_id,
              action->type == HF__ACT_READ ? "" : action->record.rv);
        if (action->type == HF__ACT_WRITE && action->record.holder[0] == '\0')
                COUNT(sim, planned_releases);
        sim_net_send(sim, p, action);
}

/* How much longer a state lasts whose deadline the process always notices late: the deadline begins
 * anew three times. */
static hf_nsec late_wakes(const struct sim_proc *proc) {
        hf_nsec late = (hf_nsec)((double)proc->wakes_late * proc->rate) + 1;

        return 4 * late + 3 * sim_state_limit(proc);
}

/* In some schedules, a process whose work never ends is always woken late from its abort on. This
 * uses no random number, so that the other faults of a schedule stay as they are. */
static void wake_late(struct sim *sim, struct sim_proc *proc) {
        uint64_t chance = (uint64_t)sim->now * UINT64_C(0x9e3779b97f4a7c15);

        if (sim->calm || sim->steps || chance >> 62 != 0)
                return;
        COUNT(sim, late_wakes);
        TRACE(sim, "%-6s is woken late from now on", proc->identity);
        proc->wakes_late = 2 * S + (hf_nsec)(chance % (uint64_t)S);
        proc->stuck_by_local += late_wakes(proc);
        proc->stop_by_local += late_wakes(proc);
}

static void abort_term(struct sim *sim, int p, const char *why) {
        struct sim_proc *proc = &sim->procs[p];

        TRACE(sim, "%-6s aborts: %s", proc->identity, why);
        STEP(sim, p, "aborts");
        COUNT(sim, aborts);
        sim_mark(sim, MARK_NOTE, p, sim->now, 0, why);
        proc->short_abort =
                !proc->stop_asked && !proc->core.hand_over_requested &&
                sim_local_time(sim, proc) - proc->term_local < sim->timing.lease_duration;
        sim_unfenced_abort(sim, p);
        notify_work(sim, p, true);
        proc->stuck_by_local = sim_local_time(sim, proc) + sim->timing.stop_grace + 10 * MS;
        if (proc->work_alive && proc->join_mode == 3)
                wake_late(sim, proc);
}

/* Carries out one action. The caller keeps the core's order, as the elector loop does. */
static void carry_out(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];

        sim_check_actions(sim, p, action);
        switch (action->type) {
        case HF__ACT_READ:
        case HF__ACT_WRITE: send_request(sim, p, action); break;
        case HF__ACT_WATCH: sim_net_watch(sim, p); break;
        case HF__ACT_UNWATCH: sim_net_unwatch(sim, p); break;
        case HF__ACT_TERM_START:
                TRACE(sim, "%-6s LEADS term %" PRIu64, proc->identity, action->term);
                STEP(sim, p, "leads");
                hf__gate_open(&proc->gate, action->valid_until);
                mark_validity(sim, p, action->valid_until);
                start_work(sim, p, action->term);
                break;
        case HF__ACT_EXTEND:
                STEP(sim, p, "extends");
                hf__gate_extend(&proc->gate, action->valid_until);
                mark_validity(sim, p, action->valid_until);
                break;
        case HF__ACT_TERM_DRAIN:
                TRACE(sim, "%-6s drains", proc->identity);
                STEP(sim, p, "drains");
                notify_work(sim, p, false);
                break;
        case HF__ACT_GATE_SHUT: hf__gate_shut(&proc->gate); break;
        case HF__ACT_TERM_ABORT: abort_term(sim, p, action->text); break;
        case HF__ACT_STUCK:
                TRACE(sim, "%-6s is stuck", proc->identity);
                STEP(sim, p, "stuck");
                COUNT(sim, stuck);
                break;
        case HF__ACT_REPORT: break;
        case HF__ACT_STOPPED:
                STEP(sim, p, "stopped");
                TRACE(sim, "%-6s stopped, %s", proc->identity,
                      action->released ? "released" : "not released");
                sim_check_stopped(sim, p, action->released);
                proc->stopped_free = action->released;
                break;
        }
}

/* Stops the process of a sweep after the chosen step. */
static void sweep_stop(struct sim *sim, int p) {
        struct sim_sweep *sweep = &sim->sweep;

        if (!sweep->on || p != sweep->proc || sim->now >= sim->chaos_until)
                return;
        if (++sweep->n_steps == sweep->at && sim->procs[p].alive && !sim->procs[p].stop_asked &&
            sim->procs[p].core.state != HF_STUCK) {
                COUNT(sim, stops_at_a_step);
                sim_proc_stop(sim, p);
        }
}

void sim_proc_step(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        struct hf__core_actions *actions = &sim->actions;
        hf_nsec local = sim_local_time(sim, proc);
        enum hf_leader_state old_state = proc->core.state;
        unsigned n_anew = proc->core.deadline.n_anew;

        COUNT(sim, steps);
        if (proc->last_step_at != sim->now)
                proc->n_same_instant = 0;
        proc->last_step_at = sim->now;
        /* A core that always wants to be woken at once would never let time pass. */
        if (++proc->n_same_instant > 32)
                sim_violate(sim, "P4: %s makes step after step without waiting", proc->identity);
        sim->event.op_unsent = sim_queue_is_unsent(proc);
        hf__core_step(&proc->core, &sim->event,
                      (struct hf__core_time){.boot = local,
                                             .real_us = sim->now / 1000 + proc->real_offset_us},
                      actions);
        for (unsigned i = 0; i < actions->n; i++)
                if (!HAS_DEFECT(sim, shut_gate_last) || actions->list[i].type != HF__ACT_GATE_SHUT)
                        carry_out(sim, p, &actions->list[i]);
        if (HAS_DEFECT(sim, shut_gate_last) && actions->n > 0 &&
            actions->list[0].type == HF__ACT_GATE_SHUT)
                hf__gate_shut(&proc->gate);
        if (proc->core.deadline.n_anew > n_anew)
                COUNT(sim, deadlines_anew);
        if (proc->core.state != old_state || proc->n_steps++ == 0)
                sim_mark(sim, MARK_STATE, p, sim->now, (int)proc->core.state, "");
        if (sim->event.type == HF__EV_STALE_TERM && sim_is_leading(proc))
                sim_violate(sim, "P2: %s goes on leading although its term is stale",
                            proc->identity);
        if (actions->wake_at != proc->wake_local || sim->event.type == HF__EV_TICK) {
                proc->wake_local = actions->wake_at;
                sim_proc_set_wake(sim, p);
        }
        sim_check_p1(sim);
        sim_check_overdue(sim, p);
        if (proc->core.in_doubt && !proc->has_written)
                sim_violate(sim, "P6: %s is in doubt, but has sent no write", proc->identity);
        sweep_stop(sim, p);
        if (proc->core.state == HF_STOPPED || proc->core.state == HF_STUCK)
                if (proc->alive && sim->now < sim->chaos_until && !proc->restarting) {
                        proc->restarting = true; /* the host ends the process and starts it again */
                        sim_event_at(sim, sim->now + sim_between(sim, 100 * MS, 5 * S), E_RESTART,
                                     p, 0, 0);
                }
}

void sim_proc_event(struct sim *sim, int p, enum hf__core_event_type type) {
        sim->event.type = type;
        sim->event.op_id = 0;
        sim->event.result = 0;
        sim->event.retry_after = 0;
        sim->event.doubt_at = sim_unfenced_doubt_at(&sim->procs[p]);
        sim_proc_step(sim, p);
}

/*
 * The process learns that the store's history was replaced, because its watch of the store was
 * opened again. Its watches and its term end, and it must no longer use what it knew of the Lease.
 */
void sim_proc_epoch(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        TRACE(sim, "%-6s learns that the history was replaced", proc->identity);
        sim_mark(sim, MARK_NOTE, p, sim->now, 0, "learns that the history was replaced");
        proc->stale_history = false;
        proc->n_epochs_seen++;
        proc->watch_gen++;
        proc->watch_open = false;
        if (proc->core.state == HF_STOPPED || proc->core.state == HF_STUCK)
                return;
        if (sim_is_leading(proc))
                COUNT(sim, ends_of_term_by_epoch);
        if (!HAS_DEFECT(sim, forget_epoch)) {
                proc->must_read = true;
                sim_proc_event(sim, p, HF__EV_STALE_TERM);
        }
        sim_proc_event(sim, p, HF__EV_WATCH_LOST);
}

void sim_proc_stop(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        const struct hf_leader_timing *t = &sim->timing;

        if (!sim_is_leading(proc))
                COUNT(sim, stops_following);
        TRACE(sim, "%-6s is asked to stop", proc->identity);
        STEP(sim, p, "stops");
        sim_mark(sim, MARK_NOTE, p, sim->now, 0, "asked to stop");
        proc->stop_asked = true;
        /* P6: if nothing fails from now on, the Lease must be free at the end of the stop. */
        proc->clean_since_stop = proc->network == NET_GOOD && !proc->frozen &&
                                 !proc->stale_history && !proc->old_write_applied &&
                                 sim->hung_until <= sim->now && sim->slow_until <= sim->now &&
                                 proc->late_until < sim->now &&
                                 sim_unfenced_is_settled(sim, proc) &&
                                 (proc->core.op_kind == 0 || !proc->op_went_wrong);
        /* P6: the stop must end by then, whatever fails. */
        proc->stop_by_local = sim_local_time(sim, proc) + 2 * t->request_timeout + 10 * MS;
        if (proc->core.state == HF_ABORTING || sim_is_leading(proc))
                proc->stop_by_local += t->stop_grace;
        if (sim_is_leading(proc))
                proc->stop_by_local += t->drain_deadline;
        if (proc->wakes_late != 0)
                proc->stop_by_local += late_wakes(proc);
        sim_proc_event(sim, p, HF__EV_STOP);
}

/* Ends a pause. The core may handle the queued events at once, or make a step of its own first. */
void sim_proc_resume(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        unsigned n = proc->n_queued;

        proc->paused = false;
        sim_mark_resumed(sim, p);
        if (HAS_DEFECT(sim, clock_without_suspend))
                proc->true0 += sim->now - proc->paused_at;
        TRACE(sim, "%-6s resumes", proc->identity);
        if (proc->held_write)
                sim_event_at(sim, sim->now + MS, E_FENCED, p, proc->term, 0);
        proc->held_write = false;
        if (sim_chance(sim, 50))
                sim_proc_event(sim, p, HF__EV_TICK);
        proc->n_queued = 0;
        for (unsigned i = 0; i < n && proc->alive && !proc->paused; i++) {
                struct sim_event event = proc->queue[i];

                sim->now++; /* each step takes some time */
                sim_dispatch(sim, &event);
        }
        if (proc->alive)
                sim_proc_event(sim, p, HF__EV_TICK);
}
