/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of a set's operations on its Leases. It limits how many of them are under way, because
 * a server refuses requests beyond a number of its own (429), and a refused request is sent again
 * much later than one that has waited for its turn.
 *
 * Thread: the elector loop's. Nothing blocks or allocates.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

struct hf_elector;

#define HF__OP_QUEUE_LIMIT 128 /* operations under way; holdfastd serves 200 writes at a time */
/* If no operation has ended for this long, those under way do not count any more. */
#define HF__OP_QUEUE_PATIENCE (250 * HF_NSEC_PER_MSEC)

/* Zero = empty. */
struct hf__op_queue {
        struct hf_elector *first, *last; /* not sent yet, linked by ticket.next */
        unsigned n_under_way;            /* operations of this round */
        uint32_t round;
        hf_nsec moved_at; /* boot time at which an operation was last sent or ended */
};

/* An elector's place in the queue, and its operation that counts as under way. Zero = none. */
struct hf__op_ticket {
        struct hf_elector *next;
        bool is_queued, is_under_way;
        uint32_t op_id, round; /* if is_under_way */
};

/* Sends the operation that the elector's core has requested in this step, or queues it. */
void hf__op_queue_add(struct hf__op_queue *queue, struct hf_elector *elector, hf_nsec now);
/* Call it when an operation has got its reply. */
void hf__op_queue_ended(struct hf__op_queue *queue, struct hf_elector *elector, uint32_t op_id,
                        hf_nsec now);
/* Sends what may be sent now. Returns the boot time at which it must be called again, or
 * HF_NSEC_NEVER. */
hf_nsec hf__op_queue_run(struct hf__op_queue *queue, hf_nsec now);
