/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, when, for how long; and the planned events of a clean schedule, whose speed is measured (P3). */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static void pause_proc(struct sim *sim, int p, hf_nsec duration) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->paused)
                return;
        COUNT(sim, pauses);
        TRACE(sim, "%-6s pauses", proc->identity);
        proc->paused = true;
        proc->clean_since_stop = false;
        proc->stop_by_local += duration + duration / 10;
        proc->held_write = proc->work_alive && hf__gate_may_act(&proc->gate, sim_local(sim, proc)) && sim_chance(sim, 60);
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
        sim_set_clock(sim, proc, proc->rate, true);
        proc->clean_since_stop = false;
        proc->wake_gen++;
        sim_at(sim, sim->now + duration, E_THAW, p, 0, 0);
}

static void change_weather(struct sim *sim, bool all, int p) {
        enum sim_weather weather = (enum sim_weather)(sim_draw(sim) % _N_WEATHERS);

        for (int i = 0; i < sim->n_procs; i++)
                if (all || i == p) {
                        TRACE(sim, "%-6s network: weather %d", sim->procs[i].identity, (int)weather);
                        sim->procs[i].weather = weather;
                        if (weather != CLEAR)
                                sim->procs[i].clean_since_stop = false;
                }
}

void sim_outsider(struct sim *sim) {
        struct hf__record record = *sim_store_lease(sim);
        unsigned way = (unsigned)(sim_draw(sim) % 8);

        if (!record.exists)
                return;
        if (way >= 4) { /* labels: the record stays what it is */
                COUNT(sim, label_edits);
                sim_store_put(sim, &record);
                return;
        }
        TRACE(sim, "an outsider touches the Lease");
        if (way == 0) {
                memset(&record, 0, sizeof(record));
                COUNT(sim, deletions);
        } else {
                COUNT(sim, overwrites);
                if (way == 1)
                        snprintf(record.holder, sizeof(record.holder), "ghost");
                else if (way == 2)
                        record.holder[0] = '\0';
                record.duration_s = sim_between(sim, 0, sim->timing.lease_duration / S);
        }
        sim->outsider_at = sim->now;
        for (int p = 0; p < sim->n_procs; p++)
                sim->procs[p].robbed = true;
        sim_store_put(sim, &record);
}

static void hand_over(struct sim *sim, int p, const char *successor) {
        COUNT(sim, hand_overs);
        TRACE(sim, "%-6s is asked to hand over to %s", sim->procs[p].identity, successor);
        snprintf(sim->event.successor, sizeof(sim->event.successor), "%s", successor);
        sim_proc_event(sim, p, HF__EV_HAND_OVER);
}

static void disturb(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec lease = sim->timing.lease_duration, d = sim_between(sim, 50 * MS, lease * 2);

        switch (sim_draw(sim) % 12) {
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
        case 6: sim_outsider(sim); break;
        case 7:
                if (!proc->paused && !proc->stop_asked)
                        sim_proc_stop(sim, p);
                break;
        case 8:
                if (!proc->paused)
                        hand_over(sim, p, sim_chance(sim, 80) ? sim->procs[sim_draw(sim) % (unsigned)sim->n_procs].identity : "ghost");
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
        default:
                COUNT(sim, watches_mute);
                proc->watch_mute = true;
                break;
        }
}

void sim_chaos(struct sim *sim) {
        int leader = sim_leader(sim);
        int p = leader >= 0 && sim_chance(sim, 50) ? leader : (int)(sim_draw(sim) % (unsigned)sim->n_procs);

        if (sim->now >= sim->chaos_until || sim->calm)
                return;
        if (sim->procs[p].alive && !sim->procs[p].restarting)
                disturb(sim, p);
        sim_at(sim, sim->now + sim_between(sim, 0, sim_chance(sim, 30) ? S / 2 : sim->longest_lull), E_CHAOS, 0, 0, 0);
}

/* From here on nothing fails; what is under way is still late. */
void sim_chaos_end(struct sim *sim) {
        TRACE(sim, "no more faults");
        sim->calm = true;
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

/* ---- clean schedules ---- */

/* A watch event, a request under way, the acquire: each way takes at most 20 ms, and there is no other wait. */
#define TAKE_OVER_BOUND (81 * MS)

static void timed_release(struct sim *sim, int p) {
        int next = (p + 1) % sim->n_procs;
        bool ghost = sim_chance(sim, 20), named = sim_chance(sim, 50);
        hf_nsec bound = TAKE_OVER_BOUND;

        sim->took = false;
        if (named) {
                hand_over(sim, p, ghost ? "ghost" : sim->procs[next].identity);
                if (ghost)
                        bound += sim->timing.retry_period * 11 / 10;
        } else {
                sim_proc_stop(sim, p);
        }
        sim_run_until(sim, sim->now + S + sim->timing.retry_period * 2);
        if (!sim->took || sim->took_at - sim->release_at > bound)
                sim_violate(sim, "P3: the take-over after a release took %d ms",
                            sim->took ? (int)((sim->took_at - sim->release_at) / MS) : -1);
        if (named && !ghost && strcmp(sim_store_lease(sim)->holder, sim->procs[next].identity) != 0)
                sim_violate(sim, "P3: handed over to %s, but %s leads", sim->procs[next].identity, sim_store_lease(sim)->holder);
        COUNT(sim, p3_hand_overs_timed);
}

static void timed_crash(struct sim *sim, int p) {
        hf_nsec expiry;

        sim->took = false;
        COUNT(sim, kills);
        sim_proc_kill(sim, p);
        sim_run_until(sim, sim->now + sim->timing.lease_duration * 11 / 10 + S);
        /* The standby with the slowest clock is 2.4 percent late; the others less. */
        expiry = sim->put_at + (hf_nsec)((double)sim->timing.lease_duration / 0.976);
        if (!sim->took || sim->took_at > expiry + TAKE_OVER_BOUND)
                sim_violate(sim, "P3: the take-over after a crash came %d ms after expiry",
                            sim->took ? (int)((sim->took_at - expiry) / MS) : -1);
        if (sim->took_at < sim->put_at + (hf_nsec)((double)sim->timing.lease_duration / 1.024))
                sim_violate(sim, "P3: the take-over after a crash came before expiry");
        COUNT(sim, p3_crashes_timed);
}

void sim_planned(struct sim *sim, bool crash) {
        int p = sim_leader(sim);

        if (p < 0)
                sim_violate(sim, "P4: nobody leads in a clean schedule");
        if (crash)
                timed_crash(sim, p);
        else
                timed_release(sim, p);
        sim_run_until(sim, sim->now + S);
        if (sim_leader(sim) < 0)
                sim_violate(sim, "P4: nobody leads after a planned event");
}
