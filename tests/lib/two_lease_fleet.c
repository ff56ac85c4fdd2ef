/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fleets (two_lease_fixture.h): what happens to their processes. The invariants are those of
 * two_lease_fixture.c.
 */
#include <stddef.h>

#include "two_lease_fixture.h"

static void chaos(struct two_lease_fixture *f, enum two_lease_knowledge a,
                  enum two_lease_knowledge b) {
        int process = (int)(two_lease_fixture_random(f) % f->n_processes);

        switch (two_lease_fixture_random(f) % 8) {
        case 0: two_lease_fixture_crash(f, process); break;
        case 1: {
                /* A second pause must not end the first one early: events that came meanwhile wait
                 * for its end. */
                hf_nsec paused_until = f->now + two_lease_fixture_random_below(f, 40 * SEC);
                if (paused_until > f->processes[process].paused_until)
                        f->processes[process].paused_until = paused_until;
                break;
        }
        case 2: two_lease_fixture_feed(f, process, HF__EV_STOP); break;
        case 3:
        case 4:
                if (!f->processes[process].alive || f->processes[process].core.state == HF_STOPPED)
                        two_lease_fixture_start(f, process,
                                                two_lease_fixture_chance(f, 500) ? a : b,
                                                NULL); /* another version may start in its place */
                break;
        case 5: {
                int side = (int)(two_lease_fixture_random(f) % 2);
                struct hf__record same = f->lease[side];
                if (same.exists && !f->steps)
                        two_lease_fixture_put(f, side, &same); /* the labels are edited */
                break;
        }
        case 6: f->faults = !f->faults; break;
        default: break;
        }
}

void two_lease_fixture_run_fleet(struct two_lease_fixture *f, enum two_lease_knowledge a,
                                 enum two_lease_knowledge b, hf_nsec duration) {
        hf_nsec until = f->now + duration;

        f->faults = true;
        for (int i = 0; i < TWO_LEASE_MAX_PROCESSES; i++)
                two_lease_fixture_start(f, i, i % 2 ? a : b, NULL);
        while (f->now < until) {
                two_lease_fixture_run_for(f, two_lease_fixture_random_below(f, 6 * SEC));
                chaos(f, a, b);
        }
}
