/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests of one priority level: which of them have seats, and in which order the others get
 * them. A state machine without clock, thread and I/O; the caller passes the boot time and holds
 * whatever lock it needs.
 *
 * A level has a limit of seats. A request has as many seats as it is wide, from its start to its
 * end. What happens when the seats are taken depends on the level:
 *
 *      HFD_LEVEL_EXEMPT   there is no limit
 *      HFD_LEVEL_REJECT   the request is refused
 *      HFD_LEVEL_QUEUE    the request waits in a queue of its flow's hand (dealer.h), the one with
 *                         the least work; it is refused if that queue is full (in Kubernetes a full
 *                         queue accepts more while the next request is too wide for the free seats)
 *
 * Fair queuing. Virtual time, r, advances as fast as each active queue would be served if all
 * shared the seats in use evenly. (Kubernetes counts the seats that could be in use instead. Then r
 * runs ahead while wide requests leave seats empty, and the order becomes that of arrival.) Each
 * queue has the virtual time at which its next request starts. Of the requests at the heads of
 * their queues, the one that would end first in virtual time is next. The work of a request is
 * estimated when it starts, and corrected when it ends. So a flow with many or with long requests
 * falls behind, and a flow with few requests is served soon.
 *
 * The next request in this order starts as soon as it has room. A wide one waits until its seats
 * are free; meanwhile no request that comes after it in the order passes it. One that is wider than
 * the limit runs alone; if the limit is 0, it waits. (A level without queues runs one request alone
 * even if its limit is 0, as Kubernetes does.)
 *
 * Costs: arrive, leave and each decision take O(log n) amortised in the queues and the waiting
 * requests. While nothing waits, the order is not touched. Memory: a queue is made when it is first
 * used; one beyond the configured number is freed once it has no requests. The number of queues is
 * limited to HFD_QUEUES_MAX.
 *
 * Thread: owner only.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/timer_heap.h"

/* A level that wants more queues has this many. The hands are still very different. */
#define HFD_QUEUES_MAX 4096u
/* How long a request is expected to run; as in Kubernetes. */
#define HFD_SERVICE_TIME (3 * HF_NSEC_PER_MSEC)

enum hfd_level_kind { HFD_LEVEL_EXEMPT, HFD_LEVEL_REJECT, HFD_LEVEL_QUEUE };

struct hfd_queue_config {
        enum hfd_level_kind kind;
        unsigned n_queues, n_hand, max_length; /* HFD_LEVEL_QUEUE; each at least 1 */
};

enum hfd_seats_state { HFD_SEATS_OUTSIDE, HFD_SEATS_WAITING, HFD_SEATS_EXECUTING };

struct hfd_seat_queue;

/* A request in the level. Zero = outside. The caller reads the members; only the functions below
 * change them. */
struct hfd_seats {
        enum hfd_seats_state state;
        unsigned width;
        hf_nsec arrived, started;      /* boot time; started 0 = it waits */
        struct hfd_seat_queue *queue;  /* borrowed; NULL = it went through none */
        struct hfd_seats *next, *prev; /* in its queue, or in `executing` */
        struct hfd_seats *decided;     /* in a list of hfd_decisions */
        struct hf__timer deadline;     /* while it waits */
        int64_t arrived_r;             /* virtual time */
};

/* A list of requests, in the order in which they were added. */
struct hfd_seats_list {
        struct hfd_seats *first, *last;
};

struct hfd_seat_queue {
        unsigned index;
        struct hfd_seats_list waiting;
        size_t n_waiting, n_executing;
        uint64_t waiting_seats, executing_seats;
        int64_t next_r;         /* virtual time at which its next request starts */
        struct hf__timer place; /* in `order`, by the virtual end of its first request */
};

/* The decisions of a function about waiting requests: lists by `decided`, the first decided first.
 * Begins as zero; several calls may add to it. */
struct hfd_decisions {
        struct hfd_seats *granted, **granted_end;
        struct hfd_seats *expired, **expired_end;
};

struct hfd_queue_set {
        struct hfd_queue_config config;
        unsigned limit; /* seats */

        struct hfd_seat_queue **queues;  /* owned array of owned queues; NULL = not made */
        unsigned n_queues;               /* of the array, which never shrinks */
        struct hf__timer_heap order;     /* queues with waiting requests */
        struct hf__timer_heap deadlines; /* waiting requests */
        struct hfd_seats_list executing;

        size_t n_active; /* queues with requests */
        size_t n_waiting, n_executing;
        uint64_t waiting_seats, executing_seats;
        uint64_t queued_seats; /* the part of executing_seats that requests from queues have */

        int64_t r;           /* virtual time: seat-nanoseconds for each active queue */
        hf_nsec at;          /* boot time of r */
        uint64_t n_arrivals; /* that chose a queue, whether it was full or not */

        /* Since the start. n_rejected includes n_timed_out and n_cancelled. */
        uint64_t n_dispatched, n_rejected, n_timed_out, n_cancelled;
};

enum hfd_verdict {
        HFD_VERDICT_EXECUTE,
        HFD_VERDICT_WAIT,
        HFD_VERDICT_QUEUE_FULL, /* refused */
        HFD_VERDICT_NO_SEATS,   /* refused: the level has no queues */
};

/* 0 or -ENOMEM; then there is nothing to free. */
int hfd_queue_set_init(struct hfd_queue_set *set, const struct hfd_queue_config *config,
                       unsigned limit, hf_nsec now);
/* Requires that no request is in it. */
void hfd_queue_set_done(struct hfd_queue_set *set);
/*
 * Changes the queues. Requests that wait keep their queue and their turn, also if the level has
 * fewer queues now, or none. 0 or -ENOMEM: nothing has changed.
 */
int hfd_queue_set_configure(struct hfd_queue_set *set, const struct hfd_queue_config *config,
                            hf_nsec now, struct hfd_decisions *decisions);
/* Changes the limit. If requests have more seats than that, they keep them until they end. */
void hfd_queue_set_limit(struct hfd_queue_set *set, unsigned limit, hf_nsec now,
                         struct hfd_decisions *decisions);

/*
 * A request has arrived: seats is zero, width at least 1. HFD_VERDICT_WAIT: a later call decides
 * about it, hfd_queue_set_expire at the latest, once deadline has passed. Refused: seats stays
 * zero; a request for whose queue there is no memory is refused, too. decisions: about other
 * requests. They are rare: if several requests are equally early, the new one may change which of
 * them is next.
 */
enum hfd_verdict hfd_queue_set_arrive(struct hfd_queue_set *set, struct hfd_seats *seats,
                                      unsigned width, uint64_t hash, hf_nsec now, hf_nsec deadline,
                                      struct hfd_decisions *decisions);
/* The request ends, or is given up while it waits. Does nothing if it is outside. Returns the state
 * that it had; afterwards seats is zero. */
enum hfd_seats_state hfd_queue_set_leave(struct hfd_queue_set *set, struct hfd_seats *seats,
                                         hf_nsec now, struct hfd_decisions *decisions);
/* Refuses the requests whose deadline has passed. Their seats are zero afterwards, except for
 * `arrived` and `decided`, which the caller reads. */
void hfd_queue_set_expire(struct hfd_queue_set *set, hf_nsec now, struct hfd_decisions *decisions);
/* The requests that wait now wait until this deadline at most. Takes O(log n) for each of them. */
void hfd_queue_set_shorten(struct hfd_queue_set *set, hf_nsec deadline);
/* The earliest deadline; HF_NSEC_NEVER = nothing waits. */
hf_nsec hfd_queue_set_deadline(const struct hfd_queue_set *set);
/* The seats that requests have or wait for. */
static inline uint64_t hfd_queue_set_demand(const struct hfd_queue_set *set) {
        return set->waiting_seats + set->executing_seats;
}
