/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule of --slow: the leader dies, and the server responds to all requests of the others, but
 * as slowly as it may. It checks hf_leader_timing_worst_takeover (P3), under the conditions that
 * leader.h names: a request, and an event of a watch, takes up to the request timeout. Watches may
 * be silent or break. The leader's requests may be lost before it dies.
 *
 * Times near the limits are drawn often, because only they come near the bound.
 */
#include "tests/sim/sim.h"

/* The request timeout of the fastest clock, in true time: a reply after it would be a failure. */
static hf_nsec slowest(const struct sim *sim) { return sim->timing.request_timeout / 103 * 100; }

static hf_nsec slow_time(struct sim *sim) {
        switch (sim_draw(sim) % 16) {
        case 0: return sim_between(sim, MS / 2, 20 * MS);
        case 1: return sim_between(sim, MS / 2, slowest(sim));
        default: return sim_between(sim, slowest(sim) / 100 * 98, slowest(sim));
        }
}

void sim_slow_send(struct sim *sim, struct sim_op *op) {
        hf_nsec whole = slow_time(sim), until_applied = sim_between(sim, 0, whole);

        /* The worst cases are a read with an early state, and a write that is applied late. */
        if (sim_chance(sim, 90))
                until_applied = op->is_write ? whole - MS / 4 : MS / 4;
        op->reply_after = whole - until_applied;
        if (op->proc == sim->slow_victim && sim->now < sim->slow_cut_until) {
                COUNT(sim, lost_requests);
                op->reply_after = HF_NSEC_NEVER;
                return;
        }
        sim_event_at(sim, sim->now + until_applied, E_APPLY, op->proc, (uint64_t)(op - sim->ops),
                     0);
}

hf_nsec sim_slow_event_delay(struct sim *sim) { return slow_time(sim); }

static void break_watch(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        if (!proc->watch_open)
                return;
        COUNT(sim, watches_lost);
        proc->watch_open = false;
        sim_event_at(sim, sim->now + slow_time(sim), E_WATCH_LOST, p, proc->watch_gen, 0);
}

/* Called when a watch is opened: it may break, or be silent. */
void sim_slow_watch(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        switch (sim_draw(sim) % 4) {
        case 0: break_watch(sim, p); break;
        case 1:
                COUNT(sim, watches_mute);
                proc->watch_mute = true;
                break;
        default: break;
        }
}

/* Makes most watches silent or breaks them, each at its own moment before `until`. */
static void run_with_failing_watches(struct sim *sim, hf_nsec until) {
        for (int p = 0; p < sim->n_procs; p++) {
                sim_run_until(sim, sim_between(sim, sim->now, until));
                if (sim_chance(sim, 60)) {
                        COUNT(sim, watches_mute);
                        sim->procs[p].watch_mute = true;
                } else if (sim_chance(sim, 50)) {
                        break_watch(sim, p);
                }
        }
        sim_run_until(sim, until);
}

/* Runs until process p sends a write, if it does so in time. Then its last renewal is as late as it
 * can be. */
static void run_until_write(struct sim *sim, int p) {
        hf_nsec until = sim->now + 2 * sim->timing.renew_deadline;

        while (sim->now < until && sim->procs[p].alive) {
                unsigned n = sim->n_ops;
                sim_run_until(sim, sim->now + MS);
                for (; n < sim->n_ops; n++)
                        if (sim->ops[n].proc == p && sim->ops[n].is_write)
                                return;
        }
}

void sim_slow(struct sim *sim) {
        const struct hf_leader_timing *t = &sim->timing;
        hf_nsec bound = hf_leader_timing_worst_takeover(t), died_at;

        sim->slow_victim = -1;
        sim_run_until(sim, sim_between(sim, 5 * S, 12 * S)); /* the first leader */
        sim->is_slow = true;
        sim_run_until(sim, sim->now + sim_between(sim, 0, t->lease_duration));
        sim->slow_victim = sim_leader(sim);
        if (sim->slow_victim < 0)
                sim_violate(sim, "P4: no process leads while the server is slow");
        if (sim_chance(sim, 60))
                sim->slow_cut_until =
                        sim->now + sim_between(sim, 0, t->renew_deadline - t->request_timeout);
        run_with_failing_watches(sim, sim->now + sim_between(sim, MS, t->renew_deadline));
        if (sim_chance(sim, 80))
                run_until_write(sim, sim->slow_victim);
        if (sim_leader(sim) != sim->slow_victim)
                return; /* it has lost the Lease, so its death takes nothing from the others */
        COUNT(sim, kills);
        sim_proc_kill(sim, sim->slow_victim);
        died_at = sim->now;
        while (sim_leader(sim) < 0 && sim->now < died_at + bound)
                sim_run_until(sim, sim->now + 10 * MS);
        if (sim_leader(sim) < 0)
                sim_violate(sim, "P3: %d ms after the leader's death no process leads",
                            (int)(bound / MS));
        COUNT(sim, slow_crashes_timed);
        if (sim->now - died_at > bound / 100 * 70)
                COUNT(sim, slow_crashes_near_bound);
}
