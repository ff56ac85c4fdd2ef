/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the store's watch from hanging unnoticed: feeds server/storage/watch_lag.h with what the
 * cacher learns, carries out its decisions, and shows the lag in metrics.
 *
 * Thread: any; never under the cacher's lock, except where a name ends in _locked.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "server/cacher/requests/store_identity.h"
#include "server/storage/store.h"
#include "server/storage/watch_lag.h"

struct hfd_cacher;
struct hfd_store_lag;

/* An action that is due, collected under the lock and done after it is released. */
struct hfd_store_lag_action {
        enum hfd_watch_lag_action kind;
        uint64_t watch_id;  /* the watch to reopen */
        uint64_t cached, n; /* the cache's revision, and how many it is behind */
        uint64_t progress_revision;
};

/*
 * Registers the metrics. From now on any thread may collect them, which takes the cacher's lock, so
 * this lock must exist already. NULL: out of memory.
 */
struct hfd_store_lag *hfd_store_lag_new(struct hfd_cacher *cacher);
/* Call it while the cacher's lock exists. Accepts NULL; returns NULL. */
struct hfd_store_lag *hfd_store_lag_free(struct hfd_store_lag *lag);

/* The reflector has opened the store's watch. */
void hfd_store_lag_opened_locked(struct hfd_cacher *cacher);
/* The store's watch has ended, or the reflector has failed before it opened one. */
void hfd_store_lag_closed_locked(struct hfd_cacher *cacher);
/* The cache has reached its revision at `now`, by events. */
void hfd_store_lag_reached_locked(struct hfd_cacher *cacher, hf_nsec now);
/* The cache has reached its revision, by a listing. */
void hfd_store_lag_filled_locked(struct hfd_cacher *cacher);
/* The store was replaced: the lag is measured from the beginning. */
void hfd_store_lag_reset_locked(struct hfd_cacher *cacher);
/* Called for every reply. writes: the request was a transaction with operations. If it succeeded, a
 * watched key counts as written at the reply's revision. (A transaction that only deletes keys that
 * do not exist would write nothing. There is none: each transaction with operations changes a key
 * whose mod revision it compares.) */
void hfd_store_lag_replied(struct hfd_cacher *cacher, struct hfd_store_identity_snapshot sent,
                           bool writes, const struct hfd_store_reply *reply);
/* As hfd_cacher_lag. */
uint64_t hfd_store_lag_get(struct hfd_cacher *cacher, hf_nsec *ret_time);

/* For the timer. Lowers *next to the boot time at which an action may be due. */
struct hfd_store_lag_action hfd_store_lag_decide_locked(struct hfd_cacher *cacher, hf_nsec now,
                                                        hf_nsec *next);
void hfd_store_lag_act(struct hfd_cacher *cacher, const struct hfd_store_lag_action *action);
