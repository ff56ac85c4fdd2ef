/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate consists of two atomics without a lock, because every write of a leader reads it.
 *
 * Invariant: in the process that opened the gate, `valid_until` alone decides. `process` is stored
 * before `valid_until` and does not change while the gate is open, so a thread that reads a
 * valid_until also reads the process that belongs to it.
 *
 * A thread that sees an opening or an extension late is only refused without need. A thread that
 * has seen anything published after a shut finds the gate shut. Release and acquire are enough for
 * all of this. The shut and the readers' loads of valid_until are sequentially consistent, which is
 * more than is needed: callers must not rely on it.
 */
#include "leader/gate.h"

#include <assert.h>

#include <holdfast/error.h>

#include "base/process_mark.h"

void hf__gate_open(struct hf__gate *gate, hf_nsec valid_until) {
        assert(valid_until > 0);
        atomic_store_explicit(&gate->process, hf__process_mark(), memory_order_relaxed);
        atomic_store_explicit(&gate->valid_until, valid_until, memory_order_release);
}

void hf__gate_extend(struct hf__gate *gate, hf_nsec valid_until) {
        int64_t old = atomic_load_explicit(&gate->valid_until, memory_order_relaxed);

        while (old != 0 && old < valid_until)
                if (atomic_compare_exchange_weak_explicit(&gate->valid_until, &old, valid_until,
                                                          memory_order_release,
                                                          memory_order_relaxed))
                        return;
}

void hf__gate_shut(struct hf__gate *gate) {
        atomic_store_explicit(&gate->valid_until, 0, memory_order_seq_cst);
}

bool hf__gate_may_act(struct hf__gate *gate, hf_nsec now) {
        int64_t valid_until = atomic_load_explicit(&gate->valid_until, memory_order_seq_cst);

        return valid_until != 0 && now < valid_until &&
               atomic_load_explicit(&gate->process, memory_order_relaxed) == hf__process_mark();
}

hf_nsec hf__gate_valid_until(struct hf__gate *gate) {
        return atomic_load_explicit(&gate->valid_until, memory_order_seq_cst);
}

int hf__gate_admit(struct hf__gate *gate, hf_nsec now, bool is_over, hf_nsec *deadline,
                   const char **ret_why) {
        bool may_act = !is_over && hf__gate_may_act(gate, now);
        hf_nsec valid_until = may_act ? hf__gate_valid_until(gate) : 0;

        if (valid_until == 0) { /* the gate may have been shut between the two calls */
                *ret_why = is_over ? "the term is over" : "this process does not lead now";
                return HF_E_NOT_LEADER;
        }
        if (*deadline == 0 || *deadline > valid_until)
                *deadline = valid_until;
        return 0;
}
