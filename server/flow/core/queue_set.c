/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of one priority level.
 *
 * Invariants:
 *  - executing_seats is at most the limit, except after the limit was lowered or an exempt level
 *    was given a limit, and for one request that is wider than the limit, which then runs alone.
 *    (An exempt level has no limit.)
 *  - After each function the head of the first queue in `order`, if there is one, cannot start: it
 *    has no room, or the limit is 0.
 *  - A queue is in `order` if and only if requests wait in it. Its key is next_r plus the work of
 *    its head.
 *  - next_r of an active queue is not before the arrival of its head: a queue that was served less
 *    than its share gets no credit for times when it had no requests.
 *  - A queue beyond the configured number exists only while it has requests.
 */
#include "server/flow/core/queue_set.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "server/flow/core/dealer.h"

#define QUEUE_OF(timer)                                                                            \
        ((struct hfd_seat_queue *)(void *)((char *)(timer)-offsetof(struct hfd_seat_queue, place)))
#define SEATS_OF(timer)                                                                            \
        ((struct hfd_seats *)(void *)((char *)(timer)-offsetof(struct hfd_seats, deadline)))

/* Virtual time begins again before it can overflow. */
#define R_MAX (INT64_C(1) << 60)
/* Longer pauses between two calls count as this long, so that one step cannot take r far past
 * R_MAX. */
#define PAUSE_MAX (600 * HF_NSEC_PER_SEC)

/* ---- lists ---- */

static void list_append(struct hfd_seats_list *list, struct hfd_seats *seats) {
        seats->next = NULL;
        seats->prev = list->last;
        if (list->last)
                list->last->next = seats;
        else
                list->first = seats;
        list->last = seats;
}

static void list_remove(struct hfd_seats_list *list, struct hfd_seats *seats) {
        if (seats->prev)
                seats->prev->next = seats->next;
        else
                list->first = seats->next;
        if (seats->next)
                seats->next->prev = seats->prev;
        else
                list->last = seats->prev;
        seats->next = seats->prev = NULL;
}

static void append_decided(struct hfd_seats **first, struct hfd_seats ***end,
                           struct hfd_seats *seats) {
        if (!*end)
                *end = first;
        seats->decided = NULL;
        **end = seats;
        *end = &seats->decided;
}

/* ---- virtual time ---- */

static int64_t work_of(const struct hfd_seats *seats) {
        return (int64_t)seats->width * HFD_SERVICE_TIME;
}

/* Moves a queue to its place in `order`. Call it after the queue's head or next_r has changed. */
static void place_queue(struct hfd_queue_set *set, struct hfd_seat_queue *queue) {
        const struct hfd_seats *head = queue->waiting.first;

        hf__timer_heap_remove(&set->order, &queue->place);
        if (!head)
                return;
        if (queue->next_r < head->arrived_r)
                queue->next_r = head->arrived_r;
        hf__timer_heap_add(&set->order, &queue->place, queue->next_r + work_of(head));
}

static void rebase_queue(struct hfd_queue_set *set, struct hfd_seat_queue *queue, int64_t by) {
        hf__timer_heap_remove(&set->order, &queue->place);
        queue->next_r -= by;
        for (struct hfd_seats *m = queue->waiting.first; m; m = m->next)
                m->arrived_r -= by;
}

/* Sets virtual time back to 0. All queues leave `order` before the first one returns, so that it
 * never compares old keys with new ones. Takes linear time, but is needed once in weeks at most,
 * even if hundreds of seats are always in use. */
static void rebase_time(struct hfd_queue_set *set) {
        int64_t by = set->r;

        for (unsigned i = 0; i < set->n_queues; i++)
                if (set->queues[i])
                        rebase_queue(set, set->queues[i], by);
        set->r = 0;
        for (unsigned i = 0; i < set->n_queues; i++)
                if (set->queues[i])
                        place_queue(set, set->queues[i]);
}

/* Call it before any change: what was true since the last call determines how far r advances. */
static void advance_time(struct hfd_queue_set *set, hf_nsec now) {
        hf_nsec pause = now - set->at;

        /* Callers read the time before they take the lock, so times may come in another order. */
        if (pause <= 0)
                return;
        set->at = now;
        if (set->n_active == 0)
                return;
        if (pause > PAUSE_MAX)
                pause = PAUSE_MAX;
        set->r += (int64_t)((double)pause * (double)set->queued_seats / (double)set->n_active);
        if (set->r >= R_MAX)
                rebase_time(set);
}

/* ---- queues ---- */

static void activate_queue(struct hfd_queue_set *set, struct hfd_seat_queue *queue) {
        if (queue->n_waiting + queue->n_executing > 0)
                return;
        queue->next_r = set->r;
        set->n_active++;
}

/* Call it after a request has left the queue. The queue may be freed. */
static void retire_queue(struct hfd_queue_set *set, struct hfd_seat_queue *queue) {
        if (queue->n_waiting + queue->n_executing > 0)
                return;
        assert(set->n_active > 0 && !queue->place.queued);
        set->n_active--;
        if (set->config.kind == HFD_LEVEL_QUEUE && queue->index < set->config.n_queues)
                return;
        set->queues[queue->index] = NULL;
        free(queue);
}

/* NULL = out of memory. */
static struct hfd_seat_queue *get_queue(struct hfd_queue_set *set, unsigned index) {
        if (!set->queues[index]) {
                set->queues[index] = calloc(1, sizeof *set->queues[index]);
                if (set->queues[index])
                        set->queues[index]->index = index;
        }
        return set->queues[index];
}

/* The queue of the flow's hand in which the least work waits. Of equal ones it is not always the
 * first: each arrival begins at another place of its hand, so all queues are used alike. NULL = out
 * of memory. */
static struct hfd_seat_queue *choose_queue(struct hfd_queue_set *set, uint64_t hash) {
        unsigned hand[HFD_HAND_MAX], n = set->config.n_hand, best = 0;
        unsigned first = (unsigned)(set->n_arrivals++ % n);
        uint64_t least = UINT64_MAX;

        hfd_dealer_deal(hash, set->config.n_queues, n, hand);
        for (unsigned i = 0; i < n && least > 0; i++) {
                unsigned index = hand[(first + i) % n];
                uint64_t waits = set->queues[index] ? set->queues[index]->waiting_seats : 0;
                if (waits < least) {
                        least = waits;
                        best = index;
                }
        }
        return get_queue(set, best);
}

/* ---- seats ---- */

static bool has_room(const struct hfd_queue_set *set, unsigned width) {
        if (set->config.kind == HFD_LEVEL_EXEMPT)
                return true;
        if (width > set->limit)
                return set->n_executing == 0;
        return set->executing_seats + width <= set->limit;
}

/* The request starts. It needs no queue, or is the next one of its queue. */
static void start_seats(struct hfd_queue_set *set, struct hfd_seats *seats, hf_nsec now) {
        struct hfd_seat_queue *queue = seats->queue;

        seats->state = HFD_SEATS_EXECUTING;
        seats->started = now;
        set->n_executing++;
        set->executing_seats += seats->width;
        set->n_dispatched++;
        list_append(&set->executing, seats);
        if (!queue)
                return;
        queue->n_executing++;
        queue->executing_seats += seats->width;
        queue->next_r += work_of(seats);
        set->queued_seats += seats->width;
}

/* Takes a request out of its queue. Afterwards the queue must be placed and, unless the request
 * starts, retired. */
static void dequeue_seats(struct hfd_queue_set *set, struct hfd_seats *seats) {
        struct hfd_seat_queue *queue = seats->queue;

        assert(seats->state == HFD_SEATS_WAITING && queue->n_waiting > 0 && set->n_waiting > 0);
        list_remove(&queue->waiting, seats);
        hf__timer_heap_remove(&set->deadlines, &seats->deadline);
        assert(queue->waiting_seats >= seats->width && set->waiting_seats >= seats->width);
        queue->n_waiting--;
        queue->waiting_seats -= seats->width;
        set->n_waiting--;
        set->waiting_seats -= seats->width;
}

/* Gives seats to waiting requests, as long as the next one has room. */
static void dispatch_queues(struct hfd_queue_set *set, hf_nsec now,
                            struct hfd_decisions *decisions) {
        while (set->order.first) {
                struct hfd_seat_queue *queue = QUEUE_OF(set->order.first);
                struct hfd_seats *seats = queue->waiting.first;
                /* If the limit is 0, no waiting request starts, although has_room lets one that is
                 * wider than the limit run alone. As in Kubernetes, a request that arrives at a
                 * level without queues does run alone, even if the limit is 0. */
                bool may_start =
                        set->config.kind == HFD_LEVEL_EXEMPT || set->executing_seats < set->limit;

                if (!may_start || !has_room(set, seats->width))
                        return;
                dequeue_seats(set, seats);
                start_seats(set, seats, now);
                place_queue(set, queue);
                append_decided(&decisions->granted, &decisions->granted_end, seats);
        }
}

static void clear_seats(struct hfd_seats *seats) { *seats = (struct hfd_seats){0}; }

/* A waiting request leaves without a seat. */
static void reject_waiting_request(struct hfd_queue_set *set, struct hfd_seats *seats) {
        struct hfd_seat_queue *queue = seats->queue;

        dequeue_seats(set, seats);
        place_queue(set, queue);
        retire_queue(set, queue);
        set->n_rejected++;
        clear_seats(seats);
}

static void finish_seats(struct hfd_queue_set *set, struct hfd_seats *seats, hf_nsec now) {
        struct hfd_seat_queue *queue = seats->queue;
        hf_nsec ran = now > seats->started ? now - seats->started : 0;

        assert(set->n_executing > 0 && set->executing_seats >= seats->width);
        list_remove(&set->executing, seats);
        set->n_executing--;
        set->executing_seats -= seats->width;
        if (queue) {
                assert(queue->n_executing > 0);
                queue->n_executing--;
                queue->executing_seats -= seats->width;
                set->queued_seats -= seats->width;
                /* start_seats has charged the queue with the expected time: now the real one
                 * counts. */
                queue->next_r += (int64_t)seats->width * (ran - HFD_SERVICE_TIME);
                if (queue->waiting.first)
                        place_queue(set, queue);
                retire_queue(set, queue);
        }
        clear_seats(seats);
}

/* ---- the interface ---- */

/* The configuration as the level uses it: within the limits, and with a hand that can be dealt. */
static struct hfd_queue_config normalize_config(const struct hfd_queue_config *config) {
        struct hfd_queue_config used = *config;

        if (used.kind != HFD_LEVEL_QUEUE)
                return (struct hfd_queue_config){.kind = used.kind};
        assert(used.n_queues > 0 && used.n_hand > 0 && used.max_length > 0);
        if (used.n_queues > HFD_QUEUES_MAX)
                used.n_queues = HFD_QUEUES_MAX;
        if (used.n_hand > HFD_HAND_MAX)
                used.n_hand = HFD_HAND_MAX;
        if (used.n_hand > used.n_queues)
                used.n_hand = used.n_queues;
        return used;
}

/* 0 or -ENOMEM. */
static int make_room(struct hfd_queue_set *set, unsigned n_queues) {
        if (n_queues <= set->n_queues)
                return 0;
        struct hfd_seat_queue **queues = realloc(set->queues, n_queues * sizeof *queues);
        if (!queues)
                return -ENOMEM;
        for (unsigned i = set->n_queues; i < n_queues; i++)
                queues[i] = NULL;
        set->queues = queues;
        set->n_queues = n_queues;
        return 0;
}

int hfd_queue_set_init(struct hfd_queue_set *set, const struct hfd_queue_config *config,
                       unsigned limit, hf_nsec now) {
        struct hfd_queue_config used = normalize_config(config);

        *set = (struct hfd_queue_set){.config = used, .limit = limit, .at = now};
        return make_room(set, used.n_queues);
}

void hfd_queue_set_done(struct hfd_queue_set *set) {
        assert(set->n_waiting == 0 && set->n_executing == 0 && set->n_active == 0);
        assert(set->executing_seats == 0 && set->waiting_seats == 0 && set->queued_seats == 0);
        for (unsigned i = 0; i < set->n_queues; i++)
                free(set->queues[i]);
        free(set->queues);
        *set = (struct hfd_queue_set){0};
}

int hfd_queue_set_configure(struct hfd_queue_set *set, const struct hfd_queue_config *config,
                            hf_nsec now, struct hfd_decisions *decisions) {
        struct hfd_queue_config used = normalize_config(config);

        advance_time(set, now);
        int r = make_room(set, used.n_queues);
        if (r != 0)
                return r;
        set->config = used;
        /* The array never shrinks: retire_queue frees the queues that still have requests, later.
         */
        for (unsigned i = used.n_queues; i < set->n_queues; i++) {
                struct hfd_seat_queue *queue = set->queues[i];
                if (!queue || queue->n_waiting + queue->n_executing > 0)
                        continue;
                set->queues[i] = NULL;
                free(queue);
        }
        dispatch_queues(set, now, decisions);
        return 0;
}

void hfd_queue_set_limit(struct hfd_queue_set *set, unsigned limit, hf_nsec now,
                         struct hfd_decisions *decisions) {
        advance_time(set, now);
        set->limit = limit;
        dispatch_queues(set, now, decisions);
}

/* Takes a request out of the granted ones, if it is among them: hfd_queue_set_arrive returns its
 * verdict, so decisions must not report it again. */
static void keep_verdict(struct hfd_decisions *decisions, const struct hfd_seats *seats) {
        struct hfd_seats **link = &decisions->granted;

        while (*link && *link != seats)
                link = &(*link)->decided;
        if (!*link)
                return;
        *link = seats->decided;
        if (!*link)
                decisions->granted_end = link;
}

/* Puts a request into a queue of its hand, or starts it. The level must have queues. */
static enum hfd_verdict enter_queue(struct hfd_queue_set *set, struct hfd_seats *seats,
                                    uint64_t hash, hf_nsec now, hf_nsec deadline,
                                    struct hfd_decisions *decisions) {
        struct hfd_seat_queue *queue = choose_queue(set, hash);

        if (!queue)
                return HFD_VERDICT_QUEUE_FULL;
        if (queue->n_waiting >= set->config.max_length)
                return HFD_VERDICT_QUEUE_FULL;
        activate_queue(set, queue);
        seats->queue = queue;
        seats->arrived_r = set->r;
        if (set->n_waiting == 0 && set->executing_seats < set->limit &&
            has_room(set, seats->width)) { /* no other request waits, so it is the next one */
                if (queue->next_r < set->r)
                        queue->next_r = set->r;
                start_seats(set, seats, now);
                return HFD_VERDICT_EXECUTE;
        }
        seats->state = HFD_SEATS_WAITING;
        list_append(&queue->waiting, seats);
        hf__timer_heap_add(&set->deadlines, &seats->deadline, deadline);
        queue->n_waiting++;
        queue->waiting_seats += seats->width;
        set->n_waiting++;
        set->waiting_seats += seats->width;
        place_queue(set, queue);
        dispatch_queues(set, now, decisions);
        keep_verdict(decisions, seats);
        return seats->state == HFD_SEATS_EXECUTING ? HFD_VERDICT_EXECUTE : HFD_VERDICT_WAIT;
}

enum hfd_verdict hfd_queue_set_arrive(struct hfd_queue_set *set, struct hfd_seats *seats,
                                      unsigned width, uint64_t hash, hf_nsec now, hf_nsec deadline,
                                      struct hfd_decisions *decisions) {
        enum hfd_verdict verdict = HFD_VERDICT_EXECUTE;

        assert(seats->state == HFD_SEATS_OUTSIDE && width > 0);
        advance_time(set, now);
        seats->width = width;
        seats->arrived = now;
        if (set->config.kind == HFD_LEVEL_QUEUE)
                verdict = enter_queue(set, seats, hash, now, deadline, decisions);
        else if (has_room(set, width))
                start_seats(set, seats, now);
        else
                verdict = HFD_VERDICT_NO_SEATS;
        if (seats->state == HFD_SEATS_OUTSIDE) {
                set->n_rejected++;
                clear_seats(seats);
        }
        return verdict;
}

enum hfd_seats_state hfd_queue_set_leave(struct hfd_queue_set *set, struct hfd_seats *seats,
                                         hf_nsec now, struct hfd_decisions *decisions) {
        enum hfd_seats_state state = seats->state;

        if (state == HFD_SEATS_OUTSIDE)
                return state;
        advance_time(set, now);
        if (state == HFD_SEATS_WAITING) {
                reject_waiting_request(set, seats);
                set->n_cancelled++;
        } else {
                finish_seats(set, seats, now);
        }
        dispatch_queues(set, now, decisions);
        return state;
}

void hfd_queue_set_expire(struct hfd_queue_set *set, hf_nsec now, struct hfd_decisions *decisions) {
        advance_time(set, now);
        while (set->deadlines.first && set->deadlines.first->at <= now) {
                struct hfd_seats *seats = SEATS_OF(set->deadlines.first);
                hf_nsec arrived = seats->arrived;

                reject_waiting_request(set, seats);
                seats->arrived = arrived; /* for the caller's metrics */
                set->n_timed_out++;
                append_decided(&decisions->expired, &decisions->expired_end, seats);
        }
        dispatch_queues(set, now, decisions);
}

void hfd_queue_set_shorten(struct hfd_queue_set *set, hf_nsec deadline) {
        for (unsigned i = 0; i < set->n_queues; i++) {
                struct hfd_seats *m = set->queues[i] ? set->queues[i]->waiting.first : NULL;

                for (; m; m = m->next) {
                        if (m->deadline.at <= deadline)
                                continue;
                        hf__timer_heap_remove(&set->deadlines, &m->deadline);
                        hf__timer_heap_add(&set->deadlines, &m->deadline, deadline);
                }
        }
}

hf_nsec hfd_queue_set_deadline(const struct hfd_queue_set *set) {
        return set->deadlines.first ? set->deadlines.first->at : HF_NSEC_NEVER;
}
