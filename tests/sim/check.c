/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of design 1, checked at every step. P2 is checked where writes commit, in store.c. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

/*
 * A process is excused from P1 (never from P2) when its clock stood still or ran beyond the margin while it was counting,
 * or when an outsider, who obeys no lease, has touched the record since its last renewal was sent.
 */
static bool excused(const struct sim_proc *proc) {
        return proc->frozen || proc->ok_sent_at <= proc->thawed_at || proc->rate < 0.9 || proc->robbed;
}

void sim_check_p1(struct sim *sim) {
        int first = -1, n = 0;

        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (!proc->alive || hf__gate_valid_until(&proc->gate) == 0 || !hf__gate_may_act(&proc->gate, sim_local(sim, proc)))
                        continue;
                n++;
                if (excused(proc))
                        continue;
                if (first >= 0)
                        sim_violate(sim, "P1: %s and %s both may act", sim->procs[first].identity, proc->identity);
                first = p;
        }
        if (n > 1)
                COUNT(sim, overlaps_excused);
}

/* Before an action is carried out. */
void sim_check_actions(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];
        bool counted_wrong = sim->mutant.count_from_reply || sim->mutant.gate_by_flag; /* P1 itself has to catch these */

        if (action->type == HF__ACT_TERM_START) {
                if (proc->work_alive)
                        sim_violate(sim, "P5: %s starts a term while the work of its last one is alive", proc->identity);
                if (action->term == 0 || (!sim->opaque && action->term <= proc->last_term))
                        sim_violate(sim, "P5: %s starts term %" PRIu64 " after %" PRIu64, proc->identity, action->term, proc->last_term);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim, "P5: %s starts a term with the gate of its last one open", proc->identity);
                if (proc->stop_asked)
                        sim_violate(sim, "P6: %s starts a term after it was asked to stop", proc->identity);
        }
        if ((action->type == HF__ACT_TERM_START || action->type == HF__ACT_EXTEND) && !counted_wrong &&
            (action->valid_until > proc->ok_sent_local + sim->timing.renew_deadline || action->valid_until <= sim_local(sim, proc)))
                sim_violate(sim, "P1: %s counts its validity from something else than the send time", proc->identity);
        if (action->type == HF__ACT_WRITE && action->record.exists && action->record.holder[0] == '\0') {
                if (proc->work_alive)
                        sim_violate(sim, "P6: %s releases before its work has joined", proc->identity);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim, "P6: %s releases with its gate open", proc->identity);
        }
        if (action->type == HF__ACT_STUCK && !proc->work_alive)
                sim_violate(sim, "P5: %s is stuck, but its work has joined", proc->identity);
        if (action->type == HF__ACT_WRITE && action->record.exists && action->record.rv[0] == '\0' && !sim->mutant.skip_compare)
                sim_violate(sim, "%s writes without a condition", proc->identity);
}

void sim_check_stopped(struct sim *sim, int p, bool released) {
        struct sim_proc *proc = &sim->procs[p];
        const struct hf__record *lease = sim_store_lease(sim);
        bool held = lease->exists && strcmp(lease->holder, proc->identity) == 0;

        if (!proc->stop_asked)
                sim_violate(sim, "P4: %s stopped without being asked", proc->identity);
        if (proc->work_alive)
                sim_violate(sim, "P6: %s stopped with its work alive", proc->identity);
        if (hf__gate_valid_until(&proc->gate) != 0)
                sim_violate(sim, "P6: %s stopped with its gate open", proc->identity);
        if (!released)
                COUNT(sim, stops_not_released);
        if (proc->clean_since_stop && ((!released && !proc->core.in_doubt) || held))
                sim_violate(sim, "P6: %s stopped, everything worked, and the Lease is still its own", proc->identity);
}

void sim_check_overdue(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->alive && proc->stop_asked && proc->core.state != HF_STOPPED && proc->core.state != HF_STUCK &&
            sim_local(sim, proc) > proc->stop_by_local)
                sim_violate(sim, "P6: the stop of %s has not ended in time", proc->identity);
}
