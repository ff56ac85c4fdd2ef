/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of the operations on Leases of all electors of a set that have the same client. It
 * limits how many of them are under way, because a server refuses requests beyond a limit of its
 * own (429), and a refused request is sent again much later than one that has waited for its turn.
 * Each client has a queue of its own, because clients of different servers, or of different users,
 * must not wait for each other.
 *
 * The queue contains electors, not operations. In each step while an elector waits, and when its
 * turn comes, its core learns that its operation was not sent (hf__core_event.op_unsent), and
 * requests the operation that is due then.
 *
 * Thread: the elector loop's. hf__op_queues_get and hf__op_queues_done are for the owner of the
 * electors, before the loop starts and after it has ended. Nothing blocks.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "client/key_index.h"

struct hf_client;
struct hf_elector;

#define HF__OP_QUEUE_LIMIT 128 /* operations under way; by default holdfastd runs 600 requests */
/* If electors wait and no operation was sent or has ended for this long, a new round begins: the
 * operations of earlier rounds do not count as under way any more. This time is far below a request
 * timeout (seconds), because electors that waited for a request timeout could lose their terms. */
#define HF__OP_QUEUE_PATIENCE (250 * HF_NSEC_PER_MSEC)

/* Zero = empty. */
struct hf__op_queue {
        struct hf__keyed keyed;          /* in hf__op_queues.by_client; its key is `client` */
        char client[24];                 /* the pointer to the client, as text */
        struct hf__op_queue *next;       /* the set's next queue */
        struct hf_elector *first, *last; /* waiting, linked by ticket.next */
        struct hf_elector *turn;         /* the elector whose turn it is; NULL = none */
        unsigned n_under_way;            /* operations of this round */
        uint32_t round;
        hf_nsec moved_at; /* boot time at which an operation was last sent or ended */
};

/* The queues of a set. Zero = none. */
struct hf__op_queues {
        struct hf__op_queue *first;     /* owned */
        struct hf__key_index by_client; /* for hf__op_queues_get */
};

/* Returns the client's queue, or NULL if memory runs out. Owned by `queues`. */
struct hf__op_queue *hf__op_queues_get(struct hf__op_queues *queues,
                                       const struct hf_client *client);
void hf__op_queues_done(struct hf__op_queues *queues);

/* An elector's place in the queue, and its operation that counts as under way. Zero = none. */
struct hf__op_ticket {
        struct hf_elector *next;
        bool is_queued, is_under_way;
        uint32_t op_id, round; /* if is_under_way */
};

/* Sends the operation that the elector's core has requested in this step if it is the elector's
 * turn, or if no elector waits and there is room. True: it was sent. False: the elector waits. It
 * keeps its place if it waited before. */
bool hf__op_queue_add(struct hf__op_queue *queue, struct hf_elector *elector, hf_nsec now);
/* Call it when an operation has got its reply. */
void hf__op_queue_ended(struct hf__op_queue *queue, struct hf_elector *elector, uint32_t op_id,
                        hf_nsec now);
/* Returns the elector whose turn it is now, or NULL. The caller steps its core. The turn ends with
 * the next call, so call it until it returns NULL. */
struct hf_elector *hf__op_queue_next(struct hf__op_queue *queue, hf_nsec now);
/* Returns the boot time at which hf__op_queue_next must be called again if no operation ends
 * before, or HF_NSEC_NEVER. */
hf_nsec hf__op_queue_wake_at(const struct hf__op_queue *queue);
/* Whether the elector's core has an operation that was not sent. */
bool hf__op_queue_is_unsent(const struct hf__op_queue *queue, const struct hf_elector *elector);
