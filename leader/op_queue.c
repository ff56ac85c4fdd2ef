/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a set's operations: first in, first out.
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
#include <stdlib.h>

#include "leader/elector.h"

struct hf__queued_op {
        struct hf__queued_op *next;
        struct hf_elector *elector;
        struct hf__core_action action;
};

static void leave(struct hf__op_queue *queue, struct hf__op_ticket *ticket) {
        if (ticket->is_under_way && ticket->round == queue->round) {
                assert(queue->n_under_way > 0);
                queue->n_under_way--;
        }
        ticket->is_under_way = false;
}

static void send_op(struct hf__op_queue *queue, struct hf_elector *elector,
                    const struct hf__core_action *action, hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;
        struct hf__lock *lock = elector->lock;

        leave(queue, ticket); /* an operation that the core has given up may still be under way */
        *ticket = (struct hf__op_ticket){action->op_id, queue->round, true};
        queue->n_under_way++;
        queue->moved_at = now;
        if (action->type == HF__ACT_READ)
                lock->ops->read(lock, action->op_id, action->deadline);
        else
                lock->ops->write(lock, action->op_id, &action->record, action->deadline);
}

void hf__op_queue_add(struct hf__op_queue *queue, struct hf_elector *elector,
                      const struct hf__core_action *action, hf_nsec now) {
        struct hf__queued_op *op = NULL;

        assert(action->type == HF__ACT_READ || action->type == HF__ACT_WRITE);
        if (queue->first || queue->n_under_way >= HF__OP_QUEUE_LIMIT)
                op = malloc(sizeof *op);
        if (!op) { /* there is room, or no memory: then it is better to be refused */
                send_op(queue, elector, action, now);
                return;
        }
        op->next = NULL;
        op->elector = elector;
        op->action = *action;
        if (queue->first)
                queue->last->next = op;
        else
                queue->first = op;
        queue->last = op;
}

void hf__op_queue_ended(struct hf__op_queue *queue, struct hf_elector *elector, uint32_t op_id,
                        hf_nsec now) {
        struct hf__op_ticket *ticket = &elector->ticket;

        if (!ticket->is_under_way || ticket->op_id != op_id)
                return;
        leave(queue, ticket);
        queue->moved_at = now;
}

static struct hf__queued_op *take_first(struct hf__op_queue *queue) {
        struct hf__queued_op *op = queue->first;

        queue->first = op->next;
        if (!queue->first)
                queue->last = NULL;
        return op;
}

/* Whether the elector's core still waits for this operation. */
static bool is_wanted(const struct hf__queued_op *op, hf_nsec now) {
        const struct hf__core *core = &op->elector->core;

        return core->op_kind != HF__OP_NONE && core->op_id == op->action.op_id &&
               now < op->action.deadline;
}

hf_nsec hf__op_queue_run(struct hf__op_queue *queue, hf_nsec now) {
        if (queue->first && now >= queue->moved_at + HF__OP_QUEUE_PATIENCE) {
                queue->round++;
                queue->n_under_way = 0;
        }
        while (queue->first && queue->n_under_way < HF__OP_QUEUE_LIMIT) {
                struct hf__queued_op *op = take_first(queue);
                if (is_wanted(op, now))
                        send_op(queue, op->elector, &op->action, now);
                free(op);
        }
        return queue->first ? queue->moved_at + HF__OP_QUEUE_PATIENCE : HF_NSEC_NEVER;
}

void hf__op_queue_done(struct hf__op_queue *queue) {
        while (queue->first)
                free(take_first(queue));
}
