/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Things in the order of the instant at which they are due: an intrusive pairing heap, so that
 * adding cannot fail. Thread: owner only.
 */
#include <stdbool.h>

#include <holdfast/clock.h>

struct hf__timer {
        hf_nsec at; /* must not change while queued */
        /* the queue's while queued; prev is the left sibling, or the parent of a first child */
        struct hf__timer *child, *next, *prev;
        bool queued;
};

struct hf__timer_heap {
        struct hf__timer *first; /* the earliest; NULL = empty */
};

void hf__timer_heap_add(struct hf__timer_heap *queue, struct hf__timer *due, hf_nsec at);
void hf__timer_heap_remove(struct hf__timer_heap *queue,
                           struct hf__timer *due); /* nothing when it is not queued */
