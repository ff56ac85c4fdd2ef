/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work queue: which keys wait to be worked on, which are being worked on, and which come back
 * later.
 *
 * One entry per key, alive as long as anything is known about the key. Its states, all guarded by
 * the queue's lock:
 *
 *      dirty       somebody added it since it was last taken
 *                  (it then stands in the line, or done puts it there)
 *      processing  a taker has it
 *      delayed     it stands among those that become added at their time
 *      failures    how often it was retried since it was last forgotten
 *
 * An entry with none of these is freed. There is no timer thread: takers wait no longer than until
 * the first delayed key is due, and whoever wakes first moves the due ones into the line.
 * Everything that changes what a taker would see wakes all takers, because each has an abort token
 * of its own and the one woken alone might be the one that leaves.
 */
#include <holdfast/workqueue.h>

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "base/timer_heap.h"
#include "client/key_index.h"

#define FIRST_DELAY (5 * HF_NSEC_PER_MSEC)
#define LAST_DELAY  (1000 * HF_NSEC_PER_SEC)

struct entry {
        struct hf__keyed keyed;
        struct entry *next; /* in the line, or among those being worked on */
        bool dirty, processing;
        unsigned failures;
        struct hf__timer due;       /* queued while delayed */
        hf_nsec added_at, taken_at; /* monotonic, for the metrics */
        char key[];
};

struct hf_workqueue {
        /* immutable */
        const struct hf_clock *clock;
        struct hf_metrics *metrics; /* borrowed; may be NULL */
        struct hf_metric *m_depth, *m_adds, *m_retries, *m_queue_duration, *m_work_duration,
                *m_unfinished, *m_longest;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        /* guarded by mu */
        struct hf__key_index entries; /* owns them */
        struct entry *head, **tail;   /* the line */
        size_t depth;                 /* of the line */
        struct entry *working;        /* being worked on, the last taken first */
        struct hf__timer_heap delayed;
        bool draining, dropped;
        hf_nsec retry_every, retry_slack; /* the bucket: one token each, and how far it may run
                                             behind; 0 = no limit */
        hf_nsec retry_at; /* when the token of the next retry is due, seen from a bucket that never
                             fills */
};

/* ---- entries and the line ---- */

static hf_nsec monotonic(const struct hf_workqueue *queue) {
        return queue->clock->monotonic(queue->clock->ctx);
}

static double seconds(hf_nsec span) { return (double)span / (double)HF_NSEC_PER_SEC; }

static struct entry *entry_find(struct hf_workqueue *queue, const char *key) {
        return (struct entry *)hf__key_index_find(&queue->entries, key);
}

static struct entry *entry_make(struct hf_workqueue *queue, const char *key) {
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

static void entry_forget_if_idle(struct hf_workqueue *queue, struct entry *entry) {
        if (entry->dirty || entry->processing || entry->failures || entry->due.queued)
                return;
        hf__key_index_remove(&queue->entries, entry->key);
        free(entry);
}

static void line_append(struct hf_workqueue *queue, struct entry *entry) {
        entry->next = NULL;
        *queue->tail = entry;
        queue->tail = &entry->next;
        hf_metric_set(queue->m_depth, (double)++queue->depth);
        (void)pthread_cond_broadcast(&queue->cond);
}

static struct entry *line_pop(struct hf_workqueue *queue) {
        struct entry *entry = queue->head;

        if (!entry)
                return NULL;
        queue->head = entry->next;
        if (!queue->head)
                queue->tail = &queue->head;
        hf_metric_set(queue->m_depth, (double)--queue->depth);
        return entry;
}

static void add_locked(struct hf_workqueue *queue, struct entry *entry) {
        if (entry->dirty)
                return;
        entry->dirty = true;
        entry->added_at = monotonic(queue);
        hf_metric_add(queue->m_adds, 1);
        if (!entry->processing)
                line_append(queue, entry);
}

/* The delayed entry that is due first; NULL = none. */
static struct entry *first_delayed(const struct hf_workqueue *queue) {
        struct hf__timer *due = queue->delayed.first;
        return due ? (struct entry *)(void *)((char *)due - offsetof(struct entry, due)) : NULL;
}

static void move_due(struct hf_workqueue *queue, hf_nsec now) {
        for (struct entry *entry; (entry = first_delayed(queue)) && entry->due.at <= now;) {
                hf__timer_heap_remove(&queue->delayed, &entry->due);
                add_locked(queue, entry);
        }
}

/* ---- adding ---- */

static bool closed(const struct hf_workqueue *queue) { return queue->draining || queue->dropped; }

/* The earlier time counts when the key is delayed already. */
static void add_at_locked(struct hf_workqueue *queue, struct entry *entry, hf_nsec at) {
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
 * The bucket as one number: the times at which tokens fall due, retry_every apart. It may lie
 * behind now by the burst less one, which is as many tokens in hand; what is further behind has run
 * over.
 */
static hf_nsec bucket_delay_locked(struct hf_workqueue *queue, hf_nsec now) {
        if (queue->retry_every == 0)
                return 0;
        if (queue->retry_at < now - queue->retry_slack)
                queue->retry_at = now - queue->retry_slack;
        hf_nsec delay = queue->retry_at > now ? queue->retry_at - now : 0;
        queue->retry_at += queue->retry_every;
        return delay;
}

static hf_nsec retry_delay_locked(struct hf_workqueue *queue, struct entry *entry, hf_nsec now) {
        hf_nsec own = delay_after(entry->failures++), all = bucket_delay_locked(queue, now);
        return own > all ? own : all;
}

void hf_workqueue_limit_retries(struct hf_workqueue *queue, double per_s, unsigned burst) {
        double every = per_s > 0 ? (double)HF_NSEC_PER_SEC / per_s : 0;
        double slack = every * (burst > 0 ? burst - 1 : 0);

        (void)pthread_mutex_lock(&queue->mu);
        queue->retry_every = every < (double)LAST_DELAY ? (hf_nsec)every : LAST_DELAY;
        queue->retry_slack = slack < (double)LAST_DELAY ? (hf_nsec)slack : LAST_DELAY;
        queue->retry_at = hf_now(queue->clock) - queue->retry_slack;
        (void)pthread_mutex_unlock(&queue->mu);
}

/* delay < 0: the key's own, which grows. */
static int add_delayed(struct hf_workqueue *queue, const char *key, hf_nsec delay) {
        hf_nsec now = hf_now(queue->clock);
        int r = 0;

        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = closed(queue) ? NULL : entry_make(queue, key);
        if (entry) {
                if (delay < 0) {
                        delay = retry_delay_locked(queue, entry, now);
                        hf_metric_add(queue->m_retries, 1);
                }
                if (delay == 0)
                        add_locked(queue, entry);
                else
                        add_at_locked(queue, entry,
                                      delay < HF_NSEC_NEVER - now ? now + delay : HF_NSEC_NEVER);
        } else if (!closed(queue)) {
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
        return add_delayed(queue, key, -1);
}

void hf_workqueue_forget(struct hf_workqueue *queue, const char *key) {
        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = entry_find(queue, key);
        if (entry) {
                entry->failures = 0;
                entry_forget_if_idle(queue, entry);
        }
        (void)pthread_mutex_unlock(&queue->mu);
}

/* ---- taking ---- */

/* 0 and an entry, an error, or -EAGAIN: nothing yet, look again at *ret_until. */
static int try_take_locked(struct hf_workqueue *queue, struct hf_cancel *abort,
                           const char **ret_key, hf_nsec *ret_until) {
        hf_nsec now = hf_now(queue->clock);

        if (queue->dropped || hf_cancel_fired(abort))
                return HF_E_CANCELED;
        move_due(queue, now);
        struct entry *entry = line_pop(queue);
        if (entry) {
                entry->dirty = false;
                entry->processing = true;
                entry->taken_at = monotonic(queue);
                entry->next = queue->working;
                queue->working = entry;
                hf_metric_observe(queue->m_queue_duration,
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

static void wake(void *ctx) {
        struct hf_workqueue *queue = ctx;

        /* Under the lock, so that it cannot fall between a taker's look at its token and its wait.
         */
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

        hf_cancel_add_waker(abort, &waker, wake, queue);
        (void)pthread_mutex_lock(&queue->mu);
        while ((r = try_take_locked(queue, abort, ret_key, &until)) == -EAGAIN)
                (void)queue->clock->wait(queue->clock->ctx, &queue->cond, &queue->mu, until);
        (void)pthread_mutex_unlock(&queue->mu);
        hf_cancel_remove_waker(&waker);
        return r;
}

static void leave_working(struct hf_workqueue *queue, const struct entry *entry) {
        struct entry **place = &queue->working;
        while (*place != entry)
                place = &(*place)->next;
        *place = entry->next;
}

void hf_workqueue_done(struct hf_workqueue *queue, const char *key) {
        (void)pthread_mutex_lock(&queue->mu);
        struct entry *entry = entry_find(queue, key);
        if (entry && entry->processing) {
                entry->processing = false;
                leave_working(queue, entry);
                hf_metric_observe(queue->m_work_duration,
                                  seconds(monotonic(queue) - entry->taken_at));
                if (entry->dirty && !queue->dropped)
                        line_append(queue, entry);
                else
                        entry_forget_if_idle(queue, entry);
        }
        (void)pthread_mutex_unlock(&queue->mu);
}

/* ---- ending ---- */

static void forget_delayed_locked(struct hf_workqueue *queue) {
        for (struct entry *entry; (entry = first_delayed(queue));) {
                hf__timer_heap_remove(&queue->delayed, &entry->due);
                entry_forget_if_idle(queue, entry);
        }
}

void hf_workqueue_drain(struct hf_workqueue *queue) {
        (void)pthread_mutex_lock(&queue->mu);
        queue->draining = true;
        move_due(queue, hf_now(queue->clock)); /* a key whose time has come waits like any other */
        forget_delayed_locked(queue);
        (void)pthread_cond_broadcast(&queue->cond);
        (void)pthread_mutex_unlock(&queue->mu);
}

void hf_workqueue_drop(struct hf_workqueue *queue) {
        struct entry *entry;

        (void)pthread_mutex_lock(&queue->mu);
        queue->dropped = true;
        forget_delayed_locked(queue);
        while ((entry = line_pop(queue))) {
                entry->dirty = false;
                entry_forget_if_idle(queue, entry);
        }
        for (size_t i = 0; i < queue->entries.n;
             i++) /* what is being worked on does not come back */
                ((struct entry *)queue->entries.items[i])->dirty = false;
        (void)pthread_cond_broadcast(&queue->cond);
        (void)pthread_mutex_unlock(&queue->mu);
}

size_t hf_workqueue_depth(struct hf_workqueue *queue) {
        (void)pthread_mutex_lock(&queue->mu);
        size_t depth = queue->depth;
        (void)pthread_mutex_unlock(&queue->mu);
        return depth;
}

/* ---- making ---- */

/* What is computed when the metrics are read: a worker that hangs never comes to count anything. */
static void measure_work(void *ctx) {
        struct hf_workqueue *queue = ctx;
        hf_nsec now = monotonic(queue), sum = 0, longest = 0;

        (void)pthread_mutex_lock(&queue->mu);
        for (const struct entry *entry = queue->working; entry; entry = entry->next) {
                hf_nsec span = now > entry->taken_at ? now - entry->taken_at : 0;
                sum += span;
                if (span > longest)
                        longest = span;
        }
        (void)pthread_mutex_unlock(&queue->mu);
        hf_metric_set(queue->m_unfinished, seconds(sum));
        hf_metric_set(queue->m_longest, seconds(longest));
}

static int make_metrics(struct hf_workqueue *queue, struct hf_metrics *metrics, const char *name) {
        struct hf__strbuf labels = {0};

        hf__strbuf_puts(&labels, "name=");
        hf__strbuf_json(&labels, name,
                        strlen(name)); /* the escapes of labels are among those of JSON */
        if (labels.error) {
                hf__strbuf_done(&labels);
                return -ENOMEM;
        }
        queue->m_depth = hf_metrics_get(metrics, HF_METRIC_GAUGE, "workqueue_depth",
                                        "Current depth of the queue.", labels.data);
        queue->m_adds = hf_metrics_get(metrics, HF_METRIC_COUNTER, "workqueue_adds_total",
                                       "Adds handled by the queue.", labels.data);
        queue->m_retries = hf_metrics_get(metrics, HF_METRIC_COUNTER, "workqueue_retries_total",
                                          "Retries handled by the queue.", labels.data);
        queue->m_queue_duration =
                hf_metrics_get(metrics, HF_METRIC_HISTOGRAM, "workqueue_queue_duration_seconds",
                               "How long a key waits in the queue before it is taken.",
                               labels.data);
        queue->m_work_duration =
                hf_metrics_get(metrics, HF_METRIC_HISTOGRAM, "workqueue_work_duration_seconds",
                               "How long a key is being worked on.", labels.data);
        queue->m_unfinished =
                hf_metrics_get(metrics, HF_METRIC_GAUGE, "workqueue_unfinished_work_seconds",
                               "How long the keys in hand have been worked on, together.",
                               labels.data);
        queue->m_longest = hf_metrics_get(metrics, HF_METRIC_GAUGE,
                                          "workqueue_longest_running_processor_seconds",
                                          "How long the key that has been in hand for longest is "
                                          "being worked on.",
                                          labels.data);
        hf_metric_set(queue->m_depth, 0); /* a former term's queue of that name may have been
                                             dropped with keys in it */
        hf__strbuf_done(&labels);
        return 0;
}

int hf_workqueue_new(const struct hf_host *host, const char *name,
                     struct hf_workqueue **ret_queue) {
        if (!host || !name || !ret_queue)
                return -EINVAL;
        struct hf_workqueue *queue = calloc(1, sizeof *queue);
        if (!queue)
                return -ENOMEM;
        queue->clock = hf_host_clock(host);
        queue->tail = &queue->head;
        int r = make_metrics(queue, host->metrics, name);
        if (r == 0)
                r = hf__mutex_init(&queue->mu);
        if (r < 0) {
                free(queue);
                return r;
        }
        r = hf_cond_init(&queue->cond);
        if (r < 0) {
                (void)pthread_mutex_destroy(&queue->mu);
                free(queue);
                return r;
        }
        queue->metrics = host->metrics;
        r = queue->metrics ? hf_metrics_add_collector(queue->metrics, measure_work, queue) : 0;
        if (r < 0) {
                queue->metrics = NULL;
                hf_workqueue_free(queue);
                return r;
        }
        *ret_queue = queue;
        return 0;
}

struct hf_workqueue *hf_workqueue_free(struct hf_workqueue *queue) {
        if (!queue)
                return NULL;
        if (queue->metrics) {
                hf_metrics_remove_collector(queue->metrics, measure_work, queue);
                hf_metric_set(queue->m_unfinished, 0);
                hf_metric_set(queue->m_longest, 0);
                hf_metric_set(queue->m_depth, 0);
        }
        for (size_t i = 0; i < queue->entries.n; i++)
                free(queue->entries.items[i]);
        hf__key_index_done(&queue->entries);
        (void)pthread_cond_destroy(&queue->cond);
        (void)pthread_mutex_destroy(&queue->mu);
        free(queue);
        return NULL;
}
