/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises P1 to P6, see docs/proof.md. The checks run at every step and at every write of the
 * Lease. P2 is checked where writes of a leader's work commit, in store.c, and where a process
 * learns that its term is stale, in proc.c; P3 in planned.c; the end of P4 in planned.c and
 * schedule.c. With --steps, only the model judges.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/*
 * Three checks are early: they notice a mistake before it does harm. A write must name the revision
 * that it expects. A process must not write by what it knew before a restore. Validity must be
 * counted from the sending of a write. The option --by-effect leaves these three out. Then the
 * other checks must notice the harm, for example that two processes may act.
 *
 * Two processes may act at once, without a violation of P1, if one of them is excused (there is no
 * excuse for a commit that breaks P2):
 *
 *   - its clock stood still, or ran too fast or too slow, while it counted its validity;
 *   - an outsider, who obeys no lease, changed the Lease after the process sent its last renewal.
 *
 * Two kinds of process count as outsiders: one that writes and does not know yet that the store's
 * history was replaced, and one that takes or clears the Lease by a clock that runs too fast. A
 * clock that is slow or stands still excuses only the process that acts by it, because a standby
 * with such a clock only waits too long. The skew margin of the timing covers rates that differ by
 * a few percent; odd clocks are beyond it.
 */
static bool fast_clock(const struct sim_proc *proc) { return proc->rate > 1.1; }
static bool odd_clock(const struct sim_proc *proc) { return proc->rate < 0.9 || fast_clock(proc); }

static bool excused(const struct sim_proc *proc) {
        return proc->frozen || proc->ok_sent_at <= proc->thawed_at || odd_clock(proc) ||
               proc->outsider_wrote;
}

void sim_check_p1(struct sim *sim) {
        int first = -1, n = 0;

        if (sim->steps)
                return;
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (!proc->alive || hf__gate_valid_until(&proc->gate) == 0 ||
                    !hf__gate_may_act(&proc->gate, sim_local_time(sim, proc)))
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

/* Whether the process with this identity may act and is not excused. */
static bool may_act_by_right(struct sim *sim, const char *identity) {
        for (int p = 0; p < sim->n_procs; p++) {
                struct sim_proc *proc = &sim->procs[p];

                if (proc->alive && strcmp(proc->identity, identity) == 0)
                        return !excused(proc) &&
                               hf__gate_may_act(&proc->gate, sim_local_time(sim, proc));
        }
        return false;
}

/*
 * Checks at the store which record a process changes, and to what. A process may release the record
 * of another holder when it may also take the Lease: it undoes an earlier acquire whose outcome it
 * does not know. A fast clock excuses both. For a clock that is twice as fast, half of the recorded
 * duration looks like all of it, and the process cannot know that.
 */
void sim_check_write(struct sim *sim, const struct sim_op *op) {
        struct sim_proc *proc = &sim->procs[op->proc];
        const struct hf__record *lease = sim_store_lease(sim), *record = &op->record;
        bool foreign, old = op->stale || op->n_restores != sim->n_restores;
        char identity[32];

        if (sim->steps)
                return;
        snprintf(identity, sizeof identity, "e%d-%u", op->proc, op->incarnation);
        foreign = lease->exists && lease->holder[0] != '\0' && strcmp(lease->holder, identity) != 0;
        if (record->holder[0] != '\0' && strcmp(record->holder, identity) != 0)
                sim_violate(sim, "P1: %s writes the Lease in the name of %s", identity,
                            record->holder);
        /* A late create is no violation: it may succeed because an outsider deleted the Lease. */
        if (proc->stopped_free && proc->incarnation == op->incarnation && record->exists &&
            record->holder[0] != '\0' && !old)
                sim_violate(sim,
                            "P6: %s said that the Lease does not name it, and then takes the Lease",
                            identity);
        if (old) {
                COUNT(sim, old_writes_applied);
                proc->old_write_applied = true;
                sim_note_outsider(sim);
        } else if (foreign && fast_clock(proc)) {
                sim_note_outsider(sim);
        } else if (record->holder[0] == '\0' && foreign && may_act_by_right(sim, lease->holder)) {
                sim_violate(sim, "P6: %s releases the Lease of %s", identity, lease->holder);
        }
}

static void check_write_sent(struct sim *sim, int p, const struct hf__record *record) {
        struct sim_proc *proc = &sim->procs[p];

        if (record->exists && record->rv[0] == '\0' && !sim->by_effect)
                sim_violate(sim, "P1: %s writes without a condition", proc->identity);
        if (proc->must_read && !sim->by_effect)
                sim_violate(sim, "P1: %s writes by what it knew before the history was replaced",
                            proc->identity);
        if (record->exists && record->holder[0] == '\0') {
                if (proc->work_alive)
                        sim_violate(sim, "P6: %s releases before its work has ended",
                                    proc->identity);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim, "P6: %s releases with its gate open", proc->identity);
        } else if (proc->core.state == HF_FOLLOWING &&
                   sim_local_time(sim, proc) < proc->contend_from) {
                sim_violate(sim, "P4: %s contends again at once after a short term",
                            proc->identity);
        }
}

/* Called just before the action is carried out. */
void sim_check_actions(struct sim *sim, int p, const struct hf__core_action *action) {
        struct sim_proc *proc = &sim->procs[p];

        if (sim->steps)
                return;
        if (action->type == HF__ACT_TERM_START) {
                if (proc->work_alive)
                        sim_violate(sim,
                                    "P5: %s starts a term while the work of its previous "
                                    "term is alive",
                                    proc->identity);
                if (action->term == 0 ||
                    (!sim->opaque && proc->ok_restores == proc->last_term_restores &&
                     action->term <= proc->last_term))
                        sim_violate(sim, "P5: %s starts term %" PRIu64 " after %" PRIu64,
                                    proc->identity, action->term, proc->last_term);
                if (hf__gate_valid_until(&proc->gate) != 0)
                        sim_violate(sim,
                                    "P5: %s starts a term while the gate of its previous "
                                    "term is open",
                                    proc->identity);
                if (proc->stop_asked)
                        sim_violate(sim, "P6: %s starts a term after it was asked to stop",
                                    proc->identity);
        }
        if ((action->type == HF__ACT_TERM_START || action->type == HF__ACT_EXTEND) &&
            !sim->by_effect &&
            (action->valid_until > proc->ok_sent_local + sim->timing.renew_deadline ||
             action->valid_until <= sim_local_time(sim, proc)))
                sim_violate(sim,
                            "P1: %s counts its validity from something else than the sending "
                            "of a write",
                            proc->identity);
        if (action->type == HF__ACT_STUCK && !proc->work_alive)
                sim_violate(sim, "P5: %s is stuck, but its work has ended", proc->identity);
        if (action->type == HF__ACT_WRITE)
                check_write_sent(sim, p, &action->record);
}

/* Whether the last write of the process may still be applied. Then the process cannot know whom the
 * Lease will name. */
static bool may_still_apply(const struct sim *sim, const struct sim_proc *proc) {
        const struct sim_op *op = &sim->ops[proc->last_write];
        unsigned i = sim->n_history;

        if (!proc->has_written || (op->delivered && op->result == 0))
                return false;
        do { /* the process cannot know yet of the newest records */
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

        if (sim->steps)
                return;
        if (!proc->stop_asked)
                sim_violate(sim, "P4: %s stopped without being asked", proc->identity);
        if (proc->work_alive)
                sim_violate(sim, "P6: %s stopped with its work alive", proc->identity);
        if (hf__gate_valid_until(&proc->gate) != 0)
                sim_violate(sim, "P6: %s stopped with its gate open", proc->identity);
        if (!released)
                COUNT(sim, stops_not_released);
        /* After a restore or an outsider's write the process may be wrong without a mistake. */
        if (released && held && !sim->n_restores && sim->outsider_at < 0)
                sim_violate(sim,
                            "P6: %s says that it has released the Lease, but the Lease names it",
                            proc->identity);
        if (proc->clean_since_stop && ((!released && !may_still_apply(sim, proc)) || held))
                sim_violate(sim, "P6: %s stopped without any fault, but the Lease still names it",
                            proc->identity);
}

void sim_check_overdue(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        if (proc->alive && proc->stop_asked && proc->core.state != HF_STOPPED &&
            proc->core.state != HF_STUCK && sim_local_time(sim, proc) > proc->stop_by_local)
                sim_violate(sim, "P6: the stop of %s did not end in time", proc->identity);
        if (proc->alive && proc->core.state == HF_ABORTING &&
            sim_local_time(sim, proc) > proc->stuck_by_local)
                sim_violate(sim, "P6: the stuck work of %s was not reported in time",
                            proc->identity);
}
