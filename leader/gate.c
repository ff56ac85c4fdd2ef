/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/gate.h"

#include <unistd.h>

/*
 * The deadline is the one word that decides; pid is written before it and never changes while the
 * gate is open, so that a reader that sees the deadline (acquire) sees the process it belongs to.
 */
void hf__gate_open(struct hf__gate *gate, hf_nsec valid_until) {
        atomic_store_explicit(&gate->pid, (int64_t)getpid(), memory_order_relaxed);
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

        /* The process is asked for last: it is a system call. */
        return valid_until != 0 && now < valid_until &&
               atomic_load_explicit(&gate->pid, memory_order_relaxed) == (int64_t)getpid();
}

hf_nsec hf__gate_valid_until(struct hf__gate *gate) {
        return atomic_load_explicit(&gate->valid_until, memory_order_seq_cst);
}
