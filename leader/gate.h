/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gate decides whether this process may act as leader at this moment.
 *
 * The gate holds one number, the boot time until which acting is allowed. It is opened with such a
 * time, every acknowledged renewal extends it, and it is shut explicitly or when that time passes.
 * A term's client checks it immediately before every write. So a process that was stopped,
 * suspended or cut off from the network cannot act when it wakes up, before it has learned
 * anything.
 *
 * Only elector_actions.c changes the gate. After a fork the gate is shut in the child, because the
 * child does not renew the Lease.
 *
 * Thread: open, extend and shut by the elector loop; the others by any. Never blocks.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

struct hf__gate {
        _Atomic int64_t valid_until; /* boot time; 0 = not opened, or shut by hf__gate_shut */
        _Atomic uint64_t process;    /* the mark of the process that opened it */
};

/* hf__process_mark_init must have succeeded. */
void hf__gate_open(struct hf__gate *gate, hf_nsec valid_until);
/* Never shortens. Does nothing before hf__gate_open, and after hf__gate_shut. */
void hf__gate_extend(struct hf__gate *gate, hf_nsec valid_until);
void hf__gate_shut(struct hf__gate *gate); /* idempotent */
bool hf__gate_may_act(struct hf__gate *gate, hf_nsec now);
/* 0 = not opened, or shut by hf__gate_shut. The time may have passed, and in a forked child it is
 * the parent's. */
hf_nsec hf__gate_valid_until(struct hf__gate *gate);
/*
 * Decides about a request of a term; is_over: the term has ended. Returns 0 if the request may be
 * sent, and limits *deadline (boot time; 0 = none) to the validity. Otherwise returns
 * HF_E_NOT_LEADER, and the reason, which is static, in *ret_why.
 */
int hf__gate_admit(struct hf__gate *gate, hf_nsec now, bool is_over, hf_nsec *deadline,
                   const char **ret_why);
