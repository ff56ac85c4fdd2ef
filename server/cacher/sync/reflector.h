/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the cache equal to the store: lists everything once, then watches. The head of reflector.c
 * describes the model.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hfd_cacher;

/* The cacher's state for the reflector. Guarded by the cacher's lock. */
struct hfd_reflector {
        enum { HFD_REFLECTOR_IDLE, HFD_REFLECTOR_RUNNING, HFD_REFLECTOR_BACKOFF } state;
        bool relist;        /* list everything again; otherwise resume the watch at revision + 1 */
        bool watching;      /* a watch is open or being opened */
        uint64_t n_watches; /* watches opened so far; identifies the newest one (begin_watch) */
        uint64_t watch_id;  /* the store's ID of the watch; 0 = none */
        hf_nsec retry_at;   /* boot time of the next try, in BACKOFF */
        hf_nsec backoff;
        struct hf_status status; /* the last failure */
        size_t n_listed;         /* objects that the running listing has so far; 0 = none */
        size_t n_listed_max;     /* the most that any listing has had */
        hf_nsec progress_at;     /* boot time of the last increase of n_listed_max */
};

/*
 * Starts the reflector, or restarts it after a backoff. Never blocks. Thread: any; not under the
 * lock.
 */
void hfd_reflector_run(struct hfd_cacher *cacher);
/*
 * Makes the reflector list everything again. *ret_cancel is the ID of the watch that the caller
 * must cancel after it has released the lock; 0 = none.
 */
void hfd_reflector_relist_locked(struct hfd_cacher *cacher, uint64_t *ret_cancel);
/* A listing has received n objects so far. Thread: any; not under the lock. */
void hfd_reflector_progress(struct hfd_cacher *cacher, size_t n);
/* Stops the reflector permanently. Blocks until its running operation has ended. */
void hfd_reflector_stop(struct hfd_cacher *cacher);
