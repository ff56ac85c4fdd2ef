/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writes of a term's work at a server without a fence. Such a server does not refuse a late
 * write, so the write matters for as long as it may be on its way. The leader's client of the
 * process knows which writes are unanswered. It also knows when the last write ended whose outcome
 * is unknown (its reply was lost, it was canceled or aborted, or its deadline passed). The elector
 * gets this time when the work has ended, and again when the last reply has come.
 *
 * Checked when a write reaches the store: as long as the process has to expect the write, it has
 * neither released the Lease nor begun another term. It has to expect a write until the reply. If
 * there is no reply, it has to expect the write for a further time after the write's end: the time
 * that the expiry of a Lease leaves to the last write of its holder. A write that takes longer is
 * beyond any promise.
 *
 * All random numbers come from a separate generator, so that they do not change the schedule of a
 * seed for a server with a fence.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/sim.h"

static uint64_t draw(struct sim *sim) {
        uint64_t z = sim->unfenced_rng += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}
static bool chance(struct sim *sim, unsigned percent) { return draw(sim) % 100 < percent; }
static hf_nsec between(struct sim *sim, hf_nsec low, hf_nsec high) {
        return low + (hf_nsec)(draw(sim) % (uint64_t)(high - low + 1));
}

void sim_unfenced_begin(struct sim *sim, uint64_t seed) {
        sim->unfenced_rng = seed * UINT64_C(0x9fb21c651e98df25) + 3;
        sim->n_work_writes = 0;
        /* Most servers without a fence have revisions that are numbers. */
        sim->fence_off = (chance(sim, 10) && !sim->steps) || sim->opaque;
}

/* How long the expiry of the Lease leaves to the last write of its holder. */
static hf_nsec expiry_margin(const struct sim *sim) {
        return sim->timing.lease_duration - sim->timing.renew_deadline;
}

void sim_unfenced_term(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];

        proc->n_unanswered = 0;
        proc->doubt_at = 0;
        for (unsigned i = 0; i < sim->n_work_writes; i++) {
                struct sim_work_write *write = &sim->work_writes[i];

                if (write->proc == p && write->incarnation == proc->incarnation)
                        write->outlived = true;
        }
}

hf_nsec sim_unfenced_doubt_at(const struct sim_proc *proc) {
        return proc->n_unanswered > 0 ? HF_NSEC_NEVER : proc->doubt_at;
}

bool sim_unfenced_is_settled(const struct sim *sim, const struct sim_proc *proc) {
        return !sim->fence_off ||
               (proc->n_unanswered == 0 &&
                (proc->doubt_at == 0 ||
                 sim_local_time(sim, proc) >= proc->doubt_at + expiry_margin(sim)));
}

/* The write ends at the client. */
static void end_write(struct sim *sim, struct sim_work_write *write, bool answered) {
        struct sim_proc *proc = &sim->procs[write->proc];
        hf_nsec now = sim_local_time(sim, proc);

        write->ended = true;
        write->answered = answered;
        write->ended_local = now < write->deadline_local ? now : write->deadline_local;
        proc->n_unanswered--;
        if (answered)
                return;
        COUNT(sim, unfenced_in_doubt);
        proc->clean_since_stop = false;
        if (proc->doubt_at < write->ended_local)
                proc->doubt_at = write->ended_local;
}

/* Whether the write is one of the present or last term of the running process. */
static bool is_of_last_term(const struct sim *sim, const struct sim_work_write *write, int p) {
        return write->proc == p && write->incarnation == sim->procs[p].incarnation &&
               write->work_gen == sim->procs[p].work_gen;
}

void sim_unfenced_abort(struct sim *sim, int p) {
        for (unsigned i = 0; i < sim->n_work_writes; i++) {
                struct sim_work_write *write = &sim->work_writes[i];

                if (is_of_last_term(sim, write, p) && !write->ended)
                        end_write(sim, write, false);
        }
}

/* A process that dies promises nothing for its writes, unless it has released the Lease before. */
void sim_unfenced_kill(struct sim *sim, int p) {
        for (unsigned i = 0; i < sim->n_work_writes; i++) {
                struct sim_work_write *write = &sim->work_writes[i];

                if (write->proc == p)
                        write->forgotten |= !write->released;
        }
        sim->procs[p].n_unanswered = 0;
        sim->procs[p].doubt_at = 0;
}

void sim_unfenced_send(struct sim *sim, int p, hf_nsec under_way) {
        struct sim_proc *proc = &sim->procs[p];
        struct sim_work_write *write = &sim->work_writes[sim->n_work_writes];
        hf_nsec valid_for = hf__gate_valid_until(&proc->gate) - sim_local_time(sim, proc);
        hf_nsec ends_in = (hf_nsec)((double)valid_for / proc->rate) + 1;
        hf_nsec answered_in = under_way + between(sim, MS / 2, 20 * MS);
        bool answered = false;

        if (sim->n_work_writes == MAX_OPS)
                sim_violate(sim, "more than %d writes of work in one schedule", MAX_OPS);
        COUNT(sim, unfenced_writes);
        *write = (struct sim_work_write){.proc = p,
                                         .incarnation = proc->incarnation,
                                         .work_gen = proc->work_gen,
                                         .term = proc->term,
                                         .deadline_local = hf__gate_valid_until(&proc->gate)};
        if (!sim->calm && chance(sim, 5)) { /* its caller cancels it */
                answered_in = between(sim, 0, answered_in);
        } else if (sim->calm || !chance(sim, proc->network == NET_GOOD ? 5 : 40)) {
                answered = true;
        } else { /* the reply is lost */
                answered_in = HF_NSEC_NEVER;
        }
        if (answered_in < ends_in)
                ends_in = answered_in;
        else
                answered = false;
        proc->n_unanswered++;
        sim_event_at(sim, sim->now + under_way, E_UNFENCED, p, sim->n_work_writes, 0);
        sim_event_at(sim, sim->now + ends_in, E_ANSWER, p, sim->n_work_writes, answered);
        sim->n_work_writes++;
}

void sim_unfenced_answer(struct sim *sim, const struct sim_event *event) {
        struct sim_work_write *write = &sim->work_writes[event->a];
        struct sim_proc *proc = &sim->procs[event->proc];

        if (write->ended || write->forgotten)
                return;
        if (!is_of_last_term(sim, write, event->proc)) {
                write->ended = true; /* no client waits for this reply any more */
                return;
        }
        end_write(sim, write, event->b != 0);
        if (proc->n_unanswered == 0 && !proc->work_alive)
                sim_proc_event(sim, event->proc, HF__EV_SETTLED);
}

bool sim_unfenced_delays_join(struct sim *sim, int p) {
        if (!sim->fence_off || sim->procs[p].n_unanswered == 0)
                return false;
        if (sim->calm || chance(sim, 50)) /* the work waits for its writes, as it should */
                return true;
        COUNT(sim, unanswered_at_join);
        return false;
}

void sim_unfenced_release(struct sim *sim, const struct sim_op *op) {
        for (unsigned i = 0; i < sim->n_work_writes; i++) {
                struct sim_work_write *write = &sim->work_writes[i];

                if (write->proc == op->proc && write->incarnation == op->incarnation)
                        write->released = true;
        }
}

/* The write reaches the store, which applies it. */
void sim_unfenced_arrive(struct sim *sim, uint64_t index) {
        struct sim_work_write *write = &sim->work_writes[index];
        const struct sim_proc *proc = &sim->procs[write->proc];
        hf_nsec from = write->ended ? write->ended_local : write->deadline_local;
        bool expected =
                !write->answered && !write->forgotten &&
                sim_local_time(sim, proc) - expiry_margin(sim) < from; /* from may be NEVER */

        if (!expected)
                COUNT(sim, unfenced_too_late);
        else if (write->released)
                sim_violate(sim,
                            "P6: e%d-%u released the Lease while a write of its term %" PRIu64
                            " was on its way",
                            write->proc, write->incarnation, write->term);
        else if (write->outlived)
                sim_violate(sim,
                            "P5: e%d-%u began a term while a write of its term %" PRIu64
                            " was on its way",
                            write->proc, write->incarnation, write->term);
}
