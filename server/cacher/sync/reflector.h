/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the cache equal to the store: lists everything, then watches. The head of reflector.c
 * describes the model.
 */
#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hfd_cacher;
struct hfd_reflector;

/* NULL: out of memory. */
struct hfd_reflector *hfd_reflector_new(void);
/* Requires that the reflector never ran, or hfd_reflector_stop has returned. Accepts NULL; returns
 * NULL. */
struct hfd_reflector *hfd_reflector_free(struct hfd_reflector *reflector);

/*
 * Starts the reflector, or restarts it after a backoff. Never blocks. Thread: any; not under the
 * lock.
 */
void hfd_reflector_run(struct hfd_cacher *cacher);
/* The boot time at which hfd_reflector_run must be called, because the backoff ends; HF_NSEC_NEVER:
 * the reflector is not in a backoff. */
hf_nsec hfd_reflector_due_locked(const struct hfd_cacher *cacher);
/* The last failure, also after later successes; error 0 = none. Borrowed while the lock is held. */
const struct hf_status *hfd_reflector_status_locked(const struct hfd_cacher *cacher);
/* Stops the reflector permanently, and sets `stopping`, at which the cacher's other parts stop too.
 * Blocks until its running operation has ended: a request, a listing or the watch. */
void hfd_reflector_stop(struct hfd_cacher *cacher);
