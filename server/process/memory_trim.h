/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gives memory back to the system after a peak. The C library keeps freed memory, because it may be
 * needed again: after a burst of large requests the process would keep its largest size. The start
 * is such a peak, too: certificates are made, manifests are applied, caches are filled.
 *
 * Thread: owner only. The owner must be a thread that serves no requests, because trimming a
 * gigabyte may take 100 ms.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

/* The least time between two checks. */
#define HFD_MEMORY_TRIM_INTERVAL (5 * HF_NSEC_PER_SEC)
/* How long after the first trim the second one comes. Then the cacher's history, which reaches 75
 * seconds back, has forgotten what the start has written. */
#define HFD_MEMORY_TRIM_FORGET (90 * HF_NSEC_PER_SEC)

/* Begins as {0}. */
struct hfd_memory_trim {
        hf_nsec next; /* boot time of the next check */
        size_t waste; /* bytes at the previous check; 0 = too little for a trim, or no check yet */
        /* Bytes: the least waste since the last trim that was due. 0 before such a trim. */
        size_t tolerated;
        /* The two trims after the peak of the start. They are left out while the process is large.
         * In each phase, hfd_memory_trim_is_due may cause further trims. */
        enum {
                HFD_MEMORY_TRIM_STARTING,   /* wait for an interval */
                HFD_MEMORY_TRIM_STARTED,    /* trim at the next check */
                HFD_MEMORY_TRIM_FORGETTING, /* trim again at forgotten_at */
                HFD_MEMORY_TRIM_SETTLED     /* both are done, or left out */
        } phase;
        hf_nsec forgotten_at; /* boot time */
};

/*
 * Decides whether to trim. resident: bytes of the process in memory; used: bytes that it has
 * allocated. Their difference is the waste. True: the waste beyond trim->tolerated is large, and
 * the waste is almost the one at the previous check (trim->waste). If the waste changes, requests
 * are using that memory and would soon need it again. Updates trim->waste, and lowers
 * trim->tolerated if there is less waste. No I/O.
 */
bool hfd_memory_trim_is_due(struct hfd_memory_trim *trim, size_t resident, size_t used);
/* Checks whether a trim is due, at most once per interval, and trims. The caller makes the first
 * call when the start is complete. now: boot time. Blocks while it trims. */
void hfd_memory_trim_tick(struct hfd_memory_trim *trim, const struct hf_host *host, hf_nsec now);
/* The boot time at which the caller must call hfd_memory_trim_tick again. */
hf_nsec hfd_memory_trim_next(const struct hfd_memory_trim *trim);
