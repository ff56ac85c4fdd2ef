/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out what server/storage/watch_lag.c decides about the store's watch.
 *
 * The progress key, PREFIX.holdfast/progress, is a watched key without meaning. Writing it makes
 * the store deliver an event. Several instances may need one at the same time, so the write
 * compares the key's mod revision: only one of them succeeds, and its event serves all.
 *
 * Invariant: only replies of the current history count. After a replacement of the store the lag is
 * measured from the beginning, because the cache is filled again.
 */
#include "server/cacher/requests/store_lag.h"

#include <inttypes.h>
#include <stdlib.h>

#include <holdfast/metrics.h>

#include "base/thread.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"
#include "server/storage/keys.h"

#define REQUEST_DEADLINE (5 * HF_NSEC_PER_SEC)

struct hfd_store_lag {
        /* immutable */
        struct hfd_cacher *cacher; /* borrowed; owns this */
        struct hf_metric *revisions, *seconds, *n_reopened;

        /* guarded by the cacher's lock */
        struct hfd_watch_lag watch;
        uint64_t progress_revision; /* mod revision of the progress key; 0 = none is known */
};

/* ---- metrics ---- */

static uint64_t get_lag(struct hfd_store_lag *lag, hf_nsec *ret_time) {
        struct hfd_cacher *cacher = lag->cacher;
        hf_nsec now = hfd_cacher_now(cacher);

        pthread_mutex_lock(&cacher->mu);
        uint64_t revisions = hfd_watch_lag_revisions(&lag->watch);
        *ret_time = hfd_watch_lag_time(&lag->watch, now);
        pthread_mutex_unlock(&cacher->mu);
        return revisions;
}

uint64_t hfd_store_lag_get(struct hfd_cacher *cacher, hf_nsec *ret_time) {
        return get_lag(cacher->lag, ret_time);
}

static void collect_lag(void *ctx) {
        struct hfd_store_lag *lag = ctx;
        hf_nsec time;
        uint64_t revisions = get_lag(lag, &time);

        hf_metric_set(lag->revisions, (double)revisions);
        hf_metric_set(lag->seconds, (double)time / (double)HF_NSEC_PER_SEC);
}

struct hfd_store_lag *hfd_store_lag_new(struct hfd_cacher *cacher) {
        struct hf_metrics *metrics = cacher->host->metrics;
        struct hfd_store_lag *lag = calloc(1, sizeof *lag);

        if (!lag)
                return NULL;
        lag->cacher = cacher;
        lag->revisions =
                hf_metrics_get(metrics, HF_METRIC_GAUGE, "holdfast_store_watch_lag_revisions",
                               "Revisions of the store that the watch cache has not reached.", "");
        lag->seconds =
                hf_metrics_get(metrics, HF_METRIC_GAUGE, "holdfast_store_watch_lag_seconds",
                               "How long the watch cache is known to be behind the store.", "");
        lag->n_reopened =
                hf_metrics_get(metrics, HF_METRIC_COUNTER, "holdfast_store_watch_reopened_total",
                               "How often the store's watch lagged and was opened anew.", "");
        if (hf_metrics_add_collector(metrics, collect_lag, lag) == 0)
                return lag;
        free(lag);
        return NULL;
}

struct hfd_store_lag *hfd_store_lag_free(struct hfd_store_lag *lag) {
        if (!lag)
                return NULL;
        hf_metrics_remove_collector(lag->cacher->host->metrics, collect_lag, lag);
        free(lag);
        return NULL;
}

/* ---- the store's watch ---- */

void hfd_store_lag_opened_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        hfd_watch_lag_opened(&cacher->lag->watch, hfd_cacher_now(cacher));
        /* Without a watch no action was due, so the timer must compute the next time anew. */
        pthread_cond_broadcast(&cacher->cond);
}

void hfd_store_lag_closed_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        hfd_watch_lag_closed(&cacher->lag->watch);
}

void hfd_store_lag_reached_locked(struct hfd_cacher *cacher, hf_nsec now) {
        hf__mutex_assert_held(&cacher->mu);
        hfd_watch_lag_reached(&cacher->lag->watch, cacher->revision, now);
}

void hfd_store_lag_filled_locked(struct hfd_cacher *cacher) {
        struct hfd_watch_lag *watch = &cacher->lag->watch;

        hf__mutex_assert_held(&cacher->mu);
        if (watch->cached > cacher->revision) /* by a late event of a replaced history */
                *watch = (struct hfd_watch_lag){0};
        hfd_watch_lag_reached(watch, cacher->revision, hfd_cacher_now(cacher));
}

void hfd_store_lag_reset_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->lag->watch = (struct hfd_watch_lag){0};
}

/* ---- replies ---- */

/* The highest revision at which a watched key was written, as far as the reply shows. */
static uint64_t written_revision(bool writes, const struct hfd_store_reply *reply) {
        uint64_t highest = writes && !reply->error ? reply->revision : 0;

        for (size_t i = 0; i < reply->n_kvs; i++)
                if (reply->kvs[i].mod_revision > highest)
                        highest = reply->kvs[i].mod_revision;
        return highest;
}

void hfd_store_lag_replied(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                           bool writes, const struct hfd_store_reply *reply) {
        struct hfd_store_lag *lag = cacher->lag;

        if (!reply->revision || (reply->error && reply->error != HF_E_CONFLICT))
                return;
        uint64_t written = written_revision(writes, reply);
        hf_nsec now = hfd_cacher_now(cacher);
        bool is_due_earlier = false;

        pthread_mutex_lock(&cacher->mu);
        if (hfd_store_identity_is_comparable_locked(cacher, sent)) {
                hfd_watch_lag_replied(&lag->watch, reply->revision, written, now);
                is_due_earlier =
                        hfd_cacher_hasten_timer_locked(cacher, hfd_watch_lag_due(&lag->watch));
        }
        pthread_mutex_unlock(&cacher->mu);
        /* Without the lock: otherwise the timer would wake up only to wait for it, and this thread
         * still has to pass the reply on. */
        if (is_due_earlier)
                pthread_cond_broadcast(&cacher->cond);
}

/* ---- actions ---- */

struct hfd_store_lag_action hfd_store_lag_decide_locked(struct hfd_cacher *cacher, hf_nsec now,
                                                        hf_nsec *next) {
        hf__mutex_assert_held(&cacher->mu);
        struct hfd_watch_lag *watch = &cacher->lag->watch;
        struct hfd_store_lag_action action = {
                .watch_id = cacher->watch.id,
                .cached = watch->cached,
                .n = hfd_watch_lag_revisions(watch),
                .progress_revision = cacher->lag->progress_revision,
        };

        action.kind = hfd_watch_lag_decide(watch, now);
        hf_nsec due = hfd_watch_lag_due(watch);
        if (due < *next)
                *next = due;
        return action;
}

static void ignore_reply(void *ctx, const struct hfd_store_reply *reply) {}

static void on_progress_written(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;

        if (reply->error && reply->error != HF_E_CONFLICT)
                return;
        pthread_mutex_lock(&cacher->mu);
        if (!reply->error)
                cacher->lag->progress_revision = reply->revision;
        else
                cacher->lag->progress_revision = reply->n_kvs ? reply->kvs[0].mod_revision : 0;
        pthread_mutex_unlock(&cacher->mu);
}

static void write_progress(struct hfd_cacher *cacher, uint64_t revision) {
        char key[HFD_KEY_MAX];
        const char *const keys[] = {key};
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = revision};
        struct hfd_op put = {.kind = HFD_PUT, .key = key, .value = hf__buf_copy("", 0)};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = 1,
                                    .ops = &put,
                                    .n_ops = 1,
                                    .get_on_failure = keys,
                                    .n_get_on_failure = 1};

        /* If this fails, watch_lag.c decides the same again later. */
        if (put.value && hfd_key_own(key, cacher->prefix, "progress") == 0)
                (void)hfd_store_request_txn(cacher, &txn, hfd_cacher_now(cacher) + REQUEST_DEADLINE,
                                            on_progress_written, cacher);
        hf__buf_unref(put.value);
}

void hfd_store_lag_act(struct hfd_cacher *cacher, const struct hfd_store_lag_action *action) {
        switch (action->kind) {
        case HFD_WATCH_LAG_WAIT: break;
        case HFD_WATCH_LAG_PROBE:
                (void)hfd_store_request_revision(cacher, hfd_cacher_now(cacher) + REQUEST_DEADLINE,
                                                 ignore_reply, NULL);
                break;
        case HFD_WATCH_LAG_WRITE_PROGRESS: write_progress(cacher, action->progress_revision); break;
        case HFD_WATCH_LAG_REOPEN:
                hf_log(&cacher->host->log, HF_LOG_WARNING, "cacher",
                       "the store's watch delivers nothing, and the cache is %" PRIu64
                       " revisions behind %" PRIu64 ": watching on another endpoint",
                       action->n, action->cached + action->n);
                hf_metric_add(cacher->lag->n_reopened, 1);
                /* The end of the watch makes the reflector open another one. */
                cacher->store->ops->watch_suspect(cacher->store, action->watch_id);
                break;
        }
}
