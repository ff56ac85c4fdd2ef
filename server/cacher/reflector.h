/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the cache equal to the store: lists everything, then watches, for ever. The model is at the
 * head of reflector.c.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hfd_cacher;

/* The state, a part of the cacher. Guarded by its lock. */
struct hfd_reflector {
        enum { HFD_REFLECTOR_IDLE, HFD_REFLECTOR_RUNNING, HFD_REFLECTOR_BACKOFF } state;
        bool relist;        /* begin with a list; else go on with a watch from revision + 1 */
        bool watching;      /* a watch is open, or about to be */
        uint64_t n_watches; /* begun so far: tells which of them an id that comes late belongs to */
        uint64_t watch_id;  /* the store's; 0 = none */
        hf_nsec again_at;   /* boot time of the next try, in BACKOFF */
        hf_nsec backoff;
        struct hf_status status; /* the last failure */
};

/* Starts, or goes on after a backoff. Never blocks. Thread: any; not under the lock. */
void hfd_reflector_run(struct hfd_cacher *cacher);
/* Makes the reflector list again; *ret_cancel is the watch to cancel after unlocking, 0 = none. */
void hfd_reflector_relist_locked(struct hfd_cacher *cacher, uint64_t *ret_cancel);
/* Stops for good. Blocks until the operation under way has ended. */
void hfd_reflector_stop(struct hfd_cacher *cacher);
