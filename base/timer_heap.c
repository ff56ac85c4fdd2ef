/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer_heap.h"

#include <stddef.h>

/* Both are roots without siblings; either may be NULL. */
static struct hf__timer *meld(struct hf__timer *a, struct hf__timer *b) {
        if (!a || !b)
                return a ? a : b;
        if (b->at < a->at) {
                struct hf__timer *earlier = b;
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
static struct hf__timer *join(struct hf__timer *list) {
        struct hf__timer *pairs = NULL, *root = NULL;

        while (list) {
                struct hf__timer *a = list, *b = a->next;
                list = b ? b->next : NULL;
                a->next = a->prev = NULL;
                if (b)
                        b->next = b->prev = NULL;
                a = meld(a, b);
                a->next = pairs;
                pairs = a;
        }
        while (pairs) {
                struct hf__timer *rest = pairs->next;
                pairs->next = NULL;
                root = meld(root, pairs);
                pairs = rest;
        }
        return root;
}

void hf__timer_heap_add(struct hf__timer_heap *queue, struct hf__timer *due, hf_nsec at) {
        *due = (struct hf__timer){.at = at, .queued = true};
        queue->first = meld(queue->first, due);
}

void hf__timer_heap_remove(struct hf__timer_heap *queue, struct hf__timer *due) {
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
        *due = (struct hf__timer){.at = due->at};
}
