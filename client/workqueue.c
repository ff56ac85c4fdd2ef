/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work queue: tracks which keys are ready, which a worker has, and which are delayed.
 *
 * A key has one entry as long as at least one of the states below applies to it. Entries that wait
 * for a worker are in the ready list. The queue's lock guards all states:
 *
 *      dirty       the key was added after a worker last took it; the entry is in the ready list,
 *                  or, if it is processing, hf_workqueue_done will append it there
 *      processing  a worker has the key
 *      delayed     the key will be added when its delay has elapsed
 *      failures    the number of retries since hf_workqueue_forget
 *
 * Invariants: an entry is in the ready list exactly if it is dirty and not processing, so no two
 * workers have the same key. After a drop no entry is dirty. An entry without any of these states
 * is freed.
 *
 * There is no timer thread. Waiting workers wake when the first delayed key is due, and the first
 * of them moves the due keys into the ready list. Every change that concerns hf_workqueue_take
 * wakes all workers. If it woke only one, the abort token of that worker might have fired, and the
 * key would be left waiting.
 */
#include <holdfast/workqueue.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/thread.h"
#include "base/timer_heap.h"
#include "client/key_index.h"
#include "client/workqueue_metrics.h"

#define FIRST_DELAY (5 * HF_NSEC_PER_MSEC)
#define LAST_DELAY  (1000 * HF_NSEC_PER_SEC)

struct entry {
        struct hf__keyed keyed;
        struct entry *next; /* in the ready list or in the list `in_progress` */
        bool dirty, processing;
        unsigned failures;
        struct hf__timer due;       /* queued while delayed */
        hf_nsec added_at, taken_at; /* monotonic, for the metrics */
        char key[];
};

struct hf_workqueue {
        /* immutable */
        const struct hf_clock *clock;
        struct hf_metrics *registry; /* borrowed; NULL = measure_work is not registered */
        struct hf__workqueue_metrics metrics;
        pthread_mutex_t mu;
        pthread_cond_t cond; /* signals the workers */
        /* guarded by mu */
        struct hf__key_index entries; /* owns the entries */
        struct entry *head, **tail;   /* the ready list, oldest first */
        size_t depth;                 /* number of entries in the ready list */
        struct entry *in_progress;    /* entries that workers have, newest first */
        struct hf__timer_heap delayed;
        bool draining, dropped;
        /* The limit on retries; bucket_delay_locked explains it. */
        hf_nsec retry_every; /* the time between two tokens; 0 = no limit */
        hf_nsec retry_slack; /* how far retry_at may lag behind now */
        hf_nsec retry_at;    /* when the next token is due */
};

/* ---- entries and the ready list ---- */

static hf_nsec monotonic(const struct hf_workqueue *queue) {
        return queue->clock->monotonic(queue->clock->ctx);
}

static double seconds(hf_nsec span) { return (double)span / (double)HF_NSEC_PER_SEC; }

static struct entry *entry_find(struct hf_workqueue *queue, const char *key) {
        return (struct entry *)hf__key_index_find(&queue->entries, key);
}

/* Finds or creates the entry of a key. NULL: out of memory. */
static struct entry *entry_get(struct hf_workqueue *queue, const char *key) {
        struct entry *entry = entry_find(queue, key);
        size_t n = strlen(key);

        if (entry)
                return entry;
        entry = calloc(1, sizeof *entry + n + 1);
        if (!entry)
                return NULL;
        memcpy(entry->key, key, n + 1);
        entry->keyed.key = entry->key;
        if (hf__key_index_insert(&queue->entries, &entry->keyed) < 0) {
                free(entry);
                return NULL;
        }
        return entry;
}

/* Frees an entry that has no state any more, so that the queue does not grow with every key that
 * was ever added. */
static void entry_free_if_idle(struct hf_workqueue *queue, struct entry *entry) {
        if (entry->dirty || entry->processing || entry->failures || entry->due.queued)
                return;
        hf__key_index_remove(&queue->entries, entry->key);
        free(entry);
}

static void ready_append(struct hf_workqueue *queue, struct entry *entry) {
        assert(entry->dirty && !entry->processing);
        entry->next = NULL;
        *queue->tail = entry;
        queue->tail = &entry->next;
        hf_metric_set(queue->metrics.depth, (double)++queue->depth);
        (void)pthread_cond_broadcast(&queue->cond);
}

static struct entry *ready_pop(struct hf_workqueue *queue) {
        struct entry *entry = queue->head;

        if (!entry)
                return NULL;
        queue->head = entry->next;
        if (!queue->head)
                queue->tail = &queue->head;
        assert(queue->depth > 0);
        hf_metric_set(queue->metrics.depth, (double)--queue->depth);
        return entry;
}

/* If a worker has the key, only marks the entry; hf_workqueue_done appends it later. */
static void add_locked(struct hf_workqueue *queue, struct entry *entry) {
        hf__mutex_assert_held(&queue->mu);
        if (entry->dirty)
                return;
        entry->dirty = true;
        entry->added_at = monotonic(queue);
        hf_metric_add(queue->metrics.adds, 1);
        if (!entry->processing)
                ready_append(queue, entry);
}

/* The delayed entry that is due first, or NULL. */
static struct entry *first_delayed(const struct hf_workqueue *queue) {
        struct hf__timer *due = queue->delayed.first;
        return due ? (struct entry *)(void *)((char *)due - offsetof(struct entry, due)) : NULL;
}

/* Adds the delayed keys whose delay has elapsed. */
static void move_due_locked(struct hf_workqueue *queue, hf_nsec now) {
        struct entry *entry = first_delayed(queue);

        hf__mutex_assert_held(&queue->mu);
        while (entry && entry->due.at <= now) {
                hf__timer_heap_remove(&queue->delayed, &entry->due);
                add_locked(queue, entry);
                entry = first_delayed(queue);
        }
}

/* ---- adding ---- */

/* Whether the queue no longer accepts keys. */
static bool is_closed(const struct hf_workqueue *queue) {
        return queue->draining || queue->dropped;
}

/* Delays the key until `at`. If it is delayed already, the earlier time counts. */
static void add_at_locked(struct hf_workqueue *queue, struct entry *entry, hf_nsec at) {
        hf__mutex_assert_held(&queue->mu);
        if (entry->due.queued && entry->due.at <= at)
                return;
        hf__timer_heap_remove(&queue->delayed, &entry->due);
        hf__timer_heap_add(&queue->delayed, &entry->due, at);
        if (first_delayed(queue) == entry)
                (void)pthread_cond_broadcast(&queue->cond);
}

static hf_nsec delay_after(unsigned failures) {
        hf_nsec delay = FIRST_DELAY;
        while (failures-- > 0 && delay < LAST_DELAY)
                delay *= 2;
        return delay < LAST_DELAY ? delay : LAST_DELAY;
}

/*
 * A token bucket for the retries of all keys, stored as one point in time. A new token becomes
 * available every retry_every, and retry_at is the time of the next one. If retry_at is in the
 * past, the bucket has tokens. It never has more than the burst, so retry_at is first raised to
 * now - retry_slack if it is below that. Takes a token and returns how long the retry must wait for
 * it.
 */
static hf_nsec bucket_delay_locked(struct hf_workqueue *queue, hf_nsec now) {
        hf__mutex_assert_held(&queue->mu);
        if (queue->retry_every == 0)
                return 0;
        if (queue->retry_at < now - queue->retry_slack)
                queue->retry_at = now - queue->retry_slack;
        hf_nsec delay = queue->retry_at > now ? queue->retry_at - now : 0;
        queue->retry_at += queue->retry_every;
        return delay;
}

static hf_nsec retry_delay_locked(struct hf_workqueue *queue, struct entry *entry, hf_nsec now) {
        hf_nsec key_delay = delay_after(entry->failures++);
        hf_nsec shared_delay = bucket_delay_locked(queue, now);

        hf__mutex_assert_held(&queue->mu);
        return key_delay > shared_delay ? key_delay : shared_delay;
}

void hf_workqueue_limit_retries(struct hf_workqueue *queue, double per_s, unsigned burst) {
        double every = per_s > 0 ? (double)HF_NSEC_PER_SEC / per_s : 0;
        /* One less than the burst, because a retry_at of exactly now is a token too. */
        double slack = every * (burst > 0 ? burst - 1 : 0);

        (void)pthread_mutex_lock(&queue->mu);
        queue->retry_every = every < (double)LAST_DELAY ? (hf_nsec)every : LAST_DELAY;
        queue->retry_slack = slack < (double)LAST_DELAY ? (hf_nsec)slack : LAST_DELAY;
        queue->retry_at = hf_now(queue->clock) - queue->retry_slack;
        (void)pthread_mutex_unlock(&queue->mu);
}

#define KEY_DELAY (-1)

/* Adds the key after `delay`. KEY_DELAY: adds it as a retry, after the delay that
 * retry_delay_locked returns. */
static int add_delayed(struct hf_workqueue *queue, const char *key, hf_nsec delay) {
        hf_nsec now = hf_now(queue->clock);
        int r = 0;

        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = is_closed(queue) ? NULL : entry_get(queue, key);
        if (entry) {
                if (delay == KEY_DELAY) {
                        delay = retry_delay_locked(queue, entry, now);
                        hf_metric_add(queue->metrics.retries, 1);
                }
                if (delay == 0)
                        add_locked(queue, entry);
                else
                        add_at_locked(queue, entry,
                                      delay < HF_NSEC_NEVER - now ? now + delay : HF_NSEC_NEVER);
        } else if (!is_closed(queue)) {
                r = -ENOMEM;
        }
        (void)pthread_mutex_unlock(&queue->mu);
        return r;
}

int hf_workqueue_add(struct hf_workqueue *queue, const char *key) {
        return add_delayed(queue, key, 0);
}

int hf_workqueue_add_after(struct hf_workqueue *queue, const char *key, hf_nsec delay) {
        return add_delayed(queue, key, delay > 0 ? delay : 0);
}

int hf_workqueue_retry(struct hf_workqueue *queue, const char *key) {
        return add_delayed(queue, key, KEY_DELAY);
}

void hf_workqueue_forget(struct hf_workqueue *queue, const char *key) {
        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = entry_find(queue, key);
        if (entry) {
                entry->failures = 0;
                entry_free_if_idle(queue, entry);
        }
        (void)pthread_mutex_unlock(&queue->mu);
}

/* ---- taking ---- */

/* Returns 0 and a key, an error of hf_workqueue_take, or -EAGAIN: no key will be ready before
 * *ret_until unless the queue changes. */
static int try_take_locked(struct hf_workqueue *queue, struct hf_cancel *abort,
                           const char **ret_key, hf_nsec *ret_until) {
        hf_nsec now = hf_now(queue->clock);

        hf__mutex_assert_held(&queue->mu);
        if (queue->dropped || hf_cancel_fired(abort))
                return HF_E_CANCELED;
        move_due_locked(queue, now);
        struct entry *entry = ready_pop(queue);
        if (entry) {
                assert(entry->dirty && !entry->processing);
                entry->dirty = false;
                entry->processing = true;
                entry->taken_at = monotonic(queue);
                entry->next = queue->in_progress;
                queue->in_progress = entry;
                hf_metric_observe(queue->metrics.queue_duration,
                                  seconds(entry->taken_at - entry->added_at));
                *ret_key = entry->key;
                return 0;
        }
        if (queue->draining)
                return HF_E_CLOSED;
        hf_nsec until = hf_cancel_deadline(abort);
        entry = first_delayed(queue);
        *ret_until = entry && entry->due.at < until ? entry->due.at : until;
        return -EAGAIN;
}

static void wake_workers(void *ctx) {
        struct hf_workqueue *queue = ctx;

        /* Broadcasts under the lock. Otherwise a worker could miss it between the check of its
         * token and its wait. */
        (void)pthread_mutex_lock(&queue->mu);
        (void)pthread_cond_broadcast(&queue->cond);
        (void)pthread_mutex_unlock(&queue->mu);
}

int hf_workqueue_take(struct hf_workqueue *queue, struct hf_cancel *abort, const char **ret_key) {
        struct hf_cancel_waker waker = {0};
        hf_nsec until = 0;

        (void)pthread_mutex_lock(&queue->mu);
        int r = try_take_locked(queue, abort, ret_key, &until);
        (void)pthread_mutex_unlock(&queue->mu);
        if (r != -EAGAIN)
                return r;

        /* Register the waker without the lock, because the waker takes the lock itself. Only a
         * worker that has to wait pays for it. */
        hf_cancel_add_waker(abort, &waker, wake_workers, queue);
        (void)pthread_mutex_lock(&queue->mu);
        for (;;) {
                r = try_take_locked(queue, abort, ret_key, &until);
                if (r != -EAGAIN)
                        break;
                (void)queue->clock->wait(queue->clock->ctx, &queue->cond, &queue->mu, until);
        }
        (void)pthread_mutex_unlock(&queue->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

static void remove_in_progress(struct hf_workqueue *queue, const struct entry *entry) {
        struct entry **place = &queue->in_progress;
        while (*place != entry)
                place = &(*place)->next;
        *place = entry->next;
}

void hf_workqueue_done(struct hf_workqueue *queue, const char *key) {
        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = entry_find(queue, key);
        if (entry && entry->processing) {
                entry->processing = false;
                remove_in_progress(queue, entry);
                hf_metric_observe(queue->metrics.work_duration,
                                  seconds(monotonic(queue) - entry->taken_at));
                if (entry->dirty && !queue->dropped)
                        ready_append(queue, entry);
                else
                        entry_free_if_idle(queue, entry);
        }
        (void)pthread_mutex_unlock(&queue->mu);
}

/* ---- ending ---- */

static void drop_delayed_locked(struct hf_workqueue *queue) {
        hf__mutex_assert_held(&queue->mu);
        for (struct entry *entry; (entry = first_delayed(queue));) {
                hf__timer_heap_remove(&queue->delayed, &entry->due);
                entry_free_if_idle(queue, entry);
        }
}

void hf_workqueue_drain(struct hf_workqueue *queue) {
        (void)pthread_mutex_lock(&queue->mu);
        queue->draining = true;
        /* A key that is already due is still handed out. */
        move_due_locked(queue, hf_now(queue->clock));
        drop_delayed_locked(queue);
        (void)pthread_cond_broadcast(&queue->cond);
        (void)pthread_mutex_unlock(&queue->mu);
}

void hf_workqueue_drop(struct hf_workqueue *queue) {
        struct entry *entry;

        (void)pthread_mutex_lock(&queue->mu);
        queue->dropped = true;
        drop_delayed_locked(queue);
        while ((entry = ready_pop(queue))) {
                entry->dirty = false;
                entry_free_if_idle(queue, entry);
        }
        /* Do not append a key again when its worker has finished with it. */
        struct hf__key_iter iter;
        hf__key_iter_init(&iter, &queue->entries);
        while ((entry = (struct entry *)hf__key_iter_next(&iter)))
                entry->dirty = false;
        (void)pthread_cond_broadcast(&queue->cond);
        (void)pthread_mutex_unlock(&queue->mu);
}

size_t hf_workqueue_depth(struct hf_workqueue *queue) {
        (void)pthread_mutex_lock(&queue->mu);
        size_t depth = queue->depth;
        (void)pthread_mutex_unlock(&queue->mu);
        return depth;
}

/* ---- creating and freeing ---- */

/* Computes the metrics of unfinished work when they are read, because a worker that hangs would
 * never update them itself. Runs on the thread that reads the metrics. */
static void measure_work(void *ctx) {
        struct hf_workqueue *queue = ctx;
        hf_nsec now = monotonic(queue), sum = 0, longest = 0;

        (void)pthread_mutex_lock(&queue->mu);
        for (const struct entry *entry = queue->in_progress; entry; entry = entry->next) {
                hf_nsec span = now > entry->taken_at ? now - entry->taken_at : 0;
                sum += span;
                if (span > longest)
                        longest = span;
        }
        (void)pthread_mutex_unlock(&queue->mu);
        hf_metric_set(queue->metrics.unfinished, seconds(sum));
        hf_metric_set(queue->metrics.longest, seconds(longest));
}

HF__CLEANUP_DEFINE(queue_cleanup, struct hf_workqueue *, hf_workqueue_free)

int hf_workqueue_new(const struct hf_host *host, const char *name,
                     struct hf_workqueue **ret_queue) {
        if (!name || !ret_queue || hf__host_check(host, NULL) != 0)
                return -EINVAL;
        HF__CLEANUP(hf__free_cleanup) struct hf_workqueue *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__workqueue_metrics_init(&memory->metrics, host->metrics, name);
        if (r < 0)
                return r;
        r = hf__mutex_cond_init(&memory->mu, &memory->cond);
        if (r < 0)
                return r;
        HF__CLEANUP(queue_cleanup) struct hf_workqueue *queue = HF__TAKE(memory);
        queue->clock = hf_host_clock(host);
        queue->tail = &queue->head;
        if (host->metrics) {
                r = hf_metrics_add_collector(host->metrics, measure_work, queue);
                if (r < 0)
                        return r;
                queue->registry = host->metrics;
        }
        *ret_queue = HF__TAKE(queue);
        return 0;
}

struct hf_workqueue *hf_workqueue_free(struct hf_workqueue *queue) {
        if (!queue)
                return NULL;
        if (queue->registry) {
                hf_metrics_remove_collector(queue->registry, measure_work, queue);
                hf__workqueue_metrics_reset(&queue->metrics);
        }
        hf__key_index_free_items(&queue->entries);
        (void)pthread_cond_destroy(&queue->cond);
        (void)pthread_mutex_destroy(&queue->mu);
        free(queue);
        return NULL;
}
