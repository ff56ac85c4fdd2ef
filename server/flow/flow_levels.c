/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels of the server: their limits, and the deadlines of the requests in them.
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

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/flow/flow_private.h"
#include "server/flow/flow_timer.h"

/* A level in the list, with its configuration. */
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
        _Atomic hf_nsec last_deadline;

        /* guarded by mu */
        pthread_mutex_t mu;
        struct entry *entries; /* owned */
        size_t n;
        double fraction;

        hf_nsec turn; /* when limits are adjusted next; the timer's thread only */
        struct hfd_flow_timer timer;
};

/* Does what is due now. Returns when it must be called next. Runs on the timer's thread. */
static hf_nsec look_at_levels(void *ctx, hf_nsec now) {
        struct hfd_flow_levels *levels = ctx;

        if (now >= levels->turn) {
                hfd_flow_levels_end_period(levels, now);
                levels->turn = now + HFD_FLOW_PERIOD;
        }
        hf_nsec next = hfd_flow_levels_expire(levels, now);
        return next < levels->turn ? next : levels->turn;
}

/* Makes both or none of them. */
static int init_lock_and_timer(struct hfd_flow_levels *levels) {
        int r = hf__mutex_init(&levels->mu);

        if (r != 0)
                return r;
        r = hfd_flow_timer_init(&levels->timer, levels->host, look_at_levels, levels);
        if (r != 0)
                pthread_mutex_destroy(&levels->mu);
        return r;
}

int hfd_flow_levels_new(const struct hf_host *host, unsigned seats,
                        struct hfd_flow_levels **ret_levels) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_flow_levels *levels = calloc(1, sizeof *levels);

        if (!levels)
                return -ENOMEM;
        levels->host = host;
        levels->seats = seats;
        atomic_init(&levels->last_deadline, HF_NSEC_NEVER);
        int r = init_lock_and_timer(levels);
        if (r != 0)
                return r;
        *ret_levels = HF__TAKE(levels);
        return 0;
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
        hfd_flow_timer_done(&levels->timer);
        pthread_mutex_destroy(&levels->mu);
        free(levels);
        return NULL;
}

/* ---- memory of waiting requests ---- */

/* The sum is raised first and compared afterwards. Otherwise two requests on different threads
 * could both take the last room. */
bool hfd_flow_levels_take_bytes(struct hfd_flow_levels *levels, size_t bytes) {
        size_t before = atomic_fetch_add(&levels->waiting_bytes, bytes),
               max = HFD_FLOW_WAITING_BYTES +
                     (bytes <= HFD_FLOW_SMALL_BYTES ? HFD_FLOW_SMALL_RESERVE : 0);

        if (before + bytes <= max)
                return true;
        atomic_fetch_sub(&levels->waiting_bytes, bytes);
        return false;
}

void hfd_flow_levels_free_bytes(struct hfd_flow_levels *levels, size_t bytes) {
        size_t before = atomic_fetch_sub(&levels->waiting_bytes, bytes);

        assert(before >= bytes);
        (void)before;
}

/* ---- limits ---- */

/* Adjusts the current limits to the demand. Call it when every level has its nominal limit. */
static void adjust_locked(struct hfd_flow_levels *levels, hf_nsec now,
                          struct hfd_flow_reports *reports) {
        hf__mutex_assert_held(&levels->mu);
        if (levels->n == 0)
                return;
        struct hfd_level_limits *limits = calloc(levels->n, sizeof *limits);
        size_t n = 0;

        /* Out of memory: the limits stay as they are until the next period. A level that has just
         * been made has no seats until then. */
        if (!limits)
                return;
        /* A level's lock is held only to copy its numbers. The division of the seats needs those of
         * all levels, and requests must not wait for it. */
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                if (levels->entries[i].drained)
                        continue;
                pthread_mutex_lock(&level->mu);
                hfd_seat_demand_end_period(&level->demand, now);
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

/* Computes the nominal limits, and the first current limit of a new level. Call it after shares
 * have changed, and adjust_locked next, which puts the limits into effect. */
static void divide_locked(struct hfd_flow_levels *levels) {
        uint64_t sum = 0;

        hf__mutex_assert_held(&levels->mu);
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
 * Removes the deleted levels that nothing can use any more: if the list has the last reference,
 * nobody can get another one, because only hfd_flow_levels_apply makes one from the list, under mu.
 * A deleted level that has no requests loses its share, even if the memo of a connection
 * (request_memo.h) still refers to it, or a request whose body has not arrived. If such a request
 * enters it, its last limit applies until the next period, which gives the level its share again.
 * True: shares have changed.
 */
static bool reap_locked(struct hfd_flow_levels *levels) {
        bool changed = false;
        size_t n = 0;

        hf__mutex_assert_held(&levels->mu);
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

void hfd_flow_levels_end_period(struct hfd_flow_levels *levels, hf_nsec now) {
        struct hfd_flow_reports reports = {0};

        pthread_mutex_lock(&levels->mu);
        if (reap_locked(levels))
                divide_locked(levels);
        if (levels->n > 0)
                adjust_locked(levels, now, &reports);
        pthread_mutex_unlock(&levels->mu);
        hfd_flow_level_report(&reports);
}

/* ---- a new configuration ---- */

static struct entry *find_locked(struct hfd_flow_levels *levels, const char *name) {
        hf__mutex_assert_held(&levels->mu);
        for (size_t i = 0; i < levels->n; i++)
                if (strcmp(levels->entries[i].level->name, name) == 0)
                        return &levels->entries[i];
        return NULL;
}

static int compare_levels(const void *a, const void *b) {
        return strcmp(((const struct entry *)a)->level->name,
                      ((const struct entry *)b)->level->name);
}

/* Creates the level, or gives it the new configuration. 0 or -errno. */
static int put_locked(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *spec,
                      hf_nsec now, struct hfd_flow_reports *reports) {
        struct entry *entry = find_locked(levels, spec->name);
        struct hfd_decisions decisions = {0};
        struct hfd_flow_level *level;
        int r;

        hf__mutex_assert_held(&levels->mu);
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

/* Levels that are not in the new configuration become quiescing: all are marked, and put_locked
 * clears the mark of each that it finishes. 0 or -errno. If there is no memory for the list,
 * nothing has changed. If put_locked fails, the levels that it has not finished are quiescing, too,
 * and the nominal limits still fit the shares. */
static int apply_locked(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *specs,
                        size_t n, struct hfd_flow_reports *reports) {
        hf_nsec now = hf_now(hf_host_clock(levels->host));
        struct entry *entries = realloc(levels->entries, (levels->n + n) * sizeof *entries);
        int r = 0;

        hf__mutex_assert_held(&levels->mu);
        if (!entries)
                return -ENOMEM;
        levels->entries = entries;
        for (size_t i = 0; i < levels->n; i++)
                levels->entries[i].quiescing = true;
        for (size_t i = 0; i < n && r == 0; i++)
                r = put_locked(levels, &specs[i], now, reports);
        (void)reap_locked(levels); /* the limits are divided in any case */
        qsort(levels->entries, levels->n, sizeof *levels->entries, compare_levels);
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

/* ---- deadlines ---- */

/* Reports without any lock, because a report may finish a request. */
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
        hfd_flow_timer_expect(&levels->timer, deadline);
}

/* A request that enters a level reads the last deadline with the level's mutex locked. So either it
 * reads the new one, or it is in the level when this function shortens the deadlines there. */
void hfd_flow_levels_hurry(struct hfd_flow_levels *levels, hf_nsec deadline) {
        atomic_store(&levels->last_deadline, deadline);
        pthread_mutex_lock(&levels->mu);
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                pthread_mutex_lock(&level->mu);
                hfd_queue_set_shorten(&level->set, deadline);
                pthread_mutex_unlock(&level->mu);
        }
        pthread_mutex_unlock(&levels->mu);
        hfd_flow_levels_expect(levels, deadline);
}

hf_nsec hfd_flow_levels_last_deadline(const struct hfd_flow_levels *levels) {
        return atomic_load(&levels->last_deadline);
}

int hfd_flow_levels_start(struct hfd_flow_levels *levels) {
        /* Before the thread starts, which owns `turn` from then on. */
        levels->turn = hf_now(hf_host_clock(levels->host)) + HFD_FLOW_PERIOD;
        return hfd_flow_timer_start(&levels->timer);
}

void hfd_flow_levels_stop(struct hfd_flow_levels *levels) {
        if (levels)
                hfd_flow_timer_stop(&levels->timer);
}

/* ---- for metrics and /debug ---- */

void hfd_flow_levels_each(struct hfd_flow_levels *levels,
                          void (*fn)(void *ctx, struct hfd_flow_level *level, bool quiescing),
                          void *ctx) {
        pthread_mutex_lock(&levels->mu);
        for (size_t i = 0; i < levels->n; i++) {
                struct hfd_flow_level *level = levels->entries[i].level;
                /* A deleted level without requests is only an entry that reap_locked could not
                 * remove yet. For a user it does not exist any more. */
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
