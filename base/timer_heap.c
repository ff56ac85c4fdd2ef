/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer_heap.h"

#include <stddef.h>

/* Both are roots without siblings; either may be NULL. */
static struct hf__due *meld(struct hf__due *a, struct hf__due *b) {
        if (!a || !b)
                return a ? a : b;
        if (b->at < a->at) {
                struct hf__due *earlier = b;
                b = a;
                a = earlier;
        }
        b->prev = a;
        b->next = a->child;
        if (b->next)
                b->next->prev = b;
        a->child = b;
        return a;
}

/* Joins a list of siblings to one root: pairwise from the left, then all pairs from the right. */
static struct hf__due *join(struct hf__due *list) {
        struct hf__due *pairs = NULL, *root = NULL;

        while (list) {
                struct hf__due *a = list, *b = a->next;
                list = b ? b->next : NULL;
                a->next = a->prev = NULL;
                if (b)
                        b->next = b->prev = NULL;
                a = meld(a, b);
                a->next = pairs;
                pairs = a;
        }
        while (pairs) {
                struct hf__due *rest = pairs->next;
                pairs->next = NULL;
                root = meld(root, pairs);
                pairs = rest;
        }
        return root;
}

void hf__duequeue_add(struct hf__duequeue *queue, struct hf__due *due, hf_nsec at) {
        *due = (struct hf__due){.at = at, .queued = true};
        queue->first = meld(queue->first, due);
}

void hf__duequeue_remove(struct hf__duequeue *queue, struct hf__due *due) {
        if (!due->queued)
                return;
        if (queue->first == due) {
                queue->first = join(due->child);
        } else {
                if (due->prev->child == due)
                        due->prev->child = due->next;
                else
                        due->prev->next = due->next;
                if (due->next)
                        due->next->prev = due->prev;
                queue->first = meld(queue->first, join(due->child));
        }
        *due = (struct hf__due){.at = due->at};
}
