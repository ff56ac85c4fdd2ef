/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of design 1, checked at every step. P2 is checked where writes commit, in store.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/*
 * Three of the checks are early: a write without a condition, a write by what was known before a
 * restore, and a validity that is counted from something else than the sending are violations at
 * once, before two processes may act because of it. With --by-effect these three are not made; the
 * checks of the promises themselves then have to find the mistake.
 *
 * A process is excused from P1 (never from P2) when its clock stood still or ran beyond the margin
 * while it was counting, or when an outsider, who obeys no lease, has touched the record since its
 * last renewal was sent. As an outsider counts also who writes by a history that was replaced,
 * before it is told, and who takes or clears the Lease by a clock that runs too fast. One that is
 * slow or stands still excuses only who acts by it: who waits by it waits too long.
 */
static bool fast_clock(const struct sim_proc *proc) { return proc->rate > 1.1; }
static bool odd_clock(const struct sim_proc *proc) { return proc->rate < 0.9 || fast_clock(proc); }

static bool excused(const struct sim_proc *proc) {
        return proc->frozen || proc->ok_sent_at <= proc->thawed_at || odd_clock(proc) ||
               proc->robbed;
}

void sim_check_p1(struct sim *sim) {
        int first = -1, n = 0;

        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (!proc->alive || hf__gate_valid_until(&proc->gate) == 0 ||
                    !hf__gate_may_act(&proc->gate, sim_local(sim, proc)))
                        continue;
                n++;
                if (excused(proc))
                        continue;
                if (first >= 0)
                        sim_violate(sim, "P1: %s and %s both may act", sim->procs[first].identity,
                                    proc->identity);
                first = p;
        }
        if (n > 1)
                COUNT(sim, overlaps_excused);
}

/* The holder of that name may act, and is not excused. */
static bool may_act_by_right(struct sim *sim, const char *identity) {
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (proc->alive && strcmp(proc->identity, identity) == 0)
                        return !excused(proc) &&
                               hf__gate_may_act(&proc->gate, sim_local(sim, proc));
        }
        return false;
}

/*
 * At the store: whose record a process may change, and to what. A release of another's record is
 * right only where taking it would be: it makes void a taking of its own whose outcome it does not
 * know. So both are excused alike: a clock twice as fast has waited the recorded duration out when
 * half of it is over, and nothing that a process can know tells it so.
 */
void sim_check_write(struct sim *sim, const struct sim_op *op) {
        struct sim_proc *proc = &sim->procs[op->proc];
        const struct hf__record *lease = sim_store_lease(sim), *record = &op->record;
        bool foreign, old = op->old || op->n_restores != sim->n_restores;
        char identity[32];

        snprintf(identity, sizeof identity, "e%d-%u", op->proc, op->incarnation);
        foreign = lease->exists && lease->holder[0] != '\0' && strcmp(lease->holder, identity) != 0;
        if (record->holder[0] != '\0' && strcmp(record->holder, identity) != 0)
                sim_violate(sim, "P1: %s writes the Lease in the name of %s", identity,
                            record->holder);
        /* A creation may come to be possible once more, when an outsider deletes the Lease. */
        if (proc->stopped_free && proc->incarnation == op->incarnation && record->exists &&
            record->holder[0] != '\0' && !old)
                sim_violate(sim, "P6: %s said that the Lease is free of it, and then takes it",
                            identity);
        if (old) {
                COUNT(sim, old_writes_applied);
                proc->surprised = true;
                sim_rob_all(sim);
        } else if (foreign && fast_clock(proc)) {
                sim_rob_all(sim);
        } else if (record->holder[0] == '\0' && foreign && may_act_by_right(sim, lease->holder)) {
                sim_violate(sim, "P6: %s releases the Lease of %s", identity, lease->holder);
        }
}

static void check_write_sent(struct sim *sim, int p, const struct hf__record *record) {
        struct sim_proc *proc = &sim->procs[p];

        if (record->exists && record->rv[0] == '\0' && !sim->by_effect)
                sim_violate(sim, "P1: %s writes without a condition", proc->identity);
        if (proc->must_hear && !sim->by_effect)
                sim_violate(sim, "P1: %s writes by what it knew before the history was replaced",
                            proc->identity);
        if (record->exists && record->holder[0] == '\0') {
                if (proc->work_alive)
                        sim_violate(sim, "P6: %s releases before its work has joined",
                                    proc->identity);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim, "P6: %s releases with its gate open", proc->identity);
        } else if (proc->core.state == HF_FOLLOWING && sim_local(sim, proc) < proc->contend_from) {
                sim_violate(sim, "P4: %s contends again at once after a short term",
                            proc->identity);
        }
}

/* Before an action is carried out. */
void sim_check_actions(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];

        if (action->type == HF__ACT_TERM_START) {
                if (proc->work_alive)
                        sim_violate(sim,
                                    "P5: %s starts a term while the work of its last one is alive",
                                    proc->identity);
                if (action->term == 0 ||
                    (!sim->opaque && proc->ok_restores == proc->last_term_restores &&
                     action->term <= proc->last_term))
                        sim_violate(sim, "P5: %s starts term %" PRIu64 " after %" PRIu64,
                                    proc->identity, action->term, proc->last_term);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim, "P5: %s starts a term with the gate of its last one open",
                                    proc->identity);
                if (proc->stop_asked)
                        sim_violate(sim, "P6: %s starts a term after it was asked to stop",
                                    proc->identity);
        }
        if ((action->type == HF__ACT_TERM_START || action->type == HF__ACT_EXTEND) &&
            !sim->by_effect &&
            (action->valid_until > proc->ok_sent_local + sim->timing.renew_deadline ||
             action->valid_until <= sim_local(sim, proc)))
                sim_violate(sim,
                            "P1: %s counts its validity from something else than the send time",
                            proc->identity);
        if (action->type == HF__ACT_STUCK && !proc->work_alive)
                sim_violate(sim, "P5: %s is stuck, but its work has joined", proc->identity);
        if (action->type == HF__ACT_WRITE)
                check_write_sent(sim, p, &action->record);
}

/* Whether a write of the process is in the network, or lost, that may yet be applied: then nobody
 * can say what comes. */
static bool in_fair_doubt(const struct sim *sim, const struct sim_proc *proc) {
        const struct sim_op *op = &sim->ops[proc->last_write];
        unsigned i = sim->n_history;

        if (!proc->has_written || (op->heard && op->result == 0))
                return false;
        do { /* what was written just now it cannot have heard of */
                const struct hf__record *lease = &sim->history[--i];

                if (op->record.exists ? strcmp(op->record.rv, lease->rv) == 0 : !lease->exists)
                        return true;
        } while (i > 0 && sim->put_times[i] > sim->now - S);
        return false;
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
        if (released && held && !sim->n_restores && sim->outsider_at < 0)
                sim_violate(sim, "P6: %s says that it has released the Lease, which bears its name",
                            proc->identity);
        if (proc->clean_since_stop && ((!released && !in_fair_doubt(sim, proc)) || held))
                sim_violate(sim,
                            "P6: %s stopped, everything worked, and the Lease is still its own",
                            proc->identity);
}

void sim_check_overdue(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->alive && proc->stop_asked && proc->core.state != HF_STOPPED &&
            proc->core.state != HF_STUCK && sim_local(sim, proc) > proc->stop_by_local)
                sim_violate(sim, "P6: the stop of %s has not ended in time", proc->identity);
}
