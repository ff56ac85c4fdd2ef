/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Things in the order of the instant at which they are due: an intrusive pairing heap, so that
 * adding cannot fail. Thread: owner only.
 */
#include <stdbool.h>

#include <holdfast/clock.h>

struct hf__due {
        hf_nsec at; /* must not change while queued */
        /* the queue's while queued; prev is the left sibling, or the parent of a first child */
        struct hf__due *child, *next, *prev;
        bool queued;
};

struct hf__duequeue {
        struct hf__due *first; /* the earliest; NULL = empty */
};

void hf__duequeue_add(struct hf__duequeue *queue, struct hf__due *due, hf_nsec at);
void hf__duequeue_remove(struct hf__duequeue *queue,
                         struct hf__due *due); /* nothing when it is not queued */
