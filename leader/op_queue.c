/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of operations: first in, first out. It links electors. What to send for an elector is
 * in its core: the operation that the core has under way.
 *
 * The time in the queue weakens no promise. A core requests its operation in the step that sends
 * it, so a term's validity and an operation's deadline count from the sending, as without a queue.
 *
 * Invariants:
 *  - the operation that the core of a waiting elector has under way was not sent;
 *  - an elector has at most one operation that counts as under way: its last one;
 *  - a server that does not reply cannot hold the queue up: after HF__OP_QUEUE_PATIENCE a new round
 *    begins, in which the operations of earlier rounds do not count.
 */
#include "leader/op_queue.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leader/elector.h"

struct hf__op_queue *hf__op_queues_get(struct hf__op_queues *queues,
                                       const struct hf_client *client) {
        char key[sizeof queues->first->client];

        (void)snprintf(key, sizeof key, "%p", (const void *)client);
        struct hf__op_queue *queue =
                (struct hf__op_queue *)hf__key_index_find(&queues->by_client, key);
        if (queue)
                return queue;
        queue = calloc(1, sizeof *queue);
        if (!queue)
                return NULL;
        memcpy(queue->client, key, sizeof key);
        queue->keyed.key = queue->client;
        if (hf__key_index_insert(&queues->by_client, &queue->keyed) != 0) {
                free(queue);
                return NULL;
        }
        queue->next = queues->first;
        queues->first = queue;
        return queue;
}

void hf__op_queues_done(struct hf__op_queues *queues) {
        hf__key_index_done(&queues->by_client);
        while (queues->first) {
                struct hf__op_queue *queue = queues->first;
                queues->first = queue->next;
                free(queue);
        }
}

/* The elector's operation, if it has one, does not count as under way any more. */
static void leave_queue(struct hf__op_queue *queue, struct hf__op_ticket *ticket) {
        if (ticket->is_under_way && ticket->round == queue->round) {
                assert(queue->n_under_way > 0);
                queue->n_under_way--;
        }
        ticket->is_under_way = false;
}

static void send_op(struct hf__op_queue *queue, struct hf_elector *elector, hf_nsec now) {
        const struct hf__core *core = &elector->core;
        struct hf__op_ticket *ticket = &elector->ticket;
        struct hf__lock *lock = elector->lock;

        queue->turn = NULL;
        /* An earlier operation may still count as under way, although the core has given it up. */
        leave_queue(queue, ticket);
        ticket->op_id = core->op_id;
        ticket->round = queue->round;
        ticket->is_under_way = true;
        queue->n_under_way++;
        queue->moved_at = now;
        if (core->op_kind == HF__OP_READ) {
                lock->ops->read(lock, core->op_id, core->op_deadline);
                return;
        }
        struct hf__record record;
        hf__core_op_record(core, &record);
        lock->ops->write(lock, core->op_id, &record, core->op_deadline);
}

bool hf__op_queue_add(struct hf__op_queue *queue, struct hf_elector *elector, hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;

        assert(elector->core.op_kind != HF__OP_NONE);
        if (ticket->is_queued)
                return false;
        if (queue->turn == elector || (!queue->first && queue->n_under_way < HF__OP_QUEUE_LIMIT)) {
                send_op(queue, elector, now);
                return true;
        }
        ticket->is_queued = true;
        ticket->next = NULL;
        if (queue->first)
                queue->last->ticket.next = elector;
        else
                queue->first = elector;
        queue->last = elector;
        return false;
}

void hf__op_queue_ended(struct hf__op_queue *queue, struct hf_elector *elector, uint32_t op_id,
                        hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;

        if (!ticket->is_under_way || ticket->op_id != op_id)
                return;
        leave_queue(queue, ticket);
        queue->moved_at = now;
}

static struct hf_elector *take_first(struct hf__op_queue *queue) {
        struct hf_elector *elector = queue->first;

        queue->first = elector->ticket.next;
        elector->ticket.is_queued = false;
        return elector;
}

struct hf_elector *hf__op_queue_next(struct hf__op_queue *queue, hf_nsec now) {
        queue->turn = NULL;
        if (queue->first && now >= queue->moved_at + HF__OP_QUEUE_PATIENCE) {
                queue->round++;
                queue->n_under_way = 0;
        }
        while (queue->first && queue->n_under_way < HF__OP_QUEUE_LIMIT && !queue->turn) {
                struct hf_elector *elector = take_first(queue);
                /* A core that has given its operation up meanwhile needs no turn. */
                if (elector->core.op_kind != HF__OP_NONE)
                        queue->turn = elector;
        }
        return queue->turn;
}

hf_nsec hf__op_queue_wake_at(const struct hf__op_queue *queue) {
        return queue->first ? queue->moved_at + HF__OP_QUEUE_PATIENCE : HF_NSEC_NEVER;
}

bool hf__op_queue_is_unsent(const struct hf__op_queue *queue, const struct hf_elector *elector) {
        return (elector->ticket.is_queued || queue->turn == elector) &&
               elector->core.op_kind != HF__OP_NONE;
}
