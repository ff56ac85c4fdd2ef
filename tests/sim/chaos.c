/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chaos: which faults happen, when, and for how long. A fault hits one process, often the leader,
 * some processes, or the store.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/* A stop, or the report of stuck work, is late by the pause. After one of 2 s or more the deadline
 * of the state may begin anew. */
static void allow_pause(struct sim_proc *proc, hf_nsec duration) {
        hf_nsec late = (hf_nsec)((double)duration * proc->rate) + 1;

        if (late >= 2 * S)
                late += sim_state_limit(proc);
        proc->stop_by_local += late;
        proc->stuck_by_local += late;
}

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
        allow_pause(proc, duration);
        /* The pause may fall between the check of the gate and the write that the check allowed. */
        proc->held_write = proc->work_alive &&
                           hf__gate_may_act(&proc->gate, sim_local_time(sim, proc)) &&
                           sim_chance(sim, 60);
        if (proc->held_write)
                COUNT(sim, writes_across_a_pause);
        sim_event_at(sim, sim->now + duration, E_RESUME, p, 0, 0);
}

static void freeze_clock(struct sim *sim, int p, hf_nsec duration) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->frozen)
                return;
        COUNT(sim, frozen_clocks);
        TRACE(sim, "%-6s clock stands still", proc->identity);
        sim_mark(sim, MARK_FREEZE, p, sim->now + duration, 0, "clock stands still");
        sim_set_clock(sim, proc, proc->rate, true);
        proc->clean_since_stop = false;
        proc->wake_gen++;
        sim_event_at(sim, sim->now + duration, E_THAW, p, 0, 0);
}

static void change_network(struct sim *sim, bool all, int p) {
        static const char *const names[_N_NETWORKS] = {"good", "lossy", "cut", "refusing", "slow"};
        enum sim_network network = (enum sim_network)(sim_draw(sim) % _N_NETWORKS);

        for (int i = 0; i < sim->n_procs; i++)
                if (all || i == p) {
                        TRACE(sim, "%-6s network: %s", sim->procs[i].identity, names[network]);
                        sim->procs[i].network = network;
                        sim_mark(sim, MARK_NETWORK, i, sim->now, (int)network, "");
                        if (network != NET_GOOD)
                                sim->procs[i].clean_since_stop = false;
                }
}

/* A machine is suspended: some of the processes run on it, and pause for the same time. */
static void suspend_machine(struct sim *sim, int first, hf_nsec duration) {
        COUNT(sim, suspends);
        for (int p = 0; p < sim->n_procs; p++)
                if ((p == first || sim_chance(sim, 40)) && sim->procs[p].alive)
                        pause_proc(sim, p, duration);
}

/*
 * The store hangs: it does not reply for a while, and then replies to all requests at once. Or it
 * is slow: each reply is late.
 */
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

/* Excuses all processes from P1 until their next renewal. */
void sim_note_outsider(struct sim *sim) {
        sim->outsider_at = sim->now;
        for (int p = 0; p < sim->n_procs; p++)
                sim->procs[p].outsider_wrote = true;
}

/* The identity of one of the processes, or an identity that no process has. */
static const char *any_successor(struct sim *sim) {
        if (!sim_chance(sim, 80))
                return "nobody";
        return sim->procs[sim_draw(sim) % (unsigned)sim->n_procs].identity;
}

static void outsider_write(struct sim *sim) {
        struct hf__record record = *sim_store_lease(sim);
        unsigned way = (unsigned)(sim_draw(sim) % 8);

        if (!record.exists)
                return;
        if (way >= 4) { /* only labels and annotations change */
                COUNT(sim, label_edits);
                /* The annotation that requests a hand-over, whoever the holder is. */
                if (sim_chance(sim, 20)) {
                        COUNT(sim, hand_overs_by_annotation);
                        sim_mark(sim, MARK_STORE, -1, sim->now, 0,
                                 "the Lease asks for a hand-over");
                        (void)snprintf(record.hand_over_to, sizeof record.hand_over_to, "%s",
                                       any_successor(sim));
                }
                sim_store_put(sim, &record);
                return;
        }
        TRACE(sim, "an outsider changes the Lease");
        if (way == 0) {
                memset(&record, 0, sizeof record);
                COUNT(sim, deletions);
        } else {
                COUNT(sim, overwrites);
                if (way == 1)
                        snprintf(record.holder, sizeof record.holder, "nobody");
                else if (way == 2)
                        record.holder[0] = '\0';
                record.duration_s = sim_between(sim, 0, sim->timing.lease_duration / S);
        }
        sim_mark(sim, MARK_STORE, -1, sim->now, 0,
                 way == 0 ? "an outsider deletes the Lease" : "an outsider overwrites the Lease");
        sim_note_outsider(sim);
        sim_store_put(sim, &record);
}

void sim_hand_over(struct sim *sim, int p, const char *successor) {
        COUNT(sim, hand_overs);
        if (strcmp(successor, "nobody") == 0)
                COUNT(sim, hand_overs_to_nobody);
        sim_mark(sim, MARK_NOTE, p, sim->now, 0, "asked to hand over");
        TRACE(sim, "%-6s is asked to hand over to %s", sim->procs[p].identity, successor);
        snprintf(sim->event.successor, sizeof sim->event.successor, "%s", successor);
        sim_proc_event(sim, p, HF__EV_HAND_OVER);
}

/* Whether the model knows the fault. It knows no clock that stands still (2), no outsider (6) and
 * no restored backup (15). */
static bool is_in_model(uint64_t fault) { return fault != 2 && fault != 6 && fault != 15; }

static void inject_fault(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec lease = sim->timing.lease_duration, d = sim_between(sim, 50 * MS, lease * 2);
        uint64_t fault = sim_draw(sim) % 16;

        if (sim->steps && !is_in_model(fault))
                return;
        switch (fault) {
        case 0:
        case 1: pause_proc(sim, p, d); break;
        case 2:
                freeze_clock(sim, p, d);
                if (sim_chance(sim, 50))
                        pause_proc(sim, p, d + sim_between(sim, -50 * MS, S));
                break;
        case 3:
        case 4: change_network(sim, false, p); break;
        case 5: change_network(sim, sim_chance(sim, 50), p); break;
        case 6: outsider_write(sim); break;
        case 7:
                if (!proc->paused && !proc->stop_asked)
                        sim_proc_stop(sim, p);
                break;
        case 8:
                if (!proc->paused)
                        sim_hand_over(sim, p, any_successor(sim));
                break;
        case 9:
                COUNT(sim, kills);
                sim_proc_kill(sim, p);
                sim_proc_prove_death(sim, p);
                sim_event_at(sim, sim->now + sim_between(sim, 0, lease * 2), E_RESTART, p, 0, 0);
                break;
        case 10:
                if (!proc->watch_open)
                        break;
                COUNT(sim, watches_lost);
                proc->watch_open = false;
                sim_event_at(sim, sim->now + sim_between(sim, 0, S), E_WATCH_LOST, p,
                             proc->watch_gen, 0);
                break;
        case 11:
                COUNT(sim, watches_mute);
                proc->watch_mute = true;
                break;
        case 12: suspend_machine(sim, p, d); break;
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
                inject_fault(sim, p);
        sim_event_at(sim,
                     sim->now + sim_between(sim, 0, sim_chance(sim, 30) ? S / 2 : sim->longest_gap),
                     E_CHAOS, 0, 0, 0);
}

/* From now on nothing fails. Requests that are late already stay late. */
void sim_chaos_end(struct sim *sim) {
        TRACE(sim, "no more faults");
        sim->calm = true;
        sim->hung_until = sim->slow_until = 0;
        /* Every process runs again, one that had stopped as a new incarnation. */
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                proc->network = NET_GOOD;
                proc->watch_mute = false;
                proc->wakes_late = 0;
                if (proc->frozen)
                        sim_set_clock(sim, proc, proc->rate, false);
                if (proc->alive && (proc->core.state == HF_STOPPED || proc->core.state == HF_STUCK))
                        sim_proc_kill(sim, p);
                if (!proc->alive)
                        sim_proc_boot(sim, p);
                else if (proc->paused)
                        sim_proc_resume(sim, p);
                else
                        sim_proc_set_wake(sim, p);
        }
}
