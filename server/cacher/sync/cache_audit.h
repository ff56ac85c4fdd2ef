/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit: compares the cache with the store every few minutes, and has the cache filled again if
 * they differ. Thread: any; never under the cacher's lock.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/host.h>

struct hf_metric;
struct hfd_cacher;

#define HFD_CACHE_AUDIT_INTERVAL (3 * 60 * HF_NSEC_PER_SEC)

/* The cacher's state for audits, for cache_audit.c and tests only. */
struct hfd_cache_audit {
        struct hf_metric *n_differences; /* immutable */
        /* guarded by the cacher's lock */
        bool running;
        hf_nsec due; /* boot time of the next audit */
};

/* Registers the metric. The first audit is due one interval from now. NULL: out of memory. */
struct hfd_cache_audit *hfd_cache_audit_new(const struct hf_host *host);
/* No audit may run. Accepts NULL; returns NULL. */
struct hfd_cache_audit *hfd_cache_audit_free(struct hfd_cache_audit *audit);
/* The boot time of the next audit. */
hf_nsec hfd_cache_audit_due_locked(const struct hfd_cacher *cacher);
/* Starts an audit. Does nothing while one is running, while the cache does not follow the store's
 * watch, when the cacher stops, or when memory runs out. Never blocks. */
void hfd_cache_audit_start(struct hfd_cacher *cacher);
