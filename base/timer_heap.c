/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986).
 *
 * Invariants: no timer is due earlier than its parent; the root has no siblings.
 */
#include "base/timer_heap.h"

#include <assert.h>
#include <stddef.h>

/* Melds two trees into one and returns its root: the root that is due later becomes a child of the
 * other. Either may be NULL. */
static struct hf__timer *meld_heaps(struct hf__timer *a, struct hf__timer *b) {
        assert(!a || (!a->next && !a->prev));
        assert(!b || (!b->next && !b->prev));
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

/* Melds a list of siblings into one tree: first in pairs from the left, then the pairs from the
 * right. The amortised O(log n) of a removal depends on this order. */
static struct hf__timer *meld_siblings(struct hf__timer *list) {
        struct hf__timer *pairs = NULL, *root = NULL;

        while (list) {
                struct hf__timer *a = list, *b = a->next;
                list = b ? b->next : NULL;
                a->next = NULL;
                a->prev = NULL;
                if (b) {
                        b->next = NULL;
                        b->prev = NULL;
                }
                a = meld_heaps(a, b);
                a->next = pairs;
                pairs = a;
        }
        while (pairs) {
                struct hf__timer *rest = pairs->next;
                pairs->next = NULL;
                root = meld_heaps(root, pairs);
                pairs = rest;
        }
        return root;
}

void hf__timer_heap_add(struct hf__timer_heap *heap, struct hf__timer *timer, hf_nsec at) {
        assert(!timer->queued);
        *timer = (struct hf__timer){.at = at, .queued = true};
        heap->first = meld_heaps(heap->first, timer);
}

void hf__timer_heap_remove(struct hf__timer_heap *heap, struct hf__timer *timer) {
        if (!timer->queued)
                return;
        assert(heap->first && (heap->first == timer) == !timer->prev);
        if (heap->first == timer) {
                heap->first = meld_siblings(timer->child);
        } else {
                if (timer->prev->child == timer)
                        timer->prev->child = timer->next;
                else
                        timer->prev->next = timer->next;
                if (timer->next)
                        timer->next->prev = timer->prev;
                heap->first = meld_heaps(heap->first, meld_siblings(timer->child));
        }
        *timer = (struct hf__timer){.at = timer->at};
        assert(!heap->first || (!heap->first->next && !heap->first->prev));
}
