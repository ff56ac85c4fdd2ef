/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A priority level at work: the state machine of its requests (core/queue_set.h) behind a mutex,
 * with its demand, its Retry-After and the counts of each FlowSchema.
 *
 * A request has a place, a member of its owner's struct. When a place enters, it executes at once,
 * is refused, or waits. When the wait ends, the level calls the owner (hfd_flow_owner.decided),
 * unless the wait ends because the place leaves. Every place that executes or waits must leave.
 *
 * Lifetime: the index (flow_index.h) holds the level and its classes, and a request that has a
 * place holds the index. While a place waits, its owner must exist. So a waiting owner holds a
 * reference to itself. `decided` drops it; if hfd_flow_level_leave returns true, its caller does.
 *
 * Lock: one mutex for each level, which a request holds for a few hundred instructions. `decided`
 * runs without a lock, on the thread whose call made the decision; `describe` runs under the lock.
 * Thread: any; enter and leave of one place are called on one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/host.h>

#include "server/flow/core/queue_set.h"

struct hfd_flow_class; /* the requests of one FlowSchema in a level */
struct hfd_flow_level;
struct hfd_flow_place;

/* The facts about a request that /debug shows; the strings are borrowed. */
struct hfd_flow_description {
        const char *distinguisher, *user, *verb, *path, *ns, *name, *group, *version, *resource,
                *subresource;
};

struct hfd_flow_owner {
        /* The wait has ended: the request executes, or it is refused. Called once for each wait,
         * except if the place leaves while it waits. A place that was granted its seats may leave
         * on another thread before this call. Must not block. */
        void (*decided)(struct hfd_flow_place *place, bool granted);
        /* Called under the lock of the level. */
        void (*describe)(const struct hfd_flow_place *place, struct hfd_flow_description *ret);
};

/* Zero = outside. The owner sets the members marked "set by the owner" before the place enters. */
struct hfd_flow_place {
        struct hfd_seats seats;             /* must be first; guarded by the level's mutex */
        struct hfd_flow_level *level;       /* set by the owner; borrowed */
        struct hfd_flow_class *flow_class;  /* set by the owner; borrowed */
        const struct hfd_flow_owner *owner; /* set by the owner; static */
        uint64_t hash;                      /* set by the owner: of the flow (dealer.h) */
        hf_nsec deadline;                   /* set by the owner: its wait ends by then; boot time */
        size_t bytes;  /* set by the owner: memory that it keeps while it waits */
        bool is_watch; /* set by the owner */
        /* While its decision is reported. */
        bool decided_granted;
        struct hfd_flow_place *decided_next;
        unsigned width; /* set when the place enters */
};

/*
 * The request arrives: width at least 1, now: boot time. Refused (HFD_VERDICT_QUEUE_FULL,
 * HFD_VERDICT_NO_SEATS): place is outside. *ret_retry_after is set then, in seconds.
 */
enum hfd_verdict hfd_flow_level_enter(struct hfd_flow_place *place, unsigned width, hf_nsec now,
                                      unsigned *ret_retry_after);
/* The request ends, or its client has left. Does nothing if the place is outside. True: it was
 * waiting, and `decided` will not be called. False: if it has waited, `decided` has been called, or
 * another thread is about to call it. */
bool hfd_flow_level_leave(struct hfd_flow_place *place, hf_nsec now);
/* Counts a refusal for the Retry-After only: that of a place whose wait has ended without a seat,
 * which the class has counted already. Returns the Retry-After in seconds. */
unsigned hfd_flow_level_refuse(struct hfd_flow_level *level, hf_nsec now);
/* The greatest width with which a request may enter; 0 = no limit. */
unsigned hfd_flow_level_max_width(struct hfd_flow_level *level);
/* The name; valid as long as the level. */
const char *hfd_flow_level_name(const struct hfd_flow_level *level);

/* Accepts NULL, returns level. */
struct hfd_flow_level *hfd_flow_level_ref(struct hfd_flow_level *level);
/* Accepts NULL, returns NULL. */
struct hfd_flow_level *hfd_flow_level_unref(struct hfd_flow_level *level);
/* The class of a FlowSchema, with a reference. NULL = out of memory. */
struct hfd_flow_class *hfd_flow_level_class(struct hfd_flow_level *level, const char *schema);
/* Drops the reference. Accepts NULL. */
void hfd_flow_level_drop_class(struct hfd_flow_level *level, struct hfd_flow_class *flow_class);
