/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule without faults: one planned hand-over, stop or crash of the leader, whose speed is
 * checked (P3). The bounds follow from the delays of the network, and in some cases from the expiry
 * or the retry period. So a change that adds a wait to a take-over breaks them.
 */
#include <string.h>

#include "tests/sim/sim.h"

/*
 * The time from a release until the next acquire is applied: a watch event (at most 20 ms), a
 * request that is under way (40 ms there and back), the acquire on its way to the store (20 ms),
 * and 1 ms for rounding. There is no other wait.
 */
#define TAKE_OVER_BOUND (81 * MS)

static void timed_release(struct sim *sim, int p) {
        int next = (p + 1) % sim->n_procs;
        bool to_nobody = sim_chance(sim, 20), named = sim_chance(sim, 50);
        hf_nsec bound = TAKE_OVER_BOUND;

        sim->took = false;
        if (named) {
                sim_hand_over(sim, p, to_nobody ? "nobody" : sim->procs[next].identity);
                if (to_nobody)
                        bound += sim->timing.retry_period * 11 / 10;
        } else {
                sim_proc_stop(sim, p);
        }
        sim_run_until(sim, sim->now + S + sim->timing.retry_period * 2);
        if (!sim->took || sim->took_at - sim->release_at > bound)
                sim_violate(sim, "P3: the take-over after a release took %d ms",
                            sim->took ? (int)((sim->took_at - sim->release_at) / MS) : -1);
        if (named && !to_nobody &&
            strcmp(sim_store_lease(sim)->holder, sim->procs[next].identity) != 0)
                sim_violate(sim, "P3: handed over to %s, but %s leads", sim->procs[next].identity,
                            sim_store_lease(sim)->holder);
        COUNT(sim, p3_hand_overs_timed);
}

static void timed_crash(struct sim *sim, int p) {
        hf_nsec expiry;

        sim->took = false;
        COUNT(sim, kills);
        sim_proc_kill(sim, p);
        sim_run_until(sim, sim->now + sim->timing.lease_duration * 11 / 10 + S);
        /* The slowest clock is 2.4 percent late. */
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
                sim_violate(sim, "P4: no process leads in a schedule without faults");
        if (crash)
                timed_crash(sim, p);
        else
                timed_release(sim, p);
        sim_run_until(sim, sim->now + S);
        if (sim_leader(sim) < 0)
                sim_violate(sim, "P4: no process leads after a planned event");
}
