/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels of the server, and their timer.
 *
 * Invariants: the list is sorted by name and holds a reference to each level. A level leaves the
 * list only when that is its last reference: then no index refers to it, so no request can enter,
 * and none is in it. So the timer sees every request that waits.
 */
#include "server/flow/flow_levels.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "server/flow/flow_private.h"

struct entry {
        struct hfd_flow_level *level; /* owned reference */
        struct hfd_level_shares shares;
        struct hfd_queue_config queues;
        bool quiescing, is_new;
        bool drained; /* quiescing, and without requests: it has no share */
};

struct hfd_flow_levels {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        unsigned seats;

        atomic_size_t waiting_bytes;

        /* guarded by mu */
        pthread_mutex_t mu;
        struct entry *entries; /* owned */
        size_t n;
        double fraction;

        /* the timer; guarded by timer_mu */
        pthread_mutex_t timer_mu;
        pthread_cond_t wake;
        hf_nsec planned; /* when it looks next; NEVER = it is looking now */
        bool woken, stopping;
        bool running; /* start and stop only */
        pthread_t thread;
};

int hfd_flow_levels_new(const struct hf_host *host, unsigned seats,
                        struct hfd_flow_levels **ret_levels) {
        struct hfd_flow_levels *levels = calloc(1, sizeof *levels);

        if (!levels)
                return -ENOMEM;
        levels->host = host;
        levels->seats = seats;
        levels->planned = HF_NSEC_NEVER;
        int r = hf__mutex_init(&levels->mu);
        if (r == 0) {
                r = hf__mutex_cond_init(&levels->timer_mu, &levels->wake);
                if (r != 0)
                        pthread_mutex_destroy(&levels->mu);
        }
        if (r != 0)
                free(levels);
        else
                *ret_levels = levels;
        return r;
}

struct hfd_flow_levels *hfd_flow_levels_free(struct hfd_flow_levels *levels) {
        if (!levels)
                return NULL;
        hfd_flow_levels_stop(levels);
        for (size_t i = 0; i < levels->n; i++) {
                assert(atomic_load(&levels->entries[i].level->refs) == 1);
                hfd_flow_level_unref(levels->entries[i].level);
        }
        assert(atomic_load(&levels->waiting_bytes) == 0);
        free(levels->entries);
        pthread_cond_destroy(&levels->wake);
        pthread_mutex_destroy(&levels->timer_mu);
        pthread_mutex_destroy(&levels->mu);
        free(levels);
        return NULL;
}

/* ---- memory of waiting requests ---- */

bool hfd_flow_levels_take_bytes(struct hfd_flow_levels *levels, size_t bytes) {
        size_t before = atomic_fetch_add(&levels->waiting_bytes, bytes);

        if (before + bytes <= HFD_FLOW_WAITING_BYTES)
                return true;
        atomic_fetch_sub(&levels->waiting_bytes, bytes);
        return false;
}

void hfd_flow_levels_free_bytes(struct hfd_flow_levels *levels, size_t bytes) {
        atomic_fetch_sub(&levels->waiting_bytes, bytes);
}

/* ---- limits ---- */

/* Every level has its nominal limit: adjusts the current ones to the demand. */
static void adjust_locked(struct hfd_flow_levels *levels, hf_nsec now,
                          struct hfd_flow_reports *reports) {
        struct hfd_level_limits *limits = calloc(levels->n, sizeof *limits);
        size_t n = 0;

        if (!limits)
                return; /* the limits stay as they are until the next period */
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                if (levels->entries[i].drained)
                        continue;
                pthread_mutex_lock(&level->mu);
                hfd_seat_demand_turn(&level->demand, now);
                limits[n] = level->limits;
                limits[n].high_watermark = level->demand.high_watermark;
                limits[n].smoothed = level->demand.smoothed;
                n++;
                pthread_mutex_unlock(&level->mu);
        }
        levels->fraction = hfd_borrowing_adjust(limits, n);
        n = 0;
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                struct hfd_decisions decisions = {0};
                if (levels->entries[i].drained)
                        continue;
                pthread_mutex_lock(&level->mu);
                level->limits = limits[n++];
                hfd_queue_set_limit(&level->set, level->limits.current, now, &decisions);
                hfd_flow_level_decided_locked(level, &decisions, now, reports);
                pthread_mutex_unlock(&level->mu);
        }
        free(limits);
}

/* The shares have changed: computes the nominal limits. */
static void divide_locked(struct hfd_flow_levels *levels) {
        uint64_t sum = 0;

        for (size_t i = 0; i < levels->n; i++)
                if (!levels->entries[i].drained)
                        sum += levels->entries[i].shares.shares;
        for (size_t i = 0; i < levels->n; i++) {
                struct entry *entry = &levels->entries[i];
                struct hfd_flow_level *level = entry->level;
                if (entry->drained)
                        continue;
                pthread_mutex_lock(&level->mu);
                hfd_borrowing_nominal(&entry->shares, sum, levels->seats, &level->limits);
                if (entry->is_new)
                        level->limits.current = hfd_borrowing_first(&level->limits);
                level->max_width = entry->queues.kind == HFD_LEVEL_QUEUE
                                           ? hfd_borrowing_max_width(level->limits.nominal,
                                                                     entry->queues.n_hand)
                                           : 0;
                pthread_mutex_unlock(&level->mu);
                entry->is_new = false;
        }
}

static bool is_idle(struct hfd_flow_level *level) {
        pthread_mutex_lock(&level->mu);
        bool idle = level->set.n_waiting + level->set.n_executing == 0;
        pthread_mutex_unlock(&level->mu);
        return idle;
}

/*
 * Removes the levels that nothing can use any more, and takes the shares of those that only an idle
 * connection still remembers. A late request of such a level finds its last limit; then the level
 * has its share again. Whether shares have changed.
 */
static bool reap_locked(struct hfd_flow_levels *levels) {
        bool changed = false;
        size_t n = 0;

        for (size_t i = 0; i < levels->n; i++) {
                struct entry *entry = &levels->entries[i];
                bool was = entry->drained;
                entry->drained = entry->quiescing && is_idle(entry->level);
                changed |= was != entry->drained;
                if (entry->quiescing && atomic_load(&entry->level->refs) == 1)
                        hfd_flow_level_unref(entry->level);
                else
                        levels->entries[n++] = *entry;
        }
        levels->n = n;
        return changed;
}

void hfd_flow_levels_turn(struct hfd_flow_levels *levels, hf_nsec now) {
        struct hfd_flow_reports reports = {0};

        pthread_mutex_lock(&levels->mu);
        if (reap_locked(levels))
                divide_locked(levels);
        if (levels->n > 0)
                adjust_locked(levels, now, &reports);
        pthread_mutex_unlock(&levels->mu);
        hfd_flow_level_report(&reports);
}

/* ---- another configuration ---- */

static struct entry *find_locked(struct hfd_flow_levels *levels, const char *name) {
        for (size_t i = 0; i < levels->n; i++)
                if (strcmp(levels->entries[i].level->name, name) == 0)
                        return &levels->entries[i];
        return NULL;
}

static int compare(const void *a, const void *b) {
        return strcmp(((const struct entry *)a)->level->name,
                      ((const struct entry *)b)->level->name);
}

/* 0 or -errno. */
static int put_locked(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *spec,
                      hf_nsec now, struct hfd_flow_reports *reports) {
        struct entry *entry = find_locked(levels, spec->name);
        struct hfd_decisions decisions = {0};
        struct hfd_flow_level *level;
        int r;

        if (!entry) {
                r = hfd_flow_level_new(levels, spec->name, &spec->queues, now, &level);
                if (r != 0)
                        return r;
                entry = &levels->entries[levels->n++]; /* apply has made room */
                *entry = (struct entry){.level = level, .is_new = true};
        } else {
                level = entry->level;
                pthread_mutex_lock(&level->mu);
                r = hfd_queue_set_configure(&level->set, &spec->queues, now, &decisions);
                hfd_flow_level_decided_locked(level, &decisions, now, reports);
                pthread_mutex_unlock(&level->mu);
        }
        if (r != 0)
                return r;
        entry->shares = spec->shares;
        entry->queues = spec->queues;
        entry->quiescing = false;
        return 0;
}

static int apply_locked(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *specs,
                        size_t n, struct hfd_flow_reports *reports) {
        hf_nsec now = hf_now(hf_host_clock(levels->host));
        struct entry *entries = realloc(levels->entries, (levels->n + n) * sizeof *entries);
        int r = 0;

        if (!entries)
                return -ENOMEM;
        levels->entries = entries;
        for (size_t i = 0; i < levels->n; i++)
                levels->entries[i].quiescing = true;
        for (size_t i = 0; i < n && r == 0; i++)
                r = put_locked(levels, &specs[i], now, reports);
        (void)reap_locked(levels); /* divide follows anyway */
        qsort(levels->entries, levels->n, sizeof *levels->entries, compare);
        divide_locked(levels);
        adjust_locked(levels, now, reports);
        return r;
}

int hfd_flow_levels_apply(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *specs,
                          size_t n, struct hfd_flow_level **ret_levels) {
        struct hfd_flow_reports reports = {0};

        assert(n > 0);
        pthread_mutex_lock(&levels->mu);
        int r = apply_locked(levels, specs, n, &reports);
        for (size_t i = 0; i < n && r == 0; i++)
                ret_levels[i] = hfd_flow_level_ref(find_locked(levels, specs[i].name)->level);
        pthread_mutex_unlock(&levels->mu);
        hfd_flow_level_report(&reports);
        return r;
}

/* ---- the timer ---- */

hf_nsec hfd_flow_levels_expire(struct hfd_flow_levels *levels, hf_nsec now) {
        struct hfd_flow_reports reports = {0};
        hf_nsec next = HF_NSEC_NEVER;

        pthread_mutex_lock(&levels->mu);
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                struct hfd_decisions decisions = {0};
                pthread_mutex_lock(&level->mu);
                if (hfd_queue_set_deadline(&level->set) <= now) {
                        hfd_queue_set_expire(&level->set, now, &decisions);
                        hfd_flow_level_decided_locked(level, &decisions, now, &reports);
                }
                hf_nsec deadline = hfd_queue_set_deadline(&level->set);
                pthread_mutex_unlock(&level->mu);
                if (deadline < next)
                        next = deadline;
        }
        pthread_mutex_unlock(&levels->mu);
        hfd_flow_level_report(&reports);
        return next;
}

void hfd_flow_levels_expect(struct hfd_flow_levels *levels, hf_nsec deadline) {
        pthread_mutex_lock(&levels->timer_mu);
        if (deadline < levels->planned) {
                levels->woken = true;
                pthread_cond_signal(&levels->wake);
        }
        pthread_mutex_unlock(&levels->timer_mu);
}

/* One look at the levels. Returns when the next one is due. */
static hf_nsec look(struct hfd_flow_levels *levels, hf_nsec *turn) {
        hf_nsec now = hf_now(hf_host_clock(levels->host));

        if (now >= *turn) {
                hfd_flow_levels_turn(levels, now);
                *turn = now + HFD_FLOW_PERIOD;
        }
        hf_nsec next = hfd_flow_levels_expire(levels, now);
        return next < *turn ? next : *turn;
}

static void *run(void *ctx) {
        struct hfd_flow_levels *levels = ctx;
        const struct hf_clock *clock = hf_host_clock(levels->host);
        hf_nsec turn = hf_now(clock) + HFD_FLOW_PERIOD;

        pthread_mutex_lock(&levels->timer_mu);
        while (!levels->stopping) {
                /* Whoever begins to wait from here on wakes the timer, because look may have passed
                 * its level. */
                levels->planned = HF_NSEC_NEVER;
                levels->woken = false;
                pthread_mutex_unlock(&levels->timer_mu);
                hf_nsec next = look(levels, &turn);
                pthread_mutex_lock(&levels->timer_mu);
                levels->planned = next;
                int r = 0;
                while (!levels->stopping && !levels->woken && r != HF_E_TIMEOUT)
                        r = clock->wait(clock->ctx, &levels->wake, &levels->timer_mu, next);
        }
        pthread_mutex_unlock(&levels->timer_mu);
        return NULL;
}

int hfd_flow_levels_start(struct hfd_flow_levels *levels) {
        int r = hf__thread_start(levels->host, "hf-flow-timer", run, levels, &levels->thread);

        levels->running = r == 0;
        return r;
}

void hfd_flow_levels_stop(struct hfd_flow_levels *levels) {
        if (!levels || !levels->running)
                return;
        pthread_mutex_lock(&levels->timer_mu);
        levels->stopping = true;
        pthread_cond_signal(&levels->wake);
        pthread_mutex_unlock(&levels->timer_mu);
        hf__thread_join(levels->thread);
        levels->running = false;
}

/* ---- for those who look ---- */

void hfd_flow_levels_each(struct hfd_flow_levels *levels,
                          void (*fn)(void *ctx, struct hfd_flow_level *level, bool quiescing),
                          void *ctx) {
        pthread_mutex_lock(&levels->mu);
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                if (levels->entries[i].quiescing && is_idle(level))
                        continue;
                pthread_mutex_lock(&level->mu);
                fn(ctx, level, levels->entries[i].quiescing);
                pthread_mutex_unlock(&level->mu);
        }
        pthread_mutex_unlock(&levels->mu);
}

double hfd_flow_levels_fraction(struct hfd_flow_levels *levels) {
        pthread_mutex_lock(&levels->mu);
        double fraction = levels->fraction;
        pthread_mutex_unlock(&levels->mu);
        return fraction;
}
