/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gate (P1): may this process act now? Open with a deadline, extended by each acknowledged
 * renewal, closed by hand.
 *
 * It holds one number, the boot time until which acting is allowed, and is asked at the point of
 * use, so that a process that was stopped, suspended or cut off is inert the moment it wakes.
 * Closed = 0. Only the elector core's actions move it. A fork after opening is detected: in the
 * child it is shut. Pure but for getpid. Thread: open, extend and close by the elector loop;
 * may_act by any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <holdfast/clock.h>

struct hf__gate {
        _Atomic int64_t valid_until; /* boot time; 0 = shut */
        _Atomic int64_t pid;         /* of the process that opened it */
};

void hf__gate_open(struct hf__gate *gate, hf_nsec valid_until);
void hf__gate_extend(struct hf__gate *gate,
                     hf_nsec valid_until); /* never backwards; does nothing on a shut gate */
void hf__gate_shut(struct hf__gate *gate);
bool hf__gate_may_act(struct hf__gate *gate, hf_nsec now);
hf_nsec hf__gate_valid_until(struct hf__gate *gate);
