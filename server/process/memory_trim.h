/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gives memory back to the system after a peak. The C library keeps what was freed, because it may
 * be needed again: after a burst of large requests the process would stay as large as it ever was.
 *
 * Thread: one thread, which nobody waits for: trimming a gigabyte may take 100 ms.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

/* The time between two looks. */
#define HFD_MEMORY_TRIM_INTERVAL (5 * HF_NSEC_PER_SEC)

/* Begins as {0}. */
struct hfd_memory_trim {
        hf_nsec next;     /* boot time of the next look */
        size_t waste;     /* bytes at the last look; see below */
        size_t tolerated; /* waste that the last trim could not give back */
};

/*
 * Decides. resident: bytes of the process in memory; used: bytes that it has allocated. Their
 * difference is the waste. True: there is much of it, and as much as at the last look. While
 * requests come and go it changes, and would soon be needed again. Pure.
 */
bool hfd_memory_trim_is_due(struct hfd_memory_trim *trim, size_t resident, size_t used);
/* Looks, if it is time to, and trims. now: boot time. */
void hfd_memory_trim_tick(struct hfd_memory_trim *trim, const struct hf_host *host, hf_nsec now);
