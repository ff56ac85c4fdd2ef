/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit: compares the cache with the store every few minutes, and has the cache filled again if
 * they differ. Thread: any; never under the cacher's lock.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/metrics.h>

struct hfd_cacher;

#define HFD_CACHE_AUDIT_INTERVAL (3 * 60 * HF_NSEC_PER_SEC)

/* The cacher's state for audits. */
struct hfd_cache_audit {
        struct hf_metric *n_differences; /* immutable */
        /* guarded by the cacher's lock */
        bool running;
        hf_nsec due; /* boot time of the next audit */
};

/* Starts an audit. Does nothing while one is running, while the cache does not follow the store's
 * watch, when the cacher stops, or when memory runs out. Never blocks. */
void hfd_cache_audit_start(struct hfd_cacher *cacher);
