/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The audit of the cache: compares the cache with the store every few minutes, and has the cache
 * filled again if they differ, because a store may lose a watch event. (The audit log of requests
 * is something else: server/audit/.)
 *
 * Thread: any. Lock: the caller of a function whose name ends in _locked holds the cacher's lock;
 * the caller of any other function does not.
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
/* Requires that no audit runs. Accepts NULL; returns NULL. */
struct hfd_cache_audit *hfd_cache_audit_free(struct hfd_cache_audit *audit);
/* The boot time of the next audit. */
hf_nsec hfd_cache_audit_due_locked(const struct hfd_cacher *cacher);
/* Starts an audit and sets the time of the next one. Starts none while one is running, while the
 * cache does not follow the store's watch, when the cacher stops, or when memory runs out. Never
 * blocks. */
void hfd_cache_audit_start(struct hfd_cacher *cacher);
