/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, when, for how long. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static void pause_proc(struct sim *sim, int p, hf_nsec duration) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->paused)
                return;
        COUNT(sim, pauses);
        TRACE(sim, "%-6s pauses", proc->identity);
        sim_mark(sim, MARK_PAUSE, p, sim->now + duration, 0, "pause");
        proc->paused = true;
        proc->paused_at = sim->now;
        proc->clean_since_stop = false;
        proc->stop_by_local += (duration + duration / 10) * (proc->rate > 1.1 ? 2 : 1);
        proc->held_write = proc->work_alive &&
                           hf__gate_may_act(&proc->gate, sim_local(sim, proc)) &&
                           sim_chance(sim, 60);
        if (proc->held_write)
                COUNT(sim, writes_across_a_pause);
        sim_at(sim, sim->now + duration, E_RESUME, p, 0, 0);
}

static void freeze(struct sim *sim, int p, hf_nsec duration) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->frozen)
                return;
        COUNT(sim, frozen_clocks);
        TRACE(sim, "%-6s clock stands still", proc->identity);
        sim_mark(sim, MARK_FREEZE, p, sim->now + duration, 0, "clock stands still");
        sim_set_clock(sim, proc, proc->rate, true);
        proc->clean_since_stop = false;
        proc->wake_gen++;
        sim_at(sim, sim->now + duration, E_THAW, p, 0, 0);
}

static void change_weather(struct sim *sim, bool all, int p) {
        enum sim_weather weather = (enum sim_weather)(sim_draw(sim) % _N_WEATHERS);

        for (int i = 0; i < sim->n_procs; i++)
                if (all || i == p) {
                        TRACE(sim, "%-6s network: weather %d", sim->procs[i].identity,
                              (int)weather);
                        sim->procs[i].weather = weather;
                        sim_mark(sim, MARK_WEATHER, i, sim->now, (int)weather, "");
                        if (weather != CLEAR)
                                sim->procs[i].clean_since_stop = false;
                }
}

/* A machine is suspended, and what runs on it: some of the contenders, for one and the same time.
 */
static void suspend(struct sim *sim, int first, hf_nsec duration) {
        COUNT(sim, suspends);
        for (int p = 0; p < sim->n_procs; p++)
                if ((p == first || sim_chance(sim, 40)) && sim->procs[p].alive)
                        pause_proc(sim, p, duration);
}

/* The store answers nobody for a while, and then all at once; or it answers everybody late. */
static void hang_store(struct sim *sim, bool slow, hf_nsec duration) {
        TRACE(sim, "store  %s", slow ? "is slow" : "hangs");
        sim_mark(sim, MARK_STORE, -1, sim->now + duration, 0, slow ? "slow" : "hangs");
        if (slow) {
                COUNT(sim, store_slow);
                sim->slow_until = sim->now + duration;
        } else {
                COUNT(sim, store_hangs);
                sim->hung_until = sim->now + duration;
        }
        for (int p = 0; p < sim->n_procs; p++)
                sim->procs[p].clean_since_stop = false;
}

void sim_rob_all(struct sim *sim) {
        sim->outsider_at = sim->now;
        for (int p = 0; p < sim->n_procs; p++)
                sim->procs[p].robbed = true;
}

static void outsider(struct sim *sim) {
        struct hf__record record = *sim_store_lease(sim);
        unsigned way = (unsigned)(sim_draw(sim) % 8);

        if (!record.exists)
                return;
        if (way >= 4) { /* labels: the record stays what it is */
                COUNT(sim, label_edits);
                if (sim_chance(sim, 20)) { /* among them the annotation that asks for a hand-over,
                                              also of an outsider's record */
                        COUNT(sim, hand_overs_by_annotation);
                        sim_mark(sim, MARK_STORE, -1, sim->now, 0,
                                 "the Lease asks for a hand-over");
                        (void)snprintf(record.hand_over_to, sizeof record.hand_over_to, "%s",
                                       sim_chance(sim, 80)
                                               ? sim->procs[sim_draw(sim) % (unsigned)sim->n_procs]
                                                         .identity
                                               : "ghost");
                }
                sim_store_put(sim, &record);
                return;
        }
        TRACE(sim, "an outsider touches the Lease");
        if (way == 0) {
                memset(&record, 0, sizeof record);
                COUNT(sim, deletions);
        } else {
                COUNT(sim, overwrites);
                if (way == 1)
                        snprintf(record.holder, sizeof record.holder, "ghost");
                else if (way == 2)
                        record.holder[0] = '\0';
                record.duration_s = sim_between(sim, 0, sim->timing.lease_duration / S);
        }
        sim_mark(sim, MARK_STORE, -1, sim->now, 0,
                 way == 0 ? "an outsider deletes the Lease" : "an outsider overwrites the Lease");
        sim_rob_all(sim);
        sim_store_put(sim, &record);
}

void sim_hand_over(struct sim *sim, int p, const char *successor) {
        COUNT(sim, hand_overs);
        if (strcmp(successor, "ghost") == 0)
                COUNT(sim, hand_overs_to_a_ghost);
        sim_mark(sim, MARK_NOTE, p, sim->now, 0, "asked to hand over");
        TRACE(sim, "%-6s is asked to hand over to %s", sim->procs[p].identity, successor);
        snprintf(sim->event.successor, sizeof sim->event.successor, "%s", successor);
        sim_proc_event(sim, p, HF__EV_HAND_OVER);
}

static void disturb(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec lease = sim->timing.lease_duration, d = sim_between(sim, 50 * MS, lease * 2);

        switch (sim_draw(sim) % 16) {
        case 0:
        case 1: pause_proc(sim, p, d); break;
        case 2:
                freeze(sim, p, d);
                if (sim_chance(sim, 50))
                        pause_proc(sim, p, d + sim_between(sim, -50 * MS, S));
                break;
        case 3:
        case 4: change_weather(sim, false, p); break;
        case 5: change_weather(sim, sim_chance(sim, 50), p); break;
        case 6: outsider(sim); break;
        case 7:
                if (!proc->paused && !proc->stop_asked)
                        sim_proc_stop(sim, p);
                break;
        case 8:
                if (!proc->paused)
                        sim_hand_over(sim, p,
                                      sim_chance(sim, 80)
                                              ? sim->procs[sim_draw(sim) % (unsigned)sim->n_procs]
                                                        .identity
                                              : "ghost");
                break;
        case 9:
                COUNT(sim, kills);
                sim_proc_kill(sim, p);
                sim_at(sim, sim->now + sim_between(sim, 0, lease * 2), E_RESTART, p, 0, 0);
                break;
        case 10:
                if (!proc->watch_open)
                        break;
                COUNT(sim, watches_lost);
                proc->watch_open = false;
                sim_at(sim, sim->now + sim_between(sim, 0, S), E_WATCH_LOST, p, proc->watch_gen, 0);
                break;
        case 11:
                COUNT(sim, watches_mute);
                proc->watch_mute = true;
                break;
        case 12: suspend(sim, p, d); break;
        case 13: hang_store(sim, false, d / 2); break;
        case 14: hang_store(sim, true, d); break;
        default:
                if (sim_chance(sim, 40))
                        sim_store_restore(sim);
                break;
        }
}

void sim_chaos(struct sim *sim) {
        int leader = sim_leader(sim);
        int p = leader >= 0 && sim_chance(sim, 50) ? leader
                                                   : (int)(sim_draw(sim) % (unsigned)sim->n_procs);

        if (sim->now >= sim->chaos_until || sim->calm)
                return;
        if (sim->procs[p].alive && !sim->procs[p].restarting)
                disturb(sim, p);
        sim_at(sim, sim->now + sim_between(sim, 0, sim_chance(sim, 30) ? S / 2 : sim->longest_lull),
               E_CHAOS, 0, 0, 0);
}

/* From here on nothing fails; what is under way is still late. */
void sim_chaos_end(struct sim *sim) {
        TRACE(sim, "no more faults");
        sim->calm = true;
        sim->hung_until = sim->slow_until = 0;
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                proc->weather = CLEAR;
                proc->watch_mute = false;
                if (proc->frozen)
                        sim_set_clock(sim, proc, proc->rate, false);
                if (proc->alive && (proc->core.state == HF_STOPPED || proc->core.state == HF_STUCK))
                        sim_proc_kill(sim, p);
                if (!proc->alive)
                        sim_proc_boot(sim, p);
                else if (proc->paused)
                        sim_proc_resume(sim, p);
                else
                        sim_proc_wake_later(sim, p);
        }
}
