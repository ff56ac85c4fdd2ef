/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides for each request of a priority level whether it executes, waits or is refused, and counts
 * the requests.
 *
 * Invariants: every request that is in the level is counted in the class of its FlowSchema, as
 * waiting or as executing. Decisions are made under the level's lock, and reported to the owners of
 * the requests without it. In between, a request that was granted a seat may leave, which clears
 * its seats. So the list of decisions to report is linked by places (flow_level.h), not by seats.
 */
#include "server/flow/flow_level.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/flow/flow_private.h"

#define MSEC HF_NSEC_PER_MSEC
#define SEC  HF_NSEC_PER_SEC
/* The bounds of kube-apiserver's histograms. */
const struct hfd_histogram_bounds hfd_flow_seconds = {13,
                                                      {0, 5 * MSEC, 20 * MSEC, 50 * MSEC,
                                                       100 * MSEC, 200 * MSEC, 500 * MSEC, SEC,
                                                       2 * SEC, 5 * SEC, 10 * SEC, 15 * SEC,
                                                       30 * SEC},
                                                      1e9};
const struct hfd_histogram_bounds hfd_flow_lengths = {8, {0, 10, 25, 50, 100, 250, 500, 1000}, 1};
const struct hfd_histogram_bounds hfd_flow_widths = {8, {1, 2, 4, 8, 16, 32, 64, 100}, 1};

/* ---- the level ---- */

HF__CLEANUP_DEFINE(level_cleanup, struct hfd_flow_level *, hfd_flow_level_unref)

/* A new level has no seats yet: flow_levels.c divides the seats of the server before an index hands
 * the level to a request, unless memory runs out; then the next period does. */
int hfd_flow_level_new(struct hfd_flow_levels *levels, const char *name,
                       const struct hfd_queue_config *config, hf_nsec now,
                       struct hfd_flow_level **ret_level) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_flow_level *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        atomic_init(&memory->refs, 1);
        HF__CLEANUP(level_cleanup) struct hfd_flow_level *level = HF__TAKE(memory);
        level->levels = levels;
        hfd_seat_demand_init(&level->demand, now);
        level->name = strdup(name);
        if (!level->name)
                return -ENOMEM;
        r = hfd_queue_set_init(&level->set, config, 0, now);
        if (r != 0)
                return r;
        *ret_level = HF__TAKE(level);
        return 0;
}

/* Relaxed: there is a reference already. acq_rel: what others did happens before the free. */
struct hfd_flow_level *hfd_flow_level_ref(struct hfd_flow_level *level) {
        assert(!level || atomic_load_explicit(&level->refs, memory_order_relaxed) > 0);
        if (level)
                (void)atomic_fetch_add_explicit(&level->refs, 1, memory_order_relaxed);
        return level;
}

struct hfd_flow_level *hfd_flow_level_unref(struct hfd_flow_level *level) {
        assert(!level || atomic_load_explicit(&level->refs, memory_order_relaxed) > 0);
        if (!level || atomic_fetch_sub_explicit(&level->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        /* An index that holds a class also holds the level, and drops the class first. */
        assert(!level->classes);
        hfd_queue_set_done(&level->set);
        pthread_mutex_destroy(&level->mu);
        free(level->name);
        free(level);
        return NULL;
}

const char *hfd_flow_level_name(const struct hfd_flow_level *level) { return level->name; }

unsigned hfd_flow_level_max_width(struct hfd_flow_level *level) {
        pthread_mutex_lock(&level->mu);
        unsigned max_width = level->max_width;
        pthread_mutex_unlock(&level->mu);
        return max_width;
}

/* ---- classes ---- */

/* All indexes that lead a FlowSchema to this level share its class. So the counters go on when a
 * new index replaces the old one: a Prometheus counter must not fall back to 0. Memory is allocated
 * before the lock is taken, because every request of the level takes this lock. */
struct hfd_flow_class *hfd_flow_level_class(struct hfd_flow_level *level, const char *schema) {
        struct hfd_flow_class *m, *made = calloc(1, sizeof *made);
        char *name = strdup(schema);

        pthread_mutex_lock(&level->mu);
        for (m = level->classes; m && strcmp(m->schema, schema) != 0; m = m->next)
                ;
        if (!m && made && name) {
                m = made;
                m->schema = name;
                m->next = level->classes;
                level->classes = m;
                made = NULL;
                name = NULL;
        }
        if (m)
                m->refs++;
        pthread_mutex_unlock(&level->mu);
        free(made);
        free(name);
        return m;
}

void hfd_flow_level_drop_class(struct hfd_flow_level *level, struct hfd_flow_class *flow_class) {
        if (!flow_class)
                return;
        struct hfd_flow_class **link = &level->classes;
        pthread_mutex_lock(&level->mu);
        assert(flow_class->refs > 0);
        bool last = --flow_class->refs == 0;
        if (last) {
                /* A request holds the index that holds its class, so none is counted here now. */
                assert(flow_class->n_waiting == 0 && flow_class->n_executing == 0);
                while (*link != flow_class)
                        link = &(*link)->next;
                *link = flow_class->next;
        }
        pthread_mutex_unlock(&level->mu);
        if (!last)
                return;
        free(flow_class->schema);
        free(flow_class);
}

/* ---- counting; the caller holds the mutex ---- */

/* The seats are the first member of their place. */
static struct hfd_flow_place *place_of(struct hfd_seats *seats) {
        return (struct hfd_flow_place *)(void *)seats;
}

static hf_nsec span_since(hf_nsec then, hf_nsec now) { return now > then ? now - then : 0; }

static void count_start(struct hfd_flow_place *place, hf_nsec waited) {
        struct hfd_flow_class *c = place->flow_class;

        c->n_executing++;
        c->executing_seats += place->width;
        c->n_dispatched++;
        /* Requests of an exempt level never wait. As in Kubernetes they are left out, so that their
         * zeros do not hide the waits of others in a sum over all levels. */
        if (place->level->set.config.kind != HFD_LEVEL_EXEMPT)
                hfd_histogram_observe(&c->waited, &hfd_flow_seconds, waited);
}

static void count_wait_end(struct hfd_flow_place *place) {
        struct hfd_flow_class *c = place->flow_class;

        assert(c->n_waiting > 0 && c->waiting_seats >= place->width);
        c->n_waiting--;
        c->waiting_seats -= place->width;
        hfd_flow_levels_free_bytes(place->level->levels, place->bytes);
}

static void count_refusal(struct hfd_flow_place *place, enum hfd_flow_refusal reason,
                          hf_nsec waited) {
        struct hfd_flow_class *c = place->flow_class;

        c->n_refused[reason]++;
        hfd_histogram_observe(&c->waited_in_vain, &hfd_flow_seconds, waited);
}

static void count_end(struct hfd_flow_place *place, hf_nsec started, hf_nsec now) {
        struct hfd_flow_class *c = place->flow_class;

        assert(c->n_executing > 0 && c->executing_seats >= place->width);
        c->n_executing--;
        c->executing_seats -= place->width;
        hfd_histogram_observe(place->is_watch ? &c->watch_ran : &c->ran, &hfd_flow_seconds,
                              span_since(started, now));
}

/* Notes how many seats the level wants from now on. */
static void measure_demand(struct hfd_flow_level *level, hf_nsec now) {
        hfd_seat_demand_set(&level->demand, hfd_queue_set_demand(&level->set), now);
}

/* ---- decisions ---- */

static void add_report(struct hfd_flow_reports *reports, struct hfd_flow_place *place,
                       bool granted) {
        if (!reports->end)
                reports->end = &reports->first;
        place->decided_granted = granted;
        place->decided_next = NULL;
        *reports->end = place;
        reports->end = &place->decided_next;
}

/* The queue set has changed already, so the counts and the demand follow before the lock is
 * released: a scrape never sees a request in two states or in none. */
void hfd_flow_level_decided_locked(struct hfd_flow_level *level,
                                   const struct hfd_decisions *decisions, hf_nsec now,
                                   struct hfd_flow_reports *reports) {
        hf__mutex_assert_held(&level->mu);
        for (struct hfd_seats *m = decisions->granted; m; m = m->decided) {
                count_wait_end(place_of(m));
                count_start(place_of(m), span_since(m->arrived, now));
                add_report(reports, place_of(m), true);
        }
        for (struct hfd_seats *m = decisions->expired; m; m = m->decided) {
                count_wait_end(place_of(m));
                count_refusal(place_of(m), HFD_FLOW_TIME_OUT, span_since(m->arrived, now));
                add_report(reports, place_of(m), false);
        }
        measure_demand(level, now);
}

void hfd_flow_level_report(struct hfd_flow_reports *reports) {
        struct hfd_flow_place *place = reports->first;

        while (place) {
                /* Read before the call, because the owner may free the place in it. */
                struct hfd_flow_place *next = place->decided_next;
                place->owner->decided(place, place->decided_granted);
                place = next;
        }
}

/* ---- the way of a request ---- */

/* Counts a request that has to wait. False: the waiting requests keep too much memory already. */
static bool count_wait(struct hfd_flow_place *place) {
        struct hfd_flow_class *c = place->flow_class;

        if (!hfd_flow_levels_take_bytes(place->level->levels, place->bytes))
                return false;
        c->n_waiting++;
        c->waiting_seats += place->width;
        return true;
}

/* Enters the request, and counts the verdict. Its arrival may also decide about others: they are
 * added to reports. */
static enum hfd_verdict enter_locked(struct hfd_flow_place *place, hf_nsec now,
                                     struct hfd_flow_reports *reports) {
        struct hfd_flow_level *level = place->level;
        struct hfd_flow_class *c = place->flow_class;
        struct hfd_decisions decisions = {0};
        hf_nsec last = hfd_flow_levels_last_deadline(level->levels);

        hf__mutex_assert_held(&place->level->mu);
        if (place->deadline > last)
                place->deadline = last; /* the server shuts down */
        enum hfd_verdict verdict =
                hfd_queue_set_arrive(&level->set, &place->seats, place->width, place->hash, now,
                                     place->deadline, &decisions);

        hfd_histogram_observe(&c->width, &hfd_flow_widths, place->width);
        /* Kubernetes puts each request into its queue before it looks for seats. So a request that
         * executes at once has seen a queue of one, itself. */
        if (place->seats.queue)
                hfd_histogram_observe(&c->queue_length, &hfd_flow_lengths,
                                      verdict == HFD_VERDICT_WAIT
                                              ? (int64_t)place->seats.queue->n_waiting
                                              : 1);
        if (verdict == HFD_VERDICT_WAIT && !count_wait(place)) {
                (void)hfd_queue_set_leave(&level->set, &place->seats, now, &decisions);
                verdict = HFD_VERDICT_QUEUE_FULL;
        }
        if (verdict == HFD_VERDICT_EXECUTE)
                count_start(place, 0);
        else if (verdict != HFD_VERDICT_WAIT)
                count_refusal(place,
                              verdict == HFD_VERDICT_NO_SEATS ? HFD_FLOW_CONCURRENCY_LIMIT
                                                              : HFD_FLOW_QUEUE_FULL,
                              0);
        hfd_flow_level_decided_locked(level, &decisions, now, reports);
        return verdict;
}

enum hfd_verdict hfd_flow_level_enter(struct hfd_flow_place *place, unsigned width, hf_nsec now,
                                      unsigned *ret_retry_after) {
        struct hfd_flow_level *level = place->level;
        struct hfd_flow_reports reports = {0};

        place->width = width;
        pthread_mutex_lock(&level->mu);
        enum hfd_verdict verdict = enter_locked(place, now, &reports);
        if (verdict != HFD_VERDICT_EXECUTE && verdict != HFD_VERDICT_WAIT)
                *ret_retry_after = hfd_retry_after_refuse(&level->retry, now / SEC);
        /* Copied under the lock: afterwards another thread may grant the place a seat, and its
         * owner may free it. */
        hf_nsec deadline = place->deadline;
        pthread_mutex_unlock(&level->mu);
        hfd_flow_level_report(&reports);
        if (verdict == HFD_VERDICT_WAIT)
                hfd_flow_levels_expect(level->levels, deadline);
        return verdict;
}

bool hfd_flow_level_leave(struct hfd_flow_place *place, hf_nsec now) {
        struct hfd_flow_level *level = place->level;
        struct hfd_decisions decisions = {0};
        struct hfd_flow_reports reports = {0};

        if (!level || !place->owner)
                return false; /* it never entered */
        pthread_mutex_lock(&level->mu);
        /* Read first, because leaving the set clears the seats. */
        hf_nsec arrived = place->seats.arrived, started = place->seats.started;
        enum hfd_seats_state state =
                hfd_queue_set_leave(&level->set, &place->seats, now, &decisions);
        if (state == HFD_SEATS_WAITING) {
                count_wait_end(place);
                count_refusal(place, HFD_FLOW_TIME_OUT, span_since(arrived, now));
        } else if (state == HFD_SEATS_EXECUTING) {
                count_end(place, started, now);
        }
        if (state != HFD_SEATS_OUTSIDE)
                hfd_flow_level_decided_locked(level, &decisions, now, &reports);
        pthread_mutex_unlock(&level->mu);
        hfd_flow_level_report(&reports);
        return state == HFD_SEATS_WAITING;
}

unsigned hfd_flow_level_refuse(struct hfd_flow_level *level, hf_nsec now) {
        pthread_mutex_lock(&level->mu);
        unsigned after = hfd_retry_after_refuse(&level->retry, now / SEC);
        pthread_mutex_unlock(&level->mu);
        return after;
}
