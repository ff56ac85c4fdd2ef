/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a set's operations: first in, first out. It links the electors. What to send is in
 * their cores: the operation under way. If a core gives its operation up and requests another one
 * before the first was sent, the second is sent in its place.
 *
 * The time in the queue weakens no promise. A term's validity and an operation's deadline count
 * from the step of the core that requested the operation, which is before the queue.
 *
 * Invariants:
 *  - an operation that its core has given up, or whose deadline has passed, is not sent: its core
 *    has counted it as an unknown outcome, and goes on;
 *  - an elector has at most one operation that counts as under way: its last one;
 *  - a server that does not reply cannot hold the queue up: after HF__OP_QUEUE_PATIENCE a new round
 *    begins, in which the operations of earlier rounds do not count.
 */
#include "leader/op_queue.h"

#include <assert.h>

#include "leader/elector.h"

static void leave(struct hf__op_queue *queue, struct hf__op_ticket *ticket) {
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

        leave(queue, ticket); /* an operation that the core has given up may still be under way */
        ticket->op_id = core->op_id;
        ticket->round = queue->round;
        ticket->is_under_way = true;
        queue->n_under_way++;
        queue->moved_at = now;
        if (core->op_kind == HF__OP_READ)
                lock->ops->read(lock, core->op_id, core->op_deadline);
        else
                lock->ops->write(lock, core->op_id, &core->op_record, core->op_deadline);
}

void hf__op_queue_add(struct hf__op_queue *queue, struct hf_elector *elector, hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;

        assert(elector->core.op_kind != HF__OP_NONE);
        if (ticket->is_queued)
                return;
        if (!queue->first && queue->n_under_way < HF__OP_QUEUE_LIMIT) {
                send_op(queue, elector, now);
                return;
        }
        ticket->is_queued = true;
        ticket->next = NULL;
        if (queue->first)
                queue->last->ticket.next = elector;
        else
                queue->first = elector;
        queue->last = elector;
}

void hf__op_queue_ended(struct hf__op_queue *queue, struct hf_elector *elector, uint32_t op_id,
                        hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;

        if (!ticket->is_under_way || ticket->op_id != op_id)
                return;
        leave(queue, ticket);
        queue->moved_at = now;
}

static struct hf_elector *take_first(struct hf__op_queue *queue) {
        struct hf_elector *elector = queue->first;

        queue->first = elector->ticket.next;
        elector->ticket.is_queued = false;
        return elector;
}

hf_nsec hf__op_queue_run(struct hf__op_queue *queue, hf_nsec now) {
        if (queue->first && now >= queue->moved_at + HF__OP_QUEUE_PATIENCE) {
                queue->round++;
                queue->n_under_way = 0;
        }
        while (queue->first && queue->n_under_way < HF__OP_QUEUE_LIMIT) {
                struct hf_elector *elector = take_first(queue);
                if (elector->core.op_kind != HF__OP_NONE && now < elector->core.op_deadline)
                        send_op(queue, elector, now);
        }
        return queue->first ? queue->moved_at + HF__OP_QUEUE_PATIENCE : HF_NSEC_NEVER;
}
