/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of operations, in the schedules of --queued: each operation of a process may have to
 * wait before it is sent, mostly for a moment, sometimes for longer than the request timeout. While
 * it waits, and when its turn comes, the events for the core say that it was not sent, as in the
 * elector's loop (leader/op_queue.h). In the part of a schedule without faults no operation waits.
 */
#include "tests/sim/sim.h"

/* True: the operation that the core requests is not sent now. */
bool sim_queue_holds(struct sim *sim, int p) {
        struct sim_proc *proc = &sim->procs[p];
        hf_nsec timeout = sim->timing.request_timeout, wait;

        if (proc->op_waits) { /* a request that is made again keeps its place in the queue */
                COUNT(sim, requests_while_waiting);
                return true;
        }
        if (!sim->queued || sim->calm || proc->has_turn || sim_chance(sim, 50)) {
                proc->has_turn = false;
                return false;
        }
        wait = sim_between(sim, 0, timeout / 16);
        if (sim_chance(sim, 20)) {
                wait = sim_between(sim, 0, 2 * timeout);
                proc->clean_since_stop = false;
                proc->op_went_wrong = true;
        }
        proc->op_waits = true;
        COUNT(sim, waits);
        TRACE(sim, "%-6s must wait", proc->identity);
        sim_event_at(sim, sim->now + wait, E_TURN, p, ++proc->wait_gen, 0);
        return true;
}

void sim_queue_turn(struct sim *sim, int p, uint64_t wait_gen) {
        struct sim_proc *proc = &sim->procs[p];

        if (!proc->op_waits || proc->wait_gen != wait_gen)
                return;
        proc->op_waits = false;
        if (proc->core.op_kind == HF__OP_NONE)
                return;
        proc->has_turn = true;
        sim_proc_event(sim, p, HF__EV_TICK);
        proc->has_turn = false;
}

/* The value of hf__core_event.op_unsent. */
bool sim_queue_is_unsent(const struct sim_proc *proc) { return proc->op_waits || proc->has_turn; }
