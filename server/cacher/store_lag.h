/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the store's watch from hanging unnoticed: feeds server/storage/watch_lag.h with what the
 * cacher learns, carries out its decisions, and shows the lag in metrics.
 *
 * Thread: any; never under the cacher's lock, except where a name ends in _locked.
 */
#include <holdfast/metrics.h>

#include "server/cacher/store_identity.h"
#include "server/storage/watch_lag.h"

struct hfd_cacher;

/* The cacher's state for the lag. */
struct hfd_store_lag {
        /* immutable */
        struct hf_metric *revisions, *seconds, *n_reopened;

        /* guarded by the cacher's lock */
        struct hfd_watch_lag watch;
        uint64_t progress_revision; /* mod revision of the progress key; 0 = none is known */
        hf_nsec timer_due;          /* boot time until which the cacher's timer sleeps */
};

/* An action that is due, collected under the lock and done after it is released. */
struct hfd_store_lag_action {
        enum hfd_watch_lag_action kind;
        uint64_t watch_id;  /* the watch to reopen */
        uint64_t cached, n; /* the cache's revision, and how many it is behind */
        uint64_t progress_revision;
};

/* Registers the metrics. 0 or -ENOMEM. */
int hfd_store_lag_init(struct hfd_cacher *cacher);
/* Accepts a cacher whose lag was not initialized. */
void hfd_store_lag_deinit(struct hfd_cacher *cacher);
/* Called for every reply. writes: the request was a transaction that wrote if it succeeded. */
void hfd_store_lag_replied(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                           bool writes, const struct hfd_store_reply *reply);
/* For the timer. Lowers *next to the boot time at which an action may be due. */
struct hfd_store_lag_action hfd_store_lag_decide_locked(struct hfd_cacher *cacher, hf_nsec now,
                                                        hf_nsec *next);
void hfd_store_lag_act(struct hfd_cacher *cacher, const struct hfd_store_lag_action *action);
