/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The structs of priority levels, for the files that implement, count and show them. */
#include <pthread.h>
#include <stdatomic.h>

#include "server/flow/core/borrowing.h"
#include "server/flow/core/retry_after.h"
#include "server/flow/core/seat_demand.h"
#include "server/flow/flow_level.h"
#include "server/flow/flow_levels.h"
#include "server/flow/histogram.h"

/* Why a request got no seats. */
enum hfd_flow_refusal {
        HFD_FLOW_QUEUE_FULL,        /* also: no memory, or HFD_FLOW_WAITING_BYTES is reached */
        HFD_FLOW_CONCURRENCY_LIMIT, /* the level has no queues */
        HFD_FLOW_TIME_OUT,          /* also: its client left while it waited */
        HFD_FLOW_N_REFUSALS
};

/* Guarded by the level's mutex, except that `schema` is immutable. */
struct hfd_flow_class {
        struct hfd_flow_class *next;
        size_t refs;
        char *schema; /* owned */
        uint64_t n_waiting, waiting_seats, n_executing, executing_seats;
        uint64_t n_dispatched, n_refused[HFD_FLOW_N_REFUSALS];
        struct hfd_histogram waited, waited_in_vain, ran, watch_ran, queue_length, width;
};

extern const struct hfd_histogram_bounds hfd_flow_seconds, hfd_flow_lengths, hfd_flow_widths;

struct hfd_flow_level {
        atomic_size_t refs;
        /* immutable */
        struct hfd_flow_levels *levels; /* borrowed */
        char *name;                     /* owned */
        /* guarded by mu */
        pthread_mutex_t mu;
        struct hfd_queue_set set;
        struct hfd_seat_demand demand;
        struct hfd_retry_after retry;
        struct hfd_level_limits limits;
        unsigned max_width;
        struct hfd_flow_class *classes; /* list, owned */
};

/* Places (flow_level.h) whose decision must be reported once no lock is held. Zero = none. */
struct hfd_flow_reports {
        struct hfd_flow_place *first, **end;
};

/* The caller owns the reference. levels outlives it. 0 or -errno. */
int hfd_flow_level_new(struct hfd_flow_levels *levels, const char *name,
                       const struct hfd_queue_config *config, hf_nsec now,
                       struct hfd_flow_level **ret_level);
/* Counts the decisions, and adds their places to reports. The caller holds the level's mutex. */
void hfd_flow_level_decided_locked(struct hfd_flow_level *level,
                                   const struct hfd_decisions *decisions, hf_nsec now,
                                   struct hfd_flow_reports *reports);
/* Calls `decided` of each place in reports. The caller holds no lock. */
void hfd_flow_level_report(struct hfd_flow_reports *reports);
