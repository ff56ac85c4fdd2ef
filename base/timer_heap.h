/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A priority queue of timers, the earliest first: an intrusive pairing heap. A timer is a member of
 * its owner's struct, so adding one cannot fail. Adding takes constant time, removing O(log n)
 * amortised. Thread: owner only.
 */
#include <stdbool.h>

#include <holdfast/clock.h>

/* Must be zeroed before its first use. */
struct hf__timer {
        hf_nsec at; /* when it is due; must not change while queued */
        /* Used by the heap while queued. prev is the left sibling, or the parent of a first child;
         * NULL for the root. */
        struct hf__timer *child, *next, *prev;
        bool queued;
};

/* Zero = empty. */
struct hf__timer_heap {
        struct hf__timer *first; /* the earliest; NULL = empty */
};

/* Queues timer, which must not be queued. */
void hf__timer_heap_add(struct hf__timer_heap *heap, struct hf__timer *timer, hf_nsec at);
/* Does nothing when timer is not queued; otherwise it must be in this heap. */
void hf__timer_heap_remove(struct hf__timer_heap *heap, struct hf__timer *timer);
