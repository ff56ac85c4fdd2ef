/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the process's resident memory with the memory that it has allocated. The difference, the
 * waste, is about what malloc_trim could give back, except for free memory on pages with used
 * memory. The waste that a trim could not give back is tolerated: the next trim waits for more.
 *
 * mallinfo2 visits all free blocks, under the allocator's locks. So it is only called if the
 * process is large enough for a trim to be worth its cost, and the more seldom the longer it takes.
 *
 * Invariant: apart from the trims after the start, nothing is trimmed while the waste changes from
 * check to check. Requests use that memory then, and would have to get it from the kernel again.
 */
#include "server/process/memory_trim.h"

#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A check may take a thousandth of a processor. */
#define CHECK_SHARE 1000
/* If the waste is less, a trim is not worth the page faults when the memory is needed again. */
#define WASTE_MIN ((size_t)64 << 20)

bool hfd_memory_trim_is_due(struct hfd_memory_trim *trim, size_t resident, size_t used) {
        size_t waste = resident > used ? resident - used : 0, before = trim->waste;
        size_t difference = waste > before ? waste - before : before - waste;

        trim->waste = waste;
        if (waste < trim->tolerated)
                trim->tolerated = waste;
        /* Large: what is not tolerated is at least WASTE_MIN and a quarter of what is used. Almost
         * the same: within an eighth of the waste. */
        return waste - trim->tolerated >= WASTE_MIN && waste - trim->tolerated >= used / 4 &&
               difference <= waste / 8;
}

/* The anonymous memory of this process that is resident, in bytes. 0: unknown. */
static size_t read_resident(void) {
        unsigned long size, resident, shared;
        FILE *file = fopen("/proc/self/statm", "re");

        if (!file)
                return 0;
        int n = fscanf(file, "%lu %lu %lu", &size, &resident, &shared);
        (void)fclose(file);
        return n == 3 && resident > shared ? (resident - shared) * (size_t)sysconf(_SC_PAGESIZE)
                                           : 0;
}

/* The processor time of this thread. 0: unknown. */
static hf_nsec read_cpu_time(void) {
        struct timespec spent;

        if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent) != 0)
                return 0;
        return spent.tv_sec * HF_NSEC_PER_SEC + spent.tv_nsec;
}

/* Trims at the second check, when the work of the start has ended, and again when the cacher's
 * history no longer has what the start has written. Does not trim a process that has WASTE_MIN or
 * more in memory, because that takes long and holds up the threads that allocate. Returns whether
 * it has trimmed. */
static bool trim_after_start(struct hfd_memory_trim *trim, size_t resident, hf_nsec now) {
        bool is_time = false;

        switch (trim->phase) {
        case HFD_MEMORY_TRIM_STARTING: trim->phase = HFD_MEMORY_TRIM_STARTED; break;
        case HFD_MEMORY_TRIM_STARTED:
                trim->phase = HFD_MEMORY_TRIM_FORGETTING;
                trim->forgotten_at = now + HFD_MEMORY_TRIM_FORGET;
                is_time = true;
                break;
        case HFD_MEMORY_TRIM_FORGETTING:
                is_time = now >= trim->forgotten_at;
                if (is_time)
                        trim->phase = HFD_MEMORY_TRIM_SETTLED;
                break;
        case HFD_MEMORY_TRIM_SETTLED: break;
        }
        if (!is_time || resident >= WASTE_MIN)
                return false;
        (void)malloc_trim(0);
        return true;
}

void hfd_memory_trim_tick(struct hfd_memory_trim *trim, const struct hf_host *host, hf_nsec now) {
        if (now < trim->next)
                return;
        trim->next = now + HFD_MEMORY_TRIM_INTERVAL;
        size_t resident = read_resident();
        if (trim_after_start(trim, resident, now) || resident < trim->tolerated + WASTE_MIN) {
                trim->waste = 0; /* it is not known, and too little for a trim */
                return;
        }
        hf_nsec begun = read_cpu_time();
        struct mallinfo2 info = mallinfo2();
        hf_nsec pause = (read_cpu_time() - begun) * CHECK_SHARE;
        if (pause > HFD_MEMORY_TRIM_INTERVAL)
                trim->next = now + pause;
        if (!hfd_memory_trim_is_due(trim, resident, info.uordblks + info.hblkhd))
                return;
        (void)malloc_trim(0);
        size_t after = read_resident();
        size_t used = info.uordblks + info.hblkhd;
        trim->tolerated = after > used ? after - used : 0;
        hf_log(&host->log, HF_LOG_INFO, "memory", "gave back %zu MiB of %zu MiB",
               (resident > after ? resident - after : 0) >> 20, resident >> 20);
}

hf_nsec hfd_memory_trim_next(const struct hfd_memory_trim *trim) { return trim->next; }
